"""The values of the rows of a block, and their sums by cell.

    blocks of rows --sum by cell--> sums of each block --one small shuffle by a hash of the cell--> sums of all rows

Trees and slices ask for sums over the rows that meet conditions. Rows are added up by cell once, and conditions are
looked up in the cells, of which there are far fewer. Cells that several blocks have are joined, since with more rows
there are more blocks, but few more cells: the time of a level grows less than the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from biasspark.arrays import Flags, Floats, Ints
from biasspark.attribution.losses import LOSSES, losses
from biasspark.attribution.moments import LARGEST_BITS
from biasspark.features import Condition
from biasspark.ranking.kernels.row_block import CellColumns, Cells, RowBlock, SmallInts, number_cells
from biasspark.ranking.kernels.sorted_runs import collapse, split_by_code
from biasspark.ranking.range_job import count_ranges, cut_batches
from biasspark.ranking.row_blocks import BLOCK, BLOCKS_A_TASK, Blocks, Query, Search, read_blocks
from biasspark.ranking.task_rows import Batches, Key, Kind, Part, Parts

AUC = "auc"

CELLS_A_PART = 1 << 18
"""About how many cells of blocks a worker joins at a time, with 24 bytes for each summed value."""


class Target(NamedTuple):
    """The value that is predicted for each row of a model, or of a comparison, in a slice. Both are given by number.

    `name` is one of `config.attribution_settings.TARGETS`. Under the `link` "logit" scores are log-odds.
    """

    model: int
    slice: int
    name: str
    link: str | None = None


def rows_with_opposite(block: RowBlock, slice_number: int) -> Ints:
    """Return the indices of the rows of a slice that have an attribution: none where the slice lacks a label."""
    return block.rows_of(slice_number) if block.totals[:, slice_number].all() else np.zeros(0, np.int64)


def target_values(block: RowBlock, target: Target, rows: Ints) -> Floats:
    """Return the normalized attribution, the cross-entropy or the Gini impurity of some rows of a slice.

    The normalized attribution of a row is half the share of its pairs that are correctly ordered, ties half: 0 to 1/2.
    With a baseline, it is the difference of the two models, -1/2 to 1/2: above 0 the model is better. The slice has
    both labels.
    """
    if target.name == AUC:
        shares: Floats = block.difference(target.slice, rows) / (4 * block.n_opposite(target.slice, rows))
        return shares
    values = np.empty(len(rows))
    for label in (0, 1):
        chosen = np.flatnonzero(block.label[rows] == label)
        scores, n_rows = collapse(block.scores[rows[chosen]])
        values[chosen] = np.repeat(losses(scores, label, target.link)[LOSSES.index(target.name)], n_rows)
    return values


def add_by_code(codes: SmallInts, columns: Sequence[Ints] | Ints, n_codes: int) -> Ints:
    """Return the sums of integers by code, int64, shape (columns, codes)."""
    codes, sums = codes.astype(np.int64), np.zeros((len(columns), n_codes), np.int64)
    # One column at a time, and by codes of 64 bits, this is several times as fast as otherwise.
    for total, column in zip(sums, columns, strict=True):
        np.add.at(total, codes, column)
    return sums


def meet(condition: Condition, bins: SmallInts) -> Flags:
    """Return which cells meet a condition, given their bins, shape (features, cells)."""
    met = np.ones(bins.shape[1], bool)
    for feature, allowed in condition.items():
        is_allowed = np.zeros(1 + max(*allowed, int(bins[feature].max(initial=0))), bool)
        is_allowed[list(allowed)] = True
        met &= is_allowed[bins[feature]]
    return met


def hash_bins(bins: NDArray[Any]) -> NDArray[np.uint64]:
    """Return a hash of the bins of each cell, uint64. Each step is the finalizer of SplitMix64, a bijection."""
    hashed = np.zeros(bins.shape[1], np.uint64)
    for column in bins:
        hashed = hashed * np.uint64(0x9E3779B97F4A7C15) + column.astype(np.uint64) + np.uint64(1)
        hashed = (hashed ^ (hashed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        hashed = (hashed ^ (hashed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        hashed ^= hashed >> np.uint64(31)
    return hashed


class SummedValue(NamedTuple):
    """The values of a target to be summed up, in whole units of 2^-shift, and a ceiling in these units.

    Values are rounded to whole units, as small as sums of so many rows allow, and added up in int64: results are the
    same under any partitioning and order of the rows.
    """

    target: Target
    shift: int
    ceiling: int = 0

    @staticmethod
    def of(target: Target, n_rows: int, mean: float | None = None) -> SummedValue:
        """Return the value to be summed up over at most `n_rows` rows, below the mean of the training rows if given."""
        # Sums of n_rows values fit 62 bits; how far values lie below the mean may need one more.
        shift = 62 - LARGEST_BITS - max(n_rows, 1).bit_length() - (mean is not None)
        # Rounding to units may move a mean by half a unit.
        return SummedValue(target, shift, 0 if mean is None else int(np.ceil(mean * 2.0**shift)) + 1)


class CellSums(NamedTuple):
    """Cells of a model, and the sums over their rows, int64, shape (3, cells).

    For each summed value, they are the number of rows, the sum of their values, and the sum of how far those below the
    ceiling lie below it. Values that no row has are missing.
    """

    cells: Cells
    sums: Mapping[SummedValue, Ints]

    @staticmethod
    def of(block: RowBlock, model: int, values: Sequence[SummedValue]) -> CellSums:
        """Return the sums of the values of one model in a block."""
        sums = {}
        for value in values:
            target = value.target
            if target.model == model and len(rows := rows_with_opposite(block, target.slice)):
                units = np.rint(target_values(block, target, rows) * 2.0**value.shift).astype(np.int64)
                columns = [np.ones(len(rows), np.int64), units, np.maximum(value.ceiling - units, 0)]
                sums[value] = add_by_code(block.cell[rows], columns, block.cells.size)
        return CellSums(block.cells, sums)

    @staticmethod
    def join(parts: Sequence[CellSums]) -> CellSums:
        """Add up sums. The cells of the result differ in their bins or their half: in nothing else."""
        described = [[np.zeros(cells.size, np.int64), cells.honest, *cells.bins] for cells, _ in parts]
        cell, values = number_cells([*np.concatenate(described, axis=1)])
        columns = CellColumns(1, n_features=len(values) - 2)
        ends = np.cumsum([cells.size for cells, _ in parts])
        sums: dict[SummedValue, Ints] = {}
        for codes, part in zip(np.split(cell, ends[:-1]), parts, strict=True):
            for value, of_part in part.sums.items():
                added = add_by_code(codes, of_part, values.shape[1])
                sums[value] = sums[value] + added if value in sums else added
        return CellSums(Cells(columns, values), sums)

    def split(self, n_parts: int) -> Iterator[tuple[int, CellSums]]:
        """Yield each part of the cells, and its number, by a hash of the bins."""
        numbers = (hash_bins(self.cells.bins) % np.uint64(n_parts)).astype(np.int64)
        for number, chosen in enumerate(split_by_code(numbers, n_parts)):
            cells = self.cells._replace(values=self.cells.values[:, chosen])
            yield number, CellSums(cells, {value: sums[:, chosen] for value, sums in self.sums.items()})


def count_block_cells() -> Search[int]:
    """Count the cells of all blocks of the model that has most. One query."""

    def measure(_: int, _range: int, block: RowBlock) -> Iterator[tuple[int, int, list[Ints]]]:
        yield 0, 0, [np.array([block.cells.size])]

    answer = yield Query(measure)
    return max((int(n_cells[0]) for [n_cells] in answer.values()), default=0)


def sum_blocks(blocks: Blocks, values: Sequence[SummedValue], n_cells: int) -> Blocks:
    """Return the `CellSums` of all rows, in parts of cells, given the result of `count_block_cells`.

    Lazy; one shuffle of the sums of each block.
    """
    n_parts = max(-(-n_cells // CELLS_A_PART), 1)

    def cut(batches: Batches) -> Iterator[Part]:
        for model, _, block in read_blocks(batches):
            of_block = CellSums.join([CellSums.of(block, model, values)])  # without what else cells differ in
            for part, sums in of_block.split(n_parts):
                yield Part(model, 0, part, Kind.ROWS, sums)

    def join(_: Key, parts: Parts) -> Iterator[tuple[int, CellSums]]:
        yield BLOCK, CellSums.join(parts[Kind.ROWS])

    models = {value.target.model for value in values}
    parts = cut_batches(blocks.frame, cut)
    joined = count_ranges(parts, [range(1, n_parts)] * (max(models) + 1), 1, join, BLOCKS_A_TASK)
    return replace(blocks, frame=joined)
