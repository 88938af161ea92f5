"""The best cut of one feature: of its bins in two, so that a node's values vary least within either side. numpy only.

With n rows and S the sum of their values, of the node and of its left and right sides, a cut explains

    gain = S_l² / n_l + S_r² / n_r - S² / n = (n·S_l - n_l·S)² / (n·n_l·n_r)

of the sum of squares. It is computed in whole numbers and rounded once, so cuts that explain equally much tie however
large the values are, and ties are decided by order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from math import lcm
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from biasspark.arrays import BigInts, Flags, Floats, Ints
from biasspark.features import NULL_BIN, Feature

Fits: TypeAlias = Callable[[Flags], Flags]
"""Returns which cuts are allowed, shape (cuts,), given the bins on the left of each, shape (cuts, bins)."""

_AT_ONCE = 64
"""Cuts that `fits` is asked about together: mostly one of the best is allowed."""


class BinCut(NamedTuple):
    """A cut of a node's bins in two, and its gain, above 0: by how much it reduces the sum of squares of the values."""

    gain: float
    left: frozenset[int]
    right: frozenset[int]


class _NodeRows(NamedTuple):
    """A node by bin: rows, the sums of their values as whole numbers over a scale, and the bins left out of orders."""

    rows: Ints
    whole: BigInts
    scale: int
    apart: Flags


class _Order(NamedTuple):
    """The bins with rows in one order. A cut stands after each but the last.

    Attributes
    ----------
    ranks
        By bin its index in the order; an interval without rows has that of the interval which it goes with.
    gains
        By cut.
    left_is_larger
        By cut, whether the left side has at least as many rows as the right.
    left_is_rest
        By cut, whether rare values are on the left, and those that no row has.
    """

    ranks: Ints
    gains: Floats
    left_is_larger: Flags
    left_is_rest: Flags


def leave_enough(rows: Ints, least: int | Ints) -> Fits:
    """Return a function that says whether both sides of cuts hold at least so many rows of every kind.

    `rows` are those of the node, shape (bins, kinds).
    """
    every = rows.sum(axis=0)

    def fits(left: Flags) -> Flags:
        held = left @ rows
        enough: Flags = (np.minimum(held, every - held) >= least).all(axis=1)
        return enough

    return fits


def best_cut(
    feature: Feature,
    counts: Ints,
    sums: npt.NDArray[Any],
    fits: Fits | None = None,
    bins: frozenset[int] | None = None,
) -> BinCut | None:
    """Return the allowed cut of a node that explains most, or None if no allowed cut explains anything.

    Parameters
    ----------
    feature : Feature
        If numeric, cuts stand between two intervals, with NULL on either side, or between NULL and all others. If
        not, values, including NULL, are ordered by their means: one cut of that order is the best of all cuts (Fisher
        1958). Rare values are left out of the order: they go to the side of more values, so that the rule of the other
        side says which few it is, and the rule of this side which it is not; if both have as many, where they explain
        more.
    counts, sums : arrays of shape (bins,)
        By bin the rows of the node, int64, and the sum of their values, int64 or float64, below 2^62 in all and finite.
    fits : callable, optional
        Further conditions on a cut, such as the fewest rows of either side.
    bins : frozenset of int, optional
        The bins of the node's condition; `feature.bins` by default.

    Returns
    -------
    BinCut or None
        Of equal gains the first: NULL on the left comes before NULL on the right, then a lower cut before a higher.
        For values, the left side has the lower means, and equal means are ordered by bin.

    Notes
    -----
    A bin without rows in `counts` may have rows that are not counted, so it goes to a definite side as well. An
    interval goes with the next below that has rows, or if none has with the first: a cut stands where a bin with rows
    begins. NULL goes to the side of more rows (if equal to the left), whose mean it changes least. A value goes to the
    side of more values, where no rule names it (of equally many to that of more rows).

    Costs m log m for m bins with rows, and for `fits` matrices of 64 cuts times all bins, most often one.
    """
    inside = np.isin(np.arange(feature.n_bins), list(feature.bins if bins is None else bins))
    rare = inside & np.isin(np.arange(feature.n_bins), list(feature.rare))
    rows = np.where(inside, counts, 0)
    if np.count_nonzero(rows) < 2:
        return None
    whole, scale = _whole_numbers(sums)
    if np.count_nonzero(rows[~rare]) < 2:  # no side has more values: the rare ones count as one value
        rows, whole, apart = _join(rows, rare), _join(whole, rare), np.zeros_like(rare)
    else:
        apart = rare
    node = _NodeRows(rows, whole, scale, apart)
    orders = [_measure(feature, order, node) for order in _orders(feature, node)]
    loose = inside & (rows == 0)
    loose[NULL_BIN + 1 :] &= not feature.numeric
    for gains, left in _best_first(orders, inside, loose, apart):
        left[:, rare & ~apart] = left[:, [np.argmax(rare)]]
        allowed = np.flatnonzero(fits(left)) if fits else np.arange(1)
        if len(allowed):
            chosen = left[allowed[0]]
            sides = (frozenset(np.flatnonzero(side).tolist()) for side in (chosen, inside & ~chosen))
            return BinCut(float(gains[allowed[0]]), *sides)
    return None


