from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from biasspark.config import (
    Attribution,
    Compare,
    Config,
    Corpus,
    Crossed,
    Histograms,
    Identities,
    Label,
    LabelBalance,
    Measures,
    Output,
    PinnedAuc,
    PinnedSkew,
    RankingSettings,
    Terms,
    Thresholds,
    divide,
    models_from,
    parse_config,
    parse_identities,
    parse_measures,
)
from biasspark.errors import ConfigError
from tests.least_configuration import LEAST, changed

TABLES = (
    "[corpus], [label], [models], [identities], [slices], [ranking], [intervals], [pinned_auc], [thresholds], "
    "[histograms], [label_balance], [templates], [pinned_skew], [attribution], [compare], [evidence], [privacy], "
    "[gate], [rejects], [state], [output], [maintenance]"
)
KEYS_OF_CORPUS = "name, path, table, format, options, schema, filter, run_date_column, id, duplicates"


def faults_of(table: dict[str, Any], base: Path = Path()) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        parse_config(table, base)
    return caught.value.faults


def test_the_least_that_must_be_said() -> None:
    config = parse_config(LEAST, Path())
    assert config == Config(
        corpus=Corpus(name="civil", path="/data/civil", duplicates="allow"),
        label=Label(column="toxic"),
        models={"toxicity": "toxicity"},
        identities=Identities(columns=("male",)),
        output=Output(path="/warehouse"),
    )
    assert config.identities.threshold == 0.5
    assert config.identities.unannotated == "exclude"
    assert config.ranking == RankingSettings(engine="blocks", ranges=0)
    assert config.intervals.level == 0.95
    assert config.rejects.max_rows == 10_000


def test_duplicates_are_estimated_where_there_is_an_id() -> None:
    assert parse_config(changed(corpus={"id": "id"}), Path()).corpus.duplicates == "estimate"


