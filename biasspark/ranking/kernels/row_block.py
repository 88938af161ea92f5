"""Row blocks: the ranked rows of one score range as arrays, and the cells of what rows have in common. numpy only.

Most row attributes that attribution needs take few values: the label, whether the row is in the estimation sample, its
slices and segments, the bins of its features, and its groups. Each combination of these that occurs is a *cell*. A row
has the number of its cell, its score and its placements. Once sums are by cell, the rows are not needed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from biasspark.arrays import Flags, Floats, Ints
from biasspark.ranking.kernels.sorted_runs import find_starts

SmallInts: TypeAlias = NDArray[Any]
"""Unsigned integers: a row has its cell in 32 bits, and a cell has the value of each column in 16."""

_MAX_CODES = 1 << 62

SLICES, SEGMENTS, BINS, GROUPS = range(4)
"""The kinds of columns of cells that may be several, in their order."""


class CellColumns(NamedTuple):
    """The columns of cells in order: label, honest, slices but the first, segments, bins of features, groups."""

    n_slices: int
    n_segments: int = 0
    n_features: int = 0
    n_groupings: int = 0

    def first(self, kind: int) -> int:
        """Return the number of the first column of a kind. The first slice is all rows, and has none."""
        return 1 + sum(self[:kind])


class Cells(NamedTuple):
    """Distinct combinations of row attributes: `values` is a uint16 array, shape (columns, cells)."""

    columns: CellColumns
    values: SmallInts

    @property
    def size(self) -> int:
        """How many cells there are."""
        return int(self.values.shape[1])

    @property
    def label(self) -> Flags:
        """Whether the rows of a cell are positive."""
        return self._is_one(0)

    @property
    def honest(self) -> Flags:
        """Whether the rows of a cell are in the estimation sample, and are not used to search."""
        return self._is_one(1)

    def in_slice(self, number: int) -> Flags:
        """Return which cells are in a slice; all are in the first."""
        return self._is_one(self.columns.first(SLICES) + number) if number else np.ones(self.size, bool)

    def in_segment(self, number: int) -> Flags:
        """Return which cells are in a segment."""
        return self._is_one(self.columns.first(SEGMENTS) + number)

    def _is_one(self, column: int) -> Flags:
        flags: Flags = self.values[column] == 1
        return flags

    @property
    def bins(self) -> SmallInts:
        """The bins of each feature, shape (features, cells)."""
        return self.values[self.columns.first(BINS) : self.columns.first(GROUPS)]

    def groups(self, number: int) -> Ints:
        """Return the group of a grouping that each cell is in."""
        return np.asarray(self.values[self.columns.first(GROUPS) + number], np.int64)


class Baseline(NamedTuple):
    """The baseline model's scores of the rows of a block, and their doubled placements by slice."""

    scores: Floats
    placements: SmallInts


@dataclass(frozen=True)
class RowBlock:
    """The rows of one score range of a model, ascending by score."""

    scores: Floats
    cell: SmallInts
    cells: Cells
    placements: SmallInts
    """Twice the rows of the other label in the slice with which a row is correctly ordered, plus ties, shape (slices,
    n); also for rows outside the slice."""
    totals: Ints
    """Negatives and positives of each slice, in all ranges, shape (2, slices)."""
    draws: Ints
    """A hash of each row, by which it is sampled. Empty if nothing is sampled, and in blocks that are kept."""
    baseline: Baseline | None = None
    """The model whose attributions are subtracted, if there is one."""

    @cached_property
    def label(self) -> Flags:
        """Which rows are positive."""
        return self.cells.label[self.cell]

    def rows_of(self, slice_number: int) -> Ints:
        """Return the indices of the rows of a slice."""
        if slice_number == 0:
            return np.arange(len(self.scores))
        return np.flatnonzero(self.cells.in_slice(slice_number)[self.cell])

    def placed(self, slice_number: int, rows: Ints) -> Ints:
        """Return the doubled placements of some rows in a slice."""
        return np.asarray(self.placements[slice_number, rows], np.int64)

    def n_opposite(self, slice_number: int, rows: Ints) -> Ints:
        """Return for each of some rows the number of rows of the slice with the other label."""
        n_opposite: Ints = self.totals[1 - self.label[rows].astype(np.int64), slice_number]
        return n_opposite

    def difference(self, slice_number: int, rows: Ints) -> Ints:
        """Return the doubled placements of some rows in a slice, less those by the baseline if there is one."""
        if self.baseline is None:
            return self.placed(slice_number, rows)
        return self.placed(slice_number, rows) - np.asarray(self.baseline.placements[slice_number, rows], np.int64)

    @cached_property
    def score_starts(self) -> Ints:
        """Where each distinct score begins."""
        return find_starts(self.scores)

    @cached_property
    def score_index(self) -> Ints:
        """The index of each row's score among the distinct ones."""
        lengths = np.diff(np.append(self.score_starts, len(self.scores)))
        return np.repeat(np.arange(len(self.score_starts)), lengths)


def number_cells(columns: Sequence[Ints]) -> tuple[SmallInts, SmallInts]:
    """Return the cell of each row, and the cells: uint32, shape (n,), and uint16, shape (columns, cells).

    `columns` are the attributes that make up a cell, each from 0 to 65,535. A combination is a number whose digits are
    the columns. If it would exceed 62 bits, the numbers so far are replaced by their ranks, which are at most as many
    as the rows.
    """
    codes, n_codes = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        width = int(column.max(initial=0)) + 1
        if n_codes * width > _MAX_CODES:
            distinct, codes = np.unique(codes, return_inverse=True)
            n_codes = len(distinct)
        codes, n_codes = codes * width + column, n_codes * width
    if n_codes <= len(codes):  # a table of all codes is faster than a sort
        present = np.bincount(codes, minlength=n_codes) > 0
        cell = np.cumsum(present)[codes] - 1
        row_of_cell = np.empty(np.count_nonzero(present), np.int64)
        row_of_cell[cell] = np.arange(len(codes))
    else:
        _, row_of_cell, cell = np.unique(codes, return_index=True, return_inverse=True)
    return cell.astype(np.uint32), np.stack([column[row_of_cell] for column in columns]).astype(np.uint16)


def join_cells(parts: Sequence[tuple[SmallInts, SmallInts]]) -> tuple[SmallInts, SmallInts]:
    """Return the cell of each row and the cells of several parts, concatenated: see `number_cells`."""
    renumbered, values = number_cells(list(np.concatenate([values for _, values in parts], axis=1)))
    first = np.cumsum([0, *(values.shape[1] for _, values in parts)])
    cells = [renumbered[start + cell.astype(np.int64)] for start, (cell, _) in zip(first, parts, strict=False)]
    return np.concatenate(cells), values


def keep_cells(cell: SmallInts, values: SmallInts) -> tuple[SmallInts, SmallInts]:
    """Renumber the cells of some rows, without unused cells, and return the cell of each row and the cells."""
    present = np.zeros(values.shape[1], bool)
    present[cell] = True
    return (np.cumsum(present) - 1).astype(np.uint32)[cell], values[:, present]
