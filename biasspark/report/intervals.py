"""Intervals of numbers that stand in the tables without one, from the counts and deviations that stand beside them.

Each is for a configured level, in (0, 1), has a nominal coverage of it, and lies within the range of its number.
"""

from __future__ import annotations

import math
from statistics import NormalDist

Ends = tuple[float, float] | tuple[None, None]

_STEPS = 18
"""Of the fixed point of `bound_auc`, as ``biasspark.metrics.intervals`` has it."""


def bound_share(n: int, of: int, level: float) -> tuple[float, float]:
    """Return the ends of the interval of a share n/of, by Wilson's score (JASA 22:209, 1927). 0 to 1."""
    z = _quantile(level)
    middle, half = n + z**2 / 2, z * math.sqrt(n * (of - n) / of + z**2 / 4)
    return (middle - half) / (of + z**2), (middle + half) / (of + z**2)


def bound_auc(auc: float | None, n_low: int, n_high: int, level: float) -> Ends:
    """Return the ends of the interval of an AUC of two cells, by Newcombe's score (2006, method 5). 0 to 1.

    They are every θ with |θ - auc| <= z·sqrt(V(θ)), as in ``biasspark.metrics.intervals``, which tells of its coverage:
    it needs no sum of squares, and takes the spread of the scores for granted. None where either cell has fewer than
    two rows.
    """
    if auc is None or min(n_low, n_high) < 2:
        return None, None
    z, m, n = _quantile(level), float(n_low), float(n_high)
    base, slope = z * z * (m + n - 1) / (m * n), z * z * 3 * ((m + n) / 2 - 1) / (m * n)

    def find_lower_root(a: float) -> float:
        theta = a
        for _ in range(_STEPS):
            k = base - slope / (2 + theta * (1 - theta))
            theta = 2 * a * a / (2 * a + k + math.sqrt(k * (k + 4 * a * (1 - a))))
        return theta

    return find_lower_root(auc), 1 - find_lower_root(1 - auc)


def bound_mean(mean: float, deviation: float | None, n: int, level: float) -> Ends:
    """Return the ends of Student's interval of the mean of n values with a standard deviation (n - 1).

    None where there are fewer than two.
    """
    if deviation is None or n < 2:
        return None, None
    # Imported here because loading it takes half a second, which only a report with such means is to pay for.
    from scipy.special import stdtrit  # noqa: PLC0415

    half = float(stdtrit(n - 1, 0.5 + level / 2)) * deviation / math.sqrt(n)
    return mean - half, mean + half


def _quantile(level: float) -> float:
    return NormalDist().inv_cdf(0.5 + level / 2)
