"""Tables of plain Parquet, in a folder or in a Spark catalog.

Both hold every run in a directory of its own, ``<table>/run_date=D/run_id=R``, written once and never touched again:
two writers into one directory lose rows of each other, and overwriting loses the old rows when a task fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyspark.sql.functions as F
from pyarrow.parquet import write_table
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from biasspark.config import redact, say_no_place, show_value
from biasspark.errors import BiasSparkError, ConfigError, InputError, has_condition
from biasspark.expressions.sql import quote_name, quote_string
from biasspark.session import (
    analyse,
    delete_folder,
    describe,
    is_connect,
    list_folder,
    run_side_by_side,
    try_folder,
    write_file,
)
from biasspark.tables.contract import PARTITION, define_column, find_cause, find_misfits, named_fault, no_rows
from biasspark.tables.runs import RUN_ID_RULE, Run
from biasspark.tables.schemas import BIAS_RUNS, RUN_DATE, RUN_ID, Table

_NIGHT = re.compile(r"run_date=[0-9]{4}-[0-9]{2}-[0-9]{2}")
_ATTEMPT = re.compile(rf"run_id=({RUN_ID_RULE})")
_UNWRITABLE = re.compile(r"Mkdirs failed|[Pp]ermission denied|AccessControl|AccessDenied|Read-only|not permitted")
_SCHEMA_FOR_SPARK = "org.apache.spark.sql.parquet.row.metadata"
_TIMESTAMPS = "spark.sql.parquet.outputTimestampType"


class PathStore:
    """Plain Parquet under one path, on any file system that Spark knows.

    Parameters
    ----------
    path : str
        The folder of the tables; made when the first table is written.

    Raises
    ------
    ConfigError
        If the path is the root of a file system, or Spark and DuckDB would read it as a pattern of several paths.
    """

    def __init__(self, path: str) -> None:
        if fault := say_no_place(path):
            raise ConfigError(f"output.path = {show_value(redact(path))}. {fault}")
        self.path = path.rstrip("/")

    @property
    def root(self) -> str:
        """See ``Store.root``."""
        return redact(self.path)

    @property
    def local_folder(self) -> Path | None:
        """The folder as Python sees it, None on another file system than this machine's."""
        if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", self.path) and not self.path.startswith("file:"):
            return None
        return Path(re.sub(r"^file:/*(?=/)", "", self.path)).absolute()

    def check(self, spark: SparkSession, tables: Iterable[Table]) -> None:
        """See ``Store.check``. Reads one footer of each table that is there, of its last night, however many it has.

        Raises
        ------
        ConfigError
            If the folder cannot be written to.
        """
        _check_timestamps(spark)
        with named_fault(self.root, "read"):
            there = None if is_connect(spark) else {entry.name for entry in list_folder(spark, self.path)}
        self.refuse_unwritable(spark)
        examined = [partial(self._examine, spark, table) for table in tables if there is None or table.name in there]
        if faults := [fault for found in run_side_by_side(spark, examined) for fault in found]:
            raise InputError(*faults)

    def refuse_unwritable(self, spark: SparkSession) -> None:
        """Raise `ConfigError` unless the folder is there, or can be made, and takes a file; nothing under Connect."""
        if is_connect(spark):
            return
        try:
            with named_fault(self.root, "written"):
                try_folder(spark, self.path)
        except BiasSparkError as error:
            cause = find_cause(error.__cause__) if isinstance(error.__cause__, Exception) else ""
            if not (isinstance(error.__cause__, NotADirectoryError) or _UNWRITABLE.search(cause)):
                raise
            shown = re.sub(r"^[\w.$]+: | \(exists=.*\)$", "", redact(cause))
            raise ConfigError(
                f'[output] path = "{self.root}": nothing can be written there, {shown}. It must be a folder '
                "to which this user may write, or one that can be made. Name another, or change its permissions."
            ) from error

    def _examine(self, spark: SparkSession, table: Table) -> list[str]:
        """Return what is wrong with the columns of a table."""
        folder = self._folder(table)
        with describe(spark, f"check the columns of {table.name}"), named_fault(folder, "read"):
            nights = [] if is_connect(spark) else _list_nights(spark, folder)
            places = [f"{folder}/{night}" for night in reversed(nights)] or [folder]
            found = next(filter(None, (read_schema(spark, place) for place in places)), None)
        return find_misfits(folder, table, found)

    def place(self, table: Table, run: Run) -> str:
        """See ``Store.place``."""
        return f"{self._folder(table)}/{run.partition}"

    def write(self, table: Table, rows: DataFrame, run: Run) -> None:
        """See ``Store.write``. One job."""
        _write_directory(rows, self.place(table, run))

    def write_nothing(self, spark: SparkSession, table: Table, run: Run) -> None:
        """See ``Store.write_nothing``. No job."""
        _write_empty_file(spark, table, self.place(table, run))

    def read(self, spark: SparkSession, table: Table, run: Run) -> DataFrame:
        """See ``Store.read``. Files of other types than the contract's cannot be read."""
        own = {RUN_DATE.name: F.lit(run.run_date), RUN_ID.name: F.lit(run.run_id)}
        schema = StructType([field for field in table.schema if field.name not in own])
        return spark.read.schema(schema).parquet(self.place(table, run)).withColumns(own)

    def read_runs(self, spark: SparkSession, table: Table, runs: Sequence[Run]) -> DataFrame:
        """See ``Store.read_runs``."""
        files = spark.read.schema(table.schema).option("basePath", self._folder(table))
        return files.parquet(*(self.place(table, run) for run in runs))

    def read_ledger(self, spark: SparkSession, run_date: date | None) -> DataFrame:
        """See ``Store.read_ledger``. Lists the directories of that night alone."""
        ledger = self._folder(BIAS_RUNS)
        schema = StructType([field for field in BIAS_RUNS.schema if field.name != RUN_DATE.name])
        try:
            if run_date is None:
                rows = spark.read.schema(BIAS_RUNS.schema).parquet(ledger)
            else:
                night = f"{ledger}/{RUN_DATE.name}={run_date.isoformat()}"
                rows = spark.read.schema(schema).parquet(night).withColumn(RUN_DATE.name, F.lit(run_date))
            return analyse(rows)
        except AnalysisException as error:
            if not has_condition(error, "PATH_NOT_FOUND"):
                raise
            return no_rows(spark, BIAS_RUNS)

    def list_runs(self, spark: SparkSession, table: Table) -> set[tuple[date, str]]:
        """See ``Store.list_runs``. Lists directories, also those in which nothing was finished."""
        return _list_runs(spark, self._folder(table))

    def remove_run(self, spark: SparkSession, table: Table, run: Run) -> None:
        """See ``Store.remove_run``."""
        with named_fault(self.place(table, run), "removed"):
            delete_folder(spark, self.place(table, run))

    def count_files(self, spark: SparkSession, table: Table, run: Run) -> list[int]:
        """See ``Store.count_files``."""
        return _count_files(spark, self.place(table, run))

    def tidy(self, spark: SparkSession, table: Table, before: datetime) -> None:
        """See ``Store.tidy``: files are never touched again, so there is nothing to do."""

    def _folder(self, table: Table) -> str:
        return f"{self.path}/{table.name}"


