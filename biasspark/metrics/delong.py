"""DeLong's variance of an AUC from integers (DeLong, DeLong and Clarke-Pearson, Biometrics 1988, 44:837). numpy only.

The variance of the AUC of two cells is the sum of one part per cell. The part of a cell of m rows against n is

    (m·Σd² - (Σd)²) / (4·n²·m²·(m - 1)),

where d are the doubled placements of its rows: for each row, twice the rows of the other cell with which it is
correctly ordered, plus ties. Σd is twice U for both cells. Every ranking engine returns these integers.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from biasspark.arrays import BigInts, Floats, divide


def delong_part(n_rows: int, n_opposite: int, two_u: int, sum_sq: int) -> Fraction:
    """Return the exact part of one cell of m >= 2 rows against n >= 1 rows, from Σd and Σd²."""
    m, n = n_rows, n_opposite
    return Fraction(m * sum_sq - two_u**2, 4 * n**2 * m**2 * (m - 1))


def delong_variance(
    n_low: BigInts, n_high: BigInts, two_u: BigInts, sum_sq_low: BigInts, sum_sq_high: BigInts
) -> Floats:
    """Return the variance of each AUC, 0 or more; NaN where a cell has fewer than two rows.

    The parameters are Python integers: sizes of the two cells, twice U, and Σd² of each cell. The numerators,
    differences of two nearly equal numbers, are exact at any size.
    """
    return _part(n_low, n_high, two_u, sum_sq_low) + _part(n_high, n_low, two_u, sum_sq_high)


def _part(n_rows: BigInts, n_opposite: BigInts, two_u: BigInts, sum_sq: BigInts) -> Floats:
    numerator = (n_rows * sum_sq - two_u * two_u).astype(np.float64)
    m, n = n_rows.astype(np.float64), n_opposite.astype(np.float64)
    return divide(numerator, 4 * n * n * m * m * (m - 1))
