"""The bias suite: five metrics and the background AUC, each one U statistic of two cells (Nuanced, section 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from biasspark.columns import (
    BACKGROUND_NEGATIVE,
    BACKGROUND_POSITIVE,
    CROSSED,
    IDENTITY,
    MODEL,
    NEGATIVE,
    OVERALL,
    OVERALL_METRIC,
    POSITIVE,
    SLICE,
    SUBGROUP_NEGATIVE,
    SUBGROUP_POSITIVE,
)
from biasspark.config import Intervals
from biasspark.metrics.intervals import auc_interval
from biasspark.metrics.statistics import auc_columns, ends_of, in_table
from biasspark.tables.schemas import BIAS_METRICS


@dataclass(frozen=True)
class Auc:
    """P(score(high) > score(low)) + P(tie)/2 = U/(n·m), in [0, 1]; 1 is best, 0.5 is chance."""

    name: str
    low: str
    high: str
    offset: ClassVar[float] = 0.0

    @property
    def is_of_row(self) -> Column:
        """Whether a row of u_statistics is of the pair of this metric."""
        return (F.col("low_cell") == F.lit(self.low)) & (F.col("high_cell") == F.lit(self.high))


class Gap(Auc):
    """Average equality gap, U/(n·m) - 1/2, in [-0.5, 0.5]; 0 is best, above it the subgroup scores higher.

    Nuanced, definition 3, whose sign this is.
    """

    offset: ClassVar[float] = 0.5


SUITE = (
    Auc("subgroup_auc", low=SUBGROUP_NEGATIVE, high=SUBGROUP_POSITIVE),
    Auc("bpsn_auc", low=SUBGROUP_NEGATIVE, high=BACKGROUND_POSITIVE),
    Auc("bnsp_auc", low=BACKGROUND_NEGATIVE, high=SUBGROUP_POSITIVE),
    Auc("background_auc", low=BACKGROUND_NEGATIVE, high=BACKGROUND_POSITIVE),
    Gap("negative_aeg", low=BACKGROUND_NEGATIVE, high=SUBGROUP_NEGATIVE),
    Gap("positive_aeg", low=BACKGROUND_POSITIVE, high=SUBGROUP_POSITIVE),
)
"""To add a metric is to add a line here, for any two of the four cells."""

OVERALL_AUC = Auc(OVERALL_METRIC, low=NEGATIVE, high=POSITIVE)
"""The AUC of a whole slice, of the identity ``(overall)``."""

BY_NAME = {metric.name: metric for metric in (OVERALL_AUC, *SUITE)}
"""The metrics of all rows of u_statistics."""


def metric_of_pair() -> Column:
    """Return the metric that a row of u_statistics is of, ``auc`` for the pair of a whole slice."""
    found = F.lit(None).cast("string")
    for name, metric in BY_NAME.items():
        found = F.when(metric.is_of_row, F.lit(name)).otherwise(found)
    return found


def bias_metrics(statistics: DataFrame, intervals: Intervals) -> DataFrame:
    """Return one row for each (model, slice, identity) with every metric of the suite.

    Parameters
    ----------
    statistics : DataFrame
        u_statistics as `biasspark.metrics.statistics.with_auc` gives it: six rows per identity; ``(overall)`` rows are
        passed over.
    intervals : Intervals
        The level of the intervals.

    Returns
    -------
    DataFrame
        ``model, slice, identity, crossed``, the sizes of the four cells, the rate of positives in subgroup and
        background (NULL where there are no rows), and for each X of the suite ``X, X_low, X_high, X_method, X_reason,
        X_at_least, X_at_most``. X is NULL where its pair has no AUC, and X_reason is that of the pair. The last two are
        X itself where it is exact. Never NaN or -0.0.

    Notes
    -----
    Lazy; no shuffle: the statistics are taken into one partition.
    """
    ends = ends_of(statistics)
    pair = F.struct(*auc_columns(statistics), "n_low", "n_high")
    interval = auc_interval(pair, intervals.level, bounded=len(ends) > 1)
    measured = statistics.where(F.col(IDENTITY) != OVERALL).withColumn("interval", interval)
    wide = pivot_pairs(measured, SUITE, (*(f"auc{end}" for end in ends), "n_low", "n_high", "interval", "reason"))
    rows = wide.select(
        *(MODEL, SLICE, IDENTITY, CROSSED),
        *(size.alias(f"n_{cell}") for cell, size in cell_sizes().items()),
        _positive_rate("subgroup").alias("subgroup_positive_rate"),
        _positive_rate("background").alias("background_positive_rate"),
        *(column for metric in SUITE for column in _metric_columns(metric, ends)),
    )
    return in_table(rows, BIAS_METRICS)


def pivot_pairs(statistics: DataFrame, metrics: Sequence[Auc], fields: Sequence[str]) -> DataFrame:
    """Return one row per identity with each metric's pair's ``fields`` as a struct, NULL where there is none."""
    values = F.struct(*fields)
    picked = (F.max(F.when(metric.is_of_row, values)).alias(metric.name) for metric in metrics)
    # A table that does not grow with the corpus: in one partition, no group needs a shuffle.
    return statistics.coalesce(1).groupBy(MODEL, SLICE, IDENTITY, CROSSED).agg(*picked)


def cell_sizes() -> dict[str, Column]:
    """Return the sizes of the four cells of an identity as columns of a pivoted row with ``n_low`` and ``n_high``."""
    subgroup, background = F.col("subgroup_auc"), F.col("background_auc")
    return {
        SUBGROUP_NEGATIVE: subgroup["n_low"],
        SUBGROUP_POSITIVE: subgroup["n_high"],
        BACKGROUND_NEGATIVE: background["n_low"],
        BACKGROUND_POSITIVE: background["n_high"],
    }


def _metric_columns(metric: Auc, ends: Sequence[str]) -> list[Column]:
    pair, name = F.col(metric.name), metric.name
    interval = pair["interval"]
    return [
        *((pair[f"auc{end}"] - metric.offset).alias(f"{name}{end}") for end in ends),
        (interval["low"] - metric.offset).alias(f"{name}_low"),
        (interval["high"] - metric.offset).alias(f"{name}_high"),
        interval["method"].alias(f"{name}_method"),
        pair["reason"].alias(f"{name}_reason"),
    ]


def _positive_rate(side: str) -> Column:
    negative, positive = cell_sizes()[f"{side}_negative"], cell_sizes()[f"{side}_positive"]
    return F.try_divide(positive.cast("double"), (negative + positive).cast("double"))
