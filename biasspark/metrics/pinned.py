"""Pinned AUC in the limit of infinitely many samples, from U statistics alone (Mitigating; Pinned, equation 3).

Its authors advise against it: where identities differ in the share of positives, it moves with that share and hides or
invents bias, while the model stays the same (Pinned, section 2.2). It is here for comparison with published values;
decide by the bias suite.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, Window

from biasspark.columns import (
    BACKGROUND_NEGATIVE,
    BACKGROUND_POSITIVE,
    BELOW_MINIMUM_ROWS,
    CROSSED,
    IDENTITY,
    MODEL,
    OVERALL,
    SLICE,
    SUBGROUP_NEGATIVE,
    SUBGROUP_POSITIVE,
    WITHHELD,
)
from biasspark.config import PinnedAuc
from biasspark.metrics.statistics import ends_of, in_table
from biasspark.metrics.suite import OVERALL_AUC, SUITE, cell_sizes, pivot_pairs
from biasspark.tables.schemas import PINNED_AUC

PINNED_TERMS = ("background_auc", "subgroup_auc", "bpsn_auc", "bnsp_auc")
"""The four AUCs of which the pinned AUC is a weighted mean."""


def pinned_weights(sizes: Mapping[str, Column], include_subgroup: bool = True) -> dict[str, Column]:
    """Return how much each of the four AUCs weighs in the pinned AUC of an identity, not yet divided by their sum.

    Parameters
    ----------
    sizes : mapping of str to Column of BIGINT
        The sizes of the four cells.
    include_subgroup : bool
        Whether the background is drawn from all rows, as the papers say, or from those outside the subgroup, as the
        authors' published code does.

    Returns
    -------
    dict of str to Column of DOUBLE
        By the names of ``PINNED_TERMS``. A term with an empty cell weighs 0; all four do where a class is missing, and
        where there is nothing to draw.

    Notes
    -----
    The pinned set takes equally many rows from the subgroup Dg and from all rows D whose membership is known, Dg
    included. Let s = |Dg| and N = |D|. In expectation a subgroup row then stands in it 1 + s/N times (once for itself,
    s/N times as a draw from D), a background row s/N times. An AUC is a ratio of weights of pairs, so the common factor
    1/N falls out: rows weigh N + s and s. A pair weighs the product of its rows, hence all pairs of two cells
    w(low cell)·w(high cell), where w(cell) = (row weight)·(cell size).

    Drawn from the background B alone, a subgroup row stands in the set once and a background row s/|B| times: rows
    weigh |B| and s. Where B is the smaller set, rows of Dg are drawn instead, in the same ratio.
    """
    size = {cell: n.cast("double") for cell, n in sizes.items()}
    subgroup = size[SUBGROUP_NEGATIVE] + size[SUBGROUP_POSITIVE]
    background = size[BACKGROUND_NEGATIVE] + size[BACKGROUND_POSITIVE]
    of_subgroup, of_background = background + 2 * subgroup if include_subgroup else background, subgroup
    low = {"s": of_subgroup * size[SUBGROUP_NEGATIVE], "b": of_background * size[BACKGROUND_NEGATIVE]}
    high = {"s": of_subgroup * size[SUBGROUP_POSITIVE], "b": of_background * size[BACKGROUND_POSITIVE]}
    return {
        "background_auc": low["b"] * high["b"],
        "subgroup_auc": low["s"] * high["s"],
        "bpsn_auc": low["s"] * high["b"],
        "bnsp_auc": low["b"] * high["s"],
    }


def pinned_auc(sizes: Mapping[str, Column], aucs: Mapping[str, Column], include_subgroup: bool = True) -> Column:
    """Return the pinned AUC of an identity, in [0, 1], NULL where the pinned set has no negatives or no positives.

    Parameters
    ----------
    sizes : mapping of str to Column of BIGINT
        The sizes of the four cells.
    aucs : mapping of str to Column of DOUBLE
        The four AUCs by the names of ``PINNED_TERMS``; one with an empty cell is NULL and weighs nothing. Where another
        one is NULL, so is the pinned AUC.
    include_subgroup : bool
        As in `pinned_weights`.
    """
    weights = pinned_weights(sizes, include_subgroup)
    terms = [F.when(weights[name] > 0, weights[name] * aucs[name]).otherwise(0.0) for name in PINNED_TERMS]
    return F.try_divide(_sum(terms), _sum(weights.values()))


def pinned_aucs(statistics: DataFrame, pinned: PinnedAuc, sampled: DataFrame | None = None) -> DataFrame:
    """Return the table ``pinned_auc``, less the run's columns: one row for each (model, slice, identity).

    Parameters
    ----------
    statistics : DataFrame
        u_statistics with ``auc``, the ``(overall)`` rows among them.
    pinned : PinnedAuc
        How the background is drawn, and how many trials were sampled.
    sampled : DataFrame, optional
        ``model, slice, identity, sampled_mean, sampled_sd``, where there are trials.

    Notes
    -----
    Lazy; no shuffle but that of the join with ``sampled``. The value is the weighted mean of the four AUCs beside it,
    with the weights beside it, which add up to 1.
    """
    terms = [metric for metric in SUITE if metric.name in PINNED_TERMS]
    ends = ends_of(statistics)
    wide = pivot_pairs(statistics, (OVERALL_AUC, *terms), (*(f"auc{end}" for end in ends), "n_low", "n_high"))
    of_slice = F.max(F.col(OVERALL_AUC.name)).over(Window.partitionBy(MODEL, SLICE))
    rows = wide.withColumn(OVERALL_AUC.name, of_slice).where(F.col(IDENTITY) != OVERALL)
    sizes, aucs = cell_sizes(), {name: F.col(name)["auc"] for name in PINNED_TERMS}
    weights = pinned_weights(sizes, pinned.include_subgroup_in_background)
    value = pinned_auc(sizes, aucs, pinned.include_subgroup_in_background)
    bounds = {}
    for end in ends[1:]:
        of_terms = {name: F.col(name)[f"auc{end}"] for name in PINNED_TERMS}
        bounds[f"pinned_auc{end}"] = pinned_auc(sizes, of_terms, pinned.include_subgroup_in_background)
        bounds |= {f"{name}{end}": bound for name, bound in of_terms.items()}
        bounds[f"overall_auc{end}"] = F.col(OVERALL_AUC.name)[f"auc{end}"]
    exact = rows.select(
        *(MODEL, SLICE, IDENTITY, CROSSED, value.alias("pinned_auc")),
        *(
            F.try_divide(weight, _sum(weights.values())).alias(name.replace("_auc", "_weight"))
            for name, weight in weights.items()
        ),
        *(auc.alias(name) for name, auc in aucs.items()),
        F.col(OVERALL_AUC.name)["auc"].alias("overall_auc"),
        F.lit(pinned.trials).alias("trials"),
        F.when(value.isNull(), _find_reason(sizes)).alias("reason"),
        *(bound.alias(name) for name, bound in bounds.items()),
    )
    of_trials = ("sampled_mean", "sampled_sd")
    if sampled is None:
        return in_table(exact.withColumns(dict.fromkeys(of_trials, F.lit(None).cast("double"))), PINNED_AUC)
    joined = exact.join(sampled, on=[MODEL, SLICE, IDENTITY], how="left")
    told = {name: F.when(F.col("reason").isNull(), F.col(name)) for name in of_trials}
    return in_table(joined.withColumns(told), PINNED_AUC)


def _find_reason(sizes: Mapping[str, Column]) -> Column:
    """Return why there is no value: its sizes are withheld, a cell is empty, the subgroup's first, or a term lacks."""
    withheld = F.when(sizes[SUBGROUP_NEGATIVE].isNull(), F.lit(WITHHELD))
    empty = (F.when(size == 0, F.lit(f"no_{cell}s")) for cell, size in sizes.items())
    return F.coalesce(withheld, *empty, F.lit(BELOW_MINIMUM_ROWS))


def _sum(terms: Iterable[Column]) -> Column:
    return reduce(Column.__add__, terms)
