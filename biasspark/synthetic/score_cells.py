"""Corpora of scores with a known distribution in each cell, the rows of one group and one label."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from biasspark.arrays import Floats
from biasspark.ddl import arrow_schema
from biasspark.synthetic.chunks import CHUNK_ROWS, bit_stream, list_number_faults

ROWS_PER_CELL = 1_000
"""Scores that the published demonstration draws for each of the four cells."""

_NORMAL = NormalDist()


class Cell(NamedTuple):
    """A cell: the values of its other columns, and the parameters of its normal distribution truncated to [0, 1].

    The ``key``, of integers from 0, selects its random bits.
    """

    values: Mapping[str, Any]
    n_rows: int
    mean: float
    sd: float
    key: tuple[int, ...]


@dataclass(frozen=True)
class CellsRequest:
    """Scores in [0, 1] with eight digits, cell by cell, with ids from 0.

    The same seed, an integer from 0, gives the same rows with any partitioning and on any machine. ``stratified``
    scores of the n rows of a cell come from n equally likely parts of its distribution, one from each. So the share of
    a cell below a score is off by at most 1/n, and an AUC by at most 2/n, with any seed.
    """

    columns: ClassVar[str]
    stratified: ClassVar[bool] = True

    seed: int
    rows_per_cell: int = ROWS_PER_CELL

    @property
    def cells(self) -> list[Cell]:
        """All cells in the order of the ids."""
        raise NotImplementedError

    @property
    def rows(self) -> int:
        """The number of rows of all cells."""
        return sum(cell.n_rows for cell in self.cells)

    @property
    def chunks_per_cell(self) -> int:
        """The number of chunks reserved for each cell."""
        return -(-max(cell.n_rows for cell in self.cells) // CHUNK_ROWS)

    @property
    def n_chunks(self) -> int:
        """The number of chunks of all cells."""
        return len(self.cells) * self.chunks_per_cell

    def list_faults(self) -> list[str]:
        """Return a message for each argument that is out of range."""
        faults = list_number_faults(1, self.seed)
        if min(cell.n_rows for cell in self.cells) < 1:
            faults.append(f"rows_per_cell: {self.rows_per_cell}. A cell would be empty. Ask for 2 or more.")
        return faults

    def make_chunk(self, chunk: int) -> pa.RecordBatch:
        """Make the rows of one chunk, all in one cell. The last chunks of a smaller cell are empty."""
        number, part = divmod(chunk, self.chunks_per_cell)
        *before, cell = self.cells[: number + 1]
        positions = np.arange(*(min(bound * CHUNK_ROWS, cell.n_rows) for bound in (part, part + 1)))
        unit = open_unit(bit_stream(self.seed, *cell.key, part).random_raw(CHUNK_ROWS)[: len(positions)])
        scores = truncated_normal((positions + unit) / cell.n_rows if self.stratified else unit, cell.mean, cell.sd)
        columns: dict[str, Any] = {"id": sum(earlier.n_rows for earlier in before) + positions, "score": scores}
        columns |= {name: [value] * len(positions) for name, value in cell.values.items()}
        return pa.RecordBatch.from_pydict(columns, schema=arrow_schema(self.columns))


def open_unit(bits: npt.NDArray[np.uint64]) -> Floats:
    """Return uniform numbers strictly between 0 and 1, the middles of 2**52 equal steps."""
    fractions: Floats = ((bits >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
    return fractions


def truncated_normal(unit: Floats, mean: float, sd: float) -> Floats:
    """Draw from a normal distribution truncated to [0, 1], by the inverse of its distribution function.

    The uniform numbers are strictly between 0 and 1; the mean and the standard deviation are those before truncation.
    Scores are rounded to eight digits, so the last bits of the logarithm on a machine do not matter.
    """
    low, high = (0.5 * math.erfc((mean - end) / sd / math.sqrt(2.0)) for end in (0.0, 1.0))
    probability = np.minimum(low + unit * (high - low), 1.0 - 2.0**-53)
    quantiles = np.fromiter(map(_NORMAL.inv_cdf, probability.tolist()), np.float64, len(probability))
    # Adding 0.0 turns -0.0 into 0.0.
    return np.rint((mean + sd * quantiles) * 1e8) / 1e8 + 0.0


# ---- the score distributions of Nuanced, Table 2: subgroups with shifted, inseparable, wide, or unbiased scores


@dataclass(frozen=True)
class ScoreDistribution:
    """The distributions of the scores of background and subgroup: normal ones truncated to [0, 1].

    The name is the value in the column `shape`. The means of negatives and positives, and the standard deviations, are
    those before truncation. The subgroup has as many rows as the background; a share of them is positive.
    """

    name: str
    background: tuple[float, float]
    subgroup: tuple[float, float]
    background_sd: float = 0.05
    subgroup_sd: float = 0.05
    subgroup_positives: float = 0.5


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

SLICES = {shape.name: f"shape = '{shape.name}'" for shape in DISTRIBUTIONS}
"""The slices of the configuration by which each distribution is measured."""


@dataclass(frozen=True)
class ScoreDistributionsRequest(CellsRequest):
    """Scores of one model in a background and a subgroup, for each distribution of Nuanced, Table 2.

    A cell with fewer rows is the beginning of the same cell with more, and does not depend on other distributions.
    `rows_per_cell` is the size of each of the four cells (background or subgroup, negative or positive), except that
    the subgroup of C has half as many negatives and 1.5 times as many positives.

    Notes
    -----
    The columns are id BIGINT, shape STRING (none, A to G), label BOOLEAN (positive or not), subgroup INT (1 in the
    subgroup, 0 in the background), score DOUBLE.

    `conf/shapes.toml` measures each distribution as a slice. In a notebook:

    >>> from biasspark.synthetic.chunks import generate
    >>> from biasspark.synthetic.score_cells import SLICES, ScoreDistributionsRequest
    >>> corpus = generate(spark, ScoreDistributionsRequest(seed=1))  # doctest: +SKIP
    >>> biasspark.bias_metrics(
    ...     corpus, models=["score"], label="label", identities=["subgroup"], slices=SLICES
    ... ).where("slice != 'all'").show()  # doctest: +SKIP

    Leave out the slice `all`: it mixes distributions.
    """

    columns: ClassVar[str] = "id BIGINT, shape STRING, label BOOLEAN, subgroup INT, score DOUBLE"
    stratified: ClassVar[bool] = False

    distributions: tuple[ScoreDistribution, ...] = DISTRIBUTIONS

    @property
    def cells(self) -> list[Cell]:
        """The background negatives and positives, and subgroup negatives and positives, of each distribution."""
        cells, n = [], self.rows_per_cell
        for shape in self.distributions:
            # The name is part of the key, so scores do not depend on other distributions.
            name, means = int.from_bytes(shape.name.encode(), "big"), (*shape.background, *shape.subgroup)
            negatives = int(round(2 * n * (1.0 - shape.subgroup_positives), 6))  # 2000 * (1 - 0.9) is 199.99…
            sizes = (n, n, negatives, 2 * n - negatives)
            for number, (n_rows, mean) in enumerate(zip(sizes, means, strict=True)):
                subgroup, label = divmod(number, 2)
                values = {"shape": shape.name, "label": bool(label), "subgroup": subgroup}
                sd = shape.subgroup_sd if subgroup else shape.background_sd
                cells.append(Cell(values, n_rows, mean, sd, (name, number)))
        return cells


# ---- tall, average and short people (the slides of Mitigating): the same AUC within each group, and still unfair

SHIFTS = {"tall": 0.0, "average": 0.0, "short": 2.2}
"""The upward shift of the scores of each height, in units of `UNIT`."""

SEPARATION = NormalDist().inv_cdf(0.93)
"""The distance from the negatives of a height to its positives, in units of `UNIT`: .93 is the printed AUC."""

SD = 0.05
UNIT = 2.0**0.5 * SD
"""The standard deviation of the difference of two scores: an AUC is Φ(distance of the means / UNIT)."""

LOWEST_MEAN = 0.25
"""The mean of tall and average negatives. The mean of every cell is at least five standard deviations from 0 and 1."""


@dataclass(frozen=True)
class TallAverageShortRequest(CellsRequest):
    """Scores of one model for people of three heights, which show what the AUC within a group does not.

    The three groups have the same size, half of each is positive, and within each the AUC is .93. The scores of short
    people are shifted up, so the AUC of all rows is .79, and the pinned AUC is .84 for tall and average, .79 for short.
    `rows_per_cell` is the size of each of the six cells: a height, negative or positive.

    Notes
    -----
    The columns are id BIGINT, height STRING (tall, average, short), label BOOLEAN (positive or not), score DOUBLE.
    `conf/heights.toml` measures it.
    """

    columns: ClassVar[str] = "id BIGINT, height STRING, label BOOLEAN, score DOUBLE"

    @property
    def cells(self) -> list[Cell]:
        """The six cells: the heights in their order, the negatives of each first."""
        cells: list[Cell] = []
        for height, shift in SHIFTS.items():
            for label in (0, 1):
                mean = LOWEST_MEAN + (shift + label * SEPARATION) * UNIT
                values = {"height": height, "label": bool(label)}
                cells.append(Cell(values, self.rows_per_cell, mean, SD, (len(cells),)))
        return cells


# ---- three groups with equal scores and different class balance: Table 1 of "Limitations of Pinned AUC" (Pinned)

GROUPS = ("A", "B", "C")
SHARES_POSITIVE = {"background": 0.5, "A": 0.5, "B": 0.75, "C": 0.25}
"""The share of each group that is positive. A is balanced, B has fewer negatives, C has more."""

MEANS = {"background": (0.2, 0.6), "A": (0.55, 0.95), "B": (0.55, 0.95), "C": (0.55, 0.95)}
"""The large right shift of Nuanced, Table 2: means of negatives and positives. It gives A the printed .94."""


@dataclass(frozen=True)
class PinnedBalanceRequest(CellsRequest):
    """Scores of one model for a background and three groups, which show how class balance changes pinned AUC.

    The scores of A, B and C have the same distribution, shifted up. Half of A is positive, three quarters of B, and one
    quarter of C. So the five metrics are the same for all three, but pinned AUC is .940, .968 and .904 if the
    background is drawn from the rows outside of the group. `rows_per_cell` is half of the rows of each group.

    Notes
    -----
    The columns are id BIGINT, label BOOLEAN (positive or not), A, B and C INT (1 in the group, 0 in the background,
    NULL in another group, so that each group is compared with the background alone), score DOUBLE.
    `conf/pinned.toml` measures it.
    """

    columns: ClassVar[str] = "id BIGINT, label BOOLEAN, A INT, B INT, C INT, score DOUBLE"

    @property
    def cells(self) -> list[Cell]:
        """The negatives and the positives of the background and of each group."""
        cells: list[Cell] = []
        for name, share in SHARES_POSITIVE.items():
            n_rows, n_positive = 2 * self.rows_per_cell, int(2 * self.rows_per_cell * share)
            members = {group: 1 if group == name else 0 if name == "background" else None for group in GROUPS}
            for label, size in enumerate((n_rows - n_positive, n_positive)):
                cells.append(Cell({"label": bool(label), **members}, size, MEANS[name][label], SD, (len(cells),)))
        return cells
