"""Tables with transactions in a catalog: Delta and Iceberg.

A run appends its rows to a table in one commit, so a failed writer leaves nothing visible. Tables are partitioned by
run_date only: the formats find the files of a run by their statistics of run_id.
"""

from __future__ import annotations

import os
import re
from abc import abstractmethod
from collections.abc import Mapping
from datetime import UTC, date, datetime
from threading import Lock
from typing import ClassVar

import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql import DataFrame, SparkSession

from biasspark.errors import ConfigError, Fault
from biasspark.expressions.sql import quote_name, quote_string
from biasspark.tables.parquet import CatalogStore
from biasspark.tables.runs import Run
from biasspark.tables.schemas import BIAS_RUNS, CORPUS, RUN_DATE, RUN_ID, Table
from biasspark.tables.spark_schemas import PARTITION, spark_schema, to_frame
from biasspark.tables.storage_errors import (
    NO_CLASS,
    describe_cause,
    refuse_embedded,
    storage_errors,
    unknown_catalog,
)

_EXTENSIONS = "spark.sql.extensions"
CONSTRAINT, NO_NAN = "delta.constraints.", "no_nan_from_"
"""The prefixes of all checks of a Delta table, and of the names of those for NaN."""
_VACUUM_CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"


class LakeStore(CatalogStore):
    """Tables of a catalog in a format with transactions, each partitioned by run_date.

    ``extension`` is the class in ``spark.sql.extensions``.
    """

    partition = (RUN_DATE.name,)
    extension: ClassVar[str]
    _creating: ClassVar[Lock] = Lock()

    @abstractmethod
    def _optimize(self, spark: SparkSession, table: Table, before: datetime) -> None:
        """Compact a table, and delete files that only snapshots before a time use."""

    def _refuse_session(self, spark: SparkSession) -> None:
        """Raise `ConfigError`, with the missing settings or flags, if the session lacks the format or the catalog."""
        refuse_embedded(spark, ("output", "format"), self.provider)
        key = f"spark.sql.catalog.{self.catalog}"
        missing = [] if self.extension in (spark.conf.get(_EXTENSIONS, "") or "") else [_EXTENSIONS]
        missing += [key] if spark.conf.get(key, None) is None else []
        if missing == [key] and self.catalog != "spark_catalog":
            raise ConfigError(unknown_catalog(("output", "catalog"), self.names[0], self.catalog))
        if missing:
            raise ConfigError(self._runtime_fault(spark, " and ".join(missing)))
        try:
            spark.catalog.tableExists(f"{quote_name(self.catalog)}.default.{BIAS_RUNS.name}")
        except Exception as error:
            if NO_CLASS.search(describe_cause(error)):
                raise ConfigError(self._runtime_fault(spark, "the classes that its settings name")) from error
            with storage_errors(f"catalog {self.catalog}", "opened"):
                raise

    def write(self, spark: SparkSession, table: Table, rows: pa.Table | DataFrame, run: Run) -> None:
        """See `PathStore.write`. One commit, once the table has all columns. Columns of a newer version are NULL."""
        name = self.name(table.name)
        # Tables are written in parallel, and some catalogs fail when a schema is created twice at once.
        with self._creating, storage_errors(name, "created"):
            self._prepare(spark, table)
        if isinstance(rows, pa.Table):
            if not len(rows):
                return
            rows = to_frame(spark, rows, spark_schema(table)).coalesce(1)
        with storage_errors(self.location(table, run), "written"):
            newer = [field for field in spark.table(name).schema if field.name not in table.names]
            nulls = (F.lit(None).cast(field.dataType).alias(field.name) for field in newer)
            rows.select("*", *nulls).writeTo(name).append()

    def list_runs(self, spark: SparkSession, table: Table) -> set[tuple[date, str]]:
        """See `PathStore.list_runs`. Reads two columns of the table."""
        if not self.has(spark, table):
            return set()
        return set(map(tuple, self._read_all(spark, table).select(*PARTITION).distinct().collect()))

    def remove_run(self, spark: SparkSession, table: Table, run: Run) -> None:
        """See `PathStore.remove_run`. One commit; the files are deleted when their snapshots expire."""
        with storage_errors(self.location(table, run), "removed"):
            self._delete(spark, table, run)

    def _delete(self, spark: SparkSession, table: Table, run: Run) -> None:
        spark.sql(
            f"DELETE FROM {self.name(table.name)} WHERE run_date = DATE'{run.run_date.isoformat()}' "
            f"AND run_id = {quote_string(run.run_id)}"
        )

    def optimize(self, spark: SparkSession, table: Table, before: datetime) -> None:
        """Compact an existing table, and delete files that only readers from before a time use."""
        with storage_errors(self.name(table.name), "compacted"):
            self._optimize(spark, table, before)

    def _read_properties(self, spark: SparkSession, table: Table) -> dict[str, str]:
        return dict(map(tuple, spark.sql(f"SHOW TBLPROPERTIES {self.name(table.name)}").collect()))

    def _runtime_fault(self, spark: SparkSession, missing: str) -> Fault:
        """Return the fault of a session without the runtime of the format."""
        rule = f"The session of Spark {spark.version} lacks {missing}. A table format needs its runtime."
        flags = f"--properties-file conf/lake-{self.provider}.conf, which is for Spark 4.1"
        fix = f'Give spark-submit {flags}; docs/runs.md names the other runtimes. Or set format = "parquet".'
        return Fault(("output", "format"), self.provider, rule, fix)


