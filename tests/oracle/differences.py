"""The difference of two models' metric on the same rows, by its definitions, from all pairs of rows."""

from __future__ import annotations

from itertools import product
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from tests.oracle.intervals import auc_interval
from tests.oracle.suite import delong_variance, ordered_doubled

Scores = NDArray[np.float64]
Cell = tuple[Scores, Scores]
"""The rows of a cell, as scored by the model and by the baseline."""


def combined_variance(low: Cell, high: Cell, sign: int) -> float:
    """Variance of AUC + sign·AUC of the baseline, by the sample covariances of placements."""
    pairs = [ordered_doubled(a, b) / 2 for a, b in zip(low, high, strict=True)]
    covariances = [np.cov([one.mean(axis=axis) for one in pairs]) for axis in (0, 1)]
    sizes = (len(high[0]), len(low[0]))
    return float(sum((c[0, 0] + c[1, 1] + 2 * sign * c[0, 1]) / m for c, m in zip(covariances, sizes, strict=True)))


def compare_models(metric: str, low: Cell, high: Cell, level: float = 0.95) -> dict[str, Any]:
    """What a row of model_comparisons says, from all pairs of rows; without what is undefined."""
    m, n = len(low[0]), len(high[0])
    row: dict[str, Any] = {"n_low": m, "n_high": n}
    if not m or not n:
        return row
    aucs = [float(ordered_doubled(a, b).mean() / 2) for a, b in zip(low, high, strict=True)]
    is_gap = metric.endswith("aeg")
    a, b = (auc - 0.5 if is_gap else auc for auc in aucs)
    row |= {"value": a, "baseline_value": b, "difference": abs(a) - abs(b)}
    if min(m, n) < 10:
        return row
    least, most = -1.0, 1.0
    signs: list[tuple[int, ...]] = [(1, 1)]
    if is_gap:  # each by its own interval
        variances = [delong_variance(*cells) for cells in zip(low, high, strict=True)]
        ends = [auc_interval(auc, v, m, n, level)[1] or (0, 0) for auc, v in zip(aucs, variances, strict=True)]
        signs = list(product(*([1] * (top > 0.5) + [-1] * (bottom < 0.5) for bottom, top in ends)))
        most, least = (s * max(abs(end - 0.5) for end in interval) for s, interval in zip((1, -1), ends, strict=True))
    contrasts = [(s * a - t * b, sqrt(combined_variance(low, high, -s * t))) for s, t in signs]
    z = norm.ppf((1 + level) / 2)
    return row | {
        "n_signs": len(signs),
        "difference_low": max(min(one - z * sd for one, sd in contrasts), least),
        "difference_high": min(max(one + z * sd for one, sd in contrasts), most),
        "p_value": max(2 * norm.sf(abs(one) / sd) for one, sd in contrasts),
    }
