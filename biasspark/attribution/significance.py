"""Whether a segment differs from the rest by more than chance: exact moments and two tests. No Spark."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import erfc, sqrt

from biasspark.distributions import student_tail


@dataclass(frozen=True)
class Moments:
    """The number of some rows, and the exact sums of their values and of these squared, to be added and subtracted."""

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
        """The variance of the mean of independent values; None for fewer than two rows."""
        return None if self.variance is None else self.variance / self.n

    def __add__(self, other: Moments) -> Moments:
        """Return the moments of the rows of both."""
        return Moments(self.n + other.n, self.total + other.total, self.squares + other.squares)

    def __sub__(self, other: Moments) -> Moments:
        """Return the moments of the rows that are not among those of the other."""
        return Moments(self.n - other.n, self.total - other.total, self.squares - other.squares)


def welch_p_value(a: Moments, b: Moments) -> float | None:
    """Return the two-sided p-value of Welch's t-test that the means behind two samples are equal.

    With V = s²/n of either sample, t = (mean_a - mean_b) / sqrt(V_a + V_b) has about Student's distribution with
    (V_a + V_b)² / (V_a²/(n_a - 1) + V_b²/(n_b - 1)) degrees of freedom (Welch 1947).

    The samples share no row. None if a sample has fewer than two rows. If neither varies, 1 if their means are equal,
    else 0, the limit of ever smaller variances.
    """
    if a.variance is None or b.variance is None:
        return None
    # Means are subtracted before they are rounded.
    difference = float(a.total / a.n - b.total / b.n)
    part_a, part_b = a.variance / a.n, b.variance / b.n
    variance = part_a + part_b
    if variance == 0 or difference == 0:
        return 0.0 if difference else 1.0
    # Shares of the variance, not its square, which could pass below the smallest double.
    share_a, share_b = part_a / variance, part_b / variance
    freedom = 1 / (share_a**2 / (a.n - 1) + share_b**2 / (b.n - 1))
    return 2 * student_tail(abs(difference) / sqrt(variance), freedom)


def chance_p_value(part: Moments, whole: Moments) -> float | None:
    """Return how likely so many rows, drawn at random, have a mean at least as far from that of all; two-sided.

    If most values are nearly equal and few differ widely, as attributions do at an AUC near 1, rows that happen to have
    none of the few have nearly no variance, and Welch's test is certain about them. This test has the variance of all
    rows: over all draws of k of m rows, without replacement, that of the mean is

        (1/k - 1/m)·S²,

    where S² is the variance of all m values, with m - 1. Means are taken as normal. `part` are some rows of `whole`.
    None for no rows, and for all. 1 if no value differs.
    """
    if not part.n or part.n == whole.n or whole.variance is None:
        return None
    difference = float(part.total / part.n - whole.total / whole.n)
    return two_sided(difference, (1 / part.n - 1 / whole.n) * whole.variance)


def two_sided(difference: float, variance: float) -> float:
    """Return p of a normal difference; without variance 1 if it is 0, else 0, the limit of small variances."""
    if variance == 0:
        return 0.0 if difference else 1.0
    return erfc(abs(difference) / sqrt(2 * variance))