def _join(values: npt.NDArray[Any], rare: Flags) -> npt.NDArray[Any]:
    """Return the values of bins, with the sum over the rare ones at the first of these."""
    joined = np.where(rare, 0, values)
    joined[np.argmax(rare)] += values[rare].sum()
    return joined


def _whole_numbers(sums: npt.NDArray[Any]) -> tuple[BigInts, int]:
    """Return sums times a scale, as whole numbers: exact, as every float is a fraction."""
    if np.issubdtype(sums.dtype, np.integer):
        return sums.astype(object), 1
    fractions = [Fraction(float(value)) for value in sums]
    scale = lcm(*(fraction.denominator for fraction in fractions))
    return np.array([int(fraction * scale) for fraction in fractions], object), scale


def _orders(feature: Feature, node: _NodeRows) -> list[Ints]:
    """Return the orders of the bins with rows in which cuts are tried."""
    bins = np.flatnonzero(np.where(node.apart, 0, node.rows))
    if not feature.numeric:
        return [np.array(sorted(bins, key=lambda bin_: (node.whole[bin_] / int(node.rows[bin_]), bin_)))]
    known = bins[bins != NULL_BIN]
    return [bins, np.append(known, NULL_BIN)] if len(known) < len(bins) else [bins]


def _measure(feature: Feature, order: Ints, node: _NodeRows) -> _Order:
    n_left, sum_left = np.cumsum(node.rows[order])[:-1], np.cumsum(node.whole[order])[:-1]
    n_values = 2 * np.arange(1, len(order))
    n_rare, sum_rare = int(node.rows[node.apart].sum()), node.whole[node.apart].sum()
    n, total = int(node.rows[order].sum()) + n_rare, node.whole[order].sum() + sum_rare

    def explain(left_is_rest: Flags) -> Floats:
        left = (n_left + left_is_rest * n_rare).astype(object)
        explained = (n * (sum_left + left_is_rest * sum_rare) - left * total) ** 2
        # Python divides whole numbers of any size with one rounding, so equal gains are equal floats.
        gains: Floats = (explained / (n * left * (n - left) * node.scale**2)).astype(float)
        return gains

    left_is_larger, either = 2 * n_left >= n - n_rare, n_values == len(order)
    # With as many values on either side, the rest goes where it explains more.
    to_left = explain(either) >= explain(~either) if n_rare else left_is_larger
    left_is_rest = (n_values > len(order)) | (either & to_left)
    return _Order(_rank_bins(feature, order), explain(left_is_rest), left_is_larger, left_is_rest)


def _rank_bins(feature: Feature, order: Ints) -> Ints:
    """Return the index of every bin in an order; bins that are not in it, except intervals, are past its end."""
    ranks = np.full(feature.n_bins, len(order))
    ranks[order] = np.arange(len(order))
    known = np.sort(order[order != NULL_BIN])
    if feature.numeric and len(known):
        nearest = np.searchsorted(known, np.arange(1, feature.n_bins), side="right") - 1
        ranks[1:] = ranks[known[np.maximum(nearest, 0)]]
    return ranks


def _best_first(orders: Sequence[_Order], inside: Flags, loose: Flags, apart: Flags) -> Iterator[tuple[Floats, Flags]]:
    """Yield some cuts at a time, those that explain most first: gains above 0, and the bins on the left."""
    gains = np.concatenate([order.gains for order in orders])
    ranks = np.stack([order.ranks for order in orders])
    left_is_larger = np.concatenate([order.left_is_larger for order in orders])
    left_is_rest = np.concatenate([order.left_is_rest for order in orders])
    n_cuts = len(orders[0].gains)
    best = np.argsort(-gains, kind="stable")[: np.count_nonzero(gains)]
    for start in range(0, len(best), _AT_ONCE):
        some = best[start : start + _AT_ONCE]
        left = ranks[some // n_cuts] <= (some % n_cuts)[:, np.newaxis]
        left[:, loose | apart] = left_is_rest[some, np.newaxis]
        if loose[NULL_BIN]:
            left[:, NULL_BIN] = left_is_larger[some]
        yield gains[some], left & inside
