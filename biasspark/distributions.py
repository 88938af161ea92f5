"""Tails and quantiles of the normal distribution and of Student's t, with the standard library only. No Spark.

Student's t is implemented here since executors have no SciPy, and since versions of SciPy differ in the last bits of
the result, and so would the tables. There are two methods: a continued fraction for the few hundred degrees of freedom
of groups of rows, and a normal approximation for the millions of rows.
"""

from __future__ import annotations

from functools import cache
from math import erfc, exp, inf, lgamma, log, log1p, pi, sqrt
from statistics import NormalDist

NORMAL = inf
"""The degrees of freedom of a normal variable."""

MANY = 10_000
"""Degrees of freedom above which the normal approximation is used."""
_DEPTH = 200
"""The depth of the continued fraction, at which it has converged for up to `MANY` degrees of freedom."""
_FARTHEST = 40.0
"""Standard deviations beyond which the tail of a normal variable is below the smallest double."""


def normal_quantile(level: float) -> float:
    """Return z such that a standard normal variable lies within ±z with probability `level`.

    Rounded to twelve decimals: the last bits depend on the logarithm of the platform.
    """
    return round(NormalDist().inv_cdf(0.5 + level / 2), 12)


def normal_tail(z: float) -> float:
    """Return the probability that a standard normal variable is above z, accurate also in the tail."""
    return erfc(z / sqrt(2)) / 2


def student_tail(t: float, freedom: float) -> float:
    """Return the probability that Student's t is above t.

    With n degrees of freedom and t >= 0 it is I_x(n/2, 1/2)/2 at x = n/(n + t²), half an incomplete beta function.

    `freedom` is 1 or more, or `NORMAL`. The result is accurate to twelve digits down to 1e-80, and to ten below.
    """
    if t < 0:
        return 1 - student_tail(-t, freedom)
    if freedom > MANY:
        return normal_tail(_normal_deviate(t, freedom))
    square = t * t  # infinite where ** would overflow
    x, rest = freedom / (freedom + square), 1 / (1 + freedom / square) if square else 0.0
    a, b = freedom / 2, 0.5
    if x < (a + 1) / (a + b + 2):
        return _incomplete_beta(x, rest, a, b) / 2
    return (1 - _incomplete_beta(rest, x, b, a)) / 2


@cache
def student_quantile(level: float, freedom: float) -> float:
    """Return t such that Student's t lies within ±t with probability `level`, rounded to twelve decimals."""
    if freedom == NORMAL:
        return normal_quantile(level)
    beyond, low, high = (1 - level) / 2, 0.0, 1.0
    while student_tail(high, freedom) > beyond:
        low, high = high, 2 * high
    for _ in range(70):  # halvings, to the last bit
        middle = (low + high) / 2
        low, high = (middle, high) if student_tail(middle, freedom) > beyond else (low, middle)
    return round(high, 12)


def _normal_deviate(t: float, freedom: float) -> float:
    """Return the normal deviate with the same tail as Student's t at t, for large n.

    With w = n - 1/2, b = 48·w² and z = sqrt(w·log(1 + t²/n)), it is to the third order in 1/b

        z·(1 + (z² + 3)/b - (4·z⁶ + 33·z⁴ + 240·z² + 855)/(10·b²))

    (Hill, Algorithm 395, CACM 13:617, 1970).
    """
    if freedom == NORMAL:
        return t
    w = freedom - 0.5
    square, b = min(w * log1p(t * t / freedom), _FARTHEST**2), 48 * w * w
    second = ((4 * square + 33) * square + 240) * square + 855
    return sqrt(square) * (1 + (square + 3) / b - second / (10 * b * b))


def _incomplete_beta(x: float, rest: float, a: float, b: float) -> float:
    """Return I_x(a, b) by its continued fraction (DLMF 8.17.22). `rest` is 1 - x without rounding.

        I_x(a, b) = x^a (1 - x)^b / (a B(a, b)) / (1 + d_1/(1 + d_2/(1 + ...)))

    with d_2m = m (b - m) x / ((a + 2m - 1)(a + 2m)) and d_2m+1 = -(a + m)(a + b + m) x / ((a + 2m)(a + 2m + 1)). It
    converges fast for x < (a + 1)/(a + b + 2).
    """
    if x == 0 or rest == 0:
        return 1.0 if rest == 0 else 0.0
    fraction = 1.0
    for step in range(_DEPTH, 0, -1):
        m, odd = divmod(step, 2)
        up = -(a + m) * (a + b + m) if odd else m * (b - m)
        fraction = 1 + up * x / ((a + step - 1) * (a + step)) / fraction
    log_x, log_rest = (log1p(-rest), log(rest)) if rest < 0.5 else (log(x), log1p(-x))
    return exp(a * log_x + b * log_rest + _log_ratio(max(a, b)) - log(pi) / 2) / (a * fraction)


def _log_ratio(a: float) -> float:
    """Return log(Γ(a + 1/2)/Γ(a)), which is log(Γ(1/2)/B(a, 1/2)).

    For large a it is log(a)/2 - 1/(8a) + 1/(192a³) - 1/(640a⁵) + 17/(14336a⁷) - 31/(18432a⁹) by Stirling's series: the
    difference of the logarithms would lose as many digits as they have before the point.
    """
    if a < 20:
        return lgamma(a + 0.5) - lgamma(a)
    series = -1 / (8 * a) + 1 / (192 * a**3) - 1 / (640 * a**5) + 17 / (14336 * a**7) - 31 / (18432 * a**9)
    return log(a) / 2 + series
