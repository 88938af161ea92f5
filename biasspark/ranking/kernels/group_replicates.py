"""U statistics with each group of rows left out in turn: the replicates of the delete-a-group jackknife. numpy only.

The pairs of a group g are those with a row of g on either side. With d the doubled placement of a row among
the opposite cell, and d_g its placement among the rows of the opposite cell in the same group,

    2U of the pairs of g = Σ_{high rows in g} d + Σ_{low rows in g} d - Σ_{high rows in g} d_g,

as pairs with g on both sides are in both sums. 2U without the group is 2U less that. Pairs are never formed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from biasspark.arrays import BigInts, Ints
from biasspark.ranking.kernels.blocks import Block, list_entries
from biasspark.ranking.kernels.pair_sums import CELLS_OF_PAIRS, HIGH_CELLS, LOW_CELLS, N_CELLS, N_PAIRS
from biasspark.ranking.kernels.reference_sets import ReferenceSets, is_known
from biasspark.ranking.kernels.sorted_runs import doubled_placement, place_runs, split_by_code


class GroupSums(NamedTuple):
    """Sums by group over a stretch of the score line, for K identities and G groups."""

    n_rows: BigInts
    """Rows of every cell in each group, shape (K, 4, G)."""
    two_u: BigInts
    """Twice U of every pair of cells, shape (K, 6)."""
    two_u_of_group: BigInts
    """The part of `two_u` from pairs with a row of the group on either side, shape (K, 6, G)."""


def no_sums(n_identities: int, n_groups: int) -> GroupSums:
    """Return the sums of no rows."""
    pairs = (n_identities, N_PAIRS)
    shapes = (n_identities, N_CELLS, n_groups), pairs, (*pairs, n_groups)
    return GroupSums(*(np.zeros(shape, object) for shape in shapes))


def sum_groups(grouped: GroupedSets, identities: Sequence[int]) -> GroupSums:
    """Add up the pairs of one range by the groups of their rows, for the identities with the given indices.

    Cost: some 250 ns for each distinct (score, group) and identity, whatever the number of groups.
    """
    sums = no_sums(len(identities), grouped.n_groups)
    for index, identity in enumerate(identities):
        four = grouped.sets.four_cells(identity, grouped)
        by_score = list(map(grouped.by_score, four))
        below = list(map(place_runs, by_score))
        above = [2 * counts.sum() - placed for counts, placed in zip(by_score, below, strict=True)]
        sums.n_rows[index] = np.stack(list(map(grouped.by_group, four)))
        for pair, (low, high) in enumerate(CELLS_OF_PAIRS):
            from_high = grouped.by_group(four[high] * below[low][grouped.score])
            from_low = grouped.by_group(four[low] * above[high][grouped.score])
            within = grouped.by_group(four[high] * grouped.place_in_group(four[low]))
            sums.two_u[index, pair] = int(from_high.sum())
            sums.two_u_of_group[index, pair] = from_high + from_low - within
    return sums


def merge_groups(lower: GroupSums, higher: GroupSums) -> GroupSums:
    """Return the combined sums of two stretches of the score line, one above the other.

    Between the two, every high row of the higher one is above every low row of the lower one. A group touches the pairs
    with its rows on the high side or on the low side, less those with its rows on both.
    """
    low, high = lower.n_rows[:, LOW_CELLS], higher.n_rows[:, HIGH_CELLS]
    every_low, every_high = low.sum(axis=2), high.sum(axis=2)
    across = high * every_low[:, :, None] + low * every_high[:, :, None] - high * low
    return GroupSums(
        lower.n_rows + higher.n_rows,
        lower.two_u + higher.two_u + 2 * every_low * every_high,
        lower.two_u_of_group + higher.two_u_of_group + 2 * across,
    )


class GroupedSets:
    """The rows of every reference set at each distinct (group, score) of a range, ascending, counted when asked for.

    `score` has the index of the score of each (group, score). Blocks are keyed by `cell_key` and `membership_key`, each
    times `n_groups`, plus the group of the row. They have at most `MAX_ROWS_OF_A_LABEL` rows of either label, in any
    order and cut in any way.
    """

    def __init__(
        self, cells: Sequence[Block], memberships: Sequence[Block], sets: ReferenceSets, n_groups: int
    ) -> None:
        self.sets, self.n_groups = sets, n_groups
        keys, scores, counts = list_entries(cells)
        keys, groups = np.divmod(keys, n_groups)
        distinct, rank = np.unique(scores, return_inverse=True)
        self._n_scores = len(distinct)
        codes, indices = np.unique(groups * self._n_scores + rank, return_inverse=True)
        self._group, self.score = np.divmod(codes, max(self._n_scores, 1))
        self._bounds = np.searchsorted(self._group, np.arange(n_groups + 1))
        self._known = [
            self._count(indices[chosen], counts[chosen])
            for mask in sets.masks
            for label in (0, 1)
            for chosen in [is_known(keys >> 1, mask) & (keys & 1 == label)]
        ]
        keys, scores, counts = list_entries(memberships)
        keys, groups = np.divmod(keys, n_groups)
        chosen, identities = sets.select(keys >> 2)
        entered = groups[chosen] * self._n_scores + np.searchsorted(distinct, scores[chosen])
        self._indices, self._counts = np.searchsorted(codes, entered), counts[chosen]
        self._entries = split_by_code(4 * identities + (keys[chosen] & 3), 4 * len(sets.identities))

    def __call__(self, number: int) -> Ints:
        """Return the rows of a set, by its number."""
        if number < len(self._known):
            return self._known[number]
        chosen = self._entries[number - len(self._known)]
        return self._count(self._indices[chosen], self._counts[chosen])

    def _count(self, indices: Ints, counts: Ints) -> Ints:
        """Return the rows at each index; doubles represent row counts of a range exactly."""
        return np.bincount(indices, counts, len(self.score)).astype(np.int64)

    def by_group(self, values: Ints) -> Ints:
        """Return the sums by group."""
        return np.diff(np.append(0, np.cumsum(values))[self._bounds])

    def by_score(self, counts: Ints) -> Ints:
        """Return the sums by score; doubles represent row counts of a range exactly."""
        return np.bincount(self.score, counts, self._n_scores).astype(np.int64)

    def place_in_group(self, counts: Ints) -> Ints:
        """Return the doubled placement at each (group, score) among rows of the same group."""
        before = np.append(0, np.cumsum(counts))
        return doubled_placement(before[:-1] - before[self._bounds[self._group]], counts)
