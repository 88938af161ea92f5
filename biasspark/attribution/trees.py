"""Trees, grown level by level from histograms of their nodes: one query about sums by cell for each level of all trees.

The train rows choose the splits of a tree. The rows that estimate ("honest") are only counted, so that leaves hold
enough of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np

from biasspark.arrays import Ints
from biasspark.attribution.block_sums import SUM_BITS, CellSums, SummedValue, add_by_code, meet
from biasspark.attribution.moments import LARGEST_BITS
from biasspark.attribution.row_values import Target
from biasspark.attribution.splits import best_cut, leave_enough
from biasspark.config.attribution_settings import TreeSettings
from biasspark.features import Condition, Feature
from biasspark.ranking.kernels.row_block import Cells, SmallInts
from biasspark.ranking.row_blocks import Query, Search

ROOT = 1
"""The number of a root; the children of node k are 2k and 2k + 1."""

N_COLUMNS = 3
"""Of a histogram by the bins of all features: train rows, the sums of their values in whole units, honest rows."""

NodeKey: TypeAlias = tuple[int, int]
"""The number of a tree, and that of one of its nodes."""


class Split(NamedTuple):
    """How a node is split: by which feature, and its bins on each side."""

    feature: int
    left: frozenset[int]
    right: frozenset[int]


@dataclass(frozen=True)
class Node:
    """One node of a tree: the rows that meet a condition. A root has depth 0 and no parent; a leaf has no split."""

    node_id: int
    parent_id: int | None
    depth: int
    condition: Condition
    split: Split | None = None

    @property
    def is_leaf(self) -> bool:
        """Whether the node is not split."""
        return self.split is None


Tree: TypeAlias = tuple[Node, ...]
"""The nodes by ascending number, the root first."""


class Asked(NamedTuple):
    """The trees as grown so far, and those of their leaves whose histograms are asked for."""

    trees: Sequence[Tree]
    leaves: Sequence[NodeKey]


# ---- growing


def grow(
    features: Sequence[Feature], settings: TreeSettings, square_sums: Sequence[float]
) -> Generator[Asked, Mapping[NodeKey, Ints], list[Tree]]:
    """Grow trees together, one level at a time. Every leaf except a root holds `min_leaf` rows of either kind.

    Yields some leaves, whose histograms are to be sent: int64, shape (`N_COLUMNS`, bins of all features), zeros for a
    leaf without rows. If a node is split, only the side with fewer rows is measured: the other is the rest of the
    node's histogram. At equal gains the first of the `features` is split on. `square_sums` are, for each tree, the sum
    of squares of the train values around their mean, in squared units of the histograms' sums: a split must explain at
    least ``min_gain`` of it.

    Costs a sort of the bins for each node and feature. The driver holds the histograms of two levels.
    """
    nodes = [{ROOT: Node(ROOT, None, 0, {})} for _ in square_sums]
    asked: dict[NodeKey, Ints | None] = {(tree, ROOT): None for tree in range(len(nodes)) if features}
    for _ in range(settings.max_depth):
        if not asked:
            break
        measured = yield Asked(_list_trees(nodes), list(asked))
        wanted, asked = asked, {}
        for (tree, node_id), histogram in _with_siblings(measured, wanted):
            node, least_gain = nodes[tree][node_id], settings.min_gain * square_sums[tree]
            of_features = np.split(histogram, _find_starts(features)[1:-1], axis=1)
            split = _find_split(node.condition, of_features, features, settings.min_leaf, least_gain)
            if split:
                nodes[tree] |= _apply(split, node)
                of_bins = of_features[split.feature]
                sides = [of_bins[:, sorted(bins)].sum(axis=1) for bins in (split.left, split.right)]
                if any(_may_be_split(side, settings.min_leaf) for side in sides):
                    n_left, n_right = (n_train + n_honest for n_train, _, n_honest in sides)
                    asked[tree, 2 * node_id + int(n_right < n_left)] = histogram
    return _list_trees(nodes)


def _find_starts(features: Sequence[Feature]) -> Ints:
    """Return the first bin of each feature among those of all features, and the number of all."""
    return np.cumsum([0, *(feature.n_bins for feature in features)])


def _list_trees(nodes: Sequence[Mapping[int, Node]]) -> list[Tree]:
    return [tuple(node for _, node in sorted(of_tree.items())) for of_tree in nodes]


def _with_siblings(
    measured: Mapping[NodeKey, Ints], wanted: Mapping[NodeKey, Ints | None]
) -> Iterator[tuple[NodeKey, Ints]]:
    """Yield the histograms that were measured, and for each node's sibling the rest of its parent's."""
    for (tree, node_id), parent in wanted.items():
        histogram = measured[tree, node_id]
        yield (tree, node_id), histogram
        if parent is not None:
            yield (tree, node_id ^ 1), parent - histogram


def _may_be_split(rows: Ints, min_leaf: int) -> bool:
    """Return whether a node may have two leaves, given the sums of its histogram over the bins of one feature."""
    return bool(min(rows[0], rows[2]) >= 2 * min_leaf)


def _find_split(
    condition: Condition, histograms: Sequence[Ints], features: Sequence[Feature], min_leaf: int, least_gain: float
) -> Split | None:
    """Return the allowed split of a node that explains most, or None if none explains enough."""
    best: tuple[float, Split] | None = None
    if not _may_be_split(histograms[0].sum(axis=1), min_leaf):
        return None
    for index, (feature, (counts, sums, honest)) in enumerate(zip(features, histograms, strict=True)):
        fits = leave_enough(np.stack([counts, honest], axis=1), min_leaf)
        cut = best_cut(feature, counts, sums, fits, condition.get(index))
        if cut and cut.gain >= least_gain and (best is None or cut.gain > best[0]):
            best = cut.gain, Split(index, cut.left, cut.right)
    return best[1] if best else None


def _apply(split: Split, node: Node) -> dict[int, Node]:
    """Return the node with its split, and its children."""
    changed = {node.node_id: replace(node, split=split)}
    for child_id, bins in ((2 * node.node_id, split.left), (2 * node.node_id + 1, split.right)):
        condition = {**node.condition, split.feature: bins}
        changed[child_id] = Node(child_id, node.node_id, node.depth + 1, condition)
    return changed


# ---- sums by cell


def list_tree_values(targets: Sequence[Target], n_rows: int) -> list[SummedValue]:
    """Return the values that are summed up to grow a tree for each target, of at most so many rows."""
    shift = SUM_BITS - LARGEST_BITS - max(n_rows, 1).bit_length()
    return [SummedValue(target, shift) for target in targets]


def grow_trees(
    features: Sequence[Feature], values: Sequence[SummedValue], settings: TreeSettings, square_sums: Sequence[float]
) -> Search[list[Tree]]:
    """Grow a tree for each value, by queries about `CellSums`: one for each level.

    `square_sums` are those of `grow`, in units of the values; only ``min_gain`` uses them. The values have one shift.
    They are rounded to whole units of 2^-s, with s as large as sums of so many rows allow (35 for two million), and
    added up in int64: trees are the same under any partitioning and order of the rows. A tree without rows has only a
    root. The driver collects a histogram for each node that is measured, whatever the number of rows.
    """
    growing = grow(features, settings, [total * 4.0**one.shift for total, one in zip(square_sums, values, strict=True)])
    try:
        asked = next(growing)
        while True:
            leaves: defaultdict[int, list[int]] = defaultdict(list)
            for tree, node_id in asked.leaves:
                leaves[tree].append(node_id)
            answer = yield _ask_histograms({tree: asked.trees[tree] for tree in leaves}, leaves, values, features)
            histograms: dict[NodeKey, Ints] = {}
            for tree, of_tree in leaves.items():
                target, shape = values[tree].target, (len(of_tree), N_COLUMNS, _find_starts(features)[-1])
                [sums] = answer.get((target.model, target.slice, tree), [np.zeros(shape, np.int64)])
                histograms |= {(tree, node_id): one for node_id, one in zip(of_tree, sums, strict=True)}
            asked = growing.send(histograms)
    except StopIteration as end:
        trees: list[Tree] = end.value
        return trees


def _ask_histograms(
    trees: Mapping[int, Tree],
    leaves: Mapping[int, Sequence[int]],
    values: Sequence[SummedValue],
    features: Sequence[Feature],
) -> Query:
    def measure(_: int, _range: int, block: CellSums) -> Iterator[tuple[int, int, list[Ints]]]:
        for number, tree in trees.items():
            value = values[number]
            if value in block.sums:
                counts = count_for_histograms(block.cells, block.sums[value])
                at = find_nodes(tree, block.cells.bins)
                yield value.target.slice, number, [measure_bins(block.cells, counts, at, leaves[number], features)]

    return Query(measure)


def find_nodes(tree: Tree, bins: SmallInts) -> Ints:
    """Return the leaf of a tree that each cell is in, given the bins of the cells."""
    leaves = np.ones(bins.shape[1], np.int64)
    for node in tree:
        if node.split:
            inside = np.flatnonzero(leaves == node.node_id)
            goes_left = meet({node.split.feature: node.split.left}, bins[:, inside])
            leaves[inside] = 2 * node.node_id + ~goes_left
    return leaves


def count_for_histograms(cells: Cells, sums: Ints) -> Ints:
    """Return the columns of a histogram by cell, given the sums of `CellSums`."""
    (n_rows, totals, _), honest = sums, cells.honest
    return np.stack([np.where(honest, 0, n_rows), np.where(honest, 0, totals), np.where(honest, n_rows, 0)])


def measure_bins(cells: Cells, counts: Ints, leaves: Ints, asked: Sequence[int], features: Sequence[Feature]) -> Ints:
    """Return the histograms of some leaves, int64, shape (leaves, `N_COLUMNS`, bins of all features).

    `counts` are the columns of a histogram by cell, and `leaves` the leaf of each cell.
    """
    starts = _find_starts(features)
    histograms = np.zeros((len(asked), N_COLUMNS, starts[-1]), np.int64)
    for histogram, leaf in zip(histograms, asked, strict=True):
        inside = np.flatnonzero((leaves == leaf) & counts.any(axis=0))
        for start, bins, feature in zip(starts[:-1], cells.bins[:, inside], features, strict=True):
            of_feature = slice(start, start + feature.n_bins)
            histogram[:, of_feature] = add_by_code(bins, counts[:, inside], feature.n_bins)
    return histograms
