"""One row for each model and slice: the overall AUC, and the suite summed up over identities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from biasspark.columns import CROSSED, IDENTITY, MODEL, OVERALL, SLICE, SUMMARISED_AUCS, SUMMARISED_GAPS
from biasspark.config import Intervals, PinnedAuc
from biasspark.expressions.sums import add_up
from biasspark.metrics.intervals import auc_interval
from biasspark.metrics.pinned import PINNED_TERMS, pinned_auc
from biasspark.metrics.statistics import ENDS, auc_columns, ends_of, in_table
from biasspark.metrics.suite import OVERALL_AUC, SUITE, cell_sizes, pivot_pairs
from biasspark.tables.schemas import MODEL_SUMMARY

POWER = -5
"""The exponent of the generalised mean: low values, the identities that a model serves worst, weigh most."""

_, _LEAST, _MOST = ENDS
_SUMMED_UP = tuple(metric for metric in SUITE if metric.name in SUMMARISED_AUCS + SUMMARISED_GAPS)
_METRICS = (*SUMMARISED_AUCS, *SUMMARISED_GAPS, "pinned_auc")


def model_summary(statistics: DataFrame, intervals: Intervals, pinned: PinnedAuc) -> DataFrame:
    """Return one row for each (model, slice) that has an ``(overall)`` row, also where there are no identities.

    Parameters
    ----------
    statistics : DataFrame
        u_statistics as `biasspark.metrics.statistics.with_auc` gives it.
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
        power means)/4, ``pinned_auc_equality_difference``. Each value has its bounds beside it, ``_at_least`` and
        ``_at_most``, and each worst identity the list of all that may be the worst, ``_contenders``.

    Notes
    -----
    Aggregates run over identities, crossed pairs left out. An identity without a value is left out of that aggregate,
    and one that lacks any of the five values is counted in ``n_identities_undefined``. An aggregate over none is NULL,
    and so is a competition score that lacks a part. Of equal identities the one whose name sorts first is named, and
    sums run in the order of names: the bits do not depend on partitions.

    The pinned AUC equality difference is the sum over identities of |AUC - pinned AUC| (Pinned), the latter by its
    closed form (``biasspark.metrics.pinned``); an identity without one is left out.

    Bounds follow from those of the AUCs: minima, maxima and means grow with each of them, and |x - y| has its ends
    where x - y has, or is 0.

    Lazy; no shuffle, as of `biasspark.metrics.suite.bias_metrics`.
    """
    ends = ends_of(statistics)
    summed = _collect_identities(statistics, pinned.include_subgroup_in_background)
    summed = summed.withColumns({_having(metric): _defined(metric) for metric in _METRICS})
    summed = summed.withColumns(
        {
            "interval": auc_interval(F.col("overall"), intervals.level, bounded=len(ends) > 1),
            **{f"{name}_{what}{end}": of(name, end, ends) for name, what, of in _AGGREGATES for end in ends},
        }
    )
    rows = summed.select(
        *(MODEL, SLICE),
        *_overall_columns(auc_columns(statistics)),
        *(f"{name}_{what}{end}" for name, what, _ in _AGGREGATES for end in ends),
        *(column for name in SUMMARISED_AUCS for column in _lowest(name, ends)),
        *(column for name in SUMMARISED_GAPS for column in _furthest(name, ends)),
        _count_undefined().alias("n_identities_undefined"),
        *(_competition_score(end).alias(f"competition_score{end}") for end in ends),
        *(_pinned_difference(end, ends).alias(f"pinned_auc_equality_difference{end}") for end in ends),
    )
    return in_table(rows, MODEL_SUMMARY)


def _collect_identities(statistics: DataFrame, include_subgroup: bool) -> DataFrame:
    """Return for each (model, slice) the struct ``overall`` and the array ``identities``, sorted by name."""
    ends, fields = ends_of(statistics), (*auc_columns(statistics), "n_low", "n_high", "reason")
    by_identity = pivot_pairs(statistics.where(~F.col(CROSSED)), (OVERALL_AUC, *SUITE), fields)
    values = [
        (F.col(metric.name)[f"auc{end}"] - metric.offset).alias(f"{metric.name}{end}")
        for metric in _SUMMED_UP
        for end in ends
    ]
    for end in ends:
        terms = {name: F.col(name)[f"auc{end}"] for name in PINNED_TERMS}
        values.append(pinned_auc(cell_sizes(), terms, include_subgroup).alias(f"pinned_auc{end}"))
    identity = F.struct(IDENTITY, *values)
    return (
        by_identity.groupBy(MODEL, SLICE)
        .agg(
            F.max(OVERALL_AUC.name).alias("overall"),
            F.sort_array(F.collect_list(F.when(F.col(IDENTITY) != OVERALL, identity))).alias("identities"),
        )
        .where(F.col("overall").isNotNull())
    )


def _overall_columns(aucs: Sequence[str]) -> list[Column]:
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
        *(overall[name].alias(name) for name in aucs if name not in ("auc", "auc_variance")),
    ]


def _having(metric: str) -> str:
    """Name the column of the identities that have a value of this metric."""
    return f"having_{metric}"


def _defined(metric: str) -> Column:
    """Return the identities that have a value of this metric, in the order of their names."""
    return F.filter("identities", lambda identity: identity[metric].isNotNull())


def _bounds_of(ends: Sequence[str]) -> Sequence[str]:
    """Return what ends the least and the most: a value without bounds is both."""
    return ends[1:] or (*ends, *ends)


def _values(name: str, end: str) -> Column:
    return F.transform(_having(name), lambda identity: identity[f"{name}{end}"])


def _least(name: str, end: str, _: Sequence[str]) -> Column:
    return F.array_min(_values(name, end))


def _most(name: str, end: str, _: Sequence[str]) -> Column:
    return F.array_max(_values(name, end))


def _power_mean(name: str, end: str, _: Sequence[str]) -> Column:
    """Return (mean of x^p)^(1/p) with p = -5; over a zero it is 0, the limit."""
    values = _values(name, end)
    total = F.aggregate(values, F.lit(0.0), lambda sum_, x: sum_ + F.try_divide(F.lit(1.0), x * x * x * x * x))
    mean = F.try_divide(total, F.size(values).cast("double"))
    return F.when(F.exists(values, lambda x: x == 0), F.lit(0.0)).otherwise(F.pow(mean, F.lit(1 / POWER)))


def _largest(name: str, end: str, ends: Sequence[str]) -> Column:
    return F.array_max(F.transform(_having(name), lambda identity: _size_of(identity, name, end, ends)))


_AGGREGATES: Sequence[tuple[str, str, Callable[[str, str, Sequence[str]], Column]]] = (
    *((name, "min", _least) for name in SUMMARISED_AUCS),
    *((name, "max", _most) for name in SUMMARISED_AUCS),
    *((name, "power_mean", _power_mean) for name in SUMMARISED_AUCS),
    *((name, "max_abs", _largest) for name in SUMMARISED_GAPS),
)
"""Of each metric what is summed up over identities, and how."""


def _lowest(name: str, ends: Sequence[str]) -> list[Column]:
    """Return the identity with the least value, and all that may have it."""

    def rank(identity: Column) -> Column:
        return F.struct(identity[name], identity[IDENTITY])

    lower, upper = _bounds_of(ends)
    bound = F.col(f"{name}_min{upper}")
    return [
        F.array_min(F.transform(_having(name), rank))[IDENTITY].alias(f"{name}_min_identity"),
        _name_all(name, lambda one: one[f"{name}{lower}"] <= bound).alias(f"{name}_min_contenders"),
    ]


def _furthest(name: str, ends: Sequence[str]) -> list[Column]:
    """Return the identity whose gap is furthest from 0, and all that may be it."""

    def rank(identity: Column) -> Column:
        return F.struct((-_size_of(identity, name, "", ends)).alias("order"), identity[IDENTITY])

    lower, upper = _bounds_of(ends)
    bound = F.col(f"{name}_max_abs{lower}")
    return [
        F.array_min(F.transform(_having(name), rank))[IDENTITY].alias(f"{name}_max_abs_identity"),
        _name_all(name, lambda one: _size_of(one, name, upper, ends) >= bound).alias(f"{name}_max_abs_contenders"),
    ]


def _name_all(name: str, chosen: Callable[[Column], Column]) -> Column:
    """Return the names of the identities with a value that are chosen by it; NULL where none has a value."""
    found = F.transform(F.filter(_having(name), chosen), lambda identity: identity[IDENTITY])
    return F.when(F.size(_having(name)) > 0, found)


def _competition_score(end: str) -> Column:
    power_means = [F.col(f"{name}_power_mean{end}") for name in SUMMARISED_AUCS]
    return 0.25 * F.col("overall")[f"auc{end}"] + 0.25 * reduce(Column.__add__, power_means)


def _size_of(identity: Column, name: str, end: str, ends: Sequence[str]) -> Column:
    return _size([identity[f"{name}{own}"] for own in ends], end)


def _size(number: Sequence[Column], end: str) -> Column:
    """Return |x| of a number, or one of its bounds from those of the number."""
    if not end:
        return F.abs(number[0])
    _, least, most = number
    return F.greatest(F.lit(0.0), least, -most) if end == _LEAST else F.greatest(F.abs(least), F.abs(most))


def _count_undefined() -> Column:
    def lacks_a_value(identity: Column) -> Column:
        return reduce(Column.__or__, (identity[metric.name].isNull() for metric in _SUMMED_UP))

    return F.size(F.filter("identities", lacks_a_value)).cast("bigint")


def _pinned_difference(end: str, ends: Sequence[str]) -> Column:
    opposite = {"": "", _LEAST: _MOST, _MOST: _LEAST}

    def term(identity: Column) -> Column:
        return _size([overall[f"auc{own}"] - identity[f"pinned_auc{opposite[own]}"] for own in ends], end)

    overall = F.col("overall")
    terms = F.transform(_having("pinned_auc"), term)
    return F.when(F.size(terms) > 0, add_up(terms))
