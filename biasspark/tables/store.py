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
from biasspark.errors import ConfigError, Fault
from biasspark.session import is_embedded, job_session
from biasspark.tables.delta import DeltaFolder
from biasspark.tables.lake import DeltaStore, IcebergStore
from biasspark.tables.parquet import CatalogStore, PathStore

Store: TypeAlias = PathStore | CatalogStore

_IMPLEMENTATION = "spark.sql.catalogImplementation"


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
    """Yield the session of a job, with more settings, and its store. Show the progress of long stages.

    Raises `ConfigError` if tables or views in the catalog of Spark would end with the session or its server.
    """
    store, output = open_store(config.output), config.output
    names = {key: getattr(output, key) or "" for key in ("catalog", "views")}
    in_spark = {key: name for key, name in names.items() if name.lower().startswith("spark_catalog.")}
    needed = {_IMPLEMENTATION: "hive"} if in_spark else {}
    progress.stage("starting the engine")
    with progress.reminding(), job_session(f"biasspark {job}: {config.corpus.name}", {**needed, **settings}) as spark:
        if in_spark and not is_embedded(spark) and _is_in_memory(spark):
            rule = "The catalog of this session is in memory, and ends with the session or its server."
            fix = f"Start the session, or its server, with {_IMPLEMENTATION}=hive, or set `[output] path`."
            raise ConfigError(*(Fault(("output", key), name, rule, fix) for key, name in in_spark.items()))
        yield spark, store


def _is_in_memory(spark: SparkSession) -> bool:
    """Return whether the catalog of Spark is in memory. Plugins other than Delta's store tables themselves."""
    plugin = spark.conf.get("spark.sql.catalog.spark_catalog", None)
    has_own = plugin is not None and not plugin.startswith("org.apache.spark.sql.delta.")
    return not has_own and spark.conf.get(_IMPLEMENTATION, None) != "hive"
