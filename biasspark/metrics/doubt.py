"""What a run by bins leaves in doubt, in a sentence: the ledger and the screen say that it was approximate."""

from __future__ import annotations

import pyspark.sql.functions as F
from pyspark.sql import DataFrame, Row

from biasspark.columns import IDENTITY, MODEL, SLICE
from biasspark.config import show_visibly
from biasspark.metrics.statistics import AT_LEAST, AT_MOST
from biasspark.metrics.suite import metric_of_pair


def widest_doubt(statistics: DataFrame) -> DataFrame:
    """Return the one row of u_statistics whose AUC is in most doubt: ``doubt``, its key and metric, and how many AUCs.

    Lazy; of equals the first in the order of the key.
    """
    doubt = F.col(f"auc_{AT_MOST}") - F.col(f"auc_{AT_LEAST}")
    key = F.struct(MODEL, SLICE, IDENTITY, metric_of_pair().alias("metric"), "n_low", "n_high")
    rows = statistics.where(doubt.isNotNull()).select(F.struct((-doubt).alias("order"), key.alias("key")).alias("row"))
    return rows.agg(F.min("row").alias("widest"), F.count("row").alias("n_values")).select(
        (-F.col("widest.order")).alias("doubt"), "widest.key.*", "n_values"
    )


def say_doubt(widest: Row, bins: int) -> str:
    """Say how far apart the bounds of any metric are at most."""
    said = f"ranking: approximate. Scores were sorted into about {bins:,} bins"
    if not widest["n_values"]:
        return f"{said}, and no metric has a value."
    if not widest["doubt"]:
        return f"{said}, which separate all of them: every metric is exact."
    names = ", ".join(show_visibly(widest[name]) for name in (MODEL, SLICE, IDENTITY))
    where = f"{widest['metric']} of {names}, {widest['n_low']:,} x {widest['n_high']:,} rows"
    return (
        f"{said}. The tables give the smallest and the largest possible value of each metric, at most "
        f'{widest["doubt"]:.2g} apart ({where}). For exact values set [ranking] engine = "blocks".'
    )
