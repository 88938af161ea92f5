"""Tables of plain Parquet, in a folder or in a Spark catalog.

Each run has its own directory, ``<table>/run_date=D/run_id=R``, written once and never changed: two writers to one
directory lose rows of each other, and overwriting loses the old rows when a task fails.

Small tables are Arrow. If this process sees the same folders as the session, it writes and reads their files without a
Spark job. Otherwise Spark writes them, one job for each, and reads those of a run in one job.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import date
from functools import partial, reduce
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark.sql.functions as F
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from biasspark.config import unusable_path
from biasspark.errors import ConfigError, Fault, InputError, has_condition, redact
from biasspark.expressions.sql import quote_name, quote_string
from biasspark.replaced_files import replace_local_file
from biasspark.session import analyze, describe, is_embedded, run_side_by_side, sees_files
from biasspark.session.files import (
    check_file_system,
    delete_folder,
    list_folder,
    local_folder,
    shared_folder,
    try_folder,
)
from biasspark.tables.runs import RUN_ID_RULE, Run
from biasspark.tables.schemas import BIAS_RUNS, RUN_DATE, RUN_ID, Table
from biasspark.tables.spark_schemas import (
    PARTITION,
    column_types,
    define_column,
    required_columns,
    schema_faults,
    spark_field,
    spark_schema,
    to_arrow,
    to_frame,
)
from biasspark.tables.storage_errors import UNWRITABLE, catalog_errors, describe_cause, refuse_embedded, storage_errors
from biasspark.text import format_count

_ABSENT = ("PATH_NOT_FOUND", "TABLE_OR_VIEW_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA", "DELTA_TABLE_NOT_FOUND")
_SCHEMA_FOR_SPARK = "org.apache.spark.sql.parquet.row.metadata"


@contextmanager
def absence(name: str) -> Iterator[None]:
    """Raise `FileNotFoundError` in place of the Spark error for a missing path or table."""
    try:
        yield
    except AnalysisException as error:
        if has_condition(error, *_ABSENT):
            raise FileNotFoundError(name) from error
        raise


def read_types(spark: SparkSession, path: str) -> dict[str, str] | None:
    """Return the columns of the Parquet files under a path, None if there is no file."""
    if folder := shared_folder(spark, path):
        for file in find_data_files(folder):
            with storage_errors(str(file), "read"):
                return column_types(pq.read_schema(file))
        return None
    with suppress(FileNotFoundError), absence(path):
        return column_types(spark.read.parquet(path).schema)
    return None


def list_visible(folder: Path) -> list[Path]:
    """List what Spark sees in a local folder, sorted. Raises `InputError` if it may not be read, unlike ``glob``."""
    with storage_errors(str(folder), "read"), suppress(FileNotFoundError, NotADirectoryError):
        return sorted(path for path in folder.iterdir() if not path.name.startswith(("_", ".")))
    return []


def find_data_files(folder: Path) -> Iterator[Path]:
    """Yield the Parquet files under a local folder. Raises as `list_visible`."""
    for path in list_visible(folder):
        if path.suffix == ".parquet":
            yield path
        elif path.is_dir():
            yield from find_data_files(path)


def write_directory(spark: SparkSession, table: Table, rows: pa.Table | DataFrame, path: str) -> None:
    """Write rows to a new directory."""
    with storage_errors(path, "written"):
        folder = shared_folder(spark, path)
        if isinstance(rows, DataFrame) or folder is None:
            frame = rows if isinstance(rows, DataFrame) else to_frame(spark, rows, spark_schema(table)).coalesce(1)
            # Spark Connect knows the mode errorifexists only as error. The ledger marks complete runs, not a file
            # _SUCCESS in each directory.
            writer = frame.drop(*PARTITION).write.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
            writer.mode("error").parquet(path)
            if folder is None or folder.exists():
                return
            rows = table.full_arrow_schema.empty_table()  # the embedded engine writes no file without rows
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir()
        schema = {_SCHEMA_FOR_SPARK: stored_schema(table).json()}  # Spark reads comments from it
        stored = rows.drop_columns(list(PARTITION)).replace_schema_metadata(schema)
        write_local_file(folder / "part-00000.parquet", stored)


def write_local_file(file: Path, rows: pa.Table) -> None:
    """Write rows to a Parquet file in one step, with the checksums that readers verify."""
    content = pa.BufferOutputStream()
    pq.write_table(rows, content, write_page_checksum=True)
    replace_local_file(file, content.getvalue().to_pybytes())


def stored_schema(table: Table, partition: Collection[str] = PARTITION) -> StructType:
    """Return the columns in the files of a table. Partition columns are in the names of directories."""
    return StructType([field for field in spark_schema(table) if field.name not in partition])


def read_files(table: Table, folders: Iterable[Path], *, skip_missing: bool = False) -> pa.Table:
    """Return the rows in the directories of runs. Columns that files lack are NULL.

    Raises `FileNotFoundError` if a directory has no file, unless `skip_missing`, and `InputError` for unreadable files.
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
    """Return the rows of a file, and the columns of its partition. Columns that it lacks are missing."""
    schema = table.full_arrow_schema
    with storage_errors(str(file), "read"):
        rows = pq.ParquetFile(file, page_checksum_verification=True).read()
    columns = {name: rows[name] for name in schema.names if name in rows.column_names}
    for name, values in columns.items():
        if "_view" in str(values.type):  # written by compaction of delta-rs
            columns[name] = values.cast(schema.field(name).type)
    columns |= {name: pa.array([value] * len(rows), schema.field(name).type) for name, value in partition.items()}
    return pa.table(columns)


