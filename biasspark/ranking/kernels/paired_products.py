"""Two models' placements of the same rows, and the sums of their products, for DeLong's covariance. numpy only.

A row is first placed by one model's score, in the range of that score. It carries its placements to the range of its
other score, where it is placed again, and the two placements are multiplied. So no join by id is needed, and only sums
leave a range.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from biasspark.arrays import BigInts, Floats, Ints
from biasspark.ranking.kernels.codec import narrow
from biasspark.ranking.kernels.exact import dot
from biasspark.ranking.kernels.pair_sums import N_CELLS
from biasspark.ranking.kernels.reference_sets import MEMBER, UNKNOWN, RankOffsets, ReferenceSets
from biasspark.ranking.kernels.sorted_runs import place_runs


class Products(NamedTuple):
    """Sums over `n` rows of their doubled placements x by one model and y by another, exact: x, y, x², y² and x·y."""

    n: int
    first: int
    second: int
    first_squares: int
    second_squares: int
    products: int


class PairedRows(NamedTuple):
    """Rows of one (slice, range) on which the same sources are known, in any order.

    `known` has these sources, as bits. `scores` are by the model that places the rows now, `other_scores` by the other
    one; empty once they are not needed. `rows` and `entries` are the row of each entry, ascending, and twice the index
    of its identity, + 1 for unknown membership. `placed`, shape (relevant sets, n), are the placements by the first
    model; empty until they are known.
    """

    known: Ints
    scores: Floats
    other_scores: Floats
    label: Ints
    rows: Ints
    entries: Ints
    placed: Ints

    def narrow(self) -> PairedRows:
        """Return the rows with integers as narrow as they fit."""
        arrays = self._asdict().items()
        return self._replace(**{name: narrow(array) for name, array in arrays if array.dtype != np.float64})

    def widen(self) -> PairedRows:
        """Return the rows with 64-bit integers; placements stay narrow, as they take most of the memory."""
        integers = {name: getattr(self, name).astype(np.int64) for name in ("known", "label", "rows", "entries")}
        return self._replace(**integers)

    def take(self, chosen: Ints) -> PairedRows:
        """Return some of the rows, ascending by index."""
        position = np.full(len(self.scores), -1)
        position[chosen] = np.arange(len(chosen))
        rows = position[self.rows]
        return PairedRows(
            self.known,
            self.scores[chosen],
            self.other_scores[chosen] if len(self.other_scores) else self.other_scores,
            self.label[chosen],
            rows[rows >= 0],
            self.entries[rows >= 0],
            self.placed[:, chosen],
        )


class _ScoreLine:
    """The rows of one range, and their placements among every reference set."""

    def __init__(self, parts: Sequence[PairedRows], sets: ReferenceSets, offsets: RankOffsets) -> None:
        sizes = [len(part.scores) for part in parts]
        starts = np.cumsum([0, *sizes])
        _, self._run = np.unique(np.concatenate([part.scores for part in parts]), return_inverse=True)
        self._n_runs = int(self._run.max()) + 1
        known = np.repeat([int(part.known) for part in parts], sizes)
        label = np.concatenate([part.label for part in parts])
        rows = np.concatenate([part.rows + start for part, start in zip(parts, starts[:-1], strict=True)])
        self.members = sets.members(known, label, rows, np.concatenate([part.entries for part in parts]))
        self.below, self.total = offsets
        self.by_known: dict[int, list[tuple[PairedRows, slice]]] = defaultdict(list)
        for part, start, stop in zip(parts, starts[:-1], starts[1:], strict=True):
            self.by_known[int(part.known)].append((part, slice(start, stop)))

    def placements(self, number: int) -> Ints:
        """Return the doubled placement of each row among a set: twice the rows with a lower score, plus ties."""
        at = np.bincount(self._run[self.members[number]], minlength=self._n_runs)
        placed: Ints = (2 * self.below[number] + place_runs(at))[self._run]
        return placed


def place_by_first(parts: Sequence[PairedRows], sets: ReferenceSets, offsets: RankOffsets) -> Iterator[PairedRows]:
    """Place the rows of one range of the first model, to be cut at the boundaries of the second.

    A row carries one placement for each set relevant to it, of 4 bytes if the slice has fewer than 2^31 rows: some 200
    bytes for 24 annotated identities.
    """
    line = _ScoreLine(parts, sets, offsets)
    narrowest = np.min_scalar_type(2 * int(offsets.total.max()))
    for known, known_rows in line.by_known.items():
        placed = [line.placements(number).astype(narrowest) for number in sets.relevant(known, offsets.total)]
        for part, rows in known_rows:
            placed_rows = np.array([placements[rows] for placements in placed], narrowest).reshape(len(placed), -1)
            yield part._replace(scores=part.other_scores, other_scores=part.other_scores[:0], placed=placed_rows)


def sum_products(parts: Sequence[PairedRows], sets: ReferenceSets, offsets: RankOffsets) -> BigInts:
    """Place the rows of one range of the second model, and add up the products of both placements.

    Return `Products` by identity, by cell of the rows, and by the cell among which they are placed, both in the order
    of `columns.FOUR_CELLS`, as Python integers, shape (identities, 4, 4, 6); 0 among the cell itself. The sums of a
    background are those of its known population less those of the few rows outside the background. Cost: some 150 ns
    per row and identity.
    """
    line = _ScoreLine(parts, sets, offsets)
    sums = np.zeros((len(sets.identities), N_CELLS, N_CELLS, len(Products._fields)), object)
    for known, known_rows in line.by_known.items():
        rows = _PlacedTwice(line, known_rows, sets.relevant(known, offsets.total))
        for index, mask in enumerate(sets.masks[number] for number in sets.mask_of):
            if not mask or mask & known:
                _add_identity(sums[index], rows, sets, index)
    return sums


class _PlacedTwice:
    """Rows on which the same sources are known, and both placements of each."""

    def __init__(self, line: _ScoreLine, parts: Sequence[tuple[PairedRows, slice]], relevant: Sequence[int]) -> None:
        self._line = line
        self._rows = np.concatenate([np.arange(rows.start, rows.stop) for _, rows in parts])
        self._first = dict(zip(relevant, np.concatenate([part.placed for part, _ in parts], axis=1), strict=True))
        self._position = np.full(len(line._run), -1)
        self._position[self._rows] = np.arange(len(self._rows))
        label = np.concatenate([part.label for part, _ in parts])
        self.by_label = [np.flatnonzero(label == value) for value in (0, 1)]

    def members(self, number: int) -> Ints:
        """Return which of the rows are in a set."""
        position = self._position[self._line.members[number]]
        return position[position >= 0]

    def placements(self, number: int) -> Ints:
        """Return both placements of every row, shape (2, n); 0 for an empty set."""
        if number not in self._first:
            return np.zeros((2, len(self._rows)), np.int64)
        return np.stack([self._first[number].astype(np.int64), self._line.placements(number)[self._rows]])


def _add_identity(sums: BigInts, rows: _PlacedTwice, sets: ReferenceSets, index: int) -> None:
    among = sets.four_cells(index, rows.placements)
    for label in (0, 1):
        inside, outside = label, 2 + label
        members, unknowns = (rows.members(sets.entry(index, state, label)) for state in (MEMBER, UNKNOWN))
        removed = np.append(members, unknowns)
        for cell, (x, y) in enumerate(among):
            if cell != inside:
                sums[inside, cell] += _products(x[members], y[members])
            if cell != outside:
                known = rows.by_label[label]
                sums[outside, cell] += _products(x[known], y[known]) - _products(x[removed], y[removed])


def _products(x: Ints, y: Ints) -> BigInts:
    return np.array([len(x), int(x.sum()), int(y.sum()), dot(x, x), dot(y, y), dot(x, y)], object)
