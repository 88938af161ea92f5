"""Trees, grown level by level from histograms of their nodes: one query about sums by cell for each level.

The training rows choose the splits of a tree. The estimation ("honest") rows are only counted, so that leaves hold
enough of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from biasspark.arrays import Ints
from biasspark.attribution.block_sums import CellSums, SummedValue, add_by_code, meet
from biasspark.attribution.splits import BinSums, Split, best_split
from biasspark.config.attribution_settings import TreeSettings
from biasspark.features import Condition, Feature
from biasspark.ranking.row_blocks import Query, Search

ROOT = 1
"""The number of a root; the children of node k are 2k and 2k + 1."""


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
        measured = yield from _measure(value, [tree[leaf].condition for leaf in leaves], features)
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


def _measure(
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
