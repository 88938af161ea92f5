"""What several modules here read, and a catalog to write to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pyspark.sql.functions as F
import pytest
from pyspark.sql import SparkSession

from biasspark.tables.store import CatalogStore


@pytest.fixture(scope="session")
def formats(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same six rows in every format."""
    place = tmp_path_factory.mktemp("formats")
    nights = ["2026-01-15", "2026-01-15", "2026-01-16", None, "2026-01-14", "2026-01-15"]
    rows = [(n, n % 2 == 0, n / 8, 1.0, night, f"text {n}") for n, night in enumerate(nights)]
    frame = spark_session.createDataFrame(rows, "id INT, y BOOLEAN, s DOUBLE, u DOUBLE, night STRING, text STRING")
    frame = frame.withColumn("day", F.to_date("night"))
    frame = frame.withColumn("moment", F.col("day").cast("timestamp") + F.expr("INTERVAL 23 HOURS"))
    for kind in ("parquet", "orc", "json"):
        frame.coalesce(1).write.format(kind).save(str(place / kind))
    frame.coalesce(1).write.option("header", True).csv(str(place / "csv"))
    return place


@pytest.fixture
def catalog(spark: SparkSession) -> Iterator[CatalogStore]:
    """Give a schema of its own to a test, in the catalog of the session."""
    store = CatalogStore(f"spark_catalog.bias_{uuid4().hex[:8]}")
    yield store
    spark.sql(f"DROP SCHEMA IF EXISTS {store.schema} CASCADE")
