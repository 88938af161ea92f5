"""The class-skew experiment: pinned AUC moves with the class balance, the suite stands still (Pinned, section 3).

Dropping rows of one cell changes no order of scores. So a trial ranks nothing anew: U over the rows that are kept is a
sum over their placements, and the pinned AUC is a weighted mean of four AUCs.
"""

from __future__ import annotations

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from biasspark.columns import FOUR_CELLS, IDENTITY, MODEL, SLICE, SUMMARISED_AUCS
from biasspark.config import PinnedSkew
from biasspark.expressions.sums import add_up
from biasspark.metrics.pinned import PINNED_TERMS, pinned_auc
from biasspark.metrics.suite import SUITE, Auc, cell_sizes, pivot_pairs

_GROUP = (MODEL, SLICE)
_SUMS = ("subgroup_doubled", "background_doubled")
_TERMS = tuple(metric for metric in SUITE if metric.name in PINNED_TERMS)
_WHOLE = "decimal(38,0)"


def pinned_skew(statistics: DataFrame, kept: DataFrame, skew: PinnedSkew, include_subgroup: bool = True) -> DataFrame:
    """Return the table ``pinned_skew``, less the run's columns: one row for each (model, slice).

    Parameters
    ----------
    statistics : DataFrame
        u_statistics with ``auc``, the rows of the identity among them.
    kept : DataFrame
        ``model, slice, trial, n_dropped, subgroup_doubled, background_doubled`` of every trial: the rows of the cell
        that it drops, and twice U between those that it keeps and the rows of the other label, in the subgroup and in
        the background. Missing for a slice without rows.
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
    An AUC that does not involve the cell is its value before, to the bit. Lazy; the tables it reads do not grow with
    the corpus.
    """
    collected = kept.groupBy(*_GROUP).agg(
        F.max("n_dropped").alias("n_dropped"), F.sort_array(F.collect_list(F.struct("trial", *_SUMS))).alias("trials")
    )
    rows = _measure_all_rows(statistics, skew).join(collected, on=list(_GROUP), how="left")
    known = F.col(skew.cell).isNotNull()  # else it is withheld, and how many are dropped would tell it
    rows = rows.withColumn("n_dropped", F.when(known, F.coalesce("n_dropped", F.lit(0).cast("bigint"))))
    terms = {name: F.col(name) for name in PINNED_TERMS}
    measured = rows.select(
        "*",
        pinned_auc({cell: F.col(cell) for cell in FOUR_CELLS}, terms, include_subgroup).alias("pinned_auc"),
        pinned_auc(_sizes_left(skew.cell), terms, include_subgroup).alias("pinned_auc_skewed"),
        F.transform("trials", lambda trial: _measure_trial(trial, skew.cell, include_subgroup)).alias("in_trials"),
    )
    sampled = {name: _mean_and_sd(name, skew.trials) for name in ("pinned_auc", *SUMMARISED_AUCS)}
    return measured.select(
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


def _measure_all_rows(statistics: DataFrame, skew: PinnedSkew) -> DataFrame:
    """Return for each (model, slice) the sizes of the cells and the four AUCs."""
    own = pivot_pairs(statistics.where(F.col(IDENTITY) == F.lit(skew.identity)), _TERMS, ("auc", "n_low", "n_high"))
    columns = {**cell_sizes(), **{metric.name: F.col(metric.name)["auc"] for metric in _TERMS}}
    return own.select(*_GROUP, *(column.alias(name) for name, column in columns.items()))


def _sizes_left(cell: str) -> dict[str, Column]:
    return {name: F.col(name) - F.col("n_dropped") if name == cell else F.col(name) for name in FOUR_CELLS}


def _measure_trial(trial: Column, cell: str, include_subgroup: bool) -> Column:
    """Return the four AUCs of a trial and its pinned AUC as a struct."""
    sizes = _sizes_left(cell)
    aucs = {metric.name: _auc_of_kept(metric, trial, sizes, cell) for metric in _TERMS}
    pinned = pinned_auc(sizes, aucs, include_subgroup)
    return F.struct(pinned.alias("pinned_auc"), *(auc.alias(name) for name, auc in aucs.items()))


def _auc_of_kept(metric: Auc, trial: Column, sizes: dict[str, Column], cell: str) -> Column:
    if cell not in (metric.low, metric.high):
        return F.col(metric.name)
    other = metric.high if cell == metric.low else metric.low
    doubled = trial["subgroup_doubled" if other.startswith("subgroup") else "background_doubled"]
    doubled_pairs = 2 * sizes[metric.low].cast(_WHOLE) * sizes[metric.high].cast(_WHOLE)
    return F.try_divide(doubled.cast("double"), doubled_pairs.cast("double"))


def _mean_and_sd(name: str, n_trials: int) -> tuple[Column, Column]:
    """Return mean and standard deviation (n - 1) over the trials, added up in their order.

    By moves from the value that is expected: what never moves keeps its value to the bit, and has a deviation of 0.
    """
    expected = F.col("pinned_auc_skewed" if name == "pinned_auc" else name)
    moves = F.transform("in_trials", lambda trial: trial[name] - expected)
    total, squares = add_up(moves), add_up(F.transform(moves, lambda move: move * move))
    spread = F.greatest(squares - total * total / n_trials, F.lit(0.0))
    sd = F.sqrt(spread / (n_trials - 1)) if n_trials > 1 else F.lit(None).cast("double")
    # greatest passes over NULL, which a spread without trials must stay.
    sd = F.when(total.isNotNull(), sd)
    return (expected + total / n_trials).alias(f"{name}_sampled_mean"), sd.alias(f"{name}_sampled_sd")
