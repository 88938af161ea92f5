"""Two models' placements of the same rows, and their products. numpy and pyarrow only.

A row is first placed by the score of one model, in the range in which that lies. It takes its placements along to the
range of its other score, is placed there once more, and both are multiplied. So the two placements of a row meet
without its id, and only sums leave a range.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from biasspark.arrays import Floats, Ints
from biasspark.columns import (
    BACKGROUND_NEGATIVE,
    BACKGROUND_POSITIVE,
    FOUR_CELLS,
    LABEL,
    SCORE,
    SUBGROUP_NEGATIVE,
    SUBGROUP_POSITIVE,
)
from biasspark.ranking.crowd_blocks import OTHER, Around, CrowdPart, ScoreLine, cut_table
from biasspark.ranking.crowds import KNOWN, MEMBER, UNKNOWN, Crowds, read_lists
from biasspark.ranking.row_blocks import columns_of, read_rows
from biasspark.ranking.segments import Segments

FIRST = "placed"
_CELLS = ((SUBGROUP_NEGATIVE, BACKGROUND_NEGATIVE), (SUBGROUP_POSITIVE, BACKGROUND_POSITIVE))
_LARGEST = 2**63 - 1


class Products(NamedTuple):
    """Sums over rows of their doubled placements x by one model and y by another, exact.

    Attributes
    ----------
    n
        How many rows.
    first, second, first_squares, second_squares, products
        Sums of x, y, x², y² and x·y.
    """

    n: int
    first: int
    second: int
    first_squares: int
    second_squares: int
    products: int

    @classmethod
    def of(cls, x: Ints, y: Ints) -> Products:
        """Return the sums of some rows."""
        return cls(len(x), int(x.sum()), int(y.sum()), _dot(x, x), _dot(y, y), _dot(x, y))

    def less(self, other: Products) -> Products:
        """Return the sums without those of some of the rows."""
        return Products(*(whole - part for whole, part in zip(self, other, strict=True)))


class CellSums(NamedTuple):
    """Of the rows of one cell of an identity, placed among those of another."""

    identity: int
    cell: str
    among: str
    sums: Products


def place_by_first(
    blocks: Sequence[bytes], around: Around, crowds: Crowds, edges: Floats, number: int
) -> Iterator[CrowdPart]:
    """Place the rows of one range of the first model, and cut them at the boundaries of the second.

    Parameters
    ----------
    blocks : sequence of bytes
        All rows of the range of one slice, as `cut_examples` made them.
    edges : float64 array
        Where the ranges of the second model meet.
    number : int
        Of the slice.

    Notes
    -----
    A row takes along a placement for each crowd that matters to it, of 4 bytes while the slice has fewer than 2^30
    rows: for 24 annotated identities some 200 bytes.
    """
    table = read_rows(blocks)
    line, known = ScoreLine(table, crowds, around.below), table.column(KNOWN).to_numpy()
    asked = {pattern: crowds.asked(pattern, around.totals) for pattern in np.unique(known).tolist()}
    lengths = np.array([len(found) for found in asked.values()])[np.searchsorted(list(asked), known)]
    narrow = 2 * int(around.totals.max()) < 1 << 31
    flat = np.empty(int(lengths.sum()), np.int32 if narrow else np.int64)
    for pattern, found in asked.items():
        own = known == pattern
        placed = [line.placements(crowd)[own].astype(flat.dtype) for crowd in found]
        flat[np.repeat(own, lengths)] = np.stack(placed, axis=1).ravel()
    lists = pa.LargeListArray.from_arrays(pa.array(np.r_[0, np.cumsum(lengths)]), pa.array(flat))
    second = pa.table(columns_of(table) | {SCORE: table.column(OTHER), FIRST: lists}).drop([OTHER])
    yield from cut_table(second, edges, crowds, (1, number))


def sum_products(blocks: Sequence[bytes], around: Around, crowds: Crowds) -> Iterator[CellSums]:
    """Place the rows of one range of the second model, and add up the products of both placements.

    Parameters
    ----------
    blocks : sequence of bytes
        All rows of the range of one slice, as `place_by_first` made them.

    Yields
    ------
    CellSums
        For every identity and each of its cells that has rows here, among each of the other three.

    Notes
    -----
    Cost: rows times identities, some 150 ns each; a background's sums are those of its base less those of the few rows
    that are not in it.
    """
    table = read_rows(blocks)
    line, known = ScoreLine(table, crowds, around.below), table.column(KNOWN).to_numpy()
    lengths, flat = read_lists(table, FIRST)
    for pattern in np.unique(known).tolist():
        own, asked = known == pattern, crowds.asked(pattern, around.totals)
        first = flat[np.repeat(own, lengths)].reshape(-1, len(asked))
        placed = _RowsPlacedTwice(table.column(LABEL).to_numpy(), own, dict(zip(asked, first.T, strict=True)), line)
        for place, base in enumerate(crowds.base_of):
            if not crowds.masks[base] or crowds.masks[base] & pattern:
                yield from _sum_identity(placed, crowds, place)


class _RowsPlacedTwice:
    """Rows on which the same sources are known: the negatives before the positives."""

    def __init__(self, positive: np.ndarray, own: np.ndarray, first: dict[int, Ints], line: ScoreLine) -> None:
        here = np.flatnonzero(own)
        self._order = np.argsort(positive[here], kind="stable")
        self._rows, self._first, self._line = here[self._order], first, line
        self.n_negative = int(len(here) - positive[here].sum())
        self._position = np.full(len(own), -1)
        self._position[self._rows] = np.arange(len(here))

    def half(self, label: int) -> slice:
        """Return where the rows of a label are."""
        return slice(self.n_negative, None) if label else slice(self.n_negative)

    def members(self, crowd: int) -> Ints:
        """Return which of the rows are in a crowd."""
        position = self._position[self._line.members[crowd]]
        return position[position >= 0]

    def placements(self, crowd: int) -> Ints:
        """Return both placements of every row, shape (2, n); 0 among nobody."""
        if crowd not in self._first:
            return np.zeros((2, len(self._rows)), np.int64)
        own = self._first[crowd].astype(np.int64)[self._order]
        return np.stack([own, self._line.placements(crowd)[self._rows]])


def _sum_identity(placed: _RowsPlacedTwice, crowds: Crowds, place: int) -> Iterator[CellSums]:
    identity, among = crowds.identities[place], {}
    for label, (inside, outside) in enumerate(_CELLS):
        among[inside] = placed.placements(crowds.entry(place, MEMBER, label))
        unknown = placed.placements(crowds.entry(place, UNKNOWN, label))
        among[outside] = placed.placements(crowds.base(place, label)) - among[inside] - unknown
    for label, (inside, outside) in enumerate(_CELLS):
        members, unknowns = (placed.members(crowds.entry(place, state, label)) for state in (MEMBER, UNKNOWN))
        elsewhere = np.r_[members, unknowns]
        for cell in FOUR_CELLS:
            x, y = among[cell]
            if cell != inside and len(members):
                yield CellSums(identity, inside, cell, Products.of(x[members], y[members]))
            if cell != outside:
                base = Products.of(x[placed.half(label)], y[placed.half(label)])
                sums = base.less(Products.of(x[elsewhere], y[elsewhere]))
                if sums.n:
                    yield CellSums(identity, outside, cell, sums)


def _dot(x: Ints, y: Ints) -> int:
    if not len(x):
        return 0
    if int(x.max()) * int(y.max()) * len(x) <= _LARGEST:
        return int(np.dot(x, y))
    return int(Segments(np.array([0]), len(x), wide=True).dot(x, y)[0])
