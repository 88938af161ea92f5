"""Two values of a metric that are not independent, of two models or in two runs: tests of their difference."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product, starmap
from math import sqrt
from typing import NamedTuple

from biasspark.comparison.paired import PairedAucs
from biasspark.distributions import NORMAL, student_quantile, student_tail
from biasspark.metrics.multiple_testing import clip

LEAST_ROWS = LEAST_GROUPS = 10
"""With fewer rows in a cell, or by the jackknife with fewer groups of rows in both, no verdict is given."""

_ROUNDING = 1e-12
"""Values that differ by less are equal but for rounding."""

Ends = tuple[float | None, float | None]


@dataclass(frozen=True, kw_only=True)
class PairedMetric:
    """One metric of a model and its baseline on the same rows, or of a run and one before.

    It has the rows of its two cells, of two runs the fewer; both values, None where a cell is empty; the variances of
    their difference and sum, None where there is none; of a gap both intervals, None of an AUC; and of how many groups
    of rows the variances were made, None where rows were taken for independent.
    """

    n_low: int
    n_high: int
    value: float | None
    baseline_value: float | None
    difference_variance: float | None
    sum_variance: float | None
    intervals: tuple[Ends, Ends] | None = None
    n_groups: int | None = None

    @classmethod
    def of(cls, aucs: PairedAucs, intervals: tuple[Ends, Ends], is_gap: bool) -> PairedMetric:
        """Return a metric from both AUCs and their intervals, for a gap 1/2 more than it and its own."""

        def less(auc: float | None) -> float | None:
            return None if auc is None else auc - (0.5 if is_gap else 0.0)

        first, second = ((less(low), less(high)) for low, high in intervals)
        return cls(
            n_low=int(aucs.n_low),
            n_high=int(aucs.n_high),
            value=less(aucs.auc),
            baseline_value=less(aucs.baseline_auc),
            difference_variance=aucs.difference_variance,
            sum_variance=aucs.sum_variance,
            intervals=(first, second) if is_gap else None,
            n_groups=None if aucs.n_groups is None else int(aucs.n_groups),
        )

    @property
    def is_gap(self) -> bool:
        """Whether it is a gap, of which the size counts, and not the sign."""
        return self.intervals is not None

    @property
    def freedom(self) -> float:
        """Degrees of freedom of Student's t by which the variances are to be taken: one less than the groups."""
        return NORMAL if self.n_groups is None else self.n_groups - 1

    @property
    def is_enough(self) -> bool:
        """Whether there are not too few rows in a cell, nor groups of rows."""
        few_groups = self.n_groups is not None and self.n_groups < LEAST_GROUPS
        return min(self.n_low, self.n_high) >= LEAST_ROWS and not few_groups


class DifferenceEstimate(NamedTuple):
    """The difference of two values of a metric, its interval and its two-sided p-value.

    The difference is value - baseline_value, in [-1, 1]; of a gap |value| - |baseline_value|, in [-1/2, 1/2], and more
    is worse. None where a value is; the rest is None where the data are insufficient. `one_sided` is whether the
    difference points the same way whatever the signs of the gaps.
    """

    difference: float | None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    one_sided: bool = True


def estimate_difference(paired: PairedMetric, level: float) -> DifferenceEstimate:
    """Return the difference of two models with its interval and p-value, both by Student's t.

    By DeLong that is the normal distribution; by the jackknife it has one degree of freedom less than there are groups.

    The difference of absolute values has a kink where a gap is 0. So of a gap each contrast s·value - t·baseline_value
    is tested whose signs s and t both gaps' intervals allow: the interval is that around all of theirs, and the p-value
    the largest. As neither size is below 0,

        -|baseline_value| <= |value| - |baseline_value| <= |value|

    so the interval ends no further up than the size that the interval of the value allows, and no further down than
    minus the size that that of the baseline allows. What is cut off is true only where one of these misses its gap.

    There is no interval and no p-value where a cell has fewer than 10 rows, where these are of fewer than 10 groups, or
    where a contrast that is not 0 has variance 0. Where difference and variance are both 0 the p-value is 1, and the
    interval a point. The level is the nominal coverage, in (0, 1).
    """
    if paired.value is None or paired.baseline_value is None:
        return DifferenceEstimate(None)
    difference = paired.value - paired.baseline_value
    if paired.is_gap:
        difference = abs(paired.value) - abs(paired.baseline_value)
    contrasts = _contrasts(paired)
    if contrasts is None:
        return DifferenceEstimate(difference)
    t = student_quantile(level, paired.freedom)
    low = min(contrast.difference - t * sqrt(contrast.variance) for contrast in contrasts)
    high = max(contrast.difference + t * sqrt(contrast.variance) for contrast in contrasts)
    largest, largest_baseline = (1.0, 1.0) if paired.intervals is None else starmap(_largest_size, paired.intervals)
    ends = clip((low, high), -largest_baseline, largest)
    p_value = max(_two_sided(contrast, paired.freedom) for contrast in contrasts)
    one_sided = len({contrast.difference > 0 for contrast in contrasts}) == 1
    return DifferenceEstimate(difference, *ends, p_value, one_sided)


