"""The p-values of the gate on rates, their gaps and changes, against the intervals that they invert, and chance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import binom

from biasspark.gate.rule_tests import RateGaps, Rates, compare_with_baseline, compare_with_bound
from tests.oracle.intervals import newcombe_gap, rise_ends, wilson_interval

Counts = tuple[int, int, int, int]
"""Counted rows, of how many, in a subgroup and in its background, or in two runs."""


def rates_of(*rows: tuple[int, int]) -> Rates:
    counted, among = np.array(rows, float).T
    return Rates(counted, among)


def gaps_of(rows: Sequence[Counts]) -> RateGaps:
    return RateGaps(rates_of(*(row[:2] for row in rows)), rates_of(*(row[2:] for row in rows)))


def gap(row: Counts) -> float:
    return row[0] / row[1] - row[2] / row[3]


@st.composite
def counts(draw: st.DrawFn) -> Counts:
    n, m = draw(st.integers(1, 500)), draw(st.integers(1, 5000))
    return draw(st.integers(0, n)), n, draw(st.integers(0, m)), m


def hundredths(low: int, high: int) -> st.SearchStrategy[float]:
    return st.integers(low, high).map(lambda number: number / 100)


# ---- the inverse of the intervals


@given(counts(), hundredths(1, 99), st.sampled_from(["min", "max"]))
def test_wilsons_interval_at_the_level_of_the_p_value_ends_at_the_bound(row: Counts, bound: float, kind: str) -> None:
    (violation,), (compliance,) = compare_with_bound(rates_of(row[:2]), kind, bound)
    assert violation + compliance == pytest.approx(1, abs=1e-12)
    rate, p_value = row[0] / row[1], min(violation, compliance)
    if 1e-9 < p_value < 0.5 - 1e-6:
        end = rate <= bound
        level = brentq(lambda level: wilson_interval(*row[:2], level)[end] - bound, 1e-9, 1 - 1e-12, xtol=1e-14)
        assert p_value == pytest.approx((1 - level) / 2, rel=1e-4)
        assert (compliance < violation) == ((rate > bound) == (kind == "min"))


@given(counts(), hundredths(-40, 40))
def test_newcombes_interval_of_a_gap_ends_at_the_bound(row: Counts, bound: float) -> None:
    (violation,), (compliance,) = compare_with_bound(gaps_of([row]), "min", 0.5 + bound)
    assert violation + compliance == pytest.approx(1, abs=1e-12)
    p_value = min(violation, compliance)
    if 1e-9 < p_value < 0.5 - 1e-9:
        ends = newcombe_gap(row[:2], row[2:], level=1 - 2 * p_value)
        assert ends[gap(row) <= bound] == pytest.approx(bound, abs=1e-6)
        assert (compliance < violation) == (gap(row) > bound)


def ends_of(row: Counts, level: float) -> tuple[float, float, float]:
    low, high = newcombe_gap(row[:2], row[2:], level)
    return low, gap(row), high


def test_the_interval_of_a_rise_of_a_gap_ends_at_what_is_allowed() -> None:
    """It may leap over it, at the level at which the gap before may be 0; so it is checked on either side of p."""
    rng, n_checked = np.random.default_rng(20261126), 0
    among = rng.integers(1, [500, 5000] * 2, (16, 4), endpoint=True)
    counted = rng.binomial(among, np.clip(rng.random((16, 1)) + rng.normal(0, 0.1, (16, 4)), 0, 1))
    rows: list[Any] = [tuple(row) for row in np.stack([counted, among], axis=2).reshape(16, 8).tolist()]
    nows, befores = [row[:4] for row in rows], [row[4:] for row in rows]
    for allowed in (0.02, 0.05, 0.2):
        p_values = compare_with_baseline(gaps_of(nows), gaps_of(befores), "max_rise", allowed, is_size_change=True)
        for now, before, violation, compliance in zip(nows, befores, *p_values, strict=True):
            p_value, upper = min(violation, compliance), bool(compliance < violation)
            if 1e-6 < p_value < 0.499:
                shorter, longer = (
                    rise_ends(*(ends_of(row, 1 - 2 * p_value * near) for row in (now, before)))[upper]
                    for near in (1 + 1e-6, 1 - 1e-6)
                )
                low, high = (shorter, longer) if upper else (longer, shorter)
                assert low - 1e-6 <= allowed <= high + 1e-6
                n_checked += 1
    assert n_checked > 30


# ---- symmetries and limits


@given(counts(), hundredths(1, 40), hundredths(-40, 40))
def test_subgroup_and_background_exchanged_turn_a_bound_round(row: Counts, size: float, bound: float) -> None:
    exchanged = gaps_of([(*row[2:], *row[:2])])
    most = compare_with_bound(gaps_of([row]), "max", 0.5 + bound)
    np.testing.assert_allclose(most, compare_with_bound(exchanged, "min", 0.5 - bound), atol=1e-12)
    (violation,), (compliance,) = compare_with_bound(gaps_of([row]), "max_abs", size)
    opposite = compare_with_bound(exchanged, "max_abs", size)
    assert compliance == pytest.approx(opposite[1][0], abs=1e-12)
    assert (compliance if abs(gap(row)) > size else violation) >= 0.5 - 1e-9
    if gap(row):  # with 0 on either side nothing speaks of a violation
        assert violation == pytest.approx(opposite[0][0], abs=1e-12)


@given(counts(), hundredths(0, 40))
def test_a_change_is_tested_as_the_gap_of_two_runs(row: Counts, allowed: float) -> None:
    for change, kind, bound in (("max_drop", "min", 0.5 - allowed), ("max_rise", "max", 0.5 + allowed)):
        found = compare_with_baseline(rates_of(row[:2]), rates_of(row[2:]), change, allowed)
        np.testing.assert_allclose(found, compare_with_bound(gaps_of([row]), kind, bound), atol=1e-9)


def test_without_a_row_there_is_no_evidence() -> None:
    nothing, something = rates_of((0, 0), (1, 2)), rates_of((1, 2), (0, 0))
    for kind in ("max_drop", "max_rise"):
        assert np.isnan(compare_with_baseline(nothing, something, kind, 0.1)).all()
    assert np.isnan(compare_with_bound(nothing, "max", 0.1)[0][0])
    assert np.isnan(compare_with_bound(gaps_of([(0, 0, 3, 9), (1, 2, 0, 0)]), "max_abs", 0.1)).all()


def test_a_background_without_a_counted_row_leaves_the_evidence_to_the_subgroup() -> None:
    """No rate is below 0, so a gap is as far below its bound as the rate of the subgroup is."""
    for row in [(0, 1000), (5, 59)]:
        for bound in (0.1, 0.3):
            distance = gaps_of([(*row, 0, 5000)]).standard_errors(0.5 + bound)
            np.testing.assert_allclose(distance, rates_of(row).standard_errors(bound))
    (violation,), (compliance,) = compare_with_bound(gaps_of([(0, 1000, 0, 5000)]), "max_abs", 0.1)
    assert violation > 0.99
    assert compliance < 1e-9
    low, _ = newcombe_gap((0, 300), (0, 200), 0.9)  # the farther end: fewer rows are in the background
    _, (compliance,) = compare_with_bound(gaps_of([(0, 300, 0, 200)]), "max_abs", -low)
    assert compliance == pytest.approx(0.05, abs=0.001)


def test_bounds_that_no_interval_reaches_are_infinitely_far() -> None:
    """The longest interval of 0 of 1 less 0 of 1 reaches from -1 to 1, that of 1/2 less 1/2 not so far."""
    assert gaps_of([(1, 2, 1, 2)]).standard_errors(-0.45).tolist() == [math.inf]


# ---- against chance


def draw_rates(rng: np.random.Generator, p: float, n: int, runs: int) -> Rates:
    return Rates(rng.binomial(n, p, runs).astype(float), np.full(runs, float(n)))


@pytest.mark.parametrize(("p", "n"), [(0.05, 200), (0.2, 40), (0.2, 2000), (0.9, 60)])
def test_a_rate_at_just_the_bound_seldom_seems_to_break_or_to_keep_it(p: float, n: int) -> None:
    """By its very counts, so exactly: at 0.05 in 7.5% of draws at the most, for counts leap."""
    counted = np.arange(n + 1.0)
    chance = binom.pmf(counted, n, p)
    for kind in ("min", "max"):
        for p_values in compare_with_bound(Rates(counted, np.full(n + 1, float(n))), kind, p):
            assert chance[p_values < 0.05].sum() <= 0.075


@pytest.mark.parametrize(("expected", "most"), [(0.2, 0.2003), (1, 0.1215), (10, 0.075)])
def test_how_often_a_rate_at_just_the_bound_seems_to_break_it(expected: float, most: float) -> None:
    """By how many rows are expected to be counted, at 0.05."""
    shares = []
    for n in (25, 100, 3000):
        counted = np.arange(n + 1.0)
        for bound in np.linspace(expected, 1.6 * expected, 25) / n:
            p_values, _ = compare_with_bound(Rates(counted, np.full(n + 1, float(n))), "max", bound)
            shares.append(binom.pmf(counted, n, bound)[p_values < 0.05].sum())
    assert most - 0.005 < max(shares) <= most


@pytest.mark.parametrize(
    ("rates", "sizes", "rise"),
    [
        ((0.25, 0.1, 0.20, 0.1), (200, 3000), 0.05),
        pytest.param((0.09, 0.001, 0.001, 0.001), (50, 5000), 0.088, marks=pytest.mark.slow),
    ],
)
def test_a_rise_of_just_the_bound_seldom_seems_to_keep_it(
    rates: tuple[float, ...], sizes: tuple[int, int], rise: float
) -> None:
    rng = np.random.default_rng(20261123)
    drawn = [draw_rates(rng, p, n, 250) for p, n in zip(rates, sizes * 2, strict=True)]
    now, before = RateGaps(drawn[0], drawn[1]), RateGaps(drawn[2], drawn[3])
    violation, compliance = compare_with_baseline(now, before, "max_rise", rise, is_size_change=True)
    assert max((violation < 0.05).mean(), (compliance < 0.05).mean()) <= 0.08


def test_a_gap_of_few_rows_is_not_shown_to_be_small() -> None:
    """Of 50 rows none is counted, of the 5,000 others 1 in a thousand: the gap may be far above 0 all the same."""
    gaps = gaps_of([(0, 50, 0, 5000), (0, 50, 5, 5000)])
    small, more = (gaps_of([(counted, 10_000, 500, 10_000)] * 2) for counted in (500, 600))
    assert (compare_with_baseline(gaps, small, "max_rise", 0.03, is_size_change=True)[1] > 0.05).all()
    assert (compare_with_baseline(more, gaps, "max_rise", 0.0, is_size_change=True)[0] > 0.05).all()
