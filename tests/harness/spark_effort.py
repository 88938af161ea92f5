"""What Spark does in a block of a test: its queries and jobs, and how often it scans and shuffles the corpus."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import uuid4

import pyspark
from pyspark.sql import SparkSession

from biasspark.session import is_connect

IS_3_5 = pyspark.__version__.startswith("3.5.")
MAX_SPARK_JOBS = 25
"""Of a run, whatever parts are on."""


@dataclass
class Effort:
    """What Spark did in a block."""

    n_jobs: int = 0  # with adaptive execution one query is several jobs
    n_scans: int = 0  # how often every row of the corpus was read
    n_shuffles: int = 0  # stages that read every row, and hand rows on to others
    n_queries: int = 0  # of SQL or of DataFrames, whatever number of jobs Spark makes of one
    driver_bytes: int = 0  # what came back to the driver, a few kB of bookkeeping a task with it
    shuffled_bytes: tuple[tuple[int, int], ...] = ()  # read and written by each stage, in order


@contextmanager
def watch(spark: SparkSession, n_rows: int) -> Iterator[Effort]:
    """Count what Spark does in a block, over a corpus of so many rows: give what is filled at its end.

    Spark knows of every stage how many records its tasks read, from files or from its cache. The corpus has more rows
    than all else that a run reads, so a stage that read as many has scanned it, whatever its plan looks like. Spark
    Connect tells nothing, and nothing is counted.
    """
    effort = Effort()
    if is_connect(spark):
        yield effort
        return
    context, group, first_query = spark.sparkContext, uuid4().hex, _next_query(spark)
    context.setJobGroup(group, "watched")
    try:
        yield effort
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]  # None clears it
    effort.n_queries = _next_query(spark) - first_query
    tracker, store = context.statusTracker(), context._jsc.sc().statusStore()
    jobs = [tracker.getJobInfo(number) for number in tracker.getJobIdsForGroup(group)]
    # Of a long session Spark forgets the stages that it skipped.
    numbers = {number for job in jobs if job for number in job.stageIds if tracker.getStageInfo(number)}
    stages = [store.lastStageAttempt(number) for number in sorted(numbers)]
    scans = [stage for stage in stages if stage.inputRecords() >= n_rows]
    effort.n_jobs = len(jobs)
    effort.n_scans = sum(stage.inputRecords() // n_rows for stage in scans)
    effort.n_shuffles = sum(stage.shuffleWriteRecords() > 0 for stage in scans)
    effort.driver_bytes = sum(stage.resultSize() for stage in stages)
    effort.shuffled_bytes = tuple((stage.shuffleReadBytes(), stage.shuffleWriteBytes()) for stage in stages)


def _next_query(spark: SparkSession) -> int:
    """Return the number of the next query. How many there were is not known: Spark keeps the last thousand."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    listed = spark._jsparkSession.sharedState().statusStore().executionsList()
    return int(listed.last().executionId()) + 1 if listed.size() else 0
