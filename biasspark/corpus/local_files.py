"""A corpus of files on the embedded engine, which silently reads some files differently from Spark.

For a missing path it returns no rows, a corrupt file fails without its name, columns come from all files where Spark
takes those of the first, and unknown options are ignored. So all files are inspected first: what would be read
differently is refused, and the rest is read with an explicit schema. Files that the engine cannot read are rewritten as
Parquet for the life of the process.
"""

from __future__ import annotations

import os
import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from functools import partial
from importlib import import_module
from itertools import chain
from pathlib import Path
from shutil import rmtree
from threading import Lock
from typing import NamedTuple
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark.sql.functions as F
from pyspark.errors import PySparkTypeError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StringType, StructField, StructType

from biasspark.arrow_types import UNSIGNED, replace_types, simple_type
from biasspark.config import Corpus, Measures
from biasspark.corpus.csv_rows import refuse_unknown_header
from biasspark.corpus.input_files import OF_PATTERNS, refuse_empty, refuse_files_of_tables, refuse_skipped, write_date
from biasspark.corpus.local_csv import csv_schema, read_csv, read_header
from biasspark.corpus.values import column
from biasspark.errors import ConfigError, Fault, InputError, how_to_install, redact
from biasspark.session.engines import temporary_folder
from biasspark.session.files import check_file_system, local_folder
from biasspark.session.spark_errors import condition_fault
from biasspark.session.spark_jobs import temporary_errors
from biasspark.tables.delta import is_installed, list_features
from biasspark.tables.storage_errors import describe_cause
from biasspark.text import closest_match

_VERSION = "versionasof"
_FORMATS = ("parquet", "delta", "csv")
_READABLE_FEATURES = {"appendOnly", "deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"}
"""Table features that do not change how rows are read; tables that have deletion vectors are refused."""
_NULL = "__HIVE_DEFAULT_PARTITION__"
_INT96_TYPE = b"has times of 96 bits"

_ROWS = 1 << 17
_CONVERT_LOCK = Lock()
_converted: dict[object, Path] = {}
_COPIES = "copies of the files of the corpus"


def read_local_files(
    spark: SparkSession, corpus: Corpus, run_date: date | None = None, measures: Measures | None = None
) -> DataFrame:
    """Return the rows of the files of a path. Lazy; files that the engine cannot read are converted when called.

    Files in partitions of other run dates are neither inspected nor read. Raises `ConfigError` if the embedded
    engine does not read such a corpus, and `InputError` if the path or data files are missing or cannot be read.
    """
    if faults := list(_unsupported(corpus)):
        raise ConfigError(*faults)
    path = str(corpus.path)
    check_file_system(spark, ("corpus", "path"), path)
    root = local_folder(path)
    assert root is not None  # the check refuses others
    if corpus.file_format == "delta":
        return _read_delta(spark, corpus, root, run_date)
    listed = _list_files(root, corpus.location)
    files = _choose_files(listed, root, corpus, run_date)
    _refuse_unreadable(files, corpus.location)
    names = {f"file:{file}": file for file in files}
    refuse_empty([name for name, file in names.items() if not file.stat().st_size], corpus)
    refuse_files_of_tables(spark, names, corpus)
    folder = _Folder(root, files, _list_partitions(files, root, corpus.location), len(files) == len(listed))
    folders = {name: file.relative_to(root).parts[:-1] for name, file in names.items()}  # none if the path is a file
    read = [name for name, file in names.items() if len(_partitions_of(file, root)) == len(folders[name])]
    refuse_skipped([*names], read, folder.partitions, corpus)
    if corpus.file_format == "csv":
        return _with_nulls(_read_csv_folder(spark, corpus, folder, measures), folder)
    return _with_nulls(_read_parquet_folder(spark, corpus, folder), folder)


class _Folder(NamedTuple):
    """Files below a path, and the partition columns given by folder names."""

    root: Path
    files: Sequence[Path]
    partitions: Sequence[str]
    is_whole: bool
    """Whether there are no other files below the path."""


