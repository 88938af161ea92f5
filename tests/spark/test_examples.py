"""From rows to examples: labels, scores, who is in which identity, and slices."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from itertools import accumulate, product
from typing import Any

import pyspark.sql.functions as F
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StringType

from biasspark.config import Rejects
from biasspark.corpus.check import check_schema
from biasspark.corpus.encode import build_encoding, encode_examples
from biasspark.corpus.identity_sources import annotation_out_of_range
from biasspark.corpus.survey import Survey, survey_corpus
from biasspark.corpus.values import boolean
from biasspark.errors import BiasSparkError, InputError
from biasspark.ranking.engine import count_rows
from biasspark.ranking.task_rows import TaskRows
from tests.harness.least_configuration import raised_fault
from tests.harness.small_corpora import (
    RUN_DATE,
    cell_sizes,
    examples_of,
    examples_of_each,
    explained,
    measure_corpus,
    measures_of,
)

NAN, INFINITY = math.nan, math.inf
NO_LABEL, OUT_OF_RANGE = "null_label", "label_out_of_range"
LABELS: list[tuple[str, list[Any], dict[str, Any], list[Any]]] = [
    ("BOOLEAN", [True, False, None], {}, [True, False, NO_LABEL]),
    ("STRING", ["true", " F ", "1", "maybe", None], {}, [True, False, True, NO_LABEL, NO_LABEL]),
    ("DOUBLE", [0.5, 0.4999999999999999, 1.0, NAN, None], {"threshold": 0.5}, [True, False, True, NO_LABEL, NO_LABEL]),
    ("FLOAT", [0.5, 0.25, NAN], {"threshold": 0.5}, [True, False, NO_LABEL]),
    ("DECIMAL(5,3)", [Decimal("0.500"), Decimal("0.499")], {"threshold": 0.5}, [True, False]),
    ("INT", [0, 1, 2, None], {"threshold": 1}, [False, True, True, NO_LABEL]),
    ("STRING", ["0.7", "0.1", "toxic", "true"], {"threshold": 0.5}, [True, False, NO_LABEL, True]),
    ("STRING", ["bad", "good", "Bad", "", None], {"positive": ["bad", "worse"]}, [True, False, False, False, NO_LABEL]),
    (
        "STRING",
        ["True", " TRUE ", "1", "yes", "no", "maybe", "", None],
        {"positive": [True]},
        [True, True, True, True, False, False, False, NO_LABEL],
    ),
    ("STRING", ["False", "n", "true", "maybe", None], {"positive": False}, [True, True, False, False, NO_LABEL]),
    (
        "STRING",
        ["1", "1.0", " 1e0 ", "2", "2.50", "0", "true", "NaN", "", None],
        {"positive": [1, 2.5]},
        [True, True, True, False, True, False, False, False, False, NO_LABEL],
    ),
    ("STRING", ["1", "1.0", " 1", "TRUE", None], {"positive": ["1"]}, [True, False, False, False, NO_LABEL]),
    ("INT", [0, 1, 2, -1, None], {}, [False, True, NO_LABEL, NO_LABEL, NO_LABEL]),
    ("BIGINT", [0, 1, 2, None], {"range": [0, 1]}, [False, True, NO_LABEL, NO_LABEL]),
    ("INT", [0, 1, 2, None], {"positive": [1, 2]}, [False, True, True, NO_LABEL]),
    ("BOOLEAN", [True, False, None], {"positive": [False]}, [False, True, NO_LABEL]),
    ("DOUBLE", [1.0, 0.0, NAN], {"positive": [1.0]}, [True, False, NO_LABEL]),
    (
        "DOUBLE",
        [0.0, 1.0, 1.5, -0.1, None, NAN, INFINITY],
        {"threshold": 0.5, "range": [0, 1]},
        [False, True, OUT_OF_RANGE, OUT_OF_RANGE, NO_LABEL, NO_LABEL, OUT_OF_RANGE],
    ),
    # As the column holds them: the float32 that is written 0.7 is less than 0.7.
    ("FLOAT", [0.7, 0.6, 0.8], {"threshold": 0.7, "range": [0.7, 0.8]}, [True, OUT_OF_RANGE, True]),
    ("FLOAT", [0.1, 0.2, 1.0, NAN], {"positive": [0.1, 1]}, [True, False, True, NO_LABEL]),
    ("STRING", ["0.9", "7", "x"], {"threshold": 0.5, "range": [0, 1]}, [True, OUT_OF_RANGE, NO_LABEL]),
]
DIGITS = [f"0.{n**11 % 10**16:016}" for n in range(1, 60)]
SCORES: list[tuple[str, list[Any], list[Any]]] = [
    ("INT", [3, -1, None], [3.0, -1.0, "null_score"]),
    ("BIGINT", [2**53, -(2**40)], [2.0**53, -(2.0**40)]),
    ("DECIMAL(20,10)", [Decimal("0.1"), Decimal("-12.5"), None], [0.1, -12.5, "null_score"]),
    ("DECIMAL(17,16)", [Decimal(text) for text in DIGITS], list(map(float, DIGITS))),
    ("FLOAT", [0.5, 0.1, NAN, -INFINITY], [0.5, float.fromhex("0x1.99999ap-4"), "nan_score", "infinite_score"]),
    ("DOUBLE", [1e308, -5e-324, None, NAN, INFINITY], [1e308, -5e-324, "null_score", "nan_score", "infinite_score"]),
    ("STRING", ["0.1", "-1E-3", " 7 ", ".5"], [0.1, -0.001, 7.0, 0.5]),
    ("STRING", ["", "high", "1,5", None], [*["score_not_numeric"] * 3, "null_score"]),
    ("STRING", ["nan", "inf", "1e999"], ["nan_score", "infinite_score", "infinite_score"]),
]


def test_labels(spark: SparkSession) -> None:
    cases = [
        (
            spark.createDataFrame([(value, 0.5, 1.0) for value in values], f"y {kind}, s DOUBLE, u DOUBLE"),
            measures_of(label={"column": "y"} | label),
        )
        for kind, values, label, _ in LABELS
    ]
    assert [examples.labels for examples in examples_of_each(cases)] == [labels for *_, labels in LABELS]


def test_scores(spark: SparkSession) -> None:
    kinds = "y BOOLEAN, s {}, u DOUBLE"
    corpora = [
        spark.createDataFrame([(True, value, 1.0) for value in values], kinds.format(kind))
        for kind, values, _ in SCORES
    ]
    examples = examples_of_each([(corpus, measures_of()) for corpus in corpora])
    assert [one.scores for one in examples] == [scores for *_, scores in SCORES]


def test_annotations_of_every_type(spark: SparkSession) -> None:
    rows = [
        (True, 0.5, 0.5, 1, Decimal("0.9"), "0.7", True),
        (True, 0.5, 0.49, 0, Decimal("0.1"), "no", False),
        (True, 0.5, NAN, None, None, "?", None),
        (True, 0.5, None, 5, None, None, None),
    ]
    kinds = "y BOOLEAN, s DOUBLE, fraction DOUBLE, count INT, exact DECIMAL(3,1), text STRING, flag BOOLEAN"
    corpus = spark.createDataFrame(rows, kinds)
    assert examples_of(corpus, measures_of(identities=["fraction", "count", "exact", "text", "flag"])).states == {
        "fraction": [True, False, None, None],
        "count": [True, False, None, True],
        "exact": [True, False, None, None],
        "text": [True, False, None, None],
        "flag": [True, False, None, None],
    }


@pytest.mark.spark("compares with a cast of Spark")
def test_booleans_are_read_from_texts_as_spark_does(spark: SparkSession) -> None:
    of_true, of_false = ["true", " TRUE ", "t", "Y", "yes\r\n", "1"], ["\tFalse", "f", "N", "no", "0"]
    texts = [*of_true, *of_false, "on", "1.0", "2", "", " ", None]
    corpus = spark.createDataFrame([(text,) for text in texts], "text STRING")
    rows = corpus.select(boolean("text", StringType()), F.expr("try_cast(text AS BOOLEAN)")).collect()
    assert [value for value, _ in rows] == [cast for _, cast in rows]


MIXTURE: dict[str, Any] = {
    "columns": ["u"],
    "categorical": ["race"],
    "array": "groups",
    "predicates": {"long": "length(text) > 10"},
    "terms": {"column": "text", "list": {"women": ["woman", "girls"], "trans": ["trans"]}},
}


def test_a_category_of_numbers_or_dates_is_named_by_its_text(spark: SparkSession) -> None:
    rows = [(True, 0.1, 10, RUN_DATE, True), (True, 0.1, 9, RUN_DATE, False), (True, 0.1, None, None, None)]
    corpus = spark.createDataFrame(rows, "y BOOLEAN, s DOUBLE, level INT, day DATE, flag BOOLEAN")
    measures = measures_of(identities={"categorical": ["level", "day", "flag"]})
    values = survey_corpus(corpus, measures).values
    assert values == {"level": ("9", "10"), "day": ("2026-01-15",), "flag": ("false", "true")}
    assert examples_of(corpus, measures, values=values).states["level=10"] == [True, False, None]


@pytest.mark.parametrize("kind", ["DOUBLE", "FLOAT"])
def test_both_zeros_are_one_category_and_nan_is_unknown(spark: SparkSession, kind: str) -> None:
    rows = [(True, 0.1, level) for level in (0.0, -0.0, 0.1, NAN, None)]
    corpus = spark.createDataFrame(rows, f"y BOOLEAN, s DOUBLE, level {kind}")
    measures = measures_of(identities={"categorical": ["level"]})
    values = survey_corpus(corpus, measures).values
    assert values == {"level": ("0.0", "0.1")}
    assert examples_of(corpus, measures, values=values).states["level=0.0"] == [True, True, False, None, None]


def test_an_array_is_surveyed_by_value_and_its_rows_once(spark: SparkSession) -> None:
    tags = [["b", "a", "a"], ["c", "b"], [], None, ["c", None]]
    corpus = spark.createDataFrame([(True, 0.1, row) for row in tags], "y BOOLEAN, s DOUBLE, tags ARRAY<STRING>")
    survey = survey_corpus(corpus, measures_of(identities={"array": "tags"}))
    assert survey.values == {"tags": ("a", "b", "c")}
    assert survey.n_rows == len(tags)


def test_an_annotation_out_of_its_range_leaves_that_identity_unknown(spark: SparkSession) -> None:
    """Also where a missing one does not."""
    rows = [(True, 0.5, 0.9, "0.2"), (True, 0.5, 1.5, "0.6"), (True, 0.5, -0.1, "2"), (None, 0.5, 9.0, "0.5")]
    corpus = spark.createDataFrame(rows, "y BOOLEAN, s DOUBLE, u DOUBLE, v STRING")
    examples = examples_of(corpus, measures_of(identities={"columns": ["u", "v"], "range": [0, 1]}))
    assert examples.states == {"u": [True, None, None, None], "v": [False, True, None, True]}
    assert examples.read("annotation") == [0, 1, 1, 1]
    assert examples.labels == [True, True, True, "null_label"]
    values = [(True, 0.5, 0.9, 7.0), (True, 0.5, None, 0.2), (True, 0.5, 7.0, None), (True, 0.5, -1.0, 7.0)]
    corpus = spark.createDataFrame(values, "y BOOLEAN, s DOUBLE, u DOUBLE, v DOUBLE")
    identities = {"columns": ["u", "v"], "range": [0, 1], "unannotated": "background"}
    examples = examples_of(corpus, measures_of(identities=identities))
    assert examples.states == {"u": [True, False, None, None], "v": [None, False, False, None]}
    negative = corpus.withColumns({"y": F.lit(False)})
    cells = measure_corpus(corpus.union(negative), measures_of(identities=identities)).counts.cells
    assert cells.T.tolist()[1:] == [[1, 1, 1, 1], [0, 0, 2, 2]]  # inside, then outside, by label


def nesting(text: str) -> int:
    """How deep the parentheses of a text go."""
    return max(accumulate({"(": 1, ")": -1}.get(character, 0) for character in text))


@pytest.mark.slow
def test_hundreds_of_annotations_are_an_expression_of_a_few_levels(spark: SparkSession) -> None:
    """A chain of them would be as many levels deep, and too deep for Spark or for Connect's messages."""
    names = [f"u{number}" for number in range(240)]
    corpus = spark.range(2).selectExpr("true AS y", "0.5D AS s", *(f"id / 2.0D AS {name}" for name in names))
    measures = measures_of(identities=names)
    ranged = measures_of(identities={"columns": names[:60], "range": [0, 1]}).identities
    examples = encode_examples(corpus, measures, build_encoding(measures, Survey(1, {}, ())), None)
    out_of_range = corpus.select(annotation_out_of_range(ranged, corpus.schema))
    assert nesting(explained(examples)) < 32
    assert nesting(explained(out_of_range)) < 32


