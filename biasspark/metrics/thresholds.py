"""Right and wrong decisions at thresholds, and how unequal they are (Mitigating; Dixon et al. 2018).

Exact: at a threshold, all that counts is how many rows of each cell reach it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from biasspark.columns import (
    BACKGROUND_NEGATIVE,
    BACKGROUND_POSITIVE,
    CROSSED,
    IDENTITY,
    MODEL,
    OVERALL,
    RATES,
    SLICE,
    SUBGROUP_NEGATIVE,
    SUBGROUP_POSITIVE,
    WITHHELD,
)
from biasspark.config import Intervals
from biasspark.distributions import normal_quantile
from biasspark.expressions.sums import add_up
from biasspark.metrics.statistics import list_by_model

DECISIONS = ("n_true_positive", "n_false_positive", "n_true_negative", "n_false_negative")
SHARES = {
    "tpr": (("n_true_positive",), ("n_true_positive", "n_false_negative")),
    "fpr": (("n_false_positive",), ("n_false_positive", "n_true_negative")),
    "tnr": (("n_true_negative",), ("n_false_positive", "n_true_negative")),
    "fnr": (("n_false_negative",), ("n_true_positive", "n_false_negative")),
    "precision": (("n_true_positive",), ("n_true_positive", "n_false_positive")),
    "selection_rate": (("n_true_positive", "n_false_positive"), DECISIONS),
}
"""Each rate as the decisions that it counts, of the decisions that it counts them among."""

BACKGROUND = "background_"

Share: TypeAlias = tuple[Column, Column]
"""What a rate counts, and among how many, as doubles."""


@dataclass(frozen=True)
class At:
    """Thresholds, and for each model the place of every one of them among the edges at which rows were counted.

    A row is decided positive where its score is at or above a threshold.
    """

    thresholds: Sequence[float]
    places: Mapping[str, Sequence[int]]


def threshold_rates(reached: DataFrame, at: At, intervals: Intervals) -> DataFrame:
    """Return one row for each (model, slice, identity, threshold): decisions, rates, and gaps to the background.

    Parameters
    ----------
    reached : DataFrame
        `Ranking.reached`.
    at : At
        The thresholds.
    intervals : Intervals
        The level of the intervals of the gaps.

    Returns
    -------
    DataFrame
        The table ``threshold_rates``, less the run's columns. A rate over no rows is NULL, and so is its gap; so is all
        of a row whose counts are NULL, which are withheld.

    Notes
    -----
    A gap is p - q of two independent proportions; its interval is Newcombe's hybrid score interval (Statistics in
    Medicine 1998, 17:873, method 10): with the Wilson intervals (l, u) of p and (m, v) of q,
    p - q - sqrt((p - l)² + (v - q)²) to p - q + sqrt((u - p)² + (q - m)²). It stays within [-1, 1], and holds where a
    rate is 0 or 1. Lazy; no shuffle.
    """
    rows = _decide(reached, at).where(F.col(IDENTITY) != OVERALL)
    z = normal_quantile(intervals.level)
    return rows.select(
        *(MODEL, SLICE, IDENTITY, "threshold", CROSSED),
        *(f"{side}{decision}" for side in ("", BACKGROUND) for decision in DECISIONS),
        *(column for name in RATES for column in _rate_columns(name, z)),
        F.when(F.col(DECISIONS[0]).isNull(), F.lit(WITHHELD)).alias("reason"),
    )


def threshold_summary(reached: DataFrame, at: At) -> DataFrame:
    """Return one row for each (model, slice, threshold): error rates of the slice, and the equality differences.

    The False Positive Equality Difference is the sum over identities of |FPR - FPR_g|, FPR that of the whole slice, the
    False Negative Equality Difference likewise (Dixon et al. 2018). Crossed pairs are left out, and identities without
    the rate; without any it is NULL. Sums run in the order of names, so that the bits do not depend on partitions.
    Takes what `threshold_rates` takes. Lazy; no shuffle.
    """
    errors = ("fpr", "fnr")
    rows = _decide(reached.coalesce(1), at).where(~F.col(CROSSED))
    of_slice = F.struct(*(_share(name, BACKGROUND).alias(name) for name in errors))
    of_identity = F.struct(IDENTITY, *(_share(name, "").alias(name) for name in errors))
    by_threshold = rows.groupBy(MODEL, SLICE, "threshold").agg(
        F.max(F.when(F.col(IDENTITY) == OVERALL, of_slice)).alias("overall"),
        F.sort_array(F.collect_list(F.when(F.col(IDENTITY) != OVERALL, of_identity))).alias("identities"),
    )
    return by_threshold.select(
        *(MODEL, SLICE, "threshold"),
        *(F.col("overall")[name].alias(name) for name in errors),
        _equality_difference("fpr").alias("false_positive_equality_difference"),
        _equality_difference("fnr").alias("false_negative_equality_difference"),
    )


def _decide(reached: DataFrame, at: At) -> DataFrame:
    """Return the four decisions of both sides at every threshold; of ``(overall)`` the background's are the slice's."""
    marked = reached.withColumn("mark", F.explode(_marks(at)))
    columns = {}
    for side, negative, positive in (
        ("", SUBGROUP_NEGATIVE, SUBGROUP_POSITIVE),
        (BACKGROUND, BACKGROUND_NEGATIVE, BACKGROUND_POSITIVE),
    ):
        columns[f"{side}n_true_positive"] = _reaching(positive)
        columns[f"{side}n_false_positive"] = _reaching(negative)
        columns[f"{side}n_true_negative"] = F.element_at(negative, 1) - _reaching(negative)
        columns[f"{side}n_false_negative"] = F.element_at(positive, 1) - _reaching(positive)
    return marked.select(
        *(MODEL, SLICE, IDENTITY, CROSSED, F.col("mark.threshold").alias("threshold")),
        *(count.alias(name) for name, count in columns.items()),
    )


def _marks(at: At) -> Column:
    """Return the thresholds of a row's model with their places."""

    def write_mark(threshold: float, place: int) -> str:
        return f"named_struct('threshold', {threshold!r}D, 'place', {place})"

    return list_by_model({name: map(write_mark, at.thresholds, own) for name, own in at.places.items()})