def _with_nulls(rows: DataFrame, folder: _Folder) -> DataFrame:
    """Replace the partition values that stand for NULL by NULL."""
    for name in {name for file in folder.files for name, value in _partitions_of(file, folder.root) if value == _NULL}:
        rows = rows.withColumn(name, F.nullif(column(name), F.lit(_NULL)))
    return rows


def _read_delta(spark: SparkSession, corpus: Corpus, root: Path, run_date: date | None) -> DataFrame:
    """Return the rows of the files in a Delta log, read through links to them in partition folders like Spark's."""
    table = open_delta(corpus, root, run_date)
    _refuse_unreadable([file for file, _ in table.files], corpus.location)
    folders = []
    for _, values in table.files:
        texts = zip(table.partitions, values, strict=True)
        folders.append(Path(*(f"{name}={_NULL if text is None else _escape(text)}" for name, text in texts)))
    links_root, links = _link_files([file for file, _ in table.files], folders)
    types = {field.name: from_arrow_type(field.type, prefer_timestamp_ntz=True) for field in table.schema}
    if not links:
        return spark.createDataFrame([], StructType([StructField(name, kind) for name, kind in types.items()]))
    folder = _Folder(links_root, links, table.partitions, is_whole=True)
    stored = pa.schema([field for field in table.schema if field.name not in table.partitions])
    rows = _with_nulls(_read_parquet_folder(spark, corpus, folder, stored), folder)
    typed = {name: column(name).cast(types[name]) for name in table.partitions}
    return rows.select(*(typed.get(name, column(name)).alias(name) for name in types))


def _escape(text: str) -> str:
    """Return a value as in the name of a folder; only ASCII is escaped, since other characters may get too long."""
    return re.sub(r"[\0-\x7f]+", lambda part: quote(part[0], safe=""), text)


def _read_parquet_folder(
    spark: SparkSession, corpus: Corpus, folder: _Folder, declared: pa.Schema | None = None
) -> DataFrame:
    """Return the rows of Parquet files; a log may declare the columns, and files may lack some of them."""
    where, root, files = corpus.location, folder.root, folder.files
    with ThreadPoolExecutor() as pool:
        written = list(pool.map(partial(_read_schema, where=where), files))
    if corpus.schema:
        schema = spark.createDataFrame([], corpus.schema).schema
        _refuse_repeated(schema.names, where)
        for name in folder.partitions:
            if name not in schema.names:
                schema.add(name, StringType())
        names = {name.lower() for name in schema.names}
        written = [
            pa.schema([field for field in of_file if field.name.lower() in names], of_file.metadata)
            for of_file in written
        ]
    for file, of_file in zip(files, written, strict=True):
        _refuse_repeated(of_file.names, where, f"File: {_original(file)}.")
    merges = bool(corpus.schema) or corpus.lower_options.get("mergeschema", "").lower() == "true"
    sources = list(zip(files, written, strict=True))
    merged = _merge(sources if declared is None else [(root, declared), *sources], where, merges)
    if not corpus.schema:
        schema = _spark_schema(merged, folder.partitions, where)
    if _must_convert(written):
        root = _convert_files(files, root, lambda file: _read_parquet(file, merged, where), str(merged))
    elif not folder.is_whole:
        root, _ = _link_files(files, [file.relative_to(root).parent for file in files])
    rows = spark.read.schema(schema).parquet(str(root))
    return rows.select(*(column(name).alias(name) for name in schema.names))  # in the case of the schema


