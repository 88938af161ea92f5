"""Files of a corpus that are damaged, differ from each other, or hold types that Spark does not read as they are."""

from __future__ import annotations

import datetime
import json
import shutil
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pyspark.sql.functions as F
import pytest
from pyspark.sql import SparkSession

from biasspark.config import Measures, parse_measures
from biasspark.corpus.encoding import RowCounts
from biasspark.errors import InputError
from biasspark.session.spark_errors import translate_spark_errors
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
from tests.harness.spark_effort import IS_3_5

pytestmark = pytest.mark.spark("how Spark reads files")

# ---- bits that flip


def column_bodies(file: Path) -> Iterator[tuple[int, int]]:
    """Yield where the data of each column lie, less the first bytes, which are the header of a page."""
    group = pq.ParquetFile(file).metadata.row_group(0)
    for number in range(group.num_columns):
        column = group.column(number)
        yield column.data_page_offset + 100, column.data_page_offset + column.total_compressed_size


def flip(source: Path, folder: Path, position: int, bit: int = 2) -> Path:
    content = bytearray(source.read_bytes())
    content[position] ^= 1 << bit
    folder.mkdir()
    (folder / "flipped.parquet").write_bytes(content)
    return folder


def sum_of(spark: SparkSession, folder: Path) -> int:
    """Read every value of a folder."""
    with translate_spark_errors("corpus"):
        rows = spark.read.parquet(str(folder))
        return int(rows.agg(F.sum(F.xxhash64(*rows.columns).cast("decimal(38,0)"))).collect()[0][0])


def assert_named(spark: SparkSession, folder: Path) -> None:
    with pytest.raises(InputError) as caught:
        sum_of(spark, folder)
    assert holds(str(caught.value), "corrupt", f" {folder}/flipped.parquet.")


def test_every_flipped_bit_is_found_where_pages_have_checksums(spark: SparkSession, tmp_path: Path) -> None:
    """One bit of a Parquet file that Spark wrote is flipped, in each column and at several places: the file is named
    and nothing is measured.

    Spark writes a checksum of each page.
    """
    spark.range(0, 3_000, 1, 1).selectExpr("id", "rand(3) AS s").write.parquet(str(tmp_path / "whole"))
    [file] = (tmp_path / "whole").glob("*.parquet")
    positions = [at for low, high in column_bodies(file) for at in np.linspace(low, high - 1, 2).astype(int)]
    for number, position in enumerate(positions):
        assert_named(spark, flip(file, tmp_path / f"flip-{number}", int(position), bit=number % 8))


