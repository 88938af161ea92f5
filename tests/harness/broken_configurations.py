"""Configurations and calls that are wrong in one way or in several, and where: shared by the tests of their faults.

Each is named by what is wrong, and lists the keys of its faults and the values that these show. tests/unit/messages.txt
has what a person reads.
"""

from __future__ import annotations

from typing import Any

from biasspark.errors import ABSENT
from tests.harness.gate_rules import LEAST_RULE

Faults = dict[str, Any]
"""The keys of faults, and the values that they show."""
Broken = tuple[dict[str, Any], Faults]
"""What is changed in the least configuration, and the faults."""

MISSING = ABSENT
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

TABLES: dict[str, Broken] = {
    "unknown table": ({"model": {"a": "b"}}, {"model": MISSING}),
    "misspelled table": (
        {
            "identities": None,
            "identites": {"columns": ["male"]},
            "gate": {"rule": [FALL | {"metric": "bpsn_auc", "identities": ["male"]}]},
        },
        {"identites": MISSING},
    ),
    "misspelled required key": ({"label": {"column": None, "colum": "toxic"}}, {"label.colum": MISSING}),
    "no corpus": ({"corpus": None}, {"corpus": MISSING}),
    "no name": ({"corpus": {"name": None}}, {"corpus.name": MISSING}),
    "control characters": ({"corpus": {"name": "a\x1b[2Jb"}}, {"corpus.name": "a\x1b[2Jb"}),
    "empty text": ({"corpus": {"name": " "}}, {"corpus.name": " "}),
    "path and table": ({"corpus": {"table": "lake.comments"}}, {"corpus": MISSING}),
    "no path": ({"corpus": {"path": None}}, {"corpus": MISSING}),
    "misspelled path": ({"corpus": {"path": None, "pth": "data/civil"}}, {"corpus.pth": MISSING}),
    "schema of a table": ({"corpus": {"path": None, "table": "t", "schema": "a INT"}}, {"corpus.schema": "a INT"}),
    "duplicates without id": ({"corpus": {"duplicates": "reject"}}, {"corpus.duplicates": "reject"}),
    "unknown choice": ({"corpus": {"duplicates": "drop"}}, {"corpus.duplicates": "drop"}),
    "mode DROPMALFORMED": ({"corpus": {"options": {"mode": "dropMalformed"}}}, {"corpus.options.mode": MISSING}),
    "mode FAILFAST": ({"corpus": {"options": {"mode": "failfast"}}}, {"corpus.options.mode": MISSING}),
    "lost files": (
        {"corpus": {"options": {"ignoreCorruptFiles": True}}},
        {"corpus.options.ignoreCorruptFiles": MISSING},
    ),
    "option of a type": ({"corpus": {"options": {"password": ["hunter2"]}}}, {"corpus.options.password": MISSING}),
    "option twice": ({"corpus": {"options": {"sep": ",", "SEP": ";"}}}, {"corpus.options.SEP": MISSING}),
    "options as text": ({"corpus": {"options": "password=hunter2"}}, {"corpus.options": MISSING}),
    "number as text": ({"label": {"threshold": "0.5"}}, {"label.threshold": "0.5"}),
    "infinite number": ({"label": {"threshold": float("inf")}}, {"label.threshold": float("inf")}),
    "huge number": ({"label": {"threshold": 10**400}}, {"label.threshold": 10**400}),
    "threshold out of range": ({"label": {"threshold": 1.2, "range": [0, 1]}}, {"label.threshold": 1.2}),
    "range reversed": ({"label": {"range": [1, 0]}}, {"label.range": [1, 0]}),
    "label decided twice": ({"label": {"threshold": 0.5, "positive": ["x"]}}, {"label.threshold": 0.5}),
    "positive of two kinds": ({"label": {"positive": [1, "x"]}}, {"label.positive": [1, "x"]}),
    "range of text": ({"label": {"positive": ["x"], "range": [0, 1]}}, {"label.range": [0, 1]}),
    "no models": ({"models": None}, {"models": MISSING}),
    "no model": ({"models": {"toxicity": None}}, {"models": MISSING}),
    "models as text": ({"models": "toxicity"}, {"models": MISSING}),
    "model twice": ({"models": ["a", "a"]}, {"models.2": "a"}),
    "score column as number": ({"models": {"toxicity": 1}}, {"models.toxicity": 1}),
    "model with control characters": ({"models": {"a\nb": "x"}}, {"models.a\nb": MISSING}),
    "no identities to pin": ({"identities": None, "pinned_auc": {}}, {"identities": MISSING}),
    "no identity": ({"identities": {"columns": []}}, {"identities": MISSING}),
    "identity twice": ({"identities": {"columns": ["male", "male"]}}, {"identities.columns.2": "male"}),
    "identity as predicate, too": ({"identities": {"predicates": {"male": "m"}}}, {"identities.predicates": MISSING}),
    "identity as term, too": (
        {"identities": {"terms": {"column": "text", "list": ["male"]}}},
        {"identities.terms": MISSING},
    ),
    "reserved identity": ({"identities": {"columns": ["(overall)"]}}, {"identities.columns": MISSING}),
    "identity as key": ({"identities": {"gay": "age > 3"}}, {"identities.gay": MISSING}),
    "misspelled key": ({"identities": {"colums": ["gay"]}}, {"identities.colums": MISSING}),
    "list as text": ({"identities": {"columns": "male"}}, {"identities.columns": "male"}),
    "empty entry": ({"identities": {"columns": ["male", ""]}}, {"identities.columns.2": ""}),
    "unknown unannotated": ({"identities": {"unannotated": "drop"}}, {"identities.unannotated": "drop"}),
    "empty predicate": ({"identities": {"predicates": {"young": " "}}}, {"identities.predicates.young": " "}),
    "negative number": ({"identities": {"crossed": {"min_rows": -1}}}, {"identities.crossed.min_rows": -1}),
    "crossed as flag": ({"identities": {"crossed": True}}, {"identities.crossed": MISSING}),
    "too many pairs": (
        {"identities": {"columns": [f"i{n}" for n in range(201)], "crossed": {"pairs": True}}},
        {"identities.crossed.pairs": True},
    ),
    "more pairs than allowed": (
        {"identities": {"columns": ["a", "b", "c"], "crossed": {"pairs": True, "max_pairs": 2}}},
        {"identities.crossed.pairs": True},
    ),
    "pair of a name": (
        {"identities": {"columns": ["a", "b", "a & b"], "crossed": {"pairs": True}}},
        {"identities.crossed.pairs": True},
    ),
    "reserved slice": ({"slices": {"all": "true"}}, {"slices.all": "true"}),
    "slices as list": ({"slices": ["n < 9"]}, {"slices": MISSING}),
    "unknown engine": ({"ranking": {"engine": "fast"}}, {"ranking.engine": "fast"}),
    "removed engine": (
        {"ranking": {"engine": "binned", "bins": 9}},
        {"ranking.bins": MISSING, "ranking.engine": "binned"},
    ),
    "unknown key": ({"ranking": {"engin": "windows"}}, {"ranking.engin": MISSING}),
    "too many ranges": ({"ranking": {"ranges": 4097}}, {"ranking.ranges": 4097}),
    "flag for a number": ({"ranking": {"ranges": True}}, {"ranking.ranges": True}),
    "fraction for a number": ({"ranking": {"ranges": 1.0}}, {"ranking.ranges": 1.0}),
    "table as text": ({"ranking": "fast"}, {"ranking": MISSING}),
    "level in percent": ({"intervals": {"level": 95}}, {"intervals.level": 95}),
    "trials without blocks": (
        {"pinned_auc": {"trials": 10}, "ranking": {"engine": "windows"}},
        {"pinned_auc.trials": 10},
    ),
    "flag as text": (
        {"pinned_auc": {"include_subgroup_in_background": "yes"}},
        {"pinned_auc.include_subgroup_in_background": "yes"},
    ),
    "no thresholds": ({"thresholds": {}}, {"thresholds": MISSING}),
    "empty thresholds": ({"thresholds": {"at": []}}, {"thresholds.at": []}),
    "one threshold": ({"thresholds": {"at": 0.5}}, {"thresholds.at": 0.5}),
    "threshold twice": ({"thresholds": {"at": [0.5, 0.5]}}, {"thresholds.at.2": 0.5}),
    "grid reversed": ({"thresholds": {"grid": {"low": 1.0, "high": 0.0}}}, {"thresholds.grid": MISSING}),
    "too many thresholds": (
        {"thresholds": {"at": [0.00001], "grid": {"steps": 10_000}}},
        {"thresholds": MISSING},
    ),
    "no bins": ({"histograms": {"bins": 0}}, {"histograms.bins": 0}),
    "text and length": ({"label_balance": {"text": "comment", "length": "n"}}, {"label_balance": MISSING}),
    "buckets of nothing": ({"label_balance": {"buckets": [20, 60]}}, {"label_balance.buckets": [20, 60]}),
    "buckets descending": (
        {"label_balance": {"length": "n", "buckets": [60, 20]}},
        {"label_balance.buckets": [60, 20]},
    ),
    "no template": ({"templates": {}}, {"templates.column": MISSING}),
    "no identity to skew": ({"pinned_skew": {}}, {"pinned_skew.identity": MISSING}),
    "unknown identity to skew": ({"pinned_skew": {"identity": "mal"}}, {"pinned_skew.identity": "mal"}),
    "crossed pair to skew": (
        {"identities": CROSSED, "pinned_skew": {"identity": "male & gay"}},
        {"pinned_skew.identity": "male & gay"},
    ),
    "skew": (
        {"pinned_skew": {"identity": "male", "cell": "none", "fraction": 1, "trials": 0, "seed": -1}},
        {"pinned_skew.cell": "none", "pinned_skew.fraction": 1, "pinned_skew.trials": 0, "pinned_skew.seed": -1},
    ),
    "attribution without id": ({"attribution": {}}, {"corpus.id": MISSING}),
    "unknown link": (ID | {"attribution": {"link": "probit"}}, {"attribution.link": "probit"}),
    "unknown link of a model": (
        ID | {"attribution": {"link": {"toxicity": "probit"}}},
        {"attribution.link.toxicity": "probit"},
    ),
    "link of an unknown model": (
        ID | {"attribution": {"link": {"toxicty": "logit"}}},
        {"attribution.link.toxicty": MISSING},
    ),
    "feature of two kinds": (
        ID | {"attribution": {"numeric": ["a"], "categorical": ["a"]}},
        {"attribution.categorical": MISSING},
    ),
    "trees without features": (
        ID | {"attribution": {"tree": {}, "pairs": {}, "slice_search": {}}},
        {"attribution.tree": MISSING, "attribution.pairs": MISSING, "attribution.slice_search": MISSING},
    ),
    "targets without tree": (ID | {"attribution": {"targets": ["gini"]}}, {"attribution.targets": ["gini"]}),
    "unknown target": (
        ID | {"attribution": {"targets": ["recall"], "tree": {}, "numeric": ["a"]}},
        {"attribution.targets.1": "recall"},
    ),
    "model compared with itself": (
        ID | {"attribution": {"compare": [["a", "a"]], "tree": {}, "numeric": ["a"]}},
        {"attribution.compare.1": ["a", "a"]},
    ),
    "unknown model to compare": (
        ID | {"attribution": {"compare": [["toxicty", "toxicity"]], "tree": {}, "numeric": ["a"]}},
        {"attribution.compare.1": ("toxicty", "toxicity")},
    ),
    "reserved segment": (
        ID | {"attribution": {"segments": {"(overall)": "x"}}},
        {"attribution.segments.(overall)": "x"},
    ),
    "too many segments": (
        ID | {"attribution": {"segments": {f"s{n}": "x > 1" for n in range(51)}}},
        {"attribution.segments": MISSING},
    ),
    "optional number": (
        ID | {"attribution": {"numeric": ["length"], "pairs": {"min_leaf": 0}}},
        {"attribution.pairs.min_leaf": 0},
    ),
    "no baseline": ({"compare": {}, "models": {"a": "a"}}, {"compare.baseline": MISSING}),
    "unknown baseline": ({"compare": {"baseline": "c"}, "models": {"a": "a"}}, {"compare.baseline": "c"}),
    "one model to compare": ({"compare": {"baseline": "toxicity"}}, {"compare": MISSING}),
    "baseline as model": (
        {"compare": {"baseline": "a", "models": ["toxicity", "a"]}, "models": {"a": "a"}},
        {"compare.models.2": "a"},
    ),
    "nothing to compare": ({"compare": {"baseline": "a", "models": []}, "models": {"a": "a"}}, {"compare.models": []}),
    "unknown model twice": (
        {"compare": {"baseline": "a", "models": ["b", "b"]}, "models": {"a": "a"}},
        {"compare.models.2": "b", "compare.models.1": "b"},
    ),
    "cluster without jackknife": (
        {"compare": {"baseline": "a", "cluster": "author"}, "models": {"a": "a"}},
        {"compare.cluster": "author"},
    ),
    "misspelled method": (
        {"compare": {"baseline": "a", "method": "jacknife", "groups": 50, "cluster": "x"}, "models": {"a": "a"}},
        {"compare.method": "jacknife"},
    ),
    "jackknife without id": (
        {"compare": {"baseline": "a", "method": "jackknife"}, "models": {"a": "a"}},
        {"corpus.id": MISSING},
    ),
    "unknown metric": ({"evidence": {"metrics": {"bpsn": 3}}}, {"evidence.metrics.bpsn": MISSING}),
    "no group": ({"privacy": {"min_group_rows": 0}}, {"privacy.min_group_rows": 0}),
    "privacy and attribution": (ID | {"privacy": {}, "attribution": {}}, {"privacy": MISSING}),
    "privacy and comparison": (TWO | {"privacy": {}}, {"privacy": MISSING}),
    "privacy and state": ({"privacy": {}, "state": {"keep": True}}, {"privacy": MISSING}),
    "state without blocks": ({"state": {"keep": True}, "ranking": {"engine": "windows"}}, {"state.keep": True}),
    "share above 1": ({"rejects": {"max_share": 1.1}}, {"rejects.max_share": 1.1}),
    "no output": ({"output": {"path": None}}, {"output": MISSING}),
    "catalog without schema": ({"output": {"path": None, "catalog": "bias"}}, {"output.catalog": "bias"}),
    "iceberg in a folder": ({"output": {"format": "iceberg"}}, {"output.format": "iceberg"}),
    "views of a folder": ({"output": {"views": "spark_catalog.bias"}}, {"output.views": "spark_catalog.bias"}),
    "output in the corpus": ({"output": {"path": "/data/civil/tables"}}, {"output.path": "/data/civil/tables"}),
    "reports in the corpus": ({"report": {"path": "/data/civil/reports"}}, {"report.path": "/data/civil/reports"}),
    "output at the root": ({"output": {"path": "/"}}, {"output.path": "/"}),
    "output as pattern": (
        {"output": {"path": "s3a://key:hunter2@lake/{a,b}/*?"}},
        {"output.path": "s3a://key:hunter2@lake/{a,b}/*?"},
    ),
    "no grace": ({"maintenance": {"grace_hours": 0}}, {"maintenance.grace_hours": 0}),
    "everything": (
        {
            "corpus": {"nam": "civil", "name": None, "path": ""},
            "label": {"column": 3, "threshold": True},
            "identities": {"columns": ["a", "a", 1], "threshold": "high", "terms": {}},
            "slices": {"short": 100},
            "ranking": {"engine": 1, "ranges": -1},
            "gate": {"alpha": 0, "rule": [{"name": "floor"}]},
            "rejects": {"max_rows": 10.5},
            "output": {"path": "x", "catalog": "y"},
        },
        {
            "corpus.nam": MISSING,
            "corpus.path": "",
            "label.column": 3,
            "label.threshold": True,
            "identities.columns.3": 1,
            "identities.columns.2": "a",
            "identities.threshold": "high",
            "identities.terms.column": MISSING,
            "identities.terms": MISSING,
            "slices.short": 100,
            "ranking.engine": 1,
            "ranking.ranges": -1,
            "output": MISSING,
            "output.catalog": "y",
            "rejects.max_rows": 10.5,
            "gate.alpha": 0,
            "gate.rule.floor.metric": MISSING,
            "gate.rule.floor": MISSING,
        },
    ),
}
"""What is wrong with tables."""

