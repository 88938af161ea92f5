"""Paths, files, tables and rows that are missing, damaged, of other types, or none that can be used."""

from __future__ import annotations

import shutil
from itertools import permutations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from biasspark.corpus.survey import survey_corpus
from biasspark.errors import InputError
from tests.harness.small_corpora import (
    cell_sizes,
    fault_of,
    faults_of,
    holds,
    measure_corpus,
    measures_of,
    read,
    read_and_rank,
)
from tests.harness.spark_effort import IS_3_5, watch

pytestmark = pytest.mark.spark("how Spark reads files")

CORRUPT = "corrupt"
OTHER_TYPE = "another type"
COLUMNS = ("id", "id % 2 = 0 AS y", "cast(id / 8.0D AS {}) AS s", "1.0D AS u")


def write_parts(spark: SparkSession, folder: Path, *kinds: str) -> list[Path]:
    """Write the same rows to a partition for each type of the scores; return the file of each."""
    for number, kind in enumerate(kinds):
        rows = spark.range(6).selectExpr(*(column.format(kind) for column in COLUMNS))
        rows.coalesce(1).write.parquet(str(folder / f"part={number}"))
    return [next((folder / f"part={number}").glob("*.parquet")) for number in range(len(kinds))]


def test_a_column_that_nothing_reads_may_be_broken(spark: SparkSession, tmp_path: Path) -> None:
    """Neither survey nor ranking looks at `text`, which is text in one file and a number in the other."""
    for number, kind in enumerate(("STRING", "INT")):
        columns = ("id % 2 = 0 AS y", "id / 10.0D AS s", "1.0D AS u", f"cast(id AS {kind}) AS text")
        spark.range(10).selectExpr(*columns).coalesce(1).write.parquet(str(tmp_path / f"rows/part={number}"))
    corpus = read(spark, tmp_path / "rows")
    assert cell_sizes(measure_corpus(corpus, measures_of()))["(overall)"] == (10, 10)
    with pytest.raises(InputError) as caught:
        measure_corpus(corpus, measures_of(slices={"x": "text = '3'"}))
    [file] = (tmp_path / "rows" / "part=1").glob("*.parquet")
    assert holds(str(caught.value), OTHER_TYPE, " text, INT32 for string.", f" {file}.")


def test_a_missing_path(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "nowhere"
    assert holds(fault_of(spark, path), path, "nothing")


def test_an_empty_folder(spark: SparkSession, tmp_path: Path) -> None:
    assert holds(fault_of(spark, tmp_path), tmp_path, "no data files")


@pytest.mark.parametrize("kind", ["parquet", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("csv", "json"))])
def test_files_of_no_bytes_are_named(spark: SparkSession, formats: Path, tmp_path: Path, kind: str) -> None:
    """Spark skips them in silence: a copy that failed would look like a small run."""
    rows = tmp_path / "rows"
    shutil.copytree(formats / kind, rows)
    for name in ("b", "a"):
        (rows / f"{name}.{kind}").touch()
    fault = fault_of(spark, rows, format=kind)
    assert holds(fault, rows, "2 files", f"{rows}/a.{kind}, {rows}/b.{kind}.")


def test_columns_that_differ_only_in_case(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({name: [1.0] for name in ("y", "s", "S", "u")}), tmp_path / "a.parquet")
    assert holds(fault_of(spark, tmp_path), tmp_path, "same name")


# ---- files of another format, and corrupt ones


@pytest.mark.parametrize(
    ("log", "kind"), [("_delta_log/0.json", "delta"), (".hoodie/x", "hudi"), ("metadata/v1.metadata.json", "iceberg")]
)
@pytest.mark.parametrize("data", ["", "data/part=1"])
def test_a_table_with_a_log_is_not_read_as_its_files(
    spark: SparkSession, few_rows: Path, tmp_path: Path, *, log: str, kind: str, data: str
) -> None:
    """Those of deleted rows are among them."""
    shutil.copytree(few_rows, tmp_path / "table" / data)
    (tmp_path / "table" / log).parent.mkdir()
    (tmp_path / "table" / log).write_text("{}", encoding="utf-8")
    for path in (tmp_path / "table", tmp_path / "table" / data, f"{tmp_path}/*"):
        words = f"{tmp_path}/table", f"{kind.capitalize()} table", f'[corpus] format = "{kind}"'
        assert holds(fault_of(spark, path), *words)