def test_terms_are_whole_words_of_any_case(spark: SparkSession) -> None:
    wanted: dict[str, set[str]] = {
        "An African American": {"african", "african american", "american"},
        "african  american": {"african", "american"},
        "African-american: gay": {"african", "american", "gay"},
        "gays gayly _gay gay1": set(),
        "GAY.": {"gay"},
        "the KÖLNER köln": {"köln"},
        "C++ and c": {"c++"},
        "c+": set(),
        "say #blm": {"#blm"},
        "x#blm": set(),
        "": set(),
        "a.b": {"a.b"},
        "axb": set(),
    }
    terms = ["african american", "african", "american", "gay", "köln", "c++", "#blm", "a.b"]
    corpus = spark.createDataFrame([(True, 0.5, text) for text in wanted], "y BOOLEAN, s DOUBLE, text STRING")
    measures = measures_of(identities={"terms": {"column": "text", "list": terms}})
    states = examples_of(corpus, measures).states
    terms_of = [{name for name, rows in states.items() if rows[n]} for n in range(len(wanted))]
    assert dict(zip(wanted, terms_of, strict=True)) == wanted


def test_slices_are_predicates_and_null_is_out(spark: SparkSession) -> None:
    corpus = spark.createDataFrame(
        [(True, 0.5, 1.0), (True, 0.5, 0.2), (True, 0.5, None)], "y BOOLEAN, s DOUBLE, u DOUBLE"
    )
    examples = examples_of(corpus, measures_of(slices={"high": "u > 0.5", "low": "not u > 0.5"}))
    assert (examples.read("slice", 1), examples.read("slice", 2)) == ([1, 0, 0], [0, 1, 0])


