"""Pinned AUC in the limit of infinitely many samples, from U statistics alone (Mitigating; Pinned, equation 3)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import pyspark.sql.functions as F
from pyspark.sql import Column

from biasspark.columns import BACKGROUND_NEGATIVE, BACKGROUND_POSITIVE, SUBGROUP_NEGATIVE, SUBGROUP_POSITIVE

PINNED_TERMS = ("background_auc", "subgroup_auc", "bpsn_auc", "bnsp_auc")
"""The four AUCs of which the pinned AUC is a weighted mean."""


def pinned_weights(sizes: Mapping[str, Column]) -> dict[str, Column]:
    """Return how much each of the four AUCs weighs in the pinned AUC of an identity, not yet divided by their sum.

    Parameters
    ----------
    sizes : mapping of str to Column of BIGINT
        The sizes of the four cells.

    Returns
    -------
    dict of str to Column of DOUBLE
        By the names of ``PINNED_TERMS``. A term with an empty cell weighs 0; all four do where a class is missing.

    Notes
    -----
    The pinned set takes equally many rows from the subgroup Dg and from all rows D whose membership is known, Dg
    included. Let s = |Dg| and N = |D|. In expectation a subgroup row then stands in it 1 + s/N times (once for itself,
    s/N times as a draw from D), a background row s/N times. An AUC is a ratio of weights of pairs, so the common factor
    1/N falls out: rows weigh N + s and s. A pair weighs the product of its rows, hence all pairs of two cells
    w(low cell)·w(high cell), where w(cell) = (row weight)·(cell size).
    """
    size = {cell: n.cast("double") for cell, n in sizes.items()}
    subgroup = size[SUBGROUP_NEGATIVE] + size[SUBGROUP_POSITIVE]
    known = subgroup + size[BACKGROUND_NEGATIVE] + size[BACKGROUND_POSITIVE]
    of_subgroup, of_background = known + subgroup, subgroup
    low = {"s": of_subgroup * size[SUBGROUP_NEGATIVE], "b": of_background * size[BACKGROUND_NEGATIVE]}
    high = {"s": of_subgroup * size[SUBGROUP_POSITIVE], "b": of_background * size[BACKGROUND_POSITIVE]}
    return {
        "background_auc": low["b"] * high["b"],
        "subgroup_auc": low["s"] * high["s"],
        "bpsn_auc": low["s"] * high["b"],
        "bnsp_auc": low["b"] * high["s"],
    }


def pinned_auc(sizes: Mapping[str, Column], aucs: Mapping[str, Column]) -> Column:
    """Return the pinned AUC of an identity, in [0, 1], NULL where the pinned set has no negatives or no positives.

    Parameters
    ----------
    sizes : mapping of str to Column of BIGINT
        The sizes of the four cells.
    aucs : mapping of str to Column of DOUBLE
        The four AUCs by the names of ``PINNED_TERMS``; one with an empty cell is NULL and weighs nothing.
    """
    weights = pinned_weights(sizes)
    terms = [F.coalesce(weights[name] * aucs[name], F.lit(0.0)) for name in PINNED_TERMS]
    return F.try_divide(reduce(Column.__add__, terms), reduce(Column.__add__, weights.values()))
