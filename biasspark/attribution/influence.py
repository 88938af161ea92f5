"""The variance of the mean attribution of a set of rows, and the AUC within the set, from sums over placements.

The attribution of a row depends on the rows of the other label, which are a sample as well. So each row of the slice
influences the mean of a set twice: as a row of the set, and as a row that its rows are compared with. Arithmetic on
integers; no Spark.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from biasspark.metrics.delong import delong_part


class Placed(NamedTuple):
    """Sums over the rows of one label, for a set of rows.

    D is the doubled placement of a row among all rows of the other label, d that among those of the set.

    Attributes
    ----------
    n, k
        Rows of the label in the slice, and those in the set.
    placed, inside, squares, crossed, inside_squares
        Over the rows of the set: ΣD, Σd, ΣD², ΣD·d and Σd².
    inside_of_all, inside_squares_of_all
        Over all rows of the label: Σd and Σd².
    """

    n: int
    k: int
    placed: int
    inside: int
    squares: int
    crossed: int
    inside_squares: int
    inside_of_all: int
    inside_squares_of_all: int

    def attribution_total(self, n_opposite: int) -> Fraction:
        """Return the sum of the normalized attributions of the rows of the set."""
        return Fraction(self.placed, 4 * n_opposite)

    def square_sum(self, n_opposite: int, mean: Fraction, opposite_total: Fraction) -> Fraction:
        """Return k²·Σψ² over all rows of the label, where k is the number of rows of the set of both labels."""
        total = self.attribution_total(n_opposite)
        around_mean = Fraction(self.squares, 16 * n_opposite**2) - 2 * mean * total + self.k * mean**2
        both = Fraction(self.crossed, 16 * n_opposite) - opposite_total * total
        both -= mean * (Fraction(self.inside, 4) - self.k * opposite_total)
        compared = Fraction(self.inside_squares_of_all, 16) - self.n * opposite_total**2
        return around_mean + 2 * both / self.n + compared / self.n**2


PlacedSet = tuple[Placed, Placed]
"""The negatives and the positives of a set."""


def influence_variance(negatives: Placed, positives: Placed) -> float | None:
    """Return the variance of the mean normalized attribution of a set of rows, such as the honest ones of a segment.

    Let L be the set, k the number of its rows and t their mean attribution; let T⁺ and T⁻ be the sums of the
    attributions of its positives and of its negatives. The slice has p positives and n negatives. The influence of
    row i on the mean is

        ψ_i = 1[i ∈ L]·(a_i - t)/k + (k⁻/k)(g_i - t⁻)/p    for a positive; for a negative, with k⁺, h_i, t⁺ and n

    where g_i is half the share of the negatives of L that i is correctly ordered with. The variance is the sum of ψ_i²
    over all rows of the slice.

    Parameters
    ----------
    negatives, positives : Placed
        Ties count one half. The placements may be those of one model, or be linear in such placements, like the
        difference of the placements of two models.

    Returns
    -------
    float or None
        At least 0, rounded once. None if the slice lacks a label, so that no attribution is defined, or if L has fewer
        than two rows. If L has rows of one label only, no row of that label is compared with L: the second term of
        that label is 0.

    Notes
    -----
    For the positives: D_i is the doubled placement among all n negatives, d_i that among those of L. So a_i = D_i/(4n),
    and (k⁻/k)(g_i - t⁻) = (d_i/4 - T⁻)/k, which does not divide by k⁻. Then

        k²·Σψ² = Σ_L (D/(4n) - t)² + (2/p)·Σ_L (D/(4n) - t)(d/4 - T⁻) + (1/p²)·Σ_all (d/4 - T⁻)²

    The negatives mirror this. Costs some fifty operations on integers, whatever the number of rows.
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


def auc_within(negatives: Placed, positives: Placed) -> tuple[float | None, float | None]:
    """Return the AUC of the positives of a set against its negatives, and DeLong's variance, each rounded once.

    No AUC if a label has no rows in the set, no variance if it has fewer than two.
    """
    n_pairs = negatives.k * positives.k
    if not n_pairs:
        return None, None
    auc = float(Fraction(positives.inside, 2 * n_pairs))
    if min(negatives.k, positives.k) < 2:
        return auc, None
    low, high = (
        delong_part(one.k, opposite.k, positives.inside, one.inside_squares)
        for one, opposite in ((negatives, positives), (positives, negatives))
    )
    return auc, float(low + high)
