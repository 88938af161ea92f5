"""Tables with transactions: Delta in a folder or a catalog, Iceberg in a catalog.

A run appends its rows to a table in one commit, so a writer that dies leaves nothing that a reader sees. Tables are
partitioned by run_date alone: the files of a run are found by the statistics that the formats keep of run_id.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime
from pathlib import Path
from threading import Lock

import pyspark.sql.functions as F
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from biasspark.config import redact
from biasspark.errors import BiasSparkError, InputError, has_condition
from biasspark.expressions.sql import quote_name, quote_string
from biasspark.tables.contract import define_column, named_fault
from biasspark.tables.formats import DELTA, Format
from biasspark.tables.parquet import CatalogStore, PathStore, read_schema
from biasspark.tables.runs import Run
from biasspark.tables.schemas import RUN_DATE, RUN_ID, Table


class LakeStore(CatalogStore):
    """Delta or Iceberg tables of a catalog, each partitioned by run_date.

    Parameters
    ----------
    catalog : str
        ``schema`` or ``catalog.schema``.
    table_format : Format
        That of every table.
    views : str, optional
        The schema that holds the views, where it is another one.
    """

    def __init__(self, catalog: str, table_format: Format, views: str | None = None) -> None:
        super().__init__(catalog, views)
        self.catalog = catalog.partition(".")[0] if "." in catalog else "spark_catalog"
        self.format = table_format
        self.provider = table_format.name
        self._preparing = Lock()

    def check(self, spark: SparkSession, tables: Iterable[Table]) -> None:
        """See ``Store.check``.

        Raises
        ------
        ConfigError
            If the session does not speak the format.
        """
        self.format.check_session(spark, self.catalog)
        super().check(spark, tables)

    def write(self, table: Table, rows: DataFrame, run: Run) -> None:
        """See ``Store.write``. One commit, after those that make the table or add its new columns.

        A column that the table has of a newer version is NULL.
        """
        spark, name = rows.sparkSession, self.name(table.name)
        # Tables are written side by side, and not every catalog bears that a schema is made twice at once.
        with self._preparing, named_fault(name, "created"):
            self._prepare(spark, table)
        with named_fault(self.place(table, run), "written"):
            if not self.read(spark, table, run).isEmpty():
                raise BiasSparkError(
                    f"{self.place(table, run)}: it has rows already. A run writes a table once. Nothing was published. "
                    "Run again, which takes a new run_id."
                )
            newer = [field for field in spark.table(name).schema if field.name not in table.names]
            nulls = (F.lit(None).cast(field.dataType).alias(field.name) for field in newer)
            rows.select("*", *nulls).writeTo(name).append()

    def write_nothing(self, spark: SparkSession, table: Table, run: Run) -> None:  # noqa: ARG002 - others name it
        """See ``Store.write_nothing``. No commit but those that make the table or add its new columns."""
        with self._preparing, named_fault(self.name(table.name), "created"):
            self._prepare(spark, table)

    def list_runs(self, spark: SparkSession, table: Table) -> set[tuple[date, str]]:
        """See ``Store.list_runs``. Reads two columns of the table; what was not committed is no row."""
        if not self.has(spark, table):
            return set()
        self._refresh(spark, table)
        found = spark.table(self.name(table.name)).select(RUN_DATE.name, RUN_ID.name).distinct()
        return {(row[0], row[1]) for row in found.collect()}

    def remove_run(self, spark: SparkSession, table: Table, run: Run) -> None:
        """See ``Store.remove_run``. One commit; the files go when snapshots that have them expire."""
        with named_fault(self.place(table, run), "removed"):
            spark.sql(
                f"DELETE FROM {self.name(table.name)} WHERE run_date = DATE'{run.run_date.isoformat()}' "
                f"AND run_id = {quote_string(run.run_id)}"
            )

    def count_files(self, spark: SparkSession, table: Table, run: Run) -> list[int]:  # noqa: ARG002 - others look
        """See ``Store.count_files``: none, since the format compacts its files itself."""
        return []

    def tidy(self, spark: SparkSession, table: Table, before: datetime) -> None:
        """See ``Store.tidy``. The format's own compaction, and expiry of what no reader since then can need."""
        if not self.has(spark, table):
            return
        with named_fault(self.name(table.name), "tidied"):
            self.format.tidy(spark, self.catalog, self.name(table.name), before)

    def _prepare(self, spark: SparkSession, table: Table) -> str:
        """Create the table or add its new columns, with the constraints of the format; the location is its own."""
        name = self.name(table.name)
        if not self.has(spark, table):
            self._create_schema(spark)
            properties = [
                f"'{key}' = {quote_string(value)}" for key, value in self.format.choose_properties(table).items()
            ]
            ending = f" TBLPROPERTIES ({', '.join(properties)})" if properties else ""
            spark.sql(
                f"CREATE TABLE IF NOT EXISTS {name} ({', '.join(_define_columns(table))}) USING {self.format.name} "
                f"PARTITIONED BY ({RUN_DATE.name}) COMMENT {quote_string(table.comment)}{ending}"
            )
            new = table.columns
        else:
            there = set(spark.table(name).columns)
            new = tuple(column for column in table.columns if column.name not in there)
            if new:
                spark.sql(f"ALTER TABLE {name} ADD COLUMNS ({', '.join(map(define_column, new))})")
        for clause in self.format.list_constraints(table, new):
            spark.sql(f"ALTER TABLE {name} {clause}")
        return name


