"""From files and tables to labels, scores, memberships and reasons; and every way in which the input can be wrong."""

from __future__ import annotations

import csv
import io
import math
import re
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from functools import reduce
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark.sql.functions as F
import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from biasspark.columns import MALFORMED, ROW_REASONS, SCORE_REASONS
from biasspark.config import FILTER, Corpus, Measures, parse_measures
from biasspark.corpus.check import check_schema
from biasspark.corpus.codebook import Codebook, Tally
from biasspark.corpus.culprits import corpus_faults
from biasspark.corpus.examples import build_codebook, label_examples
from biasspark.corpus.files import open_files
from biasspark.corpus.identities import annotation_out_of_range
from biasspark.corpus.rejects import rejected_rows
from biasspark.corpus.source import read_corpus
from biasspark.corpus.survey import Survey, survey_corpus
from biasspark.errors import BiasSparkError, InputError
from biasspark.pipeline import find_warnings, measure, ranked_once
from tests.oracle.pairs import State
from tests.ranking_without_spark import find_states
from tests.spark_versions import IS_3_5, say_part

NIGHT = date(2026, 1, 15)
NAN, INFINITY = math.nan, math.inf
CORRUPT = "a file cannot be read. It is corrupt or of another format. Replace it."
OTHER_TYPE = (
    "a column has another type in one file than in others. Write those of the wrong type anew, or have Spark 4 "
    "read numbers as the wider type by a `schema`."
)


def measures_of(**changes: Any) -> Measures:
    return parse_measures({"label": {"column": "y"}, "models": ["s"], "identities": ["u"]} | changes)


def corpus_of(**source: Any) -> Corpus:
    return Corpus(**({"name": "test"} | source))


@dataclass(frozen=True)
class Examples:
    """EXAMPLES on the driver, readable."""

    codebook: Codebook
    batch: pa.RecordBatch

    def read(self, what: str, number: int = 0) -> list[int]:
        place = self.codebook.fields[what, number]
        words = self.batch[self.codebook.word_columns[place.word]].to_pylist()
        return [word >> place.shift & (1 << place.width) - 1 for word in words]

    @property
    def labels(self) -> list[bool | str]:
        """The label, or why the row is rejected."""
        pairs = zip(self.read("label"), self.read("row_reason"), strict=True)
        return [ROW_REASONS[reason - 1] if reason else bool(label) for label, reason in pairs]

    def scores(self, model: int = 0) -> list[float | str]:
        """The score, or why it is rejected."""
        pairs = zip(self.batch[f"score_{model}"].to_pylist(), self.read("score_reason", model), strict=True)
        return [SCORE_REASONS[reason - 1] if reason else score for score, reason in pairs]

    @property
    def states(self) -> dict[str, list[State]]:
        """The state of every row by identity."""
        rows = find_states(self.codebook, self.batch)
        return {name: [row[number] for row in rows] for number, name in enumerate(self.codebook.names) if number}


def examples_of(
    corpus: DataFrame,
    measures: Measures,
    id_column: str | None = None,
    values: Mapping[str, Sequence[str]] | None = None,
) -> Examples:
    """Collect EXAMPLES; `values` stands for what the survey finds in categorical and array columns."""
    found = {name: tuple(of_name) for name, of_name in (values or {}).items()}
    codebook = build_codebook(measures, Survey(1, found, ()))
    return read_examples(codebook, label_examples(corpus, measures, codebook, id_column).collect())


def examples_of_each(cases: Sequence[tuple[DataFrame, Measures]]) -> list[Examples]:
    """Collect EXAMPLES of several corpora by one query."""
    codebooks = [build_codebook(measures, Survey(1, {}, ())) for _, measures in cases]
    frames = [
        label_examples(corpus, measures, codebook, None).withColumn("case", F.lit(number))
        for number, ((corpus, measures), codebook) in enumerate(zip(cases, codebooks, strict=True))
    ]
    rows = reduce(DataFrame.union, frames).collect()
    return [
        read_examples(codebook, [row for row in rows if row["case"] == number])
        for number, codebook in enumerate(codebooks)
    ]


def read_examples(codebook: Codebook, rows: Sequence[Row]) -> Examples:
    kinds = dict.fromkeys(codebook.word_columns, pa.int64()) | dict.fromkeys(codebook.score_columns, pa.float64())
    for place, name in codebook.value_columns.items():
        kinds[name] = pa.string() if codebook.sources[place].kind == "category" else pa.list_(pa.string())
    columns = {name: pa.array([row[name] for row in rows], kind) for name, kind in kinds.items()}
    assert not any(columns[name].null_count for name in (*codebook.word_columns, *codebook.score_columns))
    return Examples(codebook, pa.RecordBatch.from_pydict(columns))


def rank_and_reject(
    corpus: DataFrame, measures: Measures, duplicates: str = "allow", max_rows: int = 100
) -> tuple[Tally, Counter[tuple[Any, ...]]]:
    measurement = measure(corpus, measures, "id", duplicates)
    with ranked_once(measurement) as (tally, _):
        rejects = rejected_rows(measurement.corpus, measures, "id", tally.rejects, max_rows)
        found = [] if rejects is None else rejects.collect()
    return tally, Counter(map(tuple, found))


# ---- where rows come from


