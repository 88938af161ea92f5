"""Variances and confidence intervals of AUCs, intervals of shares and means, and adjusted p-values. numpy only.

DeLong's variance of the AUC of two cells is the sum of one part per cell (DeLong, DeLong and Clarke-Pearson, Biometrics
1988, 44:837). The part of a cell of m rows against n is

    (m·Σd² - (Σd)²) / (4·n²·m²·(m - 1)),

where d are the doubled placements of its rows: for each row, twice the rows of the other cell with which it is
correctly ordered, plus ties. Σd is twice U for both cells. Every ranking engine returns these integers.

The interval of an AUC is by one of two methods, and a rule chooses between them. Both need only the AUC ``A``, its
variance by DeLong ``V`` and the sizes ``m``, ``n`` of its two cells. ``z`` is the normal quantile of the level
(1.95996398454 at 0.95).

``logit_delong``
    expit(logit(A) ± z·sqrt(V) / (A·(1 - A))): DeLong, DeLong and Clarke-Pearson 1988, on the logit scale (Pepe 2003).
    Accurate for large cells with any score distribution, but too short, or a single point, if few rows are misordered.
``newcombe``
    Newcombe 2006 (Statistics in Medicine 25:559, method 5): every θ with ``|θ - A| <= z·sqrt(V(θ))``, where V(θ) = θ(1
    - θ) / (mn) · [1 + n*·(1 - θ)/(2 - θ) + n*·θ/(1 + θ)] and n* = (m + n)/2 - 1, Hanley and McNeil's variance made
    symmetric. Stays inside [0, 1] and works for few rows and for complete separation, but assumes equal spread of the
    scores.
``none``
    No interval: one of the cells has fewer than two rows.

The rule: ``logit_delong`` if V > 0 and min(m, n)·A·(1 - A) is at least 10, so that it rests on enough rows and enough
misordered ones; otherwise the wider of the two, which is ``newcombe`` if V = 0.

Chosen by ``scripts/simulations/interval_coverage.py`` (8,000 runs of 1,512 settings: AUC 0.5 to 0.999, 2 to 300
rows in the smaller cell and 1 to 500 times as many in the other; normal scores of equal and unequal spread, and 2 to 20
levels). Coverage of the nominal 95% interval:

=======================================  =======  =======  ======  ==============  ======
settings, method                         >= 94%   >= 92.5  worst   5th percentile  median
=======================================  =======  =======  ======  ==============  ======
all, ``wald_delong`` (for comparison)    20.0%    33.1%    0.003   0.136           0.875
all, ``logit_delong``                    39.3%    49.1%    0.000   0.122           0.922
all, ``newcombe``                        88.7%    91.0%    0.802   0.879           0.965
all, the rule                            97.4%    98.7%    0.802   0.946           0.975
10 rows and more, ``newcombe``           89.6%    91.4%    0.848   0.874           0.965
10 rows and more, the rule               98.5%    99.7%    0.907   0.946           0.968
=======================================  =======  =======  ======  ==============  ======

No choice between the two methods covers more: the union of both intervals has the same 97.4%, 98.7% and 0.802. At 300
rows the rule is as narrow as Wald's interval (1.00 times); always taking the wider one would cost 8%. Of the 19
settings in which its coverage is below 92.5%, 16 have 2 to 5 rows in a cell. Harsher scores, such as 0/1 decisions or
a share of rows that the model misses, bring it to 0.82 at worst (10 rows and more), ``newcombe`` to 0.72,
``logit_delong`` to 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import exp, inf, sqrt
from typing import NamedTuple

import numpy as np

from biasspark.arrays import BigInts, Floats, Ints, Strings, apply, divide, euclidean_norm
from biasspark.distributions import NORMAL, normal_quantile, student_quantile

LOGIT_DELONG, NEWCOMBE, NONE = "logit_delong", "newcombe", "none"

MIN_FOR_LOGIT = 10.0
"""The min(m, n)·A·(1 - A) from which ``logit_delong`` is used alone; it takes at least 40 rows in the smaller cell.

