"""Two dependent AUCs, and the variances of their difference and sum: paired DeLong."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from biasspark.metrics.delong import delong_part
from biasspark.ranking.kernels.paired_products import Products

CONTRASTS = ((1, 0), (0, 1), (1, -1), (1, 1))
"""Coefficients of both AUCs in each combination with a variance: each AUC, their difference and their sum."""


class PairedAucs(NamedTuple):
    """Two AUCs of one pair of cells: of both models over the rows that both score, or of two runs.

    It has the rows of the cells, for two runs the smaller number; the AUCs, in [0, 1], None if a cell is empty; the
    variances of each AUC, of their difference and of their sum, None if a cell has fewer than two rows; and the number
    of groups with a row in any cell from which the jackknife estimated the variances, None for DeLong.
    """

    n_low: int
    n_high: int
    auc: float | None = None
    baseline_auc: float | None = None
    auc_variance: float | None = None
    baseline_variance: float | None = None
    difference_variance: float | None = None
    sum_variance: float | None = None
    n_groups: int | None = None


def delong_aucs(low: Products, high: Products) -> PairedAucs:
    """Return both AUCs of two cells, and DeLong's variances.

    The variance of A ± B is the sum over both cells, each of m rows placed among n, of

        (S_AA + S_BB ± 2·S_AB) / m

    with S the sample variances and covariance of placements as shares of n (DeLong, DeLong and Clarke-Pearson 1988).

    `low` and `high` are the rows of each cell, placed among those of the other by the model and by the baseline; ties
    count half. Each number is rounded once from a fraction, so a variance is 0 only if the exact one is, as for the
    difference of a model and itself.
    """
    if not low.n or not high.n:
        return PairedAucs(low.n, high.n)
    doubled_pairs = 2 * low.n * high.n
    aucs = (high.first / doubled_pairs, high.second / doubled_pairs)
    if min(low.n, high.n) < 2:
        return PairedAucs(low.n, high.n, *aucs)
    first, second, difference, total = (
        float(_part(low, high.n, x, y) + _part(high, low.n, x, y)) for x, y in CONTRASTS
    )
    return PairedAucs(low.n, high.n, *aucs, first, second, difference, total)


def _part(rows: Products, n_opposite: int, x: int, y: int) -> Fraction:
    """Return one cell's part of DeLong's variance of x·A + y·B, from sums linear in both placements."""
    total = x * rows.first + y * rows.second
    squares = x * x * rows.first_squares + y * y * rows.second_squares + 2 * x * y * rows.products
    return delong_part(rows.n, n_opposite, total, squares)
