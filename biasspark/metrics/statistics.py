"""AUC and DeLong's variance from the integers that every ranking engine gives back, and bounds of both.

The integers of bins come with the least and the most that each may be (``biasspark.ranking.bins``); those of exact
engines are their own bounds. U and the sums of squares grow with every pair that is rightly ordered, so their bounds
are reached, all by the same two orders: all pairs of every open bin wrongly ordered, or all rightly.

**Variance.** A row's doubled placement d is known but for e, |e| <= t, t being the rows of the other cell in its open
bin: with all wrongly ordered it is d - t, with all rightly d + t. So Σt² = (Σ(d - t)² + Σ(d + t)²)/2 - Σd². The
part of a cell of m rows against n is the sample variance of d over 4n²m, and standard deviations obey the triangle
inequality: the root of the part is known but for sqrt(Σt² / (4n²m(m - 1))). DeLong's variance is the sum of both parts,
each taken at the one or the other end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from biasspark.columns import MODEL
from biasspark.metrics.delong import WHOLE, delong_part_column
from biasspark.tables.schemas import Table

_ROUNDING = 1e-12
"""Far more than the last bits in which a bound may be rounded."""

AT_LEAST, AT_MOST = "at_least", "at_most"
ENDS = ("", f"_{AT_LEAST}", f"_{AT_MOST}")
"""A value, and the least and the most that it may be."""


def ends_of(statistics: DataFrame) -> tuple[str, ...]:
    """Return which of a value and its bounds statistics have: exact ones are their own bounds, and have none."""
    return ENDS if f"auc_{AT_LEAST}" in statistics.columns else ENDS[:1]


def auc_columns(statistics: DataFrame) -> tuple[str, ...]:
    """Return what `with_auc` added, but for the reason."""
    return tuple(f"{value}{end}" for value in ("auc", "auc_variance") for end in ends_of(statistics))


def in_table(rows: DataFrame, table: Table) -> DataFrame:
    """Return rows with the columns of a table, in its order; bounds that they lack are the value itself."""
    lacking = [name for name in table.value_columns if name not in rows.columns]
    bare = (F.col(name.removesuffix(ENDS[1]).removesuffix(ENDS[2])).alias(name) for name in lacking)
    return rows.select("*", *bare).to(table.value_schema)


def with_auc(statistics: DataFrame) -> DataFrame:
    """Add ``auc``, ``auc_variance`` and ``reason`` to rows of u_statistics that have only the integers.

    Parameters
    ----------
    statistics : DataFrame
        With ``n_low``, ``n_high`` BIGINT and ``u_doubled``, ``low_square_sum``, ``high_square_sum`` DECIMAL(38,0):
        twice U, and for each cell the sum over its rows of the squared doubled placement against the other cell. Sums
        of bins have ``_at_least`` and ``_at_most`` beside each.

    Returns
    -------
    DataFrame
        All columns, then ``auc`` DOUBLE = 2U / (2·n_low·n_high), in [0, 1], NULL where a cell is empty, and
        ``auc_variance`` DOUBLE by DeLong, DeLong and Clarke-Pearson 1988, NULL where a cell has fewer than two rows,
        and ``reason`` STRING, which names the empty cell, ``no_subgroup_positives``: of two the subgroup's, because
        that is the one the reader asks about, else the low one. Of sums with bounds, ``auc`` and ``auc_variance`` have
        theirs, too.

    Notes
    -----
    The variance is made by `biasspark.metrics.delong`; its numerator is exact for cells with m·n < 5e18. No shuffle.
    """
    low, high = F.col("n_low"), F.col("n_high")
    ends = ENDS if f"u_doubled_{AT_LEAST}" in statistics.columns else ENDS[:1]
    doubled_pairs = (2 * low.cast(WHOLE) * high.cast(WHOLE)).cast("double")
    aucs = {f"auc{end}": F.try_divide(F.col(f"u_doubled{end}").cast("double"), doubled_pairs) for end in ends}
    low_part = delong_part_column(low, high, F.col("u_doubled"), F.col("low_square_sum"))
    high_part = delong_part_column(high, low, F.col("u_doubled"), F.col("high_square_sum"))
    variances = {"auc_variance": low_part + high_part}
    if len(ends) > 1:
        of_low = _bound_part(low, high, low_part, "low_square_sum")
        of_high = _bound_part(high, low, high_part, "high_square_sum")
        variances |= {
            f"auc_variance{end}": own + other for end, own, other in zip(ends[1:], of_low, of_high, strict=True)
        }
    return statistics.withColumns(aucs | variances | {"reason": _empty_cell()})


def list_by_model(written: Mapping[str, Iterable[str]]) -> Column:
    """Return the array that belongs to a row's model, of entries as SQL, since each literal is a call to the JVM."""
    chosen = F.lit(None)
    for model, entries in written.items():
        listed = ", ".join(entries)
        chosen = F.when(F.col(MODEL) == F.lit(model), F.expr(f"array({listed})")).otherwise(chosen)
    return chosen


def _empty_cell() -> Column:
    """Return the reason why a pair has no AUC, NULL where both cells have rows."""
    sizes = {"low_cell": F.col("n_low"), "high_cell": F.col("n_high")}
    of_subgroup = [(cell, (size == 0) & F.col(cell).startswith("subgroup")) for cell, size in sizes.items()]
    of_any = [(cell, size == 0) for cell, size in sizes.items()]
    named = [F.when(is_empty, F.concat(F.lit("no_"), cell, F.lit("s"))) for cell, is_empty in of_subgroup + of_any]
    return F.coalesce(*named)


def _bound_part(rows: Column, others: Column, part: Column, square_sum: str) -> tuple[Column, Column]:
    """Return the least and the most that the part of one cell may be: the part itself where nothing is in doubt."""
    m, n = rows.cast("double"), others.cast("double")
    least, most = F.col(f"{square_sum}_{AT_LEAST}"), F.col(f"{square_sum}_{AT_MOST}")
    doubted = (most - F.col(square_sum)) - (F.col(square_sum) - least)  # 2Σt², without the large sum of both
    root, doubt = F.sqrt(part), F.sqrt(F.try_divide(doubted.cast("double"), 8 * n * n * m * (m - 1)))
    ends = (F.greatest(root - doubt, F.lit(0.0)) * (1 - _ROUNDING), (root + doubt) * (1 + _ROUNDING))
    low, high = (F.when(least == most, part).when(part.isNotNull(), end * end) for end in ends)
    return low, high