RULES: dict[str, Broken] = {
    "no rule": ({"gate": {"rule": []}}, {"gate": MISSING}),
    "rule as number": ({"gate": {"rule": [3]}}, {"gate.rule.1": MISSING}),
    "alpha too high": ({"gate": {"alpha": 0.5, "rule": [LEAST_RULE]}}, {"gate.alpha": 0.5}),
    "rules of one name": ({"gate": {"rule": [LEAST_RULE, LEAST_RULE]}}, {"gate": MISSING}),
    "too many rules": (
        {"gate": {"rule": [LEAST_RULE | {"name": f"r{n}"} for n in range(201)]}},
        {"gate.rule": MISSING},
    ),
    "unknown insufficient": (
        {"gate": {"insufficient": "failed", "rule": [LEAST_RULE]}},
        {"gate.insufficient": "failed"},
    ),
    "nothing to pair": (ID | {"gate": {"paired": True, "rule": [LEAST_RULE]}}, {"gate.paired": True}),
    "only a comparison to pair": (
        ID | TWO | {"gate": {"paired": True, "rule": [FALL | {"baseline": "old"}]}},
        {"gate.paired": True},
    ),
    "paired without id": ({"gate": {"paired": True, "rule": [FALL]}}, {"corpus.id": MISSING}),
    "paired with privacy": (ID | {"privacy": {}, "gate": {"paired": True, "rule": [FALL]}}, {"privacy": MISSING}),
}
"""What is wrong with gates."""


