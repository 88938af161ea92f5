"""The three sums of two cells that give their AUC and its variance, and how to combine the sums of score ranges.

Let a low and a high cell have n and m rows. A low row is correctly ordered with the high rows above it, a high row with
the low rows below it. With d the doubled placement of a row (`sorted_runs.doubled_placement`), the sums are

    2U = Σ_low d = Σ_high d,    Σ_low d²,    Σ_high d².

numpy only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from biasspark.arrays import BigInts, Ints
from biasspark.columns import CELL_PAIRS, FOUR_CELLS

N_CELLS = len(FOUR_CELLS)
CELLS_OF_PAIRS = tuple((FOUR_CELLS.index(low), FOUR_CELLS.index(high)) for low, high in CELL_PAIRS)
LOW_CELLS, HIGH_CELLS = np.array(CELLS_OF_PAIRS).T
"""The low and the high cell of each pair of `columns.CELL_PAIRS`, as indices into `columns.FOUR_CELLS`."""

N_PAIRS, BACKGROUND_PAIR = len(CELLS_OF_PAIRS), 3


class PairSums(NamedTuple):
    """Sums for pairs of a low and a high cell, one entry per pair, as Python integers.

    `n_low` and `n_high` are the rows of the cells, in shapes that broadcast to that of the sums. `two_u` is 2 x pairs
    with the high row's score above, + ties. `low_squares` and `high_squares` are sums over the rows of that cell of
    their squared doubled placements.
    """

    n_low: BigInts
    n_high: BigInts
    two_u: BigInts
    low_squares: BigInts
    high_squares: BigInts

    @staticmethod
    def of_cells(n_rows: Ints, sums: Sequence[BigInts] | BigInts) -> PairSums:
        """Return the sums of the six pairs of four cells.

        `n_rows` has the rows of each cell, shape (4, identities); `sums` has 2U and both sums of squares as Python
        integers, shape (3, 6, identities).
        """
        return PairSums.of(n_rows[LOW_CELLS], n_rows[HIGH_CELLS], *sums)

    @staticmethod
    def of(n_low: Ints, n_high: Ints, two_u: BigInts, low_squares: BigInts, high_squares: BigInts) -> PairSums:
        """Return sums, all of them as Python integers."""
        arrays = (n_low, n_high, two_u, low_squares, high_squares)
        return PairSums(*(array.astype(object) for array in arrays))

    def exchanged(self) -> PairSums:
        """Return the sums with low and high cell exchanged.

        A doubled placement d among a cell of n rows becomes 2n - d, and Σ(2n - d)² over m rows is
        4n²m - 4n·Σd + Σd².
        """
        n, m, two_u = self.n_low, self.n_high, self.two_u
        return PairSums(
            m,
            n,
            2 * n * m - two_u,
            4 * n * n * m - 4 * n * two_u + self.high_squares,
            4 * m * m * n - 4 * m * two_u + self.low_squares,
        )

    def merge(self, higher: PairSums) -> PairSums:
        """Return the combined sums of this stretch of the score line and of a higher one.

        Each low row of the lower stretch has the b high rows of the higher one above it, so its doubled placement
        grows by 2b, and Σ(d + 2b)² = Σd² + 4b·Σd + 4b²n over n rows. The a low rows of the lower stretch likewise lie
        below each high row of the higher one. The other rows keep their placements.
        """
        a, b = self.n_low, higher.n_high
        return PairSums(
            self.n_low + higher.n_low,
            self.n_high + higher.n_high,
            self.two_u + higher.two_u + 2 * a * b,
            self.low_squares + 4 * b * self.two_u + 4 * b * b * self.n_low + higher.low_squares,
            self.high_squares + higher.high_squares + 4 * a * higher.two_u + 4 * a * a * higher.n_high,
        )