class CatalogStore:
    """Parquet tables of a Spark catalog, each partitioned by run_date and run_id.

    Parameters
    ----------
    catalog : str
        ``schema`` or ``catalog.schema``, parts with other characters than letters, digits and ``_`` in backticks.
    views : str, optional
        The schema that holds the views, where it is another one.

    Raises
    ------
    ConfigError
        If one is no such name.
    """

    provider = "parquet"

    def __init__(self, catalog: str, views: str | None = None) -> None:
        self.schema = _quote_schema("output.catalog", catalog)
        self.view_schema = self.schema if views is None else _quote_schema("output.views", views)

    @property
    def root(self) -> str:
        """See ``Store.root``."""
        return self.schema

    def name(self, table: str) -> str:
        """Return the quoted name of a table."""
        return f"{self.schema}.`{table}`"

    def view_name(self, view: str) -> str:
        """Return the quoted name of a view."""
        return f"{self.view_schema}.`{view}`"

    def has(self, spark: SparkSession, table: Table) -> bool:
        """Say whether a table is there."""
        return bool(spark.catalog.tableExists(self.name(table.name)))

    def check(self, spark: SparkSession, tables: Iterable[Table]) -> None:
        """See ``Store.check``."""
        _check_timestamps(spark)
        faults = []
        for table in tables:
            name = self.name(table.name)
            with named_fault(name, "read"):
                if not self.has(spark, table):
                    continue
                found, provider = spark.table(name).schema, self._describe(spark, table).get("Provider", "no table")
            if provider.lower() != self.provider:
                wanted = f"Tables are {self.provider.title()}"
                faults.append(f"{name}: it is {provider}. {wanted}. Move it away, or choose another output.")
            faults += find_misfits(name, table, found)
        if faults:
            raise InputError(*faults)

    def place(self, table: Table, run: Run) -> str:
        """See ``Store.place``; the directory itself is the catalog's to choose."""
        return f"{self.name(table.name)} {run.partition}"

    def write(self, table: Table, rows: DataFrame, run: Run) -> None:
        """See ``Store.write``. Makes schema and table where they are missing, and adds columns that are new."""
        with self._partition_of(rows.sparkSession, table, run) as place:
            _write_directory(rows, place)

    def write_nothing(self, spark: SparkSession, table: Table, run: Run) -> None:
        """See ``Store.write_nothing``. As a partition, for it to be listed and removed as any other."""
        with self._partition_of(spark, table, run) as place:
            _write_empty_file(spark, table, place)

    def read(self, spark: SparkSession, table: Table, run: Run) -> DataFrame:
        """See ``Store.read``. The types are those of the catalog."""
        return self._read_night(spark, table, run.run_date).where(F.col(RUN_ID.name) == F.lit(run.run_id))

    def read_runs(self, spark: SparkSession, table: Table, runs: Sequence[Run]) -> DataFrame:
        """See ``Store.read_runs``. Looks at no other night."""
        nights, ids = {run.run_date for run in runs}, {run.run_id for run in runs}
        rows = self._read_night(spark, table, None)
        return rows.where(F.col(RUN_DATE.name).isin(*sorted(nights)) & F.col(RUN_ID.name).isin(*sorted(ids)))

    def list_runs(self, spark: SparkSession, table: Table) -> set[tuple[date, str]]:
        """See ``Store.list_runs``. Lists directories, also those that never became a partition."""
        return _list_runs(spark, self._describe(spark, table)["Location"]) if self.has(spark, table) else set()

    def remove_run(self, spark: SparkSession, table: Table, run: Run) -> None:
        """See ``Store.remove_run``. First its partition, so that no reader looks for files that are gone."""
        with named_fault(self.place(table, run), "removed"):
            spark.sql(f"ALTER TABLE {self.name(table.name)} DROP IF EXISTS PARTITION ({_partition(run)})")
            delete_folder(spark, f"{self._describe(spark, table)['Location']}/{run.partition}")

    def count_files(self, spark: SparkSession, table: Table, run: Run) -> list[int]:
        """See ``Store.count_files``."""
        return _count_files(spark, f"{self._describe(spark, table)['Location']}/{run.partition}")

    def tidy(self, spark: SparkSession, table: Table, before: datetime) -> None:
        """See ``Store.tidy``: files are never touched again, so there is nothing to do."""

    def read_ledger(self, spark: SparkSession, run_date: date | None) -> DataFrame:
        """See ``Store.read_ledger``."""
        if not self.has(spark, BIAS_RUNS):
            return no_rows(spark, BIAS_RUNS)
        return self._read_night(spark, BIAS_RUNS, run_date)

    def _read_night(self, spark: SparkSession, table: Table, run_date: date | None) -> DataFrame:
        """Return the rows of one night, or of all if None; columns that the table does not have yet are NULL."""
        self._refresh(spark, table)
        rows = spark.table(self.name(table.name))
        later = [column.field for column in table.columns if column.name not in rows.columns]
        rows = rows.select("*", *(F.lit(None).cast(field.dataType).alias(field.name) for field in later))
        return rows if run_date is None else rows.where(F.col(RUN_DATE.name) == F.lit(run_date))

    def _refresh(self, spark: SparkSession, table: Table) -> None:
        """See what another session has added since this one first looked."""
        spark.catalog.refreshTable(self.name(table.name))

    @contextmanager
    def _partition_of(self, spark: SparkSession, table: Table, run: Run) -> Iterator[str]:
        """Give the directory of a run in a table, which becomes its partition after the block."""
        with named_fault(self.name(table.name), "created"):
            location = self._prepare(spark, table)
        yield f"{location}/{run.partition}"
        with named_fault(self.place(table, run), "added as a partition"):
            spark.sql(f"ALTER TABLE {self.name(table.name)} ADD PARTITION ({_partition(run)})")

    def _prepare(self, spark: SparkSession, table: Table) -> str:
        """Create the table or add its new columns, and return its location."""
        name = self.name(table.name)
        self._create_schema(spark)
        columns = ", ".join(map(define_column, table.columns))
        spark.sql(
            f"CREATE TABLE IF NOT EXISTS {name} ({columns}) USING parquet PARTITIONED BY ({', '.join(PARTITION)}) "
            f"COMMENT {quote_string(table.comment)}"
        )
        there = set(spark.table(name).columns)
        if new := [column for column in table.columns if column.name not in there]:
            spark.sql(f"ALTER TABLE {name} ADD COLUMNS ({', '.join(map(define_column, new))})")
        return self._describe(spark, table)["Location"]

    def _create_schema(self, spark: SparkSession) -> None:
        spark.sql(f"CREATE SCHEMA IF NOT EXISTS {self.schema}")

    def _describe(self, spark: SparkSession, table: Table) -> dict[str, str]:
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {self.name(table.name)}").collect()
        # The details of the table come after its columns, and win over a column of the same name.
        return {row["col_name"]: row["data_type"] for row in rows}


