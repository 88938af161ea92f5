"""Two values of a metric that are not independent, by two models or in two nights: what they say of their difference.

No Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import sqrt
from typing import NamedTuple

from biasspark.distributions import NORMAL, student_quantile, student_tail
from biasspark.metrics.comparisons.paired import PairedAucs
from biasspark.metrics.testing import clip

LEAST_ROWS = LEAST_GROUPS = 10
"""With fewer rows in a cell, or by the jackknife with fewer groups of rows in both, no verdict is given."""

_ROUNDED = 1e-12
"""Values that differ by less are equal but for rounding."""

Ends = tuple[float | None, float | None]


@dataclass(frozen=True, kw_only=True)
class Paired:
    """One metric of two models on the same rows, or of two nights.

    Attributes
    ----------
    n_low, n_high
        Rows of its two cells, of two nights the fewer.
    value, baseline_value
        Of the model and of the baseline, or tonight and before; None where a cell is empty.
    difference_variance, sum_variance
        Of value - baseline_value, and of value + baseline_value; None where no variance can be given.
    gaps
        Of a gap the intervals of value and of baseline_value; None of an AUC.
    n_groups
        How many groups of rows the variances were made of; None where rows were taken for independent.
    """

    n_low: int
    n_high: int
    value: float | None
    baseline_value: float | None
    difference_variance: float | None
    sum_variance: float | None
    gaps: tuple[Ends, Ends] | None = None
    n_groups: int | None = None

    @classmethod
    def of(cls, aucs: PairedAucs, intervals: tuple[Ends, Ends], is_gap: bool) -> Paired:
        """Return a metric from both AUCs and their own intervals, for a gap 1/2 more than it and its own."""
        offset = 0.5 if is_gap else 0.0

        def shift(auc: float | None) -> float | None:
            return None if auc is None else auc - offset

        first, second = ((shift(low), shift(high)) for low, high in intervals)
        return cls(
            n_low=int(aucs.n_low),
            n_high=int(aucs.n_high),
            value=shift(aucs.auc),
            baseline_value=shift(aucs.baseline_auc),
            difference_variance=aucs.difference_variance,
            sum_variance=aucs.sum_variance,
            gaps=(first, second) if is_gap else None,
            n_groups=None if aucs.n_groups is None else int(aucs.n_groups),
        )

    @property
    def freedom(self) -> float:
        """Degrees of freedom of Student's t by which the variances are to be taken: one less than the groups."""
        return NORMAL if self.n_groups is None else self.n_groups - 1

    @property
    def is_enough(self) -> bool:
        """Whether there are not too few rows in a cell, nor groups of rows."""
        few_groups = self.n_groups is not None and self.n_groups < LEAST_GROUPS
        return min(self.n_low, self.n_high) >= LEAST_ROWS and not few_groups


class WeighedDifference(NamedTuple):
    """What two models' values of a metric say of their difference.

    Attributes
    ----------
    difference
        value - baseline_value; of a gap |value| - |baseline_value|. None where a value is.
    low, high
        Its interval.
    p_value
        Two-sided, that the difference is 0. As `low` and `high` None where the data are insufficient.
    one_way
        Whether the difference points the same way whatever the signs of the gaps.
    """

    difference: float | None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    one_way: bool = True


def weigh(paired: Paired, level: float) -> WeighedDifference:
    """Return the difference of two models with its interval and p-value, both by Student's t.

    By DeLong that is the normal distribution; by the jackknife it has one degree of freedom less than there are groups.

    The difference of absolute values has a kink where a gap is 0. So of a gap each contrast s·value - t·baseline_value
    is looked at whose signs s and t both gaps' own intervals allow: the interval is that around all of theirs, and the
    p-value the largest. As neither size is below 0,

        -|baseline_value| <= |value| - |baseline_value| <= |value|

    so the interval ends no further up than the size that the own interval of the value allows, and no further down than
    minus the size that that of the baseline allows. What is cut off is true only where one of these misses its gap.

    Returns
    -------
    WeighedDifference
        Without interval and p-value where a cell has fewer than 10 rows, where these are of fewer than 10 groups, or
        where a contrast that is not 0 has variance 0. Where difference and variance are both 0 the p-value is 1, and
        the interval a point.
    """
    if paired.value is None or paired.baseline_value is None:
        return WeighedDifference(None)
    is_gap = paired.gaps is not None
    value, baseline = (abs(own) if is_gap else own for own in (paired.value, paired.baseline_value))
    difference = value - baseline
    contrasts = _list_evident(paired)
    if contrasts is None:
        return WeighedDifference(difference)
    halves = [student_quantile(level, paired.freedom) * sqrt(one.variance) for one in contrasts]
    ends = [(one.difference - half, one.difference + half) for one, half in zip(contrasts, halves, strict=True)]
    low, high = clip(_around(ends), *_range_of_difference(paired))
    p_value = max(_two_sided(one, paired.freedom) for one in contrasts)
    return WeighedDifference(
        difference, low, high, p_value, one_way=len({one.difference > 0 for one in contrasts}) == 1
    )


