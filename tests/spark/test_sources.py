"""Where rows come from: formats, options, tables and views, the files and rows of a date, and what of them is read."""

from __future__ import annotations

import csv
import re
import shutil
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark.sql.functions as F
import pytest
from pyspark.sql import SparkSession

from biasspark.columns import MALFORMED
from biasspark.config import Corpus
from biasspark.corpus.check import check_schema
from biasspark.corpus.encode import build_encoding, encode_examples
from biasspark.corpus.input_files import list_files
from biasspark.corpus.read import list_row_dates, read_corpus
from biasspark.corpus.survey import Survey, survey_corpus
from biasspark.errors import Fault, InputError, NoRows
from biasspark.workflows.corpus_job import describe_no_rows
from tests.harness.least_configuration import raised_fault
from tests.harness.small_corpora import RUN_DATE, corpus_of, examples_of, explained, measures_of, read

pytestmark = pytest.mark.spark("how Spark reads files and tables")


@pytest.mark.parametrize(
    "kind", ["parquet", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("orc", "json")), "csv"]
)
def test_formats(spark: SparkSession, formats: Path, kind: str) -> None:
    rows = read(spark, formats / kind, format=kind)
    assert sorted(float(row.s) for row in rows.collect()) == [n / 8 for n in range(6)]
    if kind == "csv":  # nothing is guessed from values: a bad one would change the type of all
        assert {name for _, name in rows.drop(MALFORMED).dtypes} == {"string"}
        examples = examples_of(rows.orderBy("id"), measures_of())
        assert examples.labels == [True, False] * 3
        assert examples.scores == [n / 8 for n in range(6)]
        assert examples.states == {"u": [True] * 6}


