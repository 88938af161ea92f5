"""What a ranking scans, moves and keeps: by the plans of Spark, and by what its jobs really did."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, redirect_stdout
from dataclasses import dataclass
from typing import Any

import pyspark.sql.functions as F
import pytest
from pyspark.sql import DataFrame, SparkSession

from biasspark.config import Measures, parse_measures
from biasspark.pipeline import measure, ranked_once
from biasspark.session import is_connect, persisted
from biasspark.tables.schemas import REJECTED_ROWS
from tests.spark.conftest import ANNOTATED_ROWS
from tests.spark_versions import IS_3_5

pytestmark = pytest.mark.usefixtures("compiled")

FURTHER_TABLES = ("pinned_auc", "threshold_rates", "threshold_summary", "score_histograms", "label_balance")
"""What else comes of the one ranking of `measures_of_corpus`."""


def measures_of_corpus(ranking: dict[str, Any] | None = None) -> Measures:
    table = {"models": ["tied", "smooth"], "label": {"column": "toxic"}, "identities": ["male", "female"]}
    further = {"pinned_auc": {}, "thresholds": {"at": [0.5]}, "histograms": {"bins": 5}, "label_balance": {}}
    return parse_measures(table | further | {"ranking": ranking or {}})


def plan_of(frame: DataFrame) -> str:
    text = io.StringIO()
    with redirect_stdout(text):
        frame.explain()
    return text.getvalue()


def count_nodes(plan: str, node: str) -> int:
    return len(re.findall(rf"^[ :*()0-9+-]*{node}\b", plan, re.MULTILINE))


def assert_no_window_over_everything(plan: str) -> None:
    lines = plan.splitlines()
    for place, line in enumerate(lines):
        if re.match(r"[ :*()0-9+-]*Window\b", line):
            exchange = next(below for below in lines[place:] if "Exchange" in below)
            assert "SinglePartition" not in exchange


def test_a_ranking_scans_once_and_shuffles_once(spark: SparkSession, annotated_path: str) -> None:
    ranked = measure(spark.read.parquet(annotated_path), measures_of_corpus()).ranking.ranked
    plan = plan_of(ranked)
    assert count_nodes(plan, "FileScan") == 1
    assert count_nodes(plan, "Exchange") == 1
    assert "Window" not in plan


@pytest.mark.slow
def test_every_table_comes_of_the_ranking_that_was_kept(spark: SparkSession, annotated_path: str) -> None:
    measurement = measure(spark.read.parquet(annotated_path), measures_of_corpus())
    with ranked_once(measurement) as (tally, _):
        found = {table.name: frame for table, frame in measurement.tables(tally, 100).items() if frame is not None}
        plans = {name: plan_of(frame) for name, frame in found.items()}
    assert set(plans) == {"u_statistics", "bias_metrics", "model_summary", *FURTHER_TABLES}
    assert all("InMemoryTableScan" in plan for plan in plans.values())
    for name in ("u_statistics", "bias_metrics", "model_summary"):
        assert_no_window_over_everything(plans[name])


@pytest.mark.slow
def test_windows_never_hold_a_whole_corpus(spark: SparkSession, annotated_path: str) -> None:
    measurement = measure(spark.read.parquet(annotated_path), measures_of_corpus({"engine": "windows"}))
    plan = plan_of(measurement.ranking.ranked)
    assert count_nodes(plan, "Window") >= 2
    assert_no_window_over_everything(plan)


@dataclass
class Work:
    """What Spark did in a block."""

    queries: int = 0
    """Actions, whatever number of jobs Spark makes of one."""
    scans: int = 0
    """Stages that read every row of the corpus."""
    shuffles: int = 0
    """Of these stages, those that hand rows on to others."""
    driver_bytes: int = 0
    """What came back to the driver, a few kB of bookkeeping a task with it."""


Watch = Callable[[str], AbstractContextManager[Work]]


@pytest.fixture
def watch(spark: SparkSession) -> Watch:
    """Count what Spark does in a block that is given a name."""
    if is_connect(spark):
        pytest.skip("a client of Spark Connect is not told which stages its queries ran")
    context, queries = spark.sparkContext, spark._jsparkSession.sharedState().statusStore()

    def last_query() -> int:
        """Give the number of the last query. How many there were is not known: Spark keeps the last thousand."""
        context._jsc.sc().listenerBus().waitUntilEmpty()
        listed = queries.executionsList()
        return listed.last().executionId() if listed.size() else -1

    @contextmanager
    def watched(name: str) -> Iterator[Work]:
        work, before = Work(), last_query()
        context.setJobGroup(name, name)
        try:
            yield work
        finally:
            context.setJobGroup("", "")
        work.queries = last_query() - before
        tracker, store = context.statusTracker(), context._jsc.sc().statusStore()
        jobs = map(tracker.getJobInfo, tracker.getJobIdsForGroup(name))
        # Of a long session Spark forgets the stages that it skipped.
        numbers = {number for job in jobs if job for number in job.stageIds if tracker.getStageInfo(number)}
        stages = [store.lastStageAttempt(number) for number in numbers]
        scans = [stage for stage in stages if stage.inputRecords() >= ANNOTATED_ROWS]
        work.scans, work.shuffles = len(scans), sum(stage.shuffleWriteRecords() > 0 for stage in scans)
        work.driver_bytes = sum(stage.resultSize() for stage in stages)

    return watched


def test_the_corpus_is_scanned_twice_and_shuffled_once(spark: SparkSession, annotated_path: str, watch: Watch) -> None:
    corpus = spark.read.parquet(annotated_path)
    with watch("survey") as survey:
        measurement = measure(corpus, measures_of_corpus(), "id", "estimate")
    assert (survey.queries, survey.scans) == (1, 1)
    with watch("ranking") as ranking:
        kept = ranked_once(measurement)
        tally, _ = kept.__enter__()
    assert (ranking.queries, ranking.scans, ranking.shuffles) == (1, 1, 1)
    with watch("tables") as tables:
        found = {table.name: frame for table, frame in measurement.tables(tally, 100).items() if frame is not None}
        rows = {name: frame.collect() for name, frame in found.items()}
    kept.__exit__(None, None, None)
    assert not any(frame.storageLevel.useMemory for frame in measurement.kept)
    assert (tables.scans, tables.shuffles) == (0, 0)
    assert len(rows.pop("score_histograms")) > 2 * (2 + 2 * 4)
    assert {name: len(listed) for name, listed in rows.items()} == {
        "u_statistics": 2 * (1 + 2 * 6),
        "bias_metrics": 2 * 2,
        "model_summary": 2,
        "pinned_auc": 2 * 2,
        "threshold_rates": 2 * 2,
        "threshold_summary": 2,
        "label_balance": 1 + 2,
    }
    # Two columns of scores would be 320 kB. What tasks say of themselves is more with Spark 3.5.
    assert max(work.driver_bytes for work in (survey, ranking, tables)) < 120_000


def test_rejects_cost_one_more_scan(spark: SparkSession, annotated_path: str, watch: Watch) -> None:
    """No other table does: test_job_bias_metrics.py counts the scans of a whole night with rejects."""
    corpus = spark.read.parquet(annotated_path).withColumn("toxic", F.expr("nullif(toxic, id % 10 = 0)"))
    measurement = measure(corpus, measures_of_corpus(), "id", "allow")
    with ranked_once(measurement) as (tally, _), watch("rejects") as rejects:
        found = measurement.tables(tally, 7)[REJECTED_ROWS]
        assert found is not None
        assert len(found.collect()) == 7
    assert tally.rejects["null_label"] > 1000
    assert rejects.scans == 1


def test_to_find_repeated_ids_costs_one_more_scan(spark: SparkSession, annotated_path: str, watch: Watch) -> None:
    corpus = spark.read.parquet(annotated_path)
    with watch("survey before ids") as survey:
        measurement = measure(corpus, measures_of_corpus(), "id", "reject")
    with watch("ranking with ids") as ranking, ranked_once(measurement):
        pass
    assert (survey.scans, ranking.scans) == (1, 2)


def test_nothing_is_kept_after_a_failure(spark: SparkSession, annotated_path: str) -> None:
    measurement = measure(spark.read.parquet(annotated_path), measures_of_corpus())
    ranked = measurement.ranking.ranked

    def fail() -> None:
        with ranked_once(measurement):
            assert ranked.storageLevel.useMemory
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert not ranked.storageLevel.useMemory
    assert not measurement.statistics.storageLevel.useMemory


@pytest.mark.parametrize(
    "in_few_parts",
    [pytest.param(True, marks=pytest.mark.skipif(IS_3_5, reason="some releases of 3.5 keep all partitions")), False],
)
def test_few_rows_are_kept_in_few_partitions_if_so_asked(spark: SparkSession, in_few_parts: bool) -> None:
    keys = ("spark.sql.shuffle.partitions", "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning")
    before = [spark.conf.get(key) for key in keys]
    for key, value in zip(keys, ("40", "false"), strict=True):
        spark.conf.set(key, value)
    try:
        counts = spark.range(400).groupBy((F.col("id") % 200).alias("key")).count()
        with persisted(counts, in_few_parts=in_few_parts):
            n_parts = counts.select(F.spark_partition_id()).distinct().count()
        assert spark.conf.get(keys[1]) == "false"
    finally:
        for key, value in zip(keys, before, strict=True):
            spark.conf.set(key, str(value))
    assert n_parts < 10 if in_few_parts else n_parts > 30
