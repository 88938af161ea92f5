"""Every fault of a configuration, word for word, and that all of them are found at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from biasspark.config import parse_config
from tests.least_configuration import TABLES, changed, faults_of

KEYS_OF_CORPUS = "name, path, table, format, options, schema, filter, run_date_column, id, duplicates"


@pytest.mark.parametrize(
    ("tables", "fault"),
    [
        (
            {"model": {"a": "b"}},
            f"[model]: there is no such table. The tables are {TABLES}. Did you mean models?",
        ),
        (
            {"corpus": None},
            "[corpus]: missing. This table is required. "
            'Write, for example, [corpus] name = "civil", path = "data/civil".',
        ),
        (
            {"corpus": {"name": None}},
            '[corpus] name: missing. It is required. Write, for example, name = "civil".',
        ),
        (
            {"corpus": {"name": "a\x1b[2Jb"}},
            r'[corpus] name = "a\x1b[2Jb". It must hold no control characters. Write, for example, name = "civil".',
        ),
        (
            {"corpus": {"name": " "}},
            '[corpus] name = " ". It must not be empty. Write, for example, name = "civil".',
        ),
        (
            {"corpus": {"table": "lake.comments"}},
            "[corpus]: path and table are both given. Exactly one of them is required. Remove one.",
        ),
        (
            {"corpus": {"path": None}},
            "[corpus]: neither path nor table is given. Exactly one of them is required. "
            'Write, for example, path = "data/civil".',
        ),
        (
            {"corpus": {"path": None, "table": "t", "schema": "a INT"}},
            '[corpus] schema = "a INT". A catalog table has its own schema. Remove the line.',
        ),
        (
            {"corpus": {"duplicates": "reject"}},
            '[corpus] duplicates = "reject". Without an id nothing can be compared. '
            'Name the id column, id = "...", or remove the line.',
        ),
        (
            {"corpus": {"duplicates": "drop"}},
            '[corpus] duplicates = "drop". It must be one of "estimate", "reject", "allow". '
            'Remove the line to use the default, "estimate".',
        ),
        (
            {"corpus": {"options": {"mode": "dropMalformed"}}},
            "[corpus.options] mode: DROPMALFORMED is refused. Rows would be left out, and nobody would know how many. "
            "Remove the line.",
        ),
        (
            {"corpus": {"options": {"ignoreCorruptFiles": True}}},
            "[corpus.options] ignoreCorruptFiles: TRUE is refused. Rows would be left out, and nobody would know how "
            "many. Remove the line.",
        ),
        (
            {"corpus": {"options": {"mode": "failfast"}}},
            "[corpus.options] mode: FAILFAST is refused. Its error prints the record, text and all. "
            'Use "PERMISSIVE", the default.',
        ),
        (
            {"corpus": {"options": {"password": ["hunter2"]}}},
            "[corpus.options] password: its value has the wrong type. It must be text, a number, true or false. "
            "Put it in quotes.",
        ),
        (
            {"corpus": {"options": {"sep": ",", "SEP": ";"}}},
            "[corpus.options] SEP: given twice. Spark ignores case in the names of options. Remove one.",
        ),
        (
            {"corpus": {"options": "password=hunter2"}},
            "[corpus.options]: this is text. It must be a table. Correct it, or remove the line.",
        ),
        (
            {"label": {"threshold": "0.5"}},
            '[label] threshold = "0.5". It must be a number, not text. Correct it, or remove the line.',
        ),
        (
            {"label": {"threshold": float("nan")}},
            "[label] threshold = nan. It must be finite. Correct it, or remove the line.",
        ),
        (
            {"label": {"threshold": 10**400}},
            "[label] threshold = a whole number of 1329 bits. It must be finite. Correct it, or remove the line.",
        ),
        (
            {"label": {"threshold": 1.2, "range": [0, 1]}},
            "[label] threshold = 1.2: it lies outside range = [0.0, 1.0]. Every row would fall on the same side. "
            "Change one of the two.",
        ),
        (
            {"label": {"range": [1, 0]}},
            "[label] range = [1, 0]. It must be a list of two finite numbers, the lower first. "
            "Write, for example, range = [0.0, 1.0], or remove the line.",
        ),
        (
            {"label": {"threshold": 0.5, "positive": ["x"]}},
            "[label]: threshold and positive are both given. A label is decided by one of them. Remove one.",
        ),
        (
            {"label": {"positive": [1, "x"]}},
            '[label] positive = [1, "x"]. It must be a list of values of one kind: text, finite numbers, or true and '
            'false. Write, for example, positive = ["Charged Off"].',
        ),
        (
            {"label": {"positive": ["x"], "range": [0, 1]}},
            "[label] range = [0, 1]. Only a label that is a number has a range, and positive holds text. "
            "Remove the line.",
        ),
        (
            {"models": None},
            '[models]: missing. This table is required. Write, for example, [models] toxicity = "toxicity".',
        ),
        (
            {"models": {"toxicity": 1}},
            "[models] toxicity = 1. It must be text, not a whole number. "
            "Write the score column in quotes, or remove the line.",
        ),
        (
            {"models": {"a\nb": "x"}},
            r"""[models] "a\nb": this is a model's name. It must hold no control characters. Rename it.""",
        ),
        (
            {"identities": {"columns": []}},
            "[identities]: no identity is named. At least one of columns, categorical, array, predicates, terms is "
            'required. Write, for example, columns = ["male", "female"].',
        ),
        (
            {"identities": {"columns": ["male", "male"]}},
            '[identities] columns: "male" is named 2 times. Identities must differ. Remove or rename all but one.',
        ),
        (
            {"identities": {"predicates": {"male": "sex = 'm'"}}},
            '[identities] columns and predicates: "male" is named 2 times. Identities must differ. '
            "Remove or rename all but one.",
        ),
        (
            {"identities": {"terms": {"column": "text", "list": ["male"]}}},
            '[identities] columns and terms: "male" is named 2 times. Identities must differ. '
            "Remove or rename all but one.",
        ),
        (
            {"identities": {"columns": ["(overall)"]}},
            '[identities] columns: an identity is named "(overall)". That name stands for the whole slice. Rename it.',
        ),
        (
            {"identities": {"columns": "male"}},
            '[identities] columns = "male". It must be a list of text, not text. Write columns = ["male"].',
        ),
        (
            {"identities": {"columns": ["male", ""]}},
            '[identities] columns, entry 2 = "". It must not be empty. Correct or remove it.',
        ),
        (
            {"identities": {"categorical": ["race", "race"]}},
            '[identities] categorical: "race" is listed twice. Columns must differ. Remove one.',
        ),
        (
            {"identities": {"unannotated": "drop"}},
            '[identities] unannotated = "drop". It must be one of "exclude", "background". '
            'Remove the line to use the default, "exclude".',
        ),
        (
            {"identities": {"crossed": {"pairs": True, "min_rows": -1}}},
            "[identities.crossed] min_rows = -1. It must lie between 0 and 9223372036854775807. "
            "Remove the line to use the default, 1000.",
        ),
        (
            {"identities": {"columns": [f"i{n}" for n in range(201)], "crossed": {"pairs": True}}},
            "[identities] crossed: pairs = true makes 20,100 pairs of 201 identities. At most 20,000 are allowed, "
            "since each is ranked. Name fewer identities, set max_pairs, or set pairs = false.",
        ),
        (
            {"identities": {"columns": ["a", "b", "c"], "crossed": {"pairs": True, "max_pairs": 2}}},
            "[identities] crossed: pairs = true makes 3 pairs of 3 identities. At most 2 are allowed, since "
            "each is ranked. Name fewer identities, set max_pairs, or set pairs = false.",
        ),
        (
            {"identities": {"columns": ["a", "b", "a & b"], "crossed": {"pairs": True}}},
            '[identities] crossed: pairs = true makes a second identity "a & b". Identities must differ. Rename one.',
        ),
        (
            {"identities": {"predicates": {"young": "  "}}},
            '[identities.predicates] young = "  ". It must not be empty. '
            "Write the predicate in quotes, or remove the line.",
        ),
        (
            {"slices": {"all": "true"}},
            '[slices] all = "true". The slice all is always there and holds every row. '
            "Remove the line, or rename the slice.",
        ),
        (
            {"intervals": {"level": 95}},
            "[intervals] level = 95. It must lie between 0 and 1, both excluded. Write, for example, level = 0.95.",
        ),
        (
            {"rejects": {"max_rows": -1}},
            "[rejects] max_rows = -1. It must lie between 0 and 9223372036854775807. "
            "Remove the line to use the default, 10000.",
        ),
        (
            {"output": {"path": None}},
            "[output]: neither path nor catalog is given. Exactly one of them is required. "
            'Write, for example, path = "warehouse".',
        ),
        (
            {"output": {"path": None, "catalog": "bias"}},
            '[output] catalog = "bias". It must be catalog.schema, two names of letters, digits, _ and -. '
            'Write, for example, catalog = "spark_catalog.bias".',
        ),
        (
            {"output": {"format": "csv"}},
            '[output] format = "csv". It must be one of "parquet", "delta", "iceberg". '
            'Remove the line to use the default, "parquet".',
        ),
        (
            {"output": {"format": "iceberg"}},
            '[output] format = "iceberg". Iceberg keeps its tables in a catalog. Write catalog = "lake.bias" for path.',
        ),
        (
            {"output": {"views": "spark_catalog.bias"}},
            '[output] views = "spark_catalog.bias". A path has its views in files beside the tables. Remove the line.',
        ),
        (
            {"output": {"path": None, "catalog": "lake.bias", "views": "bias"}},
            '[output] views = "bias". It must be catalog.schema, two names of letters, digits, _ and -. '
            'Write, for example, views = "spark_catalog.bias".',
        ),
        *(
            (
                {"corpus": {"path": corpus}, "output": {"path": output}},
                f'[output] path = "{output}". It lies in the path of [corpus], and the tables of a night would be rows '
                "of the next. Name a folder beside it.",
            )
            for corpus, output in [
                ("/data/civil", "/data/civil"),
                ("/data/civil/", "file:///data/civil/bias/tables"),
                ("/data/*", "/data/tables"),
                ("s3a://lake/civil", "s3a://lake/civil/tables"),
            ]
        ),
        *(
            (
                {"output": {"path": path}},
                f'[output] path = "{path}". It is the root of a file system, where tables would lie among all else. '
                "Name a folder in it.",
            )
            for path in ["/", "//", "/data/..", "file:/", "file:///", "hdfs:///", "hdfs://name-node:8020/", "dbfs:/"]
        ),
        (
            {"output": {"path": "s3a://key:hunter2@lake/{a,b}/*?"}},
            '[output] path = "s3a://(redacted)@lake/{a,b}/*?". It has * ? { }, and readers take such a path for a '
            "pattern. Choose one without * ? [ ] { } \\ and control characters.",
        ),
        (
            {"corpus": {"id": "id"}, "attribution": {"link": "probit"}},
            '[attribution] link = "probit". It must be "logit". Correct it, or remove the line where there is none.',
        ),
        (
            {"corpus": {"id": "id"}, "attribution": {"link": {"toxicity": "probit"}}},
            '[attribution.link] toxicity = "probit". It must be "logit". Correct it, or remove the line where there is '
            "none.",
        ),
        (
            {"corpus": {"id": "id"}, "attribution": {"link": {"toxicty": "logit"}}},
            '[attribution.link] toxicty: there is no such model. The models are "toxicity". Did you mean toxicity?',
        ),
        (
            {"corpus": {"id": "id"}, "attribution": {"numeric": ["length"], "pairs": {"min_leaf": 0}}},
            f"[attribution.pairs] min_leaf = 0. It must lie between 1 and {2**63 - 1}. Correct it, or remove the line.",
        ),
        (
            {"maintenance": {"grace_hours": 0}},
            "[maintenance] grace_hours = 0. It must lie between 1 and 876000. Remove the line to use the default, 168.",
        ),
    ],
)
def test_each_fault_word_for_word(tables: dict[str, Any], fault: str) -> None:
    assert faults_of(changed(**tables)) == (fault,)