@pytest.fixture(scope="module")
def folder(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same six rows in every format."""
    place = tmp_path_factory.mktemp("formats")
    nights = ["2026-01-15", "2026-01-15", "2026-01-16", None, "2026-01-14", "2026-01-15"]
    rows = [(n, n % 2 == 0, n / 8, 1.0, night, f"text {n}") for n, night in enumerate(nights)]
    frame = spark_session.createDataFrame(rows, "id INT, y BOOLEAN, s DOUBLE, u DOUBLE, night STRING, text STRING")
    frame = frame.withColumn("day", F.to_date("night"))
    frame = frame.withColumn("moment", F.col("day").cast("timestamp") + F.expr("INTERVAL 23 HOURS"))
    for kind in ("parquet", "orc", "json"):
        frame.coalesce(1).write.format(kind).save(str(place / kind))
    frame.coalesce(1).write.option("header", True).csv(str(place / "csv"))
    return place


@pytest.mark.parametrize("kind", ["parquet", "orc", "json", "csv"])
def test_formats(spark: SparkSession, folder: Path, kind: str) -> None:
    rows = read_corpus(spark, corpus_of(path=str(folder / kind), format=kind), NIGHT)
    assert sorted(float(row.s) for row in rows.collect()) == [n / 8 for n in range(6)]
    if kind == "csv":  # nothing is guessed from values: a bad one would change the type of all
        assert {name for _, name in rows.drop(MALFORMED).dtypes} == {"string"}
        examples = examples_of(rows.orderBy("id"), measures_of())
        assert examples.labels == [True, False] * 3
        assert examples.scores() == [n / 8 for n in range(6)]
        assert examples.states == {"u": [True] * 6}


def test_csv_with_options_of_its_own_and_scores_that_are_none(spark: SparkSession, tmp_path: Path) -> None:
    lines = ["yes;0.5", "no; 1e3 ", "TRUE;", "f;high", "0;NaN", "1;-Infinity", "perhaps;1"]
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    source = corpus_of(
        path=str(tmp_path), format="csv", options={"header": "false", "sep": ";"}, schema="y STRING, s STRING"
    )
    rows = read_corpus(spark, source, NIGHT).withColumn("u", F.lit(1.0))
    examples = examples_of(rows, measures_of())
    assert examples.labels == [True, False, True, False, False, True, "null_label"]
    assert examples.scores() == [0.5, 1000.0, "null_score", "score_not_numeric", "nan_score", "infinite_score", 1.0]


def test_csv_with_quotes_and_line_ends_in_a_text(spark: SparkSession, tmp_path: Path) -> None:
    texts = ['she said "no", twice', "two\nlines, and\r\na third", '"', "", 'a \\ and "quotes"', "plain"]
    with (tmp_path / "rows.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("text", "y", "s", "u"), *((text, "true", n, 1) for n, text in enumerate(texts))])
    for kind in ("csv", "CSV"):
        rows = read_corpus(spark, corpus_of(path=str(tmp_path), format=kind), NIGHT)
        found = {int(row.s): row.text for row in rows.collect()}
        assert found == dict(enumerate([text.replace("\r\n", "\n") or None for text in texts]))
        assert examples_of(rows, measures_of()).labels == [True] * len(texts)
    cut = read_corpus(spark, corpus_of(path=str(tmp_path), format="csv", options={"multiline": "false"}), NIGHT)
    assert cut.count() == len(texts) + 2  # lines


def test_a_file_without_header_line_does_not_show_its_first_row(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("secret one,secret two,0.5\nx,y,0.25\n")
    identities = {
        "columns": ["u"],
        "categorical": ["race"],
        "array": "groups",
        "predicates": {"old": "age > 60"},
        "terms": {"column": "text", "list": ["word"]},
    }
    source = corpus_of(path=str(tmp_path), format="csv")
    with pytest.raises(InputError) as of_columns:
        check_schema(read_corpus(spark, source, NIGHT), measures_of(identities=identities, slices={"x": "n ="}), "id")
    with pytest.raises(InputError) as of_night:
        read_corpus(spark, replace(source, run_date_column="day", id="id"), NIGHT)
    shown = (
        "It has 3 columns, not named here since the names may be data: a CSV without a header line needs `options = { "
        "header = false }` and a `schema`."
    )
    wanted = {"[corpus] id": "id", "[label] column": "y", "[models] s": "s", "[identities] columns": "u"}
    wanted |= {"[identities] categorical": "race", "[identities] array": "groups", "[identities] terms.column": "text"}
    rule = "It must be a Spark SQL predicate over the columns of the corpus."
    assert of_columns.value.faults == (
        *(f"{where}: the corpus has no column '{name}'. {shown}" for where, name in wanted.items()),
        f'[slices] x = "n =": this is not valid Spark SQL. {rule} {shown} Correct it.',
        f'[identities] predicates.old = "age > 60": a column that it names is not there. Column: `age`. {rule} {shown} '
        "Correct it.",
    )
    assert of_night.value.faults == (
        f'[corpus] run_date_column = "day": the corpus has no such column. {shown} Name one that it has, or remove the '
        "line to read all rows.",
    )


def test_the_columns_are_shown_where_a_configured_one_is_there(spark: SparkSession, folder: Path) -> None:
    source = corpus_of(path=str(folder / "csv"), format="csv", run_date_column="dya", id="id")
    with pytest.raises(InputError) as caught:
        read_corpus(spark, source, NIGHT)
    assert str(caught.value) == (
        '[corpus] run_date_column = "dya": the corpus has no such column. It has: id, y, s, u, night, text, day, '
        "moment. Did you mean 'day'?"
    )


def nights_of_files(spark: SparkSession, folder: Path, place: str) -> Path:
    """Three nights of a file each, in partitions; those of the other nights are empty, beside whole ones."""
    for day in (14, 15, 16):
        here = folder / place.format(f"day=2026-01-{day}")
        spark.range(day, day + 2).selectExpr("id", "true AS y", "0.5D AS s", "1.0D AS u").coalesce(1).write.parquet(
            str(here)
        )
        if day != NIGHT.day:
            (here / "torn.parquet").touch()
    return folder


@pytest.mark.parametrize("place", ["{}", "lang=en/{}", "lang=en/{}/hour=3"])
def test_only_the_files_of_the_run_date_are_listed(spark: SparkSession, tmp_path: Path, place: str) -> None:
    """So a night costs what it did among few others, and is not kept from anything by their files."""
    source = corpus_of(path=str(nights_of_files(spark, tmp_path / "rows", place)), run_date_column="day")
    listed = open_files(spark, source, NIGHT)
    assert listed.rows is not None
    assert [Path(name).parent.name for name in listed.rows.inputFiles() if name.endswith(".parquet")] == [
        place.format("day=2026-01-15").rpartition("/")[2]
    ]
    rows = read_corpus(spark, source, NIGHT)
    assert len(rows.inputFiles()) == 1
    assert sorted((row.id, str(row.day)) for row in rows.collect()) == [(15, str(NIGHT)), (16, str(NIGHT))]
    with pytest.raises(InputError, match=r"1 file has no bytes\. .*day=2026-01-16"):
        read_corpus(spark, source, date(2026, 1, 16))


@pytest.mark.parametrize("value", ["2026-1-15", "2026-01-15 03%3A00%3A00"])
def test_a_folder_may_write_the_run_date_otherwise(spark: SparkSession, tmp_path: Path, value: str) -> None:
    nights_of_files(spark, tmp_path, "{}")
    shutil.copytree(tmp_path / "day=2026-01-15", tmp_path / f"day={value}")
    assert read_corpus(spark, corpus_of(path=str(tmp_path), run_date_column="day"), NIGHT).count() == 4


def test_a_night_without_a_folder_has_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    nights_of_files(spark, tmp_path, "{}")
    for torn in tmp_path.glob("*/torn.parquet"):
        torn.unlink()
    source = corpus_of(path=str(tmp_path), run_date_column="day")
    assert read_corpus(spark, source, date(2026, 1, 17)).isEmpty()


def test_the_files_of_a_table_with_a_log_are_its_own_affair(spark: SparkSession, tmp_path: Path) -> None:
    """Some of those that lie there are removed ones."""
    assert open_files(spark, corpus_of(path=str(tmp_path), format="DELTA"), NIGHT).rows is None


def test_a_temporary_view_and_a_table(spark: SparkSession, folder: Path) -> None:
    rows = spark.read.parquet(str(folder / "parquet"))
    rows.createOrReplaceTempView("comments")
    rows.write.mode("overwrite").saveAsTable("comments_of_a_test")
    try:
        for table in ("comments", "spark_catalog.default.comments_of_a_test"):
            assert read_corpus(spark, corpus_of(table=table), NIGHT).count() == 6
    finally:
        spark.sql("DROP TABLE comments_of_a_test")


@pytest.mark.parametrize("column", ["day", "moment", "night"])
def test_only_the_rows_of_the_run_date(spark: SparkSession, folder: Path, column: str) -> None:
    rows = read_corpus(spark, corpus_of(path=str(folder / "parquet"), run_date_column=column), NIGHT)
    assert sorted(row.id for row in rows.collect()) == [0, 1, 5]


def test_text_that_is_no_date_is_of_no_night(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("2026-01-15",), ("2026-01-15 03:00:00",), ("January",), (None,)], "night STRING")
    frame.createOrReplaceTempView("nights")
    assert read_corpus(spark, corpus_of(table="nights", run_date_column="night"), NIGHT).count() == 2


@pytest.mark.parametrize("kind", ["TIMESTAMP", "TIMESTAMP_NTZ", "STRING"])
def test_a_night_begins_and_ends_at_midnight_of_the_session(spark: SparkSession, kind: str) -> None:
    """Which is UTC in jobs; a moment without a zone, and a text, are of the day that they say."""
    moments = ["2026-01-14 23:59:59.999999", "2026-01-15 00:00:00", "2026-01-15 23:59:59.999999", "2026-01-16 00:00:00"]
    if kind == "STRING":
        moments.append("2026-01-15 23:30:00-05:00")  # another day in UTC
    frame = spark.createDataFrame(enumerate(moments), "id INT, moment STRING")
    frame.withColumn("moment", F.col("moment").cast(kind)).createOrReplaceTempView("moments")
    rows = read_corpus(spark, corpus_of(table="moments", run_date_column="moment"), NIGHT)
    assert sorted(row.id for row in rows.select("id").collect()) == ([1, 2, 4] if kind == "STRING" else [1, 2])


@pytest.mark.parametrize(("column", "kind"), [("id", "int"), ("y", "boolean"), ("s", "double")])
def test_a_run_date_column_that_holds_no_dates(spark: SparkSession, folder: Path, column: str, kind: str) -> None:
    with pytest.raises(InputError) as caught:
        read_corpus(spark, corpus_of(path=str(folder / "parquet"), run_date_column=column), NIGHT)
    assert str(caught.value) == (
        f'[corpus] run_date_column = "{column}": it is of type {kind}. It must be a date, a time, or a text that holds '
        "a date. Name another column, or cast it."
    )


def test_a_filter_and_the_run_date_together(spark: SparkSession, folder: Path) -> None:
    source = corpus_of(path=str(folder / "parquet"), filter="s > 0.1", run_date_column="day")
    assert sorted(row.id for row in read_corpus(spark, source, NIGHT).collect()) == [1, 5]


# ---- labels and scores


LABELS: list[tuple[str, list[Any], dict[str, Any], list[Any]]] = [
    ("BOOLEAN", [True, False, None], {}, [True, False, "null_label"]),
    ("STRING", ["true", " F ", "1", "maybe", None], {}, [True, False, True, "null_label", "null_label"]),
    (
        "DOUBLE",
        [0.5, 0.4999999999999999, 1.0, NAN, None],
        {"threshold": 0.5},
        [True, False, True, "null_label", "null_label"],
    ),
    ("FLOAT", [0.5, 0.25, NAN], {"threshold": 0.5}, [True, False, "null_label"]),
    ("DECIMAL(5,3)", [Decimal("0.500"), Decimal("0.499")], {"threshold": 0.5}, [True, False]),
    ("INT", [0, 1, 2, None], {"threshold": 1}, [False, True, True, "null_label"]),
    ("STRING", ["0.7", "0.1", "toxic", "true"], {"threshold": 0.5}, [True, False, "null_label", True]),
    (
        "STRING",
        ["bad", "good", "Bad", "", None],
        {"positive": ["bad", "worse"]},
        [True, False, False, False, "null_label"],
    ),
    (
        "STRING",
        ["True", " TRUE ", "1", "yes", "no", "maybe", "", None],
        {"positive": [True]},
        [True, True, True, True, False, False, False, "null_label"],
    ),
    (
        "STRING",
        ["False", "n", "true", "maybe", None],
        {"positive": False},
        [True, True, False, False, "null_label"],
    ),
    (
        "STRING",
        ["1", "1.0", " 1e0 ", "2", "2.50", "0", "true", "NaN", "", None],
        {"positive": [1, 2.5]},
        [True, True, True, False, True, False, False, False, False, "null_label"],
    ),
    ("STRING", ["1", "1.0", " 1", "TRUE", None], {"positive": ["1"]}, [True, False, False, False, "null_label"]),
    ("INT", [0, 1, 2, -1, None], {}, [False, True, "null_label", "null_label", "null_label"]),
    ("BIGINT", [0, 1, 2, None], {"range": [0, 1]}, [False, True, "null_label", "null_label"]),
    ("INT", [0, 1, 2, None], {"positive": [1, 2]}, [False, True, True, "null_label"]),
    ("BOOLEAN", [True, False, None], {"positive": [False]}, [False, True, "null_label"]),
    ("DOUBLE", [1.0, 0.0, NAN], {"positive": [1.0]}, [True, False, "null_label"]),
    (
        "DOUBLE",
        [0.0, 1.0, 1.5, -0.1, None, NAN, INFINITY],
        {"threshold": 0.5, "range": [0, 1]},
        [False, True, *["label_out_of_range"] * 2, *["null_label"] * 2, "label_out_of_range"],
    ),
    # As the column holds them: the float32 that is written 0.7 is less than 0.7.
    ("FLOAT", [0.7, 0.6, 0.8], {"threshold": 0.7, "range": [0.7, 0.8]}, [True, "label_out_of_range", True]),
    ("FLOAT", [0.1, 0.2, 1.0, NAN], {"positive": [0.1, 1]}, [True, False, True, "null_label"]),
    ("STRING", ["0.9", "7", "x"], {"threshold": 0.5, "range": [0, 1]}, [True, "label_out_of_range", "null_label"]),
]


def test_labels(spark: SparkSession) -> None:
    kinds = "y {}, s DOUBLE, u DOUBLE"
    corpora = [
        spark.createDataFrame([(value, 0.5, 1.0) for value in values], kinds.format(kind)).coalesce(1)
        for kind, values, _, _ in LABELS
    ]
    asked = [measures_of(label={"column": "y"} | label) for _, _, label, _ in LABELS]
    found = examples_of_each(list(zip(corpora, asked, strict=True)))
    assert [own.labels for own in found] == [wanted for *_, wanted in LABELS]


SCORES: list[tuple[str, list[Any], list[Any]]] = [
    ("INT", [3, -1, None], [3.0, -1.0, "null_score"]),
    ("BIGINT", [2**53, -(2**40)], [2.0**53, -(2.0**40)]),
    ("DECIMAL(20,10)", [Decimal("0.1"), Decimal("-12.5"), None], [0.1, -12.5, "null_score"]),
    ("FLOAT", [0.5, NAN, -INFINITY], [0.5, "nan_score", "infinite_score"]),
    (
        "DOUBLE",
        [1e308, -5e-324, None, NAN, INFINITY],
        [1e308, -5e-324, "null_score", "nan_score", "infinite_score"],
    ),
    ("STRING", ["0.1", "-1E-3", " 7 ", ".5"], [0.1, -0.001, 7.0, 0.5]),
    (
        "STRING",
        ["", "high", "1,5", None, "nan", "inf", "1e999"],
        [*["score_not_numeric"] * 3, "null_score", "nan_score", *["infinite_score"] * 2],
    ),
]


def test_scores(spark: SparkSession) -> None:
    kinds = "y BOOLEAN, s {}, u DOUBLE"
    corpora = [
        spark.createDataFrame([(True, value, 1.0) for value in values], kinds.format(kind)).coalesce(1)
        for kind, values, _ in SCORES
    ]
    found = examples_of_each([(corpus, measures_of()) for corpus in corpora])
    assert [own.scores() for own in found] == [wanted for *_, wanted in SCORES]


def test_a_float32_score_is_the_same_number(spark: SparkSession) -> None:
    corpus = spark.createDataFrame([(True, 0.1, 1.0)], "y BOOLEAN, s FLOAT, u DOUBLE")
    [score] = examples_of(corpus, measures_of()).scores()
    assert score == float.fromhex("0x1.99999ap-4")


def test_both_zeros_are_one_score(spark: SparkSession) -> None:
    corpus = spark.createDataFrame([(True, -0.0, 1.0), (False, 0.0, 1.0)], "y BOOLEAN, s DOUBLE, u DOUBLE")
    [overall] = measure(corpus, measures_of()).statistics.where("identity = '(overall)'").collect()
    assert overall.u_doubled == 1  # a tie: half of one pair


# ---- identities


def test_annotations_of_every_type(spark: SparkSession) -> None:
    rows = [
        (True, 0.5, 0.5, 1, Decimal("0.9"), "0.7", True),
        (True, 0.5, 0.49, 0, Decimal("0.1"), "no", False),
        (True, 0.5, NAN, None, None, "?", None),
        (True, 0.5, None, 5, None, None, None),
    ]
    kinds = "y BOOLEAN, s DOUBLE, fraction DOUBLE, count INT, exact DECIMAL(3,1), text STRING, flag BOOLEAN"
    corpus = spark.createDataFrame(rows, kinds).coalesce(1)
    assert examples_of(corpus, measures_of(identities=["fraction", "count", "exact", "text", "flag"])).states == {
        "fraction": [True, False, None, None],
        "count": [True, False, None, True],
        "exact": [True, False, None, None],
        "text": [True, False, None, None],
        "flag": [True, False, None, None],
    }


MIXTURE: dict[str, Any] = {
    "columns": ["u"],
    "categorical": ["race"],
    "array": "groups",
    "predicates": {"long": "length(text) > 10"},
    "terms": {"column": "text", "list": {"women": ["woman", "girls"], "trans": ["trans"]}},
}
MIXED_ROWS = [
    (True, 0.1, 0.9, "Asian", ["a", "a", None], "A Trans-woman, a Girl"),
    (False, 0.2, 0.1, None, [], "transgender women"),
    (True, 0.3, None, "", None, None),
]


@pytest.mark.parametrize("unannotated", ["exclude", "background"])
def test_identities_in_any_mixture(spark: SparkSession, unannotated: str) -> None:
    kinds = "y BOOLEAN, s DOUBLE, u DOUBLE, race STRING, groups ARRAY<STRING>, text STRING"
    corpus = spark.createDataFrame(MIXED_ROWS, kinds).coalesce(1)
    measures = measures_of(identities=MIXTURE | {"unannotated": unannotated})
    unknown = None if unannotated == "exclude" else False
    assert examples_of(corpus, measures, values={"race": ["", "Asian"], "groups": ["a"]}).states == {
        "u": [True, False, unknown],
        "race=": [False, unknown, True],
        "race=Asian": [True, unknown, False],
        "a": [True, False, unknown],
        "long": [True, True, False],  # a predicate that is NULL is out
        "women": [True, False, unknown],
        "trans": [True, False, unknown],
    }


def test_a_category_of_numbers_or_dates_is_named_by_its_text(spark: SparkSession) -> None:
    rows = [(True, 0.1, 10, NIGHT, True), (True, 0.1, 9, NIGHT, False), (True, 0.1, None, None, None)]
    corpus = spark.createDataFrame(rows, "y BOOLEAN, s DOUBLE, level INT, day DATE, flag BOOLEAN").coalesce(1)
    measures = measures_of(identities={"categorical": ["level", "day", "flag"]})
    values = survey_corpus(corpus, measures).values
    assert values == {"level": ("9", "10"), "day": ("2026-01-15",), "flag": ("false", "true")}
    assert examples_of(corpus, measures, values=values).states["level=10"] == [True, False, None]


@pytest.mark.parametrize("kind", ["DOUBLE", "FLOAT"])
def test_both_zeros_are_one_category_and_nan_is_unknown(spark: SparkSession, kind: str) -> None:
    rows = [(True, 0.1, level) for level in (0.0, -0.0, 0.1, NAN, None)]
    corpus = spark.createDataFrame(rows, f"y BOOLEAN, s DOUBLE, level {kind}").coalesce(1)
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
    rows = [(True, 0.5, 0.9, "0.2"), (True, 0.5, 1.5, "0.6"), (True, 0.5, -0.1, "2"), (None, 0.5, 9.0, "0.5")]
    corpus = spark.createDataFrame(rows, "y BOOLEAN, s DOUBLE, u DOUBLE, v STRING").coalesce(1)
    examples = examples_of(corpus, measures_of(identities={"columns": ["u", "v"], "range": [0, 1]}))
    assert examples.states == {"u": [True, None, None, None], "v": [False, True, None, True]}
    assert examples.read("annotation") == [0, 1, 1, 1]
    assert examples.labels == [True, True, True, "null_label"]


def nesting(text: str) -> int:
    """How deep the parentheses of a text go."""
    return max(accumulate({"(": 1, ")": -1}.get(character, 0) for character in text))


def explained(frame: DataFrame) -> str:
    text = io.StringIO()
    with redirect_stdout(text):
        frame.explain(extended=True)
    return text.getvalue()


@pytest.mark.slow
def test_hundreds_of_annotations_are_an_expression_of_a_few_levels(spark: SparkSession) -> None:
    """A chain of them would be as many levels deep, and too deep for Spark or for Connect's messages."""
    names = [f"u{number}" for number in range(240)]
    corpus = spark.range(2).selectExpr("true AS y", "0.5D AS s", *(f"id / 2.0D AS {name}" for name in names))
    measures = measures_of(identities=names)
    ranged = measures_of(identities={"columns": names[:60], "range": [0, 1]}).identities
    examples = label_examples(corpus, measures, build_codebook(measures, Survey(1, {}, ())), None)
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
    states = examples_of(corpus.coalesce(1), measures).states
    found = [{name for name, rows in states.items() if rows[place]} for place in range(len(wanted))]
    assert dict(zip(wanted, found, strict=True)) == wanted


def test_slices_are_predicates_and_null_is_out(spark: SparkSession) -> None:
    corpus = spark.createDataFrame(
        [(True, 0.5, 1.0), (True, 0.5, 0.2), (True, 0.5, None)], "y BOOLEAN, s DOUBLE, u DOUBLE"
    )
    examples = examples_of(corpus.coalesce(1), measures_of(slices={"high": "u > 0.5", "low": "not u > 0.5"}))
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
    measurement = measure(corpus, measures, identifier, "reject")
    sizes = {
        row.identity: row.n_low + row.n_high
        for row in measurement.statistics.where("low_cell like '%negative' and high_cell like '%positive'").collect()
        if not row.low_cell.startswith("background") and not row.high_cell.startswith("background")
    }
    assert sizes == {"(overall)": 12, annotation: 6, "select= ": 4, "select=x": 4, "select=y": 4, "word": 12}


@pytest.mark.parametrize(
    "ranking",
    [{}, {"engine": "binned", "bins": 8}, pytest.param({"engine": "windows"}, marks=pytest.mark.slow)],
    ids=str,
)
def test_identities_of_which_no_row_tells_are_warned_of(spark: SparkSession, ranking: dict[str, Any]) -> None:
    """A row that has no label tells nothing, nor does one of a single model that has no score."""
    rows = [(number % 2 == 0, number / 10, None, None, 0.2, float(number % 3 == 0), "gay") for number in range(20)]
    rows.append((None, 0.5, 0.5, 1.0, 1.0, 1.0, "lesbain"))
    kinds = "y BOOLEAN, s DOUBLE, other DOUBLE, unknown DOUBLE, nobody DOUBLE, some DOUBLE, text STRING"
    columns = ["some", "unknown", "nobody"]
    terms = {"column": "text", "list": ["lesbain", "gay"]}
    measures = measures_of(
        models=["s", "other"],
        identities={"columns": columns, "predicates": {"never": "s > 9"}, "terms": terms, "crossed": {"pairs": True}},
        ranking=ranking,
    )
    measurement = measure(spark.createDataFrame(rows, kinds).coalesce(1), measures)
    with ranked_once(measurement) as (_, profiles):
        warnings = [text for text in find_warnings(measurement, profiles) if text.startswith("identities: ")]
    assert warnings == [
        'identities: 1 of 6 identities is unknown in every usable row: "unknown". Is a column empty, or the wrong '
        "one named?",
        'identities: 3 of 6 identities have no usable row: "nobody", "never", "lesbain". Is a name, a term or a '
        "predicate misspelt, or the threshold too high?",
    ]


def test_a_column_without_any_value_is_warned_of(spark: SparkSession) -> None:
    corpus = spark.createDataFrame([(True, 0.5, None)], "y BOOLEAN, s DOUBLE, race STRING")
    assert survey_corpus(corpus, measures_of(identities={"categorical": ["race"]})).warnings == (
        "identities: no row has a value in 'race', so it gives no identity. Is it the right column?",
    )


def test_more_pairs_than_are_allowed_are_refused_before_anything_is_ranked(spark: SparkSession) -> None:
    """The configuration cannot know how many values a column has."""
    corpus = spark.range(300).selectExpr("id % 2 = 0 AS y", "0.5D AS s", "id AS level")
    crossed = {"categorical": ["level"], "crossed": {"pairs": True}}
    with pytest.raises(InputError) as caught:
        measure(corpus, measures_of(identities=crossed))
    assert str(caught.value) == (
        "[identities] crossed: pairs = true makes 44,850 pairs of 300 identities. At most 20,000 are allowed, since "
        "each is ranked. Name fewer identities, set max_pairs, or set pairs = false."
    )
    allowed = measures_of(identities=crossed | {"crossed": {"pairs": True, "max_pairs": 44_850}})
    assert len(build_codebook(allowed, survey_corpus(corpus, allowed)).pairs) == 44_850


def test_values_that_are_named_like_another_identity_are_refused(spark: SparkSession) -> None:
    """Two identities of one name would be one row, with the numbers of neither."""
    kinds = "y BOOLEAN, s DOUBLE, u DOUBLE, groups ARRAY<STRING>"
    for value, identities in (
        ("u", {"columns": ["u"], "array": "groups"}),
        ("(overall)", {"array": "groups"}),
        ("u & v", {"columns": ["u"], "array": "groups", "crossed": {"pairs": True}}),
    ):
        corpus = spark.createDataFrame([(True, 0.5, 1.0, [value, "v"])], kinds)
        with pytest.raises(BiasSparkError) as caught:
            measure(corpus, measures_of(identities=identities))
        assert str(caught.value) == (
            f"[identities]: '{value}' would name more than one identity, a value in the corpus among them. Each "
            "identity has its own name. Rename the column or predicate, or filter the value."
        )


# ---- what is rejected, and that all of it is counted


REJECT_ROWS = [
    (None, None, 0.5, 0.5, 0.5),
    (1, None, None, 0.5, 0.5),
    (2, 7.0, 0.5, 0.5, 0.5),
    (3, 1.0, None, 0.5, 0.5),
    (4, 1.0, NAN, 0.5, 0.5),
    (5, 1.0, INFINITY, None, 0.5),
    (6, 1.0, 0.5, 0.5, 9.0),
    (7, None, 0.5, 0.5, 9.0),
    (8, 1.0, NAN, 0.5, -9.0),
    *((number, float(number % 2), number / 40, -number / 40, 0.5) for number in range(9, 40)),
    (40, NAN, 0.5, 0.5, 0.5),
    (41, 0.0, None, -INFINITY, 0.5),
]


@pytest.mark.parametrize("engine", ["blocks", pytest.param("windows", marks=pytest.mark.slow)])
def test_every_reason_is_counted_and_written_once_a_row_and_model(spark: SparkSession, engine: str) -> None:
    corpus = spark.createDataFrame(REJECT_ROWS, "id INT, y DOUBLE, a DOUBLE, b DOUBLE, u DOUBLE").repartition(3)
    measures = parse_measures(
        {
            "label": {"column": "y", "threshold": 0.5, "range": [0, 1]},
            "models": {"one": "a", "two": "b"},
            "identities": {"columns": ["u"], "range": [0, 1]},
            "ranking": {"engine": engine},
        }
    )
    tally, rejects = rank_and_reject(corpus, measures)
    assert rejects == Counter(
        [
            (None, None, "null_id"),
            ("1", None, "null_label"),
            ("2", None, "label_out_of_range"),
            ("3", "one", "null_score"),
            ("4", "one", "nan_score"),
            ("5", "one", "infinite_score"),
            ("5", "two", "null_score"),
            ("6", None, "annotation_out_of_range"),
            ("7", None, "null_label"),
            ("8", "one", "nan_score"),
            ("8", None, "annotation_out_of_range"),
            ("40", None, "null_label"),
            ("41", "one", "null_score"),
            ("41", "two", "infinite_score"),
        ]
    )
    counted = Counter(reason for _, _, reason in rejects.elements())
    assert tally == Tally(
        n_rows=len(REJECT_ROWS),
        n_rejected=7,  # five for their label or id, and two that no model scores
        rejects=dict(counted),
        n_eligible={"one": len(REJECT_ROWS) - 5 - 5, "two": len(REJECT_ROWS) - 5 - 2},
    )


def test_a_missing_score_rejects_the_row_for_that_model_only(spark: SparkSession) -> None:
    rows = [(n % 2 == 0, None if n < 3 else 0.1 * n, 0.2 * n, 1.0) for n in range(10)]
    corpus = spark.createDataFrame(rows, "y BOOLEAN, a DOUBLE, b DOUBLE, u DOUBLE")
    statistics = measure(corpus, measures_of(models=["a", "b"])).statistics.where("identity = '(overall)'")
    assert {row.model: row.n_low + row.n_high for row in statistics.collect()} == {"a": 7, "b": 10}


def test_duplicate_ids_are_all_rejected_and_scores_that_are_no_numbers(spark: SparkSession) -> None:
    ids = [1, 2, 2, 3, 3, 3, None, None, 4, 5]
    rows = [(id_, None if n == 1 else n % 2 == 0, f"{n / 8}" if n else "high", 1.0) for n, id_ in enumerate(ids)]
    corpus = spark.createDataFrame(rows, "id INT, y BOOLEAN, s STRING, u DOUBLE").repartition(4)
    tally, rejects = rank_and_reject(corpus, measures_of(), duplicates="reject")
    wanted = {("2", None, "duplicate_id"): 2, ("3", None, "duplicate_id"): 3, (None, None, "null_id"): 2}
    assert rejects == wanted | {("1", "s", "score_not_numeric"): 1}
    assert tally.rejects == {"duplicate_id": 5, "null_id": 2, "score_not_numeric": 1}
    assert tally.n_eligible == {"s": 2}


def test_duplicate_ids_are_estimated_or_nobody_asks(spark: SparkSession) -> None:
    corpus = spark.range(2000).selectExpr("id % 1000 AS id", "true AS y", "0.5D AS s", "1.0D AS u", "id AS unique")
    assert survey_corpus(corpus, measures_of()).n_ids is None
    assert survey_corpus(corpus, measures_of(), "unique").warnings == ()
    [warning] = survey_corpus(corpus, measures_of(), "id").warnings
    share = re.fullmatch(
        r"corpus: about (\d+)% of the rows repeat an id\. Metrics count every row\. "
        r'`\[corpus\] duplicates = "reject"` finds and leaves out such rows\.',
        warning,
    )
    assert share
    assert float(share[1]) == pytest.approx(50, abs=2)


def rejected_range(spark: SparkSession, n_rows: int, partitions: int) -> DataFrame:
    """Many rows without a label, and a few without a score."""
    return spark.range(0, n_rows, 1, partitions).selectExpr(
        "concat('row ', id) AS id", "if(id < 30, true, null) AS y", "if(id < 20, null, 0.5D) AS s", "1.0D AS u"
    )


@pytest.mark.slow
def test_the_rows_that_are_kept_of_many_are_fixed_by_id(spark: SparkSession) -> None:
    counts = {"null_label": 49_970, "null_score": 20}
    kept = []
    for partitions, order in ((1, "id"), (5, "hash(id)")):
        corpus = rejected_range(spark, 50_000, partitions).orderBy(F.expr(order))
        rows = rejected_rows(corpus, measures_of(), "id", counts, 12).collect()
        kept.append(sorted(map(tuple, rows)))
    assert kept[0] == kept[1]
    assert Counter(reason for _, _, reason in kept[0]) == {"null_label": 12, "null_score": 12}
    assert len({row_id for row_id, _, _ in kept[0]}) == 24
    more = rejected_rows(rejected_range(spark, 50_000, 2), measures_of(), "id", counts, 100).collect()
    assert set(kept[0]) <= set(map(tuple, more))


@pytest.mark.parametrize("identifier", ["null", "'same'"])
def test_as_many_rows_are_kept_where_ids_do_not_tell_them_apart(spark: SparkSession, identifier: str) -> None:
    corpus = rejected_range(spark, 20_000, 2).withColumn("id", F.expr(f"cast({identifier} AS STRING)"))
    reason = "null_id" if identifier == "null" else "null_label"
    counts = {reason: 20_000 if identifier == "null" else 19_970}
    kept = rejected_rows(corpus, measures_of(), "id", counts, 12).where(F.col("reason") == reason)
    assert kept.count() == 12


def test_no_rejects_are_written_where_none_are_wanted(spark: SparkSession) -> None:
    corpus = rejected_range(spark, 10, 1)
    assert rejected_rows(corpus, measures_of(), "id", {"null_score": 10}, 0) is None
    assert rejected_rows(corpus, measures_of(), "id", {}, 12) is None


# ---- what is read


def test_text_is_read_only_where_it_is_needed(spark: SparkSession, folder: Path) -> None:
    corpus = spark.read.parquet(str(folder / "parquet"))
    without = measures_of()
    with_slice = measures_of(slices={"short": "length(text) < 9"})
    with_terms = measures_of(identities={"terms": {"column": "text", "list": ["text"]}})
    read = []
    for measures in (without, with_slice, with_terms):
        examples = label_examples(corpus, measures, build_codebook(measures, Survey(1, {}, ())), "id")
        text = io.StringIO()
        with redirect_stdout(text):
            examples.explain()
        [schema] = re.findall(r"ReadSchema: struct<(.*?)>", text.getvalue())
        read.append({column.split(":")[0] for column in schema.split(",")})
        assert dict(examples.dtypes).get("text") is None
    assert read == [{"id", "y", "s", "u"}, {"id", "y", "s", "u", "text"}, {"id", "y", "s", "text"}]


def test_a_column_that_nobody_needs_may_be_broken(spark: SparkSession, tmp_path: Path) -> None:
    """Neither survey nor ranking looks at `text`, which is text in one file and a number in the other."""
    for number, kind in enumerate(("STRING", "INT")):
        frame = spark.range(10).selectExpr(
            "id % 2 = 0 AS y", "id / 10.0D AS s", "1.0D AS u", f"cast(id AS {kind}) AS text"
        )
        frame.coalesce(1).write.parquet(str(tmp_path / f"rows/part={number}"))
    corpus = read_corpus(spark, corpus_of(path=str(tmp_path / "rows")), NIGHT)
    overall = measure(corpus, measures_of()).statistics.where("identity = '(overall)'").collect()
    assert [(row.n_low, row.n_high) for row in overall] == [(10, 10)]
    with pytest.raises(InputError) as caught, ranked_once(measure(corpus, measures_of(slices={"x": "text = '3'"}))):
        pass
    [file] = (tmp_path / "rows" / "part=1").glob("*.parquet")
    assert str(caught.value) == f"corpus: {OTHER_TYPE} Column: text, INT32 for string. File: {file}."


# ---- schemas that do not fit: all faults, word for word

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


def test_a_schema_that_fits_has_no_faults(spark: SparkSession) -> None:
    kinds = "id STRING, y BOOLEAN, s DOUBLE, u DOUBLE, race STRING, groups ARRAY<STRING>, text STRING"
    check_schema(spark.createDataFrame([], kinds), measures_of(identities=MIXTURE, slices={"x": "u > 0"}), "id")


# ---- input that is broken


def write_rows(spark: SparkSession, path: Path, n_rows: int = 20) -> None:
    frame = spark.range(n_rows).selectExpr("id", "id % 2 = 0 AS y", "id / 10.0D AS s", "1.0D AS u", "'secret' AS text")
    frame.coalesce(1).write.parquet(str(path))


def read_and_rank(spark: SparkSession, path: Path, **source: Any) -> None:
    corpus = read_corpus(spark, corpus_of(path=str(path), **source), NIGHT)
    with ranked_once(measure(corpus, measures_of(), "id" if "id" in corpus.columns else None)):
        pass


def fault_of(spark: SparkSession, path: Path, **source: Any) -> str:
    with pytest.raises(InputError) as caught:
        read_and_rank(spark, path, **source)
    assert "secret" not in str(caught.value)
    return str(caught.value)


def test_a_missing_path(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "nowhere"
    assert fault_of(spark, path) == f"corpus: path {path}: there is nothing at this path. Check the path."


def test_an_empty_folder(spark: SparkSession, tmp_path: Path) -> None:
    fault = fault_of(spark, tmp_path)
    assert fault == f"corpus: path {tmp_path}: there are no data files here. Check the path and the format."


@pytest.mark.parametrize("kind", ["parquet", "csv", "json"])
def test_files_of_no_bytes_are_named(spark: SparkSession, folder: Path, tmp_path: Path, kind: str) -> None:
    """Spark passes over them in silence: a copy that failed would look like a small night."""
    shutil.copytree(folder / kind, tmp_path / "rows")
    for name in ("b", "a"):
        (tmp_path / "rows" / f"{name}.{kind}").touch()
    rows = tmp_path / "rows"
    assert fault_of(spark, rows, format=kind) == (
        f"corpus: path {rows}: 2 files have no bytes. Data files are never empty: a copy has failed. "
        f"Replace or remove {rows}/a.{kind}, {rows}/b.{kind}."
    )


def test_marker_files_may_be_empty(spark: SparkSession, tmp_path: Path) -> None:
    write_rows(spark, tmp_path / "rows")
    for name in ("_SUCCESS", ".hidden.crc", "_started_1"):
        (tmp_path / "rows" / name).touch()
    assert read_corpus(spark, corpus_of(path=str(tmp_path / "rows")), NIGHT).count() == 20


@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_garbage(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    (tmp_path / f"rows.{kind}").write_bytes(b"secret" * 1000)
    fault = fault_of(spark, tmp_path, format=kind)
    assert fault == f"corpus: path {tmp_path}: {CORRUPT} File: {tmp_path}/rows.{kind}."


def test_garbage_beside_good_files(spark: SparkSession, tmp_path: Path) -> None:
    write_rows(spark, tmp_path / "rows")
    (tmp_path / "rows" / "zzz.parquet").write_bytes(b"secret" * 1000)
    fault = fault_of(spark, tmp_path / "rows", schema="id BIGINT, y BOOLEAN, s DOUBLE, u DOUBLE")
    assert fault == f"corpus: {CORRUPT} File: {tmp_path}/rows/zzz.parquet."


@pytest.mark.parametrize("has_checksum", [False, True])
def test_a_file_that_was_cut_short(spark: SparkSession, tmp_path: Path, has_checksum: bool) -> None:
    write_rows(spark, tmp_path / "rows")
    [file] = (tmp_path / "rows").glob("*.parquet")
    file.write_bytes(file.read_bytes()[:-20])
    if not has_checksum:
        (file.parent / f".{file.name}.crc").unlink()
    assert fault_of(spark, tmp_path / "rows") == f"corpus: path {tmp_path}/rows: {CORRUPT} File: {file}."


def test_a_page_that_is_damaged(spark: SparkSession, tmp_path: Path) -> None:
    write_rows(spark, tmp_path / "rows", 5000)
    [file] = (tmp_path / "rows").glob("*.parquet")
    content = bytearray(file.read_bytes())
    content[200:4000] = bytes(3800)
    file.write_bytes(content)
    for checksum in file.parent.glob(".*.crc"):
        checksum.unlink()
    assert fault_of(spark, tmp_path / "rows") == f"corpus: {CORRUPT} File: {file}."


def test_files_of_different_types(spark: SparkSession, tmp_path: Path) -> None:
    write_rows(spark, tmp_path / "rows/part=0")
    text_scores = spark.range(5).selectExpr("id", "true AS y", "'secret' AS s", "1.0D AS u", "'x' AS text")
    text_scores.coalesce(1).write.parquet(str(tmp_path / "rows/part=1"))
    fault = fault_of(spark, tmp_path / "rows", schema="id BIGINT, y BOOLEAN, s DOUBLE, u DOUBLE")
    [file] = (tmp_path / "rows" / "part=1").glob("*.parquet")
    assert fault == f"corpus: {OTHER_TYPE} Column: s, BINARY for double. File: {file}."


def test_an_option_of_a_value_that_its_reader_refuses(spark: SparkSession, tmp_path: Path) -> None:
    """Options are named and no value, since one may be a password."""
    spark.range(5).selectExpr("id", "true AS y", "1.0D AS s", "1.0D AS u").write.parquet(str(tmp_path / "rows"))
    fault = fault_of(spark, tmp_path / "rows", options={"mergeSchema": "perhaps", "user": "Ada"})
    assert (
        fault
        == "[corpus] options: Spark's reader of parquet refuses the value of one of mergeSchema, user. Correct it."
    )


def test_schemas_that_cannot_be_merged(spark: SparkSession, tmp_path: Path) -> None:
    for number, kind in enumerate(("DOUBLE", "STRING")):
        rows = spark.range(5).selectExpr("id", "true AS y", f"cast(id / 8.0D AS {kind}) AS `s, é`", "1.0D AS u")
        rows.coalesce(1).write.parquet(str(tmp_path / f"rows/part={number}"))
    fault = fault_of(spark, tmp_path / "rows", options={"mergeSchema": "true"})
    assert fault == f"corpus: path {tmp_path}/rows: {OTHER_TYPE} Column: `s, é`, STRING for DOUBLE."


def test_scores_of_another_width_in_a_later_file(spark: SparkSession, tmp_path: Path) -> None:
    """The first file is the narrower one: Spark 4 reads both as the wider one of a schema."""
    for number, kind in enumerate(("FLOAT", "DOUBLE")):
        rows = spark.range(6).selectExpr("id", "id % 2 = 0 AS y", f"cast(id / 8.0D AS {kind}) AS s", "1.0D AS u")
        rows.coalesce(1).write.parquet(str(tmp_path / f"rows/part={number}"))
    [file] = (tmp_path / "rows" / "part=1").glob("*.parquet")
    assert fault_of(spark, tmp_path / "rows") == f"corpus: {OTHER_TYPE} Column: s, DOUBLE for float. File: {file}."
    if not IS_3_5:
        read_and_rank(spark, tmp_path / "rows", schema="y BOOLEAN, s DOUBLE, u DOUBLE")


def test_a_format_that_is_none(spark: SparkSession, folder: Path) -> None:
    path = folder / "parquet"
    assert fault_of(spark, path, format="parkett") == (
        f"corpus: path {path}: Spark knows no such format. Check `[corpus] format` and the jars of the session. "
        "Format: parkett. Did you mean parquet?"
    )


def test_a_missing_table(spark: SparkSession) -> None:
    with pytest.raises(InputError) as caught:
        read_corpus(spark, corpus_of(table="no_such_table"), NIGHT)
    assert str(caught.value) == (
        "corpus: table no_such_table: there is no such table. Check `[corpus] table` and the catalogs of the session."
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
def test_a_filter_that_does_not_fit(spark: SparkSession, folder: Path, text: str, saying: str) -> None:
    assert fault_of(spark, folder / "parquet", filter=text) == f'[corpus] filter = "{text}": {saying}'


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


def test_no_rows(spark: SparkSession, folder: Path) -> None:
    wanted = "corpus: no rows. The path, the filter and the run date leave nothing to measure. Check them."
    assert fault_of(spark, folder / "parquet", filter="id > 100") == wanted


def test_no_row_that_can_be_used(spark: SparkSession) -> None:
    rows = [(None, 0.5, 1.0), (None, 0.5, 1.0), (True, None, 1.0), (False, NAN, None)]
    corpus = spark.createDataFrame(rows, "y BOOLEAN, s DOUBLE, u DOUBLE")
    with pytest.raises(InputError) as caught, ranked_once(measure(corpus, measures_of())):
        pass
    assert str(caught.value) == (
        "corpus: none of its 4 rows can be used (null_label 2, null_score 1, nan_score 1). A row needs a label and a "
        "score. Check [label] and [models]."
    )


def test_a_column_of_too_many_values_is_no_category(spark: SparkSession) -> None:
    corpus = spark.range(10_001).selectExpr("true AS y", "0.5D AS s", "id AS many")
    with pytest.raises(InputError) as caught:
        survey_corpus(corpus, measures_of(identities={"categorical": ["many"]}))
    assert str(caught.value) == (
        "[identities] 'many' has more than 10,000 distinct values. Each value is an identity, and so many cannot be: "
        "the column is probably an id or a measurement. Name another column, or use predicates."
    )


@pytest.mark.classic("Spark Connect does not say what its jobs read")
def test_no_task_gathers_every_value_of_a_column_of_ids(spark: SparkSession) -> None:
    """They are cut to what may be before they come together."""
    corpus = spark.range(240_000, numPartitions=8).selectExpr("true AS y", "0.5D AS s", "id AS many")
    context = spark.sparkContext
    context.setJobGroup("ids", "ids")
    with pytest.raises(InputError, match="more than 10,000 distinct values"):
        survey_corpus(corpus, measures_of(identities={"categorical": ["many"]}))
    context.setJobGroup("", "")
    context._jsc.sc().listenerBus().waitUntilEmpty()
    tracker, store = context.statusTracker(), context._jsc.sc().statusStore()
    jobs = map(tracker.getJobInfo, tracker.getJobIdsForGroup("ids"))
    numbers = {number for job in jobs if job for number in job.stageIds if tracker.getStageInfo(number)}
    stages = [store.lastStageAttempt(number) for number in sorted(numbers)]
    assert stages[-1].shuffleReadBytes() < max(stage.shuffleWriteBytes() for stage in stages) / 2
