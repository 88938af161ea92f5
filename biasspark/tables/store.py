"""The store of the tables: a folder or a catalog, in Parquet, Delta or Iceberg.

All stores have the methods of `PathStore`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import TypeAlias

from pyspark.sql import SparkSession

from biasspark.cli import Progress
from biasspark.config import Config, Output
from biasspark.session import job_session
from biasspark.session_request import describe_start
from biasspark.tables.delta import DeltaFolder
from biasspark.tables.lake import DeltaStore, IcebergStore
from biasspark.tables.parquet import CatalogStore, PathStore

Store: TypeAlias = PathStore | CatalogStore


def open_store(output: Output) -> Store:
    """Return the store of the configured path or catalog. Nothing is created or read yet."""
    if output.path is not None:
        return PathStore(output.path) if output.format == "parquet" else DeltaFolder(output.path)
    assert output.catalog is not None  # the configuration has one of the two
    stores = {"parquet": CatalogStore, "delta": DeltaStore, "iceberg": IcebergStore}
    return stores[output.format](output.catalog, output.views)


@contextmanager
def open_tables(
    job: str, config: Config, progress: Progress, settings: Mapping[str, str] = MappingProxyType({})
) -> Iterator[tuple[SparkSession, Store]]:
    """Yield the session of a job, with more settings, and its store. Show the progress of long stages."""
    store, output = open_store(config.output), config.output
    # Tables in the catalog of Spark must outlive the session.
    in_session = any(name.startswith("spark_catalog.") for name in (output.catalog, output.views) if name)
    needed = {"spark.sql.catalogImplementation": "hive"} if in_session else {}
    progress.stage(describe_start())
    with progress.reminding(), job_session(f"biasspark {job}: {config.corpus.name}", {**needed, **settings}) as spark:
        yield spark, store
