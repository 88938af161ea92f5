"""The class-skew experiment: pinned AUC moves with the class balance, the suite stands still (Pinned, section 3).

Dropping rows of one cell changes no order of scores. So a trial ranks nothing anew: an AUC over the rows that are kept
is a sum over their placements, and the pinned AUC is a weighted mean of four AUCs.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, Window

from biasspark.columns import FOUR_CELLS, IDENTITY, MODEL, SLICE, SUMMARISED_AUCS
from biasspark.config import PinnedSkew
from biasspark.metrics.pinned import PINNED_TERMS, pinned_auc
from biasspark.metrics.suite import SUITE, Auc, cell_sizes, pivot_pairs

_GROUP = (MODEL, SLICE)
_TRIAL = (*_GROUP, "trial")
_TERMS = tuple(metric for metric in SUITE if metric.name in PINNED_TERMS)
_TIE_BITS = 12
_BUCKET_BITS = 10
_WHOLE = "decimal(38,0)"


def pinned_skew(statistics: DataFrame, ranks: DataFrame, skew: PinnedSkew, include_subgroup: bool = True) -> DataFrame:
    """Return the table ``pinned_skew``, less the run's columns: one row for each (model, slice).

    Parameters
    ----------
    statistics : DataFrame
        u_statistics with ``auc``, the rows of the identity among them.
    ranks : DataFrame
        Of the identity, for each (model, slice, score): ``score``, and of each of the four cells, under its name and
        that with ``_below`` and ``_above``, the rows at the score, below and above it.
    skew : PinnedSkew
        Identity, cell, and how much of the cell is dropped how often.
    include_subgroup : bool
        How the background of the pinned AUC is drawn, as in `biasspark.metrics.pinned.pinned_weights`.

    Returns
    -------
    DataFrame
        Each trial drops d = fraction·n of the n rows of the cell, halves rounded up. ``pinned_auc_skewed`` is the
        closed form: the four AUCs of all rows, weighted as if the cell had n - d rows; its difference to the mean over
        trials is noise. All in [0, 1], never NaN. An AUC over an empty cell is NULL and weighs nothing.

    Notes
    -----
    A trial keeps the n - d rows with the lowest hashes of (seed, trial, model, slice, score, place among ties). Rows
    that tie have one placement, so which of them has which place is of no account, and a result depends on the rows
    alone, not on their order or partitions. An AUC that does not involve the cell is its value before, to the bit.

    Lazy. The lowest hashes are found without sorting, by counting them in buckets: n·trials hashes are computed twice
    where they are, and 1024·trials rows a (model, slice) are shuffled at the most.
    """
    sums = [_doubled(metric) for metric in _TERMS if skew.cell in (metric.low, metric.high)]
    trials = _sum_kept(_draw(_list_rows(ranks, skew.cell), skew), skew, sums)
    collected = trials.groupBy(*_GROUP).agg(F.sort_array(F.collect_list(F.struct("trial", *sums))).alias("trials"))
    rows = _measure_all_rows(statistics, skew, include_subgroup).join(collected, on=list(_GROUP), how="left")
    # A cell of which nothing is kept has no row in any trial.
    nothing = F.struct(F.lit(0).alias("trial"), *(F.lit(None).cast(_WHOLE).alias(name) for name in sums))
    summed = F.coalesce("trials", F.array_repeat(nothing, skew.trials))
    measured = F.transform(summed, lambda trial: _measure_trial(trial, skew.cell, include_subgroup))
    sampled = {name: _mean_and_sd(name, skew.trials) for name in ("pinned_auc", *SUMMARISED_AUCS)}
    return rows.withColumn("in_trials", measured).select(
        *_GROUP,
        F.lit(skew.identity).alias(IDENTITY),
        F.lit(skew.cell).alias("cell"),
        F.lit(skew.fraction).alias("fraction"),
        F.col(skew.cell).alias("n_rows"),
        "n_dropped",
        F.lit(skew.trials).alias("trials"),
        *("pinned_auc", "pinned_auc_skewed", *sampled["pinned_auc"]),
        *(column for name in SUMMARISED_AUCS for column in (F.col(name), *sampled[name])),
    )


def _measure_all_rows(statistics: DataFrame, skew: PinnedSkew, include_subgroup: bool) -> DataFrame:
    """Return for each (model, slice) the cells, the four AUCs, how many rows to drop, and pinned AUC by closed form."""
    own = pivot_pairs(statistics.where(F.col(IDENTITY) == F.lit(skew.identity)), _TERMS, ("auc", "n_low", "n_high"))
    sizes, aucs = cell_sizes(), {metric.name: F.col(metric.name)["auc"] for metric in _TERMS}
    columns = {**sizes, **aucs, "n_dropped": _round_half_up(skew.fraction, sizes[skew.cell])}
    plain = own.select(*_GROUP, *(column.alias(name) for name, column in columns.items()))
    terms = {name: F.col(name) for name in PINNED_TERMS}
    return plain.select(
        "*",
        pinned_auc({cell: F.col(cell) for cell in FOUR_CELLS}, terms, include_subgroup).alias("pinned_auc"),
        pinned_auc(_sizes_left(skew.cell), terms, include_subgroup).alias("pinned_auc_skewed"),
    )


def _round_half_up(fraction: float, rows: Column) -> Column:
    """Return so much of the rows in exact decimals: 0.29 of 50 is 14.5, and in binary a little less."""
    written = f"{Decimal(repr(fraction)):.18f}"
    return F.round(F.lit(written).cast("decimal(18,18)") * rows.cast("decimal(19,0)"), 0).cast("bigint")


def _sizes_left(cell: str) -> dict[str, Column]:
    return {name: F.col(name) - F.col("n_dropped") if name == cell else F.col(name) for name in FOUR_CELLS}


def _doubled(metric: Auc) -> str:
    return f"{metric.name}_doubled"


def _list_rows(ranks: DataFrame, cell: str) -> DataFrame:
    """Return one row a row of the cell: its score, its place among its ties, and its doubled placements."""
    involved = [metric for metric in _TERMS if cell in (metric.low, metric.high)]
    placements = [_doubled_placement(metric, cell).alias(_doubled(metric)) for metric in involved]
    n_ties, zero = F.col("n_ties"), F.lit(0).cast("bigint")
    # In two steps: one score may be that of most rows of a corpus, and an array of them all would not fit.
    runs = ranks.where(F.col(cell) > 0).select(*_GROUP, "score", F.col(cell).alias("n_ties"), *placements)
    runs = runs.withColumn("run", F.explode(F.sequence(zero, F.shiftright(n_ties - 1, _TIE_BITS))))
    first = F.shiftleft("run", _TIE_BITS)
    ties = F.sequence(first, F.least(first + ((1 << _TIE_BITS) - 1), n_ties - 1))
    return runs.withColumn("tie", F.explode(ties)).drop("run", "n_ties")


def _doubled_placement(metric: Auc, cell: str) -> Column:
    """Return twice the rows of the other cell that a row of this one is rightly ordered with, plus the ties."""
    if cell == metric.high:
        return 2 * F.col(f"{metric.low}_below") + F.col(metric.low)
    return 2 * F.col(f"{metric.high}_above") + F.col(metric.high)


def _draw(rows: DataFrame, skew: PinnedSkew) -> DataFrame:
    """Return every row once a trial, with the number by which the trial draws it and that number's bucket."""
    tried = rows.withColumn("trial", F.explode(F.sequence(F.lit(1), F.lit(skew.trials))))
    number = F.xxhash64(F.lit(skew.seed).cast("bigint"), "trial", *_GROUP, "score", "tie")
    return tried.withColumn("draw", number).withColumn("bucket", F.shiftright("draw", 64 - _BUCKET_BITS))