ODD_NAMES = ["a.b", "sp ace", "tick`s", "emoji 😀", "select", "quo\"te'"]


def test_column_names_of_any_characters(spark: SparkSession) -> None:
    rows = [(n, n % 3 == 0, f"{n / 10}", float(n % 2), "x y"[n % 3], "a word") for n in range(12)]
    corpus = spark.createDataFrame(rows, "a INT, b BOOLEAN, c STRING, d DOUBLE, e STRING, f STRING").toDF(*ODD_NAMES)
    identifier, label, score, annotation, category, text = ODD_NAMES
    measures = measures_of(
        label={"column": label},
        models=[score],
        identities={"columns": [annotation], "categorical": [category], "terms": {"column": text, "list": ["word"]}},
    )
    sizes = {
        name: sum(cells)
        for name, cells in cell_sizes(measure_corpus(corpus, measures, identifier, "reject"), score).items()
    }
    assert sizes == {"(overall)": 12, annotation: 6, "select= ": 4, "select=x": 4, "select=y": 4, "word": 12}


@pytest.mark.parametrize("engine", ["blocks", pytest.param("windows", marks=pytest.mark.slow)])
def test_identities_without_usable_rows_are_warned_of(spark: SparkSession, engine: str) -> None:
    """A row without a label tells nothing, nor does one of a single model without a score."""
    rows: list[tuple[Any, ...]] = [
        (number % 2 == 0, number / 10, None, None, 0.2, float(number % 3 == 0), "gay") for number in range(20)
    ]
    rows.append((None, 0.5, 0.5, 1.0, 1.0, 1.0, "lesbain"))
    kinds = "y BOOLEAN, s DOUBLE, other DOUBLE, unknown DOUBLE, nobody DOUBLE, some DOUBLE, text STRING"
    terms = {"column": "text", "list": ["lesbain", "gay"]}
    identities = {"columns": ["some", "unknown", "nobody"], "predicates": {"never": "s > 9"}, "terms": terms}
    measures = measures_of(
        models=["s", "other"], identities=identities | {"crossed": {"pairs": True}}, ranking={"engine": engine}
    )
    corpus = spark.createDataFrame(rows, kinds).coalesce(1)
    measurement = measure_corpus(corpus, measures, rejects=Rejects(allow_missing_models=True))
    unknown, empty, no_background = [text for text in measurement.warnings if text.startswith("identities: ")]
    assert "1 of 6" in unknown
    assert '"unknown"' in unknown
    assert "3 of 6" in empty
    assert '"nobody", "never", "lesbain"' in empty
    assert "1 of 6" in no_background
    assert '"gay"' in no_background


