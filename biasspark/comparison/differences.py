"""Tests of the difference between two dependent values of a metric, of two models or in two runs.

The variances of the difference and the sum of two AUCs are estimated by paired DeLong, or by the delete-a-group
jackknife where rows are in the same groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import product
from math import fsum, sqrt
from typing import Any, NamedTuple

from biasspark.distributions import NORMAL, student_quantile, student_tail
from biasspark.metrics.intervals import delong_part
from biasspark.ranking.kernels.paired_products import Products

CONTRASTS = {"variance": (1, 0), "baseline_variance": (0, 1), "difference_variance": (1, -1), "sum_variance": (1, 1)}
"""Coefficients of both AUCs in each combination with a variance."""


Ends = tuple[float | None, float | None]


class PairedMetric(NamedTuple):
    """One metric of a model and its baseline on the rows that both score, or of a run and an earlier one.

    It has the rows of its two cells, for two runs the smaller number; both values, None if a cell is empty; the
    variances of each value, of their difference and of their sum, None if undefined; the number of groups of rows from
    which the variances were estimated, None if rows were taken as independent; and both intervals of a gap, None for an
    AUC.
    """

    n_low: int
    n_high: int
    value: float | None = None
    baseline_value: float | None = None
    variance: float | None = None
    baseline_variance: float | None = None
    difference_variance: float | None = None
    sum_variance: float | None = None
    n_groups: int | None = None
    intervals: tuple[Ends, Ends] | None = None

    def as_gap(self, interval: Ends, baseline_interval: Ends) -> PairedMetric:
        """Return the gaps for these AUCs, 1/2 less, given the intervals of both gaps."""
        value, baseline = (None if auc is None else auc - 0.5 for auc in (self.value, self.baseline_value))
        return self._replace(value=value, baseline_value=baseline, intervals=(interval, baseline_interval))

    @property
    def is_gap(self) -> bool:
        """Whether it is a gap, whose size matters and not its sign."""
        return self.intervals is not None

    @property
    def freedom(self) -> float:
        """Degrees of freedom of Student's t for these variances: one less than the groups."""
        return NORMAL if self.n_groups is None else self.n_groups - 1


def delong_aucs(low: Products, high: Products) -> PairedMetric:
    """Return both AUCs of two cells, and DeLong's variances.

    The variance of A ± B is the sum over both cells, each of m rows placed among n, of

        (S_AA + S_BB ± 2·S_AB) / m

    with S the sample variances and covariance of placements as shares of n (DeLong, DeLong and Clarke-Pearson 1988).

    `low` and `high` are the rows of each cell, placed among those of the other by the model and by the baseline; ties
    count half. Each number is rounded once from a fraction, so a variance is 0 only if the exact one is, as for the
    difference of a model and itself.
    """
    if not low.n or not high.n:
        return PairedMetric(low.n, high.n)
    doubled_pairs = 2 * low.n * high.n
    aucs = (high.first / doubled_pairs, high.second / doubled_pairs)
    if min(low.n, high.n) < 2:
        return PairedMetric(low.n, high.n, *aucs)
    variances: dict[str, Any] = {
        name: float(_part(low, high.n, x, y) + _part(high, low.n, x, y)) for name, (x, y) in CONTRASTS.items()
    }
    return PairedMetric(low.n, high.n, *aucs, **variances)


def _part(rows: Products, n_opposite: int, x: int, y: int) -> Fraction:
    """Return one cell's part of DeLong's variance of x·A + y·B, from sums linear in both placements."""
    total = x * rows.first + y * rows.second
    squares = x * x * rows.first_squares + y * y * rows.second_squares + 2 * x * y * rows.products
    return delong_part(rows.n, n_opposite, total, squares)


# ---- the delete-a-group jackknife


MIN_GROUPS_OF_A_CELL = 5
"""With fewer groups, the contribution of a cell cannot be estimated, so there is no jackknife variance."""


class PairCounts(NamedTuple):
    """Rows of two cells, and twice U between them."""

    n_low: int
    n_high: int
    two_u: int

    @property
    def doubled_pairs(self) -> int:
        """Twice the number of pairs."""
        return 2 * self.n_low * self.n_high


