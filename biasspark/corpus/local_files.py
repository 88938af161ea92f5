"""A corpus of files on the embedded engine, which silently reads some files in another way than Spark.

For a missing path or no files it returns no rows, a corrupt file fails without its name, columns come from all files
where Spark takes those of the first, and unknown options are ignored. So all files are inspected first: what would be
read differently is refused, and the rest is read with an explicit schema.
"""

from __future__ import annotations

import os
from base64 import b64decode
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark.sql.functions as F
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StringType, StructField, StructType

from biasspark.config import Corpus
from biasspark.corpus.converted_files import convert_files, read_parquet, temporary_folder
from biasspark.corpus.input_files import (
    OF_PATTERNS,
    is_no_header,
    list_skipped_files,
    refuse_empty,
    refuse_files_of_tables,
    refuse_other_format,
    refuse_skipped,
)
from biasspark.corpus.local_csv import (
    SEPARATORS,
    csv_schema,
    read_csv,
    read_header,
    refuse_other_headers,
    separator_of,
)
from biasspark.corpus.local_delta import VERSION, open_delta
from biasspark.corpus.values import column
from biasspark.delta_rs import is_installed
from biasspark.errors import ConfigError, Fault, InputError, KeyPath, redact
from biasspark.files import check_file_system, local_folder
from biasspark.session.spark_errors import condition_fault

_OPTIONS = ("mergeschema",)
_NULL = "__HIVE_DEFAULT_PARTITION__"
_OLD_TIMES = b"has times of 96 bits"
_UNSIGNED = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20)}
"""Arrow types, and the types as which Spark reads them."""


def read_local_files(spark: SparkSession, corpus: Corpus, run_date: date | None = None) -> DataFrame:
    """Return the rows of the files of a path. Lazy; files that the engine cannot read are converted when called.

    In a Delta table with a partition for each run date, those of other dates are left out.

    Raises
    ------
    ConfigError
        If the embedded engine does not read such a corpus.
    InputError
        If there is no such path, no data file, or a file that cannot be read.
    """
    if faults := list(_unsupported(corpus)):
        raise ConfigError(*faults)
    path = str(corpus.path)
    check_file_system(spark, ("corpus", "path"), path)
    root = local_folder(path)
    assert root is not None  # the check refuses others
    where = f"corpus: path {redact(path)}"
    if corpus.format.lower() == "delta":
        return _read_delta(spark, corpus, root, run_date)
    files = _list_files(root, where)
    refuse_empty([_name(file) for file in files if not file.stat().st_size], path)
    names = [_name(file) for file in files]
    refuse_files_of_tables(spark, names, path)
    folder = _Folder(root, files, _list_partitions(files, root, where))
    read = [_name(file) for file in files if len(_split(file, root)) == len(_folders(file, root))]
    refuse_skipped(list_skipped_files(names, read, folder.partitions), path)
    read_folder = _read_csv_folder if corpus.format.lower() == "csv" else _read_parquet_folder
    return _with_nulls(read_folder(spark, corpus, folder), folder)


class _Folder(NamedTuple):
    """Files below a path, and the partition columns given by folder names."""

    root: Path
    files: Sequence[Path]
    partitions: Sequence[str]


def _with_nulls(rows: DataFrame, folder: _Folder) -> DataFrame:
    """Replace the partition values that stand for NULL by NULL."""
    for name in {name for file in folder.files for name, value in _split(file, folder.root) if value == _NULL}:
        rows = rows.withColumn(name, F.nullif(column(name), F.lit(_NULL)))
    return rows


