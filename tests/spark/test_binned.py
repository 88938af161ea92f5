"""The approximate mode: what it says of every number contains what the exact engine says, and no row is moved."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyspark.sql.functions as F
import pytest
from pyspark.sql import DataFrame, Row, SparkSession

import biasspark
from biasspark.config import Gate, Measures, Rule, parse_measures
from biasspark.corpus.cuts import SAMPLED_ROWS, sample_cuts
from biasspark.metrics.gate.bias_alerts import Before, JudgedNight, bias_alerts
from biasspark.pipeline import Measurement, find_warnings, measure, ranked_once
from biasspark.tables.schemas import BIAS_ALERTS, TABLES, Table
from tests.awkward_corpus import THRESHOLDS, frame_of, in_order, make_rows

MODELS = {"tied": "s1", "logit": "s3"}
BOUNDED = ("u_statistics", "bias_metrics", "model_summary", "pinned_auc")
EXACT = ("threshold_rates", "score_histograms")
"""Rows that reach an edge are counted exactly: every edge is a cut."""

COMPARED = (*BOUNDED, *EXACT)
RULES = (
    *(("bpsn_auc", "min", 0.6), ("subgroup_auc", "min", 0.8), ("bnsp_auc", "max", 0.7)),
    *(("positive_aeg", "max_abs", 0.1), ("negative_aeg", "max_abs", 0.3), ("auc", "min", 0.5)),
)


def measures_of(**ranking: Any) -> Measures:
    return parse_measures(
        {
            "label": {"column": "target", "threshold": 0.5},
            "models": MODELS,
            "identities": {
                "columns": ["c1", "c2"],
                "categorical": ["cat"],
                "predicates": {"big": "k > 5", "lone": "id = 0"},
            },
            "slices": {"odd": "k % 2 = 1"},
            "ranking": ranking,
            "pinned_auc": {},
            "thresholds": {"at": list(THRESHOLDS)},
            "histograms": {"bins": 3},
        }
    )


Found = dict[str, list[Row]]


def collect(measurement: Measurement) -> Found:
    with ranked_once(measurement) as (_, profiles):
        tables = measurement.suite_tables() | measurement.further_tables()
        found = {table.name: frame.collect() for table, frame in tables.items() if table.name in COMPARED}
        alerts = bias_alerts(JudgedNight(measurement.statistics), Before(), gate(), measurement.measures.intervals)
        found["bias_alerts"] = alerts.collect()
        found["warnings"] = [Row(text=text) for text in find_warnings(measurement, profiles)]
    return found


def gate() -> Gate:
    scope: dict[str, Any] = {"models": tuple(MODELS), "slices": ("all", "odd"), "crossed": True}
    rules = (Rule(name=f"{metric} {kind}", metric=metric, **scope, **{kind: bound}) for metric, kind, bound in RULES)
    return Gate(rule=tuple(rules))


@pytest.fixture(scope="module")
def corpus(spark_session: SparkSession) -> Iterator[DataFrame]:
    frame = frame_of(spark_session, make_rows(), 3).persist()
    yield frame
    frame.unpersist()


@pytest.fixture(scope="module")
def exact(corpus: DataFrame) -> Found:
    return collect(measure(corpus, measures_of()))


@pytest.fixture(scope="module")
def binned(corpus: DataFrame) -> Found:
    return collect(measure(corpus, measures_of(engine="binned", bins=12, ranges=3)))


def by_key(rows: list[Row], table: Table) -> dict[tuple[Any, ...], dict[str, Any]]:
    return {tuple(row[name] for name in table.key_columns): row.asDict() for row in rows}


def pairs(name: str, exact: Found, binned: Found) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Give every row of a table as either engine has it."""
    one, other = (by_key(found[name], TABLES[name]) for found in (exact, binned))
    assert one.keys() == other.keys()
    assert one
    return ((one[key], other[key]) for key in one)


