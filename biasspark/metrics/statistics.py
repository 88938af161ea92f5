"""AUC and DeLong's variance from the integers that every ranking engine gives back."""

from __future__ import annotations

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

_WHOLE = "decimal(38,0)"


def with_auc(statistics: DataFrame) -> DataFrame:
    """Add ``auc``, ``auc_variance`` and ``reason`` to rows of u_statistics that have only the integers.

    Parameters
    ----------
    statistics : DataFrame
        With ``n_low``, ``n_high`` BIGINT and ``u_doubled``, ``low_square_sum``, ``high_square_sum`` DECIMAL(38,0):
        twice U, and for each cell the sum over its rows of the squared doubled placement against the other cell.

    Returns
    -------
    DataFrame
        All columns, then ``auc`` DOUBLE = 2U / (2·n_low·n_high), in [0, 1], NULL where a cell is empty, and
        ``auc_variance`` DOUBLE by DeLong, DeLong and Clarke-Pearson 1988, NULL where a cell has fewer than two rows,
        and ``reason`` STRING, which names the empty cell, ``no_subgroup_positives``: of two the subgroup's, because
        that is the one the reader asks about, else the low one.

    Notes
    -----
    A cell of m rows against n has the part [m·Σd² - (2U)²] / (4·n²·m²·(m - 1)) of the variance, d being doubled
    placements. The numerator, a difference of two nearly equal numbers, is exact while m·Σd² < 1e38, that is for all
    cells with m·n < 5e18; beyond that it is computed in DOUBLE. No shuffle.
    """
    low, high = F.col("n_low"), F.col("n_high")
    doubled = F.col("u_doubled")
    doubled_pairs = 2 * low.cast(_WHOLE) * high.cast(_WHOLE)
    low_part = _delong_part(low, high, doubled, F.col("low_square_sum"))
    high_part = _delong_part(high, low, doubled, F.col("high_square_sum"))
    return statistics.withColumns(
        {
            "auc": F.try_divide(doubled.cast("double"), doubled_pairs.cast("double")),
            "auc_variance": low_part + high_part,
            "reason": _empty_cell(),
        }
    )


def _empty_cell() -> Column:
    """Return the reason why a pair has no AUC, NULL where both cells have rows."""
    sizes = {"low_cell": F.col("n_low"), "high_cell": F.col("n_high")}
    of_subgroup = [(cell, (size == 0) & F.col(cell).startswith("subgroup")) for cell, size in sizes.items()]
    of_any = [(cell, size == 0) for cell, size in sizes.items()]
    named = [F.when(is_empty, F.concat(F.lit("no_"), cell, F.lit("s"))) for cell, is_empty in of_subgroup + of_any]
    return F.coalesce(*named)


def _delong_part(rows: Column, others: Column, doubled: Column, square_sum: Column) -> Column:
    """Return the part of one cell of ``rows`` rows; dividing by m - 1 = 0 or n = 0 gives NULL."""
    m, n = rows.cast("double"), others.cast("double")
    exact = F.try_subtract(F.try_multiply(rows.cast(_WHOLE), square_sum), F.try_multiply(doubled, doubled))
    rounded = F.greatest(m * square_sum.cast("double") - doubled.cast("double") * doubled.cast("double"), F.lit(0.0))
    return F.try_divide(F.coalesce(exact.cast("double"), rounded), 4 * n * n * m * m * (m - 1))
