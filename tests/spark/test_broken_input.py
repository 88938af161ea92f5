"""Paths, files, tables and rows that are missing, damaged, of other types, or none that can be used."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from biasspark.corpus.source import read_corpus
from biasspark.corpus.survey import survey_corpus
from biasspark.errors import InputError
from biasspark.pipeline import measure, ranked_once
from tests.small_corpora import NIGHT, corpus_of, fault_of, measures_of, read_and_rank, write_rows
from tests.spark_versions import IS_3_5

NAN = math.nan
CORRUPT = "a file cannot be read. It is corrupt or of another format. Replace it."
OTHER_TYPE = (
    "a column has another type in one file than in others. Write those of the wrong type anew, or have Spark 4 "
    "read numbers as the wider type by a `schema`."
)


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


def test_a_missing_path(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "nowhere"
    assert fault_of(spark, path) == f"corpus: path {path}: there is nothing at this path. Check the path."


def test_an_empty_folder(spark: SparkSession, tmp_path: Path) -> None:
    fault = fault_of(spark, tmp_path)
    assert fault == f"corpus: path {tmp_path}: there are no data files here. Check the path and the format."


@pytest.mark.parametrize("kind", ["parquet", "csv", "json"])
def test_files_of_no_bytes_are_named(spark: SparkSession, formats: Path, tmp_path: Path, kind: str) -> None:
    """Spark passes over them in silence: a copy that failed would look like a small night."""
    shutil.copytree(formats / kind, tmp_path / "rows")
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


@pytest.mark.parametrize("configured", ["parquet", "orc", "json", "csv"])
@pytest.mark.parametrize("written", ["parquet", "orc", "json", "csv"])
def test_files_of_another_format_than_is_configured(
    spark: SparkSession, formats: Path, tmp_path: Path, written: str, configured: str
) -> None:
    """Whatever their names are: the file is named, and the format that it seems to have."""
    [file] = (file for file in (formats / written).iterdir() if file.suffix == f".{written}")
    shutil.copy(file, tmp_path / "a file")
    if written == configured:
        read_and_rank(spark, tmp_path, format=configured)
        return
    fault = fault_of(spark, tmp_path, format=configured)
    assert fault.startswith(f"corpus: path {tmp_path}: {tmp_path}/a file is not a")
    assert f'`[corpus] format = "{written}"`' in fault


def test_csv_with_semicolons_read_as_parquet(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("id;y;s;u;text\n1;true;0.5;1;secret\n")
    fault = fault_of(spark, tmp_path)
    assert "is not a Parquet file" in fault
    assert '`[corpus] format = "csv"` and `options = { sep = ";" }`' in fault


def test_another_format_than_is_configured_with_a_schema(spark: SparkSession, tmp_path: Path) -> None:
    """No file is opened before the rows are read: then the name tells."""
    (tmp_path / "rows.csv").write_text("id,y,s,u\n1,true,0.5,secret\n")
    fault = fault_of(spark, tmp_path, schema="y BOOLEAN, s DOUBLE, u DOUBLE")
    assert f"{tmp_path}/rows.csv" in fault
    assert '`[corpus] format = "csv"`' in fault


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


def test_a_format_that_is_none(spark: SparkSession, formats: Path) -> None:
    path = formats / "parquet"
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


def test_no_rows(spark: SparkSession, formats: Path) -> None:
    wanted = "corpus: no rows. The path, the filter and the run date leave nothing to measure. Check them."
    assert fault_of(spark, formats / "parquet", filter="id > 100") == wanted


def test_no_row_that_can_be_used(spark: SparkSession) -> None:
    rows = [(None, 0.5, 1.0), (None, 0.5, 1.0), (True, None, 1.0), (False, NAN, None)]
    corpus = spark.createDataFrame(rows, "y BOOLEAN, s DOUBLE, u DOUBLE")
    with pytest.raises(InputError) as caught, ranked_once(measure(corpus, measures_of())):
        pass
    (fault,) = caught.value.faults
    assert fault.startswith("model s: none of its 2 scores in column 's' can be used (null_score 1, nan_score 1).")


def test_no_row_with_a_label(spark: SparkSession) -> None:
    corpus = spark.createDataFrame([(None, 0.5, 1.0), (None, None, 1.0)], "y BOOLEAN, s DOUBLE, u DOUBLE")
    with pytest.raises(InputError) as caught, ranked_once(measure(corpus, measures_of())):
        pass
    assert str(caught.value) == (
        "corpus: none of its 2 rows can be used (null_label 2). A row needs a label and a score. Check [label] and "
        "[models]."
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
