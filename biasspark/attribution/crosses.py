"""AUC and headroom of every cross of groups (Attributing, sections 6.1 to 6.3), from counts of pairs."""

from __future__ import annotations

import pyspark.sql.functions as F
from pyspark.sql import DataFrame, Window

from biasspark.columns import MODEL, ORDERED_DOUBLED, SLICE
from biasspark.metrics.delong import delong_variance
from biasspark.metrics.intervals import with_auc_interval

_WHOLE = "decimal(38,0)"


def auc_crosses(crosses: DataFrame, level: float) -> DataFrame:
    """Return the table ``auc_crosses``, less the run's columns.

    For positives of group i and negatives of group j: AUC = U/(n_i m_j), the share of rightly ordered pairs, ties half,
    and headroom = n_i m_j - U, the wrongly ordered ones. The headroom of all crosses over all pairs is 1 - AUC. Its
    interval is that of the AUC of any two cells.

    Parameters
    ----------
    crosses : DataFrame
        As `biasspark.ranking.cross_engine.cross_pairs` gives them.
    level : float
        Of the intervals.
    """
    whole = Window.partitionBy(MODEL, SLICE, "grouping").rowsBetween(
        Window.unboundedPreceding, Window.unboundedFollowing
    )
    n_pairs = (F.col("n_positive").cast("decimal(19,0)") * F.col("n_negative").cast("decimal(19,0)")).cast(_WHOLE)
    wrong = 2 * n_pairs - F.col(ORDERED_DOUBLED)
    counted = crosses.withColumns({"n_pairs": n_pairs, "wrong_doubled": wrong.cast(_WHOLE)})
    all_wrong = F.sum("wrong_doubled").over(whole).cast("double")
    squares = ("low_square_sum", "high_square_sum")
    counted = counted.withColumns(
        {
            "all_wrong": all_wrong,
            "auc": F.try_divide(F.col(ORDERED_DOUBLED).cast("double"), 2 * F.col("n_pairs").cast("double")),
            "auc_variance": delong_variance(("n_negative", "n_positive"), ORDERED_DOUBLED, squares),
        }
    )
    return with_auc_interval(counted, F.col("n_negative"), F.col("n_positive"), level).select(
        *(MODEL, SLICE, "grouping", "positive_group", "negative_group", "n_positive", "n_negative", "n_pairs"),
        *(ORDERED_DOUBLED, "auc", "auc_low", "auc_high", "auc_variance", "auc_method"),
        (F.col("wrong_doubled").cast("double") / 2).alias("headroom_pairs"),
        F.try_divide(F.col("wrong_doubled").cast("double"), F.col("all_wrong")).alias("headroom_share"),
    )