class DeltaFolder(LakeStore):
    """Delta tables under one path, on any file system that Spark knows.

    Parameters
    ----------
    path : str
        The folder of the tables; made when the first table is written.
    """

    def __init__(self, path: str) -> None:
        # Spark SQL names a table of Delta by its path in a schema of the format's name.
        super().__init__(DELTA.name, DELTA)
        self._folder = PathStore(path)

    @property
    def root(self) -> str:
        """See ``Store.root``."""
        return self._folder.root

    @property
    def path(self) -> str:
        """The folder as Spark names it."""
        return self._folder.path

    @property
    def local_folder(self) -> Path | None:
        """The folder as Python sees it, None on another file system than this machine's."""
        return self._folder.local_folder

    def check(self, spark: SparkSession, tables: Iterable[Table]) -> None:
        """See ``LakeStore.check``; refused as well is a folder that cannot be written to."""
        super().check(spark, tables)
        self._folder.refuse_unwritable(spark)

    def name(self, table: str) -> str:
        """Return the quoted name of a table."""
        return f"{self.schema}.{quote_name(self.path.rstrip('/') + '/' + table)}"

    def has(self, spark: SparkSession, table: Table) -> bool:
        """Say whether a table is there.

        Raises
        ------
        InputError
            If its folder holds files that are none of Delta's.
        """
        if self.local_folder is not None and not (self.local_folder / table.name).is_dir():
            return False
        try:
            return bool(spark.table(self.name(table.name)).columns)
        except AnalysisException as error:
            if not has_condition(error, "PATH_NOT_FOUND", "DELTA_TABLE_NOT_FOUND"):
                raise
        place = f"{self.path.rstrip('/')}/{table.name}"
        if read_schema(spark, place) is None:
            return False
        raise InputError(
            f"{redact(place)}: it is plain Parquet. Tables are Delta. Move it away, or choose another output."
        )

    def _create_schema(self, spark: SparkSession) -> None:
        """Paths need none."""

    def _refresh(self, spark: SparkSession, table: Table) -> None:
        """Nothing to do: Delta looks at the log whenever a table is named."""


def _define_columns(table: Table) -> list[str]:
    """Return the columns as a CREATE statement wants them; what every row must have is NOT NULL."""
    key = table.key_columns if table.unique else ()
    required = {RUN_DATE.name, "corpus", *key, RUN_ID.name}
    definitions = [(column, define_column(column)) for column in table.columns]
    return [
        text.replace(" COMMENT ", " NOT NULL COMMENT ", 1) if column.name in required else text
        for column, text in definitions
    ]