@pytest.mark.parametrize(
    ("tables", "fault"),
    [
        (
            {"ranking": {"engine": "fast"}},
            '[ranking] engine = "fast". It must be one of "blocks", "windows", "binned". '
            'Remove the line to use the default, "blocks".',
        ),
        (
            {"ranking": {"engin": "windows"}},
            "[ranking] engin: there is no such key. The keys of [ranking] are engine, ranges, bins. Did you mean "
            "engine?",
        ),
        (
            {"ranking": {"ranges": 4097}},
            "[ranking] ranges = 4097. It must lie between 0 and 4096. Remove the line to use the default, 0.",
        ),
        (
            {"ranking": {"ranges": True}},
            "[ranking] ranges = true. It must be a whole number, not true or false. "
            "Remove the line to use the default, 0.",
        ),
        (
            {"ranking": {"ranges": 1.0}},
            "[ranking] ranges = 1.0. It must be a whole number, without a decimal point. Remove the line to use the "
            "default, 0.",
        ),
        (
            {"ranking": "fast"},
            "[ranking]: this is text. It must be a table. Correct it, or remove the line.",
        ),
        (
            {"model": {"a": "b"}},
            f"[model]: there is no such table. The tables are {TABLES}. Did you mean models?",
        ),
        (
            {"pinned_auc": {"trials": 10}, "ranking": {"engine": "windows"}},
            '[pinned_auc] trials = 10: the engine is "windows". Trials are drawn from sorted blocks. Remove the line '
            'to have the exact value alone, or set [ranking] engine = "blocks".',
        ),
        (
            {"pinned_auc": {"trials": 10}, "ranking": {"engine": "binned"}},
            '[pinned_auc] trials = 10: the engine is "binned". Trials are drawn from sorted blocks. Remove the line '
            'to have the value in the limit alone, or set [ranking] engine = "blocks".',
        ),
        (
            {"ranking": {"engine": "binned"}, "state": {"keep": True}},
            '[state] keep = true. The engine is "binned", which sorts no blocks. Set [ranking] engine = "blocks", or '
            "keep none.",
        ),
        (
            {"ranking": {"engine": "binned"}, "pinned_skew": {"identity": "male"}},
            '[pinned_skew]: the engine is "binned", and bins hold no single rows. Set [ranking] engine = "blocks", '
            "or keep [pinned_skew] in a configuration of its own.",
        ),
        (
            {"ranking": {"bins": 100}},
            '[ranking] bins = 100. The engine is "blocks", which has no bins. Write engine = "binned", or remove it.',
        ),
        (
            {"ranking": {"engine": "binned", "bins": 1}},
            "[ranking] bins = 1. It must lie between 2 and 65536. Remove the line to use the default, 4096.",
        ),
        (
            {"thresholds": {}},
            "[thresholds]: neither at nor grid is given. A threshold is required. Write, for example, at = [0.5].",
        ),
        (
            {"thresholds": {"at": []}},
            "[thresholds] at = []. At least one threshold is required. Write, for example, at = [0.5].",
        ),
        (
            {"thresholds": {"at": 0.5}},
            "[thresholds] at = 0.5. It must be a list of numbers, not a number. Write, for example, at = [0.5, 0.8].",
        ),
        (
            {"thresholds": {"at": [0.5, float("nan")]}},
            "[thresholds] at = [0.5, nan]. nan is not a finite number. Correct or remove it.",
        ),
        (
            {"thresholds": {"at": [0.5, 0.5]}},
            "[thresholds] at: 0.5 is listed twice. Thresholds must differ. Remove one.",
        ),
        (
            {"thresholds": {"grid": {"low": 1.0, "high": 0.0}}},
            "[thresholds.grid]: low = 1.0 is not below high = 0.0. Swap them.",
        ),
        (
            {"thresholds": {"grid": {"steps": 0}}},
            "[thresholds.grid] steps = 0. It must lie between 1 and 10000. Remove the line to use the default, 100.",
        ),
        (
            {"histograms": {"bins": 0}},
            "[histograms] bins = 0. It must lie between 1 and 10000. Remove the line to use the default, 100.",
        ),
        (
            {"label_balance": {"text": "comment", "length": "n"}},
            "[label_balance]: text and length are both given. A length comes from one of them. Remove one.",
        ),
        (
            {"label_balance": {"buckets": [20, 60]}},
            "[label_balance] buckets = [20, 60]. Without text or length nothing is put into them. Add text = "
            '"comment_text".',
        ),
        (
            {"label_balance": {"length": "n", "buckets": [60, 20]}},
            "[label_balance] buckets = [60, 20]. It must be a list of 2 to 100 whole numbers, not negative and "
            "ascending. Write, for example, buckets = [20, 60, 180].",
        ),
        (
            {"compare": {}, "models": {"a": "a", "b": "b"}},
            '[compare] baseline: missing. It is required. Write, for example, baseline = "old".',
        ),
        (
            {"compare": {"baseline": "c", "models": ["a"]}, "models": {"a": "a", "b": "b"}},
            '[compare] baseline = "c". It must be one of the models "toxicity", "a", "b". Name one of them.',
        ),
        (
            {"compare": {"baseline": "toxicity"}},
            "[compare]: there is one model. A comparison takes two. Add another to [models].",
        ),
        (
            {"compare": {"baseline": "a", "models": ["toxicity", "a"]}, "models": {"a": "a"}},
            '[compare] models: "a": It must be one of "toxicity" and not the baseline. Correct or remove it.',
        ),
        (
            {"compare": {"baseline": "a", "models": []}, "models": {"a": "a"}},
            "[compare] models = []. At least one is required. Remove the line to compare all with the baseline.",
        ),
        (
            {"compare": {"baseline": "a", "models": ["toxicity", "toxicity"]}, "models": {"a": "a"}},
            '[compare] models: "toxicity" is listed twice. Remove one.',
        ),
        (
            {"compare": {"baseline": "a", "cluster": "author"}, "models": {"a": "a"}},
            '[compare] cluster = "author". Only the jackknife uses it. Add method = "jackknife", or remove the line.',
        ),
        (
            {"compare": {"baseline": "a", "method": "jackknife"}, "models": {"a": "a"}},
            '[corpus] id: missing. The jackknife of [compare] groups by it. Write, for example, id = "row_id".',
        ),
        (
            {"pinned_skew": {}},
            '[pinned_skew] identity: missing. It is required. Write, for example, identity = "gay".',
        ),
        (
            {"pinned_skew": {"identity": "mal"}},
            '[pinned_skew] identity = "mal". There is no such identity. There is male. Did you mean male?',
        ),
        (
            {
                "identities": {"columns": ["male", "female"], "categorical": ["race"], "crossed": {"pairs": True}},
                "pinned_skew": {"identity": "male & female"},
            },
            '[pinned_skew] identity = "male & female". There is no such identity. There are male, female, '
            "race=(a value). Did you mean female?",
        ),
        (
            {"pinned_skew": {"identity": "male", "cell": "negative"}},
            '[pinned_skew] cell = "negative". It must be one of "subgroup_negative", "subgroup_positive", '
            '"background_negative", "background_positive". Remove the line to use the default, "subgroup_negative".',
        ),
        (
            {"pinned_skew": {"identity": "male", "fraction": 1}},
            "[pinned_skew] fraction = 1. It must lie between 0 and 1, both excluded. Write, for example, "
            "fraction = 0.5.",
        ),
        (
            {"pinned_skew": {"identity": "male", "trials": 0}},
            "[pinned_skew] trials = 0. It must lie between 1 and 100000. Remove the line to use the default, 100.",
        ),
        (
            {"pinned_skew": {"identity": "male", "seed": -1}},
            "[pinned_skew] seed = -1. It must lie between 0 and 9223372036854775807. Remove the line to use the "
            "default, 1.",
        ),
        (
            {"templates": {}},
            '[templates] column: missing. It is required. Write, for example, column = "template".',
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
            '[identities] columns = "male". It must be a list of text, not text. Write columns = ["...", "..."].',
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


@pytest.mark.parametrize("path", ["s3a://lake", "gs://lake/", "abfss://c@a.dfs.core.windows.net/", "file:/x", "/#"])
def test_a_bucket_may_be_a_place_of_its_own(path: str) -> None:
    assert parse_config(changed(output={"path": path}), Path()).output.path == path


def test_what_is_not_configured_is_not_measured() -> None:
    config = parse_config(LEAST, Path())
    further = ("pinned_auc", "thresholds", "histograms", "label_balance", "templates", "pinned_skew")
    assert [getattr(config, name) for name in further] == [None] * 6
    assert not set(further) & set(config.resolved())


def test_an_empty_table_turns_its_part_on() -> None:
    config = parse_config(changed(pinned_auc={}, histograms={}, label_balance={}), Path())
    assert config.pinned_auc == PinnedAuc(trials=0, seed=1, include_subgroup_in_background=True)
    assert config.histograms == Histograms(bins=100)
    assert config.label_balance == LabelBalance(buckets=(20, 60, 180, 540, 1620, 4860))


def test_all_other_models_are_compared_with_the_baseline() -> None:
    models = {"models": {"a": "a", "b": "b"}, "corpus": {"id": "id"}}
    config = parse_config(changed(compare={"baseline": "a"}, **models), Path())
    assert config.compare == Compare(baseline="a", models=("toxicity", "b"))
    jackknife = parse_config(changed(compare={"baseline": "a", "method": "jackknife"}, **models), Path())
    assert jackknife.compare == Compare(baseline="a", models=("toxicity", "b"), method="jackknife", groups=100)
    for one in (config, jackknife):
        assert parse_config(json.loads(one.json), Path()) == one


def test_a_link_is_that_of_all_models_or_of_each_that_is_named() -> None:
    models = {"models": {"a": "a", "b": "b"}, "corpus": {"id": "id"}}
    every = parse_config(changed(attribution={"link": "logit"}, **models), Path())
    some = parse_config(changed(attribution={"link": {"b": "logit"}}, **models), Path())
    none = parse_config(changed(attribution={"link": None}, **models), Path())
    assert every.attribution == Attribution(link={"toxicity": "logit", "a": "logit", "b": "logit"})
    assert some.attribution == Attribution(link={"b": "logit"})
    assert none.attribution == Attribution()
    for one in (every, some, none):
        assert parse_config(json.loads(one.json), Path()) == one


def test_faults_of_links_stand_beside_all_others() -> None:
    attribution = {"link": {"old": "logit", "toxicity": 1}, "targets": ["recall"], "tree": {}, "numeric": ["length"]}
    assert faults_of(changed(corpus={"id": "id"}, attribution=attribution, intervals={"level": 2})) == (
        "[intervals] level = 2. It must lie between 0 and 1, both excluded. Write, for example, level = 0.95.",
        '[attribution] targets: "recall": It must be one of "auc", "cross_entropy", "gini". Correct it.',
        "[attribution.link] toxicity = 1. It must be text, not a whole number. Write the link in quotes, or remove the "
        "line.",
        '[attribution.link] old: there is no such model. The models are "toxicity". Remove it.',
    )


def test_the_experiment_of_an_identity_that_may_be_a_value() -> None:
    sources = {"columns": ["male"], "categorical": ["race", "race=x"], "array": None}
    for identity, kept in (
        ("male", Identities(columns=("male",))),
        ("race=Asian", Identities(categorical=("race",))),
        ("race=x=y", Identities(categorical=("race", "race=x"))),
    ):
        config = parse_config(changed(identities=sources, pinned_skew={"identity": identity}), Path())
        assert config.pinned_skew == PinnedSkew(identity=identity)
        assert config.identities.only(identity) == kept
    assert Identities(array="groups", columns=("male",)).only("gay") == Identities(array="groups")
    terms = Terms(column="text", terms=(("gay", ("gay",)), ("faith", ("christian", "muslim"))))
    predicates = {"young": "age < 30", "old": "age > 60"}
    everything = Identities(terms=terms, predicates=predicates, crossed=Crossed(pairs=True))
    assert everything.only("faith") == Identities(terms=Terms(column="text", terms=terms.terms[1:]))
    assert everything.only("old") == Identities(predicates={"old": "age > 60"})


def test_an_identity_that_is_faulty_is_mended_before_the_experiment() -> None:
    assert faults_of(changed(identities={"columns": ["male", ""]}, pinned_skew={"identity": "female"})) == (
        '[identities] columns, entry 2 = "". It must not be empty. Correct or remove it.',
    )


def test_thresholds_are_those_named_and_those_of_the_grid_in_order() -> None:
    table = changed(thresholds={"at": [0.8, 0.33], "grid": {"low": 0.0, "high": 1.0, "steps": 10}})
    thresholds = parse_config(table, Path()).thresholds
    assert thresholds == Thresholds(at=(0.0, 0.1, 0.2, 0.3, 0.33, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0))
    assert parse_config(changed(thresholds={"at": list(thresholds.at)}), Path()).thresholds == thresholds


def test_equal_parts_have_the_ends_that_people_write() -> None:
    assert divide(0.0, 1.0, 100) == tuple(hundredth / 100 for hundredth in range(101))
    ends = divide(-1.7e308, 1.7e308, 3)
    assert (ends[0], ends[-1]) == (-1.7e308, 1.7e308)
    assert all(low < high for low, high in pairwise(ends))


def test_bins_are_those_of_the_engine_that_has_them() -> None:
    assert parse_config(changed(), Path()).ranking.bins is None
    assert parse_config(changed(ranking={"engine": "binned"}), Path()).ranking == RankingSettings(
        engine="binned", bins=4096
    )
    chosen = parse_config(changed(ranking={"engine": "binned", "bins": 300}), Path())
    assert chosen.resolved()["ranking"] == {"engine": "binned", "ranges": 0, "bins": 300}


def test_single_rows_are_not_told_of_by_bins() -> None:
    table = changed(
        corpus={"id": "id"},
        models={"one": "f1", "two": "f2"},
        ranking={"engine": "binned"},
        attribution={"numeric": ["f1"]},
        compare={"baseline": "one"},
    )
    assert faults_of(table) == tuple(
        f'{part}: the engine is "binned", and bins hold no single rows. Set [ranking] engine = "blocks", or keep '
        f"{part} in a configuration of its own."
        for part in ("[attribution]", "[compare]")
    )


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
        '[[gate.rule]] "floor": none of min, max, max_abs, max_drop, max_rise is given. A rule has exactly one bound. '
        "Write, for example, min = 0.8, or split the rule.",
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


def test_crossed_pairs_of_200_identities_are_allowed() -> None:
    table = changed(identities={"columns": [f"i{n}" for n in range(200)], "crossed": {"pairs": True}})
    assert parse_config(table, Path()).identities.crossed.pairs


def test_positive_takes_one_value_or_a_list_of_one_kind() -> None:
    for given_value, read in (("x", ("x",)), (["x", ""], ("x", "")), ([1, 2.5], (1, 2.5)), (True, (True,))):
        assert parse_config(changed(label={"positive": given_value}), Path()).label.positive == read


class TestApi:
    def test_identities_as_list_dict_or_object(self) -> None:
        expected = Identities(columns=("male", "female"))
        assert parse_identities(["male", "female"]) == expected
        assert parse_identities({"columns": ["male", "female"]}) == expected
        assert parse_identities(expected) == expected

    def test_identities_built_by_hand_are_checked_too(self) -> None:
        with pytest.raises(ConfigError) as caught:
            parse_identities(Identities(columns=("a", "a"), threshold=2.0, range=(0.0, 1.0), unannotated="no"))
        assert caught.value.faults == (
            '[identities] unannotated = "no". It must be one of "exclude", "background". Remove the line to use the '
            'default, "exclude".',
            "[identities] threshold = 2.0: it lies outside range = [0.0, 1.0]. Every row would fall on the same side. "
            "Change one of the two.",
            '[identities] columns: "a" is named 2 times. Identities must differ. Remove or rename all but one.',
        )

    def test_known_names_are_in_the_order_of_the_sources(self) -> None:
        identities = parse_identities(
            {"terms": {"column": "t", "list": ["z"]}, "predicates": {"y": "1", "x": "2"}, "columns": ["w"]}
        )
        assert identities.known_names == ("w", "y", "x", "z")

    def test_models_as_list_or_dict(self) -> None:
        assert models_from(["b", "a"]) == {"b": "b", "a": "a"}
        assert models_from({"b": "x"}) == {"b": "x"}

    @pytest.mark.parametrize(
        ("value", "fault"),
        [
            (["a", "a"], '[models]: "a" is listed twice. Models must differ. Remove one.'),
            ([3], "[models] columns, entry 1 = 3. It must be text, not a whole number. Correct or remove it."),
            ([], '[models]: no model is named. At least one is required. Write, for example, toxicity = "toxicity".'),
        ],
    )
    def test_faulty_models(self, value: object, fault: str) -> None:
        with pytest.raises(ConfigError) as caught:
            models_from(value)
        assert caught.value.faults == (fault,)

    def test_measures_need_no_corpus_and_take_none_for_absent(self) -> None:
        measures = parse_measures(
            {
                "label": {"column": "y", "threshold": None},
                "models": ["score"],
                "identities": ["male"],
                "slices": None,
                "ranking": {"engine": "windows"},
            }
        )
        assert measures == Measures(
            label=Label(column="y"),
            models={"score": "score"},
            identities=Identities(columns=("male",)),
            ranking=RankingSettings(engine="windows"),
        )

    def test_measures_know_no_corpus(self) -> None:
        known = TABLES.removeprefix("[corpus], ").partition(", [gate]")[0]
        with pytest.raises(ConfigError) as caught:
            parse_measures({**LEAST, "corpus": None})
        assert caught.value.faults == tuple(
            f"[{name}]: there is no such table. The tables are {known}. Remove it." for name in ("corpus", "output")
        )

    def test_a_config_is_measures(self) -> None:
        assert isinstance(parse_config(LEAST, Path()), Measures)


KEYS = [
    "corpus", "label", "models", "identities", "slices", "ranking", "intervals", "rejects", "output", "name", "path",
    "table", "options", "column", "threshold", "positive", "range", "columns", "predicates", "terms", "file", "list",
    "crossed", "pairs", "min_rows", "engine", "ranges", "level", "max_rows", "catalog", "duplicates", "id", "all",
]  # fmt: skip
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.binary(max_size=3), st.dates(),
    st.datetimes(), st.sampled_from([10**500, -(10**4000), "parquet", "reject", "(overall)", "a & b", 1j]),
)  # fmt: skip
JUNK = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=4) | st.integers(), inner, max_size=5)
    ),
    max_leaves=30,
)