def weigh_margin(paired: Paired, kind: str, margin: float, alone: float | None = None) -> tuple[float, float] | None:
    """Return how strong the evidence is that a model is worse than its baseline by more than a margin, and that not.

    With r how much worse it is, s its standard error by the paired rows and Φ Student's distribution as in `weigh`,
    violation has p = Φ((margin - r)/s), the chance of such an r or a larger one where the truth is the margin.
    Compliance has Φ((r - margin)/s), but below the margin with at least s = sqrt(margin (1 - margin)/n), n being the
    rows of the smaller cell: so large is the standard error where the truth is the margin, and all of it comes of a few
    rows that change sides. Where by chance fewer of them are seen, or none, r is small, and what the rows seen say of s
    smaller.

    Of a gap each contrast is looked at that both gaps' own intervals allow, as in `weigh`, and either p-value is the
    largest.

    Parameters
    ----------
    kind : {"max_drop", "max_rise"}
        How much an AUC is lower, or how much further a gap is from 0.
    margin : float
        0 or more.
    alone : float, optional
        Of a gap the p-value of compliance of its size by itself: a size below the margin did not rise by more. It
        stands for contrasts of two signs, whose variance is that of a sum and large where both gaps may be 0.

    Returns
    -------
    (violation, compliance) or None
        In [0, 1], low is strong evidence. None where `weigh` has no p-value. Where both place all rows alike, violation
        has p = 1. To be worse by the margin they must differ on that share of pairs of rows, or more. That n pairs
        without a common row show none of it has the chance (1 - margin)^n, which is the p-value of compliance.
    """
    contrasts = _list_evident(paired)
    if contrasts is None:
        return None
    worse, n = -1.0 if kind == "max_drop" else 1.0, min(paired.n_low, paired.n_high)
    found = [
        _weigh_contrast(worse * one.difference - margin, one.variance, margin, n, paired.freedom) for one in contrasts
    ]
    violations, compliances = zip(*found, strict=True)
    if alone is not None:
        compliances = tuple(p if one.one_sign else alone for one, p in zip(contrasts, compliances, strict=True))
    return max(violations), max(compliances)


def _weigh_contrast(excess: float, variance: float, margin: float, n: int, freedom: float) -> tuple[float, float]:
    """Return the p-values of violation and of compliance, of how far a contrast is beyond the margin."""
    if not variance:
        return 1.0, (1 - margin) ** n
    of_few_rows = margin * (1 - margin) / n if excess < 0 else 0.0
    against, in_favour = excess / sqrt(variance), -excess / sqrt(max(variance, of_few_rows))
    return student_tail(against, freedom), student_tail(in_favour, freedom)


class _Contrast(NamedTuple):
    """A difference that may be the true one's estimate, its variance, and whether both gaps have one sign in it."""

    difference: float
    variance: float
    one_sign: bool = True


def _list_evident(paired: Paired) -> list[_Contrast] | None:
    """Return the contrasts with their variances; None where the data are insufficient."""
    if paired.value is None or paired.baseline_value is None or not paired.is_enough:
        return None
    contrasts = _list_contrasts(paired.value, paired.baseline_value, paired)
    known = [
        _Contrast(one, variance, one_sign)
        for one, variance, one_sign in contrasts
        if variance or (variance == 0 and abs(one) <= _ROUNDED)
    ]
    return known if len(known) == len(contrasts) else None


def _list_contrasts(value: float, baseline: float, paired: Paired) -> list[tuple[float, float | None, bool]]:
    """Return the fields of every `_Contrast`; its variance may be unknown."""
    same = (value - baseline, paired.difference_variance, True)
    if paired.gaps is None or same[:2] == (0.0, 0.0):  # alike row by row, two gaps have the same sign
        return [same]
    variances = {1: paired.difference_variance, -1: paired.sum_variance}
    signs = product(*map(_allowed_signs, paired.gaps))
    return [(s * value - t * baseline + 0.0, variances[s * t], s == t) for s, t in signs]  # no -0.0


def _allowed_signs(ends: Ends) -> tuple[int, ...]:
    low, high = ends
    if low is None or high is None or low <= 0 <= high:
        return (1, -1)
    return (1,) if low > 0 else (-1,)


def _range_of_difference(paired: Paired) -> tuple[float, float]:
    """Return how low and how high the difference can be: of gaps by what their own intervals allow."""
    if paired.gaps is None:
        return -1.0, 1.0
    most, most_of_baseline = (_largest_size(*ends) for ends in paired.gaps)
    return -most_of_baseline, most


def _largest_size(low: float | None, high: float | None) -> float:
    """Return how far from 0 a gap may be by its interval; without one, as far as any."""
    return 0.5 if low is None or high is None else max(-low, high)


def _around(ends: Sequence[Ends]) -> Ends:
    lows, highs = zip(*ends, strict=True)
    return min(lows), max(highs)


def _two_sided(contrast: _Contrast, freedom: float) -> float:
    """Return how likely a contrast is at least as far from 0 where the true one is 0."""
    return 2 * student_tail(abs(contrast.difference) / sqrt(contrast.variance), freedom) if contrast.variance else 1.0
