"""What a configuration asks of a corpus that does not have it: columns, types, labels, predicates, filters."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyspark.sql.functions as F
import pytest
from pyspark.sql import SparkSession

from biasspark.config import FILTER, parse_measures
from biasspark.corpus.check import check_schema
from biasspark.corpus.culprits import corpus_faults
from biasspark.errors import InputError
from biasspark.pipeline import measure, ranked_once
from tests.small_corpora import fault_of, measures_of, write_rows
from tests.spark_versions import say_part

PREDICATE = "It must be a Spark SQL predicate over the columns of the corpus."
LEFT_TO_CHANCE = (
    "it is left to chance, and the corpus is read more than once. Use a hash, as in pmod(xxhash64(id), 10) = 0."
)


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
    with pytest.raises(InputError) as caught:
        check_schema(corpus, measures, "id")
    columns = "Id, score, tags, map, toxic, twin, flag, day"
    assert str(caught.value).splitlines() == [
        f"[corpus] id: the corpus has no column 'id'. It has: {columns}. Did you mean 'Id'?",
        "[models] a: the corpus has no column 'missing'. Name one that it has.",
        "[models] b: column 'flag' is of type boolean. It must be a number, or a text that holds one. "
        "Name another column, or cast it.",
        "[identities] columns: column 'day' is of type date. It must be a boolean, a number, or a text that holds "
        "either. Name another column, or cast it.",
        "[identities] categorical: column 'map' is of type map<string,int>. It must be a single value. "
        "Name another column, or cast it.",
        "[identities] array: column 'tags' is of type array<int>. It must be an array of strings. "
        "Name another column, or cast it.",
        "[identities] terms.column: column 'twin' is of type int. It must be a text. Name another column, or cast it.",
        '[label] column = "toxic": it is of type double, and there is no threshold. A number is a label only with one. '
        "Set `threshold` (0.5), or `positive` to the values that are positive.",
        f'[slices] broken = "flag and (": this is not valid Spark SQL. {PREDICATE} Correct it.',
        '[slices] number = "twin + 1": it is of type int. It must be true or false. Compare it with a value.',
        '[identities] predicates.odd = "twin": it is of type int. It must be true or false. Compare it with a value.',
        '[identities] predicates.typo = "twins = 1": a column that it names is not there. Column: `twins`. '
        f"{PREDICATE} Did you mean 'twin'?",
    ]


@pytest.mark.parametrize(
    ("kind", "label", "fault"),
    [
        (
            "BOOLEAN",
            {"threshold": 0.5},
            "[label] threshold = 0.5: column 'y' is boolean. A boolean needs no threshold. Remove the line.",
        ),
        (
            "INT",
            {"positive": ["bad"]},
            '[label] positive = ["bad"]: column \'y\' is of type int. "bad" is never one of its values. '
            "Give values of that type.",
        ),
        (
            "BOOLEAN",
            {"positive": [1]},
            "[label] positive = [1]: column 'y' is of type boolean. 1 is never one of its values. "
            "Give values of that type.",
        ),
        (
            "INT",
            {"positive": [True]},
            "[label] positive = [true]: column 'y' is of type int. true is never one of its values. "
            "Give values of that type.",
        ),
        (
            "DATE",
            {},
            "[label] column: column 'y' is of type date. It must be a boolean, a number, or a text that holds either. "
            "Name another column, or cast it.",
        ),
    ],
)
def test_labels_that_do_not_fit_their_column(spark: SparkSession, kind: str, label: dict[str, Any], fault: str) -> None:
    corpus = spark.createDataFrame([], f"y {kind}, s DOUBLE, u DOUBLE")
    with pytest.raises(InputError) as caught:
        check_schema(corpus, measures_of(label={"column": "y"} | label))
    assert str(caught.value) == fault


def test_columns_that_spark_cannot_tell_apart(spark: SparkSession) -> None:
    corpus = spark.createDataFrame([], "y BOOLEAN, s DOUBLE, u DOUBLE").select("*", F.col("u").alias("U"))
    with pytest.raises(InputError) as caught:
        check_schema(corpus, measures_of())
    assert str(caught.value).splitlines() == [
        "[identities] columns: the corpus has the columns 'u', 'U', which Spark cannot tell apart. Rename one of them."
    ]


@pytest.mark.parametrize("predicate", ["max(s) > 0", "count(*) > 1", "sum(s) OVER () > 1", "explode(array(u > 0))"])
def test_a_predicate_looks_at_one_row(spark: SparkSession, predicate: str) -> None:
    corpus = spark.createDataFrame([], "y BOOLEAN, s DOUBLE, u DOUBLE")
    with pytest.raises(InputError) as caught:
        check_schema(corpus, measures_of(slices={"x": predicate}))
    assert str(caught.value) == (
        f'[slices] x = "{predicate}": it looks at more than its own row, as aggregates, windows and generators do. '
        f"{PREDICATE} It has: y, s, u. Correct it."
    )


def test_a_predicate_is_not_left_to_chance(spark: SparkSession) -> None:
    """The corpus is scanned more than once, and each time in other partitions."""
    corpus = spark.createDataFrame([], "y BOOLEAN, s DOUBLE, u DOUBLE")
    with pytest.raises(InputError) as caught:
        check_schema(corpus, measures_of(slices={"x": "rand(7) < 0.5", "y": "uuid() > s"}))
    assert caught.value.faults == tuple(
        f"{where}: {LEFT_TO_CHANCE} {PREDICATE}{shown} Correct it."
        for where, shown in (('[slices] x = "rand(7) < 0.5"', " It has: y, s, u."), ('[slices] y = "uuid() > s"', ""))
    )


COLUMNS = "It has: id, y, s, u, night, text, day, moment."
OF_ONE_ROW = "it looks at more than its own row, as aggregates, windows and generators do."


@pytest.mark.parametrize(
    ("text", "saying"),
    [
        ("nosuch = 1", f"a column that it names is not there. Column: `nosuch`. {PREDICATE} {COLUMNS} Correct it."),
        ("s >", f"this is not valid Spark SQL. {PREDICATE} {COLUMNS} Correct it."),
        ("s", "it is of type double. It must be true or false. Compare it with a value."),
        ("max(s) > 0", f"{OF_ONE_ROW} {PREDICATE} {COLUMNS} Correct it."),
        ("rand(7) < 0.5", f"{LEFT_TO_CHANCE} {PREDICATE} {COLUMNS} Correct it."),
    ],
)
def test_a_filter_that_does_not_fit(spark: SparkSession, formats: Path, text: str, saying: str) -> None:
    assert fault_of(spark, formats / "parquet", filter=text) == f'[corpus] filter = "{text}": {saying}'


NO_SUCH_TYPE = f"a text cannot be cast to the requested type. Use try_cast.{say_part('cast(text AS INT)')}"


def test_a_filter_that_fails_on_a_value_does_not_show_it(spark: SparkSession, tmp_path: Path) -> None:
    write_rows(spark, tmp_path / "rows")
    assert fault_of(spark, tmp_path / "rows", filter="cast(text AS INT) > 0") == f"corpus: {NO_SUCH_TYPE}"
    text = "cast(text AS INT) > 0"
    corpus = spark.read.parquet(str(tmp_path / "rows")).where(text)
    expressions = {FILTER: text, "[slices] well": "id > 3"}
    with pytest.raises(InputError) as caught, corpus_faults(corpus, expressions):
        corpus.collect()
    assert str(caught.value) == f'[corpus] filter = "{text}": {NO_SUCH_TYPE}'


BAD_PATTERN = "a regular expression is invalid. Correct it."
JAVA_SAYS = re.compile(r" Unclosed [a-z ]+ near index \d\.$")
"""Follows where Spark 3.5, or compiled code, says it."""
FAILING = {
    "text": ("cast(text AS INT) > 0", NO_SUCH_TYPE),
    "zero": ("1 / (id - 3) > 0", f"something is divided by zero. Use try_divide.{say_part('1 / (id - 3)')}"),
    "regex": ("text RLIKE '('", BAD_PATTERN),
    "replaced": ("regexp_replace(text, '[', '') = ''", BAD_PATTERN),
    "place": (
        "array(1)[cast(id AS INT)] = 1",
        f"an array has no such place. Use get.{say_part('array(1)[cast(id AS INT)]')}",
    ),
    "narrow": ("cast(id * 1000 AS TINYINT) > 0", "a number is cast to a type that is too narrow for it. Use try_cast."),
    "large": (
        "id + 9223372036854775807 > 0",
        f"a sum or product overflows. Use try_add, try_multiply or a wider type.{say_part('id + 9223372036854775807')}",
    ),
    "raised": ("raise_error(text) IS NULL", "an error is raised. Correct the expression."),
    "unheard of": ("size(sequence(cast(id AS INT), 0, 1)) > 0", "it cannot be computed on some row. Correct it."),
    "moment": (
        "to_date(text, 'yyyy') IS NULL",
        "a text is not a date or time in that pattern. Use try_to_timestamp.",
    ),
}


def test_every_slice_and_predicate_that_fails_on_a_value_is_named(spark: SparkSession, tmp_path: Path) -> None:
    """At once, with what is wrong, and without the value."""
    write_rows(spark, tmp_path / "rows")
    corpus = spark.read.parquet(str(tmp_path / "rows"))
    texts = {name: text for name, (text, _) in FAILING.items()}
    measures = measures_of(slices=texts | {"well": "id > 3"}, identities={"predicates": {"p": "text RLIKE '*'"}})
    with pytest.raises(InputError) as caught, ranked_once(measure(corpus, measures)):
        pass
    wanted = [f'[slices] {name} = "{text}": {saying}' for name, (text, saying) in FAILING.items()]
    wanted.append(f"[identities] predicates.p = \"text RLIKE '*'\": {BAD_PATTERN}")
    assert [JAVA_SAYS.sub("", fault) for fault in caught.value.faults] == wanted
