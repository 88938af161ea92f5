"""Tall, average and short people (the slides of Mitigating): the same AUC within each group, and still unfair."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import ClassVar

import numpy as np
import pyarrow as pa

from biasspark.ddl import arrow_schema
from biasspark.synthetic.chunks import CHUNK_ROWS, bit_stream, count_chunks, list_number_faults
from biasspark.synthetic.score_distributions import ROWS_PER_CELL, open_unit, truncated_normal

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
class TallAverageShortRequest:
    """Scores of one model for people of three heights, which show what the AUC within a group misses.

    The three groups have the same size, half of each is positive, and within each the AUC is .93. The scores of the
    short are shifted up, so that over all rows the AUC is .79, and the pinned AUC is .84 for the tall and the average,
    .79 for the short.

    The same seed, a whole number from 0, gives the same rows at any partitioning and on any machine. `rows_per_cell`
    are those of each of the six cells: a height, negative or positive.

    Notes
    -----
    The columns are id BIGINT (from 0), height STRING (tall, average, short), label BOOLEAN (positive or not), score
    DOUBLE (in [0, 1], with eight digits).

    A cell of n rows has one score from each of n equally likely parts of its normal distribution. So the share of a
    cell below a score is off by at most 1/n, and an AUC by at most 2/n, whatever the seed. `conf/heights.toml` measures
    it.
    """

    columns: ClassVar[str] = COLUMNS

    seed: int
    rows_per_cell: int = ROWS_PER_CELL

    @property
    def rows(self) -> int:
        """Rows of all six cells."""
        return 2 * len(HEIGHTS) * self.rows_per_cell

    @property
    def n_chunks(self) -> int:
        """Chunks of all six cells: the heights in their order, the negatives of each first."""
        return 2 * len(HEIGHTS) * count_chunks(self.rows_per_cell)

    def list_faults(self) -> list[str]:
        """Return a message for each argument that is out of range."""
        faults = list_number_faults(1, self.seed)
        if self.rows_per_cell < 1:
            faults.append(f"rows_per_cell: {self.rows_per_cell}. No cell may be empty. Ask for 1 or more.")
        return faults

    def make_chunk(self, chunk: int) -> pa.RecordBatch:
        """Make the rows of one chunk, all of one cell."""
        cell, part = divmod(chunk, count_chunks(self.rows_per_cell))
        height, label = divmod(cell, 2)
        positions = np.arange(part * CHUNK_ROWS, min((part + 1) * CHUNK_ROWS, self.rows_per_cell))
        bits = bit_stream(self.seed, cell, part).random_raw(CHUNK_ROWS)[: len(positions)]
        mean = LOWEST_MEAN + (SHIFTS[height] + label * SEPARATION) * UNIT
        columns = [
            pa.array(cell * self.rows_per_cell + positions),
            pa.array([HEIGHTS[height]] * len(positions), pa.string()),
            pa.array(np.full(len(positions), bool(label))),
            pa.array(truncated_normal((positions + open_unit(bits)) / self.rows_per_cell, mean, SD)),
        ]
        return pa.record_batch(columns, schema=SCHEMA)