def no_nan(table: Table, properties: Mapping[str, str]) -> dict[str, str]:
    """Return the named check that no DOUBLE is NaN, for columns that no check in the properties of a Delta table names.

    NULL passes with any engine.
    """
    checks = " ".join(text for name, text in properties.items() if name.startswith(CONSTRAINT))
    checked = set(re.findall(r"\w+", checks))
    doubles = [column.name for column in table.columns if column.type == "DOUBLE" and column.name not in checked]
    check = " AND ".join(f"({name} IS NULL OR NOT isnan({name}))" for name in doubles)
    return {f"{NO_NAN}{doubles[0]}": check} if doubles else {}


class DeltaStore(LakeStore):
    """Delta tables of a catalog, which enforce NOT NULL and that no DOUBLE is NaN."""

    provider = "delta"
    extension = "io.delta.sql.DeltaSparkSessionExtension"

    def _refuse_session(self, spark: SparkSession) -> None:
        """See `LakeStore`. Databricks has Delta without settings."""
        if "DATABRICKS_RUNTIME_VERSION" not in os.environ:
            super()._refuse_session(spark)

    def _properties(self, table: Table) -> dict[str, str]:
        return {f"{CONSTRAINT}{name}": check for name, check in no_nan(table, {}).items()}

    def _constraints(self, spark: SparkSession, table: Table) -> list[str]:
        added = no_nan(table, self._read_properties(spark, table))
        return [f"ADD CONSTRAINT {name} CHECK ({check})" for name, check in added.items()]

    def _optimize(self, spark: SparkSession, table: Table, before: datetime) -> None:
        name, hours = self.name(table.name), max((datetime.now(UTC) - before).total_seconds() / 3600, 0)
        spark.sql(f"OPTIMIZE {name}")
        # The configured grace period may be less than a week, which Delta refuses by default.
        check = spark.conf.get(_VACUUM_CHECK, "true") or "true"
        spark.conf.set(_VACUUM_CHECK, "false")
        try:
            spark.sql(f"VACUUM {name} RETAIN {hours:.3f} HOURS")
        finally:
            spark.conf.set(_VACUUM_CHECK, check)


class IcebergStore(LakeStore):
    """Iceberg tables of a catalog, which enforce NOT NULL and know their key."""

    provider = "iceberg"
    extension = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"

    def _properties(self, table: Table) -> dict[str, str]:  # noqa: ARG002 - Delta's
        return {
            # The rows of a run have one run date and are sorted: no shuffle and no sort are needed.
            "write.distribution-mode": "none",
            "write.spark.fanout.enabled": "true",
            # Each commit writes a metadata file. Ten earlier ones are kept.
            "write.metadata.delete-after-commit.enabled": "true",
            "write.metadata.previous-versions-max": "10",
        }

    def _constraints(self, spark: SparkSession, table: Table) -> list[str]:
        """Set the identifier fields where they are not set, unless the key has a DOUBLE, which cannot be one."""
        if not table.unique or any(column.type == "DOUBLE" for column in table.key):
            return []
        if "identifier-fields" in self._read_properties(spark, table):
            return []
        return [f"SET IDENTIFIER FIELDS {', '.join((RUN_DATE.name, CORPUS.name, *table.key_columns, RUN_ID.name))}"]

    def _optimize(self, spark: SparkSession, table: Table, before: datetime) -> None:
        """Call the procedures of the format. Orphaned files are removed if they are a day old."""
        name, time = quote_string(self.name(table.name)), f"TIMESTAMP{quote_string(f'{before:%Y-%m-%d %H:%M:%S}')}"
        calls = [f"rewrite_data_files(table => {name})"]
        calls += [f"expire_snapshots(table => {name}, older_than => {time}, retain_last => 1)"]
        if (datetime.now(UTC) - before).days >= 1:
            calls += [f"remove_orphan_files(table => {name}, older_than => {time})"]
        for call in calls:
            spark.sql(f"CALL {quote_name(self.catalog)}.system.{call}")
