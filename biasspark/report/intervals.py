"""Intervals of numbers that stand in the tables without one, from the counts and deviations that stand beside them.

Each is for a level in (0, 1), its nominal coverage. They are computed from single numbers of published tables; the
tables themselves have theirs from Spark's columns (`biasspark.metrics.thresholds`). A test holds them against each
other.
"""

from __future__ import annotations

import math

from biasspark.distributions import normal_quantile, student_quantile

Ends = tuple[float, float] | tuple[None, None]


def bound_share(n: int, of: int, level: float) -> tuple[float, float]:
    """Return the ends of the interval of a share n/of, by Wilson's score (JASA 22:209, 1927). 0 to 1."""
    z = normal_quantile(level)
    middle, half = n + z**2 / 2, z * math.sqrt(n * (of - n) / of + z**2 / 4)
    return (middle - half) / (of + z**2), (middle + half) / (of + z**2)


def bound_mean(
    mean: float, deviation: float | None, n: int, level: float, within: tuple[float, float] = (-math.inf, math.inf)
) -> Ends:
    """Return the ends of Student's interval of the mean of n values with a standard deviation (n - 1).

    None where there are fewer than two. The interval is cut off at the range that means lie ``within``: what is beyond
    was never true, so its coverage stays what it is.
    """
    if deviation is None or n < 2:
        return None, None
    half = student_quantile(level, n - 1) * deviation / math.sqrt(n)
    return max(mean - half, within[0]), min(mean + half, within[1])
