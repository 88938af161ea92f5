"""Tall, average and short people (the slides of Mitigating): the same AUC within each group, and still unfair."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import ClassVar

from biasspark.synthetic.score_cells import Cell, CellsRequest

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
class TallAverageShortRequest(CellsRequest):
    """Scores of one model for people of three heights, which show what the AUC within a group misses.

    The three groups have the same size, half of each is positive, and within each the AUC is .93. The scores of the
    short are shifted up, so that over all rows the AUC is .79, and the pinned AUC is .84 for the tall and the average,
    .79 for the short. `rows_per_cell` are those of each of the six cells: a height, negative or positive.

    Notes
    -----
    The columns are id BIGINT, height STRING (tall, average, short), label BOOLEAN (positive or not), score DOUBLE.
    `conf/heights.toml` measures it.
    """

    columns: ClassVar[str] = "id BIGINT, height STRING, label BOOLEAN, score DOUBLE"
    least: ClassVar[tuple[int, str]] = 1, "No cell may be empty."

    @property
    def cells(self) -> list[Cell]:
        """The six cells: the heights in their order, the negatives of each first."""
        groups = [(height, shift, label) for height, shift in zip(HEIGHTS, SHIFTS, strict=True) for label in (0, 1)]
        return [
            Cell(
                {"height": height, "label": bool(label)},
                self.rows_per_cell,
                LOWEST_MEAN + (shift + label * SEPARATION) * UNIT,
                SD,
                (number,),
            )
            for number, (height, shift, label) in enumerate(groups)
        ]
