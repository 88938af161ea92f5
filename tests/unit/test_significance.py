"""Moments and Welch's test, against scipy and arithmetic on fractions."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import combinations
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from biasspark.attribution.moments import Moments, chance_p_value, welch_p_value


def moments(values: Iterable[float]) -> Moments:
    exact = [Fraction(float(value)) for value in values]
    return Moments(len(exact), sum(exact, Fraction()), sum((value * value for value in exact), Fraction()))


DYADIC = st.lists(st.integers(-64, 64).map(lambda whole: whole / 64), max_size=30)


@given(values=DYADIC)
def test_mean_and_variance(values: list[float]) -> None:
    found = moments(values)
    assert found.mean == (float(sum(map(Fraction, values)) / len(values)) if values else None)
    if len(values) < 2:
        assert found.variance is None
    else:
        assert found.variance == pytest.approx(np.var(values, ddof=1), rel=1e-12, abs=0)


def test_variance_of_nearly_equal_values_loses_no_digit() -> None:
    """Of 10^12 rows around 10^6, a variance of a millionth: in doubles nothing of it would be left."""
    n, middle, spread = 10**12, 10**6, Fraction(1, 1000)
    total, squares = Fraction(n * middle), n * (middle**2 + spread**2)
    assert Moments(n, total, squares).variance == float(n * spread**2 / (n - 1))


def test_variance_is_never_negative() -> None:
    """Squares that were rounded may say a little too little."""
    assert Moments(2, Fraction("0.2"), Fraction("0.0199999999999")).variance == 0.0


@given(first=DYADIC, second=DYADIC)
def test_moments_add_and_subtract_exactly(first: list[float], second: list[float]) -> None:
    both = moments(first) + moments(second)
    assert both == moments(first + second)
    assert both - moments(second) == moments(first)
    assert both + Moments() == both


@pytest.mark.parametrize("unit", [1.0, 2.0**-40, 2.0**-200])
def test_welch_is_that_of_scipy_in_any_unit(unit: float) -> None:
    """Where only one sample varies, it is the test of that one against a number."""
    a, b, varying = [0.0, 0.5, 1.0], [0.25, 1.0, 1.0, 2.0], [0.0, 1.0, 0.5, 0.25]
    wanted = stats.ttest_ind(a, b, equal_var=False).pvalue, stats.ttest_1samp(varying, 1.0).pvalue
    for first, second, p_value in ((a, b, wanted[0]), ([1.0] * 3, varying, wanted[1])):
        scaled = [moments([value * unit for value in sample]) for sample in (first, second)]
        assert welch_p_value(*scaled) == pytest.approx(p_value, rel=1e-12)


def test_welch_in_the_far_tail() -> None:
    a, b = np.random.default_rng(1).normal(size=(2, 5000))
    wanted = stats.ttest_ind(a, b + 0.6, equal_var=False).pvalue
    assert 0 < wanted < 1e-150
    assert welch_p_value(moments(a), moments(b + 0.6)) == pytest.approx(wanted, rel=1e-6)


def test_welch_where_neither_varies() -> None:
    """The limit of ever smaller variances; scipy gives NaN, and minus infinity with p 0."""
    assert welch_p_value(moments([0.5, 0.5]), moments([0.5] * 9)) == 1.0
    assert welch_p_value(moments([0.5, 0.5]), moments([0.25] * 9)) == 0.0


@pytest.mark.parametrize("few", [[], [1.0]])
def test_welch_wants_two_rows_of_both(few: list[float]) -> None:
    assert welch_p_value(moments(few), moments([0.0, 1.0, 2.0])) is None
    assert welch_p_value(moments([0.0, 1.0, 2.0]), moments(few)) is None


def test_chance_has_the_variance_of_all_draws() -> None:
    values = [0.0, 0.5, 0.5, 0.25, 1.0, 0.5, 0.125]
    draws = list(combinations(values, 3))
    spread = sqrt(sum((sum(draw) / 3 - sum(values) / 7) ** 2 for draw in draws) / len(draws))
    for draw in draws:
        z = (sum(draw) / 3 - sum(values) / 7) / spread
        assert chance_p_value(moments(draw), moments(values)) == pytest.approx(2 * stats.norm.sf(abs(z)), rel=1e-9)


def test_chance_of_no_rows_of_all_and_of_equal_ones() -> None:
    some = moments([0.5, 0.25])
    assert chance_p_value(Moments(), some) is None
    assert chance_p_value(some, some) is None
    assert chance_p_value(moments([0.5]), moments([0.5] * 9)) == 1.0
