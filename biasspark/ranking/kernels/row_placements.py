"""The placement of every single row of a score range, among all rows of the other label and among some of them.

numpy only.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from biasspark.arrays import Flags, Floats, Ints
from biasspark.ranking.kernels.reference_sets import RankOffsets
from biasspark.ranking.kernels.sorted_runs import find_starts, place_runs


def place_rows(scores: Floats, positive: Flags, sets: Sequence[Flags], offsets: RankOffsets) -> Ints:
    """Return for each row twice the rows of the other label it is rightly ordered with, plus ties, of each set.

    A positive is rightly ordered with the negatives below it, a negative with the positives above it.

    Parameters
    ----------
    scores : float64 array, shape (n,)
        All rows of the range, ascending.
    positive : bool array, shape (n,)
    sets : sequence of bool arrays, shape (n,)
        Which rows are in each set.
    offsets : RankOffsets
        Of the negatives of each set, then of the positives of each.

    Returns
    -------
    int64 array, shape (sets, n)
    """
    first = find_starts(scores)
    index = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(scores))))
    placed = np.empty((len(sets), len(scores)), np.int64)
    for number, inside in enumerate(sets):
        negatives, positives = (
            np.add.reduceat((inside & (positive == label)).astype(np.int64), first) for label in (False, True)
        )
        above_negatives = 2 * offsets.below[number] + place_runs(negatives)
        n_to_here = offsets.below[len(sets) + number]
        below_positives = 2 * (offsets.total[len(sets) + number] - n_to_here) - place_runs(positives)
        placed[number] = np.where(positive, above_negatives[index], below_positives[index])
    return placed
