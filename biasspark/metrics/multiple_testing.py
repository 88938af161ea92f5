"""The significance level, the adjustment of p-values for multiple tests, and the interval of a mean."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from biasspark.distributions import normal_quantile

SIGNIFICANT = 0.05
"""The significance level, except in the gate, where it is configured."""


def interval(mean: float | None, variance: float | None, level: float) -> tuple[float | None, float | None]:
    """Return mean ± z·sqrt(variance), z being the normal quantile of the level; None, None where either is None.

    The variance is that of the mean, not of the rows; 0 gives a single point. The level is in (0, 1).
    """
    if mean is None or variance is None:
        return None, None
    half = normal_quantile(level) * sqrt(variance)
    return mean - half, mean + half


def clip(ends: tuple[float | None, float | None], least: float, most: float) -> tuple[float | None, float | None]:
    """Clip an interval to the range of the estimate."""
    low, high = ends
    return (None, None) if low is None or high is None else (max(low, least), min(high, most))


def benjamini_hochberg(p_values: Sequence[float | None]) -> list[float | None]:
    """Return adjusted p-values: on average, at most a share q of the tests below q are false discoveries.

    Of m p-values in ascending order, the k-th becomes the minimum of p_(j)·m/j over j >= k, at most 1 (Benjamini and
    Hochberg, JRSS B 1995, 57:289). None stays None and is not counted in m.
    """
    order = sorted((p_value, index) for index, p_value in enumerate(p_values) if p_value is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    least = 1.0
    for rank, (p_value, index) in reversed(list(enumerate(order, start=1))):
        least = min(least, p_value * len(order) / rank)
        adjusted[index] = least
    return adjusted