def _read_delta(spark: SparkSession, corpus: Corpus, root: Path, run_date: date | None) -> DataFrame:
    """Return the rows of the files in a Delta log, read through links to them in partition folders like Spark's."""
    table = open_delta(corpus, root, run_date)
    folder = _Folder(temporary_folder(), [], table.partitions)
    links = []
    for number, (file, values) in enumerate(table.files):
        texts = zip(table.partitions, values, strict=True)
        parts = (f"{name}={_NULL if text is None else quote(text, safe='')}" for name, text in texts)
        links.append(folder.root.joinpath(*parts, f"{number}.parquet"))
        links[-1].parent.mkdir(parents=True, exist_ok=True)
        links[-1].symlink_to(file)
    types = {field.name: from_arrow_type(field.type, prefer_timestamp_ntz=True) for field in table.schema}
    if not links:
        return spark.createDataFrame([], StructType([StructField(name, kind) for name, kind in types.items()]))
    folder = folder._replace(files=links)
    stored = pa.schema([field for field in table.schema if field.name not in table.partitions])
    rows = _with_nulls(_read_parquet_folder(spark, corpus, folder, stored), folder)
    typed = {name: column(name).cast(types[name]) for name in table.partitions}
    return rows.select(*(typed.get(name, column(name)).alias(name) for name in types))


def _read_parquet_folder(
    spark: SparkSession, corpus: Corpus, folder: _Folder, declared: pa.Schema | None = None
) -> DataFrame:
    """Return the rows of Parquet files; a log may declare the columns, and files may lack some of them."""
    where, root, files = f"corpus: path {redact(str(corpus.path))}", folder.root, folder.files
    with ThreadPoolExecutor() as pool:
        written = list(pool.map(_read_schema, files))
    schemas = [None if schema is None else pa.schema(map(_as_spark_reads, schema)) for schema in written]
    for file, schema in zip(files, schemas, strict=True):
        if schema is None:
            refuse_other_format(spark, corpus, _name(_target(file)))
            raise InputError(condition_fault(where, "CANNOT_READ_FILE_FOOTER", f"File: {_target(file)}."))
    merges = {key.lower(): value.lower() for key, value in corpus.options.items()}.get("mergeschema") == "true"
    if declared is None:
        merged = _merge(files, schemas, where, merges)
    else:
        merged = _merge([root, *files], [pa.schema(map(_as_spark_reads, declared)), *schemas], where, merges)
    schema = corpus.schema or _spark_schema(merged, folder.partitions, where)
    if _must_convert(written):
        root = convert_files(files, root, lambda file: _read_rows(file, merged, where), str(merged))
    return spark.read.schema(schema).parquet(str(root))


def _read_csv_folder(spark: SparkSession, corpus: Corpus, folder: _Folder) -> DataFrame:
    where, root, files = f"corpus: path {redact(str(corpus.path))}", folder.root, folder.files
    headers = [read_header(file, corpus) for file in files]
    if is_no_header(headers[0][0] if headers[0] else ""):
        refuse_other_format(spark, corpus, _name(files[0]))
    refuse_other_headers(files, headers, where)
    names = headers[0]
    schema = _spark_schema(csv_schema(names), folder.partitions, where)
    how = (corpus.id, corpus.run_date_column, separator_of(corpus))
    converted = convert_files(files, root, lambda file: read_csv(file, corpus, names), how)
    return spark.read.schema(schema).parquet(str(converted))