def join_files(table: Table, parts: Sequence[pa.Table]) -> pa.Table:
    """Concatenate the rows of files in the columns of the table. Columns that files lack are NULL."""
    empty = table.full_arrow_schema.empty_table()
    return pa.concat_tables([empty, *parts], promote_options="permissive").cast(empty.schema)


_DATE_FOLDER = re.compile(r"run_date=[0-9]{4}-[0-9]{2}-[0-9]{2}")
_RUN_FOLDER = re.compile(rf"run_id=({RUN_ID_RULE})")
_NO_FOLDER = (NotADirectoryError, FileNotFoundError, PermissionError)


class ParquetStore:
    """Base of the stores of plain Parquet, in which each run has its own directory."""

    def list_runs(self, spark: SparkSession, table: Table) -> set[tuple[date, str]]:
        """Return (run_date, run_id) of all runs that have a directory in a table, also of unfinished ones."""
        folder = self._find_folder(spark, table)
        if folder is None:
            return set()
        with storage_errors(folder, "read"):
            return {
                (date.fromisoformat(date_folder.removeprefix("run_date=")), run_id[1])
                for date_folder in _list_dates(spark, folder)
                for entry in list_folder(spark, f"{folder}/{date_folder}")
                if entry.is_folder and (run_id := _RUN_FOLDER.fullmatch(entry.name))
            }

    def file_sizes(self, spark: SparkSession, table: Table, runs: Sequence[Run]) -> list[list[int]]:
        """Return for each run the size in bytes of each file."""
        folder = self._find_folder(spark, table)
        listed = (list_folder(spark, f"{folder}/{run.partition}") for run in runs)
        return [[entry.n_bytes for entry in entries if entry.name.endswith(".parquet")] for entries in listed]

    def read_back(self, spark: SparkSession, tables: Sequence[Table], run: Run) -> dict[Table, pa.Table]:
        """Return the rows of a run in several small tables. One job. Raises as ``read``."""
        if not tables:
            return {}
        # The union of all rows, each a struct in the column of its table.
        structs = [self.read(spark, table, run).select(F.struct(*table.names).alias(table.name)) for table in tables]
        rows = reduce(partial(DataFrame.unionByName, allowMissingColumns=True), structs).collect()
        values = {table: [row[table.name].asDict() for row in rows if row[table.name] is not None] for table in tables}
        return {table: pa.Table.from_pylist(listed, table.full_arrow_schema) for table, listed in values.items()}

    @abstractmethod
    def read(self, spark: SparkSession, table: Table, *runs: Run) -> DataFrame:
        """Return the rows of one or more runs, with the columns of the contract. Lazy."""

    @abstractmethod
    def _find_folder(self, spark: SparkSession, table: Table) -> str | None:
        """Return the folder of a table, None if there is no table."""