class Replicates(NamedTuple):
    """The counts of a pair of cells, and the counts without each group of rows."""

    whole: PairCounts
    without: Sequence[PairCounts]

    @classmethod
    def read(cls, row: Mapping[str, Any]) -> Replicates:
        """Return the replicates in a row of ``jackknife_statistics``."""
        names = ("n_low", "n_high", "u_doubled")
        left = zip(*(map(int, row[f"{name}_left"]) for name in names), strict=True)
        return cls(PairCounts(*(int(row[name]) for name in names)), [PairCounts(*counts) for counts in left])

    @property
    def auc(self) -> float:
        """U over the pairs, of which there is at least one."""
        return self.whole.two_u / self.whole.doubled_pairs

    def has_rows_of(self, group: int) -> bool:
        """Return whether a group has a row in either cell."""
        return self.without[group][:2] != self.whole[:2]

    @property
    def fewest_groups(self) -> int:
        """The number of groups with a row in a cell, the smaller of the two cells' numbers."""
        return min(sum(left[cell] < self.whole[cell] for left in self.without) for cell in (0, 1))


def jackknife_aucs(model: Replicates, baseline: Replicates) -> PairedMetric:
    """Return two AUCs over rows in the same groups, and their variances by leaving out each group in turn.

    With A_g an AUC without group g, over the G groups that have a row in any of the cells, the variance of a linear
    combination of both AUCs, such as A - B, is

        (G - 1)/G · Σ (A_g - B_g - mean of A_g - B_g)²

    (Kott, Journal of Official Statistics 2001, 17:521). The influence of a group on A - B is the difference of its
    influences on A and on B. Rows that both AUCs share and place alike have none; rows of only one of them are
    independent of the other, so their covariance is 0 in expectation. So this holds whether the AUCs share all, some or
    no rows. It is an estimate from G numbers, with a relative standard error of about sqrt(2/(G - 1)). If nearly all of
    it comes from the few groups of one cell, as for an identity that only three authors mention, it is less certain
    than G suggests.

    The result has the smaller number of rows of each cell, and no variances if fewer than five groups have rows in a
    cell, or if the numbers of groups differ. Each replicate of a linear combination is rounded once from a fraction, so
    its variance is 0 only if all replicates are equal.
    """
    n_low, n_high = (min(sizes) for sizes in zip(model.whole[:2], baseline.whole[:2], strict=True))
    auc, baseline_auc = (model.auc, baseline.auc) if n_low and n_high else (None, None)
    n_groups = len(model.without)
    if n_groups != len(baseline.without):
        return PairedMetric(n_low, n_high, auc, baseline_auc)
    groups = [group for group in range(n_groups) if model.has_rows_of(group) or baseline.has_rows_of(group)]
    if min(model.fewest_groups, baseline.fewest_groups) < MIN_GROUPS_OF_A_CELL:
        return PairedMetric(n_low, n_high, auc, baseline_auc, n_groups=len(groups))
    variances: dict[str, Any] = {
        name: _variance([_combine(x, model.without[group], y, baseline.without[group]) for group in groups])
        for name, (x, y) in CONTRASTS.items()
    }
    return PairedMetric(n_low, n_high, auc, baseline_auc, n_groups=len(groups), **variances)


def _combine(x: int, model: PairCounts, y: int, baseline: PairCounts) -> float:
    """Return x·A + y·B, rounded once: Python's division of big integers rounds correctly."""
    pairs, baseline_pairs = model.doubled_pairs, baseline.doubled_pairs
    return (x * model.two_u * baseline_pairs + y * baseline.two_u * pairs) / (pairs * baseline_pairs)


def _variance(replicates: Sequence[float]) -> float:
    """Return the jackknife variance; 0 if all replicates are equal, however their mean is rounded."""
    if min(replicates) == max(replicates):
        return 0.0
    mean = fsum(replicates) / len(replicates)
    return (len(replicates) - 1) / len(replicates) * fsum((replicate - mean) ** 2 for replicate in replicates)


# ---- tests


MIN_ROWS = MIN_GROUPS = 10
"""The fewest rows in a cell, and for the jackknife the fewest groups of rows, that allow a verdict."""

_ROUNDING = 1e-12
"""Smaller differences are rounding errors."""


class DifferenceEstimate(NamedTuple):
    """The difference of two values of a metric, its interval and its two-sided p-value.

    The difference is value - baseline_value, in [-1, 1]; for a gap |value| - |baseline_value|, in [-1/2, 1/2], where
    more is worse. It is None if a value is; the rest is None if the data are insufficient. `one_sided` says whether
    the difference has the same sign for all allowed signs of the gaps.
    """

    difference: float | None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    one_sided: bool = True


