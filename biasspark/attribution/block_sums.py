"""Sums over the rows of a block: by cell, by set of rows, and by bin of a node.

    blocks of rows --sum_blocks--> cells of each block, and sums of values over the rows of each cell

Trees, slices and tables ask for sums over the rows that meet conditions. Rows are added up by cell once, and conditions
are looked up in the cells, of which there are far fewer: each level of a tree reads far less.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from biasspark.arrays import Flags, Floats, Ints
from biasspark.attribution.moments import N_LIMBS, Moments, cut_moments, read_moments
from biasspark.attribution.row_values import Target, opposite_rows, rows_with_opposite, target_values
from biasspark.features import Condition
from biasspark.ranking.kernels.codec import pack, unpack
from biasspark.ranking.kernels.row_block import CellColumns, Cells, RowBlock, SmallInts
from biasspark.ranking.range_job import CountsRow, map_to_counts
from biasspark.ranking.row_blocks import BLOCK, Blocks, read_blocks
from biasspark.ranking.task_rows import Batches

N_SUMS = 1 + N_LIMBS + 1
"""Of some rows: their number, the limbs of the moments of a value, and their AUC loss."""


class NodeSums(NamedTuple):
    """Sums over the rows of one node.

    Attributes
    ----------
    train, honest
        Of the values of the rows that grow the tree, and of those that estimate.
    loss_doubled
        Twice the number of pairs with a row of the node that are wrongly ordered, ties half.
    """

    train: Moments = Moments()
    honest: Moments = Moments()
    loss_doubled: int = 0


def sum_by_cell(block: RowBlock, rows: Ints, columns: Sequence[Ints]) -> Ints:
    """Return the sums of integers over some rows of each cell, int64, shape (columns, cells)."""
    return add_by_code(block.cell[rows], columns, block.cells.size)


def add_by_code(codes: SmallInts, columns: Sequence[Ints] | Ints, n_codes: int) -> Ints:
    """Return the sums of integers by code, int64, shape (columns, codes).

    One column at a time, and by codes of 64 bits, ``np.add.at`` is several times as fast as otherwise.
    """
    codes = codes.astype(np.int64)
    sums = [np.zeros(n_codes, np.int64) for _ in columns]
    for total, column in zip(sums, columns, strict=True):
        np.add.at(total, codes, column)
    return np.stack(sums)


def sum_values(block: RowBlock, slice_number: int, rows: Ints, values: Floats) -> Ints:
    """Return the sums that `NodeSums` are read from, by cell: int64, shape (`N_SUMS`, cells)."""
    losses = 2 * opposite_rows(block, slice_number, rows) - block.placed(slice_number, rows)
    return sum_by_cell(block, rows, [np.ones(len(rows), np.int64), *cut_moments(values), losses])


def meet(condition: Condition, bins: SmallInts) -> Flags:
    """Return which cells meet a condition, given their bins, shape (features, cells)."""
    met = np.ones(bins.shape[1], bool)
    for feature, allowed in condition.items():
        is_allowed = np.zeros(1 + max(*allowed, int(bins[feature].max(initial=0))), bool)
        is_allowed[list(allowed)] = True
        met &= is_allowed[bins[feature]]
    return met


def sum_sets(cells: Cells, sums: Ints, sets: Sequence[Flags]) -> Ints:
    """Return the sums of several sets of cells, those of train and of honest rows, shape (sets, 2, `N_SUMS`).

    Parameters
    ----------
    sums : int64 array, shape (`N_SUMS`, cells)
    sets : sequence of bool arrays, shape (cells,)
    """
    by_sample = [[sums[:, inside & part].sum(axis=1) for part in (~cells.honest, cells.honest)] for inside in sets]
    return np.array(by_sample, np.int64).reshape(len(sets), 2, N_SUMS)


def read_node_sums(sums: Ints) -> NodeSums:
    """Return the sums of one set, given those of its train and of its honest rows, shape (2, `N_SUMS`)."""
    (n_train, *of_train, train_loss), (n_honest, *of_honest, honest_loss) = sums.tolist()
    return NodeSums(read_moments(of_train, n_train), read_moments(of_honest, n_honest), train_loss + honest_loss)


def hash_bins(bins: NDArray[Any]) -> NDArray[np.uint64]:
    """Return a hash of the bins of each cell, uint64. Each step is the finalizer of SplitMix64, a bijection."""
    hashed = np.zeros(bins.shape[1], np.uint64)
    for of_feature in bins:
        hashed = hashed * np.uint64(0x9E3779B97F4A7C15) + of_feature.astype(np.uint64) + np.uint64(1)
        hashed = (hashed ^ (hashed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        hashed = (hashed ^ (hashed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        hashed ^= hashed >> np.uint64(31)
    return hashed


SUM_BITS = 62
"""Of a sum of values in whole units, int64."""


class SummedValue(NamedTuple):
    """The values of a target to be summed up, in whole units of 2^-shift, and how far they are below a ceiling."""

    target: Target
    shift: int
    ceiling: int = 0


class CellSums(NamedTuple):
    """The rows of one block by cell.

    Attributes
    ----------
    cells : Cells
    sums : mapping of SummedValue to int64 array, shape (3, cells)
        Rows, the sum of their values, and the sum of what their values lack of the ceiling, if they lack anything.
        Values that no row has are missing.
    """

    cells: Cells
    sums: Mapping[SummedValue, Ints]

    @staticmethod
    def encode(block: RowBlock, model: int, values: Sequence[SummedValue]) -> bytes:
        """Return the sums of those values that are of a model, encoded."""
        arrays, numbers = [], []
        for number, value in enumerate(values):
            target = value.target
            if target.model == model and len(rows := rows_with_opposite(block, target.slice)):
                units = np.rint(target_values(block, target, rows) * 2.0**value.shift).astype(np.int64)
                columns = [np.ones(len(rows), np.int64), units, np.maximum(value.ceiling - units, 0)]
                arrays.append(sum_by_cell(block, rows, columns))
                numbers.append(number)
        return pack([block.cells.values, np.array(numbers, np.int64), *arrays])

    @staticmethod
    def decode(values: Sequence[SummedValue], data: memoryview, columns: CellColumns) -> CellSums:
        """Return what `encode` wrote."""
        of_cells, numbers, *arrays = unpack(data)
        sums = {values[number]: of_value for number, of_value in zip(numbers.tolist(), arrays, strict=True)}
        return CellSums(Cells(columns, of_cells), sums)


def sum_blocks(blocks: Blocks, values: Sequence[SummedValue]) -> Blocks:
    """Return the `CellSums` of the models that values are of. Lazy; no shuffle."""
    columns = blocks.columns
    models = {value.target.model for value in values}

    def rows(batches: Batches) -> Iterator[CountsRow]:
        for model, score_range, block in read_blocks(batches, columns):
            if model in models:
                yield model, 0, score_range, BLOCK, CellSums.encode(block, model, values)

    return replace(blocks, frame=map_to_counts(blocks.frame, rows), decode=partial(CellSums.decode, values))
