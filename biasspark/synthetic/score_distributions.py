"""The score distributions of Nuanced, Table 2: subgroups with shifted, inseparable, wide, or unbiased scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from biasspark.synthetic.score_cells import Cell, CellsRequest


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
class ScoreDistributionsRequest(CellsRequest):
    """Scores of one model in a background and a subgroup, once for each distribution of Nuanced, Table 2.

    A cell with fewer rows is the beginning of the same cell with more, whichever other distributions there are.
    `rows_per_cell` are those of each of the four cells (background or subgroup, negative or positive); the subgroup of
    C has half as many negatives and half as many positives again. The distributions are those of the paper, or your
    own.

    Notes
    -----
    The columns are id BIGINT, shape STRING (none, A to G), label BOOLEAN (positive or not), subgroup INT (1 in the
    subgroup, 0 in the background), score DOUBLE.

    `conf/shapes.toml` measures each distribution as a slice of its own. In a notebook:

    >>> from biasspark.synthetic.chunks import generate
    >>> from biasspark.synthetic.score_distributions import SLICES, ScoreDistributionsRequest
    >>> corpus = generate(spark, ScoreDistributionsRequest(seed=1))  # doctest: +SKIP
    >>> biasspark.bias_metrics(
    ...     corpus, models=["score"], label="label", identities=["subgroup"], slices=SLICES
    ... ).where("slice != 'all'").show()  # doctest: +SKIP

    Leave out the slice `all`: it mixes distributions.
    """

    columns: ClassVar[str] = "id BIGINT, shape STRING, label BOOLEAN, subgroup INT, score DOUBLE"
    stratified: ClassVar[bool] = False
    least: ClassVar[tuple[int, str]] = (
        2,
        "Shape C has half as many negatives in its subgroup, and no cell may be empty.",
    )

    distributions: tuple[ScoreDistribution, ...] = DISTRIBUTIONS

    @property
    def cells(self) -> list[Cell]:
        """The four cells of each distribution, as `ScoreDistribution.cell_sizes` has them."""
        cells = []
        for one in self.distributions:
            # The key has the name: scores do not depend on which other distributions there are.
            name, means = int.from_bytes(one.name.encode(), "big"), (*one.background, *one.subgroup)
            for number, (n_rows, mean) in enumerate(zip(one.cell_sizes(self.rows_per_cell), means, strict=True)):
                subgroup, label = divmod(number, 2)
                values = {"shape": one.name, "label": bool(label), "subgroup": subgroup}
                cells.append(Cell(values, n_rows, mean, (one.background_sd, one.subgroup_sd)[subgroup], (name, number)))
        return cells

    def list_faults(self) -> list[str]:
        """Return a message for each argument that is out of range."""
        nothing = "distributions: none. A corpus has at least one. Leave the argument out for all eight."
        return super().list_faults() + ([] if self.distributions else [nothing])
