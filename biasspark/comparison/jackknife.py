"""Two AUCs over rows in the same groups, and their variances by the delete-a-group jackknife."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum
from typing import Any, NamedTuple

from biasspark.comparison.paired import CONTRASTS, PairedAucs

LEAST_GROUPS_OF_A_CELL = 5
"""With fewer groups there is no jackknife variance: the contribution of the cell could not be estimated."""


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
        """Whether a group has a row in either cell."""
        return self.without[group][:2] != self.whole[:2]

    @property
    def fewest_groups(self) -> int:
        """The number of groups with a row in a cell, the smaller of the two cells' numbers."""
        return min(sum(left[cell] < self.whole[cell] for left in self.without) for cell in (0, 1))


def pair_sides(row: Mapping[str, Any], baseline: Mapping[str, Any]) -> PairedAucs:
    """Return `jackknife_aucs` of a pair of cells, from two rows of ``jackknife_statistics``."""
    return jackknife_aucs(Replicates.read(row), Replicates.read(baseline))


def jackknife_aucs(model: Replicates, baseline: Replicates) -> PairedAucs:
    """Return two AUCs over rows in the same groups, and their variances by leaving out each group in turn.

    With A_g an AUC without group g, over the G groups that have a row in any of the cells, the variance of a linear
    combination of both AUCs, such as A - B, is

        (G - 1)/G · Σ (A_g - B_g - mean of A_g - B_g)²

    (Kott, Journal of Official Statistics 2001, 17:521). A group's influence on A - B is the difference of its
    influences on A and on B. Rows that both AUCs share and place alike have none; rows of only one of them are
    independent of the other, so their covariance is 0 in expectation. So this holds whether the AUCs share all, some or
    no rows. It is an estimate from G numbers, with a relative standard error of some sqrt(2/(G - 1)). If nearly all of
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
    """Return x·A + y·B, rounded once: Python's division of big integers rounds correctly."""
    pairs, baseline_pairs = model.doubled_pairs, baseline.doubled_pairs
    return (x * model.two_u * baseline_pairs + y * baseline.two_u * pairs) / (pairs * baseline_pairs)


def _variance(replicates: Sequence[float]) -> float:
    """Return the jackknife variance; 0 if all replicates are equal, however their mean is rounded."""
    if min(replicates) == max(replicates):
        return 0.0
    mean = fsum(replicates) / len(replicates)
    return (len(replicates) - 1) / len(replicates) * fsum((one - mean) ** 2 for one in replicates)
