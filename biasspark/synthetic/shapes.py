"""The score distributions of Nuanced, Table 2: a subgroup whose scores are shifted, mingled, spread, or as all are."""

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
from biasspark.synthetic.blocks import BLOCK_ROWS, count_blocks
from biasspark.synthetic.draws import bit_stream, find_number_faults

ROWS_PER_CELL = 1_000
"""Scores that the published demonstration draws for each of the four cells."""

COLUMNS = "id BIGINT, shape STRING, label BOOLEAN, subgroup INT, score DOUBLE"
SCHEMA = arrow_schema(COLUMNS)

_NORMAL = NormalDist()


@dataclass(frozen=True)
class ScoreShape:
    """How the scores of background and subgroup are distributed: normals truncated to [0, 1].

    Attributes
    ----------
    name
        What its rows hold in the column `shape`.
    background, subgroup
        Means before truncation, of the negatives and of the positives.
    background_sd, subgroup_sd
        Standard deviations before truncation, of negatives and positives alike.
    subgroup_positives
        Share of the subgroup that is positive. The subgroup has as many rows as the background, two cells' worth.
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


SHAPES = (
    ScoreShape("none", (0.2, 0.6), (0.2, 0.6)),
    ScoreShape("A", (0.2, 0.6), (0.4, 0.8)),
    ScoreShape("B", (0.2, 0.6), (0.55, 0.95)),
    ScoreShape("C", (0.2, 0.6), (0.55, 0.95), subgroup_positives=0.75),
    ScoreShape("D", (0.3, 0.7), (0.05, 0.35)),
    ScoreShape("E", (0.2, 0.6), (0.35, 0.45)),
    ScoreShape("F", (0.2, 0.8), (0.2, 0.8), subgroup_sd=0.1),
    ScoreShape("G", (0.3, 0.7), (0.3, 0.7), subgroup_sd=0.2),
)
"""No bias; A small and B large right shift; C as B with more positives; D large left shift; E low subgroup
separability; F wide without overlap; G wide with overlap. The parameters are those of the published demonstration."""

SLICES = {shape.name: f"shape = '{shape.name}'" for shape in SHAPES}
"""The table [slices] that measures each shape on its own."""


@dataclass(frozen=True)
class ShapesRequest:
    """Scores of one model in a background and a subgroup, once for each shape of Nuanced, Table 2.

    Attributes
    ----------
    seed
        A whole number from 0. The same seed gives the same rows, at any partitioning and on any machine; a cell with
        fewer rows is the beginning of the same cell with more, whatever other shapes are asked for.
    rows_per_cell
        Rows of each of the four cells (background or subgroup, negative or positive). The subgroup of C has half as
        many negatives and half as many positives again.
    shapes
        Which shapes; they may be your own.

    Notes
    -----
    The columns are id BIGINT (from 0), shape STRING (none, A to G), label BOOLEAN (whether positive), subgroup INT (1
    in the subgroup, 0 in the background), score DOUBLE (in [0, 1], with eight digits).

    `conf/shapes.toml` is a configuration that measures each shape as a slice of its own. In a notebook:

    >>> from biasspark.synthetic.blocks import generate
    >>> from biasspark.synthetic.shapes import SLICES, ShapesRequest
    >>> corpus = generate(spark, ShapesRequest(seed=1))  # doctest: +SKIP
    >>> biasspark.bias_metrics(
    ...     corpus, models=["score"], label="label", identities=["subgroup"], slices=SLICES
    ... ).where("slice != 'all'").show()  # doctest: +SKIP

    The slice `all` mixes what does not belong together: leave it out.
    """

    columns: ClassVar[str] = COLUMNS

    seed: int
    rows_per_cell: int = ROWS_PER_CELL
    shapes: tuple[ScoreShape, ...] = SHAPES

    @property
    def rows(self) -> int:
        """Rows of all shapes together."""
        return len(self.shapes) * 4 * self.rows_per_cell

    @property
    def blocks_per_cell(self) -> int:
        """Block numbers set aside for each cell; one cell takes up half of a shape's rows at the most."""
        return count_blocks(2 * self.rows_per_cell)

    @property
    def n_blocks(self) -> int:
        """Blocks of all shapes together: shapes in their order, in each the four cells of `ScoreShape.cell_sizes`."""
        return len(self.shapes) * 4 * self.blocks_per_cell

    def find_faults(self) -> list[str]:
        """Name each argument that is out of range."""
        faults = find_number_faults(1, self.seed)
        if self.rows_per_cell < 2:
            faults.append(
                f"rows_per_cell: {self.rows_per_cell}. Shape C has half as many negatives in its subgroup, and no cell "
                "may be empty. Ask for 2 or more."
            )
        if not self.shapes:
            faults.append("shapes: none. A corpus has at least one shape. Leave the argument out for all eight.")
        return faults

    def make_block(self, block: int) -> pa.RecordBatch:
        """Make the rows of one block, all of one cell of one shape; none where the cell ends before this part."""
        place, part = divmod(block, self.blocks_per_cell)
        position, cell = divmod(place, 4)
        subgroup, label = divmod(cell, 2)
        shape = self.shapes[position]
        sizes = shape.cell_sizes(self.rows_per_cell)
        count = max(0, min(BLOCK_ROWS, sizes[cell] - part * BLOCK_ROWS))
        first = position * sum(sizes) + sum(sizes[:cell]) + part * BLOCK_ROWS
        mean = (shape.background, shape.subgroup)[subgroup][label]
        spread = (shape.background_sd, shape.subgroup_sd)[subgroup]
        # Keyed by the name: a shape's scores do not depend on which other shapes there are.
        bits = bit_stream(self.seed, int.from_bytes(shape.name.encode(), "big"), cell, part).random_raw(BLOCK_ROWS)
        columns = [
            pa.array(np.arange(first, first + count)),
            pa.array([shape.name] * count, pa.string()),
            pa.array(np.full(count, bool(label))),
            pa.array(np.full(count, subgroup, dtype=np.int32)),
            pa.array(truncated_normal(open_unit(bits[:count]), mean, spread)),
        ]
        return pa.record_batch(columns, schema=SCHEMA)


def open_unit(bits: npt.NDArray[np.uint64]) -> Floats:
    """Turn random bits into uniform numbers strictly between 0 and 1, the middles of 2**52 equal steps."""
    fractions: Floats = ((bits >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
    return fractions


def truncated_normal(unit: Floats, mean: float, sd: float) -> Floats:
    """Draw from a normal distribution, given that the draw lies in [0, 1], by the inverse of its distribution function.

    Nothing is clipped to 0 or 1: what lies outside is as if it had been drawn again.

    Parameters
    ----------
    unit
        Uniform, strictly between 0 and 1.
    mean, sd
        Of the normal distribution before truncation.

    Returns
    -------
    numpy.ndarray
        In [0, 1], rounded to eight digits, so that the last bits of a machine's logarithm do not show.
    """
    low, high = (0.5 * math.erfc((mean - end) / sd / math.sqrt(2.0)) for end in (0.0, 1.0))
    probability = np.minimum(low + unit * (high - low), 1.0 - 2.0**-53)
    quantiles = np.fromiter(map(_NORMAL.inv_cdf, probability.tolist()), np.float64, len(probability))
    # The sum takes the sign from a zero.
    return np.rint((mean + sd * quantiles) * 1e8) / 1e8 + 0.0
