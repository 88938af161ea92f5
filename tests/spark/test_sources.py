"""Where rows come from: formats, options, tables and views, the files and rows of a night, and what of them is read."""

from __future__ import annotations

import csv
import io
import re
import shutil
from contextlib import redirect_stdout
from dataclasses import replace
from datetime import date
from pathlib import Path

import pyspark.sql.functions as F
import pytest
from pyspark.sql import SparkSession

from biasspark.columns import MALFORMED
from biasspark.corpus.examples import build_codebook, label_examples
from biasspark.corpus.files import open_files
from biasspark.corpus.source import read_corpus
from biasspark.corpus.survey import Survey, survey_corpus
from biasspark.dates import CorpusDates
from biasspark.errors import InputError, NoRows
from tests.small_corpora import NIGHT, corpus_of, examples_of, measures_of


@pytest.mark.parametrize("kind", ["parquet", "orc", "json", "csv"])
def test_formats(spark: SparkSession, formats: Path, kind: str) -> None:
    rows = read_corpus(spark, corpus_of(path=str(formats / kind), format=kind), NIGHT)
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
    measures = measures_of(identities=identities, slices={"x": "n ="})
    with pytest.raises(InputError) as of_columns:
        read_corpus(spark, replace(source, id="id"), NIGHT, measures)
    with pytest.raises(InputError) as of_night:
        read_corpus(spark, replace(source, run_date_column="day", id="id"), NIGHT)
    shown = (
        "It has 3 columns, not named here since the names may be data: a CSV without a header line needs `options = { "
        "header = false }` and a `schema`."
    )
    wanted = {"[corpus] id": "id", "[label] column": "y", "[models] s": "s", "[identities] columns": "u"}
    wanted |= {"[identities] categorical": "race", "[identities] array": "groups", "[identities] terms.column": "text"}
    rule = "It must be a Spark SQL predicate over the columns of the corpus."
    first, *further = (f"{where}: the corpus has no column '{name}'." for where, name in wanted.items())
    assert of_columns.value.faults == (
        f"{first} {shown}",
        *further,
        f'[slices] x = "n =": this is not valid Spark SQL. {rule} Correct it.',
        f'[identities] predicates.old = "age > 60": a column that it names is not there. Column: `age`. {rule} '
        "Correct it.",
    )
    assert of_night.value.faults == (
        f'[corpus] run_date_column = "day": the corpus has no such column. {shown} Name one that it has, or remove the '
        "line to read all rows.",
    )


@pytest.mark.parametrize(("separator", "option"), [(";", '";"'), ("\t", r'"\t"'), ("|", '"|"')])
def test_another_separator_than_commas_is_said_once(
    spark: SparkSession, tmp_path: Path, separator: str, option: str
) -> None:
    (tmp_path / "rows.csv").write_text("id;y;s;u;day\n1;true;0.5;1;2026-01-15\n".replace(";", separator))
    source = corpus_of(path=str(tmp_path), format="csv", id="id", run_date_column="day", filter="u > 0")
    with pytest.raises(InputError) as caught:
        read_corpus(spark, source, NIGHT, measures_of(slices={"x": "u > 1"}))
    assert str(caught.value).count(f"options = {{ sep = {option} }}") == 1
    assert {fault.partition(":")[0] for fault in caught.value.faults} > {"[label] column", "[models] s"}


def test_the_columns_are_shown_where_a_configured_one_is_there(spark: SparkSession, formats: Path) -> None:
    source = corpus_of(path=str(formats / "csv"), format="csv", run_date_column="dya", id="id")
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


def test_a_temporary_view_and_a_table(spark: SparkSession, formats: Path) -> None:
    rows = spark.read.parquet(str(formats / "parquet"))
    rows.createOrReplaceTempView("comments")
    rows.write.mode("overwrite").saveAsTable("comments_of_a_test")
    try:
        for table in ("comments", "spark_catalog.default.comments_of_a_test"):
            assert read_corpus(spark, corpus_of(table=table), NIGHT).count() == 6
    finally:
        spark.sql("DROP TABLE comments_of_a_test")


DAYS = ("2026-01-10", "2026-01-14", "2026-01-20")