@pytest.mark.parametrize("engine", ["blocks", pytest.param("windows", marks=pytest.mark.slow)])
def test_annotations_that_cannot_be_read_are_warned_of(spark: SparkSession, engine: str) -> None:
    """They count as missing, as do NULL, blanks and NaN, which nobody is warned of."""
    texts = [("Male", "yes"), ("Female", "maybe"), (None, " TRUE "), ("", "0.7"), ("  ", "NaN"), ("m", "0")]
    rows: list[tuple[Any, ...]] = [(gender != "m", 0.5, gender, asked, True) for gender, asked in texts]
    rows.append((None, 0.5, "x", "?", True))
    corpus = spark.createDataFrame(rows, "y BOOLEAN, s DOUBLE, gender STRING, `was asked` STRING, flag BOOLEAN")
    measures = measures_of(identities=["was asked", "flag", "gender"], ranking={"engine": engine})
    assert measure_corpus(corpus, measures).counts.row_counts.unreadable == {"was asked": 1, "gender": 3}


def test_more_pairs_than_are_allowed_are_refused_before_anything_is_ranked(spark: SparkSession) -> None:
    """The configuration cannot know how many values a column has."""
    corpus = spark.range(300).selectExpr("id % 2 = 0 AS y", "0.5D AS s", "id AS level")
    identities = {"categorical": ["level"], "crossed": {"pairs": True}}
    with pytest.raises(InputError, match="300 identities make 44,850 pairs"):
        measure_corpus(corpus, measures_of(identities=identities))
    allowed = measures_of(identities=identities | {"crossed": {"pairs": True, "max_pairs": 44_850}})
    assert len(build_encoding(allowed, survey_corpus(corpus, allowed)).pairs) == 44_850


