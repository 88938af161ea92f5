"""Delta tables in one folder.

On a disk of this machine small tables go through delta-rs, where it is installed: a night then takes no Spark job for
them, and the embedded engine needs no Spark. Elsewhere Spark reads and writes them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from biasspark.delta_rs import is_installed
from biasspark.errors import ConfigError, Fault, InputError, has_condition, redact
from biasspark.expressions.sql import quote_name
from biasspark.files import check_file_system, shared_folder
from biasspark.session import is_embedded
from biasspark.tables.delta_log import DeltaLog
from biasspark.tables.lake import DeltaStore
from biasspark.tables.parquet import PathStore
from biasspark.tables.parquet_files import read_types
from biasspark.tables.runs import Run
from biasspark.tables.schema_check import column_types, no_rows, schema_faults
from biasspark.tables.schemas import BIAS_RUNS, RUN_DATE, RUN_ID, Table
from biasspark.tables.spark_schemas import spark_schema
from biasspark.tables.storage_errors import storage_errors


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
            types = log.types() if log else column_types(spark.table(self.name(table.name)).schema)
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
            return no_rows(spark, table)
        schema = StructType([field for field in spark_schema(table) if field.name != RUN_DATE.name])
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
            return schema_faults(name, table, self.types(spark, table))

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