@pytest.mark.parametrize("has_checksum", [True, False], ids=["with checksums", "without"])
def test_a_flipped_bit_cannot_be_found_where_the_writer_left_checksums_out(
    spark: SparkSession, tmp_path: Path, has_checksum: bool
) -> None:
    """One bit of a Parquet file is flipped, with and without page checksums: with them the file is named. Without them
    nothing shows it, as documented: one bit of a score makes another score.
    """
    (tmp_path / "whole").mkdir()
    table = pa.table({"s": np.random.default_rng(3).random(3_000)})
    file = tmp_path / "whole" / "a.parquet"
    plain: dict[str, Any] = {"use_dictionary": False, "compression": "none"}
    pq.write_table(table, file, write_page_checksum=has_checksum, **plain)
    [(low, high)] = column_bodies(file)
    folder = flip(file, tmp_path / "flipped", (low + high) // 2)
    if has_checksum:
        assert_named(spark, folder)
    else:
        assert sum_of(spark, folder) != sum_of(spark, tmp_path / "whole")


# ---- files that differ


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same ten rows with and without scores."""
    rows = {"id": range(10), "y": [n % 2 == 0 for n in range(10)], "s": [n / 8 for n in range(10)], "u": [1.0] * 10}
    folder = tmp_path_factory.mktemp("parts")
    whole = pa.table(rows)
    pq.write_table(whole, folder / "whole.parquet")
    pq.write_table(whole.drop_columns(["s"]), folder / "unscored.parquet")
    return {"whole": folder / "whole.parquet", "unscored": folder / "unscored.parquet"}


def lay_out(folder: Path, *files: Path) -> Path:
    for number, file in enumerate(files):
        (folder / f"part={number}").mkdir(parents=True)
        shutil.copy(file, folder / f"part={number}" / "a.parquet")
    return folder


def test_a_partition_without_the_score_is_counted_as_unscored(
    spark: SparkSession, parts: dict[str, Path], tmp_path: Path
) -> None:
    """A later partition lacks the column of a score: its rows count as `null_score`, and the others are measured."""
    folder = lay_out(tmp_path / "later", parts["whole"], parts["unscored"])
    assert read_and_rank(spark, folder) == RowCounts(20, 10, {"null_score": 10}, {"s": 10})


def test_where_the_first_partition_lacks_the_score_the_schemas_are_to_be_merged(
    spark: SparkSession, parts: dict[str, Path], tmp_path: Path
) -> None:
    """The first partition lacks the column of a score: the column is named and nothing is measured, or with
    `mergeSchema` the rows are counted as `null_score`.
    """
    folder = lay_out(tmp_path / "first", parts["unscored"], parts["whole"])
    (fault,) = faults_of(spark, folder, measures_of())
    assert fault.path == ("models", "s")
    assert "id, y, u, part" in str(fault.rule)
    assert "mergeSchema = true" in str(fault.fix)
    merged = read_and_rank(spark, folder, options={"mergeSchema": "true"})
    assert merged == RowCounts(20, 10, {"null_score": 10}, {"s": 10})


def test_files_that_would_not_be_read_are_named(spark: SparkSession, parts: dict[str, Path], tmp_path: Path) -> None:
    """Files lie both in a folder and in its partitions, or in folders that are no partitions, and Spark silently reads
    only some of them: the files that it would not read are named, and an option reads all.
    """
    folder = lay_out(tmp_path / "rows", parts["whole"])
    shutil.copy(parts["whole"], folder / "b.parquet")
    words = folder, "1 file ", "recursiveFileLookup = true"
    assert holds(fault_of(spark, folder), *words, f"{folder}/b.parquet.")
    (folder / "part=0").rename(folder / "plain")
    assert holds(fault_of(spark, folder), *words, f"{folder}/plain/a.parquet.")
    assert read_and_rank(spark, folder, options={"recursiveFileLookup": "true"}).n_rows == 20
    assert read_and_rank(spark, f"{folder}/*.parquet").n_rows == 10


def test_partitions_of_different_columns_are_refused(
    spark: SparkSession, parts: dict[str, Path], tmp_path: Path
) -> None:
    """Some folders are partitioned by day, others by day and hour: the path is refused."""
    for place in ("day=1", "day=2/hour=3"):
        (tmp_path / place).mkdir(parents=True)
        shutil.copy(parts["whole"], tmp_path / place / "a.parquet")
    assert holds(fault_of(spark, tmp_path), tmp_path, "different columns")


HEADER_FAULT = "header line", "enforceSchema = true"


@pytest.mark.parametrize("multiline", [pytest.param("true", marks=pytest.mark.slow), "false"])
@pytest.mark.parametrize("header", ["id,y,u,s", pytest.param("y,s,u", marks=pytest.mark.slow)])
def test_a_csv_file_with_another_header_line_is_named(
    spark: SparkSession, tmp_path: Path, header: str, multiline: str
) -> None:
    """A file of a CSV corpus has its columns in another order than the first file, or fewer columns: it is named. Spark
    would read each value by its position.

    Which file is the first, the file system decides.
    """
    values = {"id": "1", "y": "true", "s": "0.25", "u": "0.75"}
    for name, line in {"a": "id,y,s,u", "b": header}.items():
        row = ",".join(values[column] for column in line.split(","))
        (tmp_path / f"{name}.csv").write_text(f"{line}\n{row}\n{row.replace('true', 'false')}\n")
    options = {"multiLine": multiline}
    fault = fault_of(spark, tmp_path, format="csv", options=options)
    assert holds(fault, *HEADER_FAULT, f" {tmp_path}/")
    if header == "id,y,u,s":
        by_position = options | {"enforceSchema": "true"}
        assert read_and_rank(spark, tmp_path, format="csv", options=by_position).n_rows == 4
    (tmp_path / "a.csv").unlink()
    schema = "id STRING, y STRING, s STRING, u STRING"
    assert holds(fault_of(spark, tmp_path, format="csv", schema=schema), *HEADER_FAULT, f" {tmp_path}/b.csv.")


@pytest.mark.parametrize(
    "schema",
    [pytest.param(None, id="without schema", marks=pytest.mark.slow), "id INT, y BOOLEAN, s DOUBLE, u DOUBLE"],
)
def test_records_of_json_over_many_lines_are_refused(spark: SparkSession, tmp_path: Path, schema: str | None) -> None:
    """A JSON file holds one array over many lines, which Spark would read as rows of NULLs: the message names the
    option that reads it.
    """
    rows = [{"id": number, "y": number % 2 == 0, "s": number / 8, "u": 1.0} for number in range(6)]
    (tmp_path / "part=0").mkdir()
    (tmp_path / "part=0" / "a.json").write_text(json.dumps(rows, indent=2))
    fault = fault_of(spark, tmp_path, format="json", schema=schema)
    assert holds(fault, tmp_path, "multiLine = true")
    counts = read_and_rank(spark, tmp_path, format="json", schema=schema, options={"multiLine": "TRUE"})
    assert counts == RowCounts(6, 0, {}, {"s": 6})


def test_a_pattern_that_no_file_has(spark: SparkSession, parts: dict[str, Path]) -> None:
    """The path is a pattern that matches no file: the path is named."""
    path = parts["whole"].parent
    assert holds(fault_of(spark, f"{path}/*.nothing"), f"{path}/*.nothing: ")
    assert read_and_rank(spark, f"{path}/who*.parquet").n_rows == 10


# ---- types

N_ODD = 40
ODD_KINDS: dict[str, Any] = {
    "uint8": pa.array(range(N_ODD), pa.uint8()),
    "uint32": pa.array([2**32 - 1 - n for n in range(N_ODD)], pa.uint32()),
    "uint64": pa.array([2**64 - 1 - 2**12 * n for n in range(N_ODD)], pa.uint64()),
    "wide decimal": pa.array([Decimal(n) / 8 for n in range(N_ODD)], pa.decimal128(38, 10)),
    "narrow decimal": pa.array([Decimal(n) / 8 for n in range(N_ODD)], pa.decimal128(5, 3)),
    "dictionary": pa.array([str(n / 8) for n in range(N_ODD)]).dictionary_encode(),
}


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Scores of types that Parquet has and Spark has not, beside nested columns, bytes and INT96 times."""
    late = datetime.datetime(2026, 1, 15, 23, 59, 59, 999_999)
    rows = {
        "id": pa.array(range(N_ODD), pa.uint64()),
        "y": [n % 2 == 0 for n in range(N_ODD)],
        "u": pa.array([float(n % 3 == 0) for n in range(N_ODD)], pa.float32()),
        "nested": [{"a": {"b": [n]}} for n in range(N_ODD)],
        "map": pa.array([[("k", n)] for n in range(N_ODD)], pa.map_(pa.string(), pa.int32())),
        "blob": pa.array([b"\x00\xff"] * N_ODD, pa.binary(2)),
        "moment": pa.array([late] * (N_ODD - 1) + [late + datetime.timedelta(microseconds=1)], pa.timestamp("us")),
    }
    folder = tmp_path_factory.mktemp("odd")
    pq.write_table(pa.table(rows | ODD_KINDS), folder / "a.parquet", use_deprecated_int96_timestamps=True)
    return folder


def test_scores_of_every_type_of_number_are_ranked(spark: SparkSession, odd: Path) -> None:
    """Scores are unsigned, decimal, or dictionary-encoded text, next to nested columns, bytes and INT96 times: all are
    ranked alike.

    The one row after midnight, in UTC, is of the next date.
    """
    corpus = read(spark, odd, run_date_column="moment")
    measures = parse_measures({"label": {"column": "y"}, "models": list(ODD_KINDS), "identities": ["u"]})
    measurement = measure_corpus(corpus, measures, "id")
    statistics = measurement.statistics.table().to_pylist()
    two_u = {row["model"]: int(row["u_doubled"]) for row in statistics if row["identity"] == "(overall)"}
    rising = 2 * sum(n // 2 for n in range(0, N_ODD, 2))
    falling = 2 * 19 * 20 - rising
    assert two_u == dict.fromkeys(ODD_KINDS, rising) | {"uint32": falling, "uint64": falling}
    assert {cell_sizes(measurement, model)["(overall)"] for model in ODD_KINDS} == {(19, 20)}


def of_model(model: str) -> Measures:
    return parse_measures({"label": {"column": "y"}, "models": [model], "identities": ["u"]})


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        pytest.param(
            pa.array(np.arange(N_ODD, dtype="float16")),
            "FIXED_LEN_BYTE_ARRAY (FLOAT16)",
            id="half",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            pa.array([datetime.time(3)] * N_ODD, pa.time64("us")),
            "INT64 (TIME(MICROS,false))" if pyspark.__version__.startswith(("3.5.", "4.0.")) else "TIME",
            id="time of day",
        ),
    ],
)
def test_a_type_that_spark_lacks_is_named_and_can_be_left_out(
    spark: SparkSession, odd: Path, tmp_path: Path, kind: pa.Array, words: str
) -> None:
    """A column has a type that Spark cannot read (half precision, time of day): the type is named, and a `schema`
    without the column measures the others.

    A schema names the columns that are read, so another column may be of any type.
    """
    if IS_3_5 and pa.types.is_float16(kind.type):
        pytest.skip("Spark 3.5 cannot tell a file that holds half precision from a corrupt one")
    table = pq.read_table(odd / "a.parquet").drop_columns(["moment"]).append_column("odd", kind)
    pq.write_table(table, tmp_path / "a.parquet", version="2.6")
    fault = fault_of(spark, tmp_path).replace("MICROS,true", "MICROS,false")  # an older pyarrow takes them for UTC
    assert holds(fault, tmp_path, "type that Spark cannot read", f" {words}.")
    schema = "y BOOLEAN, u FLOAT, `wide decimal` DECIMAL(38,10)"
    counts = read_and_rank(spark, tmp_path, of_model("wide decimal"), schema=schema)
    assert counts.n_eligible == {"wide decimal": N_ODD}


