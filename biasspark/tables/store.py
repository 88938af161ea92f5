"""Where tables live, of whatever format: what publishing and reading need of the place, and how it is opened."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from biasspark.config import Output
from biasspark.tables.formats import FORMATS
from biasspark.tables.lake import DeltaFolder, LakeStore
from biasspark.tables.parquet import CatalogStore, PathStore
from biasspark.tables.runs import Run
from biasspark.tables.schemas import Table

__all__ = ["CatalogStore", "DeltaFolder", "LakeStore", "PathStore", "Store", "open_store", "session_settings"]


class Store(Protocol):
    """What publishing needs of the place where tables live."""

    @property
    def root(self) -> str:
        """Where the tables live, as messages name it."""

    def check(self, spark: SparkSession, tables: Iterable[Table]) -> None:
        """Refuse tables that are there already with columns that do not fit; creates nothing.

        Raises
        ------
        InputError
            With one fault per table, listing its columns and those of the contract.
        """

    def place(self, table: Table, run: Run) -> str:
        """Return where the run's rows of one table are."""

    def write(self, table: Table, rows: DataFrame, run: Run) -> None:
        """Write the run's rows of one table; ``rows`` has the table's columns.

        Raises
        ------
        BiasSparkError
            If it cannot be written, naming the place and the cause.
        """

    def write_nothing(self, spark: SparkSession, table: Table, run: Run) -> None:
        """Leave one table without rows of the run, but there, with its columns. Raises as ``write``."""

    def read(self, spark: SparkSession, table: Table, run: Run) -> DataFrame:
        """Return the run's rows of one table as readers get them, published or not."""

    def read_runs(self, spark: SparkSession, table: Table, runs: Sequence[Run]) -> DataFrame:
        """Return the rows of one table that some runs have, one at least, in one scan."""

    def list_runs(self, spark: SparkSession, table: Table) -> set[tuple[date, str]]:
        """Return (run_date, run_id) of all that a table holds, whether published, superseded or left by a dead run."""

    def remove_run(self, spark: SparkSession, table: Table, run: Run) -> None:
        """Remove what a table holds of a run; nothing happens where that is nothing."""

    def count_files(self, spark: SparkSession, table: Table, run: Run) -> list[int]:
        """Return the bytes of each file that holds the run's rows; none where the format compacts them itself."""

    def tidy(self, spark: SparkSession, table: Table, before: datetime) -> None:
        """Compact a table in the format's own way, and give up what only readers from before a time could need."""

    def read_ledger(self, spark: SparkSession, run_date: date | None) -> DataFrame:
        """Return the ledger's rows of one night, or of all if None; none where there is no ledger yet."""


def open_store(output: Output) -> PathStore | CatalogStore:
    """Return the store of the configured path or catalog, in its format; nothing is made or read yet."""
    if output.path is not None:
        return PathStore(output.path) if output.format == "parquet" else DeltaFolder(output.path)
    assert output.catalog is not None  # the configuration has one of the two
    if output.format == "parquet":
        return CatalogStore(output.catalog, output.views)
    return LakeStore(output.catalog, FORMATS[output.format], output.views)


def session_settings(output: Output) -> dict[str, str]:
    """Return what a session needs for that store: what Spark's own catalog holds must outlive the session."""
    own = any(name.startswith("spark_catalog.") for name in (output.catalog, output.views) if name)
    return {"spark.sql.catalogImplementation": "hive"} if own else {}