def _read_csv_folder(spark: SparkSession, corpus: Corpus, folder: _Folder, measures: Measures | None) -> DataFrame:
    where, files = corpus.location, folder.files
    headers = [read_header(file, corpus) for file in files]
    names = headers[0]
    refuse_unknown_header(corpus, [*names, *folder.partitions], measures)
    lower_case = [[name.lower() for name in header] for header in headers]
    for file, header in zip(files, lower_case, strict=True):
        if header != lower_case[0] or "" in header or len(set(header)) < len(header):
            raise InputError(condition_fault(where, "CSV_HEADER", f"File: {file}."))
    schema = _spark_schema(csv_schema(names), folder.partitions, where)
    how = (corpus.id, corpus.run_date_column, corpus.separator)
    converted = _convert_files(files, folder.root, lambda file: read_csv(file, corpus, names), how)
    return spark.read.schema(schema).parquet(str(converted))


def _unsupported(corpus: Corpus) -> Iterator[Fault]:
    """Yield a fault for everything that the embedded engine would read differently from Spark."""

    def fault(key: str, value: str, rule: str, fix: str) -> Fault:
        return Fault(("corpus", key), value, f"The embedded engine {rule}.", f"{fix}, or run it on Spark.")

    if corpus.table is not None:
        yield fault("table", corpus.table, "has no catalog", "Name the `path` of the files")
        return
    is_csv, is_delta = corpus.file_format == "csv", corpus.file_format == "delta"
    if corpus.file_format not in _FORMATS:
        meant = closest_match(corpus.file_format, _FORMATS)
        rule = "The embedded engine reads Parquet, Delta and CSV."
        fix = f"Did you mean {meant}?" if meant else "Convert the files, or run it on Spark."
        yield Fault(("corpus", "format"), corpus.format, rule, fix)
    if is_delta and not is_installed():
        yield fault("format", corpus.format, "reads it with deltalake", f"To get that, {how_to_install('delta')}")
    if is_delta and corpus.schema is not None:
        yield fault("schema", corpus.schema, "takes the columns of a Delta table from its log", "Leave it out")
    if is_csv and corpus.schema is not None:
        yield fault("schema", corpus.schema, "reads columns of CSV as text", "Leave it out")
    if is_csv and len(corpus.separator) != 1:
        yield fault("options", corpus.separator, "reads CSV with one character as separator", "Rewrite the file")
    if set(str(corpus.path)) & set(OF_PATTERNS):
        yield fault("path", redact(str(corpus.path)), "reads a file or a folder, not a pattern", "Name a folder")
    known = ("sep", "delimiter") if is_csv else (_VERSION if is_delta else "mergeschema",)
    if unknown := sorted(name for name in corpus.options if name.lower() not in known):
        fix = "Remove them" if unknown[1:] else "Remove it"
        yield fault("options", ", ".join(unknown), f"has no such option of {corpus.format}", fix)


def _list_files(root: Path, where: str) -> list[Path]:
    """Return the data files below a path, in order."""
    try:
        files = sorted(_data_files(root, where))
    except PermissionError as error:
        raise InputError(condition_fault(where, "ACCESS_DENIED", f"Path: {error.filename}.")) from None
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(condition_fault(where, "PATH_NOT_FOUND")) from None
    except OSError as error:
        raise InputError(f"{where}: its files could not be listed, {describe_cause(error)}. Fix the cause.") from None
    if not files:
        raise InputError(condition_fault(where, "UNABLE_TO_INFER_SCHEMA"))
    return files


def _choose_files(files: list[Path], root: Path, corpus: Corpus, run_date: date | None) -> list[Path]:
    """Return the files in partitions of the run date, all without such a partition, like `input_files._open_files`."""
    if not (run_date and corpus.run_date_column) or "mergeschema" in corpus.lower_options:
        return files
    of_date = tuple(f"{corpus.run_date_column}={day}" for day in write_date(run_date))
    chosen = [file for file in files if any(part.startswith(of_date) for part in file.relative_to(root).parts)]
    return chosen or files