def _quote_schema(where: str, name: str) -> str:
    parts = re.findall(r"`(?:[^`]|``)+`|[^`.]+", name)
    if not parts or ".".join(parts) != name:
        raise ConfigError(f"{where}: {name!r} is not the name of a schema. Write schema or catalog.schema.")
    return ".".join(part if part.startswith("`") else quote_name(part) for part in parts)


def _check_timestamps(spark: SparkSession) -> None:
    if (found := spark.conf.get(_TIMESTAMPS)) != "TIMESTAMP_MICROS":
        raise ConfigError(f"{_TIMESTAMPS}: {found}. The ledger's times are microseconds. Set it to TIMESTAMP_MICROS.")


def read_schema(spark: SparkSession, path: str) -> StructType | None:
    """Return the columns of the Parquet files under a path, None where there are none."""
    try:
        return spark.read.parquet(path).schema
    except AnalysisException as error:
        if has_condition(error, "PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA"):
            return None
        raise


def _write_directory(rows: DataFrame, place: str) -> None:
    with named_fault(place, "written"):
        # Spark Connect knows errorifexists by its other name alone. What is whole is told by the ledger, not by a file
        # _SUCCESS beside each other one.
        writer = rows.drop(*PARTITION).write.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
        writer.mode("error").parquet(place)