@pytest.mark.parametrize("kind", ["parquet", pytest.param("orc", marks=pytest.mark.slow)])
def test_garbage(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    (tmp_path / f"rows.{kind}").write_bytes(b"secret" * 1000)
    fault = fault_of(spark, tmp_path, format=kind)
    assert holds(fault, tmp_path, CORRUPT, f" {tmp_path}/rows.{kind}.")


@pytest.mark.parametrize(
    ("written", "configured"),
    [
        pytest.param(*pair, marks=() if "parquet" in pair else pytest.mark.slow)
        for pair in permutations(("parquet", "orc", "json", "csv"), 2)
    ],
)
def test_files_of_another_format_than_is_configured(
    spark: SparkSession, formats: Path, tmp_path: Path, written: str, configured: str
) -> None:
    """Whatever their names are."""
    [file] = (file for file in (formats / written).iterdir() if file.suffix == f".{written}")
    shutil.copy(file, tmp_path / "a file")
    fault = fault_of(spark, tmp_path, measures_of(), format=configured)
    assert holds(fault, tmp_path, "format")


def test_garbage_next_to_good_files(spark: SparkSession, few_rows: Path, tmp_path: Path) -> None:
    shutil.copytree(few_rows, tmp_path / "rows")
    (tmp_path / "rows" / "zzz.parquet").write_bytes(b"secret" * 1000)
    fault = fault_of(spark, tmp_path / "rows", schema="id BIGINT, y BOOLEAN, s DOUBLE, u DOUBLE")
    assert holds(fault, CORRUPT, f" {tmp_path}/rows/zzz.parquet.")


@pytest.mark.parametrize("has_checksum", [False, True])
def test_a_file_that_was_cut_short(spark: SparkSession, few_rows: Path, tmp_path: Path, has_checksum: bool) -> None:
    shutil.copytree(few_rows, tmp_path / "rows")
    [file] = (tmp_path / "rows").glob("*.parquet")
    file.write_bytes(file.read_bytes()[:-20])
    if not has_checksum:
        (file.parent / f".{file.name}.crc").unlink()
    assert holds(fault_of(spark, tmp_path / "rows"), f"{tmp_path}/rows", CORRUPT, f" {file}.")


# ---- files of other types


@pytest.mark.parametrize(
    ("kinds", "source", "words"),
    [
        pytest.param(
            ("DOUBLE", "STRING"),
            {"schema": "y BOOLEAN, s DOUBLE, u DOUBLE"},
            " s, BINARY for double.",
            id="read",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            ("DOUBLE", "STRING"),
            {"options": {"mergeSchema": "true"}},
            "",
            id="merged",
            marks=pytest.mark.slow,
        ),
        # The first file is the narrower one: Spark 4 reads both as the wider one of a schema.
        pytest.param(("FLOAT", "DOUBLE"), {}, " s, DOUBLE for float.", id="wider"),
    ],
)
def test_files_of_different_types(
    spark: SparkSession, tmp_path: Path, kinds: tuple[str, str], source: dict[str, Any], words: str
) -> None:
    _, file = write_parts(spark, tmp_path / "rows", *kinds)
    fault = fault_of(spark, tmp_path / "rows", **source)
    assert holds(fault, OTHER_TYPE, words, *([] if "options" in source else [f" {file}."]))
    if kinds[0] == "FLOAT" and not IS_3_5:
        read_and_rank(spark, tmp_path / "rows", schema="y BOOLEAN, s DOUBLE, u DOUBLE")


def test_an_option_with_a_value_that_its_reader_refuses(spark: SparkSession, few_rows: Path, tmp_path: Path) -> None:
    """Options are named without their values, since one may be a password."""
    shutil.copytree(few_rows, tmp_path / "rows")
    (fault,) = faults_of(spark, tmp_path / "rows", options={"mergeSchema": "perhaps", "user": "Ada"})
    assert fault.path == ("corpus", "options")
    assert "mergeSchema, user" in str(fault.rule)
    assert "perhaps" not in str(fault)


def test_a_format_that_does_not_exist(spark: SparkSession, formats: Path) -> None:
    fault = fault_of(spark, formats / "parquet", format="parkett")
    assert holds(fault, " parkett.", " parquet?")


def test_a_missing_table(spark: SparkSession) -> None:
    with pytest.raises(InputError, match="table no_such_table"):
        read(spark, table="no_such_table")


# ---- ids


@pytest.mark.classic("Spark Connect does not say what its jobs read")
def test_no_task_gathers_every_value_of_a_column_of_ids(spark: SparkSession) -> None:
    """They are cut to what may be before they come together."""
    corpus = spark.range(240_000, numPartitions=8).selectExpr("true AS y", "0.5D AS s", "id AS many")
    with watch(spark, 240_000) as effort, pytest.raises(InputError, match="10,000"):
        survey_corpus(corpus, measures_of(identities={"categorical": ["many"]}))
    gathered, _ = effort.shuffled_bytes[-1]
    assert gathered < max(written for _, written in effort.shuffled_bytes) / 2
