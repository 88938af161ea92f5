"""Three groups with the same scores and another balance of labels: Table 1 of "Limitations of Pinned AUC" (Pinned)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from biasspark.synthetic.score_cells import Cell, CellsRequest

GROUPS = ("A", "B", "C")
SHARES_POSITIVE = {"background": 0.5, "A": 0.5, "B": 0.75, "C": 0.25}
"""Of each group that is positive. A is balanced, B has fewer negatives, C has more."""

MEANS = {"background": (0.2, 0.6), "A": (0.55, 0.95), "B": (0.55, 0.95), "C": (0.55, 0.95)}
SD = 0.05
"""The large right shift of Nuanced, Table 2: means of negatives and positives. It gives A the printed .94."""


@dataclass(frozen=True)
class PinnedBalanceRequest(CellsRequest):
    """Scores of one model for a background and three groups, which show what the balance of labels does to pinned AUC.

    The scores of A, B and C are alike, shifted up. Half of A is positive, three quarters of B, one quarter of C. So the
    suite is the same for all three, and pinned AUC is .940, .968 and .904, where the background is drawn from the rows
    outside of the group. `rows_per_cell` are half of the rows of each group.

    Notes
    -----
    The columns are id BIGINT, label BOOLEAN (positive or not), A, B and C INT (1 in the group, 0 in the background,
    NULL in another group, so that each group is compared with the background alone), score DOUBLE.
    `conf/pinned.toml` measures it.
    """

    columns: ClassVar[str] = "id BIGINT, label BOOLEAN, A INT, B INT, C INT, score DOUBLE"
    least: ClassVar[tuple[int, str]] = 2, "C has half as many positives, and no cell may be empty."

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