def _add_rule(  # noqa: PLR0917 - a table is easier to read in columns
    name: str, changes: dict[str, Any], key: str, value: Any, base: Any = LEAST_RULE, tables: Any = None
) -> None:
    """Add a configuration with one rule that has one fault: a rule with some of its keys changed."""
    rule = {name: given for name, given in (base | changes).items() if given is not None}
    path = f"gate.rule.{rule.get('name', 1)}"
    RULES[name] = ({"gate": {"rule": [rule]}, **(tables or {})}, {f"{path}.{key}" if key else path: value})


_add_rule("metric misspelled", {"metric": "bpsn"}, "metric", "bpsn")
_add_rule("metric of no identities", {}, "metric", "bpsn_auc", tables={"identities": None})
_add_rule("metric not judged", {"metric": "pinned_auc"}, "metric", "pinned_auc")
_add_rule("rule without name", {"name": None}, "name", MISSING)
_add_rule("key misspelled", {"minimum": 0.1}, "minimum", MISSING)
_add_rule("two bounds", {"max": 0.9}, "", MISSING)
_add_rule("no bound", {"min": None}, "", MISSING)
_add_rule("no bound of a gap", {"metric": "positive_aeg", "min": None}, "", MISSING)
_add_rule("bound of every value", {"min": 1}, "min", 1)
_add_rule("bound of another metric", {"min": None, "max_abs": 0.1}, "max_abs", 0.1)
_add_rule("rise of an AUC", {"min": None, "max_rise": 0.1}, "max_rise", 0.1)
_add_rule("drop of a gap", {"metric": "positive_aeg", "min": None, "max_drop": 0.1}, "max_drop", 0.1)
_add_rule("bound of a gap", {"metric": "positive_aeg", "min": 0.6}, "min", 0.6)
_add_rule("negative drop", {"min": None, "max_drop": -0.1}, "max_drop", -0.1)
_add_rule("bound as text", {"min": "high"}, "min", "high")
_add_rule("no threshold", {"threshold": None}, "threshold", MISSING, EVEN, AT)
_add_rule("no thresholds at all", {}, "threshold", 0.5, EVEN)
_add_rule("another threshold", {"threshold": 0.8}, "threshold", 0.8, EVEN, AT)
_add_rule("threshold of an AUC", {"threshold": 0.5}, "threshold", 0.5)
_add_rule("drop of the gap of a rate", {"max_abs": None, "max_drop": 0.1}, "max_drop", 0.1, EVEN, AT)
_add_rule("size of a rate", {"metric": "fpr"}, "max_abs", 0.1, EVEN, AT)
_add_rule("bound of a rate", {"metric": "fpr", "max_abs": None, "max": 0}, "max", 0, EVEN, AT)
_add_rule("unknown model in a rule", {"model": "x"}, "model", "x")
_add_rule("unknown slice in a rule", {"slices": ["sort"]}, "slices.1", "sort")
_add_rule("no identities in a rule", {"identities": []}, "identities", [])
_add_rule("identity twice in a rule", {"identities": ["male", "male"]}, "identities.2", "male")
_add_rule("identity and identities", {"identity": "male", "identities": ["male"]}, "", MISSING)
_add_rule("unknown identity in a rule", {"identity": "mal"}, "identity", "mal")
_add_rule("identity of a whole slice", {"metric": "auc", "identity": "male", "worst": True}, "", MISSING)
_add_rule("unknown severity", {"severity": "panic"}, "severity", "panic")
_add_rule("pair in another order", {"identity": "gay & male"}, "identity", "gay & male", tables={"identities": CROSSED})
_add_rule("pair of one", {"identity": "male & male"}, "identity", "male & male", tables={"identities": CROSSED})
_add_rule("pair with nobody", {"identity": "male & no"}, "identity", "male & no", tables={"identities": CROSSED})
_add_rule(
    "value before a column", {"identity": "old & race=x"}, "identity", "old & race=x", tables={"identities": CROSSED}
)
_add_rule("unknown baseline of a rule", {"baseline": "odl"}, "baseline", "odl", AGAINST, TWO)
_add_rule("baseline of itself", {"models": ["toxicity", "old"]}, "baseline", "old", AGAINST, TWO)
_add_rule("bound with a baseline", {"max_drop": None, "min": 0.8}, "min", 0.8, AGAINST, TWO)
_add_rule("no bound with a baseline", {"max_drop": None}, "", MISSING, AGAINST, TWO)
_add_rule("two bounds with a baseline", {"min": 0.8}, "", MISSING, AGAINST, TWO)
_add_rule("baseline without comparison", {"model": "toxicity"}, "baseline", "old", AGAINST, TWO | {"compare": None})
_add_rule("another baseline", {"baseline": "toxicity"}, "baseline", "toxicity", AGAINST, TWO)
_add_rule("baseline of other models", {"model": "toxicity"}, "baseline", "old", AGAINST, THREE)
_add_rule("empty baseline", {"baseline": ""}, "baseline", "", AGAINST, TWO)
_add_rule("baseline of a rate", {"baseline": "old"}, "baseline", "old", EVEN, TWO | AT)

