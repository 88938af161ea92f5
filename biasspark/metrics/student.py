"""Student's t: how likely it is beyond a value, and its quantiles. No Spark, and the standard library alone.

Differences of models and nights are judged on the executors, which need no SciPy: so it is written out here, for the
few hundred degrees of freedom that groups of rows have. What the driver alone computes takes SciPy's, which is right
for any number of them: `biasspark.attribution.significance`, `biasspark.report.intervals`.
"""

from __future__ import annotations

from functools import cache
from math import erfc, exp, inf, isinf, lgamma, log, log1p, sqrt

from biasspark.metrics.evidence import normal_quantile

NORMAL = inf
"""The degrees of freedom of a normal variable."""

_DEPTH = 200
"""At which the continued fraction ends: up to some 10,000 degrees of freedom it no longer changes there."""
_HALVINGS = 70


def student_tail(t: float, freedom: float) -> float:
    """Return how likely Student's t with these degrees of freedom is above t, right in the tail to the last digits.

    With n degrees of freedom and t >= 0 it is I_x(n/2, 1/2)/2 at x = n/(n + t²), half an incomplete beta function.

    Parameters
    ----------
    t : float
        Any number.
    freedom : float
        1 to 10,000, or `NORMAL`.
    """
    if t < 0:
        return 1 - student_tail(-t, freedom)
    if isinf(freedom):
        return erfc(t / sqrt(2)) / 2
    square = t * t  # infinite where ** would overflow
    x, rest = freedom / (freedom + square), 1 / (1 + freedom / square) if square else 0.0
    a, b = freedom / 2, 0.5
    if x < (a + 1) / (a + b + 2):
        return _incomplete_beta(x, rest, a, b) / 2
    return (1 - _incomplete_beta(rest, x, b, a)) / 2


@cache
def student_quantile(level: float, freedom: float) -> float:
    """Return t such that Student's t lies within ±t with probability ``level``, to twelve decimals."""
    if isinf(freedom):
        return normal_quantile(level)
    beyond, low, high = (1 - level) / 2, 0.0, 1.0
    while student_tail(high, freedom) > beyond:
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if student_tail(middle, freedom) > beyond else (low, middle)
    return round(high, 12)


def _incomplete_beta(x: float, rest: float, a: float, b: float) -> float:
    """Return I_x(a, b), ``rest`` being 1 - x without rounding, by its continued fraction (DLMF 8.17.22).

        I_x(a, b) = x^a (1 - x)^b / (a B(a, b)) / (1 + d_1/(1 + d_2/(1 + ...)))

    d_2m being m (b - m) x / ((a + 2m - 1)(a + 2m)), and d_2m+1 -(a + m)(a + b + m) x / ((a + 2m)(a + 2m + 1)). It nears
    its limit fast where x < (a + 1)/(a + b + 2).
    """
    if x == 0 or rest == 0:
        return 1.0 if rest == 0 else 0.0
    fraction = 1.0
    for step in range(_DEPTH, 0, -1):
        m, odd = divmod(step, 2)
        up = -(a + m) * (a + b + m) if odd else m * (b - m)
        fraction = 1 + up * x / ((a + step - 1) * (a + step)) / fraction
    log_beta = lgamma(a) + lgamma(b) - lgamma(a + b)
    return exp(a * log(x) + b * (log(rest) if rest < 0.5 else log1p(-x)) - log_beta) / (a * fraction)