def write_days(spark: SparkSession, folder: Path, kind: str) -> dict[str, str]:
    """Write two rows of each day, with the day as a partition or a column, and some of none; give the source."""
    days = f"element_at(array({', '.join(map(repr, DAYS))}), cast(id % 3 + 1 AS INT))"
    rows = spark.range(6).selectExpr("id", "true AS y", "0.5D AS s", "1.0D AS u", f"{days} AS day")
    path, written = str(folder / "rows"), "parquet"
    if kind == "partition":
        rows.write.partitionBy("day").parquet(path)
    elif kind in ("csv", "json"):
        written = kind
        secret = spark.range(1).selectExpr("id", "true AS y", "0.5D AS s", "1.0D AS u", "'secret' AS day")
        rows.union(secret).write.format(kind).option("header", "true").save(path)
    else:
        rows.withColumn("day", F.col("day").cast(kind)).write.parquet(path)
    return {"path": path, "format": written}


@pytest.mark.parametrize("kind", ["partition", "date", "timestamp", "string", "csv", "json"])
def test_a_night_without_rows_says_which_dates_there_are(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    """The first, the last and the nearest; nothing but dates is shown of the column."""
    source = corpus_of(**write_days(spark, tmp_path, kind), run_date_column="day")
    night, dates = date(2026, 1, 15), CorpusDates(spark, source)
    with pytest.raises(NoRows) as caught, dates.named(night):
        survey_corpus(read_corpus(spark, source, night, measures_of()), measures_of())
    fault = str(caught.value)
    assert re.findall(r"\d{4}-\d\d-\d\d", fault) == [str(night), DAYS[0], DAYS[-1], DAYS[1]]
    assert "secret" not in fault
    with pytest.raises(NoRows) as later, dates.named(date(2027, 1, 1)):
        raise NoRows("corpus: no rows.")
    assert str(later.value).count(DAYS[-1]) == 2


def test_the_dates_of_a_view_and_none_at_all(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("2026-01-15 03:00:00",), ("secret",), (None,)], "day STRING")
    frame.createOrReplaceTempView("days")
    frame.where("day = 'secret'").createOrReplaceTempView("no_days")
    for table, wanted in (("days", "2026-01-15 only"), ("no_days", "has no date in any row")):
        dates = CorpusDates(spark, corpus_of(table=table, run_date_column="day"))
        with pytest.raises(NoRows, match=wanted) as caught, dates.named(date(2026, 2, 1)):
            raise NoRows("corpus: no rows.")
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("chosen", "night", "wanted"),
    [
        (
            "id % 3 = 0",
            date(2026, 1, 14),
            r'filter = "id % 3 = 0" leaves none of the 2 rows .* has rows of 2026-01-10 only',
        ),
        ("id > 100", date(2026, 1, 14), "leaves no row of any date"),
        ("id % 3 < 2", date(2026, 1, 15), "2 dates, from 2026-01-10 to 2026-01-14; the nearest is 2026-01-14"),
        ("1 / (id - id) > 0", date(2026, 1, 15), "corpus: no rows of 2026-01-15. Check"),
    ],
    ids=["of the date", "of any", "of some", "fails"],
)
def test_a_filter_may_leave_no_row_of_a_date(
    spark: SparkSession, tmp_path: Path, chosen: str, night: date, wanted: str
) -> None:
    source = corpus_of(**write_days(spark, tmp_path, "partition"), run_date_column="day", filter=chosen)
    with pytest.raises(NoRows, match=wanted), CorpusDates(spark, source).named(night):
        raise NoRows("corpus: no rows.")


def test_without_a_run_date_column_nothing_more_is_known(spark: SparkSession) -> None:
    with pytest.raises(NoRows, match=r"^as it was$"), CorpusDates(spark, corpus_of(table="none")).named(NIGHT):
        raise NoRows("as it was")


@pytest.mark.parametrize("column", ["day", "moment", "night"])
def test_only_the_rows_of_the_run_date(spark: SparkSession, formats: Path, column: str) -> None:
    rows = read_corpus(spark, corpus_of(path=str(formats / "parquet"), run_date_column=column), NIGHT)
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
def test_a_run_date_column_that_holds_no_dates(spark: SparkSession, formats: Path, column: str, kind: str) -> None:
    with pytest.raises(InputError) as caught:
        read_corpus(spark, corpus_of(path=str(formats / "parquet"), run_date_column=column), NIGHT)
    assert str(caught.value) == (
        f'[corpus] run_date_column = "{column}": it is of type {kind}. It must be a date, a time, or a text that holds '
        "a date. Name another column, or cast it."
    )


def test_a_filter_and_the_run_date_together(spark: SparkSession, formats: Path) -> None:
    source = corpus_of(path=str(formats / "parquet"), filter="s > 0.1", run_date_column="day")
    assert sorted(row.id for row in read_corpus(spark, source, NIGHT).collect()) == [1, 5]


def test_text_is_read_only_where_it_is_needed(spark: SparkSession, formats: Path) -> None:
    corpus = spark.read.parquet(str(formats / "parquet"))
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
