"""Two models' AUCs of the same rows, and the variances of what is made of both: arithmetic, no Spark."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import fsum
from typing import NamedTuple

_CONTRASTS = ((1, 0), (0, 1), (1, -1), (1, 1))
"""How much of either AUC there is in what has a variance."""


class PlacedTwice(NamedTuple):
    """Sums over the rows of one cell: x is a row's doubled placement among another cell by the model, y by a baseline.

    Attributes
    ----------
    n
        How many rows.
    first, second, first_squares, second_squares, products
        Sums of x, y, x², y² and x·y.
    """

    n: int = 0
    first: int = 0
    second: int = 0
    first_squares: int = 0
    second_squares: int = 0
    products: int = 0

    def variance_of_mean(self, n_among: int, x: int, y: int) -> Fraction:
        """Return the variance of the mean of x·(placement by the model) + y·(placement by the baseline), as shares.

        With s the sum and q that of squares of these, doubled, over m rows it is (m·q - s²) / (4·n_among²·m²·(m - 1)).
        """
        total = x * self.first + y * self.second
        squares = x * x * self.first_squares + y * y * self.second_squares + 2 * x * y * self.products
        return Fraction(self.n * squares - total**2, 4 * n_among**2 * self.n**2 * (self.n - 1))


class PairedAucs(NamedTuple):
    """Both models' AUCs of one pair of cells, over the rows that both score.

    Attributes
    ----------
    n_low, n_high
        Rows of the cells.
    auc, baseline_auc
        0 to 1; None where a cell is empty.
    auc_variance, baseline_variance, difference_variance, sum_variance
        Of either AUC, of their difference and of their sum. None where a cell has fewer than two rows.
    """

    n_low: int
    n_high: int
    auc: float | None = None
    baseline_auc: float | None = None
    auc_variance: float | None = None
    baseline_variance: float | None = None
    difference_variance: float | None = None
    sum_variance: float | None = None


def pair_by_delong(low: PlacedTwice, high: PlacedTwice) -> PairedAucs:
    """Return both AUCs of two cells, and DeLong's variances.

    Over both cells, of m rows that are placed among n, the variance of A ± B is the sum of

        (S_AA + S_BB ± 2·S_AB) / m

    with S the sample variances and covariance of placements as shares of n (DeLong, DeLong and Clarke-Pearson 1988).

    Parameters
    ----------
    low, high : PlacedTwice
        The rows of either cell among those of the other; ties count half.

    Returns
    -------
    PairedAucs
        Each number is rounded once from a fraction, so that a variance is 0 only where it is 0, as that of the
        difference of a model and itself.
    """
    if not low.n or not high.n:
        return PairedAucs(low.n, high.n)
    doubled_pairs = 2 * low.n * high.n
    aucs = (high.first / doubled_pairs, high.second / doubled_pairs)
    if min(low.n, high.n) < 2:
        return PairedAucs(low.n, high.n, *aucs)
    variances = (low.variance_of_mean(high.n, *own) + high.variance_of_mean(low.n, *own) for own in _CONTRASTS)
    return PairedAucs(low.n, high.n, *aucs, *map(float, variances))


def pair_by_jackknife(
    n: tuple[int, int], doubled: tuple[int, int], left: Sequence[tuple[int, int, int, int]]
) -> PairedAucs:
    """Return both AUCs of two cells, and their variances by leaving out one group of rows after another.

    With A_g the AUC without group g, over the G groups that have a row in either cell, the variance of what is linear
    in the AUCs, as A - B, is

        (G - 1)/G · Σ (A_g - mean of A_g)²

    Parameters
    ----------
    n : (int, int)
        Rows of the low and of the high cell.
    doubled : (int, int)
        Twice U of the model and of the baseline.
    left : sequence of (n_low, n_high, u_doubled, baseline_u_doubled)
        The same without each group.

    Returns
    -------
    PairedAucs
        Without variances where fewer than two groups have rows, or where a cell is empty without one of them. Each
        group's AUC is rounded once.
    """
    if not all(n):
        return PairedAucs(*n)
    pairs = 2 * n[0] * n[1]
    aucs = (doubled[0] / pairs, doubled[1] / pairs)
    touched = [one for one in left if one[:2] != n]
    if len(touched) < 2 or any(not low or not high for low, high, *_ in touched):
        return PairedAucs(*n, *aucs)
    replicates = [(own / (2 * low * high), theirs / (2 * low * high)) for low, high, own, theirs in touched]
    return PairedAucs(*n, *aucs, *(_vary([x * a + y * b for a, b in replicates]) for x, y in _CONTRASTS))


def _vary(replicates: Sequence[float]) -> float:
    """Return the jackknife's variance; 0 where all replicates are the same, whatever their mean is rounded to."""
    mean = fsum(replicates) / len(replicates)
    if min(replicates) == max(replicates):
        return 0.0
    return (len(replicates) - 1) / len(replicates) * fsum((one - mean) ** 2 for one in replicates)
