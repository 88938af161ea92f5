"""Intervals against their definitions, solved by root finding."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pyspark.sql.functions as F
import pytest
from pyspark.sql import Row, SparkSession

from biasspark.distributions import normal_quantile
from biasspark.metrics.intervals import SETTLED, auc_interval
from scripts import simulate_intervals
from scripts.drill_intervals import logit_interval, newcombe_interval
from tests.kept_simulations import read_kept

Case = tuple[float | None, float | None, int, int]  # AUC, variance, sizes
SIZES = (2, 3, 7, 40, 1_000, 3_000_000_000)
AUCS = (0.0, 1e-12, 0.001, 0.31, 0.5, 0.77, 0.95, 0.999, 1 - 1e-12, 1.0)


def compute(spark: SparkSession, cases: Sequence[Case], level: float = 0.95) -> list[Row]:
    pairs = spark.createDataFrame(
        [(i, *case) for i, case in enumerate(cases)],
        "i int, auc double, auc_variance double, n_low bigint, n_high bigint",
    )
    ends = auc_interval(F.struct(*pairs.columns), level)
    return pairs.select("*", ends.alias("ends")).select("*", "ends.*").orderBy("i").collect()


@pytest.mark.parametrize("bounded", [False, True])
def test_spark_is_told_once_what_the_interval_is_of(spark: SparkSession, bounded: bool) -> None:
    assert str(auc_interval(F.col("the_pair"), 0.95, bounded=bounded)).count("the_pair") == 1


def test_normal_quantile_is_the_published_one() -> None:
    assert normal_quantile(0.95) == pytest.approx(1.959963984540054, abs=1e-12)


@pytest.mark.parametrize("level", [0.5, 0.95, 0.9999])
def test_newcombe_solves_its_equation(spark: SparkSession, level: float) -> None:
    cases = [(auc, 0.0, m, n) for auc in AUCS for m in SIZES for n in SIZES]
    for row in compute(spark, cases, level):
        low, high = newcombe_interval(row.auc, row.n_low, row.n_high, level)
        assert row.method == "newcombe"
        assert (row.low, row.high) == pytest.approx((low, high), rel=0, abs=1e-12), row
        assert 0 <= row.low <= row.auc <= row.high <= 1


def test_newcombe_at_complete_separation_leaves_room_on_one_side_only(spark: SparkSession) -> None:
    none_right, all_right = compute(spark, [(0.0, 0.0, 30, 1000), (1.0, 0.0, 30, 1000)])
    assert (none_right.low, all_right.high) == (0, 1)
    assert math.copysign(1, none_right.low) == 1
    assert none_right.high == pytest.approx(1 - all_right.low, abs=1e-15)
    assert 0.9 < all_right.low < 1


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_logit_delong_is_the_formula(spark: SparkSession, level: float) -> None:
    cases = [(auc, 1e-5, 5_000, 90_000) for auc in (0.01, 0.3, 0.5, 0.9, 0.99)]
    for row in compute(spark, cases, level):
        assert row.method == "logit_delong"
        assert (row.low, row.high) == pytest.approx(logit_interval(row.auc, row.auc_variance, level), abs=1e-12)


def test_large_cells_trust_delong_and_small_ones_take_the_wider(spark: SparkSession) -> None:
    information = SETTLED / 0.25
    methods = [
        row.method
        for row in compute(
            spark,
            [
                (0.5, 1e-9, int(information), 100),  # just enough rows: DeLong, though much the narrower
                (0.5, 1e-9, int(information) - 1, 100),  # one row short: the wider
                (0.5, 0.1, 10, 100),  # few rows, DeLong the wider
                (0.999, 1e-9, 1_000, 1_000),  # many rows, few misordered
                (0.5, 0.0, 10**6, 10**6),  # one giant tie: no variance to trust
                (1 - 1e-17, 1e-40, 10**9, 10**9),  # rounds to 1
            ],
        )
    ]
    assert methods == ["logit_delong", "newcombe", "logit_delong", "newcombe", "newcombe", "newcombe"]


def test_the_interval_never_leaves_the_unit_interval(spark: SparkSession) -> None:
    for row in compute(spark, [(auc, v, 3, 5) for auc in AUCS for v in (0.0, 1e-300, 1e-9, 0.25, 1e300)]):
        assert 0 <= row.low <= row.auc <= row.high <= 1, row


def test_no_variance_no_interval(spark: SparkSession) -> None:
    rows = compute(spark, [(0.75, None, 1, 4), (None, None, 0, 4), (None, None, 0, 0)])
    assert [(row.low, row.high, row.method) for row in rows] == [(None, None, "none")] * 3


def test_the_interval_of_the_mirrored_auc_is_the_mirror_image(spark: SparkSession) -> None:
    rng = np.random.default_rng(7)
    values = [float(x) for x in rng.integers(0, 2**20 + 1, 200) / 2**20]
    cases = [(auc, 0.3 * auc * (1 - auc) / 12, 12, 30) for auc in values]
    mirrored = [(1 - auc, variance, n, m) for auc, variance, m, n in cases]
    for row, image in zip(compute(spark, cases), compute(spark, mirrored), strict=True):
        assert row.method == image.method
        assert (row.low, row.high) == pytest.approx((1 - image.high, 1 - image.low), abs=1e-15)


def test_the_rule_is_the_one_that_the_simulation_chose() -> None:
    assert read_kept("interval_coverage.json")["chosen"] == simulate_intervals.CHOSEN
    assert simulate_intervals.SETTLED == SETTLED
