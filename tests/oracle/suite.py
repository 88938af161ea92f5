"""The metrics as their definitions say, slowly, over every pair of rows; shares no code with the product."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

PAIRS = {
    "subgroup_auc": ("subgroup_negative", "subgroup_positive"),
    "bpsn_auc": ("subgroup_negative", "background_positive"),
    "bnsp_auc": ("background_negative", "subgroup_positive"),
    "background_auc": ("background_negative", "background_positive"),
    "negative_aeg": ("background_negative", "subgroup_negative"),
    "positive_aeg": ("background_positive", "subgroup_positive"),
}


def ordered_doubled(low: ArrayLike, high: ArrayLike) -> NDArray[np.int64]:
    """Two for each pair in which the high row scores above the low one, one for a tie; shape (low, high)."""
    a, b = np.asarray(low, float)[:, None], np.asarray(high, float)[None, :]
    return np.asarray(2 * (b > a) + (b == a), dtype=np.int64)


def auc_by_pairs(low: ArrayLike, high: ArrayLike) -> float:
    pairs = ordered_doubled(low, high)
    return float(pairs.sum() / 2 / pairs.size) if pairs.size else math.nan


def delong_variance(low: ArrayLike, high: ArrayLike) -> float:
    return variance_of_pairs(ordered_doubled(low, high) / 2)


def variance_of_pairs(pairs: NDArray[np.float64]) -> float:
    """Of the mean placements of either side, over their numbers."""
    if min(pairs.shape) < 2:
        return math.nan
    return float(
        np.var(pairs.mean(axis=1), ddof=1) / pairs.shape[0] + np.var(pairs.mean(axis=0), ddof=1) / pairs.shape[1]
    )


def weighted_auc(score: ArrayLike, label: ArrayLike, weight: ArrayLike) -> float:
    """Share of the weight of all (negative, positive) pairs that is rightly ordered."""
    s, y, w = np.asarray(score, float), np.asarray(label, bool), np.asarray(weight, float)
    pairs = np.outer(w[~y], w[y])
    if pairs.sum() == 0:
        return math.nan
    return float((pairs * ordered_doubled(s[~y], s[y]) / 2).sum() / pairs.sum())


def cut_cells(score: ArrayLike, label: ArrayLike, inside: ArrayLike) -> dict[str, NDArray[np.float64]]:
    s, y, g = np.asarray(score, float), np.asarray(label, bool), np.asarray(inside, float)
    return {
        "subgroup_negative": s[(g == 1) & ~y],
        "subgroup_positive": s[(g == 1) & y],
        "background_negative": s[(g == 0) & ~y],
        "background_positive": s[(g == 0) & y],
    }