Call = tuple[str, dict[str, Any], Faults]
"""A function, keywords, and the faults of the call, by the keys of the configuration."""

ASKED: dict[str, Any] = {"models": ["new", "old"], "label": "toxic", "identities": ["gay"]}
OF_ROWS: dict[str, Any] = {"id": "id", "models": "new", "label": "toxic"}
CALLS: dict[str, Call] = {
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
        {
            "label.threshold": "x",
            "identities.threshold": "x",
            "identities.unannotated": "no",
            "ranking.engine": "binned",
            "intervals.level": 2,
            "evidence.min_rows": -1,
            "privacy.min_group_rows": 0,
        },
    ),
    "label decided twice": (
        "bias_metrics",
        {"label_threshold": 0.5, "label_positive": [1]},
        {"label.threshold": 0.5},
    ),
    "label as dict": ("bias_metrics", {"label": {"column": "toxic"}}, {"label.column": {"column": "toxic"}}),
    "no label": ("bias_metrics", {"label": None}, {"label.column": MISSING}),
    "no models": ("bias_metrics", {"models": None}, {"models": MISSING}),
    "models as set": ("bias_metrics", {"models": {"new"}}, {"models": MISSING}),
    "model twice": ("bias_metrics", {"models": ["a", "a"]}, {"models.2": "a"}),
    "no identities": ("bias_metrics", {"identities": None}, {"identities": MISSING}),
    "identity as number": ("bias_metrics", {"identities": [1]}, {"identities.columns.1": 1}),
    "identity as key": ("bias_metrics", {"identities": {"gay": "sex <> 1"}}, {"identities.gay": MISSING}),
    "misspelled key": ("bias_metrics", {"identities": {"colums": ["gay"]}}, {"identities.colums": MISSING}),
    "list as text": ("bias_metrics", {"identities": {"categorical": "sex"}}, {"identities.categorical": "sex"}),
    "predicates as list": (
        "bias_metrics",
        {"identities": {"predicates": ["a > 1"]}},
        {"identities.predicates": MISSING},
    ),
    "terms as list": ("bias_metrics", {"identities": {"terms": ["gay"]}}, {"identities.terms": MISSING}),
    "threshold next to a dict": (
        "bias_metrics",
        {"identities": {"columns": ["gay"]}, "identity_threshold": 0.7},
        {"identity_threshold": 0.7},
    ),
    "slices as list": ("bias_metrics", {"slices": ["a > 1"]}, {"slices": MISSING}),
    "reserved slice": ("bias_metrics", {"slices": {"all": "true"}}, {"slices.all": "true"}),
    "table as dict": ("measure", {"histograms": {"bins": 0}}, {"histograms.bins": 0}),
    "table as value": ("measure", {"histograms": 0, "thresholds": 0.5}, {"thresholds.at": 0.5, "histograms.bins": 0}),
    "table that needs a value": ("measure", {"templates": True}, {"templates.column": MISSING}),
    "no thresholds": ("threshold_rates", {}, {"thresholds": MISSING}),
    "empty thresholds": ("threshold_rates", {"at": ()}, {"thresholds.at": []}),
    "threshold as text": ("threshold_rates", {"at": ["x"]}, {"thresholds.at.1": "x"}),
    "misspelled key of a grid": ("threshold_rates", {"grid": {"hi": 3}}, {"thresholds.grid.hi": MISSING}),
    "empty template": ("template_scores", {"template": ""}, {"templates.column": ""}),
    "buckets of nothing": ("label_balance", {"buckets": [20, 60]}, {"label_balance.buckets": [20, 60]}),
    "unknown baseline": ("model_comparisons", {"baseline": "mid"}, {"compare.baseline": "mid"}),
    "cluster without jackknife": (
        "model_comparisons",
        {"baseline": "old", "cluster": "author"},
        {"compare.cluster": "author"},
    ),
    "id as number": ("model_comparisons", {"baseline": "old", "id": 3}, {"corpus.id": 3}),
    "trials without blocks": ("pinned_auc", {"trials": 3, "engine": "windows"}, {"pinned_auc.trials": 3}),
    "unknown identity": ("pinned_skew", {"identity": "gy"}, {"pinned_skew.identity": "gy"}),
    "value as identity": (
        "pinned_skew",
        {"identities": {"categorical": ["sex"]}, "identity": "Female"},
        {"pinned_skew.identity": "Female"},
    ),
    "no id": ("example_attributions", {"id": None}, {"corpus.id": None}),
    "unknown key of a tree": (
        "attribution_segments",
        {"numeric": ["age"], "tree": {"depth": 3}, "link": "x"},
        {"attribution.link": "x", "attribution.tree.depth": MISSING},
    ),
    "tree as number": (
        "attribution_segments",
        {"numeric": ["age"], "categorical": "sex", "tree": 3},
        {"attribution.categorical": "sex", "attribution.tree": MISSING},
    ),
    "segments as list": ("loss_by_segment", {"segments": ["age > 9"]}, {"attribution.segments": MISSING}),
    "a pair without positives": (
        "named_pairs",
        {"pairs_of": {"p": {"negatives": "age > 9"}}},
        {"attribution.pairs_of.p.positives": MISSING},
    ),
    "groupings as text": ("auc_crosses", {"groupings": "lang"}, {"attribution.groupings": MISSING}),
}
"""What is wrong with calls of the public functions."""


def keywords_of(name: str, changes: dict[str, Any]) -> dict[str, Any]:
    """Return the keywords of a call: the least ones of the function, and those that are wrong."""
    is_of_rows = name.startswith(("attribution", "example", "loss", "auc", "named"))
    return (OF_ROWS if is_of_rows else ASKED) | changes
