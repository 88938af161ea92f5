"""Placements of the rows of a slice among the rows of a set: sums for the variance of the mean attribution of the set.

A set is the honest rows that meet a condition, or the rows of a named segment or pair. For each label: n rows of the
slice, of which k are in the set. D is the doubled placement of a row among all rows of the other label, d that among
those of the set. A range knows D, but it knows d only within the range. Rows in other ranges increase all placements d
of one label by the same offset o, twice the rows of the set with the other label below (for positives) or above (for
negatives):

    Σ(d + o) = Σd + k·o,   Σ(d + o)² = Σd² + 2o·Σd + k·o²,   ΣD·(d + o) = ΣD·d + o·ΣD.

numpy only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from biasspark.arrays import BigInts, Flags, Ints
from biasspark.attribution.influence import Placed, PlacedSet
from biasspark.ranking.kernels.codec import pack, unpack
from biasspark.ranking.kernels.exact import dot, join_wide, split_wide
from biasspark.ranking.kernels.row_block import RowBlock
from biasspark.ranking.kernels.sorted_runs import collapse

NEGATIVE, POSITIVE = 0, 1


def place_in_sets(block: RowBlock, slice_number: int, rows: Ints, sets: Sequence[Flags]) -> bytes:
    """Return the sums of `Placed` over one range, encoded: shape (labels, fields, sets).

    Parameters
    ----------
    rows : int64 array
        The rows of the slice.
    sets : sequence of bool arrays, shape (cells,)
        Which cells are in each set.
    """
    index, label = block.score_index[rows], block.label[rows]
    of_label = [np.flatnonzero(label == value) for value in (False, True)]
    # The rows of each label at or below every score, starting with 0.
    reached = [
        np.append(0, np.cumsum(np.bincount(index[chosen], minlength=len(block.score_starts)))) for chosen in of_label
    ]
    cells = [block.cell[rows[chosen]] for chosen in of_label]
    placements = block.placed(slice_number, rows)
    sums = np.zeros((2, len(Placed._fields), len(sets)), object)
    for number, inside in enumerate(sets):
        members = [chosen[inside[of_cell]] for chosen, of_cell in zip(of_label, cells, strict=True)]
        scores = [index[chosen] for chosen in members]
        for side in (NEGATIVE, POSITIVE):
            d = np.searchsorted(scores[1 - side], scores[side], "left")
            d += np.searchsorted(scores[1 - side], scores[side], "right")
            if side == NEGATIVE:
                d = 2 * len(scores[POSITIVE]) - d
            of_all = placements[members[side]]
            of_set = [len(of_label[side]), len(d), int(of_all.sum()), int(d.sum())]
            of_set += [dot(of_all, of_all), dot(of_all, d), dot(d, d)]
            sums[side, :, number] = [*of_set, *_sum_all(reached[side], scores[1 - side], from_above=side == NEGATIVE)]
    return pack([split_wide(sums)])


def _sum_all(reached: Ints, opposite: Ints, *, from_above: bool) -> tuple[int, int]:
    """Return Σd and Σd² over all rows of a label, given the scores of the rows of the set that have the other label.

    d changes only at these scores: rows at the t-th distinct score have d = 2·C_(t-1) + c_t, with c_t opposite rows at
    that score and C_t up to it, and rows between it and the next have d = 2·C_t.

    Parameters
    ----------
    reached : int64 array, shape (scores + 1,)
        How many rows of the label are below each score; the last entry counts all.
    opposite : int64 array
        Indices of scores, ascending.
    from_above : bool
        Whether d counts the opposite rows above a row.
    """
    if not len(opposite):
        return 0, 0
    distinct, at = collapse(opposite)
    below, up_to = reached[distinct], reached[distinct + 1]
    counted = np.cumsum(at)
    if from_above:
        counted = counted[-1] - counted + at
        between = below - np.append(0, up_to[:-1])
    else:
        between = np.append(below[1:], reached[-1]) - up_to
    of_tied, of_between, tied = 2 * counted - at, 2 * counted, up_to - below
    total = int((tied * of_tied).sum() + (between * of_between).sum())
    return total, dot(tied, of_tied**2) + dot(between, of_between**2)


def combine_ranges(ranges: Iterator[memoryview]) -> bytes:
    """Combine the results of `place_in_sets` for all ranges, by ascending score, to those of the whole score line."""
    of_ranges = [join_wide(unpack(data)[0]) for data in ranges]
    rows = Placed._fields.index("k")
    below = np.zeros(of_ranges[0].shape[-1], object)
    above = sum(positives[rows] for _, positives in of_ranges)
    totals = np.zeros_like(of_ranges[0])
    for negatives, positives in of_ranges:
        above = above - positives[rows]
        totals += np.stack([_shift(negatives, 2 * above), _shift(positives, 2 * below)])
        below = below + negatives[rows]
    return pack([split_wide(totals)])


def _shift(sums: BigInts, offset: BigInts) -> BigInts:
    """Return sums, shape (fields, sets), with every placement d greater by the offset of its set."""
    n, k, placed, inside, squares, crossed, inside_squares, inside_of_all, squares_of_all = sums
    inside_squares = inside_squares + 2 * offset * inside + k * offset**2
    squares_of_all = squares_of_all + 2 * offset * inside_of_all + n * offset**2
    inside, inside_of_all = inside + k * offset, inside_of_all + n * offset
    crossed = crossed + offset * placed
    return np.stack([n, k, placed, inside, squares, crossed, inside_squares, inside_of_all, squares_of_all])


def read_sets(data: bytes) -> list[PlacedSet]:
    """Return the sums of the negatives and of the positives of each set."""
    of_labels = join_wide(unpack(data)[0]).transpose(2, 0, 1).tolist()
    return [(Placed(*negatives), Placed(*positives)) for negatives, positives in of_labels]