@pytest.mark.parametrize("name", BOUNDED)
def test_bounds_contain_what_is_exact(name: str, exact: Found, binned: Found) -> None:
    values = [column.removesuffix("_at_least") for column in TABLES[name].names if column.endswith("_at_least")]
    in_doubt = 0
    for row, approximate in pairs(name, exact, binned):
        for value in values:
            bounds = approximate[f"{value}_at_least"], approximate[f"{value}_at_most"]
            if row[value] is None:  # as the variances of lone, of one row, whose AUC is in doubt
                assert (approximate[value], *bounds) == (None, None, None)
                continue
            assert bounds[0] <= row[value] <= bounds[1], (row, value)
            assert bounds[0] <= approximate[value] <= bounds[1], (approximate, value)
            in_doubt += bounds[0] < bounds[1]
    assert in_doubt > 10


@pytest.mark.parametrize("name", BOUNDED)
def test_all_else_is_exact_but_intervals_which_are_wider(name: str, exact: Found, binned: Found) -> None:
    bounds = [column for column in TABLES[name].names if column.endswith(("_at_least", "_at_most"))]
    unsure = {*bounds, *(column.removesuffix("_at_least") for column in bounds)}
    unsure |= {column for column in TABLES[name].names if column.endswith(("_method", "_identity", "_contenders"))}
    for row, approximate in pairs(name, exact, binned):
        for column in row.keys() - unsure:
            ours = approximate[column]
            if column.endswith("_low") and row[column] is not None:
                assert ours <= row[column], (row, column)
            elif column.endswith("_high") and row[column] is not None:
                assert ours >= row[column], (row, column)
            else:
                assert ours == row[column], (row, column)


def test_the_worst_identity_is_among_the_contenders(exact: Found, binned: Found) -> None:
    several = 0
    for row, approximate in pairs("model_summary", exact, binned):
        for column in (name for name in row if name.endswith("_identity")):
            contenders = approximate[column.replace("_identity", "_contenders")]
            if row[column] is None:
                assert contenders is None
                continue
            assert {row[column], approximate[column]} <= set(contenders)
            assert contenders == sorted(contenders)
            several += len(contenders) > 1
    assert several


@pytest.mark.parametrize("name", EXACT)
def test_counts_at_edges_are_exact(name: str, exact: Found, binned: Found) -> None:
    assert in_order(binned[name]) == in_order(exact[name])


def test_the_gate_decides_nothing_that_the_bounds_leave_open(exact: Found, binned: Found) -> None:
    outcomes = [(row["outcome"], ours["outcome"]) for row, ours in pairs("bias_alerts", exact, binned)]
    assert {ours for _, ours in outcomes} >= {"pass", "insufficient_evidence"}
    assert any(one != ours for one, ours in outcomes)
    assert all(ours in (one, "insufficient_evidence") for one, ours in outcomes)
    for row, ours in pairs("bias_alerts", exact, binned):
        for column in ("p_violation", "p_compliance", "p_violation_adjusted", "p_compliance_adjusted"):
            assert row[column] is None or ours[column] >= row[column] - 1e-12, (row, ours)
        if row["value"] is not None:
            assert ours["value_at_least"] <= row["value"] <= ours["value_at_most"]
            assert tuple(row[f"value_{end}"] for end in ("at_least", "at_most")) == (row["value"],) * 2
    assert set(BIAS_ALERTS.value_columns) == set(binned["bias_alerts"][0].asDict())


def test_the_ledger_says_that_the_run_was_approximate(exact: Found, binned: Found) -> None:
    said = [row.text for row in binned["warnings"]]
    assert said[0].startswith("ranking: approximate. Scores were sorted into about 12 bins. The tables give")
    widest = max(row.auc_at_most - row.auc_at_least for row in binned["u_statistics"] if row.auc is not None)
    assert f" at most {widest:.2g} apart (" in said[0]
    # Of scores that bins do not tell apart nobody knows how many there are; what is said all the same is right.
    assert {*said[1:]} <= {row.text for row in exact["warnings"]}


def test_enough_bins_for_every_score_leave_no_doubt(corpus: DataFrame, exact: Found) -> None:
    measured = {"label": "target", "label_threshold": 0.5, "identities": {"categorical": ["cat"]}}
    by_blocks, by_bins = (
        biasspark.bias_metrics(corpus, models=["s1"], **measured, **engine)
        for engine in ({}, {"engine": "binned", "rank_bins": 4096})
    )
    assert in_order(by_bins.collect()) == in_order(by_blocks.collect())