def _refuse_unreadable(files: Iterable[Path], where: str) -> None:
    for file in files:
        try:
            file.stat()
        except PermissionError:  # to enter its folder
            pass
        except OSError:
            problem, link = ("leads to no file", ", or remove the link") if file.is_symlink() else ("is missing", "")
            raise InputError(f"{where}: {file} {problem}. Restore the file{link}.") from None
        if not os.access(file, os.R_OK):
            raise InputError(condition_fault(where, "ACCESS_DENIED", f"Path: {file}."))


def _data_files(root: Path, where: str) -> Iterator[Path]:
    """Yield the files below a path that Spark does not ignore as hidden, and the folders that may not be read."""
    if root.is_file():
        yield root
        return
    for entry in map(Path, os.scandir(root)):
        name = entry.name
        if name.startswith(".") or name.endswith("._COPYING_") or (name.startswith("_") and "=" not in name):
            continue
        if not (entry.is_dir() and os.access(entry, os.R_OK | os.X_OK)):
            yield entry
        elif root.resolve().is_relative_to(entry.resolve()):
            raise InputError(f"{where}: the link {entry} leads to a folder that contains it. Remove the link.")
        else:
            yield from _data_files(entry, where)


def _original(file: Path) -> Path:
    """Return the user's file, as the file read may be a link to it."""
    return file.resolve() if file.is_symlink() else file


def _partitions_of(file: Path, root: Path) -> list[tuple[str, str]]:
    """Return the columns that the folders between a path and a file give, each with its value."""
    parts = (folder.partition("=") for folder in file.relative_to(root).parts[:-1])
    return [(name, value) for name, sign, value in parts if sign]


def _list_partitions(files: Sequence[Path], root: Path, where: str) -> list[str]:
    """Return the partition columns, which are the same for all files except those in higher folders."""
    names = [[name for name, _ in _partitions_of(file, root)] for file in files]
    deepest = max(names, key=len)
    if any(of_file != deepest[: len(of_file)] for of_file in names):
        raise InputError(condition_fault(where, "CONFLICTING_PARTITION_COLUMN_NAMES"))
    return deepest


def _read_schema(file: Path, where: str) -> pa.Schema:
    """Return the Arrow schema of a Parquet file."""
    try:
        with pq.ParquetFile(file, coerce_int96_timestamp_unit="us") as source:
            footer, schema = source.metadata, source.schema_arrow
        arrow = (footer.metadata or {}).get(b"ARROW:schema")
        stored = pa.ipc.read_schema(pa.py_buffer(b64decode(arrow))) if arrow else schema
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError):
        raise InputError(condition_fault(where, "CANNOT_READ_FILE_FOOTER", f"File: {_original(file)}.")) from None
    of_arrow = {field.name: field for field in stored}
    leaves = map(footer.schema.column, range(footer.num_columns))
    of_old_times = {leaf.path for leaf in leaves if leaf.physical_type == "INT96"}
    for index, field in enumerate(schema):
        if field.name in of_old_times:
            schema = schema.with_metadata({_INT96_TYPE: str(of_arrow[field.name].type)})
            schema = schema.set(index, pa.field(field.name, pa.timestamp("us", "UTC")))
        elif field.name in of_arrow:
            kind = of_arrow[field.name].type
            if pa.types.is_dictionary(kind) or pa.types.is_date64(kind):  # pyarrow drops these, and the engine does not
                schema = schema.set(index, of_arrow[field.name])
    return schema


def _refuse_repeated(names: Sequence[str], where: str, *details: str) -> None:
    """Stop at two columns that Spark takes for one, as it ignores case."""
    if len({name.lower() for name in names}) < len(names):
        raise InputError(condition_fault(where, "COLUMN_ALREADY_EXISTS", *details))


def _spark_type(kind: pa.DataType) -> pa.DataType:
    """Return the type that Spark reads for a type, without details that only Arrow has."""
    return replace_types(kind, _simple_spark_type)


def _simple_spark_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.int64() if kind.unit == "ns" else pa.timestamp("us", kind.tz and "UTC")
    return simple_type(kind)