def _unsupported(corpus: Corpus) -> Iterator[Fault]:
    """Yield a fault for everything that the embedded engine would read in another way than Spark."""

    def fault(key: str, value: str, rule: str, fix: str) -> Fault:
        path: KeyPath = ("corpus", key)
        return Fault(path, value, f"The embedded engine {rule}.", f"{fix}, or run it on Spark.")

    if corpus.table is not None:
        yield fault("table", corpus.table, "has no catalog", "Name the `path` of the files")
        return
    is_csv, is_delta = corpus.format.lower() == "csv", corpus.format.lower() == "delta"
    if not is_csv and not is_delta and corpus.format.lower() != "parquet":
        yield fault("format", corpus.format, "reads Parquet, Delta and CSV", "Convert the files")
    if is_delta and not is_installed():
        yield fault("format", corpus.format, "reads it by deltalake", "Install it, pip install 'biasspark[delta]'")
    if is_delta and corpus.schema is not None:
        yield fault("schema", corpus.schema, "takes the columns of Delta from its log", "Remove the line")
    if is_csv and corpus.schema is not None:
        yield fault("schema", corpus.schema, "reads columns of CSV as text", "Remove the line")
    if is_csv and len(separator_of(corpus)) != 1:
        yield fault("options", separator_of(corpus), "reads CSV with one character as separator", "Write the file anew")
    if set(str(corpus.path)) & set(OF_PATTERNS):
        yield fault("path", redact(str(corpus.path)), "reads a file or a folder, and no pattern", "Name a folder")
    known = SEPARATORS if is_csv else VERSION if is_delta else _OPTIONS
    if unknown := sorted(name for name in corpus.options if name.lower() not in known):
        yield fault("options", ", ".join(unknown), f"has no such option of {corpus.format}", "Remove them")


def _list_files(root: Path, where: str) -> list[Path]:
    """Return the data files below a path, in order."""
    try:
        files = sorted(_data_files(root))
        denied = [file for file in files if not os.access(file, os.R_OK)]
    except FileNotFoundError:
        raise InputError(condition_fault(where, "PATH_NOT_FOUND")) from None
    except PermissionError as error:
        denied = [Path(error.filename)]
    if denied:
        raise InputError(condition_fault(where, "ACCESS_DENIED", f"Path: {denied[0]}."))
    if not files:
        raise InputError(condition_fault(where, "UNABLE_TO_INFER_SCHEMA"))
    return files


def _data_files(root: Path) -> Iterator[Path]:
    """Yield the files below a path that Spark does not ignore as hidden."""
    if root.is_file():
        yield root
        return
    for entry in os.scandir(root):
        if entry.name.startswith(".") or (entry.name.startswith("_") and "=" not in entry.name):
            continue
        if entry.is_dir():
            yield from _data_files(Path(entry.path))
        else:
            yield Path(entry.path)


def _name(file: Path) -> str:
    """Return the URI of a file, escaped."""
    return f"file:{quote(str(file))}"


def _target(file: Path) -> Path:
    """Return the user's file, as the file read may be a link to it."""
    return file.readlink() if file.is_symlink() else file


def _folders(file: Path, root: Path) -> tuple[str, ...]:
    return file.relative_to(root).parts[:-1]


def _split(file: Path, root: Path) -> list[tuple[str, str]]:
    """Return the columns that the folders between a path and a file give, each with its value."""
    parts = (folder.partition("=") for folder in _folders(file, root))
    return [(name, value) for name, sign, value in parts if sign]


def _list_partitions(files: Sequence[Path], root: Path, where: str) -> list[str]:
    """Return the partition columns, which are the same for all files except those in higher folders."""
    names = [[name for name, _ in _split(file, root)] for file in files]
    deepest = max(names, key=len)
    if any(of_file != deepest[: len(of_file)] for of_file in names):
        raise InputError(condition_fault(where, "CONFLICTING_PARTITION_COLUMN_NAMES"))
    return deepest


def _read_schema(file: Path) -> pa.Schema | None:
    """Return the Arrow schema of a file; None if it is not Parquet."""
    try:
        footer = pq.read_metadata(file)
        schema = pq.read_schema(file)
        arrow = (footer.metadata or {}).get(b"ARROW:schema")
        of_arrow = pa.ipc.read_schema(pa.py_buffer(b64decode(arrow))) if arrow else schema
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError):
        return None
    of_old_times = {
        leaf.path for leaf in map(footer.schema.column, range(footer.num_columns)) if leaf.physical_type == "INT96"
    }
    for index, field in enumerate(schema):
        if field.name in of_old_times:
            schema = schema.with_metadata({_OLD_TIMES: str(of_arrow.field(field.name).type)})
            schema = schema.set(index, pa.field(field.name, pa.timestamp("us", "UTC")))
        elif field.name in of_arrow.names and pa.types.is_dictionary(of_arrow.field(field.name).type):
            schema = schema.set(index, of_arrow.field(field.name))  # pyarrow drops this for numbers
    return schema