# ---- 100,000 rows

N_ROWS = 100_000
SMOOTH: dict[str, Any] = {
    "models": ["score", "other"],
    "label": {"column": "toxic"},
    "identities": ["male", "rare"],
}


@pytest.fixture(scope="module")
def smooth_path(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Scores of which no two are equal, 8 % of them of positives, and an identity of 1 % of the rows."""
    part = [F.pmod(F.xxhash64("id", F.lit(seed)), F.lit(1 << 40)) / (1 << 40) for seed in range(5)]
    toxic = part[0] < 0.08
    frame = spark_session.range(N_ROWS, numPartitions=3).select(
        "id",
        toxic.alias("toxic"),
        (part[1] + F.when(toxic, 0.4).otherwise(0.0)).alias("score"),
        F.pow(part[2], F.when(toxic, 3.0).otherwise(30.0)).alias("other"),
        (part[3] < 0.2).alias("male"),
        (part[4] < 0.01).alias("rare"),
    )
    path = str(tmp_path_factory.mktemp("smooth") / "rows.parquet")
    frame.write.parquet(path)
    return path


def smooth_measurement(spark: SparkSession, path: str, partitions: int | None = None) -> Measurement:
    frame = spark.read.parquet(path)
    frame = frame.repartition(partitions) if partitions else frame
    return measure(frame, parse_measures(SMOOTH | {"ranking": {"engine": "binned"}}), "id")


def test_ids_of_any_type_give_the_same_cuts(spark: SparkSession) -> None:
    rows = spark.range(3_000, numPartitions=2).selectExpr(
        "id", "id % 3 = 0 AS toxic", "rand(1) AS score", "1.0D AS male"
    )
    measures = parse_measures(SMOOTH | {"models": ["score"], "identities": ["male"], "ranking": {"engine": "binned"}})
    n_rows = 9 * SAMPLED_ROWS  # as if they were some of so many: a ninth is sampled
    found = [
        sample_cuts(rows.withColumn("id", F.col("id").cast(kind)), measures, n_rows, [], "id")[0].tolist()
        for kind in ("bigint", "int", "string")
    ]
    assert len(found[0]) > 100
    assert found[0] == found[1] == found[2]


@pytest.mark.slow
def test_values_are_known_within_a_tenth_of_a_percent(spark: SparkSession, smooth_path: str) -> None:
    measurement = smooth_measurement(spark, smooth_path)
    found = measurement.statistics.persist()
    widths = [row.auc_at_most - row.auc_at_least for row in found.collect()]
    assert len(widths) == 2 * (1 + 2 * 6)
    assert 0 < max(widths) < 1e-3
    again = smooth_measurement(spark, smooth_path, partitions=5).statistics
    assert in_order(again.collect()) == in_order(found.collect())


@pytest.mark.slow
@pytest.mark.classic("Spark Connect does not say what its jobs read")
def test_no_row_is_shuffled(spark: SparkSession, smooth_path: str) -> None:
    measurement = smooth_measurement(spark, smooth_path)
    context = spark.sparkContext
    context.setJobGroup("bins", "bins")
    measurement.ranking.ranked.collect()
    context.setJobGroup("", "")
    context._jsc.sc().listenerBus().waitUntilEmpty()
    tracker, store = context.statusTracker(), context._jsc.sc().statusStore()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup("bins")]
    numbers = {stage for job in jobs if job for stage in job.stageIds if tracker.getStageInfo(stage)}
    stages = [store.lastStageAttempt(stage) for stage in numbers]
    scans = [stage for stage in stages if stage.inputRecords() >= N_ROWS]
    assert len(scans) == 1
    n_tasks, n_models, n_kinds = scans[0].numTasks(), 2, 3
    assert sum(stage.shuffleWriteRecords() for stage in stages) == scans[0].shuffleWriteRecords()
    assert scans[0].shuffleWriteRecords() <= n_tasks * n_models * n_kinds
