"""Every row's share of the AUC (Attributing, sections 5.1 and 5.2): RANKED rows -> example attributions."""

from __future__ import annotations

import pyspark.sql.functions as F
from pyspark.sql import DataFrame

from biasspark.columns import LABEL, MODEL, N_OPPOSITE, ORDERED_DOUBLED, ROW_ID, SCORE, SLICE


def example_attributions(ranked: DataFrame) -> DataFrame:
    """Return the table ``example_attributions``, less the run's columns.

    AUC is the share of rightly ordered (positive, negative) pairs, ties half. Half of each pair's credit goes to its
    positive, half to its negative: a row that is rightly ordered with d/2 of its m opposite rows has the attribution
    d/4, and normalized d/(4m). The attributions of all rows add up to p·n·AUC; the normalized ones have the mean AUC/2
    over the positives, and over the negatives.

    Parameters
    ----------
    ranked : DataFrame
        RANKED rows, with ``row_id``.
    """
    return ranked.select(
        *(MODEL, SLICE, F.col(ROW_ID).cast("string").alias(ROW_ID), LABEL, SCORE, N_OPPOSITE, ORDERED_DOUBLED),
        (F.col(ORDERED_DOUBLED) / 4).alias("attribution"),
        (F.col(ORDERED_DOUBLED).cast("double") / F.nullif(4 * F.col(N_OPPOSITE), F.lit(0))).alias(
            "normalized_attribution"
        ),
    )