def _write_empty_file(spark: SparkSession, table: Table, place: str) -> None:
    """Write a file that has the columns of a table and no row. Spark's own would take a job, and ten times as long."""
    if is_connect(spark):
        _write_directory(no_rows(spark, table).coalesce(1), place)
        return
    columns = StructType([field for field in table.schema if field.name not in PARTITION])
    schema = to_arrow_schema(columns).with_metadata({_SCHEMA_FOR_SPARK: columns.json()})
    content = pa.BufferOutputStream()
    write_table(schema.empty_table(), content)
    with named_fault(place, "written"):
        write_file(spark, f"{place}/part-00000.parquet", content.getvalue().to_pybytes())


def _partition(run: Run) -> str:
    return f"run_date = DATE'{run.run_date.isoformat()}', run_id = {quote_string(run.run_id)}"


def _list_runs(spark: SparkSession, folder: str) -> set[tuple[date, str]]:
    """Return the runs that have a directory; names that no run could have are none of ours."""
    found = set()
    for night in _list_nights(spark, folder):
        for attempt in list_folder(spark, f"{folder}/{night}"):
            if attempt.is_folder and (named := _ATTEMPT.fullmatch(attempt.name)):
                found.add((date.fromisoformat(night.removeprefix("run_date=")), named[1]))
    return found


def _list_nights(spark: SparkSession, folder: str) -> list[str]:
    """Return the names of the directories of nights, the first night first."""
    return sorted(entry.name for entry in list_folder(spark, folder) if _NIGHT.fullmatch(entry.name))


def _count_files(spark: SparkSession, folder: str) -> list[int]:
    return [entry.n_bytes for entry in list_folder(spark, folder) if entry.name.endswith(".parquet")]
