"""The p-values of the gate against the intervals that they invert, against scipy, and against chance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from biasspark.metrics.evidence import (
    Aucs,
    Bounds,
    compare_with_baseline,
    compare_with_bound,
    list_cases,
    upper_tail,
    weakest,
)
from scripts.drill_intervals import logit_interval, newcombe_interval
from tests.oracle.suite import auc_by_pairs, delong_variance

Case = tuple[float, float, int, int, bool]  # AUC, variance, sizes, by logit


def aucs_of(cases: Sequence[Case]) -> Aucs:
    auc, variance, n_low, n_high, by_logit = (np.array(values) for values in zip(*cases, strict=True))
    return Aucs(auc, variance, n_low.astype(float), n_high.astype(float), by_logit.astype(bool))


def joined(cases: Sequence[Aucs]) -> Aucs:
    return Aucs(*(np.concatenate([getattr(case, field.name) for case in cases]) for field in fields(Aucs)))


def interval_of(case: Case, level: float) -> tuple[float, float]:
    auc, variance, n_low, n_high, by_logit = case
    return logit_interval(auc, variance, level) if by_logit else newcombe_interval(auc, n_low, n_high, level)


def mirrored(case: Case) -> Case:
    return (1 - case[0], *case[1:])


SIZES = st.integers(2, 3000)


@st.composite
def estimates(draw: st.DrawFn) -> Case:
    """An AUC away from the ends by either method, or of complete separation by the one that allows it."""
    m, n, by_logit = draw(SIZES), draw(SIZES), draw(st.booleans())
    auc = draw(st.integers(20, 1004) if by_logit else st.integers(0, 1024)) / 1024
    return auc, draw(st.floats(0.1, 2)) * max(auc * (1 - auc), 1e-4) / min(m, n), m, n, by_logit


# ---- the inverse of the interval


@settings(max_examples=150, deadline=None)
@given(case=estimates(), bound=st.floats(0.01, 0.99), kind=st.sampled_from(["min", "max"]))
def test_the_interval_at_level_1_less_2p_ends_at_the_bound(case: Case, bound: float, kind: str) -> None:
    (violation,), (compliance,) = compare_with_bound(aucs_of([case]), kind, bound)
    assert violation + compliance == pytest.approx(1, abs=1e-15)
    p = min(violation, compliance)
    assume(1e-6 < p < 0.499)
    low, high = interval_of(case, 1 - 2 * p)
    end = low if (kind == "min") == (compliance < violation) else high
    assert end == pytest.approx(bound, abs=1e-8)


@settings(max_examples=200, deadline=None)
@given(case=estimates(), bound=st.floats(0.01, 0.45))
def test_within_a_bound_both_sides_are_tested(case: Case, bound: float) -> None:
    (violation,), (compliance,) = compare_with_bound(aucs_of([case]), "max_abs", bound)
    above = compare_with_bound(aucs_of([case]), "max", 0.5 + bound)
    below = compare_with_bound(aucs_of([case]), "min", 0.5 - bound)
    assert compliance == pytest.approx(max(above[1][0], below[1][0]), rel=1e-9, abs=1e-300)
    near = min(above[0][0], below[0][0])
    assert near - 1e-14 <= violation <= min(1, 2 * near + 1e-12)


def test_a_gap_of_no_size_is_tested_two_sided() -> None:
    case = (0.56, 4e-4, 300, 300, True)
    (violation,), _ = compare_with_bound(aucs_of([case]), "max_abs", 0.0)
    low, _ = interval_of(case, 1 - violation)
    assert low == pytest.approx(0.5, abs=1e-12)


def rise_ends(now: Case, before: Case, level: float) -> tuple[float, float]:
    """Ends of |gap now| - |gap before|, whose own ends are no less than 0."""

    def size_ends(case: Case) -> tuple[float, float, float]:
        case = case if case[0] >= 0.5 else mirrored(case)
        low, high = interval_of(case, level)
        return max(low - 0.5, 0), case[0] - 0.5, high - 0.5

    return difference_ends(size_ends(now), size_ends(before))


def difference_ends(now: tuple[float, float, float], before: tuple[float, float, float]) -> tuple[float, float]:
    change = now[1] - before[1]
    up = now[2] - now[1], before[1] - before[0]
    return (
        change - math.hypot(now[1] - now[0], before[2] - before[1]),
        change + (sum(up) if before[0] == 0 else math.hypot(*up)),
    )


def compare(now: Aucs, before: Aucs, kind: str, bound: float) -> tuple[NDArray[Any], NDArray[Any]]:
    """Of AUCs how far they fell, of gaps how far their sizes rose."""
    return compare_with_baseline(now, before, kind, bound, of_size=kind == "max_rise")


def change_ends(kind: str, now: Case, before: Case, level: float) -> tuple[float, float]:
    if kind == "max_rise":
        return rise_ends(now, before, level)
    ends = [interval_of(case, level) for case in (now, before)]
    return difference_ends(*((low, case[0], high) for (low, high), case in zip(ends, (now, before), strict=True)))


@settings(max_examples=60, deadline=None)
@given(now=estimates(), before=estimates(), bound=st.floats(0, 0.3), kind=st.sampled_from(["max_drop", "max_rise"]))
def test_the_interval_of_a_change_ends_at_the_bound(now: Case, before: Case, bound: float, kind: str) -> None:
    """It may leap over it, at the level at which the gap before may be 0; so it is held to either side of p."""
    (violation,), (compliance,) = compare(aucs_of([now]), aucs_of([before]), kind, bound)
    assert violation + compliance == pytest.approx(1, abs=1e-15)
    p = min(violation, compliance)
    assume(1e-6 < p < 0.499)
    shorter, longer = (change_ends(kind, now, before, 1 - 2 * p * near) for near in (1 + 1e-6, 1 - 1e-6))
    at = bound if kind == "max_rise" else -bound
    if (kind == "max_rise") == (compliance < violation):
        assert shorter[1] - 1e-7 <= at <= longer[1] + 1e-7
    else:
        assert longer[0] - 1e-7 <= at <= shorter[0] + 1e-7


def test_nothing_is_shown_without_an_interval() -> None:
    nothing = aucs_of([(math.nan, math.nan, 0, 0, False), (0.9, math.nan, 1, 50, False)])
    something = aucs_of([(0.9, 0.001, 50, 50, False)] * 2)
    for kind in ("min", "max", "max_abs"):
        assert np.isnan(compare_with_bound(nothing, kind, 0.3)).all()
    for kind in ("max_drop", "max_rise"):
        assert np.isnan(compare(nothing, something, kind, 0.1)).all()
        assert np.isnan(compare(something, nothing, kind, 0.1)).all()


def test_two_rows_that_are_separated_show_little() -> None:
    perfect = aucs_of([(1.0, 0.0, 2, 2, False)])
    _, (compliance,) = compare_with_bound(perfect, "min", 0.9)
    assert compliance > 0.2
    (violation,), _ = compare_with_baseline(aucs_of([(0.0, 0.0, 2, 2, False)]), perfect, "max_drop", 0.5)
    assert violation > 0.02


def test_a_change_of_nothing_shows_nothing() -> None:
    same = aucs_of([(0.8, 0.001, 50, 50, True)])
    assert compare_with_baseline(same, same, "max_drop", 0.0) == (0.5, 0.5)


def test_far_tails_keep_their_digits() -> None:
    z = [-40.0, -3.0, 0.0, 3.0, 20.0, 35.0]
    assert upper_tail(np.array(z)).tolist() == pytest.approx(stats.norm.sf(z).tolist(), rel=1e-12)


# ---- against chance


def draw_aucs(rng: np.random.Generator, shift: float, sizes: tuple[int, int], n_runs: int) -> NDArray[Any]:
    """Cases of runs of normal scores, with the method that the table would name (settled from 40 rows on)."""
    m, n = sizes
    cases = []
    for _ in range(n_runs):
        low, high = rng.normal(0, 1, m), rng.normal(shift, 1, n)
        auc, variance = auc_by_pairs(low, high), delong_variance(low, high)
        cases.append((auc, variance, m, n, variance > 0 and min(m, n) * auc * (1 - auc) >= 10))
    return np.array(cases, dtype=object)


@pytest.mark.parametrize("shift", [0.6, 1.5])
def test_a_bound_that_just_holds_is_seldom_found_broken(shift: float) -> None:
    rng = np.random.default_rng(5)
    true = stats.norm.cdf(shift / math.sqrt(2))
    aucs = aucs_of(draw_aucs(rng, shift, (80, 120), 1000).tolist())
    violation, compliance = compare_with_bound(aucs, "min", true)
    assert (violation < 0.05).mean() < 0.08
    assert (compliance < 0.05).mean() < 0.08
    violation, _ = compare_with_bound(aucs, "max_abs", true - 0.5)
    assert (violation < 0.05).mean() < 0.08


@pytest.mark.parametrize(("kind", "shifts"), [("max_drop", (0.9, 1.2)), ("max_rise", (0.6, 0.3))])
def test_a_change_that_just_is_allowed_is_seldom_found_broken(kind: str, shifts: tuple[float, float]) -> None:
    rng = np.random.default_rng(6)
    now, before = (aucs_of(draw_aucs(rng, shift, (70, 90), 1000).tolist()) for shift in shifts)
    allowed = abs(float(np.diff(stats.norm.cdf(np.array(shifts) / math.sqrt(2)))[0]))
    violation, compliance = compare(now, before, kind, allowed)
    assert 0.02 < (violation < 0.05).mean() < 0.08
    assert 0.02 < (compliance < 0.05).mean() < 0.08


# ---- values between bounds


@st.composite
def boxes(draw: st.DrawFn) -> tuple[Case, Bounds, Case]:
    """An AUC in the middle of bounds, what is known of it, and one that the bounds allow, by a method that they do."""
    m, n = draw(SIZES), draw(SIZES)
    auc, doubt = draw(st.floats(0.02, 0.98)), draw(st.sampled_from([0.0, 1e-4, 0.02, 0.3]))
    most = min(auc, 1 - auc) * math.sqrt(m / (m - 1) + n / (n - 1))
    least, variance, highest = sorted(draw(st.floats(0.02, 1)) * auc * (1 - auc) / min(m, n) for _ in range(3))
    low, high = max(auc - doubt, 0.0), min(auc + doubt, 1.0)
    joined, by_logit = draw(st.booleans()), draw(st.booleans())
    in_doubt = np.array([low < high or least < highest])
    bounds = Bounds(np.array([low]), np.array([high]), np.array([highest]), in_doubt, in_doubt & joined)
    within = low + draw(st.floats(0, 1)) * (high - low)
    assume(1e-12 < within < 1 - 1e-12)
    possible = min(draw(st.floats(least, highest)), (most / min(auc, 1 - auc) * min(within, 1 - within)) ** 2)
    other_method = draw(st.booleans()) if bounds.joined[0] else by_logit
    return (auc, variance, m, n, by_logit), bounds, (within, possible, m, n, other_method)


@settings(max_examples=150, deadline=None)
@given(box=boxes(), bound=st.floats(0.01, 0.99), kind=st.sampled_from(["min", "max", "max_abs"]))
def test_no_value_within_the_bounds_has_a_weaker_evidence_than_its_cases(
    box: tuple[Case, Bounds, Case], bound: float, kind: str
) -> None:
    middle, bounds, within = box
    bound = abs(bound - 0.5) if kind == "max_abs" else bound
    cases = [compare_with_bound(case, kind, bound) for case in list_cases(aucs_of([middle]), bounds)]
    for p_values, possible in zip(
        zip(*cases, strict=True), compare_with_bound(aucs_of([within]), kind, bound), strict=True
    ):
        assert possible[0] <= weakest(p_values, bounds.in_doubt)[0] + 1e-12


@settings(max_examples=60, deadline=None)
@given(now=boxes(), before=boxes(), bound=st.floats(0, 0.4), kind=st.sampled_from(["max_drop", "max_rise"]))
def test_nor_has_any_change(
    now: tuple[Case, Bounds, Case], before: tuple[Case, Bounds, Case], bound: float, kind: str
) -> None:
    nights = [list_cases(aucs_of([middle]), bounds) for middle, bounds, _ in (now, before)]
    cases = compare(*map(joined, zip(*product(*nights), strict=True)), kind, bound)
    in_doubt = now[1].in_doubt | before[1].in_doubt
    found = compare(aucs_of([now[2]]), aucs_of([before[2]]), kind, bound)
    for p_values, possible in zip(cases, found, strict=True):
        assert possible[0] <= weakest(list(p_values[:, None]), in_doubt)[0] + 1e-9


def test_what_is_known_exactly_is_one_case() -> None:
    aucs = aucs_of([(0.8, 0.001, 50, 60, True)])
    exact = Bounds(aucs.auc, aucs.auc, aucs.variance, np.array([False]), np.array([False]))
    assert list_cases(aucs, exact) == [aucs]
    assert weakest([np.array([0.7])], exact.in_doubt).tolist() == [0.7]


def test_a_value_in_doubt_without_a_variance_is_evidence_of_nothing() -> None:
    """As that of a cell of one row, which has no interval either."""
    aucs = aucs_of([(0.8, math.nan, 1, 60, True)])
    bounds = Bounds(np.array([0.7]), np.array([0.9]), np.array([math.nan]), np.array([True]), np.array([False]))
    for case in list_cases(aucs, bounds):
        assert np.isnan(compare_with_bound(case, "min", 0.6)).all()