def noninferiority_test(
    paired: PairedMetric, bound_kind: str, margin: float, p_size: float | None = None
) -> tuple[float, float] | None:
    """Return how strong the evidence is that a model is worse than its baseline by more than a margin, and that not.

    With r how much worse it is, s the standard error of r and Φ Student's distribution as in `estimate_difference`,
    violation has p = Φ((margin - r)/s), the chance of such an r or a larger one where the truth is the margin.
    Compliance has Φ((r - margin)/s), but below the margin with at least s = sqrt(margin (1 - margin)/n), n being the
    rows of the smaller cell: so large is the standard error where the truth is the margin, and all of it comes of a few
    rows that change sides. Where by chance fewer of them are seen, or none, r is small, and the s of the rows seen is
    too small.

    Of a gap each contrast is tested that both gaps' intervals allow, as in `estimate_difference`, and either p-value
    is the largest.

    Of a gap `p_size` is the p-value of compliance of its size alone: a size below the margin did not rise by more. It
    stands for contrasts of two signs, whose variance is that of a sum and large where both gaps may be 0.

    Where both place all rows alike, violation has p = 1. To be worse by the margin they must differ on that share of
    pairs of rows, or more. That n pairs without a common row show none of it has the chance (1 - margin)^n, which is
    the p-value of compliance.

    Parameters
    ----------
    bound_kind : {"max_drop", "max_rise"}
        How much an AUC is lower, or how much further a gap is from 0; the margin is 0 or more.

    Returns
    -------
    (violation, compliance) or None
        In [0, 1], low is strong evidence. None where `estimate_difference` has no p-value.
    """
    contrasts = _contrasts(paired)
    if contrasts is None:
        return None
    worse, n = -1.0 if bound_kind == "max_drop" else 1.0, min(paired.n_low, paired.n_high)
    violations, compliances = [], []
    for contrast in contrasts:
        excess = worse * contrast.difference - margin
        violation, compliance = _test_margin(excess, contrast.variance, margin, n, paired.freedom)
        violations.append(violation)
        compliances.append(compliance if contrast.one_sign or p_size is None else p_size)
    return max(violations), max(compliances)


def _test_margin(excess: float, variance: float, margin: float, n: int, freedom: float) -> tuple[float, float]:
    """Return the p-values of violation and of compliance, given how far a contrast is beyond the margin."""
    if not variance:
        return 1.0, (1 - margin) ** n
    at_margin = margin * (1 - margin) / n if excess < 0 else 0.0
    return (
        student_tail(excess / sqrt(variance), freedom),
        student_tail(-excess / sqrt(max(variance, at_margin)), freedom),
    )


class _Contrast(NamedTuple):
    """A difference that the signs of two gaps allow, its variance, and whether both gaps have one sign in it."""

    difference: float
    variance: float
    one_sign: bool = True


def _contrasts(paired: PairedMetric) -> list[_Contrast] | None:
    """Return the contrasts of both values; None where the data are insufficient."""
    value, baseline = paired.value, paired.baseline_value
    if value is None or baseline is None or not paired.is_enough:
        return None
    signs: Iterable[tuple[int, int]] = [(1, 1)]
    alike = value == baseline and paired.difference_variance == 0
    if paired.intervals is not None and not alike:  # alike row by row, two gaps have the same sign
        gap, baseline_gap = paired.intervals
        signs = product(_allowed_signs(*gap), _allowed_signs(*baseline_gap))
    contrasts = []
    for s, t in signs:
        variance = paired.difference_variance if s == t else paired.sum_variance
        difference = s * value - t * baseline + 0.0  # no -0.0
        if variance is None or (variance == 0 and abs(difference) > _ROUNDING):
            return None
        contrasts.append(_Contrast(difference, variance, s == t))
    return contrasts


def _allowed_signs(low: float | None, high: float | None) -> tuple[int, ...]:
    if low is None or high is None or low <= 0 <= high:
        return (1, -1)
    return (1,) if low > 0 else (-1,)


def _largest_size(low: float | None, high: float | None) -> float:
    """Return how far from 0 a gap may be by its interval; without one, as far as any."""
    return 0.5 if low is None or high is None else max(-low, high)


def _two_sided(contrast: _Contrast, freedom: float) -> float:
    """Return how likely a contrast is at least as far from 0 where the true one is 0."""
    return 2 * student_tail(abs(contrast.difference) / sqrt(contrast.variance), freedom) if contrast.variance else 1.0