def _sum_kept(drawn: DataFrame, skew: PinnedSkew, sums: Sequence[str]) -> DataFrame:
    """Return for each trial the sums over its lowest draws, as many as are kept; no row of a trial that keeps none."""
    in_buckets = drawn.groupBy(*_TRIAL, "bucket").agg(
        F.count(F.lit(1)).alias("n_drawn"), *(F.sum(name).alias(name) for name in sums)
    )
    in_trial = Window.partitionBy(*_TRIAL)
    every = in_trial.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    lower = in_trial.orderBy("bucket").rowsBetween(Window.unboundedPreceding, -1)
    n_rows, n_lower = F.sum("n_drawn").over(every), F.coalesce(F.sum("n_drawn").over(lower), F.lit(0))
    filled = in_buckets.select(
        *(*_TRIAL, "bucket", "n_drawn"),
        (n_rows - _round_half_up(skew.fraction, n_rows) - n_lower).alias("room"),
        *(F.coalesce(F.sum(F.col(name).cast(_WHOLE)).over(lower), F.lit(0)).alias(_lower(name)) for name in sums),
    )
    # Lower buckets are kept whole, higher ones not at all: only the rows of this one are looked at again.
    last = filled.where((F.col("room") > 0) & (F.col("room") <= F.col("n_drawn"))).drop("n_drawn")
    place = F.row_number().over(in_trial.orderBy("draw", "score", "tie"))
    in_last = drawn.join(F.broadcast(last), on=[*_TRIAL, "bucket"]).withColumn("place", place)
    return (
        in_last.where(F.col("place") <= F.col("room"))
        .groupBy(*_TRIAL)
        .agg(*((F.max(_lower(name)) + F.sum(name)).cast(_WHOLE).alias(name) for name in sums))
    )