@pytest.mark.parametrize("max_share", [-0.1, 1.1, "half", True])
def test_a_share_of_rejects_lies_between_0_and_1(max_share: object) -> None:
    (fault,) = faults_of(changed(rejects={"max_share": max_share}))
    assert fault.startswith("[rejects] max_share = ")


@pytest.mark.parametrize("max_share", [0, 0.5, 1])
def test_a_share_of_rejects_may_be_none_or_all(max_share: float) -> None:
    config = parse_config(changed(rejects={"max_share": max_share, "allow_missing_models": True}), Path())
    assert (config.rejects.max_share, config.rejects.allow_missing_models) == (max_share, True)
    assert parse_config(json.loads(config.json), Path()) == config


def test_all_faults_at_once() -> None:
    faults = faults_of(
        {
            "corpus": {"nam": "civil", "path": ""},
            "label": {"column": 3, "threshold": True},
            "models": {},
            "identities": {"columns": ["a", "a", 1], "threshold": "high", "terms": {}, "crossed": 1},
            "slices": {"short": 100},
            "ranking": {"engine": 1, "ranges": -1},
            "intervals": {"level": float("inf")},
            "thresholds": {},
            "histograms": {"bins": 1e3},
            "pinned_auc": {"include_subgroup_in_background": "yes"},
            "privacy": {"min_group_rows": "ten"},
            "gate": {"alpha": 0, "rule": [{"name": "floor"}]},
            "rejects": {"max_rows": 10.5},
            "state": {"keep": 1},
            "output": {"path": "x", "catalog": "y"},
            "maintenance": {"keep_days": -1},
            "gates": [],
        }
    )
    assert faults == (
        f"[gates]: there is no such table. The tables are {TABLES}. Did you mean gate?",
        f"[corpus] nam: there is no such key. The keys of [corpus] are {KEYS_OF_CORPUS}. Did you mean name?",
        '[corpus] name: missing. It is required. Write, for example, name = "civil".',
        '[corpus] path = "". It must not be empty. Correct it, or remove the line.',
        '[label] column = 3. It must be text, not a whole number. Write, for example, column = "target".',
        "[label] threshold = true. It must be a number, not true or false. Correct it, or remove the line.",
        '[models]: no model is named. At least one is required. Write, for example, toxicity = "toxicity".',
        "[identities] columns, entry 3 = 1. It must be text, not a whole number. Correct or remove it.",
        '[identities] threshold = "high". It must be a number, not text. Remove the line to use the default, 0.5.',
        "[identities.terms]: neither file nor list is given. Exactly one of them is required. Write, for example, list "
        '= ["christian", "muslim"].',
        '[identities.terms] column: missing. It is required. Write, for example, column = "comment_text".',
        "[identities.crossed]: this is a whole number. It must be a table. Correct it, or remove the line.",
        '[identities] columns: "a" is named 2 times. Identities must differ. Remove or rename all but one.',
        "[slices] short = 100. It must be text, not a whole number. Write the predicate in quotes, or remove the line.",
        '[ranking] engine = 1. It must be one of "blocks", "windows", "binned". Remove the line to use the default, '
        '"blocks".',
        "[ranking] ranges = -1. It must lie between 0 and 4096. Remove the line to use the default, 0.",
        "[intervals] level = inf. It must be finite. Remove the line to use the default, 0.95.",
        '[pinned_auc] include_subgroup_in_background = "yes". It must be true or false, not text. Remove the line to '
        "use the default, true.",
        "[thresholds]: neither at nor grid is given. A threshold is required. Write, for example, at = [0.5].",
        "[histograms] bins = 1000.0. It must be a whole number, without a decimal point. Remove the line to use the "
        "default, 100.",
        '[privacy] min_group_rows = "ten". It must be a whole number, not text. Remove the line to use the default, '
        "10.",
        "[gate] alpha = 0. It must lie between 0 and 0.5, both excluded. Write, for example, alpha = 0.05.",
        '[[gate.rule]] "floor" metric: missing. It is required. Write, for example, metric = "bpsn_auc".',
        '[[gate.rule]] "floor": there is no bound. A rule has exactly one bound: min, max, max_abs, max_drop or '
        "max_rise. Write, for example, min = 0.8.",
        "[output]: path and catalog are both given. Exactly one of them is required. Remove one.",
        '[output] catalog = "y". It must be catalog.schema, two names of letters, digits, _ and -. Write, for example, '
        'catalog = "spark_catalog.bias".',
        "[rejects] max_rows = 10.5. It must be a whole number, without a decimal point. Remove the line to use the "
        "default, 10000.",
        "[state] keep = 1. It must be true or false, not a whole number. Remove the line to use the default, false.",
        "[maintenance] keep_days = -1. It must lie between 0 and 36500. Remove the line to use the default, 30.",
    )


def test_no_fault_shows_the_value_of_an_option_or_under_an_unknown_key() -> None:
    secret = "hunter2"
    faults = faults_of(
        changed(
            corpus={"password": secret, "options": {"a": [secret], "": secret, "mode": "FAILFAST"}},
            password=secret,
            ranking=secret,
        )
    )
    assert faults == (
        f"[password]: there is no such table. The tables are {TABLES}. Remove it.",
        f"[corpus] password: there is no such key. The keys of [corpus] are {KEYS_OF_CORPUS}. Remove it.",
        "[corpus.options] a: its value has the wrong type. It must be text, a number, true or false. Put it in quotes.",
        '[corpus.options] "": this is an option\'s name. It must be text and not empty. Rename it.',
        "[corpus.options] mode: FAILFAST is refused. Its error prints the record, text and all. Use "
        '"PERMISSIVE", the default.',
        "[ranking]: this is text. It must be a table. Correct it, or remove the line.",
    )
