"""Trees, grown level by level from histograms of their nodes, whoever makes those. numpy only.

The rows that grow a tree choose its splits. Those that estimate ("honest") are only counted, so that leaves hold enough
of them.
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
    """The rows of a node by the bins of one feature.

    Attributes
    ----------
    counts, sums : int64 [n_bins]
        Rows that grow the tree, and the sums of their values in whole units.
    honest : int64 [n_bins]
        Rows that estimate.
    """

    counts: Ints
    sums: Ints
    honest: Ints

    def without(self, other: Histogram) -> Histogram:
        """Return the histogram of the rows that are not among the other's."""
        return Histogram(*(whole - part for whole, part in zip(self, other, strict=True)))


Histograms: TypeAlias = Sequence[Histogram]
"""Of one node, by feature."""


@dataclass(frozen=True)
class Split:
    """How a node is split: by which feature, and its bins that go to either side."""

    feature: int
    left: frozenset[int]
    right: frozenset[int]


@dataclass(frozen=True)
class Node:
    """One node of a tree.

    Attributes
    ----------
    node_id
        1 for the root; the children of node k are 2k and 2k + 1.
    parent_id
        None for the root.
    depth
        0 for the root.
    condition
        What the node's rows meet.
    split
        None in a leaf.
    """

    node_id: int
    parent_id: int | None
    depth: int
    condition: Condition
    split: Split | None = None

    @property
    def is_leaf(self) -> bool:
        """Whether the node is not split."""
        return self.split is None


@dataclass(frozen=True)
class GrownTree:
    """A tree by its number, and its nodes by ascending id; the root first."""

    number: int
    nodes: tuple[Node, ...]


class Asked(NamedTuple):
    """Trees as they have grown so far, and those of their leaves whose histograms are asked for."""

    trees: Sequence[GrownTree]
    leaves: Sequence[NodeKey]


@dataclass(frozen=True)
class Limits:
    """What splits must keep to.

    Attributes
    ----------
    max_depth, min_leaf
        As in the configuration.
    least_gains
        By tree the least gain of a split, in squared units of the histograms' sums.
    """

    max_depth: int
    min_leaf: int
    least_gains: tuple[float, ...]

    @classmethod
    def of(cls, settings: TreeSettings, square_sums: Sequence[float]) -> Limits:
        """Return the limits for trees whose values have these sums of squares around their means."""
        least = tuple(settings.min_gain * square_sum for square_sum in square_sums)
        return cls(settings.max_depth, settings.min_leaf, least)


def grow(
    features: Sequence[Feature], limits: Limits
) -> Generator[Asked, Mapping[NodeKey, Histograms], list[GrownTree]]:
    """Grow trees together, one level at a time.

    Of a node that is split only the side with fewer rows is measured: the other is what is left of the node's
    histograms.

    Parameters
    ----------
    features : sequence of Feature
        At equal gains the first is split on.
    limits : Limits
        One least gain for each tree.

    Yields
    ------
    Asked
        Some leaves, whose histograms are to be sent; of a leaf without rows, histograms of zeros.

    Returns
    -------
    list of GrownTree
        In the order of their numbers, from 0. Every leaf but a root holds at least `min_leaf` rows that grow the tree
        and as many that estimate. A node's children partition its rows.

    Notes
    -----
    Costs a sort of the bins for each node and feature. The driver holds the histograms of two
    levels: nodes times all bins of all features.
    """
    nodes = {(tree, ROOT): Node(ROOT, None, 0, {}) for tree in range(len(limits.least_gains))}
    asked: dict[NodeKey, Histograms | None] = dict.fromkeys(nodes) if features else {}
    for _ in range(limits.max_depth):
        if not asked:
            break
        measured = yield Asked(_trees(nodes), list(asked))
        wanted, asked = asked, {}
        for key, histograms in _with_siblings(measured, wanted):
            split = find_split(nodes[key].condition, histograms, features, limits, limits.least_gains[key[0]])
            if split:
                nodes |= _apply(split, key, nodes[key])
                asked |= _ask_further(split, key, histograms, limits.min_leaf)
    return _trees(nodes)


def find_split(
    condition: Condition, histograms: Histograms, features: Sequence[Feature], limits: Limits, least_gain: float
) -> Split | None:
    """Return the split of a node that explains most, or None where none that is allowed explains enough."""
    best: tuple[float, Split] | None = None
    if not _may_be_split(histograms[0].counts, histograms[0].honest, limits.min_leaf):
        return None
    for index, (feature, histogram) in enumerate(zip(features, histograms, strict=True)):
        fits = leave_enough(np.stack([histogram.counts, histogram.honest], axis=1), limits.min_leaf)
        cut = best_cut(feature, histogram.counts, histogram.sums, fits, condition.get(index))
        if cut and cut.gain >= least_gain and (best is None or cut.gain > best[0]):
            best = cut.gain, Split(index, cut.left, cut.right)
    return best[1] if best else None


def _trees(nodes: Mapping[NodeKey, Node]) -> list[GrownTree]:
    by_tree: dict[int, list[Node]] = {}
    for (tree, _), node in sorted(nodes.items(), key=lambda item: item[0]):
        by_tree.setdefault(tree, []).append(node)
    return [GrownTree(tree, tuple(members)) for tree, members in by_tree.items()]


def _with_siblings(
    measured: Mapping[NodeKey, Histograms], wanted: Mapping[NodeKey, Histograms | None]
) -> Iterator[tuple[NodeKey, Histograms]]:
    """Give the histograms that were measured, and for each node's sibling what its parent has left."""
    for (tree, node_id), parent in wanted.items():
        histograms = measured[tree, node_id]
        yield (tree, node_id), histograms
        if parent is not None:
            rest = [whole.without(part) for whole, part in zip(parent, histograms, strict=True)]
            yield (tree, node_id ^ 1), rest


def _may_be_split(counts: Ints, honest: Ints, min_leaf: int) -> bool:
    return bool(min(counts.sum(), honest.sum()) >= 2 * min_leaf)


def _apply(split: Split, key: NodeKey, node: Node) -> dict[NodeKey, Node]:
    """Return the node with its split, and its children."""
    tree, node_id = key
    changed = {key: replace(node, split=split)}
    for child_id, bins in ((2 * node_id, split.left), (2 * node_id + 1, split.right)):
        condition = {**node.condition, split.feature: bins}
        changed[tree, child_id] = Node(child_id, node_id, node.depth + 1, condition)
    return changed


def _ask_further(split: Split, key: NodeKey, histograms: Histograms, min_leaf: int) -> dict[NodeKey, Histograms | None]:
    """Return which child to measure, with its parent's histograms; none if neither can be split again."""
    (tree, node_id), histogram = key, histograms[split.feature]
    sides = [[column[sorted(bins)] for column in histogram] for bins in (split.left, split.right)]
    if not any(_may_be_split(counts, honest, min_leaf) for counts, _, honest in sides):
        return {}
    n_left, n_right = (int(counts.sum() + honest.sum()) for counts, _, honest in sides)
    return {(tree, 2 * node_id + (n_right < n_left)): histograms}
