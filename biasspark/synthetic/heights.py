"""The slides' tall, average and short people (Mitigating): a model as good within each group, and yet unfair."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import ClassVar

import numpy as np
import pyarrow as pa

from biasspark.ddl import arrow_schema
from biasspark.synthetic.blocks import BLOCK_ROWS, count_blocks
from biasspark.synthetic.draws import bit_stream, find_number_faults
from biasspark.synthetic.shapes import ROWS_PER_CELL, open_unit, truncated_normal

COLUMNS = "id BIGINT, height STRING, label BOOLEAN, score DOUBLE"
SCHEMA = arrow_schema(COLUMNS)

HEIGHTS = ("tall", "average", "short")
SHIFTS = (0.0, 0.0, 2.2)
"""How far the scores of each height are shifted up, in units of `UNIT`."""

SEPARATION = NormalDist().inv_cdf(0.93)
"""How far the positives of a height lie above its negatives, in units of `UNIT`: .93 is the printed AUC."""

SD = 0.05
UNIT = 2.0**0.5 * SD
"""The standard deviation of the difference of two scores: an AUC is Φ(distance of the means / UNIT)."""

LOWEST_MEAN = 0.25
"""Of the tall and average negatives: the mean of every cell is five standard deviations or more away from 0 and 1."""


@dataclass(frozen=True)
class HeightsRequest:
    """Scores of one model for people of three heights, which show what an AUC within a group does not see.

    All three groups are equally large, half of each is positive, and within each the AUC is .93. The scores of the
    short are shifted up, so that over all rows the AUC is .79, and the pinned AUC is .84 for the tall and the average,
    .79 for the short.

    Attributes
    ----------
    seed
        A whole number from 0. The same seed gives the same rows, at any partitioning and on any machine.
    rows_per_cell
        Rows of each of the six cells: a height, negative or positive.

    Notes
    -----
    The columns are id BIGINT (from 0), height STRING (tall, average, short), label BOOLEAN (whether positive), score
    DOUBLE (in [0, 1], with eight digits).

    A cell of n rows has one score from each of n equally likely parts of its normal distribution. No share of a cell
    below a score is then off by more than 1/n, and no AUC by more than 2/n, whatever the seed.

    `conf/heights.toml` is a configuration that measures it.
    """

    columns: ClassVar[str] = COLUMNS

    seed: int
    rows_per_cell: int = ROWS_PER_CELL

    @property
    def rows(self) -> int:
        """Rows of all six cells together."""
        return 2 * len(HEIGHTS) * self.rows_per_cell

    @property
    def blocks_per_cell(self) -> int:
        """Blocks that each cell takes up."""
        return count_blocks(self.rows_per_cell)

    @property
    def n_blocks(self) -> int:
        """Blocks of all six cells together: the heights in their order, the negatives of each first."""
        return 2 * len(HEIGHTS) * self.blocks_per_cell

    def find_faults(self) -> list[str]:
        """Name each argument that is out of range."""
        faults = find_number_faults(1, self.seed)
        if self.rows_per_cell < 1:
            faults.append(f"rows_per_cell: {self.rows_per_cell}. No cell may be empty. Ask for 1 or more.")
        return faults

    def make_block(self, block: int) -> pa.RecordBatch:
        """Make the rows of one block, all of one cell."""
        cell, part = divmod(block, self.blocks_per_cell)
        height, label = divmod(cell, 2)
        places = np.arange(part * BLOCK_ROWS, min((part + 1) * BLOCK_ROWS, self.rows_per_cell))
        bits = bit_stream(self.seed, cell, part).random_raw(BLOCK_ROWS)[: len(places)]
        mean = LOWEST_MEAN + (SHIFTS[height] + label * SEPARATION) * UNIT
        columns = [
            pa.array(cell * self.rows_per_cell + places),
            pa.array([HEIGHTS[height]] * len(places), pa.string()),
            pa.array(np.full(len(places), bool(label))),
            pa.array(truncated_normal((places + open_unit(bits)) / self.rows_per_cell, mean, SD)),
        ]
        return pa.record_batch(columns, schema=SCHEMA)
