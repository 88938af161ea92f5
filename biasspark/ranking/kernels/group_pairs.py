"""Sums over the positives of one group and the negatives of another, for every two groups. numpy only.

Placements are looked up at the rows of the rarer label alone. Let it be the positives, and let group g have `a` of them
at a score s and `A` above s, and group h `below` negatives below s and `at` at s. A positive at s has the doubled
placement 2·below + at among h. A negative of h has the doubled placement 2(A + a) among g, if s is the next score of g
above it, and 2A + a if it ties. So over the scores s of g, with what lies below the next one less what is not above s,

    2U = Σ a·(2·below + at),   Σ_high d² = Σ a·(2·below + at)²,
    Σ_low d² = Σ below·(2(A + a))² + at·(2A + a)² - (below + at)·(2A)²
             = Σ below·4a(2A + a) + at·a(4A + a).

So K groups cost K passes over the rows of the rarer label, where pairs of rows would cost their number, and pairs of
groups K² passes. If negatives are rarer, the line is read from above, where they are the positives.
"""

from __future__ import annotations

import numpy as np

from biasspark.arrays import BigInts, Flags, Ints
from biasspark.ranking.kernels.pair_sums import PairSums
from biasspark.ranking.kernels.placements import NARROW_ROWS
from biasspark.ranking.kernels.sorted_runs import Segments, collapse, find_starts, split_by_code


def count_group_pairs(index: Ints, positive: Flags, group: Ints, n_groups: int) -> PairSums:
    """Return the sums of one range for every two groups, shape (groups of the positives, groups of the negatives).

    `index` is the number of each row's score: higher scores have higher numbers, from 0 on. `group` is from 0 to
    ``n_groups - 1``.
    """
    n_negative, n_positive = (np.bincount(group[positive == label], minlength=n_groups) for label in (False, True))
    if 2 * n_positive.sum() <= len(positive):
        sums = _sum_pairs(index, positive, group, n_groups)
    else:
        two_u, squares, opposite_squares = _sum_pairs(index.max(initial=0) - index, ~positive, group, n_groups)
        sums = np.stack([two_u.T, opposite_squares.T, squares.T])
    return PairSums.of(n_negative[np.newaxis], n_positive[:, np.newaxis], *sums)


def _sum_pairs(index: Ints, high: Flags, group: Ints, n_groups: int) -> BigInts:
    """Return 2U, Σ_low d² and Σ_high d², shape (3, groups of high rows, groups of low rows)."""
    sums = np.zeros((3, n_groups, n_groups), object)
    if not high.any():
        return sums
    line = np.bincount(index[high], minlength=index.max() + 1) > 0
    reached, size = np.cumsum(line), int(np.count_nonzero(line))
    points, counts = collapse(np.sort(group[high] * size + reached[index[high]] - 1))
    groups, points = points // size, points % size
    starts = find_starts(groups)
    segments = Segments(starts, len(groups), wide=len(index) > NARROW_ROWS)
    above = segments.onwards(counts) - counts
    of_below, of_at = 4 * counts * (2 * above + counts), counts * (4 * above + counts)
    low, present = index[~high], groups[starts]
    first_above = reached[low]
    first_not_below: Ints = first_above - line[low]
    for number, rows in enumerate(split_by_code(group[~high].astype(np.uint16), n_groups)):
        if len(rows):
            below, up_to = (
                np.cumsum(np.bincount(first[rows], minlength=size + 1))[points]
                for first in (first_above, first_not_below)
            )
            sums[0, present, number] = segments.dot(counts, below + up_to)
            sums[1, present, number] = segments.dot(of_below, below) + segments.dot(of_at, up_to - below)
            sums[2, present, number] = segments.dot(counts, (below + up_to) ** 2)
    return sums
