"""Rows of blocks added up by cell, which is all that searches need: far less to read, once for each level.

blocks of rows --sum_blocks--> cells of each block, and sums of values over the rows of each cell
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from biasspark.arrays import Ints
from biasspark.attribution.block_sums import in_units, sum_by_cell
from biasspark.attribution.row_values import Target, rows_with_opposite, target_values
from biasspark.ranking.kernels.codec import pack, unpack
from biasspark.ranking.kernels.row_block import CellColumns, Cells, RowBlock
from biasspark.ranking.range_job import CountsRow, map_to_counts
from biasspark.ranking.row_blocks import BLOCK, Blocks, read_blocks
from biasspark.ranking.task_rows import Batches

SUM_BITS = 62
"""Of a sum of values in whole units, int64."""


class SummedValue(NamedTuple):
    """What is summed up: the values of a target, in whole units of 2^-shift, and how far they are below a ceiling."""

    target: Target
    shift: int
    ceiling: int = 0


class CellSums(NamedTuple):
    """The rows of one block by cell.

    Attributes
    ----------
    cells : Cells
    sums : mapping of SummedValue to int64 array, shape (3, cells)
        Rows, the sum of their values, and the sum of what their values lack of the ceiling, if they lack anything. None
        of values that no row has.
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
                units = in_units(target_values(block, target, rows), value.shift)
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
