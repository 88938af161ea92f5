"""Tests of the leaves of pairs by the placements of their rows. numpy only.

Pairs that share a row are not independent, so no test counts pairs as if they were: positives vary, and negatives vary.

Two tests compare a leaf with all honest pairs. The first tests its AUC by paired placements, with the variance of its
own rows (`compare_with_all`). That is unreliable if hardly any pair is wrongly ordered: a leaf that happens to have
none has nearly no variance, and seems certain. So a leaf must also differ from random draws (`Draws`), with a variance
of all honest rows and a skewness, since few rows make up the wrongly ordered pairs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from biasspark.arrays import Floats, Ints
from biasspark.attribution.influence import NEGATIVES, POSITIVES
from biasspark.attribution.moments import two_sided


class PlacedAuc(NamedTuple):
    """The doubled placements of negatives and positives, and the AUC.

    A placement is twice the number of rows of the other side with which a row is correctly ordered, plus ties. Ties
    count one half in the AUC, which is None if a side is empty. The variance is DeLong's, None if a side has fewer than
    two rows.
    """

    placements: tuple[Ints, Ints]
    value: float | None
    variance: float | None


class Draws(NamedTuple):
    """The AUC of negatives and positives that are drawn at random, without replacement, from all honest rows.

    Let h_ij be 1, 1/2 or 0, if positive i scores above negative j, ties with it or scores below, over all m⁺ times m⁻
    honest pairs, and A their mean, the AUC. It splits into

        h_ij = A + a_i + b_j + c_ij,   a_i = mean_j h_ij - A,   b_j = mean_i h_ij - A,

    so that a and b sum to 0, and c does over either side. If the conditions of a leaf have nothing to do with the
    scores, its k⁺ positives and k⁻ negatives are drawn at random, and its AUC is A + ā + b̄ + c̄, means over the drawn
    rows. The mean of k out of m numbers x that sum to 0 has, over all draws, the moments

        E x̄² = g·Σx²,   g = (m - k) / (k·m·(m - 1)),
        E x̄³ = t·Σx³,   t = (m - k)·(m - 2k) / (k²·m·(m - 1)·(m - 2)).

    Both sides are drawn independently, so ā, b̄ and c̄ are uncorrelated, and ā²c̄ and b̄²c̄ have the mean 0:

        σ² = g⁺·Σa² + g⁻·Σb² + g⁺·g⁻·Σc²,
        μ₃ = t⁺·Σa³ + t⁻·Σb³ + 6·g⁺·g⁻·Σ a_i·b_j·c_ij.

    σ² is exact; μ₃ leaves out the means of 3āc̄², 3b̄c̄² and c̄³, which are smaller by a factor of k or more.

    The attributes are A; m⁻ and m⁺; Σb² and Σa²; Σb³ and Σa³; Σc²; and Σ a_i·b_j·c_ij = Σ a_i·b_j·h_ij.
    """

    auc: float
    sizes: tuple[int, int]
    squares: tuple[float, float]
    cubes: tuple[float, float]
    squares_of_rest: float
    products: float

    @classmethod
    def of(cls, overall: PlacedAuc, negatives: Floats, positives: Floats) -> Draws | None:
        """Return the draws from all honest rows, given their AUC and their scores, ascending.

        None if a side has fewer than two rows.
        """
        sizes = len(overall.placements[NEGATIVES]), len(overall.placements[POSITIVES])
        if overall.value is None or min(sizes) < 2:
            return None
        b, a = (overall.placements[side] / (2 * sizes[1 - side]) - overall.value for side in (NEGATIVES, POSITIVES))
        # fsum rounds once: sums depend on no order.
        squares, cubes = ((math.fsum(b**power), math.fsum(a**power)) for power in (2, 3))
        below, up_to = (np.searchsorted(negatives, positives, end) for end in ("left", "right"))
        all_squares = math.fsum(3 * below + up_to) / 4 - math.prod(sizes) * overall.value**2
        rest = all_squares - sizes[NEGATIVES] * squares[POSITIVES] - sizes[POSITIVES] * squares[NEGATIVES]
        so_far = np.concatenate([[0.0], np.cumsum(b)])
        products = math.fsum(a * (so_far[below] + so_far[up_to]) / 2)
        return cls(overall.value, sizes, squares, cubes, max(rest, 0.0), products)

    def moments(self, n_drawn: tuple[int, int]) -> tuple[float, float]:
        """Return σ² and μ₃ for these numbers of drawn negatives and positives."""
        (g_negative, t_negative), (g_positive, t_positive) = map(_draw_factors, self.sizes, n_drawn)
        both = g_negative * g_positive
        squares, cubes = self.squares, self.cubes
        return (
            g_negative * squares[NEGATIVES] + g_positive * squares[POSITIVES] + both * self.squares_of_rest,
            t_negative * cubes[NEGATIVES] + t_positive * cubes[POSITIVES] + 6 * both * self.products,
        )

    def p_value(self, auc: float, n_drawn: tuple[int, int]) -> float:
        """Return the two-sided p-value of the AUC of this many drawn negatives and positives.

        Pearson's distribution of type III, that of a shifted gamma variable, has these three moments. With the skewness
        s = μ₃/σ³ and z = (auc - A)/σ,

            (6/s)·((1 + s·z/2)^(1/3) - 1) + s/6

        is then about standard normal (Wilson and Hilferty 1931), as is z itself if s is 0. 1 if no draw differs.
        """
        variance, third = self.moments(n_drawn)
        if variance == 0:
            return two_sided(auc - self.auc, 0.0)
        skewness = third / variance**1.5
        z = (auc - self.auc) / math.sqrt(variance)
        if abs(skewness) > 1e-6:
            z = 6 / skewness * (math.cbrt(1 + skewness * z / 2) - 1) + skewness / 6
        return two_sided(z, 1.0)


def compare_samples(train: PlacedAuc, honest: PlacedAuc) -> float | None:
    """Return the p-value of the difference of the AUCs of two disjoint samples, whose variances add up."""
    if train.value is None or train.variance is None or honest.value is None or honest.variance is None:
        return None
    return two_sided(train.value - honest.value, train.variance + honest.variance)


def compare_with_all(leaf: PlacedAuc, overall: PlacedAuc, rows: Sequence[Ints]) -> float | None:
    """Return the p-value of the difference of the AUC of a leaf and that of all, by paired placements.

    Both AUCs are means over the same rows, so their errors are correlated. Let the leaf have k of the m positives, V_i
    be the share of the leaf's negatives that positive i is correctly ordered with, ties half, W_i that of all
    negatives. To first order, the error of an AUC is a sum of deviations over positives, and one over negatives; row i
    adds to the difference A_L - A

        φ_i = 1[i in L]·(V_i - A_L) / sqrt(k·(k - 1)) - (W_i - A) / sqrt(m·(m - 1)),

    and negatives likewise; variance = Σφ² over both. sqrt(k·(k - 1)) replaces k so that the squares add up to DeLong's
    variance of either AUC alone, and the products to their covariance (DeLong, DeLong and Clarke-Pearson 1988).
    It is never negative, and 0 if the leaf has all rows. `rows` are the numbers of the leaf's negatives and positives.
    """
    if leaf.value is None or leaf.variance is None or overall.value is None:
        return None
    parts: list[float] = []
    for side in (NEGATIVES, POSITIVES):
        influence = -_deviations(overall.placements, overall.value, side)
        influence[rows[side]] += _deviations(leaf.placements, leaf.value, side)
        parts += np.square(influence).tolist()
    # fsum rounds once: the sum depends on no order.
    return two_sided(leaf.value - overall.value, math.fsum(parts))


def _deviations(placements: tuple[Ints, Ints], auc: float, side: int) -> Floats:
    """Return how far each row's share of correctly ordered pairs is from the AUC, over sqrt(k·(k - 1))."""
    k, n_opposite = len(placements[side]), len(placements[1 - side])
    deviations: Floats = (placements[side] / (2 * n_opposite) - auc) / math.sqrt(k * (k - 1))
    return deviations


def _draw_factors(m: int, k: int) -> tuple[float, float]:
    """Return g and t of `Draws` for k out of m, at least two; two have no skewness."""
    g = (m - k) / (k * m * (m - 1))
    return g, (g * (m - 2 * k) / (k * (m - 2)) if m > 2 else 0.0)
