"""The placement of every single row of a score range, among all rows of the other label and among some of them.

numpy only.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from biasspark.arrays import Flags, Floats, Ints
from biasspark.ranking.kernels.reference_sets import RankOffsets
from biasspark.ranking.kernels.sorted_runs import find_starts


def place_rows(scores: Floats, positive: Flags, sets: Sequence[Flags], offsets: RankOffsets) -> Ints:
    """Return for each row and set twice the rows of the other label it is correctly ordered with, plus ties.

    A positive is correctly ordered with the negatives below it, a negative with the positives above it.

    Parameters
    ----------
    scores : float64 array, shape (n,)
        All rows of the range, ascending.
    positive : bool array, shape (n,)
    sets : sequence of bool arrays, shape (n,)
        Which rows are in each set.
    offsets : RankOffsets
        For the negatives of each set, then for the positives of each.

    Returns
    -------
    int64 array, shape (sets, n)
    """
    first = find_starts(scores)
    ends = np.append(first, len(scores))
    index = np.repeat(np.arange(len(first)), np.diff(ends))
    sides = [np.flatnonzero(positive == label) for label in (False, True)]
    index_of = [index[rows] for rows in sides]
    placed = np.empty((len(sets), len(scores)), np.int64)
    for number, inside in enumerate(sets):
        # The rows of the set below each distinct score and below the next one add up to the doubled placement.
        negatives, positives = (np.append(0, np.cumsum(inside & (positive == label)))[ends] for label in (False, True))
        above_negatives = negatives[:-1] + negatives[1:] + 2 * offsets.below[number]
        n_to_here = offsets.below[len(sets) + number]
        below_positives = 2 * (offsets.total[len(sets) + number] - n_to_here) - positives[:-1] - positives[1:]
        placed[number, sides[0]] = below_positives[index_of[0]]
        placed[number, sides[1]] = above_negatives[index_of[1]]
    return placed
