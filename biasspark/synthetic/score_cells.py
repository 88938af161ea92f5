"""Corpora of the scores of one model in cells: rows of one group and one label, whose distribution is known."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from statistics import NormalDist
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from biasspark.arrays import Floats
from biasspark.ddl import arrow_schema
from biasspark.synthetic.chunks import CHUNK_ROWS, bit_stream, count_chunks, list_number_faults

ROWS_PER_CELL = 1_000
"""Scores that the published demonstration draws for each of the four cells."""

_NORMAL = NormalDist()


class Cell(NamedTuple):
    """The rows of a cell: what they have in the other columns, and the normal distribution that is truncated to [0, 1].

    The ``key``, of whole numbers from 0, is that of their random bits.
    """

    values: Mapping[str, Any]
    n_rows: int
    mean: float
    sd: float
    key: tuple[int, ...]


@dataclass(frozen=True)
class CellsRequest:
    """Scores in [0, 1] with eight digits, cell by cell, with ids from 0.

    The same seed, a whole number from 0, gives the same rows at any partitioning and on any machine. Where scores are
    ``stratified``, each of the n rows of a cell has one from another of n equally likely parts of its distribution. So
    the share of a cell below a score is off by at most 1/n, and an AUC by at most 2/n, whatever the seed.
    """

    columns: ClassVar[str]
    stratified: ClassVar[bool] = True
    least: ClassVar[tuple[int, str]]
    """The least rows of a cell, and why."""

    seed: int
    rows_per_cell: int = ROWS_PER_CELL

    @property
    def cells(self) -> list[Cell]:
        """All cells in the order of the ids."""
        raise NotImplementedError

    @property
    def rows(self) -> int:
        """Rows of all cells."""
        return sum(cell.n_rows for cell in self.cells)

    @property
    def chunks_per_cell(self) -> int:
        """Chunk numbers reserved for each cell."""
        return count_chunks(max((cell.n_rows for cell in self.cells), default=0))

    @property
    def n_chunks(self) -> int:
        """Chunks of all cells."""
        return len(self.cells) * self.chunks_per_cell

    def list_faults(self) -> list[str]:
        """Return a message for each argument that is out of range."""
        faults, (least, why) = list_number_faults(1, self.seed), self.least
        if self.rows_per_cell < least:
            faults.append(f"rows_per_cell: {self.rows_per_cell}. {why} Ask for {least} or more.")
        return faults

    def make_chunk(self, chunk: int) -> pa.RecordBatch:
        """Make the rows of one chunk, all of one cell. It is empty where the cell ends before this part."""
        number, part = divmod(chunk, self.chunks_per_cell)
        cell, first = self.cells[number], [0, *accumulate(cell.n_rows for cell in self.cells)][number]
        positions = np.arange(*(min(bound * CHUNK_ROWS, cell.n_rows) for bound in (part, part + 1)))
        unit = open_unit(bit_stream(self.seed, *cell.key, part).random_raw(CHUNK_ROWS)[: len(positions)])
        scores = truncated_normal((positions + unit) / cell.n_rows if self.stratified else unit, cell.mean, cell.sd)
        drawn, schema = {"id": first + positions, "score": scores}, arrow_schema(self.columns)
        columns = [
            pa.array(
                drawn[field.name] if field.name in drawn else [cell.values[field.name]] * len(positions), field.type
            )
            for field in schema
        ]
        return pa.record_batch(columns, schema=schema)


def open_unit(bits: npt.NDArray[np.uint64]) -> Floats:
    """Return uniform numbers strictly between 0 and 1, the middles of 2**52 equal steps."""
    fractions: Floats = ((bits >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
    return fractions


def truncated_normal(unit: Floats, mean: float, sd: float) -> Floats:
    """Draw from a normal distribution truncated to [0, 1], by the inverse of its distribution function.

    The uniform numbers are strictly between 0 and 1; mean and standard deviation are those before truncation. The draws
    are rounded to eight digits, so that the last bits of a machine's logarithm do not matter.
    """
    low, high = (0.5 * math.erfc((mean - end) / sd / math.sqrt(2.0)) for end in (0.0, 1.0))
    probability = np.minimum(low + unit * (high - low), 1.0 - 2.0**-53)
    quantiles = np.fromiter(map(_NORMAL.inv_cdf, probability.tolist()), np.float64, len(probability))
    # The sum takes the sign from a zero.
    return np.rint((mean + sd * quantiles) * 1e8) / 1e8 + 0.0