def _is_read_like_spark(kind: pa.DataType) -> bool:
    """Return whether the embedded engine reads a type as the one that Spark reads for it."""
    is_text, is_time = simple_type(kind) == pa.string(), pa.types.is_timestamp(kind) and kind.unit != "ns"
    return _spark_type(kind) == kind or kind in UNSIGNED or is_time or is_text


def _must_convert(schemas: Sequence[pa.Schema]) -> bool:
    """Return whether the engine cannot read files: dictionaries, large lists, types or cases of names that differ."""
    fields: dict[str, tuple[str, pa.DataType]] = {}
    old_times = {(schema.metadata or {}).get(_INT96_TYPE) for schema in schemas}
    return len(old_times) > 1 or any(
        not _is_read_like_spark(field.type)
        or fields.setdefault(field.name.lower(), (field.name, field.type)) != (field.name, field.type)
        for schema in schemas
        for field in schema
    )


def _merge(sources: Sequence[tuple[Path, pa.Schema]], where: str, merges: bool) -> pa.Schema:
    """Return the columns of the first file, or of all, as Spark reads them; a column has the same type in all files."""
    fields: dict[str, pa.Field] = {}
    for file, field in ((file, field) for file, schema in sources for field in schema):
        kind = _spark_type(field.type)
        known = fields.setdefault(field.name.lower(), pa.field(field.name, kind)).type
        if known != kind:
            details = (f"Column: {field.name}, {kind} for {known}.", f"File: {_original(file)}.")
            scope = "The embedded engine looks at all columns, and Spark at those that are measured."
            raise InputError(condition_fault(where, "PARQUET_COLUMN_DATA_TYPE_MISMATCH", *details, scope))
    return pa.schema(list(fields.values()) if merges else [fields[name.lower()] for name in sources[0][1].names])


def _spark_schema(schema: pa.Schema, partitions: Sequence[str], where: str) -> StructType:
    """Return the columns of the files as Spark reads them, then the partition columns, which are text."""
    fields = []
    for name, kind in zip(schema.names, schema.types, strict=True):
        if name in partitions:
            continue
        is_unknown = any(is_of(kind) for is_of in (pa.types.is_time, pa.types.is_duration, pa.types.is_float16))
        illegal = InputError(condition_fault(where, "PARQUET_TYPE_ILLEGAL", f"Column: {name}, {kind}."))
        if is_unknown:  # to the engine or to Spark
            raise illegal
        try:
            fields.append(StructField(name, from_arrow_type(kind, prefer_timestamp_ntz=True)))
        except PySparkTypeError:
            raise illegal from None
    return StructType([*fields, *(StructField(name, StringType()) for name in partitions)])


