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
from biasspark.attribution.growth import Asked, GrownTree, Histogram, Histograms, Limits, NodeKey, grow
from biasspark.attribution.moments import LARGEST_BITS
from biasspark.attribution.row_values import Target
from biasspark.config.attribution_settings import TreeSettings
from biasspark.features import Feature
from biasspark.ranking.row_blocks import Answer, Query, Search


def list_tree_values(targets: Sequence[Target], n_rows: int) -> list[SummedValue]:
    """Return what is summed up to grow a tree for each target, of at most so many rows."""
    shift = SUM_BITS - LARGEST_BITS - max(n_rows, 1).bit_length()
    return [SummedValue(target, shift) for target in targets]


def grow_trees(
    features: Sequence[Feature], values: Sequence[SummedValue], settings: TreeSettings, square_sums: Sequence[float]
) -> Search[list[GrownTree]]:
    """Grow a tree for each value, by queries about `CellSums`.

    Parameters
    ----------
    values : sequence of SummedValue
        Of one shift.
    square_sums : sequence of float
        For each tree, the sum of squares of the values of its train rows around their mean; only ``min_gain`` uses it.

    Returns
    -------
    list of GrownTree
        The same under any partitioning and order of the rows: values are rounded to whole units of 2^-s, with s as
        large as sums of so many rows allow (35 for two million), and added up in int64. A tree without rows has a root
        only.

    Notes
    -----
    A query for each level. Of nodes that are split only the smaller side is measured. The driver collects a histogram
    for each node that is measured: nodes times bins, whatever the number of rows.
    """
    totals = [total * 4.0**value.shift for total, value in zip(square_sums, values, strict=True)]
    growing = grow(features, Limits.of(settings, totals))
    try:
        asked = next(growing)
        while True:
            measured = yield _ask_histograms(asked, values, features)
            asked = growing.send(_read_histograms(asked, values, features, measured))
    except StopIteration as end:
        trees: list[GrownTree] = end.value
        return trees


def _ask_histograms(asked: Asked, values: Sequence[SummedValue], features: Sequence[Feature]) -> Query:
    """Ask for the histograms of leaves."""
    leaves: defaultdict[int, list[int]] = defaultdict(list)
    for number, node_id in asked.leaves:
        leaves[number].append(node_id)
    trees = [tree for tree in asked.trees if tree.number in leaves]

    def measure(_: int, _range: int, block: CellSums) -> Iterator[tuple[int, int, list[Ints]]]:
        for tree in trees:
            value = values[tree.number]
            if value in block.sums:
                counts = count_for_histograms(block.cells, block.sums[value])
                at = find_nodes(tree.nodes, block.cells.bins)
                histograms = measure_bins(block.cells, counts, at, leaves[tree.number], features)
                yield value.target.slice, tree.number, [histograms]

    return Query(measure)


def _read_histograms(
    asked: Asked, values: Sequence[SummedValue], features: Sequence[Feature], measured: Answer
) -> dict[NodeKey, Histograms]:
    """Return the histograms of leaves; zeros of those without rows."""
    n_bins, positions = sum(feature.n_bins for feature in features), Counter[int]()
    histograms: dict[NodeKey, Histograms] = {}
    for number, node_id in asked.leaves:
        target, nothing = values[number].target, np.zeros((len(asked.leaves), len(Histogram._fields), n_bins), np.int64)
        [sums] = measured.get((target.model, target.slice, number), [nothing])
        histograms[number, node_id] = read_histograms(sums[positions[number]], features)
        positions[number] += 1
    return histograms