class PathStore(ParquetStore):
    """Plain Parquet in a folder of any file system. Raises `ConfigError` for a pattern or the root of a file system."""

    def __init__(self, path: str) -> None:
        rule, fix = unusable_path(path)
        if rule:
            raise ConfigError(Fault(("output", "path"), path, rule, fix))
        self.path = path.rstrip("/")
        self.root = redact(self.path)
        """The location of the tables for messages."""
        self.local_folder = local_folder(self.path)

    def check(self, spark: SparkSession, tables: Iterable[Table]) -> None:
        """Check the columns of existing tables, by one footer each, and that the folder is writable. Creates no table.

        Raises `InputError` with a fault of each table, and `ConfigError` for a folder that cannot be used.
        """
        check_file_system(spark, ("output", "path"), self.path)
        examined = run_side_by_side(spark, [partial(self._examine, spark, table) for table in tables])
        if faults := [fault for table_faults in examined for fault in table_faults]:
            raise InputError(*faults)
        self.refuse_unwritable(spark)

    def refuse_unwritable(self, spark: SparkSession) -> None:
        """Raise `ConfigError` if the folder cannot be created or written to. Does nothing under Connect."""
        if not sees_files(spark):
            return
        try:
            try_folder(spark, self.path)
        except Exception as error:
            cause = describe_cause(error)
            if not (isinstance(error, _NO_FOLDER) or UNWRITABLE.search(cause)):
                with storage_errors(self.root, "written"):
                    raise
            shown = re.sub(r"^[\w.$]+: | \(exists=.*\)$", "", cause)
            raise ConfigError(
                f'[output] path = "{self.root}": nothing can be written there, {shown}. It must be a folder to which '
                "this user may write, or that can be created. Name another, or change its permissions."
            ) from error

    def _examine(self, spark: SparkSession, table: Table) -> list[str]:
        folder = self._folder(table)
        with describe(spark, f"check the columns of {table.name}"), storage_errors(folder, "read"):
            dates = _list_dates(spark, folder) if sees_files(spark) else []
            paths = [f"{folder}/{date_folder}" for date_folder in reversed(dates)] or [folder]
            types = next(filter(None, (read_types(spark, path) for path in paths)), None)
        return schema_faults(folder, table, types)

    def location(self, table: Table, run: Run) -> str:
        """Return the location of the rows of a run in a table."""
        return f"{self._folder(table)}/{run.partition}"

    def write(self, spark: SparkSession, table: Table, rows: pa.Table | DataFrame, run: Run) -> None:
        """Write the rows of a run. Creates the table even without rows. Raises `BiasSparkError` with path and cause."""
        write_directory(spark, table, rows, self.location(table, run))

    def read(self, spark: SparkSession, table: Table, *runs: Run) -> DataFrame:
        """Return the rows of runs, published or not. Lazy. Raises `FileNotFoundError` if files are missing."""
        if not is_embedded(spark):
            files = spark.read.schema(spark_schema(table)).option("basePath", self._folder(table))
            with absence(table.name):
                return analyze(files.parquet(*(self.location(table, run) for run in runs)))
        (run,) = runs  # the embedded engine has no basePath, and reads a missing path as no rows
        folder = shared_folder(spark, self.location(table, run))
        if folder is None or not any(folder.glob("*.parquet")):
            raise FileNotFoundError(self.location(table, run))
        partition = {RUN_DATE.name: F.lit(run.run_date), RUN_ID.name: F.lit(run.run_id)}
        rows = spark.read.schema(stored_schema(table)).parquet(str(folder))
        return rows.withColumns(partition).select(*table.names)

    def read_rows(self, spark: SparkSession, table: Table, *runs: Run) -> pa.Table:
        """Return the rows of one or more runs in a small table. Raises as ``read``."""
        if folder := shared_folder(spark, self._folder(table)):
            return read_files(table, [folder / run.partition for run in runs])
        return to_arrow(self.read(spark, table, *runs), table.full_arrow_schema)

    def read_back(self, spark: SparkSession, tables: Sequence[Table], run: Run) -> dict[Table, pa.Table]:
        """See `ParquetStore.read_back`. No job if this process sees the folder."""
        if shared_folder(spark, self.path):
            return {table: self.read_rows(spark, table, run) for table in tables}
        return super().read_back(spark, tables, run)

    def read_ledger(self, spark: SparkSession, first: date = date.min, last: date = date.max) -> pa.Table:
        """Return the rows of the ledger from the first to the last run date; none if there is no ledger yet.

        Raises `ConfigError` if the session has no file system for the path, and `InputError` for a Delta table, and if
        this user may not read a directory or file: what cannot be read is not absent.
        """
        check_file_system(spark, ("output", "path"), self.path)
        location, date_folder = self._folder(BIAS_RUNS), f"run_date={first}"
        with storage_errors(location, "read"):
            dates = _list_dates(spark, location) if sees_files(spark) else []
        if folder := shared_folder(spark, location):
            read = [day for day in dates if date_folder <= day <= f"run_date={last}"]
            runs = [run for day in read for run in list_visible(folder / day)]
            return read_files(BIAS_RUNS, [run for run in runs if _RUN_FOLDER.fullmatch(run.name)], skip_missing=True)
        files = spark.read.schema(spark_schema(BIAS_RUNS)).option("basePath", location)
        path = f"{location}/{date_folder}" if first == last else location
        with suppress(FileNotFoundError), absence(path):
            rows = analyze(files.parquet(path)).where(f"run_date BETWEEN DATE'{first}' AND DATE'{last}'")
            return to_arrow(rows, BIAS_RUNS.full_arrow_schema)
        return BIAS_RUNS.full_arrow_schema.empty_table()

    def remove_run(self, spark: SparkSession, table: Table, run: Run) -> None:
        """Remove the rows of a run from a table, if there are any."""
        with storage_errors(self.location(table, run), "removed"):
            delete_folder(spark, self.location(table, run))

    def _folder(self, table: Table) -> str:
        return f"{self.path}/{table.name}"

    def _find_folder(self, spark: SparkSession, table: Table) -> str:  # noqa: ARG002 - a catalog is asked for it
        return self._folder(table)


