"""Three groups with the same scores and another balance of labels: Table 1 of "Limitations of Pinned AUC" (Pinned)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import ClassVar

import numpy as np
import pyarrow as pa

from biasspark.ddl import arrow_schema
from biasspark.synthetic.chunks import CHUNK_ROWS, bit_stream, count_chunks, list_number_faults
from biasspark.synthetic.score_distributions import ROWS_PER_CELL, open_unit, truncated_normal

GROUPS = ("A", "B", "C")
COLUMNS = "id BIGINT, label BOOLEAN, A INT, B INT, C INT, score DOUBLE"
SCHEMA = arrow_schema(COLUMNS)

SHARES_POSITIVE = {"background": 0.5, "A": 0.5, "B": 0.75, "C": 0.25}
"""Of each group that is positive. A is balanced, B has fewer negatives, C has more."""

MEANS = {"background": (0.2, 0.6), "A": (0.55, 0.95), "B": (0.55, 0.95), "C": (0.55, 0.95)}
SD = 0.05
"""The large right shift of Nuanced, Table 2: means of negatives and positives. It gives A the printed .94."""


@dataclass(frozen=True)
class PinnedBalanceRequest:
    """Scores of one model for a background and three groups, which show what the balance of labels does to pinned AUC.

    The scores of A, B and C are alike, shifted up. Half of A is positive, three quarters of B, one quarter of C. So the
    suite is the same for all three, and pinned AUC is .940, .968 and .904, where the background is drawn from the rows
    outside of the group.

    The same seed, a whole number from 0, gives the same rows at any partitioning and on any machine. `rows_per_cell`
    are half of the rows of each group.

    Notes
    -----
    The columns are id BIGINT (from 0), label BOOLEAN (positive or not), A, B and C INT (1 in the group, 0 in the
    background, NULL in another group, so that each group is compared with the background alone), score DOUBLE (in
    [0, 1], with eight digits).

    A cell of n rows has one score from each of n equally likely parts of its normal distribution, truncated to [0, 1],
    so an AUC is off by at most 2/n. `conf/pinned.toml` measures it.
    """

    columns: ClassVar[str] = COLUMNS

    seed: int
    rows_per_cell: int = ROWS_PER_CELL

    @property
    def cells(self) -> list[tuple[str, int, int]]:
        """The group, label and rows of each cell, in order."""
        positives = {name: int(2 * self.rows_per_cell * share) for name, share in SHARES_POSITIVE.items()}
        sizes = {name: (2 * self.rows_per_cell - n, n) for name, n in positives.items()}
        return [(name, label, sizes[name][label]) for name in SHARES_POSITIVE for label in (0, 1)]

    @property
    def rows(self) -> int:
        """Rows of all groups."""
        return 2 * len(SHARES_POSITIVE) * self.rows_per_cell

    @property
    def chunks_per_cell(self) -> int:
        """Chunk numbers reserved for each cell, which has at most all rows of its group."""
        return count_chunks(2 * self.rows_per_cell)

    @property
    def n_chunks(self) -> int:
        """Chunks of all cells."""
        return len(self.cells) * self.chunks_per_cell

    def list_faults(self) -> list[str]:
        """Return a message for each argument that is out of range."""
        faults = list_number_faults(1, self.seed)
        if self.rows_per_cell < 2:
            what = "C has half as many positives, and no cell may be empty. Ask for 2 or more."
            faults.append(f"rows_per_cell: {self.rows_per_cell}. {what}")
        return faults

    def make_chunk(self, chunk: int) -> pa.RecordBatch:
        """Make the rows of one chunk, all of one cell. It is empty where the cell ends before this part."""
        cell, part = divmod(chunk, self.chunks_per_cell)
        name, label, size = self.cells[cell]
        first = [0, *accumulate(n_rows for *_, n_rows in self.cells)][cell]
        positions = np.arange(min(part * CHUNK_ROWS, size), min((part + 1) * CHUNK_ROWS, size))
        n_rows = len(positions)
        bits = bit_stream(self.seed, cell, part).random_raw(CHUNK_ROWS)[:n_rows]
        members = {group: 1 if group == name else 0 if name == "background" else None for group in GROUPS}
        columns = [
            pa.array(first + positions),
            pa.array(np.full(n_rows, bool(label))),
            *(pa.array([members[group]] * n_rows, pa.int32()) for group in GROUPS),
            pa.array(truncated_normal((positions + open_unit(bits)) / size, MEANS[name][label], SD)),
        ]
        return pa.record_batch(columns, schema=SCHEMA)
