"""Configurations and calls that are wrong in one way or in several, and where: shared by the tests of their faults.

Each is named by what is wrong. tests/unit/messages.txt has its faults as a person reads them, with keys and values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.harness.least_configuration import MINIMAL_RULE

Tables = dict[str, Any]
"""What is changed in the least configuration."""

ID = {"corpus": {"id": "id"}}
TWO = {"models": {"old": "x"}, "compare": {"baseline": "old"}}
THREE = {"models": {"old": "x", "new": "y"}, "compare": {"baseline": "old", "models": ["new"]}}
AT = {"thresholds": {"at": [0.2, 0.5]}}
FALL = {"name": "fall", "metric": "auc", "max_drop": 0.02}
EVEN = {"name": "even", "metric": "fpr_gap", "threshold": 0.5, "max_abs": 0.1}
AGAINST = {"name": "no worse", "metric": "bpsn_auc", "baseline": "old", "max_drop": 0.02}
CROSSED = {
    "columns": ["male", "gay", "a & b"],
    "categorical": ["race"],
    "predicates": {"old": "age > 60"},
    "crossed": {"pairs": True},
}

TABLES: dict[str, Tables] = {
    "unknown table": {"model": {"a": "b"}},
    "misspelled table": {
        "identities": None,
        "identites": {"columns": ["male"]},
        "gate": {"rule": [FALL | {"metric": "bpsn_auc", "identities": ["male"]}]},
    },
    "misspelled required key": {"label": {"column": None, "colum": "toxic"}},
    "no corpus": {"corpus": None},
    "control characters": {"corpus": {"name": "a\x1b[2Jb"}},
    "empty text": {"corpus": {"name": " "}},
    "path and table": {"corpus": {"table": "lake.comments"}},
    "no path": {"corpus": {"path": None}},
    "misspelled path": {"corpus": {"path": None, "pth": "data/civil"}},
    "schema of a table": {"corpus": {"path": None, "table": "t", "schema": "a INT"}},
    "duplicates without id": {"corpus": {"duplicates": "reject"}},
    "unknown choice": {"corpus": {"duplicates": "drop"}},
    "mode DROPMALFORMED": {"corpus": {"options": {"mode": "dropMalformed"}}},
    "mode FAILFAST": {"corpus": {"options": {"mode": "failfast"}}},
    "lost files": {"corpus": {"options": {"ignoreCorruptFiles": True}}},
    "option of a type": {"corpus": {"options": {"password": ["hunter2"]}}},
    "option twice": {"corpus": {"options": {"sep": ",", "SEP": ";"}}},
    "options as text": {"corpus": {"options": "password=hunter2"}},
    "infinite number": {"label": {"threshold": float("inf")}},
    "huge number": {"label": {"threshold": 10**400}},
    "threshold out of range": {"label": {"threshold": 1.2, "range": [0, 1]}},
    "range reversed": {"label": {"range": [1, 0]}},
    "label decided twice": {"label": {"threshold": 0.5, "positive": ["x"]}},
    "positive of two kinds": {"label": {"positive": [1, "x"]}},
    "range of text": {"label": {"positive": ["x"], "range": [0, 1]}},
    "no model": {"models": {"toxicity": None}},
    "models as text": {"models": "toxicity"},
    "model twice": {"models": ["a", "a"]},
    "score column as number": {"models": {"toxicity": 1}},
    "model with control characters": {"models": {"a\nb": "x"}},
    "no identities to pin": {"identities": None, "pinned_auc": {}},
    "no identity": {"identities": {"columns": []}},
    "identity as predicate, too": {"identities": {"predicates": {"male": "m"}}},
    "identity as term, too": {"identities": {"terms": {"column": "text", "list": ["male"]}}},
    "reserved identity": {"identities": {"columns": ["(overall)"]}},
    "identity as key": {"identities": {"gay": "age > 3"}},
    "list as text": {"identities": {"columns": "male"}},
    "list as text with commas": {"identities": {"columns": "[male, female]"}},
    "boolean as text": {"state": {"keep": "True"}},
    "empty entry": {"identities": {"columns": ["male", ""]}},
    "empty predicate": {"identities": {"predicates": {"young": " "}}},
    "negative number": {"identities": {"crossed": {"min_rows": -1}}},
    "crossed as flag": {"identities": {"crossed": True}},
    "too many pairs": {"identities": {"columns": [f"i{n}" for n in range(201)], "crossed": {"pairs": True}}},
    "more pairs than allowed": {"identities": {"columns": ["a", "b", "c"], "crossed": {"pairs": True, "max_pairs": 2}}},
    "reserved slice": {"slices": {"all": "true"}},
    "slices as list": {"slices": ["n < 9"]},
    "removed engine": {"ranking": {"engine": "binned", "bins": 9}},
    "too many ranges": {"ranking": {"ranges": 4097}},
    "flag for a number": {"ranking": {"ranges": True}},
    "fraction for a number": {"ranking": {"ranges": 1.0}},
    "flag as text": {"pinned_auc": {"include_subgroup_in_background": "yes"}},
    "threshold twice": {"thresholds": {"at": [0.5, 0.5]}},
    "grid reversed": {"thresholds": {"grid": {"low": 1.0, "high": 0.0}}},
    "too many thresholds": {"thresholds": {"at": [0.00001], "grid": {"steps": 10_000}}},
    "text and length": {"label_balance": {"text": "comment", "length": "n"}},
    "buckets of nothing": {"label_balance": {"buckets": [20, 60]}},
    "buckets descending": {"label_balance": {"length": "n", "buckets": [60, 20]}},
    "no identity to skew": {"pinned_skew": {}},
    "unknown identity to skew": {"pinned_skew": {"identity": "mal"}},
    "crossed pair to skew": {"identities": CROSSED, "pinned_skew": {"identity": "male & gay"}},
    "skew": {"pinned_skew": {"identity": "male", "cell": "none", "fraction": 1, "trials": 0, "seed": -1}},
    "attribution without id": {"attribution": {}},
    "unknown link of a model": ID | {"attribution": {"link": {"toxicity": "probit"}}},
    "link of an unknown model": ID | {"attribution": {"link": {"toxicty": "logit"}}},
    "feature of two kinds": ID | {"attribution": {"numeric": ["a"], "categorical": ["a"]}},
    "trees without features": ID | {"attribution": {"tree": {}, "pairs": {}, "slice_search": {}}},
    "targets without tree": ID | {"attribution": {"targets": ["gini"]}},
    "unknown target": ID | {"attribution": {"targets": ["recall"], "tree": {}, "numeric": ["a"]}},
    "model compared with itself": ID | {"attribution": {"compare": [["a", "a"]], "tree": {}, "numeric": ["a"]}},
    "unknown model to compare": ID
    | {"attribution": {"compare": [["toxicty", "toxicity"]], "tree": {}, "numeric": ["a"]}},
    "reserved segment": ID | {"attribution": {"segments": {"(overall)": "x"}}},
    "too many segments": ID | {"attribution": {"segments": {f"s{n}": "x > 1" for n in range(51)}}},
    "optional number": ID | {"attribution": {"numeric": ["length"], "pairs": {"min_leaf": 0}}},
    "unknown baseline": {"compare": {"baseline": "toxic"}, "models": {"a": "a"}},
    "one model to compare": {"compare": {"baseline": "toxicity"}},
    "baseline as model": {"compare": {"baseline": "a", "models": ["toxicity", "a"]}, "models": {"a": "a"}},
    "nothing to compare": {"compare": {"baseline": "a", "models": []}, "models": {"a": "a"}},
    "unknown model twice": {"compare": {"baseline": "a", "models": ["toxicty", "toxicty"]}, "models": {"a": "a"}},
    "cluster without jackknife": {"compare": {"baseline": "a", "cluster": "author"}, "models": {"a": "a"}},
    "misspelled method": {
        "compare": {"baseline": "a", "method": "jacknife", "groups": 50, "cluster": "x"},
        "models": {"a": "a"},
    },
    "jackknife without id": {"compare": {"baseline": "a", "method": "jackknife"}, "models": {"a": "a"}},
    "unknown metric": {"evidence": {"metrics": {"bpsn": 3}}},
    "privacy and attribution": ID | {"privacy": {}, "attribution": {}},
    "privacy and comparison": TWO | {"privacy": {}},
    "privacy and state": {"privacy": {}, "state": {"keep": True}},
    "state without blocks": {"state": {"keep": True}, "ranking": {"engine": "windows"}},
    "no output": {"output": {"path": None}},
    "catalog without schema": {"output": {"path": None, "catalog": "bias"}},
    "iceberg in a folder": {"output": {"format": "iceberg"}},
    "views of a folder": {"output": {"views": "spark_catalog.bias"}},
    "output in the corpus": {"output": {"path": "/data/civil/tables"}},
    "reports in the corpus": {"report": {"path": "/data/civil/reports"}},
    "output at the root": {"output": {"path": "/"}},
    "output as pattern": {"output": {"path": "s3a://key:hunter2@lake/{a,b}/*?"}},
    "no grace": {"maintenance": {"grace_hours": 0}},
    "everything": {
        "corpus": {"nam": "civil", "name": None, "path": ""},
        "label": {"column": 3, "threshold": True},
        "identities": {"columns": ["a", "a", 1], "threshold": "high", "terms": {}},
        "slices": {"short": 100},
        "ranking": {"engine": 1, "ranges": -1},
        "gate": {"alpha": 0, "rule": [{"name": "floor"}]},
        "rejects": {"max_rows": 10.5},
        "output": {"path": "x", "catalog": "y"},
    },
}
"""What is wrong with tables."""


def _rule(changes: dict[str, Any], base: dict[str, Any] = MINIMAL_RULE, **tables: Any) -> Tables:
    """Return a gate with one rule: a rule with some of its keys changed."""
    return {"gate": {"rule": [{key: value for key, value in (base | changes).items() if value is not None}]}, **tables}


RULES: dict[str, Tables] = {
    "no rule": {"gate": {"rule": []}},
    "rule as number": {"gate": {"rule": [3]}},
    "alpha too high": {"gate": {"alpha": 0.5, "rule": [MINIMAL_RULE]}},
    "rules of one name": {"gate": {"rule": [MINIMAL_RULE, MINIMAL_RULE]}},
    "too many rules": {"gate": {"rule": [MINIMAL_RULE | {"name": f"r{n}"} for n in range(201)]}},
    "unknown insufficient": {"gate": {"insufficient": "failed", "rule": [MINIMAL_RULE]}},
    "nothing to pair": ID | {"gate": {"paired": True, "rule": [MINIMAL_RULE]}},
    "only a comparison to pair": ID | TWO | {"gate": {"paired": True, "rule": [FALL | {"baseline": "old"}]}},
    "paired without id": {"gate": {"paired": True, "rule": [FALL]}},
    "paired with privacy": ID | {"privacy": {}, "gate": {"paired": True, "rule": [FALL]}},
    "metric misspelled": _rule({"metric": "bpsn"}),
    "metric of no identities": _rule({}, identities=None),
    "metric not judged": _rule({"metric": "pinned_auc"}),
    "rule without name": _rule({"name": None}),
    "key misspelled": _rule({"minimum": 0.1}),
    "two bounds": _rule({"max": 0.9}),
    "no bound": _rule({"min": None}),
    "no bound of a gap": _rule({"metric": "positive_aeg", "min": None}),
    "bound of every value": _rule({"min": 1}),
    "bound of another metric": _rule({"min": None, "max_abs": 0.1}),
    "rise of an AUC": _rule({"min": None, "max_rise": 0.1}),
    "drop of a gap": _rule({"metric": "positive_aeg", "min": None, "max_drop": 0.1}),
    "bound of a gap": _rule({"metric": "positive_aeg", "min": 0.6}),
    "negative drop": _rule({"min": None, "max_drop": -0.1}),
    "bound as text": _rule({"min": "high"}),
    "no threshold": _rule({"threshold": None}, EVEN, **AT),
    "no thresholds at all": _rule({}, EVEN),
    "another threshold": _rule({"threshold": 0.8}, EVEN, **AT),
    "threshold of an AUC": _rule({"threshold": 0.5}),
    "drop of the gap of a rate": _rule({"max_abs": None, "max_drop": 0.1}, EVEN, **AT),
    "size of a rate": _rule({"metric": "fpr"}, EVEN, **AT),
    "bound of a rate": _rule({"metric": "fpr", "max_abs": None, "max": 0}, EVEN, **AT),
    "unknown model in a rule": _rule({"model": "x"}),
    "unknown slice in a rule": _rule({"slices": ["sort"]}),
    "no identities in a rule": _rule({"identities": []}),
    "identity twice in a rule": _rule({"identities": ["male", "male"]}),
    "identity and identities": _rule({"identity": "male", "identities": ["male"]}),
    "unknown identity in a rule": _rule({"identity": "mal"}),
    "value as identity in a rule": _rule({"identity": "black"}, identities={"categorical": ["race"]}),
    "identity of a whole slice": _rule({"metric": "auc", "identity": "male", "worst": True}),
    "unknown severity": _rule({"severity": "panic"}),
    "pair in another order": _rule({"identity": "gay & male"}, identities=CROSSED),
    "pair of one": _rule({"identity": "male & male"}, identities=CROSSED),
    "pair with nobody": _rule({"identity": "male & no"}, identities=CROSSED),
    "value before a column": _rule({"identity": "old & race=x"}, identities=CROSSED),
    "unknown baseline of a rule": _rule({"baseline": "odl"}, AGAINST, **TWO),
    "baseline of itself": _rule({"models": ["toxicity", "old"]}, AGAINST, **TWO),
    "bound with a baseline": _rule({"max_drop": None, "min": 0.8}, AGAINST, **TWO),
    "no bound with a baseline": _rule({"max_drop": None}, AGAINST, **TWO),
    "two bounds with a baseline": _rule({"min": 0.8}, AGAINST, **TWO),
    "baseline without comparison": _rule({"model": "toxicity"}, AGAINST, **(TWO | {"compare": None})),
    "another baseline": _rule({"baseline": "toxicity"}, AGAINST, **TWO),
    "baseline of other models": _rule({"model": "toxicity"}, AGAINST, **THREE),
    "empty baseline": _rule({"baseline": ""}, AGAINST, **TWO),
    "baseline of a rate": _rule({"baseline": "old"}, EVEN, **(TWO | AT)),
}
"""What is wrong with gates."""

ASKED: dict[str, Any] = {"models": ["new", "old"], "label": "toxic", "identities": ["gay"]}
OF_ROWS: dict[str, Any] = {"id": "id", "models": "new", "label": "toxic"}
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "several keywords": (
        "bias_metrics",
        {
            "label_threshold": "x",
            "identity_threshold": "x",
            "unannotated": "no",
            "engine": "binned",
            "level": 2,
            "evidence": -1,
            "privacy": 0,
        },
    ),
    "label decided twice": ("bias_metrics", {"label_threshold": 0.5, "label_positive": [1]}),
    "label as dict": ("bias_metrics", {"label": {"column": "toxic"}}),
    "no label": ("bias_metrics", {"label": None}),
    "no models": ("bias_metrics", {"models": None}),
    "models as set": ("bias_metrics", {"models": {"new"}}),
    "models as scores": ("bias_metrics", {"models": np.array([0.1, 0.9])}),
    "columns in place of names": (
        "bias_metrics",
        {"models": {"new": np.array([0.1, 0.9])}, "label": np.array(["toxic"]), "slices": {"a": np.array([True])}},
    ),
    "no identities": ("bias_metrics", {"identities": None}),
    "identity as number": ("bias_metrics", {"identities": [1]}),
    "identity as key": ("bias_metrics", {"identities": {"gay": "sex <> 1"}}),
    "predicates as list": ("bias_metrics", {"identities": {"predicates": ["a > 1"]}}),
    "terms as list": ("bias_metrics", {"identities": {"terms": ["gay"]}}),
    "threshold next to a dict": ("bias_metrics", {"identities": {"columns": ["gay"]}, "identity_threshold": 0.7}),
    "table as dict": ("measure", {"histograms": {"bins": 0}}),
    "table as value": ("measure", {"histograms": 0, "thresholds": 0.5}),
    "table that needs a value": ("measure", {"templates": True}),
    "keys that are no text": ("bias_metrics", {"slices": {5: "true", None: "true"}}),
    "evidence without a number": ("bias_metrics", {"evidence": True}),
    "narrow as text": ("bias_metrics", {"narrow": "yes"}),
    "identities as set": ("bias_metrics", {"identities": {"gay"}}),
    "settings of no identities": (
        "model_summary",
        {"identities": None, "identity_threshold": "x", "unannotated": "never"},
    ),
    "report in no folder": ("bias_report", {"out": "/none/x.html", "title": None, "level": 2}),
    "report at a number": ("bias_report", {"out": 3}),
    "report of another kind": ("bias_report", {"out": "report.pdf"}),
    "no thresholds": ("threshold_rates", {}),
    "empty thresholds": ("threshold_rates", {"at": ()}),
    "threshold as text": ("threshold_rates", {"at": ["x"]}),
    "misspelled key of a grid": ("threshold_rates", {"grid": {"hi": 3}}),
    "empty template": ("template_scores", {"template": ""}),
    "id as number and another fault": ("model_comparisons", {"baseline": "old", "id": 3, "level": 2}),
    "trials without blocks": ("pinned_auc", {"trials": 3, "engine": "windows"}),
    "value as identity": ("pinned_skew", {"identities": {"categorical": ["sex"]}, "identity": "Female"}),
    "no id": ("example_attributions", {"id": None}),
    "unknown key of a tree": ("attribution_segments", {"numeric": ["age"], "tree": {"depth": 3}, "link": "x"}),
    "tree as number": ("attribution_segments", {"numeric": ["age"], "categorical": "sex", "tree": 3}),
    "no feature because of another fault": ("attribution_segments", {"numeric": "age"}),
    "no target": ("attribution_segments", {"numeric": ["age"], "targets": []}),
    "pairs of models without a tree": ("attribute", {"models": ["new", "old"], "compare": [["new", "old"]]}),
    "no pair": ("named_pairs", {"pairs_of": {}}),
    "pairs as a list": ("named_pairs", {"pairs_of": [("age < 9", "age > 9")]}),
    "a pair without positives": ("named_pairs", {"pairs_of": {"p": {"negatives": "age > 9"}}}),
    "groupings as text": ("auc_crosses", {"groupings": "lang"}),
    "groupings as array": ("auc_crosses", {"groupings": np.array(["lang", "day"])}),
}
"""Functions, and what is wrong with their keywords."""


def keywords_of(name: str, changes: dict[str, Any]) -> dict[str, Any]:
    """Return the keywords of a call: the least ones of the function, and those that are wrong."""
    is_of_rows = name.startswith(("attribut", "example", "loss", "auc", "named"))
    return (OF_ROWS if is_of_rows else ASKED) | changes