def _reaching(cell: str) -> Column:
    """Return how many rows of a cell reach the threshold; the first entry of the array counts them all."""
    return F.element_at(cell, F.col("mark.place") + 2)


def _share(name: str, side: str) -> Column:
    return F.try_divide(*count_rate(name, side))


def count_rate(name: str, side: str = "") -> Share:
    """Return of a rate how many decisions are counted, of how many; `side` is `BACKGROUND` for the background's."""
    counted, among = (
        reduce(Column.__add__, (F.col(f"{side}{kind}") for kind in kinds)).cast("double") for kinds in SHARES[name]
    )
    return counted, among


def _rate_columns(name: str, z: float) -> list[Column]:
    own, other = _share(name, ""), _share(name, BACKGROUND)
    low, high = bound_gap(count_rate(name), count_rate(name, BACKGROUND), z)
    return [
        own.alias(name),
        other.alias(f"{BACKGROUND}{name}"),
        (own - other).alias(f"{name}_gap"),
        low.alias(f"{name}_gap_low"),
        high.alias(f"{name}_gap_high"),
    ]


def bound_gap(own: Share, other: Share, z: float) -> tuple[Column, Column]:
    """Return the ends of Newcombe's interval of the gap of two rates; NULL where one is over no rows."""
    p, q = F.try_divide(*own), F.try_divide(*other)
    (own_low, own_high), (other_low, other_high) = bound_rate(own, z), bound_rate(other, z)
    gap = p - q
    return gap - _length(p - own_low, other_high - q), gap + _length(own_high - p, q - other_low)


def bound_rate(share: Share, z: float) -> tuple[Column, Column]:
    """Return the ends of Wilson's interval, (2x + z² ± z·sqrt(z² + 4x(1 - x/n))) / (2n + 2z²), within [0, 1].

    NULL where the rate is over no rows.
    """
    counted, among = share
    half = z * F.sqrt(z * z + 4 * counted * (1 - F.try_divide(counted, among)))
    low, high = ((2 * counted + z * z + sign * half) / (2 * among + 2 * z * z) for sign in (-1, 1))
    return F.when(among > 0, F.greatest(low, F.lit(0.0))), F.when(among > 0, F.least(high, F.lit(1.0)))


def _length(x: Column, y: Column) -> Column:
    return F.sqrt(x * x + y * y)


def _equality_difference(name: str) -> Column:
    defined = F.filter("identities", lambda identity: identity[name].isNotNull())
    terms = F.transform(defined, lambda identity: F.abs(F.col("overall")[name] - identity[name]))
    return F.when(F.size(terms) > 0, add_up(terms))