@given(table=st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=4), JUNK, max_size=9))
@settings(deadline=None)
def test_junk_is_refused_with_one_line_a_fault(table: dict[str, Any]) -> None:
    for fault in faults_of(table):
        assert "\n" not in fault
        assert fault.isprintable() or not fault.isascii()


@given(part=st.sampled_from(sorted(LEAST)), junk=JUNK)
@settings(deadline=None, max_examples=300)
def test_junk_in_one_table_is_refused_or_read(part: str, junk: object) -> None:
    try:
        config = parse_config({**LEAST, part: junk}, Path())
    except ConfigError:
        return
    assert parse_config(json.loads(config.json), Path()).json == config.json


NAMES = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=6).filter(str.strip)
IDENTITY_NAMES = NAMES.filter(lambda name: name != "(overall)" and " & " not in name)


@given(
    names=st.lists(IDENTITY_NAMES, min_size=3, max_size=9, unique=True),
    models=st.dictionaries(NAMES, NAMES, min_size=1, max_size=3),
    terms=st.lists(NAMES, min_size=1, max_size=3),
    pairs=st.booleans(),
)
@settings(deadline=None)
def test_what_is_valid_reads_back_equal(
    names: list[str], models: dict[str, str], terms: list[str], pairs: bool
) -> None:
    cut = len(names) // 3
    identities = Identities(
        columns=tuple(names[:cut]),
        predicates=dict.fromkeys(names[cut : 2 * cut], "x > 0"),
        terms=Terms(column="text", terms=tuple((name, tuple(terms)) for name in names[2 * cut :])),
        crossed=Crossed(pairs=pairs, min_rows=3),
    )
    measures = parse_measures({"label": {"column": "y"}, "models": models, "identities": identities})
    assert measures.identities == identities
    assert measures.identities.known_names == tuple(names)
    assert parse_measures(json.loads(measures.json)) == measures
