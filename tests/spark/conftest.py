"""What several modules here read."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import NamedTuple

import pyspark.sql.functions as F
import pytest
from pyspark.sql import SparkSession

from biasspark.tables.publish import publish
from biasspark.tables.runs import Run
from biasspark.tables.schemas import BIAS_METRICS
from biasspark.tables.store import PathStore, Store
from biasspark.tables.views import refresh_views
from tests.harness.sample_run import RUN_DATE, full_rows, record_of, run_at, start_run, suite_tables
from tests.harness.small_corpora import write_rows

ANNOTATED_ROWS = 20_000
HOSTILE = 'it\'s `a` "b"; DROP TABLE x --\n../../x/y=z\u202e\x00é'
NEXT_DATE = date(2026, 1, 16)


@pytest.fixture(scope="session")
def formats(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same six rows in every format."""
    place = tmp_path_factory.mktemp("formats")
    days = ["2026-01-15", "2026-01-15", "2026-01-16", None, "2026-01-14", "2026-01-15"]
    rows = [(n, n % 2 == 0, n / 8, 1.0, day, f"text {n}") for n, day in enumerate(days)]
    frame = spark_session.createDataFrame(rows, "id INT, y BOOLEAN, s DOUBLE, u DOUBLE, night STRING, text STRING")
    frame = frame.withColumn("day", F.to_date("night"))
    frame = frame.withColumn("moment", F.col("day").cast("timestamp") + F.expr("INTERVAL 23 HOURS"))
    for kind in ("parquet", "orc", "json"):
        frame.coalesce(1).write.format(kind).save(str(place / kind))
    frame.coalesce(1).write.option("header", True).csv(str(place / "csv"))
    return place


@pytest.fixture(scope="session")
def few_rows(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a few rows that Spark wrote, for tests that damage a copy or add to it."""
    folder = tmp_path_factory.mktemp("few") / "rows"
    write_rows(spark_session, folder)
    return folder


@pytest.fixture(scope="session")
def annotated_path(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A corpus of 20,000 rows in Parquet, three quarters of it without annotations."""
    digits = [F.pmod(F.xxhash64("id", F.lit(seed)), F.lit(1000)) / 1000 for seed in range(6)]
    annotated = digits[5] < 0.25
    corpus = spark_session.range(ANNOTATED_ROWS, numPartitions=2).select(
        "id",
        (digits[0] < 0.2).alias("toxic"),
        F.round(digits[1] + F.when(digits[0] < 0.2, 0.3).otherwise(0.0), 2).alias("tied"),
        ((digits[2] + digits[1]) * digits[0]).alias("smooth"),
        F.when(annotated, digits[3]).alias("male"),
        F.when(annotated, digits[4]).alias("female"),
    )
    path = str(tmp_path_factory.mktemp("corpus") / "rows.parquet")
    corpus.write.parquet(path)
    return path


class Warehouse(NamedTuple):
    """A folder with published runs, and the run of its hostile corpus."""

    folder: Path
    hostile: Run

    @property
    def store(self) -> PathStore:
        return PathStore(str(self.folder))


def publish_runs(spark: SparkSession, store: Store) -> Run:
    """Publish two corpora and two dates; the first date of civil is run again, and once more by a run that dies."""
    publish(spark, suite_tables(0.6), run_at(1, "r9_first", "civil"), store, record_of())
    publish(spark, suite_tables(0.7), start_run("civil"), store, record_of())
    hostile = publish(spark, suite_tables(0.8, rejected=0), start_run(HOSTILE), store, record_of())
    publish(spark, suite_tables(0.9), start_run("civil", NEXT_DATE), store, record_of())
    dead = run_at(2, "rz_crashed", "civil")
    store.write(spark, BIAS_METRICS, full_rows(BIAS_METRICS, suite_tables(0.1)[BIAS_METRICS], dead), dead)
    return hostile


@pytest.fixture(scope="session")
def warehouse(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """Runs under a path with characters that quoting must survive, for tests that only read them."""
    folder = tmp_path_factory.mktemp('o\'brien; "x" `y` é%20') / "ware house"
    hostile = publish_runs(spark_session, PathStore(str(folder)))
    leftover = folder / "model_summary" / f"run_date={RUN_DATE}" / "run_id=r_dead" / "_temporary" / "0"
    leftover.mkdir(parents=True)
    (leftover / "part-00000.snappy.parquet").write_bytes(b"half a file")
    assert refresh_views(spark_session, PathStore(str(folder))) == ()
    return Warehouse(folder, hostile)
