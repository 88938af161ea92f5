"""AUC and DeLong's variance of every pair of cells, from the integers that a ranking counts.

Every metric of the suite is one of these AUCs (`biasspark.metrics.suite`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from biasspark.arrays import BigInts, Flags, Floats, Ints, Strings, divide
from biasspark.columns import CELL_PAIRS, FOUR_CELLS, NEGATIVE, POSITIVE
from biasspark.metrics.intervals import delong_variance
from biasspark.ranking.counts import Counts, Groups
from biasspark.ranking.kernels.pair_sums import BACKGROUND_PAIR, HIGH_CELLS, LOW_CELLS
from biasspark.tables.schemas import U_STATISTICS, Masked, to_table

OVERALL_PAIR = BACKGROUND_PAIR
"""The pair that holds the AUC of a whole slice: ``(overall)`` has only a background."""


@dataclass(frozen=True)
class UStatistics:
    """U statistics of the six pairs of cells of every group: arrays of shape (6, groups).

    `auc` is in [0, 1], NaN with a `reason`: the empty cell, ``below_minimum_rows`` or ``withheld``. `variance` is
    DeLong's, NaN if a cell has fewer than two rows. `suppressed`, of shape (groups,), are groups that are too small for
    their numbers to be published.
    """

    counts: Counts
    auc: Floats
    variance: Floats
    reason: Strings
    suppressed: Flags

    @property
    def groups(self) -> Groups:
        """The (model, slice, identity) of each entry of the last axis."""
        return self.counts.groups

    @property
    def n_low(self) -> Ints:
        """Rows of the low cell of each pair, shape (6, groups)."""
        sizes: Ints = self.counts.cells[LOW_CELLS]
        return sizes

    @property
    def n_high(self) -> Ints:
        """Rows of the high cell of each pair, shape (6, groups)."""
        sizes: Ints = self.counts.cells[HIGH_CELLS]
        return sizes

    def without(self, hidden: Flags, reason: str) -> UStatistics:
        """Return the statistics without the AUCs and variances of the `hidden` pairs, for the given reason."""
        return replace(
            self,
            auc=np.where(hidden, np.nan, self.auc),
            variance=np.where(hidden, np.nan, self.variance),
            reason=np.where(hidden, reason, self.reason),
        )

    def table(self) -> pa.Table:
        """Return the table ``u_statistics``: six rows per identity, and one for each whole slice."""
        groups, is_overall = self.groups, self.groups.is_overall
        group, pair = np.nonzero(~is_overall[:, None] | (np.arange(len(CELL_PAIRS)) == OVERALL_PAIR))
        cells = np.array(CELL_PAIRS, object)
        names = np.where(is_overall[group, None], np.array([(NEGATIVE, POSITIVE)], object), cells[pair])
        hidden = self.suppressed[group]
        two_u, sum_sq_low, sum_sq_high = (self.counts.sums[pair, index, group] for index in range(3))
        return to_table(
            U_STATISTICS,
            **{name: values[group] for name, values in groups._asdict().items()},
            low_cell=names[:, 0],
            high_cell=names[:, 1],
            n_low=Masked(self.n_low[pair, group], hidden),
            n_high=Masked(self.n_high[pair, group], hidden),
            u_doubled=Masked(two_u, hidden),
            low_square_sum=Masked(sum_sq_low, hidden),
            high_square_sum=Masked(sum_sq_high, hidden),
            auc=self.auc[pair, group],
            auc_variance=self.variance[pair, group],
            reason=self.reason[pair, group],
        )


def u_statistics(counts: Counts) -> UStatistics:
    """Return AUC and variance of every pair of cells. If two cells are empty, `reason` names that of the subgroup."""
    n_low, n_high = (counts.cells[cells].astype(object) for cells in (LOW_CELLS, HIGH_CELLS))
    two_u, sum_sq_low, sum_sq_high = (counts.sums[:, index] for index in range(3))
    auc = aucs_of_counts(two_u, n_low, n_high)
    variance = delong_variance(n_low, n_high, two_u, sum_sq_low, sum_sq_high)
    reason = np.stack([name_empty_cells(counts, cells) for cells in CELL_PAIRS])
    return UStatistics(counts, auc, variance, reason, np.zeros(auc.shape[1], bool))


def aucs_of_counts(two_u: BigInts, n_low: BigInts, n_high: BigInts) -> Floats:
    """Return 2U / (2·n·m), rounded once if numerator and denominator are exact doubles; NaN for an empty cell."""
    return divide(two_u.astype(np.float64), (2 * n_low * n_high).astype(np.float64))


def identities_of_slices(groups: Groups) -> Iterator[tuple[int, Ints]]:
    """Yield the group of each (model, slice), and the groups of its identities by name, without crossed pairs.

    Sums and extremes over identities follow the order of names, so they do not depend on the order in a configuration.
    """
    starts = np.flatnonzero(groups.is_overall).tolist()
    for start, end in pairwise([*starts, len(groups.identity)]):
        members = np.flatnonzero(~groups.crossed[start + 1 : end]) + start + 1
        yield start, members[np.argsort(groups.identity[members], kind="stable")]


def name_empty_cells(counts: Counts, cells: Sequence[str] = FOUR_CELLS) -> Strings:
    """Return for every group the first of its empty cells, the subgroup's first, as a reason; None if none is empty."""
    reasons = np.full(counts.cells.shape[1], None, object)
    for cell, size in reversed(list(zip(FOUR_CELLS, counts.cells, strict=True))):
        if cell in cells:
            names = np.where(counts.groups.is_overall, f"no_{cell.partition('_')[2]}s", f"no_{cell}s")
            reasons[size == 0] = names[size == 0]
    return reasons
