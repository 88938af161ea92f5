"""Trials of the class-skew experiment within one range of the score line: a random part of one cell is kept (Pinned).

Dropping rows does not change the order of scores, so a trial needs no new ranking: U over the kept rows is a sum of
their placements among all rows. The rows of the cell are numbered in order of score over the whole score line, and a
trial keeps a subset of these positions. Ties have one placement, so the result does not depend on the physical order of
rows. The cost of a trial is the rows kept, and at most the distinct scores of the range. numpy only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from biasspark.arrays import BigInts
from biasspark.ranking.kernels.identity_scores import IdentityScores
from biasspark.ranking.kernels.sorted_runs import place_runs
from biasspark.ranking.kernels.subsets import Subset, draw_runs


def sum_kept(
    rows: IdentityScores, below: Sequence[int], total: Sequence[int], dropped: int, subsets: Iterable[Subset]
) -> BigInts:
    """Draw the part of every trial that lies in a range, and place it among all rows of the other label.

    Parameters
    ----------
    rows : IdentityScores
        Of the identity, in this range.
    below, total : sequences of int
        Rows of its four cells in lower ranges, and in all.
    dropped : int
        The cell of which rows are dropped.
    subsets : iterable of Subset
        The positions that each trial keeps.

    Returns
    -------
    array of Python integers, shape (trials, 2)
        For each trial, twice U (2 x pairs with the positive above, + ties) between the rows of the cell that it keeps
        in this range and all rows of the other label: those in the subgroup, and those in the background.

    Notes
    -----
    A range has fewer than 2^30 rows of one label (`placements.MOST_ROWS_OF_A_LABEL`), so within it twice U stays below
    2^61.
    """
    background, label = divmod(dropped, 2)
    placed = []
    for side, counts in enumerate(rows):
        opposite = counts[:, 1 - label]
        cell, inside = 2 * side + 1 - label, place_runs(opposite)
        if label:  # a positive is above the negatives below it
            placed.append((inside, 2 * below[cell]))
        else:
            above = total[cell] - below[cell] - int(opposite.sum())
            placed.append((2 * opposite.sum() - inside, 2 * above))
    running = np.append(0, np.cumsum(rows[background][:, label]))

    def sum_trial(subset: Subset) -> list[int]:
        runs, counts = draw_runs(running, subset, below[dropped])
        n_kept = int(counts.sum())
        return [int(counts @ inside[runs]) + n_kept * beyond for inside, beyond in placed]

    return np.array([sum_trial(subset) for subset in subsets], object)
