"""Trees, grown level by level from histograms of their nodes: one query about sums by cell for each level of all trees.

The training rows choose the splits of a tree. The estimation ("honest") rows are only counted, so that leaves hold
enough of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from biasspark.arrays import Ints
from biasspark.attribution.block_sums import SUM_BITS, CellSums, SummedValue, Target, add_by_code, meet
from biasspark.attribution.moments import LARGEST_BITS
from biasspark.attribution.splits import BinSums, Split, best_split
from biasspark.config.attribution_settings import TreeSettings
from biasspark.features import Condition, Feature
from biasspark.ranking.kernels.row_block import Cells
from biasspark.ranking.row_blocks import Query, Search

ROOT = 1
"""The number of a root; the children of node k are 2k and 2k + 1."""

N_COLUMNS = 3
"""Of a histogram by bin: training rows, the sums of their values in units, estimation rows."""

NodeKey: TypeAlias = tuple[int, int]
"""The number of a tree, and that of one of its nodes."""


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


def list_tree_values(targets: Sequence[Target], n_rows: int) -> list[SummedValue]:
    """Return the values that are summed up to grow a tree for each target, of at most `n_rows` rows."""
    shift = SUM_BITS - LARGEST_BITS - max(n_rows, 1).bit_length()
    return [SummedValue(target, shift) for target in targets]


def grow_trees(
    features: Sequence[Feature], values: Sequence[SummedValue], settings: TreeSettings, square_sums: Sequence[float]
) -> Search[list[Tree]]:
    """Grow a tree for each value, by queries about `CellSums`: one for each level of all trees.

    Every leaf except a root holds `min_leaf` rows of either half. At equal gains the first of the `features` is split
    on. `square_sums` are, for each tree, the sum of squares of the training values around their mean: a split must
    explain at least ``min_gain`` of it. A tree without rows has only a root.

    The values have one shift. They are rounded to whole units of 2^-s, with s as large as sums of that many rows allow
    (35 for two million), and added up in int64: trees are the same under any partitioning and order of the rows.

    If a node is split, only the side with fewer rows is measured: the other is the rest of the node's histograms. The
    driver collects a histogram for each measured node and feature, whatever the number of rows, and holds those of two
    levels. Costs a sort of the bins for each node and feature.
    """
    trees = [{ROOT: Node(ROOT, {})} for _ in values]
    parents: dict[NodeKey, Sequence[Ints] | None] = {(number, ROOT): None for number in range(len(values)) if features}
    for _ in range(settings.max_depth):
        if not parents:
            break
        measured = yield from _measure_leaves(trees, parents, values, features)
        parents = {}
        for (number, node_id), histograms in measured.items():
            node = trees[number][node_id]
            least_gain = settings.min_gain * square_sums[number] * 4.0 ** values[number].shift  # in squared units
            split = _find_split(node.condition, histograms, features, settings.min_leaf, least_gain)
            if split:
                trees[number] |= _apply(split, node)
                of_bins = histograms[split.feature]
                sides = [of_bins[:, sorted(bins)].sum(axis=1) for bins in (split.left, split.right)]
                if any(_may_be_split(side, settings.min_leaf) for side in sides):
                    n_left, n_right = (n_train + n_honest for n_train, _, n_honest in sides)
                    parents[number, 2 * node_id + int(n_right < n_left)] = histograms
    return [tuple(node for _, node in sorted(tree.items())) for tree in trees]


def _may_be_split(rows: Ints, min_leaf: int) -> bool:
    """Return whether a node may have two leaves, given the sums of any of its histograms."""
    return bool(min(rows[0], rows[2]) >= 2 * min_leaf)


def _find_split(
    condition: Condition, histograms: Sequence[Ints], features: Sequence[Feature], min_leaf: int, least_gain: float
) -> Split | None:
    """Return the allowed split of a node that explains most, or None if none explains enough."""
    if not _may_be_split(histograms[0].sum(axis=1), min_leaf):
        return None
    nodes = (BinSums(counts, sums, np.stack([counts, honest], axis=1)) for counts, sums, honest in histograms)
    split = best_split(features, nodes, min_leaf, condition)
    return split if split and split.gain >= least_gain else None


def _apply(split: Split, node: Node) -> dict[int, Node]:
    """Return the node with its split, and its children."""
    children = enumerate((split.left, split.right), 2 * node.node_id)
    changed = {child_id: Node(child_id, {**node.condition, split.feature: bins}) for child_id, bins in children}
    return {node.node_id: node._replace(split=split), **changed}


# ---- histograms


def _measure_leaves(
    trees: Sequence[Mapping[int, Node]],
    parents: Mapping[NodeKey, Sequence[Ints] | None],
    values: Sequence[SummedValue],
    features: Sequence[Feature],
) -> Search[dict[NodeKey, Sequence[Ints]]]:
    """Return the histograms of leaves by feature, int64, shape (`N_COLUMNS`, bins), by one query.

    `parents` has the histograms of the parent of each leaf, None for a root. Less those of the leaf, they are the
    histograms of its sibling, which are returned as well.
    """
    leaves = [(values[number], trees[number][node_id].condition) for number, node_id in parents]

    def measure(_: int, _range: int, block: CellSums) -> Iterator[tuple[int, int, list[Ints]]]:
        for chunk, (value, condition) in enumerate(leaves):
            if value in block.sums:
                yield value.target.slice, chunk, measure_bins(block.cells, block.sums[value], condition, features)

    answer = yield Query(measure)
    nothing = [np.zeros((N_COLUMNS, feature.n_bins), np.int64) for feature in features]
    histograms: dict[NodeKey, Sequence[Ints]] = {}
    for chunk, ((number, node_id), parent) in enumerate(parents.items()):
        target = values[number].target
        histograms[number, node_id] = parts = answer.get((target.model, target.slice, chunk), nothing)
        if parent:
            histograms[number, node_id ^ 1] = [whole - part for whole, part in zip(parent, parts, strict=True)]
    return histograms


def measure_bins(cells: Cells, sums: Ints, condition: Condition, features: Sequence[Feature]) -> list[Ints]:
    """Return by feature the histogram of the cells that meet a condition, given the sums of `CellSums`."""
    inside = np.flatnonzero(meet(condition, cells.bins) & (sums[0] > 0))
    (n_rows, totals, _), honest = sums[:, inside], cells.honest[inside]
    counts = np.stack([np.where(honest, 0, n_rows), np.where(honest, 0, totals), np.where(honest, n_rows, 0)])
    codes = zip(features, cells.bins[:, inside], strict=True)
    return [add_by_code(of_feature, counts, feature.n_bins) for feature, of_feature in codes]
