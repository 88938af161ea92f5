"""The normal distribution and Student's t, against SciPy."""

from __future__ import annotations

import pytest
from scipy import stats

from biasspark.distributions import MANY, NORMAL, normal_quantile, normal_tail, student_quantile, student_tail


@pytest.mark.parametrize("freedom", [1, 1.5, 2, 9, 30, 99, 999, 9_999, 10_001, 12_345_678])
def test_student_is_that_of_scipy(freedom: float) -> None:
    values = [0, 1e-3, 0.5, 1, 1.7, 1.73, 1.74, 2, 3, 10, 100]
    for value in values:
        assert student_tail(value, freedom) == pytest.approx(stats.t.sf(value, freedom), rel=1e-11)
        assert student_tail(-value, freedom) == pytest.approx(stats.t.cdf(value, freedom), rel=1e-11)
    for level in (0.5, 0.9, 0.95, 0.999):
        assert student_quantile(level, freedom) == pytest.approx(stats.t.ppf(0.5 + level / 2, freedom), rel=1e-11)


@pytest.mark.parametrize("value", [0.5, 1.5, 3, 12, 25])
def test_student_has_no_step_where_its_two_methods_meet(value: float) -> None:
    few, many = student_tail(value, MANY), student_tail(value, MANY * (1 + 1e-14))
    assert few == pytest.approx(many, rel=1e-11)


def test_student_of_all_degrees_is_normal() -> None:
    for value in (-3, 0, 1.5, 20):
        assert student_tail(value, NORMAL) == normal_tail(value)
    assert student_tail(1e200, 9) == 0


def test_the_normal_distribution_is_that_of_scipy() -> None:
    for z in (-40.0, -3.0, 0.0, 3.0, 20.0, 35.0):
        assert normal_tail(z) == pytest.approx(stats.norm.sf(z), rel=1e-12)
    for level in (0.5, 0.95, 0.9999):
        assert normal_quantile(level) == student_quantile(level, NORMAL)
        assert normal_quantile(level) == pytest.approx(stats.norm.ppf(0.5 + level / 2), abs=1e-12)
