"""One row for each model and slice: the overall AUC, and the suite summed up over identities."""

from __future__ import annotations

from functools import reduce

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from biasspark.columns import (
    CROSSED,
    IDENTITY,
    MODEL,
    OVERALL,
    SLICE,
    SUMMARISED_AUCS,
    SUMMARISED_GAPS,
)
from biasspark.config import Intervals, PinnedAuc
from biasspark.metrics.intervals import auc_interval
from biasspark.metrics.pinned import PINNED_TERMS, pinned_auc
from biasspark.metrics.suite import OVERALL_AUC, SUITE, cell_sizes, pivot_pairs

POWER = -5
"""The exponent of the generalised mean: low values, the identities that a model serves worst, weigh most."""

_SUMMED_UP = tuple(metric for metric in SUITE if metric.name in SUMMARISED_AUCS + SUMMARISED_GAPS)


def model_summary(statistics: DataFrame, intervals: Intervals, pinned: PinnedAuc) -> DataFrame:
    """Return one row for each (model, slice) that has an ``(overall)`` row, also where there are no identities.

    Parameters
    ----------
    statistics : DataFrame
        u_statistics with ``auc``, ``auc_variance`` and ``reason``.
    intervals : Intervals
        The level of the interval of the overall AUC.
    pinned : PinnedAuc
        How the background of the pinned AUC is drawn.

    Returns
    -------
    DataFrame
        ``model, slice, n_negative, n_positive``; ``auc`` with low, high, variance, method and reason; for each AUC of
        the suite but the background's its ``_min``, ``_min_identity``, ``_max`` and ``_power_mean``; for each gap its
        ``_max_abs`` and ``_max_abs_identity``; ``n_identities_undefined``, ``competition_score`` = (AUC + the three
        power means)/4, ``pinned_auc_equality_difference``.

    Notes
    -----
    Aggregates run over identities, crossed pairs left out. An identity without a value is left out of that aggregate,
    and one that lacks any of the five values is counted in ``n_identities_undefined``. An aggregate over none is NULL,
    and so is a competition score that lacks a part. Of equal identities the one whose name sorts first is named, and
    sums run in the order of names: the bits do not depend on partitions.

    The pinned AUC equality difference is the sum over identities of |AUC - pinned AUC| (Pinned), the latter by its
    closed form (``biasspark.metrics.pinned``); an identity without one is left out.

    Lazy; no shuffle, as of `biasspark.metrics.suite.bias_metrics`.
    """
    summed = _collect_identities(statistics, pinned.include_subgroup_in_background).withColumn(
        "interval", auc_interval(F.col("overall"), intervals.level)
    )
    power_means = [_power_mean(name) for name in SUMMARISED_AUCS]
    return summed.select(
        *(MODEL, SLICE),
        *_overall_columns(),
        *(
            column
            for name, power_mean in zip(SUMMARISED_AUCS, power_means, strict=True)
            for column in _extremes(name, power_mean)
        ),
        *(column for name in SUMMARISED_GAPS for column in _largest_gap(name)),
        _count_undefined().alias("n_identities_undefined"),
        (0.25 * F.col("overall")["auc"] + 0.25 * reduce(Column.__add__, power_means)).alias("competition_score"),
        _pinned_difference().alias("pinned_auc_equality_difference"),
    )


def _collect_identities(statistics: DataFrame, include_subgroup: bool) -> DataFrame:
    """Return for each (model, slice) the struct ``overall`` and the array ``identities``, sorted by name."""
    fields = ("auc", "auc_variance", "n_low", "n_high", "reason")
    by_identity = pivot_pairs(statistics.where(~F.col(CROSSED)), (OVERALL_AUC, *SUITE), fields)
    pinned = pinned_auc(cell_sizes(), {name: F.col(name)["auc"] for name in PINNED_TERMS}, include_subgroup)
    values = [(F.col(metric.name)["auc"] - metric.offset).alias(metric.name) for metric in _SUMMED_UP]
    identity = F.struct(IDENTITY, *values, pinned.alias("pinned_auc"))
    return (
        by_identity.groupBy(MODEL, SLICE)
        .agg(
            F.max(OVERALL_AUC.name).alias("overall"),
            F.sort_array(F.collect_list(F.when(F.col(IDENTITY) != OVERALL, identity))).alias("identities"),
        )
        .where(F.col("overall").isNotNull())
    )


def _overall_columns() -> list[Column]:
    overall, interval = F.col("overall"), F.col("interval")
    return [
        overall["n_low"].alias("n_negative"),
        overall["n_high"].alias("n_positive"),
        overall["auc"].alias("auc"),
        interval["low"].alias("auc_low"),
        interval["high"].alias("auc_high"),
        overall["auc_variance"].alias("auc_variance"),
        interval["method"].alias("auc_method"),
        overall["reason"].alias("auc_reason"),
    ]


def _defined(name: str) -> Column:
    """Return the identities that have a value of this metric, in the order of their names."""
    return F.filter("identities", lambda identity: identity[name].isNotNull())


def _extremes(name: str, power_mean: Column) -> list[Column]:
    lowest = F.array_min(F.transform(_defined(name), lambda identity: F.struct(identity[name], identity[IDENTITY])))
    return [
        lowest[name].alias(f"{name}_min"),
        lowest[IDENTITY].alias(f"{name}_min_identity"),
        F.array_max(F.transform(_defined(name), lambda identity: identity[name])).alias(f"{name}_max"),
        power_mean.alias(f"{name}_power_mean"),
    ]


def _power_mean(name: str) -> Column:
    """Return (mean of x^p)^(1/p) with p = -5; over a zero it is 0, the limit."""
    values = F.transform(_defined(name), lambda identity: identity[name])
    total = F.aggregate(values, F.lit(0.0), lambda sum_, x: sum_ + F.try_divide(F.lit(1.0), x * x * x * x * x))
    mean = F.try_divide(total, F.size(values).cast("double"))
    return F.when(F.exists(values, lambda x: x == 0), F.lit(0.0)).otherwise(F.pow(mean, F.lit(1 / POWER)))


def _largest_gap(name: str) -> list[Column]:
    def rank(identity: Column) -> Column:
        size = F.abs(identity[name])
        return F.struct((-size).alias("order"), identity[IDENTITY], size.alias("size"))

    largest = F.array_min(F.transform(_defined(name), rank))
    return [largest["size"].alias(f"{name}_max_abs"), largest[IDENTITY].alias(f"{name}_max_abs_identity")]


def _count_undefined() -> Column:
    def lacks_a_value(identity: Column) -> Column:
        return reduce(Column.__or__, (identity[metric.name].isNull() for metric in _SUMMED_UP))

    return F.size(F.filter("identities", lacks_a_value)).cast("bigint")


def _pinned_difference() -> Column:
    terms = F.transform(
        _defined("pinned_auc"), lambda identity: F.abs(F.col("overall")["auc"] - identity["pinned_auc"])
    )
    return F.when(F.size(terms) > 0, F.aggregate(terms, F.lit(0.0), lambda sum_, term: sum_ + term))
