"""What all tests share, against scipy."""

from __future__ import annotations

from math import sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from biasspark.metrics.testing import adjust, interval

# ---- intervals


def test_interval_is_that_of_a_normal_estimate() -> None:
    low, high = interval(0.4, 0.01, 0.95)
    assert low == pytest.approx(0.4 - 1.959963984540054 * 0.1, abs=1e-12)
    assert high == pytest.approx(0.4 + 1.959963984540054 * 0.1, abs=1e-12)
    assert interval(0.4, 0.0, 0.9) == (0.4, 0.4)
    assert interval(0.0, 4.0, 0.5)[1] == pytest.approx(stats.norm.ppf(0.75) * sqrt(4), abs=1e-11)


@pytest.mark.parametrize(("mean", "variance"), [(None, 0.1), (0.1, None), (None, None)])
def test_no_interval_without_mean_or_variance(mean: float | None, variance: float | None) -> None:
    assert interval(mean, variance, 0.95) == (None, None)


# ---- Benjamini and Hochberg


@settings(max_examples=100, deadline=None)
@given(p_values=st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_adjusted_p_values_are_scipys(p_values: list[float]) -> None:
    assert adjust(p_values) == pytest.approx(stats.false_discovery_control(p_values).tolist(), rel=1e-12, abs=1e-300)


def test_none_is_not_one_of_them() -> None:
    assert adjust([None, 0.01, None, 0.04, 0.02]) == pytest.approx([None, 0.03, None, 0.04, 0.03])
    assert adjust([None, None]) == [None, None]
    assert adjust([]) == []
