"""What Spark does in a block of a test: its jobs, and how often it scans the corpus."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import uuid4

from pyspark.sql import SparkSession

from biasspark.session import is_connect

MOST_SPARK_JOBS = 55


@dataclass(frozen=True)
class Effort:
    n_jobs: int
    n_scans: int


@contextmanager
def watch(spark: SparkSession, n_rows: int, found: list[Effort]) -> Iterator[None]:
    """Count the Spark jobs of a block, and the scans of a corpus of so many rows.

    Spark knows of every stage how many records its tasks read, from files or from its cache. The corpus has more rows
    than all else that a night reads, so a stage that read as many has scanned it, whatever its plan looks like. Spark
    Connect tells nothing, and nothing is found.
    """
    if is_connect(spark):
        yield
        return
    context, group = spark.sparkContext, uuid4().hex
    context.setJobGroup(group, "watched")
    try:
        yield
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]  # None clears it
    context._jsc.sc().listenerBus().waitUntilEmpty()
    tracker, store = context.statusTracker(), context._jsc.sc().statusStore()
    jobs = [tracker.getJobInfo(number) for number in tracker.getJobIdsForGroup(group)]
    stages = {stage for job in jobs if job for stage in job.stageIds if tracker.getStageInfo(stage)}
    n_scans = sum(store.lastStageAttempt(stage).inputRecords() // n_rows for stage in stages)
    found.append(Effort(len(jobs), n_scans))