class CatalogStore(ParquetStore):
    """Parquet tables of a Spark catalog, partitioned by run_date and run_id. Its methods are those of `PathStore`.

    `catalog` and `views` are the schemas of tables and views: ``schema`` or ``catalog.schema``.
    """

    provider: ClassVar[str] = "parquet"
    partition: ClassVar[tuple[str, ...]] = PARTITION

    def __init__(self, catalog: str, views: str | None = None) -> None:
        self.names = catalog, views or catalog
        self.catalog, self.schema = _quote_schema(self.names[0])
        self.view_catalog, self.view_schema = _quote_schema(self.names[1])
        self.root = self.schema

    def name(self, table: str) -> str:
        """Return the quoted name of a table."""
        return f"{self.schema}.`{table}`"

    def view_name(self, view: str) -> str:
        """Return the quoted name of a view."""
        return f"{self.view_schema}.`{view}`"

    def has(self, spark: SparkSession, table: Table) -> bool:
        """Return whether a table exists. Raises `ConfigError` if the session does not have the catalog."""
        refuse_embedded(spark, ("output", "catalog"), self.names[0])
        with catalog_errors(spark, ("output", "catalog"), self.names[0], self.catalog):
            return bool(spark.catalog.tableExists(self.name(table.name)))

    def types(self, spark: SparkSession, table: Table) -> dict[str, str] | None:
        """Return the columns of a table, None if there is no table. Raises as ``has``."""
        return column_types(spark.table(self.name(table.name)).schema) if self.has(spark, table) else None

    def check(self, spark: SparkSession, tables: Iterable[Table]) -> None:
        """See `PathStore.check`. Also refuses tables of another format, and catalogs that the session does not have."""
        self._refuse_session(spark)
        if self.view_schema != self.schema:
            with catalog_errors(spark, ("output", "views"), self.names[1], self.view_catalog):
                spark.catalog.tableExists(self.view_name(BIAS_RUNS.name))
        if faults := [fault for table in tables for fault in self._examine(spark, table)]:
            raise InputError(*faults)

    def _refuse_session(self, spark: SparkSession) -> None:
        """Raise `ConfigError` if the session does not support this store."""
        refuse_embedded(spark, ("output", "catalog"), self.names[0])

    def _examine(self, spark: SparkSession, table: Table) -> list[str]:
        name = self.name(table.name)
        with storage_errors(name, "read"):
            if (types := self.types(spark, table)) is None:
                return []
            provider = self._describe(spark, table).get("Provider", "no table")
        faults = schema_faults(name, table, types)
        if provider.lower() != self.provider:
            what = f"{name}: it is {provider}. Tables are {self.provider.title()}."
            faults.insert(0, f"{what} Move it away, or choose another output.")
        return faults

    def location(self, table: Table, run: Run) -> str:
        """See `PathStore.location`. The catalog chooses the directory."""
        return f"{self.name(table.name)} {run.partition}"

    def write(self, spark: SparkSession, table: Table, rows: pa.Table | DataFrame, run: Run) -> None:
        """See `PathStore.write`. Creates the table or its new columns; a complete directory becomes a partition."""
        with storage_errors(self.name(table.name), "created"):
            self._prepare(spark, table)
            location = self._describe(spark, table)["Location"]
        write_directory(spark, table, rows, f"{location}/{run.partition}")
        with storage_errors(self.location(table, run), "added as a partition"):
            spark.sql(f"ALTER TABLE {self.name(table.name)} ADD PARTITION ({_partition(run)})")

    def read(self, spark: SparkSession, table: Table, *runs: Run) -> DataFrame:
        """See `PathStore.read`. Reads no other run date. The types are those of the catalog."""
        dates, ids = sorted({run.run_date for run in runs}), sorted({run.run_id for run in runs})
        return self._read_all(spark, table).where(F.col(RUN_DATE.name).isin(dates) & F.col(RUN_ID.name).isin(ids))

    def read_rows(self, spark: SparkSession, table: Table, *runs: Run) -> pa.Table:
        """See `PathStore.read_rows`. One job. Spark skips folders that it may not enter."""
        rows = self.read(spark, table, *runs)
        with storage_errors(self.name(table.name), "read"):
            return to_arrow(rows, table.full_arrow_schema)

    def read_ledger(self, spark: SparkSession, first: date = date.min, last: date = date.max) -> pa.Table:
        """See `PathStore.read_ledger`. One job."""
        schema, name = BIAS_RUNS.full_arrow_schema, self.name(BIAS_RUNS.name)
        if not self.has(spark, BIAS_RUNS):
            return schema.empty_table()
        with storage_errors(name, "read"):
            # Before the rows, so that each has its row. Other formats list their files themselves.
            listed = spark.sql(f"SHOW PARTITIONS {name}").collect() if self.provider == "parquet" else []
            dates = f"run_date={first}", f"run_date={last}"
            partitions = {name for (name,) in listed if dates[0] <= name.partition("/")[0] <= dates[1]}
            rows = self._read_all(spark, BIAS_RUNS).where(f"run_date BETWEEN DATE'{first}' AND DATE'{last}'")
            ledger = to_arrow(rows, schema)
        keys = zip(ledger[RUN_DATE.name].to_pylist(), ledger[RUN_ID.name].to_pylist(), strict=True)
        # Spark skips a partition whose folder it may not enter.
        if missing := sorted(partitions - {f"run_date={day}/run_id={run_id}" for day, run_id in keys}):
            raise InputError(
                f"{name} {missing[0]}: its row could not be read ({format_count(len(missing), 'run')} of the ledger "
                "without one). Restore the files, or let the user of the job read them and enter the folders above."
            )
        return ledger

    def remove_run(self, spark: SparkSession, table: Table, run: Run) -> None:
        """See `PathStore.remove_run`. Drops the partition first, so that no reader looks for deleted files."""
        with storage_errors(self.location(table, run), "removed"):
            spark.sql(f"ALTER TABLE {self.name(table.name)} DROP IF EXISTS PARTITION ({_partition(run)})")
            delete_folder(spark, f"{self._describe(spark, table)['Location']}/{run.partition}")

    def _find_folder(self, spark: SparkSession, table: Table) -> str | None:
        return self._describe(spark, table)["Location"] if self.has(spark, table) else None

    def _read_all(self, spark: SparkSession, table: Table) -> DataFrame:
        """Return all rows, including those of other sessions. Columns that the table does not have yet are NULL."""
        with absence(table.name):
            self._refresh(spark, table)
            rows = analyze(spark.table(self.name(table.name)))
        new = [spark_field(column) for column in table.columns if column.name not in rows.columns]
        return rows.select("*", *(F.lit(None).cast(field.dataType).alias(field.name) for field in new))

    def _refresh(self, spark: SparkSession, table: Table) -> None:
        spark.catalog.refreshTable(self.name(table.name))

    def _prepare(self, spark: SparkSession, table: Table) -> None:
        name, types = self.name(table.name), self.types(spark, table)
        new = tuple(column for column in table.columns if column.name not in (types or {}))
        if types is None:
            self._create_schema(spark)
            properties = ", ".join(f"'{key}' = {quote_string(text)}" for key, text in self._properties(table).items())
            ending = f" TBLPROPERTIES ({properties})" if properties else ""
            required = () if self.provider == "parquet" else required_columns(table)  # plain Parquet enforces nothing
            columns = ", ".join(define_column(column, required) for column in table.columns)
            spark.sql(
                f"CREATE TABLE IF NOT EXISTS {name} ({columns}) USING {self.provider} "
                f"PARTITIONED BY ({', '.join(self.partition)}) COMMENT {quote_string(table.comment)}{ending}"
            )
        elif new:
            spark.sql(f"ALTER TABLE {name} ADD COLUMNS ({', '.join(map(define_column, new))})")
        for clause in self._constraints(spark, table):
            spark.sql(f"ALTER TABLE {name} {clause}")

    def _properties(self, table: Table) -> dict[str, str]:  # noqa: ARG002 - of formats with transactions
        """Return the properties of a new table, including constraints."""
        return {}

    def _constraints(self, spark: SparkSession, table: Table) -> list[str]:  # noqa: ARG002 - as above
        """Return the clauses of ALTER TABLE that enforce the contract where the table does not yet."""
        return []

    def _create_schema(self, spark: SparkSession) -> None:
        spark.sql(f"CREATE SCHEMA IF NOT EXISTS {self.schema}")

    def _describe(self, spark: SparkSession, table: Table) -> dict[str, str]:
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {self.name(table.name)}").collect()
        # Details of the table come after its columns, and replace a column of the same name.
        return {row["col_name"]: row["data_type"] for row in rows}


def _quote_schema(name: str) -> tuple[str, str]:
    """Return the catalog of a schema, and the quoted name of the schema."""
    catalog, _, schema = name.rpartition(".")
    return catalog or "spark_catalog", ".".join(map(quote_name, filter(None, (catalog, schema))))


def _partition(run: Run) -> str:
    return f"run_date = DATE'{run.run_date.isoformat()}', run_id = {quote_string(run.run_id)}"


def _list_dates(spark: SparkSession, folder: str) -> list[str]:
    """Return the folders of dates in that of a table. Raises `InputError` for a Delta table."""
    names = [entry.name for entry in list_folder(spark, folder)]
    if "_delta_log" in names:
        rule, fix = f"{redact(folder)} is a Delta table.", 'Set it to "delta", or name another output.'
        raise InputError(Fault(("output", "format"), "parquet", rule, fix))
    return sorted(filter(_DATE_FOLDER.fullmatch, names))