def test_times_in_nanoseconds_are_whole_numbers(spark: SparkSession, odd: Path, tmp_path: Path) -> None:
    """Times are in nanoseconds, as pandas writes them: they are read as BIGINT, and a run date in them is refused."""
    late = datetime.datetime(2026, 1, 15, 23, 59, 59, 999_999)
    times = pa.array([late, None] * (N_ODD // 2), pa.timestamp("ns"))
    columns = {"time": times, "list": pa.array([[late]] * N_ODD, pa.list_(times.type))}
    table = pa.table({**columns, **{name: pq.read_table(odd / "a.parquet")[name] for name in ("id", "y", "u")}})
    pq.write_table(table, tmp_path / "a.parquet")
    nanoseconds = 1768521599999999000
    rows = read(spark, tmp_path, filter=f"time = {nanoseconds} AND list[0] = time")
    assert [rows.schema[name].dataType.simpleString() for name in columns] == ["bigint", "array<bigint>"]
    assert rows.count() == N_ODD // 2
    (fault,) = faults_of(spark, tmp_path, run_date_column="time")
    assert holds(str(fault), "of type bigint", "microseconds")


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("nested", "'nested' is of type struct<a:struct<b:array<bigint>>>"),
        ("blob", "'blob' is of type binary"),
        ("nested.a", f"It has: id, y, u, nested, map, blob, moment, {', '.join(ODD_KINDS)}."),
    ],
)
def test_a_score_that_is_no_number(spark: SparkSession, odd: Path, model: str, words: str) -> None:
    """A score is a structure, bytes, or a field within a structure: the column is named with its type."""
    (fault,) = faults_of(spark, odd, of_model(model))
    assert fault.path == ("models", model)
    assert words in str(fault.rule)
    assert ("field of 'nested'" in str(fault.fix)) == (model == "nested.a")