It is computed in doubles, so at exactly 10 its rounding decides. Both intervals are valid there.
"""

_STEPS = 18
"""Fixed-point iterations: each shrinks the error more than ninefold, so 18 reach the last bit of a double."""


def delong_part(n_rows: int, n_opposite: int, two_u: int, sum_sq: int) -> Fraction:
    """Return the exact part of one cell of m >= 2 rows against n >= 1 rows, from Σd and Σd²."""
    m, n = n_rows, n_opposite
    return Fraction(m * sum_sq - two_u**2, 4 * n**2 * m**2 * (m - 1))


def delong_variance(
    n_low: BigInts, n_high: BigInts, two_u: BigInts, sum_sq_low: BigInts, sum_sq_high: BigInts
) -> Floats:
    """Return the variance of each AUC, 0 or more; NaN where a cell has fewer than two rows.

    The parameters are Python integers: sizes of the two cells, twice U, and Σd² of each cell. The numerators,
    differences of two nearly equal numbers, are exact at any size.
    """
    return _delong_parts(n_low, n_high, two_u, sum_sq_low) + _delong_parts(n_high, n_low, two_u, sum_sq_high)


def _delong_parts(n_rows: BigInts, n_opposite: BigInts, two_u: BigInts, sum_sq: BigInts) -> Floats:
    numerator = (n_rows * sum_sq - two_u * two_u).astype(np.float64)
    m, n = n_rows.astype(np.float64), n_opposite.astype(np.float64)
    return divide(numerator, 4 * n * n * m * m * (m - 1))


class Interval(NamedTuple):
    """Intervals: their ends, NaN where there is none, and the method of each."""

    low: Floats
    high: Floats
    method: Strings


def auc_interval(auc: Floats, variance: Floats, n_low: Ints | Floats, n_high: Ints | Floats, level: float) -> Interval:
    """Return the equal-tailed intervals of AUCs and the method that gave each, for a nominal coverage in (0, 1).

    `auc` is U/(m·n), `variance` DeLong's, NaN where a cell has fewer than two rows, `n_low` and `n_high` are m and n.
    For a gap pass the AUC, gap + 1/2, and shift the interval back by 1/2. 0 <= low <= auc <= high <= 1, NaN where the
    method is ``none``. Computed with only +, -, ·, / and sqrt, which IEEE 754 rounds identically everywhere, and the
    standard library's exp.
    """
    z = normal_quantile(level)
    m, n = n_low.astype(np.float64), n_high.astype(np.float64)
    below, above = newcombe(auc, m, n, z)
    with np.errstate(invalid="ignore"):
        low, high = logit_delong(auc, variance, z)
        settled = np.minimum(m, n) * (auc * (1 - auc)) >= MIN_FOR_LOGIT
        by_logit = (variance > 0) & (settled | (high - low > above - below))
    defined = ~np.isnan(variance)
    return Interval(
        low=np.where(defined, np.fmin(np.where(by_logit, low, below), auc), np.nan),
        high=np.where(defined, np.fmax(np.where(by_logit, high, above), auc), np.nan),
        method=np.where(by_logit, LOGIT_DELONG, np.where(defined, NEWCOMBE, NONE)).astype(object),
    )


def interval_of_auc(
    auc: float | None, variance: float | None, n_low: int, n_high: int, level: float
) -> tuple[float, float, str | None]:
    """Return the ends and the method of one AUC's `auc_interval`: NaN without an interval, no method without an AUC."""
    arrays = [np.array([value], np.float64) for value in (auc, variance, n_low, n_high)]
    low, high, method = auc_interval(arrays[0], arrays[1], arrays[2], arrays[3], level)
    return low.item(), high.item(), None if auc is None else method.item()


def logit_delong(auc: Floats, variance: Floats, z: float) -> tuple[Floats, Floats]:
    """Return the ends on the logit scale; expit(logit(A) + h) = A / (A + (1 - A)·exp(-h)) needs no logarithm."""
    step = divide(z * np.sqrt(variance), auc * (1 - auc))
    factor = apply(lambda value: inf if value > 709 else exp(value), step)  # exp would overflow
    return auc / (auc + (1 - auc) * factor), auc / (auc + (1 - auc) / factor)


