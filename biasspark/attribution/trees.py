"""Trees over sums by cell: one query for each level of all trees, whatever their models, slices and targets."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from biasspark.arrays import Ints
from biasspark.attribution.block_sums import (
    SUM_BITS,
    CellSums,
    SummedValue,
    count_for_histograms,
    find_nodes,
    measure_bins,
    read_histograms,
)
from biasspark.attribution.growth import Asked, Histogram, Histograms, NodeKey, Tree, grow
from biasspark.attribution.moments import LARGEST_BITS
from biasspark.attribution.row_values import Target
from biasspark.config.attribution_settings import TreeSettings
from biasspark.features import Feature
from biasspark.ranking.row_blocks import Answer, Query, Search


def list_tree_values(targets: Sequence[Target], n_rows: int) -> list[SummedValue]:
    """Return the values that are summed up to grow a tree for each target, of at most so many rows."""
    shift = SUM_BITS - LARGEST_BITS - max(n_rows, 1).bit_length()
    return [SummedValue(target, shift) for target in targets]


def grow_trees(
    features: Sequence[Feature], values: Sequence[SummedValue], settings: TreeSettings, square_sums: Sequence[float]
) -> Search[list[Tree]]:
    """Grow a tree for each value, by queries about `CellSums`: one for each level.

    `square_sums` are those of `growth.grow`, in units of the values; only ``min_gain`` uses them. The values have one
    shift. They are rounded to whole units of 2^-s, with s as large as sums of so many rows allow (35 for two million),
    and added up in int64: trees are the same under any partitioning and order of the rows. A tree without rows has only
    a root. The driver collects a histogram for each node that is measured, whatever the number of rows.
    """
    totals = [total * 4.0**value.shift for total, value in zip(square_sums, values, strict=True)]
    growing = grow(features, settings, totals)
    try:
        asked = next(growing)
        while True:
            measured = yield _ask_histograms(asked, values, features)
            asked = growing.send(_read_histograms(asked, values, features, measured))
    except StopIteration as end:
        trees: list[Tree] = end.value
        return trees


def _ask_histograms(asked: Asked, values: Sequence[SummedValue], features: Sequence[Feature]) -> Query:
    leaves: defaultdict[int, list[int]] = defaultdict(list)
    for tree, node_id in asked.leaves:
        leaves[tree].append(node_id)
    nodes = {tree: asked.trees[tree] for tree in leaves}

    def measure(_: int, _range: int, block: CellSums) -> Iterator[tuple[int, int, list[Ints]]]:
        for tree, of_tree in nodes.items():
            value = values[tree]
            if value in block.sums:
                counts = count_for_histograms(block.cells, block.sums[value])
                at = find_nodes(of_tree, block.cells.bins)
                yield value.target.slice, tree, [measure_bins(block.cells, counts, at, leaves[tree], features)]

    return Query(measure)


def _read_histograms(
    asked: Asked, values: Sequence[SummedValue], features: Sequence[Feature], measured: Answer
) -> dict[NodeKey, Histograms]:
    """Return the histograms of leaves: zeros for those without rows."""
    n_bins, positions = sum(feature.n_bins for feature in features), Counter[int]()
    histograms: dict[NodeKey, Histograms] = {}
    for tree, node_id in asked.leaves:
        target, nothing = values[tree].target, np.zeros((len(asked.leaves), len(Histogram._fields), n_bins), np.int64)
        [sums] = measured.get((target.model, target.slice, tree), [nothing])
        histograms[tree, node_id] = read_histograms(sums[positions[tree]], features)
        positions[tree] += 1
    return histograms
