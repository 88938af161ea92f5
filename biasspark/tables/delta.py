"""Delta tables in one folder.

On a local disk, delta-rs (the package ``deltalake``) handles small tables if it is installed: they take no Spark job,
and the embedded engine needs neither Spark nor Java. Otherwise Spark reads and writes all tables. Data files are
written like those of plain Parquet, and delta-rs commits them: its own writer rejects NULL in columns for which Spark
has made the check that no DOUBLE is NaN, and writes wrong statistics for DECIMAL columns.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyspark.sql.functions as F
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from biasspark.errors import ConfigError, Fault, InputError, has_condition, how_to_install, redact
from biasspark.expressions.sql import quote_name
from biasspark.session import is_embedded
from biasspark.session.files import check_file_system, shared_folder
from biasspark.tables import spark_schemas
from biasspark.tables.lake import CONSTRAINT, NO_NAN, DeltaStore, no_nan
from biasspark.tables.parquet import PathStore, join_files, read_file, read_types, stored_schema, write_local_file
from biasspark.tables.runs import Run
from biasspark.tables.schemas import BIAS_RUNS, CORPUS, RUN_DATE, RUN_ID, Column, Table
from biasspark.tables.storage_errors import storage_errors

_FEATURES = {"appendOnly", "checkConstraints", "invariants"}
_MAX_RETRIES = 100
"""Retries of a commit that conflicts with another one."""


@dataclass(frozen=True)
class DeltaLog:
    """The Delta log of a table in a folder, which may not exist yet. Each method reads the current log."""

    folder: Path
    table: Table

    def types(self) -> dict[str, str] | None:
        """Return the columns of the table, None if there is no table."""
        log = self._open()
        return None if log is None else spark_schemas.column_types(pa.schema(log.schema().to_arrow()))

    def list_unsupported(self) -> list[str]:
        """Return the features and checks of the table that this writer does not support."""
        if (log := self._open()) is None:
            return []
        checks = {name for name in log.metadata().configuration if name.startswith(CONSTRAINT)}
        more_checks = {name for name in checks if not name.startswith(CONSTRAINT + NO_NAN)}
        return sorted(list_features(log) - _FEATURES | more_checks)

    def prepare(self) -> None:
        """Create the table if it is missing, and add new columns and checks."""
        for _ in range(_MAX_RETRIES):
            with suppress(import_module("deltalake.exceptions").CommitFailedError):  # another run changes it, too
                self._prepare_once()
                return
        self._prepare_once()

    def _prepare_once(self) -> None:
        log = self._open()
        if log is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            library, schema = import_module("deltalake"), self._schema(self.table.columns)
            once = library.CommitProperties(max_commit_retries=0)  # a second creation would be a change for writers
            described = {"partition_by": [RUN_DATE.name], "description": self.table.comment, "commit_properties": once}
            log = library.DeltaTable.create(self.folder, schema, "ignore", **described)
        present = {field.name for field in log.schema().fields}
        if new := [column for column in self.table.columns if column.name not in present]:
            log.alter.add_columns(self._schema(new).fields)
        for name, check in no_nan(self.table, log.metadata().configuration).items():
            log.alter.add_constraint({name: check})

    def append(self, rows: pa.Table, run: Run) -> None:
        """Write the rows of a run to one file, and commit it."""
        if len(rows):
            file = self.new_path(run, ".parquet")
            file.parent.mkdir(exist_ok=True)
            write_local_file(file, rows.drop_columns([RUN_DATE.name]))
            self.commit([file], run)

    def new_path(self, run: Run, ending: str) -> Path:
        """Return a new path for a file or a folder of files of a run."""
        return self.folder / f"{RUN_DATE.name}={run.run_date}" / f"{run.run_id}-{uuid4().hex}{ending}"

    def commit(self, files: Sequence[Path], run: Run) -> None:
        """Add files of a run in one commit, if there are any. Raises `ValueError` for NULL in the key, or NaN."""
        library = import_module("deltalake")
        if files:
            retries = library.CommitProperties(max_commit_retries=_MAX_RETRIES)
            log, actions = self._open(), [self._add(file, run) for file in files]
            log.create_write_transaction(actions, "append", log.schema(), [RUN_DATE.name], commit_properties=retries)

    def read(self, dates: Collection[date] | None = None, run_ids: Collection[str] | None = None) -> pa.Table:
        """Return the rows of some run dates and runs, or all. Raises `FileNotFoundError` if there is no table."""
        files = self.list_files(dates, run_ids)
        rows = join_files(self.table, [read_file(self.table, file, {RUN_DATE.name: day}) for day, file in files])
        return rows if run_ids is None else rows.filter(pc.is_in(rows[RUN_ID.name], pa.array(sorted(run_ids))))

    def list_files(
        self, dates: Collection[date] | None = None, run_ids: Collection[str] | None = None
    ) -> list[tuple[date, Path]]:
        """Return run dates and files that may have rows of some run dates and runs, or all. Raises as `read`."""
        if (log := self._open()) is None:
            raise FileNotFoundError(str(self.folder))
        files = []
        for action in pa.table(log.get_add_actions(flatten=True)).to_pylist():
            day = action[f"partition.{RUN_DATE.name}"]
            first, last = (action.get(f"{end}.{RUN_ID.name}") for end in ("min", "max"))
            if dates is not None and day not in dates:
                continue
            if run_ids is None or None in (first, last) or any(first <= run_id <= last for run_id in run_ids):
                files.append((day, self.folder / action["path"]))
        return sorted(files)

    def list_runs(self) -> set[tuple[date, str]]:
        """Return (run_date, run_id) of all runs in the table. Reads one column of each file."""
        return {
            (day, run_id)
            for day, file in ([] if self._open() is None else self.list_files())
            for run_id in pq.ParquetFile(file).read([RUN_ID.name])[RUN_ID.name].unique().to_pylist()
        }

    def remove(self, run: Run) -> None:
        """Remove the rows of a run in one commit. `optimize` deletes the files later."""
        if (log := self._open()) is not None:
            predicate = f"{RUN_DATE.name} = DATE'{run.run_date}' AND {RUN_ID.name} = '{run.run_id}'"
            log.delete(predicate, writer_properties=_without_statistics())

    def optimize(self, before: datetime) -> None:
        """Compact the table, and delete files that only versions before a time use."""
        if (log := self._open()) is not None:
            log.optimize.compact(writer_properties=_without_statistics())
            hours = math.ceil(max((datetime.now(UTC) - before).total_seconds(), 0) / 3600)
            log.vacuum(hours, dry_run=False, enforce_retention_duration=False, full=True)

    def _open(self) -> Any:
        library = import_module("deltalake")
        try:
            return library.DeltaTable(self.folder)
        except library.exceptions.TableNotFoundError:
            return None

    def _schema(self, columns: Sequence[Column]) -> Any:
        required = spark_schemas.required_columns(self.table)
        fields = [pa.field(c.name, c.arrow_type, c.name not in required, {"comment": c.comment}) for c in columns]
        return import_module("deltalake").Schema.from_arrow(pa.schema(fields))

    def _add(self, file: Path, run: Run) -> Any:
        """Return the action that adds a file of a run, with the statistics by which readers find the run."""
        with pq.ParquetFile(file) as rows:
            for name in spark_schemas.required_columns(self.table) - {RUN_DATE.name}:
                if rows.read([name])[name].null_count:
                    raise ValueError(f"NULL in {name}, which is NOT NULL")
            for column in self.table.columns:
                if column.type == "DOUBLE" and pc.any(pc.is_nan(rows.read([column.name])[column.name])).as_py():
                    raise ValueError(f"NaN in {column.name}, which the checks of the table exclude")
            n_rows = rows.metadata.num_rows
        ends = {RUN_ID.name: run.run_id}
        statistics = {"numRecords": n_rows, "minValues": ends, "maxValues": ends, "nullCount": {RUN_ID.name: 0}}
        return import_module("deltalake.transaction").AddAction(
            path=file.relative_to(self.folder).as_posix(),
            size=file.stat().st_size,
            partition_values={RUN_DATE.name: run.run_date.isoformat()},
            modification_time=time.time_ns() // 1_000_000,
            data_change=True,
            stats=json.dumps(statistics),
        )


def _without_statistics() -> Any:
    """Return writer properties with statistics of ids only: the library writes wrong ones for DECIMAL."""
    library = import_module("deltalake")
    ids = {name: library.ColumnProperties(statistics_enabled="CHUNK") for name in (CORPUS.name, RUN_ID.name)}
    return library.WriterProperties(
        default_column_properties=library.ColumnProperties(statistics_enabled="NONE"), column_properties=ids
    )


def is_installed() -> bool:
    """Return whether delta-rs is installed."""
    return find_spec("deltalake") is not None


def list_features(log: Any, *, reading: bool = False) -> set[str]:
    """Return the features that writers, or readers, of a table must support, or the version of an old protocol."""
    protocol = log.protocol()
    named = {*(protocol.reader_features or ()), *(() if reading else protocol.writer_features or ())}
    versions = f"version {protocol.min_reader_version}, {protocol.min_writer_version} of the protocol"
    # Up to these versions, the only features are NOT NULL and checks.
    is_plain = protocol.min_reader_version <= 1 and (reading or protocol.min_writer_version <= 3)
    return named or (set() if is_plain else {versions})


class DeltaFolder(DeltaStore):
    """Delta tables in one folder, on any file system of the session. The folder is created on the first write."""

    def __init__(self, path: str) -> None:
        # Spark SQL names a Delta table by its path in the schema delta.
        super().__init__(self.provider)
        self._folder = PathStore(path)
        self.root, self.local_folder = self._folder.root, self._folder.local_folder

    def name(self, table: str) -> str:
        """Return the quoted name of a table."""
        return f"{self.schema}.{quote_name(self._path(table))}"

    def has(self, spark: SparkSession, table: Table) -> bool:
        """See `types`."""
        return self.types(spark, table) is not None

    def types(self, spark: SparkSession, table: Table) -> dict[str, str] | None:
        """Return the columns of a table, None if there is none. Raises `InputError` if it is plain Parquet."""
        check_file_system(spark, ("output", "path"), self._folder.path)
        folder = shared_folder(spark, self._folder.path)
        if folder is not None and not (folder / table.name).is_dir():
            return None
        try:
            log = self._log(spark, table)
            types = log.types() if log else spark_schemas.column_types(spark.table(self.name(table.name)).schema)
        except AnalysisException as error:
            if not has_condition(error, "PATH_NOT_FOUND", "DELTA_TABLE_NOT_FOUND"):
                raise
            types = None
        if not types and read_types(spark, self._path(table.name)):
            rule = f"{redact(self._path(table.name))} is a table of plain Parquet."
            fix = 'Set it to "parquet", or name another output.'
            raise InputError(Fault(("output", "format"), self.provider, rule, fix))
        return types or None

    def write(self, spark: SparkSession, table: Table, rows: pa.Table | DataFrame, run: Run) -> None:
        """See `LakeStore.write`."""
        log = self._log(spark, table)
        if log is None or (isinstance(rows, DataFrame) and not is_embedded(spark)):
            super().write(spark, table, rows, run)
            return
        with self._creating, storage_errors(self.name(table.name), "created"):
            log.prepare()
        with storage_errors(self.location(table, run), "written"):
            if isinstance(rows, pa.Table):
                log.append(rows, run)
            else:
                folder = log.new_path(run, "")
                rows.drop(RUN_DATE.name).write.parquet(str(folder))
                log.commit(sorted(folder.glob("*.parquet")), run)

    def read(self, spark: SparkSession, table: Table, *runs: Run) -> DataFrame:
        """See `PathStore.read`."""
        log = self._log(spark, table) if is_embedded(spark) else None
        if log is None:
            return super().read(spark, table, *runs)
        (run,) = runs
        files = [str(file) for _, file in log.list_files([run.run_date], [run.run_id])]
        if not files:
            return spark_schemas.no_rows(spark, table)
        rows = spark.read.schema(stored_schema(table, self.partition)).parquet(*files)
        rows = rows.where(F.col(RUN_ID.name) == run.run_id).withColumn(RUN_DATE.name, F.lit(run.run_date))
        return rows.select(*table.names)

    def read_rows(self, spark: SparkSession, table: Table, *runs: Run) -> pa.Table:
        """See `PathStore.read_rows`. No job if delta-rs reads the table."""
        if log := self._log(spark, table):
            return log.read({run.run_date for run in runs}, {run.run_id for run in runs})
        return super().read_rows(spark, table, *runs)

    def read_back(self, spark: SparkSession, tables: Sequence[Table], run: Run) -> dict[Table, pa.Table]:
        """See `ParquetStore.read_back`."""
        logs = {table: self._log(spark, table) for table in tables}
        rows = {table: log.read([run.run_date], [run.run_id]) for table, log in logs.items() if log}
        return rows | super().read_back(spark, [table for table in tables if table not in rows], run)

    def read_ledger(self, spark: SparkSession, first: date = date.min, last: date = date.max) -> pa.Table:
        """See `PathStore.read_ledger`."""
        log = self._log(spark, BIAS_RUNS) if self.has(spark, BIAS_RUNS) else None
        if log is None:
            return super().read_ledger(spark, first, last)
        return log.read({day for day, _ in log.list_files() if first <= day <= last})

    def list_runs(self, spark: SparkSession, table: Table) -> set[tuple[date, str]]:
        """See `PathStore.list_runs`."""
        with storage_errors(self.name(table.name), "read"):
            return log.list_runs() if (log := self._log(spark, table)) else super().list_runs(spark, table)

    def _delete(self, spark: SparkSession, table: Table, run: Run) -> None:
        if log := self._log(spark, table):
            log.remove(run)
        else:
            super()._delete(spark, table, run)

    def _optimize(self, spark: SparkSession, table: Table, before: datetime) -> None:
        if log := self._log(spark, table):
            log.optimize(before)
        else:
            super()._optimize(spark, table, before)

    def _log(self, spark: SparkSession, table: Table) -> DeltaLog | None:
        """Return the log of a table if delta-rs handles it, None if Spark does. The embedded engine needs delta-rs."""
        if not is_installed() and is_embedded(spark):
            rule = "deltalake is not installed. The embedded engine reads and writes Delta with it."
            fix = f"To get it, {how_to_install('delta')}. Or run the job on Spark."
            raise ConfigError(Fault(("output", "format"), self.provider, rule, fix))
        folder = shared_folder(spark, self._folder.path) if is_installed() else None
        if folder is None:
            return None
        log = DeltaLog(folder / table.name, table)
        with storage_errors(self.name(table.name), "read"):
            unsupported = log.list_unsupported()
        if unsupported and is_embedded(spark):
            raise InputError(
                f"{redact(self._path(table.name))}: it has {', '.join(unsupported)}, which the embedded engine does "
                "not support. Run the job on Spark, or choose another output."
            )
        return None if unsupported else log

    def _path(self, table: str) -> str:
        return f"{self._folder.path}/{table}"

    def _refuse_session(self, spark: SparkSession) -> None:
        """See `LakeStore`. The embedded engine needs delta-rs only."""
        if is_embedded(spark):
            self._log(spark, BIAS_RUNS)
        else:
            super()._refuse_session(spark)

    def _examine(self, spark: SparkSession, table: Table) -> list[str]:
        """Return the faults of the columns of a table; `types` refuses tables of another format."""
        name = self.name(table.name)
        with storage_errors(name, "read"):
            return spark_schemas.schema_faults(name, table, self.types(spark, table))

    def check(self, spark: SparkSession, tables: Iterable[Table]) -> None:
        """See `CatalogStore.check`. Also refuses a folder that cannot be written to."""
        super().check(spark, tables)
        self._folder.refuse_unwritable(spark)

    def _create_schema(self, spark: SparkSession) -> None:
        """Do nothing: paths need no schema."""

    def _refresh(self, spark: SparkSession, table: Table) -> None:
        """Do nothing: Delta reads the log at each use."""