def test_values_stay_in_their_rows_where_a_filter_skips_pages(spark: SparkSession, tmp_path: Path) -> None:
    """Spark pairs values of different rows in such a file, unless it is kept from skipping pages."""
    rows = [{"id": number, "s": number / 7, "y": number % 3 == 0, "b": number // 5 % 2 == 0} for number in range(40)]
    table = pa.Table.from_pylist(
        rows, pa.schema({"id": pa.int32(), "s": pa.float64(), "y": pa.bool_(), "b": pa.bool_()})
    )
    encodings = {"id": "DELTA_BINARY_PACKED", "b": "RLE", "s": "PLAIN", "y": "PLAIN"}
    options = {"use_dictionary": False, "data_page_size": 64, "write_batch_size": 1, "write_page_index": True}
    pq.write_table(table, tmp_path / "rows.parquet", column_encoding=encodings, **options)
    read_rows = read(spark, tmp_path, filter="b IS NOT FALSE").orderBy("id").collect()
    assert [row.asDict() for row in read_rows] == [row for row in rows if row["b"]]


def test_csv_with_quotes_and_line_ends_in_a_text(spark: SparkSession, tmp_path: Path) -> None:
    texts = ['she said "no", twice', "two\nlines, and\r\na third", '"', "", 'a \\ and "quotes"', "plain"]
    with (tmp_path / "rows.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("text", "y", "s", "u"), *((text, "true", n, 1) for n, text in enumerate(texts))])
    for kind in ("csv", "CSV"):
        rows = read(spark, tmp_path, format=kind)
        by_score = {int(row.s): row.text for row in rows.collect()}
        assert by_score == dict(enumerate([text.replace("\r\n", "\n") or None for text in texts]))
        assert examples_of(rows, measures_of()).labels == [True] * len(texts)
    lines = read(spark, tmp_path, format="csv", options={"multiline": "false"})
    assert lines.count() == len(texts) + 2


@pytest.mark.parametrize("name", ["a.b", "a b", "y-b", "length (b)"])
def test_a_column_with_a_sign_in_its_name_is_written_in_backquotes(spark: SparkSession, name: str) -> None:
    corpus = spark.createDataFrame([(True, 0.5, 1, 1)], f"y BOOLEAN, s DOUBLE, `{name}` INT, u INT")
    fault = raised_fault(InputError, check_schema, corpus, measures_of(slices={"x": f"{name} > 0"}))
    assert fault.path == ("slices", "x")
    assert f"`{name}`" in str(fault.fix)
    fault = raised_fault(InputError, check_schema, corpus, measures_of(slices={"x": f"`{name}` > uu"}))
    assert fault.fix == "Did you mean 'u'?"


@pytest.mark.parametrize("method", ["isna()", "str.len() > 3"])
def test_a_method_of_python_is_to_be_written_in_sql(spark: SparkSession, method: str) -> None:
    corpus = spark.createDataFrame([(True, 0.5, 0.5, 1)], "y BOOLEAN, s DOUBLE, s2 DOUBLE, u INT")
    fault = raised_fault(InputError, check_schema, corpus, measures_of(slices={"x": f"s.{method}"}))
    assert "IS NULL" in str(fault.fix)


def test_a_column_with_a_space_at_its_end_is_named_in_quotes(spark: SparkSession) -> None:
    corpus = spark.createDataFrame([(True, 0.5, 0.5, 1)], "y BOOLEAN, `s ` DOUBLE, s2 DOUBLE, u INT")
    fault = raised_fault(InputError, check_schema, corpus, measures_of())
    assert fault.fix == "Did you mean 's '?"
    assert "y, 's ', s2, u." in str(fault.rule)


def test_the_columns_of_csv_are_listed_if_a_configured_one_is_there(spark: SparkSession, formats: Path) -> None:
    fault = raised_fault(InputError, read, spark, formats / "csv", format="csv", run_date_column="dya", id="id")
    assert (fault.path, fault.value) == (("corpus", "run_date_column"), "dya")
    assert "It has: id, y, s, u, night, text, day, moment." in str(fault.rule)
    assert fault.fix == "Did you mean 'day'?"


# ---- the files of a run date


def write_dates(folder: Path, pattern: str) -> Path:
    """Write three dates of a file each, in partitions; those of the other dates have an empty file as well."""
    for day in (14, 15, 16):
        date_folder = folder / pattern.format(f"day=2026-01-{day}")
        date_folder.mkdir(parents=True)
        rows = {"id": [day, day + 1], "y": [True] * 2, "s": [0.5] * 2, "u": [1.0] * 2}
        pq.write_table(pa.table(rows), date_folder / "rows.parquet")
        if day != RUN_DATE.day:
            (date_folder / "torn.parquet").touch()
    return folder


@pytest.mark.parametrize(
    "pattern", [*(pytest.param(place, marks=pytest.mark.slow) for place in ("{}", "lang=en/{}")), "lang=en/{}/hour=3"]
)
def test_only_the_files_of_the_run_date_are_listed(spark: SparkSession, tmp_path: Path, pattern: str) -> None:
    """So a date costs what it did among few others, and their files cannot stop it."""
    source = corpus_of(path=str(write_dates(tmp_path / "rows", pattern)), run_date_column="day")
    rows = read_corpus(spark, source, RUN_DATE)
    (name,) = rows.inputFiles()
    assert Path(name).parent.name == pattern.format("day=2026-01-15").rpartition("/")[2]
    assert sorted((row.id, str(row.day)) for row in rows.collect()) == [(15, str(RUN_DATE)), (16, str(RUN_DATE))]
    with pytest.raises(InputError, match=r"1 file .*day=2026-01-16"):
        read_corpus(spark, source, date(2026, 1, 16))


@pytest.mark.parametrize("value", ["2026-1-15", "2026-01-15 03%3A00%3A00"])
def test_a_folder_may_write_the_run_date_otherwise(spark: SparkSession, tmp_path: Path, value: str) -> None:
    write_dates(tmp_path, "{}")
    shutil.copytree(tmp_path / "day=2026-01-15", tmp_path / f"day={value}")
    assert read(spark, tmp_path, run_date_column="day").count() == 4


def test_a_table_with_a_log_lists_its_files_itself(spark: SparkSession, tmp_path: Path) -> None:
    """Some of those in its folder are removed ones."""
    assert list_files(spark, corpus_of(path=str(tmp_path), format="DELTA"), RUN_DATE) == ([], str(tmp_path))


def test_a_temporary_view_and_a_table(spark: SparkSession, formats: Path) -> None:
    rows = spark.read.parquet(str(formats / "parquet"))
    rows.createOrReplaceTempView("comments")
    rows.write.mode("overwrite").saveAsTable("comments_of_a_test")
    try:
        for table in ("comments", "spark_catalog.default.comments_of_a_test"):
            assert read(spark, table=table).count() == 6
    finally:
        spark.sql("DROP TABLE comments_of_a_test")


# ---- dates without rows

DAYS = ("2026-01-10", "2026-01-14", "2026-01-20")


def write_days(spark: SparkSession, folder: Path, kind: str) -> dict[str, str]:
    """Write two rows of each day, with the day as a partition or a column, and some of none; return the source."""
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


@pytest.mark.parametrize(
    "kind",
    [
        *("partition", "string"),
        *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("date", "timestamp", "csv", "json")),
    ],
)
def test_a_date_without_rows_names_dates_that_have_some(
    spark: SparkSession, partitions: dict[str, str], tmp_path: Path, kind: str
) -> None:
    """The first, the last and the nearest; nothing but dates is shown of the column."""
    written = partitions if kind == "partition" else write_days(spark, tmp_path, kind)
    source = corpus_of(**written, run_date_column="day")
    with pytest.raises(NoRows):
        survey_corpus(read_corpus(spark, source, RUN_DATE, measures_of()), measures_of())
    fault = str(fault_without_rows(spark, source, RUN_DATE))
    assert re.findall(r"\d{4}-\d\d-\d\d", fault) == [str(RUN_DATE), DAYS[0], DAYS[-1], DAYS[1]]
    assert "secret" not in fault
    assert str(fault_without_rows(spark, source, date(2027, 1, 1))).count(DAYS[-1]) == 2


@pytest.fixture(scope="module")
def partitions(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return write_days(spark_session, tmp_path_factory.mktemp("days"), "partition")


def fault_without_rows(spark: SparkSession, source: Corpus, run_date: date = RUN_DATE) -> Fault:
    return describe_no_rows(source, run_date, lambda: list_row_dates(spark, source))


@pytest.mark.parametrize(
    ("chosen", "run_date", "dates"),
    [
        ("id % 3 < 2", "2026-01-15", ["2026-01-10", "2026-01-14", "2026-01-14"]),
        ("id > 100", "2026-01-14", []),
        ("1 / (id - id) > 0", "2026-01-15", []),
    ],
    ids=["of some", "of none", "fails"],
)
def test_the_dates_that_the_filter_leaves_are_named(
    spark: SparkSession, partitions: dict[str, str], chosen: str, run_date: str, dates: list[str]
) -> None:
    source = corpus_of(**partitions, run_date_column="day", filter=chosen)
    fault = fault_without_rows(spark, source, date.fromisoformat(run_date))
    assert fault.path == ("corpus", "run_date_column")
    assert re.findall(r"\d{4}-\d\d-\d\d", str(fault.rule)) == [run_date, *dates]


def test_a_text_that_is_no_date_is_not_shown(spark: SparkSession) -> None:
    spark.createDataFrame([("15.01.2026",), (None,)], "day STRING").createOrReplaceTempView("no_days")
    fault = fault_without_rows(spark, corpus_of(table="no_days", run_date_column="day"))
    assert ("YYYY-MM-DD" in str(fault), "15.01" in str(fault)) == (True, False)


def test_the_filter_of_a_csv_compares_numbers_on_other_dates_too(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("y,age,hours,day\ntrue,10,9,2026-01-10\n")
    source = corpus_of(path=str(tmp_path), format="csv", run_date_column="day", filter="age > hours")
    assert "2026-01-10" in str(fault_without_rows(spark, source).rule)


@pytest.mark.parametrize("configured", [{"table": "none"}, {"path": "/none"}, {"filter": "a > 1"}])
def test_without_a_run_date_column_only_what_is_configured_is_named(
    spark: SparkSession, configured: dict[str, str]
) -> None:
    fault = fault_without_rows(spark, corpus_of(**({"path": "/none"} if "filter" in configured else {}) | configured))
    assert {fault.path[-1]: fault.value} == configured
    assert "date" not in str(fault)


# ---- the rows of a run date


@pytest.mark.parametrize(
    "column", ["day", *(pytest.param(name, marks=pytest.mark.slow) for name in ("moment", "night"))]
)
def test_only_the_rows_of_the_run_date(spark: SparkSession, formats: Path, column: str) -> None:
    rows = read(spark, formats / "parquet", run_date_column=column)
    assert sorted(row.id for row in rows.collect()) == [0, 1, 5]


def test_a_text_without_a_date_has_no_run_date(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("2026-01-15",), ("2026-01-15 03:00:00",), ("January",), (None,)], "night STRING")
    frame.createOrReplaceTempView("nights")
    assert read(spark, table="nights", run_date_column="night").count() == 2


@pytest.mark.parametrize("kind", ["TIMESTAMP", "TIMESTAMP_NTZ", "STRING"])
def test_a_date_begins_and_ends_at_midnight_of_the_session(spark: SparkSession, kind: str) -> None:
    """Which is UTC in jobs; a time without a zone, and a text, are of the day that they name."""
    moments = ["2026-01-14 23:59:59.999999", "2026-01-15 00:00:00", "2026-01-15 23:59:59.999999", "2026-01-16 00:00:00"]
    if kind == "STRING":
        moments.append("2026-01-15 23:30:00-05:00")  # another day in UTC
    frame = spark.createDataFrame(enumerate(moments), "id INT, moment STRING")
    frame.withColumn("moment", F.col("moment").cast(kind)).createOrReplaceTempView("moments")
    rows = read(spark, table="moments", run_date_column="moment")
    assert sorted(row.id for row in rows.select("id").collect()) == ([1, 2, 4] if kind == "STRING" else [1, 2])


@pytest.mark.parametrize(
    ("column", "kind"),
    [("id", "int"), *(pytest.param(*pair, marks=pytest.mark.slow) for pair in (("y", "boolean"), ("s", "double")))],
)
def test_a_run_date_column_that_holds_no_dates(spark: SparkSession, formats: Path, column: str, kind: str) -> None:
    fault = raised_fault(InputError, read, spark, formats / "parquet", run_date_column=column)
    assert (fault.path, fault.value) == (("corpus", "run_date_column"), column)
    assert f"of type {kind}" in str(fault.rule)


def test_a_filter_and_the_run_date_together(spark: SparkSession, formats: Path) -> None:
    rows = read(spark, formats / "parquet", filter="s > 0.1", run_date_column="day")
    assert sorted(row.id for row in rows.collect()) == [1, 5]


def test_text_is_read_only_where_it_is_needed(spark: SparkSession, formats: Path) -> None:
    corpus = spark.read.parquet(str(formats / "parquet"))
    without = measures_of()
    with_slice = measures_of(slices={"short": "length(text) < 9"})
    with_terms = measures_of(identities={"terms": {"column": "text", "list": ["text"]}})
    columns = []
    for measures in (without, with_slice, with_terms):
        examples = encode_examples(corpus, measures, build_encoding(measures, Survey(1, {}, ())), "id")
        [schema] = re.findall(r"ReadSchema: struct<(.*?)>", explained(examples))
        columns.append({column.split(":")[0] for column in schema.split(",")})
        assert dict(examples.dtypes).get("text") is None
    assert columns == [{"id", "y", "s", "u"}, {"id", "y", "s", "u", "text"}, {"id", "y", "s", "text"}]
