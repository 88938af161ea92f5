"""Exact moments of values in int64, the same bits in any order, and tests of means. numpy only.

A value is a fixed-point number, high/2^25 + low/2^57, with integers up to 2^31, so that its square is made of products
that fit 62 bits. Each product is cut into two *limbs* of 31 bits. Limbs of up to 2^31 rows add up in int64, and Python
joins the sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import erfc, sqrt

import numpy as np

from biasspark.arrays import Floats, Ints
from biasspark.distributions import student_tail

LARGEST_BITS = 6
"""Values lie within ±2^6: an attribution within ±1/2, a cross-entropy of clipped scores below 35."""

N_LIMBS = 8
"""Of the moments of a value."""

_HIGH_BITS, _LOW_BITS, _LIMB_BITS = 25, 57, 31
_STEP = _LOW_BITS - _HIGH_BITS


@dataclass(frozen=True)
class Moments:
    """The number of some rows, and the exact sums of their values and of the squares of these."""

    n: int = 0
    total: Fraction = Fraction()
    squares: Fraction = Fraction()

    @property
    def mean(self) -> float | None:
        """The mean, rounded once; None without rows."""
        return float(self.total / self.n) if self.n else None

    @property
    def variance(self) -> float | None:
        """The variance of the values, with n - 1; None for fewer than two rows.

        Fractions subtract two nearly equal numbers without loss. Squares that were rounded before they were summed may
        make the result negative: then it is 0.
        """
        if self.n < 2:
            return None
        return max(float((self.squares - self.total**2 / self.n) / (self.n - 1)), 0.0)

    @property
    def variance_of_mean(self) -> float | None:
        """The variance of the mean of independent values, None like `variance`."""
        return None if self.variance is None else self.variance / self.n

    def __add__(self, other: Moments) -> Moments:
        """Return the moments of two disjoint sets of rows together."""
        return Moments(self.n + other.n, self.total + other.total, self.squares + other.squares)

    def __sub__(self, other: Moments) -> Moments:
        """Return the moments of the rows that are not in the other set, a part of this one."""
        return Moments(self.n - other.n, self.total - other.total, self.squares - other.squares)


def cut_moments(values: Floats) -> Ints:
    """Return the limbs of values within ±64, and of their squares, int64, shape (8, n).

    Each value counts as the nearest multiple of 2^-57, which from 1/16 on is the value itself.
    """
    limbs = np.empty((N_LIMBS, len(values)), np.int64)
    high, low = limbs[:2]
    # In place: half of the time would go into fresh memory.
    scaled = np.rint(values * 2.0**_HIGH_BITS)
    high[:] = scaled
    np.subtract(values, np.multiply(scaled, 0.5**_HIGH_BITS, out=scaled), out=scaled)
    low[:] = np.rint(np.multiply(scaled, 2.0**_LOW_BITS, out=scaled), out=scaled)
    for first, second, limb_pair in ((high, high, limbs[2:4]), (high, low, limbs[4:6]), (low, low, limbs[6:8])):
        product = np.multiply(first, second, out=limb_pair[0])
        np.bitwise_and(product, (1 << _LIMB_BITS) - 1, out=limb_pair[1])
        np.right_shift(product, _LIMB_BITS, out=product)
    return limbs


def read_moments(sums: Sequence[int] | Ints, n: int) -> Moments:
    """Return the moments of some rows from the sums of their limbs and their number."""
    high, low, *limbs = map(int, sums)
    high_squares, products, low_squares = ((limbs[k] << _LIMB_BITS) + limbs[k + 1] for k in (0, 2, 4))
    total = (high << _STEP) + low
    squares = (high_squares << 2 * _STEP) + (products << _STEP + 1) + low_squares
    return Moments(int(n), Fraction(total, 1 << _LOW_BITS), Fraction(squares, 1 << 2 * _LOW_BITS))


# ---- tests


def welch_p_value(a: Moments, b: Moments) -> float | None:
    """Return the two-sided p-value of Welch's t-test that the means behind two samples are equal.

    With V = s²/n of either sample, t = (mean_a - mean_b) / sqrt(V_a + V_b) has about Student's distribution with
    (V_a + V_b)² / (V_a²/(n_a - 1) + V_b²/(n_b - 1)) degrees of freedom (Welch 1947).

    The samples share no row. None if a sample has fewer than two rows. If neither varies, 1 if their means are equal,
    else 0, the limit of ever smaller variances.
    """
    if a.variance is None or b.variance is None:
        return None
    difference = float(a.total / a.n - b.total / b.n)  # rounded once, after the subtraction
    part_a, part_b = a.variance / a.n, b.variance / b.n
    variance = part_a + part_b
    if variance == 0 or difference == 0:
        return 0.0 if difference else 1.0
    # Shares of the variance, not its square, which could pass below the smallest double.
    share_a, share_b = part_a / variance, part_b / variance
    freedom = 1 / (share_a**2 / (a.n - 1) + share_b**2 / (b.n - 1))
    return 2 * student_tail(abs(difference) / sqrt(variance), freedom)


def chance_p_value(part: Moments, whole: Moments) -> float | None:
    """Return the two-sided p-value that the rows of a part are a random sample of the whole, by their mean.

    If most values are nearly equal and few differ widely, as attributions do at an AUC near 1, rows that happen to have
    none of the few have nearly no variance, and Welch's test is certain about them. This test uses the variance of all
    rows: over all samples of k of m rows, without replacement, that of the mean is

        (1/k - 1/m)·S²,

    where S² is the variance of all m values, with m - 1. Means are taken as normal. None for no rows, and for all. 1 if
    no value differs.
    """
    if not part.n or part.n == whole.n or whole.variance is None:
        return None
    difference = float(part.total / part.n - whole.total / whole.n)
    return two_sided(difference, (1 / part.n - 1 / whole.n) * whole.variance)


def two_sided(difference: float, variance: float) -> float:
    """Return the p-value of a normal difference; without variance 1 if it is 0, else 0, the limit of small ones."""
    if variance == 0:
        return 0.0 if difference else 1.0
    return erfc(abs(difference) / sqrt(2 * variance))
