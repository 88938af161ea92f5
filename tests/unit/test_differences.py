"""Differences of two values of a metric, their tests and verdicts, against SciPy and simulation."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from scipy import stats
from scipy.stats import binom, norm

from biasspark.comparison.differences import DifferenceEstimate, PairedMetric, estimate_difference, noninferiority_test
from biasspark.comparison.model_comparisons import judge_difference
from biasspark.metrics.intervals import benjamini_hochberg
from scripts.simulations.comparison_coverage import Setting, estimate

Z = norm.ppf(0.975)
SUM_SD = sqrt(3e-4)


def auc(
    value: float | None, baseline: float | None, variance: float | None = 1e-4, n: int = 50, n_groups: int | None = None
) -> PairedMetric:
    return PairedMetric(
        n_low=n, n_high=9 * n, value=value, baseline_value=baseline, difference_variance=variance, sum_variance=3e-4,
        n_groups=n_groups,
    )  # fmt: skip


def gap(
    value: float, baseline: float, half: float = 0.05, variances: tuple[float, float] = (1e-4, 3e-4)
) -> PairedMetric:
    ends = (value - half, value + half), (baseline - half, baseline + half)
    difference, total = variances
    return auc(value, baseline)._replace(difference_variance=difference, sum_variance=total, intervals=ends)


@pytest.mark.parametrize("n_groups", [None, 10, 31, 1000])
def test_by_the_normal_distribution_or_of_groups_by_students_t(n_groups: int | None) -> None:
    """By as many degrees of freedom as there are groups less one; and so of a margin.

    A gap of unknown sign rose by 0.18, or by 0.22 if the gap of the baseline lies on the other side.
    """
    paired, law = auc(0.83, 0.8, n_groups=n_groups), stats.t(n_groups - 1) if n_groups else norm
    half = 0.01 * law.ppf(0.975)
    found = estimate_difference(paired, 0.95)
    assert found[:4] == pytest.approx((0.03, 0.03 - half, 0.03 + half, 2 * law.sf(3)), abs=1e-11)
    assert noninferiority_test(paired, "max_rise", 0.01) == pytest.approx((law.sf(2), law.cdf(2)), abs=1e-11)
    of_gaps = estimate_difference(gap(0.2, 0.02, 0.06)._replace(n_groups=n_groups), 0.9)
    t = law.ppf(0.95)
    assert of_gaps[:3] == pytest.approx((0.18, 0.18 - t * 0.01, 0.22 + t * SUM_SD), abs=1e-11)
    assert of_gaps.p_value == pytest.approx(max(2 * law.sf(18), 2 * law.sf(0.22 / SUM_SD)), rel=1e-9)


@pytest.mark.parametrize(("s", "t"), [(1, 1), (1, -1), (-1, 1), (-1, -1)])
def test_a_gap_whose_signs_are_known(s: int, t: int) -> None:
    """The difference is that of sizes, and the margin how much further from 0 it is."""
    sd = 0.01 if s == t else SUM_SD
    found = estimate_difference(gap(s * 0.2, t * 0.15), 0.95)
    assert found[:4] == pytest.approx((0.05, 0.05 - Z * sd, 0.05 + Z * sd, 2 * norm.sf(0.05 / sd)), abs=1e-12)
    z = (0.05 - 0.02) / sd
    p_values = noninferiority_test(gap(s * 0.2, t * 0.15), "max_rise", 0.02)
    assert p_values == pytest.approx((norm.sf(z), norm.cdf(z)), abs=1e-12)


@pytest.mark.parametrize("margin", [0.2, 0.12])
def test_a_gap_whose_sign_is_not_known_keeps_a_margin_on_both_sides(margin: float) -> None:
    steps = ((0.18 - margin) / 0.01, (0.22 - margin) / SUM_SD)
    p_values = noninferiority_test(gap(0.2, 0.02), "max_rise", margin)
    assert p_values == pytest.approx((max(map(norm.sf, steps)), max(map(norm.cdf, steps))), abs=1e-12)


def test_gaps_that_may_both_be_0_say_nothing() -> None:
    found = estimate_difference(gap(0.02, -0.02, variances=(1e-6, 3e-4)), 0.95)
    assert (found.difference, found.p_value, found.one_sided) == (0.0, 1.0, False)
    assert (found.low, found.high) == pytest.approx((-0.04 - Z * 1e-3, 0.04 + Z * 1e-3))
    significant = estimate_difference(gap(0.03, -0.02, variances=(1e-6, 1e-6)), 0.95)
    assert significant.p_value is not None
    assert significant.p_value < 1e-9
    assert judge_difference(significant, significant.p_value, True) == "no_evidence"


def test_intervals_stay_in_the_range_of_the_difference() -> None:
    unknown = gap(0.4, 0.0, variances=(1.0, 1.0))._replace(intervals=((None, None), (None, None)))
    assert estimate_difference(unknown, 0.95)[1:3] == (-0.5, 0.5)
    assert estimate_difference(auc(0.9, 0.1, 1.0), 0.95)[1:3] == (-1.0, 1.0)


@pytest.mark.parametrize(("value", "baseline"), [(0.4, 0.0), (-0.1, 0.3), (0.05, -0.2), (0.02, 0.01)])
def test_the_difference_of_gaps_is_no_more_than_their_own_intervals_allow(value: float, baseline: float) -> None:
    """By trying all sizes of both gaps that their intervals have in them."""
    paired = gap(value, baseline, 0.06, (1.0, 1.0))
    sizes = [np.abs(np.linspace(center - 0.06, center + 0.06, 1001)) for center in (value, baseline)]
    found = estimate_difference(paired, 0.95)
    assert found[1:3] == pytest.approx((-sizes[1].max(), sizes[0].max()), abs=1e-12)
    differences = np.subtract.outer(*sizes)
    assert found.low <= differences.min() <= found.difference <= differences.max() <= found.high


INSUFFICIENT = [
    auc(None, None),
    auc(0.9, 0.8, None),
    auc(0.8, 0.8, None),
    auc(0.9, 0.8, 0.0),
    gap(0.2, 0.1, variances=(0.0, 1.0)),
    auc(0.9, 0.8, n=9),
    auc(0.8, 0.8, 0.0, n=9),
    auc(0.9, 0.8, n_groups=9),
    auc(0.8, 0.8, 0.0, n_groups=9),
]


@pytest.mark.parametrize("paired", INSUFFICIENT)
def test_insufficient_data(paired: PairedMetric) -> None:
    found = estimate_difference(paired, 0.95)
    assert found[1:4] == (None, None, None)
    assert (found.difference is None) == (paired.value is None)
    assert noninferiority_test(paired, "max_drop", 0.02) is None
    assert judge_difference(found, found.p_value, False) == "insufficient_data"


@pytest.mark.parametrize(
    "paired", [auc(0.8, 0.8, 0.0), gap(0.1, 0.1, 0.3, (0.0, 0.1)), gap(0.1, 0.7 - 0.8, 0.05, (0.1, 0.0))]
)
def test_models_that_score_alike_differ_by_nothing(paired: PairedMetric) -> None:
    found = estimate_difference(paired, 0.95)
    assert found[:4] == pytest.approx((0, 0, 0, 1), abs=1e-12)
    assert judge_difference(found, found.p_value, False) == "no_evidence"


def test_verdicts_are_of_adjusted_p_values_and_the_smaller_gap_is_better() -> None:
    p_values, signs = (0.01, 0.02, 0.2, None, 0.02), (1, -1, 1, 1, -1)
    estimates = [DifferenceEstimate(0.1 * sign, p_value=p) for sign, p in zip(signs, p_values, strict=True)]
    adjusted = benjamini_hochberg(p_values)
    assert adjusted == pytest.approx([0.08 / 3, 0.08 / 3, 0.2, None, 0.08 / 3])
    verdicts = list(map(judge_difference, estimates, adjusted, [False, False, True, False, True]))
    assert verdicts == ["better", "worse", "no_evidence", "insufficient_data", "better"]
    assert list(map(judge_difference, estimates[:2], adjusted, [True, True])) == ["worse", "better"]


@pytest.mark.parametrize("variance", [1e-4, 1e-9])
def test_few_rows_show_no_margin_to_be_kept_that_few_rows_may_break(variance: float) -> None:
    """Of 50 rows 3% are as likely as not fewer than two: nothing seems to have changed, nor to vary."""
    found = noninferiority_test(auc(0.799, 0.8, variance), "max_drop", 0.03)
    binomial = sqrt(0.03 * 0.97 / 50)
    assert found == pytest.approx((norm.cdf(0.029 / sqrt(variance)), norm.cdf(-0.029 / binomial)), abs=1e-12)
    assert binom.cdf(1, 50, 0.03) > 0.5
    assert norm.cdf(-0.029 / binomial) > 0.05


def test_without_a_margin_either_p_value_is_half_of_the_two_sided_one() -> None:
    p_values = noninferiority_test(auc(0.77, 0.8), "max_drop", 0)
    half = (estimate_difference(auc(0.77, 0.8), 0.95).p_value or 0) / 2
    assert p_values == pytest.approx((half, 1 - half), rel=1e-12)


@pytest.mark.parametrize("n", [10, 150, 1000])
def test_rows_that_are_placed_alike_keep_a_margin_if_they_are_enough(n: int) -> None:
    alike = auc(0.8, 0.8, variance=0.0, n=n)
    assert noninferiority_test(alike, "max_drop", 0.02) == pytest.approx((1, binom.pmf(0, n, 0.02)), abs=1e-12)
    assert noninferiority_test(alike, "max_drop", 0) == (1, 1)
    gaps = alike._replace(intervals=((0.7, 0.9), (0.7, 0.9)))
    assert noninferiority_test(gaps, "max_rise", 0.02) == noninferiority_test(alike, "max_drop", 0.02)


@pytest.mark.parametrize(
    ("kind", "values", "bound"),
    [
        ("auc", (0.8, 0.85), "max_drop"),
        ("auc", (0.95, 0.97), "max_drop"),
        ("gap", (0.2, 0.15), "max_rise"),
        ("gap", (0.2, -0.15), "max_rise"),
        ("gap", (0.08, 0.02), "max_rise"),
    ],
)
def test_a_model_that_is_worse_by_just_the_margin_seldom_seems_otherwise(
    kind: str, values: tuple[float, float], bound: str
) -> None:
    setting = Setting(kind=kind, values=values, rows=(200, 200), correlation=0.6)
    margin = abs(abs(values[0]) - abs(values[1]))
    drawn = estimate(setting, 600, np.random.default_rng(4))
    p_values = np.array([noninferiority_test(paired, bound, margin) for paired in drawn])
    assert (p_values < 0.05).mean(axis=0).max() < 0.08  # 0.05 and three standard errors