def estimate_difference(paired: PairedMetric, level: float) -> DifferenceEstimate:
    """Return the difference of two models with its interval and its two-sided p-value, both by Student's t.

    With DeLong's variance, t has infinitely many degrees of freedom, which is the normal distribution; with the
    jackknife it has one less than there are groups.

    The difference of absolute values has a kink where a gap is 0. So for a gap, each contrast s·value -
    t·baseline_value is tested whose signs s and t the intervals of both gaps allow. The interval is the hull of the
    intervals of all contrasts, and the p-value is the largest. As no size is below 0,

        -|baseline_value| <= |value| - |baseline_value| <= |value|

    so the interval is clipped above at the largest size in the value's interval, and below at minus the largest size in
    the baseline's interval. This excludes the true difference only if one of these intervals misses its gap.

    There is no interval and no p-value if a cell has fewer than 10 rows, if these are in fewer than 10 groups, or if a
    contrast that is not 0 has variance 0. If difference and variance are both 0, the p-value is 1 and the interval is a
    point. The level is the nominal coverage, in (0, 1).
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
    largest = largest_baseline = 1.0
    if paired.intervals is not None:
        # The largest size of each gap in its interval, or without one the largest possible.
        largest, largest_baseline = (
            0.5 if least is None or most is None else max(-least, most) for least, most in paired.intervals
        )
    p_value = max(
        2 * student_tail(abs(contrast.difference) / sqrt(contrast.variance), paired.freedom)
        if contrast.variance
        else 1.0
        for contrast in contrasts
    )
    one_sided = len({contrast.difference > 0 for contrast in contrasts}) == 1
    return DifferenceEstimate(difference, max(low, -largest_baseline), min(high, largest), p_value, one_sided)


def noninferiority_test(
    paired: PairedMetric, bound_kind: str, margin: float, p_size: float | None = None
) -> tuple[float, float] | None:
    """Test whether a model is worse than its baseline by more than a margin, and whether it is not.

    These are two one-sided tests of the true value of r, by how much the model is worse. With s the standard error of r
    and Φ the distribution function of Student's t as in `estimate_difference`:

    violation
        Rejects "at most the margin": p = Φ((margin - r)/s), the probability of r or more if the true value is the
        margin.
    compliance (non-inferiority)
        Rejects "at least the margin": p = Φ((r - margin)/s), the probability of r or less. If r is below the margin, s
        is at least sqrt(margin (1 - margin)/n), with n the rows of the smaller cell: the standard error if the true
        value is the margin and stems from a few rows that change sides. If by chance few or none of these are in the
        data, r is small, and the estimated s is too small.

    For a gap, each contrast that the intervals of both gaps allow is tested, as in `estimate_difference`. A claim must
    hold for all of them, so each p-value is the largest. If the size of the gap itself is shown to be below the margin,
    it did not rise by more. So `p_size`, the p-value of compliance of the size alone, replaces those of contrasts with
    two signs, whose variance is that of a sum, and too large if both gaps may be 0.

    If both models place all rows alike, violation has p = 1. To be worse by the margin, they must differ on at least
    this share of all pairs of rows. The probability that n pairs without a common row show no difference is
    (1 - margin)^n, which is the p-value of compliance.

    `bound_kind` is ``max_drop`` if r is the fall of an AUC, ``max_rise`` if it is the rise of the size of a gap; the
    margin is 0 or more. Returns the p-values of violation and compliance, not corrected for the number of tests, or
    None if `estimate_difference` has none.
    """
    contrasts = _contrasts(paired)
    if contrasts is None:
        return None
    worse, n = -1.0 if bound_kind == "max_drop" else 1.0, min(paired.n_low, paired.n_high)
    violations, compliances = [], []
    for contrast in contrasts:
        excess = worse * contrast.difference - margin
        if contrast.variance:
            at_margin = margin * (1 - margin) / n if excess < 0 else 0.0
            violations.append(student_tail(excess / sqrt(contrast.variance), paired.freedom))
            compliance = student_tail(-excess / sqrt(max(contrast.variance, at_margin)), paired.freedom)
        else:
            violations.append(1.0)
            compliance = (1 - margin) ** n
        compliances.append(compliance if contrast.one_sign or p_size is None else p_size)
    return max(violations), max(compliances)


class _Contrast(NamedTuple):
    """A difference for possible signs of two gaps, its variance, and whether both gaps have the same sign in it."""

    difference: float
    variance: float
    one_sign: bool = True


def _contrasts(paired: PairedMetric) -> list[_Contrast] | None:
    """Return the contrasts of both values; None if the data are insufficient."""
    value, baseline = paired.value, paired.baseline_value
    few_groups = paired.n_groups is not None and paired.n_groups < MIN_GROUPS
    if value is None or baseline is None or few_groups or min(paired.n_low, paired.n_high) < MIN_ROWS:
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
