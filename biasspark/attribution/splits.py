"""The best split of a node: of one feature's bins in two, so that values vary least within either side. numpy only.

With n rows and S the sum of their values, of the node and of its left and right sides, a cut explains

    gain = S_l² / n_l + S_r² / n_r - S² / n = (n·S_l - n_l·S)² / (n·n_l·n_r)

of the sum of squares. It is computed in whole numbers and rounded once, so cuts that explain equally much tie however
large the values are, and ties are decided by order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from biasspark.arrays import BigInts, Flags, Floats, Ints
from biasspark.features import NULL_BIN, Condition, Feature


class Split(NamedTuple):
    """A cut of a node's bins of one feature, and its gain, above 0: by how much it reduces the sum of squares."""

    feature: int
    gain: float
    left: frozenset[int]
    right: frozenset[int]


class BinSums(NamedTuple):
    """Sums over the rows of a node by bin of one feature: rows, and their values, below 2^62 in all.

    `held`, shape (bins, kinds), counts the rows of each kind of which either side of a cut must hold enough.
    """

    counts: Ints
    sums: Ints
    held: Ints


def best_split(
    features: Sequence[Feature], nodes: Iterable[BinSums], least: int | Ints, condition: Condition
) -> Split | None:
    """Return the allowed split of a node that explains most, or None if no allowed one explains anything.

    The node meets the condition, and has the given sums of each feature. Either side of a split has at least `least`
    rows of every kind.

    Cuts of a numeric feature stand between two intervals, with NULL on either side, or between NULL and all others.
    Values, including NULL, are ordered by their means: one cut of that order is the best of all cuts (Fisher 1958).
    Rare values are left out of the order: they go to the side of more values, so that the rule of the other side says
    which few it is, and the rule of this side which it is not; if both have as many, where they explain more.

    Of equal gains the first: by feature, then NULL on the left before NULL on the right, then a lower cut before a
    higher. For values, the left side has the lower means, and equal means are ordered by bin.

    A bin without rows in `counts` may have rows that are not counted, so it goes to a definite side as well. An
    interval goes with the next below that has rows, or if none has with the first: a cut stands where a bin with rows
    begins. NULL goes to the side of more rows (if equal to the left), whose mean it changes least. A value goes to the
    side of more values, where no rule names it (of equally many to that of more rows).

    Costs m log m for m bins with rows.
    """
    splits = (
        _split_by(index, feature, node, least, condition.get(index, feature.bins))
        for index, (feature, node) in enumerate(zip(features, nodes, strict=True))
    )
    return max(filter(None, splits), key=attrgetter("gain"), default=None)


def _split_by(index: int, feature: Feature, node: BinSums, least: int | Ints, bins: frozenset[int]) -> Split | None:
    """Return the best allowed split of some bins of one feature; see `best_split`."""
    inside, rare = (np.isin(np.arange(feature.n_bins), list(chosen)) for chosen in (bins, bins & feature.rare))
    rows, sums, apart = np.where(inside, node.counts, 0), node.sums.astype(object), rare
    if np.count_nonzero(rows[~rare]) < 2:  # no side has more values: the rare ones count as one, at the first bin
        for values in (rows, sums):
            rare_sum = values[rare].sum()
            values[rare] = 0
            values[np.argmax(rare)] += rare_sum
        apart = np.zeros_like(rare)
    if np.count_nonzero(rows) < 2:
        return None
    best = Split(index, 0.0, frozenset(), frozenset())
    for order in _list_orders(feature, rows, sums, apart):
        gains, first_cuts = _measure(feature, order, rows, sums, apart)
        first_cuts[rare & ~apart] = first_cuts[np.argmax(rare)]
        on_left = np.zeros((len(order), node.held.shape[1]), np.int64)
        np.add.at(on_left, first_cuts[inside], node.held[inside])
        on_left = on_left.cumsum(axis=0)[:-1]
        allowed = (np.minimum(on_left, node.held.sum(axis=0) - on_left) >= least).all(axis=1)
        cut = np.argmax(np.where(allowed, gains, 0.0))
        if allowed[cut] and gains[cut] > best.gain:
            sides = inside & (first_cuts <= cut), inside & (first_cuts > cut)
            best = Split(index, float(gains[cut]), *(frozenset(np.flatnonzero(side).tolist()) for side in sides))
    return best if best.gain else None


def _list_orders(feature: Feature, rows: Ints, sums: BigInts, apart: Flags) -> list[Ints]:
    """Return the orders of the bins with rows in which cuts are tried: a cut stands after each bin but the last."""
    bins = np.flatnonzero(np.where(apart, 0, rows))
    if not feature.numeric:
        return [np.array(sorted(bins, key=lambda bin_: (sums[bin_] / int(rows[bin_]), bin_)))]
    known = bins[bins != NULL_BIN]
    return [bins, np.append(known, NULL_BIN)] if len(known) < len(bins) else [bins]


def _measure(feature: Feature, order: Ints, rows: Ints, sums: BigInts, apart: Flags) -> tuple[Floats, Ints]:
    """Return the gain of each cut of an order, and the first cut of which each bin is on the left.

    A bin of the last one's number is never on the left.
    """
    n_left, sum_left = np.cumsum(rows[order])[:-1], np.cumsum(sums[order])[:-1]
    n_rare, sum_rare = int(rows[apart].sum()), sums[apart].sum()
    n, total = int(rows[order].sum()) + n_rare, sums[order].sum() + sum_rare

    def explain(rare_are_left: Flags) -> Floats:
        left = (n_left + rare_are_left * n_rare).astype(object)
        explained = (n * (sum_left + rare_are_left * sum_rare) - left * total) ** 2
        # Python divides whole numbers of any size with one rounding, so equal gains are equal floats.
        gains: Floats = (explained / (n * left * (n - left))).astype(float)
        return gains

    has_fewer_rows, n_values = 2 * n_left < n - n_rare, 2 * np.arange(1, len(order))
    either = n_values == len(order)
    # With as many values on either side, the rest goes where it explains more.
    to_right = explain(either) < explain(~either) if n_rare else has_fewer_rows
    rest_is_right = (n_values < len(order)) | (either & to_right)
    first_cuts = np.full(feature.n_bins, np.count_nonzero(rest_is_right))
    first_cuts[order] = np.arange(len(order))
    if feature.numeric:
        known = np.sort(order[order != NULL_BIN])
        nearest = np.searchsorted(known, np.arange(1, feature.n_bins), side="right") - 1
        first_cuts[1:] = first_cuts[known[np.maximum(nearest, 0)]]
    if not rows[NULL_BIN]:
        first_cuts[NULL_BIN] = np.count_nonzero(has_fewer_rows)
    return explain(~rest_is_right), first_cuts
