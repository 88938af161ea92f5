"""Trees, grown level by level from histograms of their nodes, which the caller makes. numpy only.

The train rows choose the splits of a tree. The rows that estimate ("honest") are only counted, so that leaves hold
enough of them.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np

from biasspark.arrays import Ints
from biasspark.attribution.splits import best_cut, leave_enough
from biasspark.config.attribution_settings import TreeSettings
from biasspark.features import Condition, Feature

ROOT = 1
"""The number of a root; the children of node k are 2k and 2k + 1."""

NodeKey: TypeAlias = tuple[int, int]
"""The number of a tree, and that of one of its nodes."""


class Histogram(NamedTuple):
    """The rows of a node by the bins of one feature: int64 arrays, shape (bins,).

    Train rows, the sums of their values in whole units, and honest rows.
    """

    counts: Ints
    sums: Ints
    honest: Ints


Histograms: TypeAlias = Sequence[Histogram]
"""Of one node, by feature."""


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


def grow(
    features: Sequence[Feature], settings: TreeSettings, square_sums: Sequence[float]
) -> Generator[Asked, Mapping[NodeKey, Histograms], list[Tree]]:
    """Grow trees together, one level at a time.

    If a node is split, only the side with fewer rows is measured: the other is the rest of the node's histograms.

    Parameters
    ----------
    features : sequence of Feature
        At equal gains the first is split on.
    square_sums : sequence of float
        For each tree, the sum of squares of the train values around their mean, in squared units of the histograms'
        sums. A split must explain at least ``min_gain`` of it.

    Yields
    ------
    Asked
        Some leaves, whose histograms are to be sent: zeros for a leaf without rows.

    Returns
    -------
    list of Tree
        Every leaf except a root holds at least `min_leaf` train rows and as many honest rows.

    Notes
    -----
    Costs a sort of the bins for each node and feature. The driver holds the histograms of two levels: nodes times all
    bins of all features.
    """
    nodes = [{ROOT: Node(ROOT, None, 0, {})} for _ in square_sums]
    asked: dict[NodeKey, Histograms | None] = {(tree, ROOT): None for tree in range(len(nodes)) if features}
    for _ in range(settings.max_depth):
        if not asked:
            break
        measured = yield Asked(_list_trees(nodes), list(asked))
        wanted, asked = asked, {}
        for (tree, node_id), histograms in _with_siblings(measured, wanted):
            node, least_gain = nodes[tree][node_id], settings.min_gain * square_sums[tree]
            split = find_split(node.condition, histograms, features, settings.min_leaf, least_gain)
            if split:
                nodes[tree] |= _apply(split, node)
                asked |= _ask_further(split, (tree, node_id), histograms, settings.min_leaf)
    return _list_trees(nodes)


def find_split(
    condition: Condition, histograms: Histograms, features: Sequence[Feature], min_leaf: int, least_gain: float
) -> Split | None:
    """Return the allowed split of a node that explains most, or None if none explains enough."""
    best: tuple[float, Split] | None = None
    if not _may_be_split(histograms[0].counts, histograms[0].honest, min_leaf):
        return None
    for index, (feature, histogram) in enumerate(zip(features, histograms, strict=True)):
        fits = leave_enough(np.stack([histogram.counts, histogram.honest], axis=1), min_leaf)
        cut = best_cut(feature, histogram.counts, histogram.sums, fits, condition.get(index))
        if cut and cut.gain >= least_gain and (best is None or cut.gain > best[0]):
            best = cut.gain, Split(index, cut.left, cut.right)
    return best[1] if best else None


def _list_trees(nodes: Sequence[Mapping[int, Node]]) -> list[Tree]:
    return [tuple(node for _, node in sorted(of_tree.items())) for of_tree in nodes]


def _with_siblings(
    measured: Mapping[NodeKey, Histograms], wanted: Mapping[NodeKey, Histograms | None]
) -> Iterator[tuple[NodeKey, Histograms]]:
    """Yield the histograms that were measured, and for each node's sibling the rest of its parent's."""
    for (tree, node_id), parent in wanted.items():
        histograms = measured[tree, node_id]
        yield (tree, node_id), histograms
        if parent is not None:
            pairs = zip(parent, histograms, strict=True)
            yield (tree, node_id ^ 1), [Histogram(*(a - b for a, b in zip(*pair, strict=True))) for pair in pairs]


def _may_be_split(counts: Ints, honest: Ints, min_leaf: int) -> bool:
    return bool(min(counts.sum(), honest.sum()) >= 2 * min_leaf)


def _apply(split: Split, node: Node) -> dict[int, Node]:
    """Return the node with its split, and its children."""
    changed = {node.node_id: replace(node, split=split)}
    for child_id, bins in ((2 * node.node_id, split.left), (2 * node.node_id + 1, split.right)):
        condition = {**node.condition, split.feature: bins}
        changed[child_id] = Node(child_id, node.node_id, node.depth + 1, condition)
    return changed


def _ask_further(split: Split, key: NodeKey, histograms: Histograms, min_leaf: int) -> dict[NodeKey, Histograms | None]:
    """Return which child to measure, with its parent's histograms; none if neither can be split again."""
    (tree, node_id), histogram = key, histograms[split.feature]
    sides = [[column[sorted(bins)] for column in histogram] for bins in (split.left, split.right)]
    if not any(_may_be_split(counts, honest, min_leaf) for counts, _, honest in sides):
        return {}
    n_left, n_right = (int(counts.sum() + honest.sum()) for counts, _, honest in sides)
    return {(tree, 2 * node_id + (n_right < n_left)): histograms}
