"""Trees, grown level by level from histograms of their nodes: one query about sums by cell for each level.

The training rows choose the splits of a tree. The estimation ("honest") rows are only counted, so that leaves hold
enough of them. A split cuts one feature's bins in two, so that values vary least within either side: with n rows and S
the sum of their values, of the node and of its left and right sides, it explains

    gain = S_l² / n_l + S_r² / n_r - S² / n = (n·S_l - n_l·S)² / (n·n_l·n_r)

of the sum of squares. It is computed in whole numbers and rounded once, so cuts that explain equally much tie however
large the values are, and ties are decided by order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from biasspark.arrays import BigInts, Flags, Floats, Ints
from biasspark.attribution.block_sums import CellSums, SummedValue, add_by_code, meet
from biasspark.config.attribution_settings import TreeSettings
from biasspark.features import NULL_BIN, Condition, Feature
from biasspark.ranking.row_blocks import Query, Search

ROOT = 1
"""The number of a root; the children of node k are 2k and 2k + 1."""


class Split(NamedTuple):
    """A cut of a node's bins of one feature, and its gain, above 0: by how much it reduces the sum of squares."""

    feature: int
    gain: float
    left: frozenset[int]
    right: frozenset[int]


class Node(NamedTuple):
    """One node of a tree: the rows that meet a condition. A leaf has no split."""

    node_id: int
    condition: Condition
    split: Split | None = None


Tree: TypeAlias = tuple[Node, ...]
"""The nodes by ascending number, the root first."""


def list_node_columns(node_id: int, is_leaf: bool) -> dict[str, Any]:
    """Return the columns that place a node in its tree: a root has depth 0 and no parent."""
    parent_id, depth = node_id // 2 or None, node_id.bit_length() - 1
    return {"node_id": node_id, "parent_id": parent_id, "depth": depth, "is_leaf": is_leaf}


def grow_tree(
    features: Sequence[Feature], value: SummedValue, settings: TreeSettings, square_sum: float
) -> Search[Tree]:
    """Grow a tree for a value, by queries about `CellSums`: one for each level.

    Every leaf except a root holds `min_leaf` rows of either half. At equal gains the first of the `features` is split
    on. `square_sum` is the sum of squares of the training values around their mean: a split must explain at least
    ``min_gain`` of it. A tree without rows has only a root.

    The driver collects a histogram for each node that may be split and each feature, whatever the number of rows. Costs
    a sort of the bins for each of them.
    """
    tree, leaves = {ROOT: Node(ROOT, {})}, [ROOT]
    least_gain = settings.min_gain * square_sum * 4.0**value.shift  # in squared units
    for _ in range(settings.max_depth):
        if not leaves:
            break
        measured = yield from _count_rows(value, [tree[leaf].condition for leaf in leaves], features)
        searched, leaves = leaves, []
        for node_id, histograms in zip(searched, measured, strict=True):
            node = tree[node_id]
            sums = (BinSums(counts, sums, np.stack([counts, honest], axis=1)) for counts, sums, honest in histograms)
            split = best_split(features, sums, settings.min_leaf, node.condition)
            if split is None or split.gain < least_gain:
                continue
            tree[node_id] = node._replace(split=split)
            for child_id, bins in enumerate((split.left, split.right), 2 * node_id):
                tree[child_id] = Node(child_id, {**node.condition, split.feature: bins})
                n_train, _, n_honest = histograms[split.feature][:, sorted(bins)].sum(axis=1)
                if min(n_train, n_honest) >= 2 * settings.min_leaf:
                    leaves.append(child_id)
    return tuple(node for _, node in sorted(tree.items()))


def _count_rows(
    value: SummedValue, conditions: Sequence[Condition], features: Sequence[Feature]
) -> Search[list[Sequence[Ints]]]:
    """Return the histograms of nodes by feature, by one query.

    They have training rows, the sums of their values in units, and estimation rows: int64, shape (3, bins).
    """

    def measure(_: int, _range: int, block: CellSums) -> Iterator[tuple[int, int, list[Ints]]]:
        for number, condition in enumerate(conditions if value in block.sums else ()):
            inside = np.flatnonzero(meet(condition, block.cells.bins) & (block.sums[value][0] > 0))
            (n_rows, totals, _below), honest = block.sums[value][:, inside], block.cells.honest[inside]
            counts = np.stack([np.where(honest, 0, n_rows), np.where(honest, 0, totals), np.where(honest, n_rows, 0)])
            codes = zip(features, block.cells.bins[:, inside], strict=True)
            histograms = [add_by_code(column, counts, feature.n_bins) for feature, column in codes]
            yield value.target.slice, number, histograms

    answer = yield Query(measure)
    nothing = [np.zeros((3, feature.n_bins), np.int64) for feature in features]
    return [answer.get((*value.target[:2], number), nothing) for number in range(len(conditions))]


# ---- the best split of a node


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
