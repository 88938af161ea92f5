"""Delta tables in one folder.

On a disk of this machine small tables go through delta-rs (the package ``deltalake``), where it is installed: a night
then takes no Spark job for them, and the embedded engine needs neither Spark nor Java. Elsewhere Spark reads and writes
them all. Data files are written as those of plain Parquet are, and delta-rs commits them: its own writer takes no rows
with NULL where Spark has made the check that no DOUBLE is NaN, and gives DECIMAL columns wrong statistics.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import reduce
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyspark.sql.functions as F
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from biasspark.delta_rs import is_installed, list_features
from biasspark.errors import ConfigError, Fault, InputError, has_condition, redact
from biasspark.expressions.sql import quote_name
from biasspark.files import check_file_system, replace_local_file, shared_folder
from biasspark.session import is_embedded
from biasspark.tables import spark_schemas
from biasspark.tables.lake import DeltaStore
from biasspark.tables.parquet import PathStore, join_files, read_file, read_types
from biasspark.tables.runs import Run
from biasspark.tables.schemas import BIAS_RUNS, CORPUS, RUN_DATE, RUN_ID, Column, Table
from biasspark.tables.storage_errors import storage_errors

_CONSTRAINT = "delta.constraints."
_FEATURES = {"appendOnly", "checkConstraints", "invariants"}
_MOST_RETRIES = 100
"""Of a commit before which another one came."""


@dataclass(frozen=True)
class DeltaLog:
    """A table of the contract in a folder, which may be there or not. Each method looks at the log as it is then."""

    folder: Path
    table: Table

    def types(self) -> dict[str, str] | None:
        """Return the columns of the table, None where there is none."""
        log = self._open()
        return None if log is None else spark_schemas.column_types(pa.schema(log.schema().to_arrow()))

    def list_unsupported(self) -> list[str]:
        """Return what the table asks of those who write it that is not done here: features, and checks of others."""
        if (log := self._open()) is None:
            return []
        checks = {name for name in log.metadata().configuration if name.startswith(_CONSTRAINT)}
        return sorted(
            list_features(log) - _FEATURES
            | {name for name in checks if not name.startswith(_CONSTRAINT + spark_schemas.NO_NAN)}
        )

    def prepare(self) -> None:
        """Make the table where it is missing, and add columns and checks that are new."""
        for _ in range(_MOST_RETRIES):
            with suppress(import_module("deltalake.exceptions").CommitFailedError):  # another run changes it, too
                self._change()
                return
        self._change()

    def _change(self) -> None:
        log = self._open()
        if log is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            schema, night, comment = self._schema(self.table.columns), [RUN_DATE.name], self.table.comment
            library = import_module("deltalake")
            log = library.DeltaTable.create(self.folder, schema, "ignore", partition_by=night, description=comment)
        present = {field.name for field in log.schema().fields}
        if new := [column for column in self.table.columns if column.name not in present]:
            log.alter.add_columns(self._schema(new).fields)
        configuration = log.metadata().configuration
        checks = " ".join(text for name, text in configuration.items() if name.startswith(_CONSTRAINT))
        checked = set(re.findall(r"\w+", checks))
        for name, check in spark_schemas.no_nan(
            [column for column in self.table.columns if column.name not in checked]
        ).items():
            log.alter.add_constraint({name: check})

    def append(self, rows: pa.Table, run: Run) -> None:
        """Write the rows of a run as one file, and commit it."""
        if len(rows):
            file = self.new_path(run, ".parquet")
            file.parent.mkdir(exist_ok=True)
            content = pa.BufferOutputStream()
            pq.write_table(rows.drop_columns([RUN_DATE.name]), content, write_page_checksum=True)
            replace_local_file(file, bytes(content.getvalue().to_pybytes()))
            self.commit([file], run)

    def new_path(self, run: Run, ending: str) -> Path:
        """Return where a file or a folder of files of a run may be written; nothing is there, and no log names it."""
        return self.folder / f"{RUN_DATE.name}={run.run_date}" / f"{run.run_id}-{uuid4().hex}{ending}"

    def commit(self, files: Sequence[Path], run: Run) -> None:
        """Add files of a run to the table in one commit. Does nothing without files.

        Raises `ValueError` if a row has NULL in the key, or NaN: the table refuses them.
        """
        library = import_module("deltalake")
        if files:
            retries = library.CommitProperties(max_commit_retries=_MOST_RETRIES)
            log, actions = self._open(), [self._add(file, run) for file in files]
            log.create_write_transaction(actions, "append", log.schema(), [RUN_DATE.name], commit_properties=retries)

    def read(self, nights: Collection[date] | None = None, run_ids: Collection[str] | None = None) -> pa.Table:
        """Return the rows of some nights and runs, or of all. Raises `FileNotFoundError` if there is no table."""
        files = self.list_files(nights, run_ids)
        rows = join_files(self.table, [read_file(self.table, file, {RUN_DATE.name: day}) for day, file in files])
        return rows if run_ids is None else rows.filter(pc.is_in(rows[RUN_ID.name], pa.array(sorted(run_ids))))

    def list_files(
        self, nights: Collection[date] | None = None, run_ids: Collection[str] | None = None
    ) -> list[tuple[date, Path]]:
        """Return the files that may have rows of some nights and runs, or of all, with nights. Raises as `read`."""
        if (log := self._open()) is None:
            raise FileNotFoundError(str(self.folder))
        files = []
        for action in pa.table(log.get_add_actions(flatten=True)).to_pylist():
            day = action[f"partition.{RUN_DATE.name}"]
            first, last = (action.get(f"{end}.{RUN_ID.name}") for end in ("min", "max"))
            is_known = run_ids is not None and first is not None and last is not None
            if (nights is None or day in nights) and (
                not is_known or any(first <= run_id <= last for run_id in run_ids or ())
            ):
                files.append((day, self.folder / action["path"]))
        return sorted(files)

    def list_runs(self) -> set[tuple[date, str]]:
        """Return (run_date, run_id) of all that the table holds. Reads one column of each file."""
        return {
            (day, run_id)
            for day, file in ([] if self._open() is None else self.list_files())
            for run_id in pq.ParquetFile(file).read([RUN_ID.name])[RUN_ID.name].unique().to_pylist()
        }

    def remove(self, run: Run) -> None:
        """Remove the rows of a run in one commit; the files go when `optimize` comes to them."""
        if (log := self._open()) is not None:
            predicate = f"{RUN_DATE.name} = DATE'{run.run_date}' AND {RUN_ID.name} = '{run.run_id}'"
            log.delete(predicate, writer_properties=_without_statistics())

    def optimize(self, before: datetime) -> None:
        """Compact the table, and delete the files that nothing but versions older than a time still names."""
        if (log := self._open()) is not None:
            log.optimize.compact(writer_properties=_without_statistics())
            hours = math.ceil(max((datetime.now(UTC) - before).total_seconds(), 0) / 3600)
            log.vacuum(hours, dry_run=False, enforce_retention_duration=False, full=True)

    def _open(self) -> Any:
        """Return the table of the library, None where there is none."""
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
        """Return the action that adds a file of a run. Its statistics are those by which readers find a run."""
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
    """Return how files are written anew: with statistics of ids alone, since the library's of DECIMAL are wrong."""
    library = import_module("deltalake")
    ids = {name: library.ColumnProperties(statistics_enabled="CHUNK") for name in (CORPUS.name, RUN_ID.name)}
    return library.WriterProperties(
        default_column_properties=library.ColumnProperties(statistics_enabled="NONE"), column_properties=ids
    )