def newcombe(auc: Floats, m: Floats, n: Floats, z: float) -> tuple[Floats, Floats]:
    """Return the ends of Newcombe's interval: the roots θ of (A - θ)² = k(θ)·θ(1 - θ), k(θ) = z²·V(θ) / (θ(1 - θ)).

    As (1 - θ)/(2 - θ) + θ/(1 + θ) = 2 - 3/(2 + θ(1 - θ)), k is base - slope / (2 + θ(1 - θ)). For fixed k the equation
    is quadratic, and its lower root, 2A² / (2A + k + sqrt(k² + 4kA(1 - A))), has neither cancellation nor a zero
    denominator. k varies by at most a third over [0, 1], so substituting the root into k is a contraction:
    |dθ/d log k| <= θ(1 - θ), and |d log k/dθ|·θ(1 - θ) < 0.102. As (A - θ)²/V(θ) decreases from θ = 0 to A, the root is
    unique. Since V(θ) = V(1 - θ), the upper root of A is 1 less the lower root of 1 - A.
    """
    base = divide(z * z * (m + n - 1), m * n)
    slope = divide(z * z * 3 * ((m + n) / 2 - 1), m * n)

    def lower_root(a: Floats) -> Floats:
        theta = a
        for _ in range(_STEPS):
            k = base - slope / (2 + theta * (1 - theta))
            theta = divide(2 * a * a, 2 * a + k + np.sqrt(k * (k + 4 * a * (1 - a))))
        return theta

    with np.errstate(invalid="ignore"):
        return lower_root(auc), 1 - lower_root(1 - auc)


# ---- shares


class Share(NamedTuple):
    """Shares of rows: numerators and denominators, as doubles."""

    counted: Floats
    among: Floats

    @property
    def value(self) -> Floats:
        """In [0, 1]; NaN without rows."""
        return divide(self.counted, self.among)


def wilson_interval(share: Share, z: float) -> tuple[Floats, Floats]:
    """Return the ends of Wilson's interval of shares p = x/n; NaN where n is 0.

    It contains every θ with |p - θ| <= z·sqrt(θ(1 - θ)/n), which is between

        (2x + z² ± z·sqrt(z² + 4x(1 - x/n))) / (2n + 2z²)

    (Wilson, JASA 1927, 22:209), within [0, 1].
    """
    counted, among = share
    half = z * np.sqrt(z * z + 4 * counted * (1 - share.value))
    low, high = ((2 * counted + z * z + sign * half) / (2 * among + 2 * z * z) for sign in (-1, 1))
    return np.maximum(low, 0.0), np.minimum(high, 1.0)


def newcombe_difference(p: Share, q: Share, z: float) -> tuple[Floats, Floats]:
    """Return the ends of the interval of p - q of independent shares; NaN if either has no rows.

    Newcombe's hybrid score interval (Statistics in Medicine 1998, 17:873, method 10): with the Wilson intervals (l, u)
    of p and (m, v) of q, p - q - sqrt((p - l)² + (v - q)²) to p - q + sqrt((u - p)² + (q - m)²). It stays within [-1,
    1], and is valid for shares of 0 and 1.
    """
    (p_low, p_high), (q_low, q_high) = wilson_interval(p, z), wilson_interval(q, z)
    difference = p.value - q.value
    return (
        difference - euclidean_norm(p.value - p_low, q_high - q.value),
        difference + euclidean_norm(p_high - p.value, q.value - q_low),
    )


# ---- means, and multiple tests


SIGNIFICANT = 0.05
"""The significance level, except in the gate, where it is configured."""


def normal_interval(
    mean: float | None, variance: float | None, level: float, limits: tuple[float, float], freedom: float = NORMAL
) -> tuple[float | None, float | None]:
    """Return mean ± t·sqrt(variance of the mean), within the limits of the mean; None, None where either is None.

    t is that of the normal distribution, or of Student's with some degrees of `freedom`. Limits cost no coverage.
    """
    if mean is None or variance is None:
        return None, None
    half = student_quantile(level, freedom) * sqrt(variance)
    return max(mean - half, limits[0]), min(mean + half, limits[1])


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
