"""The p-values of the gate on AUCs and gaps, against the intervals that they invert."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from biasspark.gate.rule_tests import Aucs, compare_with_baseline, compare_with_bound
from tests.oracle.intervals import difference_ends, logit_interval, newcombe_interval, rise_ends

Case = tuple[float, float, int, int, bool]
"""AUC, variance, sizes, and whether the interval is by the logit."""


def aucs_of(cases: Sequence[Case]) -> Aucs:
    auc, variance, n_low, n_high, by_logit = (np.array(values) for values in zip(*cases, strict=True))
    return Aucs(auc, variance, n_low.astype(float), n_high.astype(float), by_logit.astype(bool))


def interval_of(case: Case, level: float) -> tuple[float, float]:
    auc, variance, n_low, n_high, by_logit = case
    return logit_interval(auc, variance, level) if by_logit else newcombe_interval(auc, n_low, n_high, level)


SIZES = st.integers(2, 3000)


@st.composite
def estimates(draw: st.DrawFn) -> Case:
    """An AUC away from the ends by either method, or of complete separation by the one that allows it."""
    m, n, by_logit = draw(SIZES), draw(SIZES), draw(st.booleans())
    auc = draw(st.integers(20, 1004) if by_logit else st.integers(0, 1024)) / 1024
    return auc, draw(st.floats(0.1, 2)) * max(auc * (1 - auc), 1e-4) / min(m, n), m, n, by_logit


@given(case=estimates(), bound=st.floats(0.01, 0.99), kind=st.sampled_from(["min", "max"]))
def test_the_interval_at_level_1_less_2p_ends_at_the_bound(case: Case, bound: float, kind: str) -> None:
    (violation,), (compliance,) = compare_with_bound(aucs_of([case]), kind, bound)
    assert violation + compliance == pytest.approx(1, abs=1e-15)
    p = min(violation, compliance)
    assume(1e-6 < p < 0.499)
    low, high = interval_of(case, 1 - 2 * p)
    assert (low if (kind == "min") == (compliance < violation) else high) == pytest.approx(bound, abs=1e-8)


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
    assert interval_of(case, 1 - violation)[0] == pytest.approx(0.5, abs=1e-12)


def ends_of(case: Case, level: float, shift: float) -> tuple[float, float, float]:
    """Of an AUC less a shift, as for a gap."""
    low, high = interval_of(case, level)
    return low - shift, case[0] - shift, high - shift


def compare(now: Aucs, before: Aucs, kind: str, bound: float) -> tuple[NDArray[Any], NDArray[Any]]:
    return compare_with_baseline(now, before, kind, bound, is_size_change=kind == "max_rise")


@given(now=estimates(), before=estimates(), bound=st.floats(0, 0.3), kind=st.sampled_from(["max_drop", "max_rise"]))
@example(
    now=(0.564453125, 0.0176, 14, 259, False), before=(0.0, 5e-05, 2, 2, False), bound=0.177734375, kind="max_rise"
)
def test_the_interval_of_a_change_ends_at_the_bound(now: Case, before: Case, bound: float, kind: str) -> None:
    """It may leap over it, at the level at which the gap before may be 0; so it is checked on either side of p."""
    (violation,), (compliance,) = compare(aucs_of([now]), aucs_of([before]), kind, bound)
    assert violation + compliance == pytest.approx(1, abs=1e-15)
    p = min(violation, compliance)
    assume(1e-6 < p < 0.499)
    ends, shift, at = (rise_ends, 0.5, bound) if kind == "max_rise" else (difference_ends, 0.0, -bound)
    shorter, longer = (
        ends(*(ends_of(case, 1 - 2 * p * near, shift) for case in (now, before))) for near in (1 + 1e-6, 1 - 1e-6)
    )
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
    perfect, worst = aucs_of([(1.0, 0.0, 2, 2, False)]), aucs_of([(0.0, 0.0, 2, 2, False)])
    assert compare_with_bound(perfect, "min", 0.9)[1][0] > 0.2
    assert compare_with_baseline(worst, perfect, "max_drop", 0.5)[0][0] > 0.02


def test_a_change_of_nothing_shows_nothing() -> None:
    same = aucs_of([(0.8, 0.001, 50, 50, True)])
    assert np.array_equal(compare_with_baseline(same, same, "max_drop", 0.0), [[0.5], [0.5]])
