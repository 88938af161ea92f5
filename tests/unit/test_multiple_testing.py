"""Intervals of means and adjusted p-values, against SciPy."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from biasspark.metrics.multiple_testing import benjamini_hochberg, clip, interval


def test_the_interval_is_that_of_a_normal_estimate() -> None:
    assert interval(0.4, 0.01, 0.95) == pytest.approx(stats.norm.interval(0.95, 0.4, 0.1), abs=1e-12)
    assert interval(0.0, 4.0, 0.5) == pytest.approx(stats.norm.interval(0.5, 0, 2), abs=1e-11)
    assert interval(0.4, 0.0, 0.9) == (0.4, 0.4)
    assert interval(None, 0.1, 0.9) == interval(0.1, None, 0.9) == (None, None)
    assert (clip((-0.2, 0.7), 0, 0.5), clip((None, None), 0, 1)) == ((0, 0.5), (None, None))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=12), st.randoms(use_true_random=False))
def test_adjusted_p_values_are_scipys(p_values: list[float | None], random: object) -> None:
    """None is not one of them, and no order changes a bit."""
    adjusted = benjamini_hochberg(p_values)
    known = [p for p in p_values if p is not None]
    expected = iter(stats.false_discovery_control(known).tolist() if known else [])
    assert adjusted == [None if p is None else pytest.approx(next(expected), rel=1e-12, abs=1e-300) for p in p_values]
    order = random.sample(range(len(p_values)), len(p_values))  # type: ignore[attr-defined]
    assert benjamini_hochberg([p_values[index] for index in order]) == [adjusted[index] for index in order]
