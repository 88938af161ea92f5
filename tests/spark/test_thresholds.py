"""Rates at thresholds, equality differences and histograms against scikit-learn, Newcombe's formula and loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyspark.sql.functions as F
import pytest
from pyspark.sql import DataFrame, Row, SparkSession

import biasspark
from biasspark import pipeline
from biasspark.config import parse_measures
from biasspark.distributions import normal_quantile
from biasspark.errors import ConfigError
from biasspark.metrics.thresholds import bound_rate
from biasspark.report.intervals import bound_share
from biasspark.tables.schemas import SCORE_HISTOGRAMS, THRESHOLD_RATES, THRESHOLD_SUMMARY
from tests.awkward_corpus import (
    THRESHOLDS,
    Meaning,
    assert_rows,
    frame_of,
    in_order,
    is_crossed,
    make_rows,
    measures,
    shuffled,
)
from tests.oracle import further

ROWS = make_rows()
LEVEL = 0.9
BINS = 20
TABLES: dict[str, tuple[Callable[..., DataFrame], dict[str, Any]]] = {
    "threshold_rates": (biasspark.threshold_rates, {"at": list(THRESHOLDS), "level": LEVEL}),
    "threshold_summary": (biasspark.threshold_summary, {"at": list(THRESHOLDS)}),
    "score_histograms": (biasspark.score_histograms, {"bins": BINS}),
}


def test_wilsons_interval_is_that_of_the_report(spark: SparkSession) -> None:
    """Which computes its own of single numbers: those of the tables are columns."""
    shares = [(0, 1), (1, 1), (0, 40), (7, 40), (40, 40), (123_456, 10**9)]
    ends = bound_rate((F.col("n").cast("double"), F.col("of").cast("double")), normal_quantile(LEVEL))
    for row in spark.createDataFrame(shares, "n BIGINT, of BIGINT").select("n", "of", *ends).collect():
        assert tuple(row)[2:] == pytest.approx(bound_share(row[0], row[1], LEVEL), rel=1e-12, abs=1e-15)


def measure(frame: DataFrame, table: str, unannotated: str = "exclude", **options: Any) -> list[Row]:
    function, asked = TABLES[table]
    return function(frame, **asked, **measures(unannotated, **options)).collect()


def measure_all(frame: DataFrame, unannotated: str, ranges: int) -> dict[str, list[Row]]:
    """Every table, of one ranking."""
    asked = measures(unannotated)
    own = {name: asked[name] for name in ("models", "identities", "slices")}
    own["label"] = {"column": asked["label"], "threshold": asked["label_threshold"]}
    own |= {"thresholds": {"at": list(THRESHOLDS)}, "histograms": {"bins": BINS}, "intervals": {"level": LEVEL}}
    measurement = pipeline.measure(frame, parse_measures(own | {"ranking": {"ranges": ranges}}))
    with pipeline.ranked_once(measurement):
        found = measurement.further_tables().items()
        return {table.name: rows.select(*table.value_columns).collect() for table, rows in found}


@pytest.fixture(scope="module")
def excluded(spark_session: SparkSession) -> dict[str, list[Row]]:
    """Every table, of many ranges and partitions."""
    return measure_all(frame_of(spark_session, ROWS, 3), "exclude", ranges=3)


@pytest.fixture(scope="module")
def as_background(spark_session: SparkSession) -> dict[str, list[Row]]:
    """Every table with unknown annotations in the background, of one range and partition."""
    return measure_all(frame_of(spark_session, shuffled(ROWS), 1), "background", ranges=1)


Measured = tuple[dict[str, list[Row]], Meaning]


@pytest.fixture(params=["exclude", pytest.param("background", marks=pytest.mark.slow)])
def measured(spark_session: SparkSession, request: pytest.FixtureRequest) -> Measured:
    """The tables by either rule for unknown annotations, and what the rows mean by it."""
    tables = {"exclude": "excluded", "background": "as_background"}[request.param]
    return request.getfixturevalue(tables), Meaning(ROWS, request.param)


# ---- against the definitions


def test_rates_counts_and_gaps(measured: Measured) -> None:
    found, meaning = measured
    wanted = [
        case.key
        | {"identity": identity, "crossed": is_crossed(identity), "threshold": threshold}
        | further.threshold_rates(case.score, case.label, inside, threshold, LEVEL)
        for case in meaning.cases()
        for identity, inside in case.identities.items()
        for threshold in THRESHOLDS
    ]
    assert_rows(found["threshold_rates"], wanted, THRESHOLD_RATES)


def test_equality_differences(measured: Measured) -> None:
    found, meaning = measured
    wanted = [
        case.key | {"threshold": threshold} | further.threshold_summary(case.score, case.label, case.singles, threshold)
        for case in meaning.cases()
        for threshold in THRESHOLDS
    ]
    assert_rows(found["threshold_summary"], wanted, THRESHOLD_SUMMARY)


def test_bins_of_every_cell(measured: Measured) -> None:
    found, meaning = measured
    wanted: list[further.Row] = []
    edges: dict[str, list[float]] = {}
    for case in meaning.cases():
        edges.setdefault(case.model, further.histogram_edges(case.score, BINS))  # the slice of all rows comes first
        cells = {("(overall)", "negative"): ~case.label, ("(overall)", "positive"): case.label}
        for identity, inside in case.identities.items():
            for side, state in (("subgroup", 1), ("background", 0)):
                cells[identity, f"{side}_negative"] = (inside == state) & ~case.label
                cells[identity, f"{side}_positive"] = (inside == state) & case.label
        for (identity, cell), chosen in cells.items():
            key = case.key | {"identity": identity, "cell": cell, "crossed": is_crossed(identity)}
            bins = further.histogram(case.score[chosen], edges[case.model])
            wanted += [key | {"bin": place} | row for place, row in bins.items()]
    assert_rows(found["score_histograms"], wanted, SCORE_HISTOGRAMS)


def test_bins_span_0_to_1_or_all_scores_that_count(excluded: dict[str, list[Row]]) -> None:
    """The score of 99 is of a row without label, and counts for nothing."""
    spans: dict[str, list[float]] = {}
    for row in excluded["score_histograms"]:
        spans.setdefault(row.model, []).extend((row.bin_low, row.bin_high))
    logit = next(case.score for case in Meaning(ROWS).cases() if case.model == "logit")
    assert logit.min() < 0
    assert 1 < logit.max() < 99
    assert (min(spans["logit"]), max(spans["logit"])) == (logit.min(), logit.max())
    assert (min(spans["tied"]), max(spans["tied"])) == (0.0, 1.0)


@pytest.mark.parametrize("engine", ["blocks", "windows", "binned"])
def test_every_row_is_in_one_bin_where_scores_hardly_differ(spark: SparkSession, engine: str) -> None:
    """Ten rows of one score outside of 0 to 1, or of scores that are neighbours among the numbers."""
    scores = {"five": "5.0D", "more": "1.7D", "less": "-2.0D", "close": "4.999999999999999D + id % 3 * pow(2D, -50)"}
    written = (f"{score} AS {model}" for model, score in scores.items())
    rows, models = spark.range(10).selectExpr("id % 2 = 0 AS y", "id < 4 AS u", *written), list(scores)
    options: dict[str, Any] = {"models": models, "label": "y", "identities": ["u"], "engine": engine}
    for bins in (1, 30, 100):
        found = biasspark.score_histograms(rows, bins=bins, **options)
        counted = found.groupBy("model", "identity", "cell").agg(F.sum("n_rows").alias("n_rows")).collect()
        sizes = {"subgroup_negative": 2, "subgroup_positive": 2, "background_negative": 3, "background_positive": 3}
        wanted = {(model, "u", cell): size for model in models for cell, size in sizes.items()}
        wanted |= {(model, "(overall)", cell): 5 for model in models for cell in ("negative", "positive")}
        assert {(row.model, row.identity, row.cell): row.n_rows for row in counted} == wanted


# ---- the same, however the rows lie and whoever ranks them


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES)
def test_windows_give_the_same_bits(spark: SparkSession, excluded: dict[str, list[Row]], table: str) -> None:
    models = {"narrow": "s2", "logit": "s3"}
    by_windows = measure(frame_of(spark, shuffled(ROWS, 4), 2), table, engine="windows", ranges=3, models=models)
    assert in_order(by_windows) == in_order(row for row in excluded[table] if row.model in models)


@pytest.mark.slow
def test_ranges_partitions_and_order_change_no_bit_of_a_sum(
    spark: SparkSession, excluded: dict[str, list[Row]]
) -> None:
    again = measure(frame_of(spark, shuffled(ROWS, 5), 1), "threshold_summary", ranges=1)
    assert in_order(again) == in_order(excluded["threshold_summary"])


# ---- what is asked


def test_grid_has_both_ends_and_is_joined_by_named_thresholds(spark: SparkSession) -> None:
    corpus = frame_of(spark, ROWS[:60], 1)
    asked = measures(models=["s1"], identities=["c1"], slices=None)
    both = biasspark.threshold_summary(corpus, at=[0.05, 0.3], grid={"low": 0.0, "high": 1.0, "steps": 10}, **asked)
    assert sorted(row.threshold for row in both.collect()) == sorted({0.05, *(step / 10 for step in range(11))})
    default = biasspark.threshold_rates(corpus, grid={}, **asked).collect()
    assert sorted(row.threshold for row in default) == [step / 100 for step in range(101)]


def test_what_cannot_be_asked(spark: SparkSession) -> None:
    corpus = frame_of(spark, ROWS[:9], 1)
    with pytest.raises(ConfigError, match=r"^thresholds: neither at nor grid is given"):
        biasspark.threshold_rates(corpus, **measures())
    with pytest.raises(ConfigError, match=r"^bins = 0"):
        biasspark.score_histograms(corpus, bins=0, **measures())


def test_float32_scores_reach_the_threshold_that_they_are_written_as(spark: SparkSession) -> None:
    """0.7 is more than the float32 of 0.7, which as a double is 0.699999988."""
    assert float(np.float32(0.7)) < 0.7
    scores = [(0.7, True, 1.0), (0.69, True, 1.0), (0.7, False, 1.0)]
    table = spark.createDataFrame(scores, "s FLOAT, label BOOLEAN, c DOUBLE")
    [row] = biasspark.threshold_rates(table, at=[0.7], models=["s"], label="label", identities=["c"]).collect()
    assert (row.threshold, row.n_true_positive, row.n_false_negative, row.n_false_positive) == (0.7, 1, 1, 1)


def test_all_scores_equal_lie_in_one_bin(spark: SparkSession) -> None:
    """Where the least score is the greatest, there is one bin, without width and closed, which takes them all."""
    table = spark.createDataFrame([(7.5, n % 2 == 0, 1.0) for n in range(6)], "s DOUBLE, label BOOLEAN, c DOUBLE")
    rows = biasspark.score_histograms(table, bins=4, models=["s"], label="label", identities=["c"]).collect()
    everyone = [row for row in rows if row.identity == "(overall)"]
    assert {(row.cell, row.bin, row.bin_low, row.bin_high, row.n_rows) for row in everyone} == {
        ("negative", 0, 7.5, 7.5, 3),
        ("positive", 0, 7.5, 7.5, 3),
    }