class DeltaFolder(DeltaStore):
    """Delta tables in one folder, on any file system that Spark knows; it is made when the first table is written."""

    def __init__(self, path: str) -> None:
        # Spark SQL names a table of Delta by its path in a schema of the format's name.
        super().__init__(self.provider)
        self._folder = PathStore(path)

    @property
    def root(self) -> str:
        """See `PathStore.root`."""
        return self._folder.root

    @property
    def local_folder(self) -> Path | None:
        """See `PathStore.local_folder`."""
        return self._folder.local_folder

    def name(self, table: str) -> str:
        """Return the quoted name of a table."""
        return f"{self.schema}.{quote_name(self._path(table))}"

    def has(self, spark: SparkSession, table: Table) -> bool:
        """See `types`."""
        return self.types(spark, table) is not None

    def types(self, spark: SparkSession, table: Table) -> dict[str, str] | None:
        """Return the columns that a table has, None where there is no table.

        Raises
        ------
        ConfigError
            If the session has no file system for the path.
        InputError
            If its folder holds files that do not belong to a Delta table.
        """
        check_file_system(spark, ("output", "path"), self._folder.path)
        if self.local_folder is not None and not (self.local_folder / table.name).is_dir():
            return None
        try:
            log = self._log(spark, table)
            types = log.types() if log else spark_schemas.column_types(spark.table(self.name(table.name)).schema)
        except AnalysisException as error:
            if not has_condition(error, "PATH_NOT_FOUND", "DELTA_TABLE_NOT_FOUND"):
                raise
            types = None
        if not types and read_types(spark, self._path(table.name)):
            path = redact(self._path(table.name))
            raise InputError(f"{path}: it is plain Parquet. Tables are Delta. Move it away, or choose another output.")
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
        files: dict[date, list[str]] = {}
        for day, file in log.list_files(*_sought(runs)):
            files.setdefault(day, []).append(str(file))
        if not files:
            return spark_schemas.no_rows(spark, table)
        schema = StructType([field for field in spark_schemas.spark_schema(table) if field.name != RUN_DATE.name])
        nights = (
            spark.read.schema(schema).parquet(*paths).withColumn(RUN_DATE.name, F.lit(day))
            for day, paths in files.items()
        )
        rows = reduce(DataFrame.unionByName, nights).select(*table.names)
        return rows.where(F.col(RUN_ID.name).isin(*{run.run_id for run in runs}))

    def read_rows(self, spark: SparkSession, table: Table, *runs: Run) -> pa.Table:
        """See `PathStore.read_rows`. No job where delta-rs reads the table."""
        log = self._log(spark, table)
        return log.read(*_sought(runs)) if log else super().read_rows(spark, table, *runs)

    def read_back(self, spark: SparkSession, tables: Sequence[Table], run: Run) -> dict[Table, pa.Table]:
        """See `ParquetStore.read_back`."""
        by_spark = [table for table in tables if self._log(spark, table) is None]
        rows = {table: self.read_rows(spark, table, run) for table in tables if table not in by_spark}
        return rows | super().read_back(spark, by_spark, run)

    def read_ledger(self, spark: SparkSession, run_date: date | None = None) -> pa.Table:
        """See `PathStore.read_ledger`."""
        log = self._log(spark, BIAS_RUNS) if self.has(spark, BIAS_RUNS) else None
        if log is None:
            return super().read_ledger(spark, run_date)
        return log.read(None if run_date is None else [run_date])

    def list_runs(self, spark: SparkSession, table: Table) -> set[tuple[date, str]]:
        """See `PathStore.list_runs`."""
        log = self._log(spark, table)
        if log is None:
            return super().list_runs(spark, table)
        with storage_errors(self.name(table.name), "read"):
            return log.list_runs()

    def remove_run(self, spark: SparkSession, table: Table, run: Run) -> None:
        """See `LakeStore.remove_run`."""
        if (log := self._log(spark, table)) is None:
            super().remove_run(spark, table, run)
        else:
            with storage_errors(self.location(table, run), "removed"):
                log.remove(run)

    def optimize(self, spark: SparkSession, table: Table, before: datetime) -> None:
        """See `LakeStore.optimize`."""
        if (log := self._log(spark, table)) is None:
            super().optimize(spark, table, before)
        else:
            with storage_errors(self.name(table.name), "compacted"):
                log.optimize(before)

    def _log(self, spark: SparkSession, table: Table) -> DeltaLog | None:
        """Return the log of a table that delta-rs reads and writes, None if Spark does.

        Raises
        ------
        ConfigError
            If the embedded engine lacks delta-rs.
        InputError
            If it has a table that delta-rs cannot write.
        """
        if not is_installed() and is_embedded(spark):
            rule = "deltalake is not installed, by which the embedded engine reads and writes Delta."
            fix = "Install it, pip install 'biasspark[delta]', or run the job on Spark."
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
                "not know. Run the job on Spark, or choose another output."
            )
        return None if unsupported else log

    def _path(self, table: str) -> str:
        return f"{self._folder.path}/{table}"

    def _refuse_session(self, spark: SparkSession) -> None:
        """See `LakeStore`; the embedded engine needs delta-rs alone."""
        if is_embedded(spark):
            self._log(spark, BIAS_RUNS)
        else:
            super()._refuse_session(spark)

    def _examine(self, spark: SparkSession, table: Table) -> list[str]:
        """See `CatalogStore.check`: what is there and not of Delta is refused by `types`."""
        name = self.name(table.name)
        with storage_errors(name, "read"):
            return spark_schemas.schema_faults(name, table, self.types(spark, table))

    def check(self, spark: SparkSession, tables: Iterable[Table]) -> None:
        """See `CatalogStore.check`; refused as well is a folder that cannot be written to."""
        super().check(spark, tables)
        self._folder.refuse_unwritable(spark)

    def _create_schema(self, spark: SparkSession) -> None:
        """Paths need none."""

    def _refresh(self, spark: SparkSession, table: Table) -> None:
        """Nothing to do: Delta looks at the log whenever a table is named."""


def _sought(runs: Sequence[Run]) -> tuple[set[date], set[str]]:
    return {run.run_date for run in runs}, {run.run_id for run in runs}
