"""The variance of a set's mean attribution, from sums over placements.

A row's attribution depends on the rows of the other label, which are a sample as well. So each row of the slice moves
the mean of a set twice: as a row of it, and as one that its rows are compared with. Arithmetic on integers; no Spark.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from biasspark.metrics.delong import delong_part


class CellPair(NamedTuple):
    """One row of `u_statistics`, of two cells (low, high).

    Attributes
    ----------
    n_low, n_high
        Rows of the cells.
    u_doubled
        2 x pairs with the high row's score above, + ties.
    low_square_sum, high_square_sum
        Sum over the rows of that cell of its doubled placement, squared.
    """

    n_low: int
    n_high: int
    u_doubled: int
    low_square_sum: int
    high_square_sum: int

    @property
    def mirrored(self) -> CellPair:
        """The same upside down: low is high."""
        return CellPair(self.n_high, self.n_low, self.u_doubled, self.high_square_sum, self.low_square_sum)

    @property
    def auc(self) -> float | None:
        """U / (n_low n_high); None where a cell is empty."""
        n_pairs = self.n_low * self.n_high
        return float(Fraction(self.u_doubled, 2 * n_pairs)) if n_pairs else None

    @property
    def auc_variance(self) -> float | None:
        """DeLong's variance of the AUC, rounded once; None where a cell has fewer than two rows."""
        if min(self.n_low, self.n_high) < 2:
            return None
        return float(self._low_part + self.mirrored._low_part)

    @property
    def _low_part(self) -> Fraction:
        return delong_part(self.n_low, self.n_high, self.u_doubled, self.low_square_sum)


def influence_variance(negatives: Placed, positives: Placed) -> float | None:
    """Return the variance of the mean normalized attribution of a set of rows, such as the honest ones of a segment.

    Let L be the set, k its rows, with mean attribution t; and T⁺, T⁻ the sums of the attributions of its positives and
    negatives. The slice has p positives and n negatives. Row i moves the mean by its influence

        ψ_i = 1[i ∈ L]·(a_i - t)/k + (k⁻/k)(g_i - t⁻)/p    of a positive; of a negative, with k⁺, h_i, t⁺ and n

    where g_i is half the share of L's negatives that i is rightly ordered with. The variance is the sum of ψ_i² over
    all rows of the slice.

    Parameters
    ----------
    negatives, positives : Placed
        Sums of doubled placements; ties count one half. They may be of one model's placements, or of what is linear in
        them, like the difference of two models' placements.

    Returns
    -------
    float or None
        At least 0, rounded once. None where the slice lacks a label, so that no attribution is defined, and where L has
        fewer than two rows, whose spread says nothing. If L has one label, only rows of the other are compared with
        it: the second term of its own label is 0.

    Notes
    -----
    For the positives: D_i is the doubled placement against all n negatives, of which d_i is against those of L; so
    a_i = D_i/(4n), and (k⁻/k)(g_i - t⁻) = (d_i/4 - T⁻)/k, which needs no k⁻ to divide by. Then

        k²·Σψ² = Σ_L (D/(4n) - t)² + (2/p)·Σ_L (D/(4n) - t)(d/4 - T⁻) + (1/p²)·Σ_all (d/4 - T⁻)²

    The negatives are the same upside down. Costs some fifty operations on integers, whatever the number of rows.
    """
    k = negatives.k + positives.k
    if k < 2 or not negatives.n or not positives.n:
        return None
    negative_total = negatives.attribution_total(positives.n)
    positive_total = positives.attribution_total(negatives.n)
    mean = (negative_total + positive_total) / k
    squares = positives.square_sum(negatives.n, mean, negative_total)
    squares += negatives.square_sum(positives.n, mean, positive_total)
    return float(squares / k**2)


class Placed(NamedTuple):
    """The rows of one label, placed against those of the other: sums over the rows of a set, except the last.

    Attributes
    ----------
    n, k
        Rows of the label, and those in the set.
    placed
        Sum of doubled placements D against all rows of the other label.
    placed_inside
        Sum of doubled placements d against the set's rows of the other label.
    squares, crossed
        Sums of D² and of D·d.
    squares_inside_of_all
        Sum of d² over all rows of the label.
    """

    n: int
    k: int
    placed: int
    placed_inside: int
    squares: int
    crossed: int
    squares_inside_of_all: int

    def attribution_total(self, n_opposite: int) -> Fraction:
        """Return the sum of the attributions of the set's rows."""
        return Fraction(self.placed, 4 * n_opposite)

    def square_sum(self, n_opposite: int, mean: Fraction, opposite_total: Fraction) -> Fraction:
        """Return k²·Σψ² over all rows of the label, k being the rows of the set."""
        total = self.attribution_total(n_opposite)
        around_mean = Fraction(self.squares, 16 * n_opposite**2) - 2 * mean * total + self.k * mean**2
        both = Fraction(self.crossed, 16 * n_opposite) - opposite_total * total
        both -= mean * (Fraction(self.placed_inside, 4) - self.k * opposite_total)
        compared = Fraction(self.squares_inside_of_all, 16) - self.n * opposite_total**2
        return around_mean + 2 * both / self.n + compared / self.n**2
