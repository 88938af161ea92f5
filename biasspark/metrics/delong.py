"""DeLong's variance of an AUC (DeLong, DeLong and Clarke-Pearson 1988), as columns of Spark and as a fraction.

The variance of the AUC of two cells is the sum of a part of either. That of a cell of m rows against n is

    (m·Σd² - (Σd)²) / (4·n²·m²·(m - 1)),

d being the doubled placements of its rows: for each how many rows of the other cell it is rightly ordered with, times
two, plus ties. So Σd is twice U, from either cell. Only integers are needed, which every ranking engine gives back.

It is written twice, since tables are computed by Spark and kernels compute on whole numbers without it: pyspark is
imported only within the functions that need it. Columns are rounded in a few operations, a fraction is exact.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column

WHOLE = "decimal(38,0)"


def delong_part(n_rows: int, n_others: int, total: int, square_sum: int) -> Fraction:
    """Return the part of one cell, exactly, from Σd and Σd²; it takes two rows or more, and another row."""
    m, n = n_rows, n_others
    return Fraction(m * square_sum - total**2, 4 * n**2 * m**2 * (m - 1))


def delong_part_column(rows: Column, others: Column, total: Column, square_sum: Column) -> Column:
    """Return the part of one cell, NULL for fewer than two rows or no other; Σd and Σd² are DECIMAL(38,0).

    The numerator, a difference of two nearly equal numbers, is exact while m·Σd² < 1e38; beyond that it is computed in
    DOUBLE. Dividing by m - 1 = 0 or n = 0 gives NULL.
    """
    import pyspark.sql.functions as F  # noqa: PLC0415 - kernels, which load this module, load no Spark

    m, n = rows.cast("double"), others.cast("double")
    exact = F.try_subtract(F.try_multiply(rows.cast(WHOLE), square_sum), F.try_multiply(total, total))
    rounded = F.greatest(m * square_sum.cast("double") - total.cast("double") * total.cast("double"), F.lit(0.0))
    return F.try_divide(F.coalesce(exact.cast("double"), rounded), 4 * n * n * m * m * (m - 1))


def delong_variance(rows: tuple[str, str], total: str, square_sums: tuple[str, str]) -> Column:
    """Return DeLong's variance of an AUC from the names of columns: those of the low cell first."""
    import pyspark.sql.functions as F  # noqa: PLC0415 - as above

    (low, high), (of_low, of_high) = map(F.col, rows), map(F.col, square_sums)
    return delong_part_column(low, high, F.col(total), of_low) + delong_part_column(high, low, F.col(total), of_high)
