"""The intervals of AUCs, shares and differences of shares, from the definitions: SciPy finds the roots."""

from __future__ import annotations

import math
from statistics import NormalDist

from scipy.optimize import brentq

ENOUGH = 10
"""The min(m, n)·A·(1 - A) from which DeLong's variance is trusted."""

Interval = tuple[float, float]


def auc_interval(auc: float, variance: float | None, m: int, n: int, level: float) -> tuple[str, Interval | None]:
    """Give the interval of an AUC with its method: DeLong's where enough rows are misordered, else the wider one."""
    if variance is None:
        return "none", None
    newcombe = newcombe_interval(auc, m, n, level)
    if variance == 0:
        return "newcombe", newcombe
    by_logit = logit_interval(auc, variance, level)
    if min(m, n) * auc * (1 - auc) >= ENOUGH or by_logit[1] - by_logit[0] > newcombe[1] - newcombe[0]:
        return "logit_delong", by_logit
    return "newcombe", newcombe


def logit_interval(auc: float, variance: float, level: float = 0.95) -> Interval:
    """Give DeLong's interval on the logit scale."""
    half = _z(level) * math.sqrt(variance) / (auc * (1 - auc))
    logit = math.log(auc / (1 - auc))
    return 1 / (1 + math.exp(half - logit)), 1 / (1 + math.exp(-half - logit))


def newcombe_interval(auc: float, m: int, n: int, level: float = 0.95) -> Interval:
    """Give every AUC from which this one is at most z standard errors away, by Newcombe 2006, method 5."""
    z, n_star = _z(level), (m + n) / 2 - 1

    def excess(theta: float) -> float:
        bracket = 1 + n_star * (1 - theta) / (2 - theta) + n_star * theta / (1 + theta)
        return (auc - theta) ** 2 - z * z * theta * (1 - theta) / (m * n) * bracket

    # At 0 and 1 the AUC itself is a root: step over it.
    low = brentq(excess, 0, min(auc, 1 - 1e-13), xtol=1e-16) if auc > 0 else 0.0
    high = brentq(excess, max(auc, 1e-13), 1, xtol=1e-16) if auc < 1 else 1.0
    return float(low), float(high)


def wilson_interval(part: int, whole: int, level: float) -> Interval:
    """Give every share p from which part / whole is at most z standard errors away, by Wilson 1927."""
    z, p = _z(level), part / whole
    middle = p + z * z / (2 * whole)
    half = z * math.sqrt(p * (1 - p) / whole + z * z / (4 * whole * whole))
    return (middle - half) / (1 + z * z / whole), (middle + half) / (1 + z * z / whole)


def newcombe_gap(one: tuple[int, int], other: tuple[int, int], level: float = 0.95) -> Interval:
    """Give the interval of p1 - p2, each of them (part, whole), by Newcombe 1998, method 10: the hybrid score."""
    p1, p2 = one[0] / one[1], other[0] / other[1]
    (l1, u1), (l2, u2) = wilson_interval(*one, level), wilson_interval(*other, level)
    below = math.sqrt((p1 - l1) ** 2 + (u2 - p2) ** 2)
    above = math.sqrt((u1 - p1) ** 2 + (p2 - l2) ** 2)
    return p1 - p2 - below, p1 - p2 + above


Ends = tuple[float, float, float]
"""Lower end, value and upper end of an estimate."""


def difference_ends(now: Ends, before: Ends) -> Interval:
    """Give the interval of a difference, recovered from those of both (Zou and Donner 2008)."""
    change, up = now[1] - before[1], (now[2] - now[1], before[1] - before[0])
    below = math.hypot(now[1] - now[0], before[2] - before[1])
    return change - below, change + (sum(up) if before[0] == 0 else math.hypot(*up))


def rise_ends(now: Ends, before: Ends) -> Interval:
    """Give the interval of |gap now| - |gap before| over either sign; a size is no less than 0."""

    def sides(low: float, gap: float, high: float) -> list[Ends]:
        low, gap, high = (low, gap, high) if gap >= 0 else (-high, -gap, -low)
        return [(max(low, 0), gap, high), (-high, -gap, -low)]

    of_now, of_before = sides(*now), sides(*before)
    lowest = min(difference_ends(of_now[0], one)[0] for one in of_before)
    return lowest, max(difference_ends(one, of_before[0])[1] for one in of_now)


def _z(level: float) -> float:
    return NormalDist().inv_cdf((1 + level) / 2)