def _convert_files(
    files: Sequence[Path], root: Path, read: Callable[[Path], Iterable[pa.RecordBatch]], how: object
) -> Path:
    """Write files as Parquet below a temporary folder, in the same folders, once per process, and return it.

    `read` yields the rows of a file as they are to be written; `how` is anything else on which they depend.
    """
    states = [(file, file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    key = (root, tuple(states), how)
    with _CONVERT_LOCK:
        if key not in _converted:
            with temporary_errors(_COPIES):
                target = temporary_folder()
                try:
                    for number, file in enumerate(files):
                        _write_parquet(read(file), target / file.relative_to(root).parent / f"{number}.parquet")
                except BaseException:  # of a range of dates, others may fit
                    rmtree(target, ignore_errors=True)
                    raise
            _converted[key] = target
        return _converted[key]


def _link_files(files: Sequence[Path], folders: Sequence[Path]) -> tuple[Path, list[Path]]:
    """Create symbolic links to files, in folders below a new temporary folder; return that folder and the links."""
    with temporary_errors(_COPIES):
        root = temporary_folder()
        links = [root / folder / f"{number}.parquet" for number, folder in enumerate(folders)]
        for file, link in zip(files, links, strict=True):
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(file)
    return root, links


def _write_parquet(batches: Iterable[pa.RecordBatch], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    batches = iter(batches)
    if (first := next(batches, None)) is None:
        return
    with pq.ParquetWriter(path, first.schema) as writer:
        for batch in chain([first], batches):
            writer.write_batch(batch)


def _read_parquet(file: Path, schema: pa.Schema, where: str) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a Parquet file in the columns of a schema that it has, dictionaries as their values."""
    try:
        with pq.ParquetFile(file, coerce_int96_timestamp_unit="us", page_checksum_verification=True) as source:
            names = {name.lower(): name for name in source.schema_arrow.names}
            target = pa.schema([field for field in schema if field.name.lower() in names])
            chosen = [names[name.lower()] for name in target.names]
            for batch in source.iter_batches(_ROWS, columns=chosen):
                rows = pa.Table.from_batches([batch]).select(chosen).rename_columns(target.names)
                yield from rows.cast(target).to_batches()
    except (pa.ArrowException, OSError):
        raise InputError(condition_fault(where, "FAILED_READ_FILE", f"File: {_original(file)}.")) from None


# ---- Delta: the files and columns in the log of a table, by delta-rs


class DeltaCorpus(NamedTuple):
    """The content of a table's log: all columns, the partition columns, and the files.

    Each file has the values of its partition columns as texts that Spark casts to them, None for NULL.
    """

    schema: pa.Schema
    partitions: list[str]
    files: list[tuple[Path, tuple[str | None, ...]]]


def open_delta(corpus: Corpus, root: Path, run_date: date | None = None) -> DeltaCorpus:
    """Return the files of a table or of the requested version, only those of the run date if that is a partition.

    Raises `InputError` if there is no such table or version, or its files alone do not give its rows: columns are
    mapped to other names, or rows were deleted from them.
    """
    library, version = import_module("deltalake"), corpus.lower_options.get(_VERSION)
    try:
        log = library.DeltaTable(root, version=None if version is None else int(version))
        actions = pa.table(log.get_add_actions(flatten=True)).to_pylist()
    except library.exceptions.TableNotFoundError:
        condition = "UNABLE_TO_INFER_SCHEMA" if os.path.exists(root) else "PATH_NOT_FOUND"
        raise InputError(condition_fault(corpus.location, condition)) from None
    except (library.exceptions.DeltaError, ValueError):
        if version is None:
            raise
        rule = "The table has no such version."
        raise InputError(Fault(("corpus", "options"), f"versionAsOf = {version}", rule, "Correct it.")) from None
    if unknown := sorted(list_features(log, reading=True) - _READABLE_FEATURES):
        raise InputError(_table_fault(corpus, f"has {', '.join(unknown)}"))
    if pa.table(log.deletion_vectors()).num_rows:
        raise InputError(_table_fault(corpus, "has rows that are deleted by deletion vectors"))
    schema, names = pa.schema(log.schema().to_arrow()), log.metadata().partition_columns
    kinds = {name: schema.field(name).type for name in names}
    # Spark casts what Python writes for these to the same values.
    plain = (pa.types.is_string, pa.types.is_integer, pa.types.is_date, pa.types.is_boolean)
    if unknown := [f"{name} {kind}" for name, kind in kinds.items() if not any(is_of(kind) for is_of in plain)]:
        raise InputError(_table_fault(corpus, f"has partitions of {', '.join(unknown)}"))
    files = []
    for action in actions:
        values = {name: action[f"partition.{name}"] for name in names}
        day = values.get(corpus.run_date_column or "")
        if run_date is None or not isinstance(day, date) or day == run_date:
            texts = tuple(None if value is None else str(value) for value in values.values())
            files.append((root / unquote(action["path"]), texts))
    return DeltaCorpus(schema, names, files)


def _table_fault(corpus: Corpus, problem: str) -> Fault:
    rule = f"The table {problem}, which the embedded engine does not read."
    return Fault(("corpus", "path"), redact(str(corpus.path)), rule, "Run it on Spark, or rewrite the table.")