def _as_spark_reads(field: pa.Field) -> pa.Field:
    """Return a field with the type as which Spark reads it."""
    return pa.field(field.name, _plain(field.type))


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return a type without details that only Arrow has."""
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_plain(kind.value_type))
    if pa.types.is_timestamp(kind) and kind.unit in ("ms", "us"):
        return pa.timestamp("us", kind.tz and "UTC")
    if pa.types.is_large_string(kind) or str(kind) == "string_view":  # older versions of pyarrow lack string_view
        return pa.string()
    return _UNSIGNED.get(kind, kind)


def _must_convert(schemas: Sequence[pa.Schema | None]) -> bool:
    """Return whether the embedded engine cannot read files: dictionaries, large lists, and types that differ."""
    types: dict[str, pa.DataType] = {}
    fields = [field for schema in schemas for field in schema or ()]
    old_times = {(schema.metadata or {}).get(_OLD_TIMES) for schema in schemas if schema is not None}
    return len(old_times) > 1 or any(
        pa.types.is_dictionary(field.type)
        or (pa.types.is_nested(field.type) and _plain(field.type) != field.type)
        or types.setdefault(field.name, field.type) != field.type
        for field in fields
    )


def _read_rows(file: Path, schema: pa.Schema, where: str) -> Iterator[pa.RecordBatch]:
    try:
        yield from read_parquet(file, schema)
    except (pa.ArrowException, OSError):
        raise InputError(condition_fault(where, "FAILED_READ_FILE", f"File: {_target(file)}.")) from None


def _merge(files: Sequence[Path], schemas: Sequence[pa.Schema | None], where: str, merges: bool) -> pa.Schema:
    """Return the columns of the first file, or of all; columns of the same name have the same type in all."""
    fields: dict[str, pa.Field] = {}
    first = set(schemas[0].names) if schemas[0] else set()
    for file, schema in zip(files, schemas, strict=True):
        for field in schema or ():
            known = fields.setdefault(field.name, field)
            if known.type != field.type:
                details = (
                    f"Column: {field.name}, {field.type} for {known.type}.",
                    f"File: {_target(file)}.",
                    "The embedded engine looks at all columns, and Spark at those that are measured.",
                )
                raise InputError(condition_fault(where, "PARQUET_COLUMN_DATA_TYPE_MISMATCH", *details))
    return pa.schema([field for name, field in fields.items() if merges or name in first])


def _spark_schema(schema: pa.Schema, partitions: Sequence[str], where: str) -> StructType:
    """Return columns as Spark reads them: those of the files, then those of partitions, which are text."""
    fields = []
    by_name: dict[str, str] = {}
    for field in schema:
        if by_name.setdefault(field.name.lower(), field.name) != field.name:
            raise InputError(condition_fault(where, "COLUMN_ALREADY_EXISTS", f"Column: {field.name}."))
        if field.name in partitions:
            continue
        if _is_unreadable(field.type):
            type_fault = condition_fault(where, "PARQUET_TYPE_ILLEGAL", f"Column: {field.name}, {field.type}.")
            raise InputError(type_fault)
        fields.append(StructField(field.name, from_arrow_type(field.type, prefer_timestamp_ntz=True)))
    return StructType([*fields, *(StructField(name, StringType()) for name in partitions)])


def _is_unreadable(kind: pa.DataType) -> bool:
    """Return whether the engine or Spark has no such type."""
    of_kinds = (pa.types.is_time, pa.types.is_duration, pa.types.is_float16)
    return any(is_of(kind) for is_of in of_kinds) or (pa.types.is_timestamp(kind) and bool(kind.unit == "ns"))
