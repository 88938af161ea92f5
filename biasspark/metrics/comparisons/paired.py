"""Two AUCs that are not independent, of two models or nights, and the variances of what is made of both. No Spark."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import fsum
from typing import NamedTuple

from biasspark.metrics.delong import delong_part
from biasspark.ranking.paired_blocks import Products

_CONTRASTS = ((1, 0), (0, 1), (1, -1), (1, 1))
"""How much of either AUC there is in what has a variance."""


LEAST_GROUPS_OF_A_CELL = 5
"""With fewer the jackknife makes no variance: a cell's part in it would be no estimate."""


class PairedAucs(NamedTuple):
    """Two AUCs of one pair of cells: both models' over the rows that both score, or those of two nights.

    Attributes
    ----------
    n_low, n_high
        Rows of the cells, of two nights the fewer.
    auc, baseline_auc
        0 to 1; None where a cell is empty.
    auc_variance, baseline_variance, difference_variance, sum_variance
        Of either AUC, of their difference and of their sum. None where a cell has fewer than two rows.
    n_groups
        How many groups have a row in any of the cells, of which the jackknife made the variances; None by DeLong.
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


PAIRED_AUCS = ", ".join(f"{name} {'BIGINT' if name.startswith('n_') else 'DOUBLE'}" for name in PairedAucs._fields)
"""Its fields, as Spark SQL declares them."""


def delong_aucs(low: Products, high: Products) -> PairedAucs:
    """Return both AUCs of two cells, and DeLong's variances.

    Over both cells, of m rows that are placed among n, the variance of A ± B is the sum of

        (S_AA + S_BB ± 2·S_AB) / m

    with S the sample variances and covariance of placements as shares of n (DeLong, DeLong and Clarke-Pearson 1988).

    Parameters
    ----------
    low, high : Products
        The rows of either cell, placed among those of the other by the model and by the baseline; ties count half.

    Returns
    -------
    PairedAucs
        Each number is rounded once from a fraction, so that a variance is 0 only where it is 0, as that of the
        difference of a model and itself.
    """
    if not low.n or not high.n:
        return PairedAucs(low.n, high.n)
    doubled_pairs = 2 * low.n * high.n
    aucs = (high.first / doubled_pairs, high.second / doubled_pairs)
    if min(low.n, high.n) < 2:
        return PairedAucs(low.n, high.n, *aucs)
    variances = (_variance_of_mean(low, high.n, *own) + _variance_of_mean(high, low.n, *own) for own in _CONTRASTS)
    own_variance, baseline_variance, of_difference, of_sum = map(float, variances)
    return PairedAucs(low.n, high.n, *aucs, own_variance, baseline_variance, of_difference, of_sum)


def _variance_of_mean(rows: Products, n_among: int, x: int, y: int) -> Fraction:
    """Return the variance of the mean of x·(placement by the model) + y·(placement by the baseline), as shares.

    It is DeLong's part of these rows, of sums and squares that are linear in both placements.
    """
    total = x * rows.first + y * rows.second
    squares = x * x * rows.first_squares + y * y * rows.second_squares + 2 * x * y * rows.products
    return delong_part(rows.n, n_among, total, squares)


class LeftOut(NamedTuple):
    """The pairs of two cells, and what is left of them without each group of rows.

    Attributes
    ----------
    n_low, n_high
        Rows of the cells.
    u_doubled
        Twice U.
    n_low_left, n_high_left, u_doubled_left
        The same without each group.
    """

    n_low: int
    n_high: int
    u_doubled: int
    n_low_left: Sequence[int]
    n_high_left: Sequence[int]
    u_doubled_left: Sequence[int]

    @property
    def doubled_pairs(self) -> int:
        """Twice as many as there are pairs."""
        return 2 * self.n_low * self.n_high

    @property
    def auc(self) -> float:
        """U over the pairs, of which there is at least one."""
        return self.u_doubled / self.doubled_pairs

    @property
    def fewest_groups(self) -> int:
        """How many groups have a row in a cell, of both numbers the lesser."""
        cells = ((self.n_low, self.n_low_left), (self.n_high, self.n_high_left))
        return min(sum(left < n for left in without) for n, without in cells)

    def without(self, group: int) -> LeftOut:
        """Return the pairs that are left without a group; nothing is left out of them."""
        left = (self.n_low_left[group], self.n_high_left[group], self.u_doubled_left[group])
        return LeftOut(*left, (), (), ())


def jackknife_aucs(own: LeftOut, baseline: LeftOut) -> PairedAucs:
    """Return two AUCs of rows in the same groups, and their variances by leaving out one group after another.

    With A_g an AUC without group g, over the G groups that have a row in any of the cells, the variance of what is
    linear in both AUCs, as A - B, is

        (G - 1)/G · Σ (A_g - B_g - mean of A_g - B_g)²

    A group's influence on A - B is the difference of its influences on A and on B. Of rows that both AUCs are of, and
    that are placed alike, it is nothing; rows of one of them alone come independent of the other, so that the
    covariance is 0 in expectation. So this holds whichever rows both share, all, some or none. It is an estimate of G
    numbers, with a relative standard error of some sqrt(2/(G - 1)). Where nearly all of it comes of the few groups of
    one cell, as of an identity that three authors mention, it is less sure than G tells.

    Parameters
    ----------
    own, baseline : LeftOut
        Of two models, or of two nights, whose rows are put into groups alike.

    Returns
    -------
    PairedAucs
        With the lesser number of rows of either cell. Without variances where fewer than five groups have rows in a
        cell, or where the groups differ in number. What is linear in both AUCs is rounded once from a fraction without
        each group, so that its variance is 0 only where every group leaves the same.
    """
    n = min(own.n_low, baseline.n_low), min(own.n_high, baseline.n_high)
    aucs = (own.auc, baseline.auc) if all(n) else (None, None)
    if len(own.u_doubled_left) != len(baseline.u_doubled_left):
        return PairedAucs(*n, *aucs)
    both = [(own.without(group), baseline.without(group)) for group in range(len(own.u_doubled_left))]
    touched = [left for left in both if any(a[:2] != b[:2] for a, b in zip(left, (own, baseline), strict=True))]
    unknown = PairedAucs(*n, *aucs)._replace(n_groups=len(touched))
    if min(own.fewest_groups, baseline.fewest_groups) < LEAST_GROUPS_OF_A_CELL:
        return unknown
    variances = (_vary([_combine(x, mine, y, theirs) for mine, theirs in touched]) for x, y in _CONTRASTS)
    own_variance, baseline_variance, of_difference, of_sum = variances
    return unknown._replace(
        auc_variance=own_variance,
        baseline_variance=baseline_variance,
        difference_variance=of_difference,
        sum_variance=of_sum,
    )


def _combine(x: int, own: LeftOut, y: int, baseline: LeftOut) -> float:
    """Return x·A + y·B, rounded once: Python divides integers of any size so."""
    pairs, baseline_pairs = own.doubled_pairs, baseline.doubled_pairs
    return (x * own.u_doubled * baseline_pairs + y * baseline.u_doubled * pairs) / (pairs * baseline_pairs)


def _vary(replicates: Sequence[float]) -> float:
    """Return the jackknife's variance; 0 where all replicates are the same, whatever their mean is rounded to."""
    mean = fsum(replicates) / len(replicates)
    if min(replicates) == max(replicates):
        return 0.0
    return (len(replicates) - 1) / len(replicates) * fsum((one - mean) ** 2 for one in replicates)
