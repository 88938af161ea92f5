"""Directories of Parquet files: rows written into a new one, read from some, and what columns they have.

Small tables are Arrow: this process writes and reads their files itself where it sees the same folders as the session,
without a Spark job. Elsewhere Spark does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import date
from functools import partial, reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark.sql.functions as F
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from biasspark.errors import has_condition
from biasspark.files import list_folder, replace_local_file, shared_folder
from biasspark.session import is_embedded
from biasspark.tables.frames import to_frame
from biasspark.tables.schema_check import PARTITION, column_types
from biasspark.tables.schemas import Table
from biasspark.tables.spark_schemas import spark_schema
from biasspark.tables.storage_errors import storage_errors

_ABSENT = ("PATH_NOT_FOUND", "TABLE_OR_VIEW_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA", "DELTA_TABLE_NOT_FOUND")
_SCHEMA_FOR_SPARK = "org.apache.spark.sql.parquet.row.metadata"


@contextmanager
def absence(table: Table) -> Iterator[None]:
    """Raise `FileNotFoundError` where Spark says that a path or a table is not there."""
    try:
        yield
    except AnalysisException as error:
        if has_condition(error, *_ABSENT):
            raise FileNotFoundError(table.name) from error
        raise


def read_types(spark: SparkSession, path: str) -> dict[str, str] | None:
    """Return the columns of the Parquet files under a path, None where there are none."""
    if folder := shared_folder(spark, path):
        for file in find_data_files(folder):
            with storage_errors(str(file), "read"):
                return column_types(pq.read_schema(file))
        return None
    try:
        return column_types(spark.read.parquet(path).schema)
    except AnalysisException as error:
        if has_condition(error, *_ABSENT):
            return None
        raise


def list_visible(folder: Path) -> list[Path]:
    """Return what Spark sees in a folder of this machine, sorted; nothing where there is no folder.

    Raises `InputError` if this user may not read the folder, which ``Path.glob`` takes for an empty one, or not enter
    one above it.
    """
    with storage_errors(str(folder), "read"), suppress(FileNotFoundError, NotADirectoryError):
        return sorted(path for path in folder.iterdir() if not path.name.startswith(("_", ".")))
    return []


def find_data_files(folder: Path) -> Iterator[Path]:
    """Yield the Parquet files under a folder of this machine. Raises as ``list_visible``."""
    for path in list_visible(folder):
        if path.suffix == ".parquet":
            yield path
        elif path.is_dir():
            yield from find_data_files(path)


def write_directory(spark: SparkSession, table: Table, rows: pa.Table | DataFrame, path: str) -> None:
    """Write rows into a directory that is not there yet."""
    with storage_errors(path, "written"):
        if isinstance(rows, DataFrame):
            _write_files(rows, path)
            if not is_embedded(spark) or list_folder(spark, path):
                return
            rows = table.full_arrow_schema.empty_table()  # of no rows the embedded engine writes no file
        if folder := shared_folder(spark, path):
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir()
            replace_local_file(folder / "part-00000.parquet", _encode(table, rows))
        else:
            _write_files(to_frame(spark, rows, spark_schema(table)), path)


def _write_files(rows: DataFrame, path: str) -> None:
    # Spark Connect knows errorifexists by its other name alone. What is whole is told by the ledger, not by a file
    # _SUCCESS in each directory.
    writer = rows.drop(*PARTITION).write.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
    writer.mode("error").parquet(path)


def stored_fields(table: Table) -> list[StructField]:
    """Return the columns that the files of a table have: those of partitions are in the names of directories."""
    return [field for field in spark_schema(table) if field.name not in PARTITION]


def _encode(table: Table, rows: pa.Table) -> bytes:
    """Return rows as a Parquet file, with what Spark reads comments from, and the checksums that it verifies."""
    columns = StructType(stored_fields(table))
    stored = rows.drop_columns(list(PARTITION)).replace_schema_metadata({_SCHEMA_FOR_SPARK: columns.json()})
    content = pa.BufferOutputStream()
    pq.write_table(stored, content, write_page_checksum=True)
    return bytes(content.getvalue().to_pybytes())


def read_files(table: Table, folders: Iterable[Path], *, skip_missing: bool = False) -> pa.Table:
    """Return the rows of a table in the directories of some runs; columns that files lack are NULL.

    Raises `FileNotFoundError` if a directory has no file, unless such are skipped; `InputError` if this user may not
    read a directory or a file; `BiasSparkError` if a file cannot be read, or is not as it was written.
    """
    parts: list[pa.Table] = []
    for folder in folders:
        files = [path for path in list_visible(folder) if path.suffix == ".parquet"]
        if not (files or skip_missing):
            raise FileNotFoundError(str(folder))
        run_date = date.fromisoformat(folder.parent.name.removeprefix("run_date="))
        partition = {"run_date": run_date, "run_id": folder.name.removeprefix("run_id=")}
        parts += [read_file(table, file, partition) for file in files]
    return join_files(table, parts)


def read_file(table: Table, file: Path, partition: Mapping[str, object]) -> pa.Table:
    """Return the rows of a file, with what the log or the directory gives; columns that it lacks are missing."""
    schema = table.full_arrow_schema
    with storage_errors(str(file), "read"):
        rows = pq.ParquetFile(file, page_checksum_verification=True).read()
    columns = {name: rows[name] for name in schema.names if name in rows.column_names}
    for name, values in columns.items():
        if "_view" in str(values.type):  # as delta-rs compacts texts
            columns[name] = values.cast(schema.field(name).type)
    columns |= {name: pa.array([value] * len(rows), schema.field(name).type) for name, value in partition.items()}
    return pa.table(columns)


def join_files(table: Table, parts: Sequence[pa.Table]) -> pa.Table:
    """Return the rows of files, in the columns of the table; those that files lack are NULL."""
    empty = table.full_arrow_schema.empty_table()
    return pa.concat_tables([empty, *parts], promote_options="permissive").cast(empty.schema)


def collect_tables(frames: Mapping[Table, DataFrame]) -> dict[Table, pa.Table]:
    """Collect small tables by one job: the union of their rows, each a struct in the column of its table."""
    if not frames:
        return {}
    structs = [frame.select(F.struct(*table.names).alias(table.name)) for table, frame in frames.items()]
    union = reduce(partial(DataFrame.unionByName, allowMissingColumns=True), structs)
    rows = union.collect()
    values = {table: [row[table.name].asDict() for row in rows if row[table.name] is not None] for table in frames}
    return {table: pa.Table.from_pylist(of_table, table.full_arrow_schema) for table, of_table in values.items()}
