"""Rows of a slice placed among the rows of a set: what the variance of the set's mean attribution needs. numpy only.

A set is the honest rows that meet a condition, or the rows of a named segment. For either label: n rows of the slice,
of which k are in the set; D is a row's doubled placement among all rows of the other label, d that among those of the
set. A range knows where its rows stand among all rows, but among the set only within the range. With what lies in other
ranges, all placements d of one label grow by the same offset o, twice the set's rows of the other label below (for
positives) or above (for negatives):

    Σ(d + o) = Σd + k·o,   Σ(d + o)² = Σd² + 2o·Σd + k·o²,   ΣD·(d + o) = ΣD·d + o·ΣD.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from biasspark.arrays import BigInts, Flags, Ints
from biasspark.attribution.influence import CellPair, Placed
from biasspark.ranking.kernels.codec import pack, unpack
from biasspark.ranking.kernels.exact import dot, join_wide, split_wide
from biasspark.ranking.kernels.row_block import RowBlock
from biasspark.ranking.kernels.sorted_runs import collapse

NEGATIVE, POSITIVE = 0, 1


class SetPlacements(NamedTuple):
    """Sums over the rows of one label of one range, or of all ranges; an entry for each set, as Python integers.

    Attributes
    ----------
    n, k
        Rows of the slice, and of the set.
    placed, inside, inside_squares, crossed
        Over the rows of the set: ΣD, Σd, Σd² and ΣD·d.
    inside_of_all, inside_squares_of_all
        Over the rows of the slice: Σd and Σd².
    """

    n: BigInts
    k: BigInts
    placed: BigInts
    inside: BigInts
    inside_squares: BigInts
    crossed: BigInts
    inside_of_all: BigInts
    inside_squares_of_all: BigInts

    def shift(self, offset: BigInts) -> SetPlacements:
        """Return the sums with every placement d greater by an offset."""
        return SetPlacements(
            n=self.n,
            k=self.k,
            placed=self.placed,
            inside=self.inside + self.k * offset,
            inside_squares=self.inside_squares + 2 * offset * self.inside + self.k * offset**2,
            crossed=self.crossed + offset * self.placed,
            inside_of_all=self.inside_of_all + self.n * offset,
            inside_squares_of_all=self.inside_squares_of_all + 2 * offset * self.inside_of_all + self.n * offset**2,
        )


SetSums = Mapping[str, int]
"""The sums of `SetPlacements` of one set and label, by name."""


def place_in_sets(block: RowBlock, slice_number: int, rows: Ints, sets: Sequence[Flags]) -> bytes:
    """Return the `SetPlacements` of the negatives and of the positives of one range, encoded.

    Parameters
    ----------
    rows : int64 array
        The rows of the slice.
    sets : sequence of bool arrays, shape (cells,)
        Which cells are in each set.
    """
    index, label = block.score_index[rows], block.label[rows]
    of_label = [np.flatnonzero(label == value) for value in (False, True)]
    # The rows of each label at or below every score, from 0 on.
    reached = [
        np.append(0, np.cumsum(np.bincount(index[chosen], minlength=len(block.score_starts)))) for chosen in of_label
    ]
    cells = [block.cell[rows[chosen]] for chosen in of_label]
    placements = block.placed(slice_number, rows)
    sums = np.zeros((2, len(SetPlacements._fields), len(sets)), object)
    for number, inside in enumerate(sets):
        members = [chosen[inside[of_cell]] for chosen, of_cell in zip(of_label, cells, strict=True)]
        scores = [index[chosen] for chosen in members]
        for side in (NEGATIVE, POSITIVE):
            d = np.searchsorted(scores[1 - side], scores[side], "left")
            d += np.searchsorted(scores[1 - side], scores[side], "right")
            if side == NEGATIVE:
                d = 2 * len(scores[POSITIVE]) - d
            of_all = placements[members[side]]
            of_set = [len(of_label[side]), len(d), int(of_all.sum()), int(d.sum()), dot(d, d), dot(of_all, d)]
            sums[side, :, number] = [*of_set, *_sum_all(reached[side], scores[1 - side], from_above=side == NEGATIVE)]
    return pack([split_wide(sums)])


def _sum_all(reached: Ints, opposite: Ints, *, from_above: bool) -> tuple[int, int]:
    """Return Σd and Σd² over all rows of a label, given the scores of the rows of the set that have the other label.

    d changes at these scores only: rows at the t-th distinct one have d = 2·C_(t-1) + c_t, with c_t opposite rows at it
    and C_t up to it, and rows between it and the next have d = 2·C_t.

    Parameters
    ----------
    reached : int64 array, shape (scores + 1,)
        How many rows of the label lie below each score, and last all.
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
    """Return what `place_in_sets` gives for the whole score line, from that of its ranges by ascending score."""
    of_ranges = [[SetPlacements(*of_label) for of_label in join_wide(unpack(data)[0])] for data in ranges]
    below = np.zeros_like(of_ranges[0][0].k)
    above = sum(positives.k for _, positives in of_ranges)
    totals = np.zeros((2, len(SetPlacements._fields), len(below)), object)
    for negatives, positives in of_ranges:
        above = above - positives.k
        totals += np.array([negatives.shift(2 * above), positives.shift(2 * below)], object)
        below = below + negatives.k
    return pack([split_wide(totals)])


def read_sets(data: bytes) -> list[tuple[SetSums, SetSums]]:
    """Return the sums of the negatives and of the positives of each set, by the names of `SetPlacements`."""
    totals = join_wide(unpack(data)[0])
    names = SetPlacements._fields
    return [
        (dict(zip(names, negatives, strict=True)), dict(zip(names, positives, strict=True)))
        for negatives, positives in zip(*(of_label.T.tolist() for of_label in totals), strict=True)
    ]


def as_placed(sums: SetSums, squares: int) -> Placed:
    """Return what the variance of a mean needs of one label, given the sum of D² over the set."""
    return Placed(
        n=sums["n"],
        k=sums["k"],
        placed=sums["placed"],
        placed_inside=sums["inside"],
        squares=squares,
        crossed=sums["crossed"],
        squares_inside_of_all=sums["inside_squares_of_all"],
    )


def as_cell_pair(negatives: SetSums, positives: SetSums) -> CellPair:
    """Return the negatives and the positives of a set as two cells."""
    return CellPair(
        n_low=negatives["k"],
        n_high=positives["k"],
        u_doubled=positives["inside"],
        low_square_sum=negatives["inside_squares"],
        high_square_sum=positives["inside_squares"],
    )