def test_values_that_are_named_like_another_identity_are_refused(spark: SparkSession) -> None:
    """Two identities of one name would be one row, with the numbers of neither."""
    kinds = "y BOOLEAN, s DOUBLE, u DOUBLE, groups ARRAY<STRING>"
    for value, identities in (
        ("u", {"columns": ["u"], "array": "groups"}),
        ("(overall)", {"array": "groups"}),
        ("u & v", {"columns": ["u"], "array": "groups", "crossed": {"pairs": True}}),
    ):
        corpus = spark.createDataFrame([(True, 0.5, 1.0, [value, "v"])], kinds)
        fault = raised_fault(BiasSparkError, measure_corpus, corpus, measures_of(identities=identities))
        assert (fault.path, repr(value) in str(fault.rule)) == (("identities",), True)


def test_a_schema_that_fits_has_no_faults_and_lacks_no_column(spark: SparkSession) -> None:
    kinds = "id STRING, y BOOLEAN, s DOUBLE, u DOUBLE, race STRING, groups ARRAY<STRING>, text STRING"
    fitting, measures = spark.createDataFrame([], kinds), measures_of(identities=MIXTURE, slices={"x": "u > 0"})
    check_schema(fitting, measures, "id")
    for name in fitting.columns:
        with pytest.raises(InputError, match=f"'{name}'"):
            check_schema(fitting.drop(name), measures, "id")


@pytest.mark.embedded
@pytest.mark.parametrize("more", [[], ["t"]])
@pytest.mark.parametrize("threshold", [0.7, 1.0, 2.0])
def test_python_reads_from_numbers_what_sql_does(spark: SparkSession, threshold: float, more: list[str]) -> None:
    values = (None, -1.0, -5e-324, -0.0, 0.0, 0.5, 0.7, 1.0, 1.0000001, 2.0, math.inf, -math.inf, math.nan, -math.nan)
    rows = [
        (True, 0.5, value, value, None if value is None else len(str(value)) % 3, text)
        for value, text in product(values, (None, "1", "0"))
    ]
    corpus = spark.createDataFrame(rows, "y BOOLEAN, s DOUBLE, u DOUBLE, f FLOAT, k INT, t STRING")
    measures = measures_of(identities={"columns": ["u", "f", "k", *more], "threshold": threshold})
    encoding = build_encoding(measures, survey_corpus(corpus, measures), corpus)
    assert set(encoding.number_columns) == {"u", "f", "k"}
    table = encode_examples(corpus, measures, encoding, None).toArrow()
    by_numpy, by_sql = (TaskRows(table, one) for one in (encoding, replace(encoding, number_columns={})))
    assert [column.tolist() for column in by_numpy.memberships] == [column.tolist() for column in by_sql.memberships]
    assert by_numpy.known.tolist() == by_sql.known.tolist()
    assert count_rows(by_numpy).tolist() == count_rows(by_sql).tolist()
