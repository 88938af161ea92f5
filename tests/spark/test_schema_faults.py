"""What a configuration asks of a corpus that does not have it: columns, types, labels, predicates, filters."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path
from typing import Any

import pyspark.sql.functions as F
import pytest
from pyspark.sql import DataFrame, SparkSession

from biasspark.config import FILTER, Measures, parse_measures
from biasspark.corpus.check import check_schema
from biasspark.errors import Fault, InputError, KeyPath
from biasspark.session import is_embedded
from biasspark.session.spark_errors import translate_corpus_errors
from tests.harness.least_configuration import raised_fault, raised_faults
from tests.harness.small_corpora import SECRET, fault_of, faults_of, holds, measure_corpus, measures_of


def schema_faults(corpus: DataFrame, measures: Measures, id_column: str | None = None) -> dict[KeyPath, Fault]:
    return {fault.path: fault for fault in raised_faults(InputError, check_schema, corpus, measures, id_column)}


def test_the_score_of_another_model_is_not_suggested(spark: SparkSession) -> None:
    corpus = spark.createDataFrame([], "toxic DOUBLE, male DOUBLE, score_1 DOUBLE")
    for models, suggested in (({"b": "score_6"}, True), ({"a": "score_1", "b": "score_6"}, False)):
        measures = parse_measures(
            {
                "label": {"column": "toxic", "threshold": 0.5},
                "models": models,
                "identities": {"columns": ["male"], "threshold": 0.5},
            }
        )
        fix = str(schema_faults(corpus, measures)["models", "b"].fix)
        assert ("score_1" in fix, "mergeSchema" in fix) == (suggested, not suggested)


@pytest.mark.spark("words of Spark")
def test_all_faults_of_a_schema_at_once(spark: SparkSession) -> None:
    corpus = spark.createDataFrame(
        [],
        "Id INT, score STRING, tags ARRAY<INT>, map MAP<STRING, INT>, toxic DOUBLE, twin INT, flag BOOLEAN, day DATE",
    )
    measures = parse_measures(
        {
            "label": {"column": "toxic"},
            "models": {"a": "missing", "b": "flag", "c": "score"},
            "identities": {
                "columns": ["day"],
                "categorical": ["map"],
                "array": "tags",
                "predicates": {"odd": "twin", "typo": "twins = 1"},
                "terms": {"column": "twin", "list": ["x"]},
            },
            "slices": {"broken": "flag and (", "number": "twin + 1"},
        }
    )
    faults = schema_faults(corpus, measures, "id")
    wanted: dict[KeyPath, tuple[str, str]] = {
        ("corpus", "id"): ("'id'", "'Id'"),
        ("models", "a"): ("'missing'", ""),
        ("models", "b"): ("boolean", "cast"),
        ("identities", "columns"): ("date", "cast"),
        ("identities", "categorical"): ("map<string,int>", "cast"),
        ("identities", "array"): ("array<int>", "cast"),
        ("identities", "terms", "column"): ("type int", "cast"),
        ("label", "column"): ("double", ""),
        ("slices", "broken"): ("Spark SQL", ""),
        ("slices", "number"): ("a number", "Compare"),
        ("identities", "predicates", "odd"): ("a number", "Compare"),
        ("identities", "predicates", "typo"): ("`twins`", "'twin'"),
    }
    assert list(faults) == list(wanted)
    for path, (rule, fix) in wanted.items():
        assert rule in str(faults[path].rule)
        assert fix in str(faults[path].fix)
    columns = "Id, score, tags, map, toxic, twin, flag, day"
    assert [path for path, fault in faults.items() if columns in str(fault.rule)] == [("corpus", "id")]


@pytest.mark.parametrize(
    ("kind", "label", "key", "words"),
    [
        ("BOOLEAN", {"threshold": 0.5}, "threshold", "boolean"),
        ("INT", {"positive": ["bad"]}, "positive", '"bad"'),
        ("BOOLEAN", {"positive": [1]}, "positive", "boolean. 1 "),
        ("INT", {"positive": [True]}, "positive", "int. true "),
        ("DATE", {}, "column", "date"),
    ],
)
def test_labels_that_do_not_fit_their_column(
    spark: SparkSession, kind: str, label: dict[str, Any], key: str, words: str
) -> None:
    corpus = spark.createDataFrame([], f"y {kind}, s DOUBLE, u DOUBLE")
    faults = schema_faults(corpus, measures_of(label={"column": "y"} | label))
    assert list(faults) == [("label", key)]
    assert words in str(faults["label", key].rule)


def test_ids_of_bytes_are_advised_as_strings(spark: SparkSession) -> None:
    corpus = spark.createDataFrame([], "id BINARY, y STRING, s DOUBLE, u DOUBLE")
    faults = schema_faults(corpus, measures_of(), "id")
    assert "string" in str(faults["corpus", "id"].fix)


def test_a_type_that_does_not_fit_its_use_has_a_fix(spark: SparkSession) -> None:
    corpus = spark.createDataFrame([], "y STRING, s BOOLEAN, day DATE, pair ARRAY<DOUBLE>, n INT")
    settings = {
        "label": {"column": "y"},
        "models": {"s": "s", "pair": "pair"},
        "attribution": {"numeric": ["s", "day"]},
        "label_balance": {"text": "n"},
    }
    with pytest.raises(InputError) as caught:
        check_schema(corpus, parse_measures(settings, grouped=False))
    score, pair, balance, *features = caught.value.messages
    assert "element" in pair
    assert "length" in balance
    assert score.endswith("cast it to int.")
    assert len(features) == 2
    assert all("categorical" in feature for feature in features)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"secret one,secret two,0.5\n1,2,0.25\n", id="no header line"),
        pytest.param(gzip.compress(b"id,y,s,u\n1,true,0.5,1\n"), id="compressed"),
        pytest.param(b'{"id": 1, "y": true, "s": 0.5, "u": 1}\n', id="JSON"),
        pytest.param(b"\n\n", id="blank lines"),
        pytest.param(b"PAR1\x15\x04\x15" + bytes(range(256)), id="Parquet"),
    ],
)
def test_a_csv_without_a_configured_column_is_one_fault(spark: SparkSession, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "rows.csv").write_bytes(content)
    source = {"format": "csv", "id": "id", "run_date_column": "day", "filter": "u > 0"}
    fault = fault_of(spark, tmp_path, measures_of(slices={"x": "u > 1"}), **source)
    assert holds(fault, tmp_path, "header line", "not named", "sep = ")


@pytest.mark.parametrize(
    ("content", "fix"),
    [
        (b'id;y;s;u;text\n1;true;0.5;1;"secret"\n', '`[corpus] options = { sep = ";" }`'),
        (b'"id"\t"y"\t"s"\t"u"\n1\ttrue\t0.5\t1\n', r'`[corpus] options = { sep = "\t" }`'),
        (b"id|y|s|u\n1|true|0.5|1\n", '`[corpus] options = { sep = "|" }`'),
    ],
    ids=["semicolons", "tabs", "bars"],
)
def test_a_csv_of_another_separator(spark: SparkSession, tmp_path: Path, content: bytes, fix: str) -> None:
    (tmp_path / "rows.csv").write_bytes(content)
    fault = fault_of(spark, tmp_path, measures_of(), format="csv", id="id")
    assert holds(fault, tmp_path, fix)


def test_58_categorical_columns_may_be_unknown(spark: SparkSession) -> None:
    names = [f"c{n}" for n in range(59)]
    corpus = spark.createDataFrame([], ", ".join(f"{name} STRING" for name in ("y", "s", *names)))
    identities: dict[str, Any] = {"categorical": names}
    assert list(schema_faults(corpus, measures_of(identities=identities))) == [("identities", "categorical")]
    check_schema(corpus, measures_of(identities=identities | {"unannotated": "background"}))


def test_columns_that_spark_cannot_tell_apart(spark: SparkSession) -> None:
    corpus = spark.createDataFrame([], "y BOOLEAN, s DOUBLE, u DOUBLE").select("*", F.col("u").alias("U"))
    faults = schema_faults(corpus, measures_of())
    assert list(faults) == [("identities", "columns")]
    assert "'u', 'U'" in str(faults["identities", "columns"].rule)


OF_ONE_ROW, CHANCE = "own row", "random"
MISFITS = {
    "max(s) > 0": OF_ONE_ROW,
    "count(*) > 1": OF_ONE_ROW,
    "sum(s) OVER () > 1": OF_ONE_ROW,
    "explode(array(u > 0))": OF_ONE_ROW,
    # The corpus is scanned more than once, and each time in other partitions.
    "rand(7) < 0.5": CHANCE,
    "UUID () > 'x'": CHANCE,
}


LIKE_MISFITS = ("y = 'rand() 3'", "`s` > 1 -- max(s)", "s > 1 /* rand() */", "abs(s) > 1")


def test_predicates_that_look_at_other_rows_or_are_left_to_chance(spark: SparkSession) -> None:
    """The embedded engine would compute them."""
    corpus = spark.createDataFrame([], "y STRING, s DOUBLE, u DOUBLE")
    check_schema(corpus, measures_of(slices={f"s{n}": text for n, text in enumerate(LIKE_MISFITS)}), None)
    slices = {f"s{n}": text for n, text in enumerate(MISFITS)}
    faults = schema_faults(corpus, measures_of(slices=slices))
    wanted = ["compute the function"] * len(MISFITS) if is_embedded(spark) else MISFITS.values()
    assert {
        fault.value: words in str(fault.rule) for fault, words in zip(faults.values(), wanted, strict=True)
    } == dict.fromkeys(MISFITS, True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("s > y AND array(s) > 1", "Cast"),
        ("s + 1", "a number"),
        ("r.none = 1", "none`"),
        ("r['none'] = 1", "`none`"),
        ("upper(y, y) = 'x'", "arguments"),
        (f"s < {10**38}", "38 digits"),
        ("s > 1 or", "Spark SQL"),  # by itself, "or" would be an alias
        ("s > 1 -- and\n y", "Spark SQL"),
    ],
)
def test_a_refused_predicate_is_explained(spark: SparkSession, text: str, words: str) -> None:
    corpus = spark.createDataFrame([], "y STRING, s DOUBLE, u DOUBLE, r STRUCT<a: INT>")
    (fault,) = schema_faults(corpus, measures_of(slices={"x": text})).values()
    assert (fault.path, fault.value) == (("slices", "x"), text)
    assert words in f"{fault.rule} {fault.fix}"


def test_a_comparison_that_only_spark_converts(spark: SparkSession) -> None:
    corpus = spark.createDataFrame([], "y BOOLEAN, s DOUBLE, u DOUBLE")
    measures = measures_of(slices={"x": "y = 'true'"})
    if is_embedded(spark):
        (fault,) = schema_faults(corpus, measures).values()
        assert "on Spark" in str(fault.fix)
    else:
        check_schema(corpus, measures)


@pytest.mark.spark("reads every format, and words of Spark")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nosuch = 1", "`nosuch`"),
        ("s >", "Spark SQL"),
        ("s > 1 and", "Spark SQL"),
        ("s", "a number"),
        ("max(s) > 0", OF_ONE_ROW),
        ("rand(7) < 0.5", CHANCE),
    ],
)
def test_a_filter_that_does_not_fit(spark: SparkSession, formats: Path, text: str, words: str) -> None:
    (fault,) = faults_of(spark, formats / "parquet", filter=text)
    assert (fault.path, fault.value) == (FILTER, text)
    assert words in str(fault.rule)
    assert ("id, y, s, u, night, text, day, moment" in str(fault.rule)) == (text != "s")


# ---- expressions that fail on a value

CAST = "cast(text AS INT) > 0"


def test_a_filter_that_fails_on_a_value_does_not_show_it(spark: SparkSession, few_rows: Path, tmp_path: Path) -> None:
    shutil.copytree(few_rows, tmp_path / "rows")
    (of_all,) = faults_of(spark, tmp_path / "rows", filter=CAST)
    corpus = spark.read.parquet(str(tmp_path / "rows")).where(CAST)
    expressions: dict[KeyPath, str] = {FILTER: CAST, ("slices", "well"): "id > 3"}
    fault = raised_fault(InputError, translate_corpus_errors(corpus, expressions)(corpus.collect))
    assert (fault.path, fault.value) == (FILTER, CAST)
    for rule in (of_all.rule, fault.rule):
        assert "try_cast" in str(rule)
        assert SECRET not in str(rule)


FAILING = {
    "text": (CAST, "try_cast"),
    "zero": ("1 / (id - 3) > 0", "try_divide"),
    "regex": ("text RLIKE '('", "regular expression"),
    "replaced": ("regexp_replace(text, '[', '') = ''", "regular expression"),
    "index": ("array(1)[cast(id AS INT)] = 1", "Use get"),
    "narrow": ("cast(id * 1000 AS TINYINT) > 0", "too narrow"),
    "large": ("id + 9223372036854775807 > 0", "try_add"),
    "raised": ("raise_error(text) IS NULL", "raised"),
    "unknown": ("size(sequence(cast(id AS INT), 0, 1)) > 0", "fails on a row"),
    "moment": ("to_date(text, 'yyyy') IS NULL", "try_to_timestamp"),
}


@pytest.mark.spark("the embedded engine refuses some of the expressions")
def test_every_slice_and_predicate_that_fails_on_a_value_is_named(
    spark: SparkSession, few_rows: Path, tmp_path: Path
) -> None:
    """At once, with what is wrong, and without the value."""
    shutil.copytree(few_rows, tmp_path / "rows")
    corpus = spark.read.parquet(str(tmp_path / "rows"))
    slices = {name: text for name, (text, _) in FAILING.items()}
    measures = measures_of(slices=slices | {"well": "id > 3"}, identities={"predicates": {"p": "text RLIKE '*'"}})
    faults = raised_faults(InputError, measure_corpus, corpus, measures)
    assert SECRET not in str(faults)
    wanted: list[tuple[KeyPath, str, str]] = [(("slices", name), *fault) for name, fault in FAILING.items()]
    wanted.append((("identities", "predicates", "p"), "text RLIKE '*'", "regular expression"))
    assert [(fault.path, fault.value) for fault in faults] == [(path, text) for path, text, _ in wanted]
    assert [word for fault, (*_, word) in zip(faults, wanted, strict=True) if word not in str(fault.rule)] == []
