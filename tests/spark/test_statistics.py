"""AUC and DeLong's variance from the integers."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from pyspark.sql import SparkSession

from biasspark.metrics.delong import delong_part
from biasspark.metrics.statistics import with_auc
from tests.oracle.suite import STATISTICS_SCHEMA, auc_by_pairs, delong_variance, statistics_rows


def test_auc_and_variance_agree_with_the_definitions(spark: SparkSession) -> None:
    rng = np.random.default_rng(3)
    rows, wanted = [], {}
    for case, (n_low, n_high, levels) in enumerate([(2, 2, 9), (5, 40, 4), (40, 5, 10**6), (60, 60, 2), (30, 30, 1)]):
        low, high = rng.integers(0, levels, n_low), rng.integers(0, levels, n_high) + rng.integers(0, 2)
        score, label = np.concatenate([low, high]), np.arange(n_low + n_high) >= n_low
        rows += statistics_rows(score, label, {}, (str(case), "all"))
        wanted[str(case)] = (auc_by_pairs(low, high), delong_variance(low, high))
    for row in with_auc(spark.createDataFrame(rows, STATISTICS_SCHEMA)).collect():
        assert row.auc == wanted[row.model][0]
        assert row.auc_variance == pytest.approx(wanted[row.model][1], rel=1e-13, abs=1e-17)


def test_columns_have_the_variance_of_the_fraction(spark: SparkSession) -> None:
    """To the last bit where a double holds the denominator, 4·n²·m²·(m - 1)."""
    rng, rows = np.random.default_rng(7), []
    for case, (n_low, n_high, levels) in enumerate([(2, 2, 3), (7, 90, 5), (90, 7, 10**6), (400, 300, 30)]):
        score, label = rng.integers(0, levels, n_low + n_high), np.arange(n_low + n_high) >= n_low
        rows += statistics_rows(score, label, {}, (str(case), "all"))
    largest = (("large", "all", "(overall)", "negative", "positive", False), 10**8 + 7, 10**8 + 9)
    (key, m, n), u_doubled = largest, 10**16 + 1
    rows.append((*key, m, n, *map(Decimal, (u_doubled, u_doubled**2 // m + 10**20, u_doubled**2 // n + 10**21))))
    for row in with_auc(spark.createDataFrame(rows, STATISTICS_SCHEMA)).collect():
        total, squares = int(row.u_doubled), (int(row.low_square_sum), int(row.high_square_sum))
        low = delong_part(row.n_low, row.n_high, total, squares[0])
        high = delong_part(row.n_high, row.n_low, total, squares[1])
        assert row.auc_variance == (
            pytest.approx(float(low + high), rel=1e-15, abs=0) if row.model == "large" else float(low) + float(high)
        )


def test_small_cells_have_no_variance_and_empty_ones_no_auc(spark: SparkSession) -> None:
    rows = [
        *statistics_rows([1, 2, 3], [False, True, True], {}, ("one row", "all")),
        *statistics_rows([2, 3], [True, True], {}, ("empty", "all")),
        *statistics_rows([], [], {}, ("nothing", "all")),
    ]
    found = {
        row.model: (row.auc, row.auc_variance)
        for row in with_auc(spark.createDataFrame(rows, STATISTICS_SCHEMA)).collect()
    }
    assert found == {"one row": (1.0, None), "empty": (None, None), "nothing": (None, None)}


def test_giant_cells_are_exact_and_beyond_38_digits_only_rounded(spark: SparkSession) -> None:
    def tied_halves(m: int, n: int) -> tuple[object, ...]:
        """Half of the high cell above all of the low one, half below: AUC 1/2, variance 1/4 / (n - 1)."""
        key = (f"{m} x {n}", "all", "(overall)", "negative", "positive", False)
        u_doubled = m * n
        squares = (m * n * n, (n // 2) * (2 * m) ** 2)
        return (*key, m, n, Decimal(u_doubled), *(Decimal(square) for square in squares))

    sizes = [(10**9, 10**9), (10**9, 4 * 10**9), (10**12, 10**9)]
    frame = spark.createDataFrame([tied_halves(m, n) for m, n in sizes], STATISTICS_SCHEMA)
    found = {row.model: (row.auc, row.auc_variance) for row in with_auc(frame).collect()}
    for m, n in sizes:
        auc, variance = found[f"{m} x {n}"]
        assert auc == 0.5
        assert variance == pytest.approx(0.25 / (n - 1), rel=1e-13)
