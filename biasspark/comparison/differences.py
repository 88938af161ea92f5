"""Two values of a metric that are not independent, of two models or in two runs: tests of their difference.

The variances of the difference and the sum of two AUCs are those of paired DeLong, or of the delete-a-group jackknife
where rows are in the same groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product, starmap
from math import fsum, sqrt
from typing import Any, NamedTuple

from biasspark.distributions import NORMAL, student_quantile, student_tail
from biasspark.metrics.delong import delong_part
from biasspark.metrics.multiple_testing import clip
from biasspark.ranking.kernels.paired_products import Products

CONTRASTS = ((1, 0), (0, 1), (1, -1), (1, 1))
"""The factors of both AUCs in each combination that has a variance: either AUC, their difference and their sum."""


class PairedAucs(NamedTuple):
    """Two AUCs of one pair of cells: of both models over the rows that both score, or of two runs.

    It has the rows of the cells, of two runs the fewer; the AUCs, in [0, 1], None where a cell is empty; the variances
    of either AUC, of their difference and of their sum, None where a cell has fewer than two rows; and how many groups
    have a row in any of the cells, of which the jackknife made the variances, None by DeLong.
    """

    n_low: int
    n_high: int
    auc: float | None = None
    baseline_auc: float | None = None
    auc_variance: float | None = None
    baseline_variance: float | None = None
    difference_variance: float | None = None
    sum_variance: float | None = None
    n_groups: int | None = None


def delong_aucs(low: Products, high: Products) -> PairedAucs:
    """Return both AUCs of two cells, and DeLong's variances.

    Over both cells, of m rows that are placed among n, the variance of A ± B is the sum of

        (S_AA + S_BB ± 2·S_AB) / m

    with S the sample variances and covariance of placements as shares of n (DeLong, DeLong and Clarke-Pearson 1988).

    Given are the rows of either cell, placed among those of the other by the model and by the baseline; ties count
    half. Each number is rounded once from a fraction, so that a variance is 0 only where it is 0, as that of the
    difference of a model and itself.
    """
    if not low.n or not high.n:
        return PairedAucs(low.n, high.n)
    doubled_pairs = 2 * low.n * high.n
    aucs = (high.first / doubled_pairs, high.second / doubled_pairs)
    if min(low.n, high.n) < 2:
        return PairedAucs(low.n, high.n, *aucs)
    first, second, difference, total = (
        float(_part(low, high.n, x, y) + _part(high, low.n, x, y)) for x, y in CONTRASTS
    )
    return PairedAucs(low.n, high.n, *aucs, first, second, difference, total)


def _part(rows: Products, n_opposite: int, x: int, y: int) -> Fraction:
    """Return the part of one cell in the variance of x·A + y·B: DeLong's, of sums linear in both placements."""
    total = x * rows.first + y * rows.second
    squares = x * x * rows.first_squares + y * y * rows.second_squares + 2 * x * y * rows.products
    return delong_part(rows.n, n_opposite, total, squares)


# ---- the delete-a-group jackknife


LEAST_GROUPS_OF_A_CELL = 5
"""With fewer the jackknife makes no variance: a cell's part in it would be no estimate."""


class PairCounts(NamedTuple):
    """Rows of two cells, and twice U between them."""

    n_low: int
    n_high: int
    two_u: int

    @property
    def doubled_pairs(self) -> int:
        """Twice as many as there are pairs."""
        return 2 * self.n_low * self.n_high


class Replicates(NamedTuple):
    """The counts of a pair of cells, and those that are left without each group of rows."""

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
        """Whether a group has a row in either cell."""
        return self.without[group][:2] != self.whole[:2]

    @property
    def fewest_groups(self) -> int:
        """How many groups have a row in a cell, of both numbers the lesser."""
        return min(sum(left[cell] < self.whole[cell] for left in self.without) for cell in (0, 1))


def pair_sides(row: Mapping[str, Any], baseline: Mapping[str, Any]) -> PairedAucs:
    """Return `jackknife_aucs` of a pair of cells, from two rows of ``jackknife_statistics``."""
    return jackknife_aucs(Replicates.read(row), Replicates.read(baseline))


def jackknife_aucs(model: Replicates, baseline: Replicates) -> PairedAucs:
    """Return two AUCs of rows in the same groups, and their variances by leaving out one group after another.

    With A_g an AUC without group g, over the G groups that have a row in any of the cells, the variance of what is
    linear in both AUCs, as A - B, is

        (G - 1)/G · Σ (A_g - B_g - mean of A_g - B_g)²

    (Kott, Journal of Official Statistics 2001, 17:521). A group's influence on A - B is the difference of its
    influences on A and on B. Of rows that both AUCs are of, and that are placed alike, it is nothing; rows of one of
    them alone come independent of the other, so that the covariance is 0 in expectation. So this holds whichever rows
    both share, all, some or none. It is an estimate of G numbers, with a relative standard error of some
    sqrt(2/(G - 1)). Where nearly all of it comes of the few groups of one cell, as of an identity that three authors
    mention, it is less sure than G tells.

    The result has the lesser number of rows of either cell, and no variances where fewer than five groups have rows in
    a cell, or where the groups differ in number. What is linear in both AUCs is rounded once from a fraction without
    each group, so that its variance is 0 only where every group leaves the same.
    """
    n_low, n_high = (min(sizes) for sizes in zip(model.whole[:2], baseline.whole[:2], strict=True))
    auc, baseline_auc = (model.auc, baseline.auc) if n_low and n_high else (None, None)
    n_groups = len(model.without)
    if n_groups != len(baseline.without):
        return PairedAucs(n_low, n_high, auc, baseline_auc)
    groups = [group for group in range(n_groups) if model.has_rows_of(group) or baseline.has_rows_of(group)]
    if min(model.fewest_groups, baseline.fewest_groups) < LEAST_GROUPS_OF_A_CELL:
        return PairedAucs(n_low, n_high, auc, baseline_auc, n_groups=len(groups))
    first, second, difference, total = (
        _variance([_combine(x, model.without[group], y, baseline.without[group]) for group in groups])
        for x, y in CONTRASTS
    )
    return PairedAucs(n_low, n_high, auc, baseline_auc, first, second, difference, total, len(groups))


def _combine(x: int, model: PairCounts, y: int, baseline: PairCounts) -> float:
    """Return x·A + y·B, rounded once: Python divides integers of any size so."""
    pairs, baseline_pairs = model.doubled_pairs, baseline.doubled_pairs
    return (x * model.two_u * baseline_pairs + y * baseline.two_u * pairs) / (pairs * baseline_pairs)


def _variance(replicates: Sequence[float]) -> float:
    """Return the jackknife's variance; 0 where all replicates are the same, whatever their mean is rounded to."""
    if min(replicates) == max(replicates):
        return 0.0
    mean = fsum(replicates) / len(replicates)
    return (len(replicates) - 1) / len(replicates) * fsum((one - mean) ** 2 for one in replicates)


# ---- tests


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