def _lower(name: str) -> str:
    return f"{name}_in_lower_buckets"


def _measure_trial(trial: Column, cell: str, include_subgroup: bool) -> Column:
    """Return the four AUCs of a trial and its pinned AUC as a struct."""
    sizes = _sizes_left(cell)
    aucs = {metric.name: _auc_of_kept(metric, trial, sizes, cell) for metric in _TERMS}
    pinned = pinned_auc(sizes, aucs, include_subgroup)
    return F.struct(pinned.alias("pinned_auc"), *(auc.alias(name) for name, auc in aucs.items()))


def _auc_of_kept(metric: Auc, trial: Column, sizes: dict[str, Column], cell: str) -> Column:
    if cell not in (metric.low, metric.high):
        return F.col(metric.name)
    doubled_pairs = 2 * sizes[metric.low].cast(_WHOLE) * sizes[metric.high].cast(_WHOLE)
    return F.try_divide(trial[_doubled(metric)].cast("double"), doubled_pairs.cast("double"))


def _mean_and_sd(name: str, n_trials: int) -> tuple[Column, Column]:
    """Return mean and standard deviation (n - 1) over the trials, added up in their order.

    By moves from the value that is expected: what never moves keeps its value to the bit, and has a deviation of 0.
    """
    expected = F.col("pinned_auc_skewed" if name == "pinned_auc" else name)
    moves = F.transform("in_trials", lambda trial: trial[name] - expected)
    total, squares = _sum(moves), _sum(F.transform(moves, lambda move: move * move))
    spread = F.greatest(squares - total * total / n_trials, F.lit(0.0))
    sd = F.sqrt(spread / (n_trials - 1)) if n_trials > 1 else F.lit(None).cast("double")
    # greatest passes over NULL, which a spread without trials must stay.
    sd = F.when(total.isNotNull(), sd)
    return (expected + total / n_trials).alias(f"{name}_sampled_mean"), sd.alias(f"{name}_sampled_sd")


def _sum(values: Column) -> Column:
    return F.aggregate(values, F.lit(0.0), lambda total, value: total + value)
