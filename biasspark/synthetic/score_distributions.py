"""The score distributions of Nuanced, Table 2: subgroups with shifted, inseparable, wide, or unbiased scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from biasspark.arrays import Floats
from biasspark.ddl import arrow_schema
from biasspark.synthetic.chunks import CHUNK_ROWS, bit_stream, count_chunks, list_number_faults

ROWS_PER_CELL = 1_000
"""Scores that the published demonstration draws for each of the four cells."""

COLUMNS = "id BIGINT, shape STRING, label BOOLEAN, subgroup INT, score DOUBLE"
SCHEMA = arrow_schema(COLUMNS)

_NORMAL = NormalDist()


@dataclass(frozen=True)
class ScoreDistribution:
    """The distributions of the scores of background and subgroup: normals truncated to [0, 1].

    Given are the value in the column `shape`, before truncation the means of negatives and positives and the standard
    deviations of both, and the share of the subgroup that is positive. It has as many rows as the background.
    """

    name: str
    background: tuple[float, float]
    subgroup: tuple[float, float]
    background_sd: float = 0.05
    subgroup_sd: float = 0.05
    subgroup_positives: float = 0.5

    def cell_sizes(self, rows_per_cell: int) -> tuple[int, int, int, int]:
        """Rows of background negatives and positives, subgroup negatives and positives: four times `rows_per_cell`."""
        negatives = int(2 * rows_per_cell * (1.0 - self.subgroup_positives))
        return rows_per_cell, rows_per_cell, negatives, 2 * rows_per_cell - negatives


DISTRIBUTIONS = (
    ScoreDistribution("none", (0.2, 0.6), (0.2, 0.6)),
    ScoreDistribution("A", (0.2, 0.6), (0.4, 0.8)),
    ScoreDistribution("B", (0.2, 0.6), (0.55, 0.95)),
    ScoreDistribution("C", (0.2, 0.6), (0.55, 0.95), subgroup_positives=0.75),
    ScoreDistribution("D", (0.3, 0.7), (0.05, 0.35)),
    ScoreDistribution("E", (0.2, 0.6), (0.35, 0.45)),
    ScoreDistribution("F", (0.2, 0.8), (0.2, 0.8), subgroup_sd=0.1),
    ScoreDistribution("G", (0.3, 0.7), (0.3, 0.7), subgroup_sd=0.2),
)
"""No bias; A small and B large right shift; C as B with more positives; D large left shift; E low subgroup
separability; F wide without overlap; G wide with overlap. The parameters are those of the published demonstration."""

SLICES = {one.name: f"shape = '{one.name}'" for one in DISTRIBUTIONS}
"""The table [slices] that measures each distribution by itself."""


@dataclass(frozen=True)
class ScoreDistributionsRequest:
    """Scores of one model in a background and a subgroup, once for each distribution of Nuanced, Table 2.

    The same seed, a whole number from 0, gives the same rows at any partitioning and on any machine. A cell with fewer
    rows is the beginning of the same cell with more, whichever other distributions there are. `rows_per_cell` are those
    of each of the four cells (background or subgroup, negative or positive); the subgroup of C has half as many
    negatives and half as many positives again. The distributions are those of the paper, or your own.

    Notes
    -----
    The columns are id BIGINT (from 0), shape STRING (none, A to G), label BOOLEAN (positive or not), subgroup INT (1
    in the subgroup, 0 in the background), score DOUBLE (in [0, 1], with eight digits).

    `conf/shapes.toml` measures each distribution as a slice of its own. In a notebook:

    >>> from biasspark.synthetic.chunks import generate
    >>> from biasspark.synthetic.score_distributions import SLICES, ScoreDistributionsRequest
    >>> corpus = generate(spark, ScoreDistributionsRequest(seed=1))  # doctest: +SKIP
    >>> biasspark.bias_metrics(
    ...     corpus, models=["score"], label="label", identities=["subgroup"], slices=SLICES
    ... ).where("slice != 'all'").show()  # doctest: +SKIP

    Leave out the slice `all`: it mixes distributions.
    """

    columns: ClassVar[str] = COLUMNS

    seed: int
    rows_per_cell: int = ROWS_PER_CELL
    distributions: tuple[ScoreDistribution, ...] = DISTRIBUTIONS

    @property
    def rows(self) -> int:
        """Rows of all distributions."""
        return len(self.distributions) * 4 * self.rows_per_cell

    @property
    def chunks_per_cell(self) -> int:
        """Chunk numbers reserved for each cell. One cell has at most half of the rows of a distribution."""
        return count_chunks(2 * self.rows_per_cell)

    @property
    def n_chunks(self) -> int:
        """Chunks of all distributions in their order, each with the four cells of `ScoreDistribution.cell_sizes`."""
        return len(self.distributions) * 4 * self.chunks_per_cell

    def list_faults(self) -> list[str]:
        """Return a message for each argument that is out of range."""
        faults = list_number_faults(1, self.seed)
        if self.rows_per_cell < 2:
            faults.append(
                f"rows_per_cell: {self.rows_per_cell}. Shape C has half as many negatives in its subgroup, and no cell "
                "may be empty. Ask for 2 or more."
            )
        if not self.distributions:
            faults.append("distributions: none. A corpus has at least one. Leave the argument out for all eight.")
        return faults

    def make_chunk(self, chunk: int) -> pa.RecordBatch:
        """Make the rows of one chunk, all of one cell. It is empty where the cell ends before this part."""
        cell_number, part = divmod(chunk, self.chunks_per_cell)
        position, cell = divmod(cell_number, 4)
        subgroup, label = divmod(cell, 2)
        distribution = self.distributions[position]
        sizes = distribution.cell_sizes(self.rows_per_cell)
        count = max(0, min(CHUNK_ROWS, sizes[cell] - part * CHUNK_ROWS))
        first = position * sum(sizes) + sum(sizes[:cell]) + part * CHUNK_ROWS
        mean = (distribution.background, distribution.subgroup)[subgroup][label]
        sd = (distribution.background_sd, distribution.subgroup_sd)[subgroup]
        # Keyed by the name: scores do not depend on which other distributions there are.
        name = int.from_bytes(distribution.name.encode(), "big")
        bits = bit_stream(self.seed, name, cell, part).random_raw(CHUNK_ROWS)
        columns = [
            pa.array(np.arange(first, first + count)),
            pa.array([distribution.name] * count, pa.string()),
            pa.array(np.full(count, bool(label))),
            pa.array(np.full(count, subgroup, dtype=np.int32)),
            pa.array(truncated_normal(open_unit(bits[:count]), mean, sd)),
        ]
        return pa.record_batch(columns, schema=SCHEMA)


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
