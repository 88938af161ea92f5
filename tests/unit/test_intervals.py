"""Intervals of AUCs, shares and their differences, against their definitions, solved by root finding, and SciPy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from biasspark.distributions import normal_quantile
from biasspark.metrics.intervals import (
    MIN_FOR_LOGIT,
    Interval,
    Share,
    auc_interval,
    benjamini_hochberg,
    newcombe_difference,
    normal_interval,
    wilson_interval,
)
from tests.oracle import intervals as oracle

SIZES = (2, 3, 7, 40, 1_000, 3_000_000_000)
AUCS = (0.0, 1e-12, 0.001, 0.31, 0.5, 0.77, 0.95, 0.999, 1 - 1e-12, 1.0)
Case = tuple[float, float, int, int]
"""AUC, variance, and the sizes of both cells."""


def intervals_of(cases: Sequence[Case], level: float = 0.95) -> Interval:
    auc, variance, m, n = zip(*cases, strict=True)
    return auc_interval(np.array(auc), np.array(variance), np.array(m, np.int64), np.array(n, np.int64), level)


@pytest.mark.parametrize("level", [0.5, 0.95, 0.9999])
def test_newcombe_solves_its_equation(level: float) -> None:
    cases = [(auc, 0.0, m, n) for auc, m, n in product(AUCS, SIZES, SIZES)]
    found = intervals_of(cases, level)
    assert set(found.method) == {"newcombe"}
    for (auc, _, m, n), low, high in zip(cases, found.low, found.high, strict=True):
        assert (low, high) == pytest.approx(oracle.newcombe_interval(auc, m, n, level), rel=0, abs=1e-12)
        assert 0 <= low <= auc <= high <= 1


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_logit_delong_is_the_formula(level: float) -> None:
    cases = [(auc, 1e-5, 5_000, 90_000) for auc in (0.01, 0.3, 0.5, 0.9, 0.99)]
    found = intervals_of(cases, level)
    assert set(found.method) == {"logit_delong"}
    for (auc, variance, *_), low, high in zip(cases, found.low, found.high, strict=True):
        assert (low, high) == pytest.approx(oracle.logit_interval(auc, variance, level), abs=1e-12)


def test_large_cells_trust_delong_and_small_ones_take_the_wider() -> None:
    rows = int(MIN_FOR_LOGIT / 0.25)
    cases = {
        "just enough rows: DeLong, though much the narrower": (0.5, 1e-9, rows, 100),
        "few rows, DeLong the wider": (0.5, 0.1, 10, 100),
        "one row short: the wider": (0.5, 1e-9, rows - 1, 100),
        "many rows, few misordered": (0.999, 1e-9, 1_000, 1_000),
        "one giant tie: no variance to trust": (0.5, 0.0, 10**6, 10**6),
        "an AUC that rounds to 1": (1 - 1e-17, 1e-40, 10**9, 10**9),
    }
    assert intervals_of(list(cases.values())).method.tolist() == ["logit_delong"] * 2 + ["newcombe"] * 4
    for auc, variance, m, n in cases.values():
        if 0 < auc < 1:
            assert oracle.auc_interval(auc, variance, m, n, 0.95)[0] == intervals_of([(auc, variance, m, n)]).method[0]


def test_the_interval_never_leaves_the_unit_interval() -> None:
    cases = [(auc, variance, 3, 5) for auc, variance in product(AUCS, (0.0, 1e-300, 1e-9, 0.25, 1e300))]
    cases += [(auc, variance, 2**62, 2**62) for auc, variance in product(AUCS, (0.0, 1e-24))]
    found = intervals_of(cases)
    assert (found.low >= 0).all()
    assert (found.low <= [case[0] for case in cases]).all()
    assert (found.high >= [case[0] for case in cases]).all()
    assert (found.high <= 1).all()


def test_no_variance_no_interval() -> None:
    found = intervals_of([(0.75, math.nan, 1, 4), (math.nan, math.nan, 0, 4), (math.nan, math.nan, 0, 0)])
    assert np.isnan([found.low, found.high]).all()
    assert set(found.method) == {"none"}


@given(st.integers(0, 2**20), st.floats(0, 2), st.integers(2, 60), st.integers(2, 60))
def test_the_interval_of_the_complement_is_the_mirror_image(auc: int, spread: float, m: int, n: int) -> None:
    a = auc / 2**20
    variance = spread * a * (1 - a) / min(m, n)
    found, image = intervals_of([(a, variance, m, n)]), intervals_of([(1 - a, variance, n, m)])
    assert found.method == image.method
    assert (found.low[0], found.high[0]) == pytest.approx((1 - image.high[0], 1 - image.low[0]), abs=1e-15)


def shares_of(*counts: tuple[int, int]) -> Share:
    counted, among = np.array(counts, np.float64).T
    return Share(counted, among)


SHARES = [(0, 1), (1, 1), (0, 40), (7, 40), (40, 40), (123_456, 10**9), (2**61, 2**62)]


@pytest.mark.parametrize("level", [0.5, 0.9, 0.999])
def test_wilsons_interval_is_scipys(level: float) -> None:
    low, high = wilson_interval(shares_of(*SHARES), normal_quantile(level))
    for index, (counted, among) in enumerate(SHARES):
        ends = (float(low[index]), float(high[index]))
        assert ends == pytest.approx(oracle.wilson_interval(counted, among, level), rel=1e-11, abs=1e-12)
        if among < 10**10:
            scipy = stats.binomtest(counted, among).proportion_ci(level, method="wilson")
            assert ends == pytest.approx((scipy.low, scipy.high), rel=1e-11, abs=1e-12)
        assert 0 <= ends[0] <= counted / among <= ends[1] <= 1


def test_the_interval_of_a_difference_is_newcombes() -> None:
    pairs = list(product(SHARES, SHARES))
    p, q = (shares_of(*side) for side in zip(*pairs, strict=True))
    low, high = newcombe_difference(p, q, normal_quantile(0.9))
    for index, (first, second) in enumerate(pairs):
        ends = (float(low[index]), float(high[index]))
        assert ends == pytest.approx(oracle.newcombe_gap(first, second, 0.9), rel=0, abs=1e-12)
        assert -1 - 1e-15 <= ends[0] <= first[0] / first[1] - second[0] / second[1] <= ends[1] <= 1 + 1e-15


def test_a_share_of_no_rows_has_no_interval() -> None:
    nothing, share = shares_of((0, 0)), shares_of((3, 9))
    assert np.isnan(nothing.value).all()
    assert np.isnan(wilson_interval(nothing, 1.96)).all()
    assert np.isnan([newcombe_difference(nothing, share, 1.96), newcombe_difference(share, nothing, 1.96)]).all()


def test_the_interval_of_a_mean_is_scipys() -> None:
    everywhere = (-math.inf, math.inf)
    assert normal_interval(0.4, 0.01, 0.95, everywhere) == pytest.approx(stats.norm.interval(0.95, 0.4, 0.1), abs=1e-12)
    assert normal_interval(0.0, 4.0, 0.5, everywhere) == pytest.approx(stats.norm.interval(0.5, 0, 2), abs=1e-11)
    assert normal_interval(0.4, 0.0, 0.9, everywhere) == (0.4, 0.4)
    of_four = stats.t.interval(0.95, 3, 2.5, math.sqrt(5 / 12))  # the mean of 1, 2, 3 and 4
    assert normal_interval(2.5, 5 / 12, 0.95, everywhere, freedom=3) == pytest.approx(of_four, abs=1e-11)
    assert normal_interval(0.4, 1.0, 0.9, (0, 0.5)) == (0, 0.5)
    assert normal_interval(None, 0.1, 0.9, (0, 1)) == normal_interval(0.1, None, 0.9, (0, 1)) == (None, None)


@given(st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=12), st.randoms(use_true_random=False))
def test_adjusted_p_values_are_scipys(p_values: list[float | None], random: object) -> None:
    adjusted = benjamini_hochberg(p_values)
    known = [p for p in p_values if p is not None]
    expected = iter(stats.false_discovery_control(known).tolist() if known else [])
    assert adjusted == [None if p is None else pytest.approx(next(expected), rel=1e-12, abs=1e-300) for p in p_values]
    order = random.sample(range(len(p_values)), len(p_values))  # type: ignore[attr-defined]
    assert benjamini_hochberg([p_values[index] for index in order]) == [adjusted[index] for index in order]
