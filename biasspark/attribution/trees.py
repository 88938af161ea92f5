"""Trees over row blocks: one query for each level of all trees, whatever their models, slices and targets."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from biasspark.arrays import Ints
from biasspark.attribution.block_sums import count_for_histograms, find_nodes, in_units, measure_bins, read_histograms
from biasspark.attribution.growth import Asked, GrownTree, Histogram, Histograms, Limits, NodeKey, grow
from biasspark.attribution.moments import LARGEST_BITS
from biasspark.attribution.row_values import rows_with_opposite, target_values
from biasspark.config.attribution_settings import TreeSettings
from biasspark.features import Feature
from biasspark.ranking.kernels.row_block import RowBlock
from biasspark.ranking.row_blocks import Answer, Blocks, Query, Search

SUM_BITS = 62
"""Of a sum of values in whole units, int64."""


class Target(NamedTuple):
    """What is predicted of which rows.

    Attributes
    ----------
    model, slice
        Their numbers; see `row_blocks.RowRanking.comparisons`.
    name
        One of `config.attribution_settings.TARGETS`.
    link
        How losses make probabilities of scores.
    """

    model: int
    slice: int
    name: str
    link: str | None = None

    def read(self, block: RowBlock, shift: int) -> tuple[Ints, Ints]:
        """Return the rows of a block that count, and their values in whole units of 2^-shift."""
        rows = rows_with_opposite(block, self.slice)
        return rows, in_units(target_values(block, self.slice, rows, self.name, self.link), shift)


def grow_trees(
    blocks: Blocks, targets: Sequence[Target], settings: TreeSettings, square_sums: Sequence[float]
) -> Search[list[GrownTree]]:
    """Grow a tree for each target.

    Parameters
    ----------
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
    features, shift = blocks.features, SUM_BITS - LARGEST_BITS - max(blocks.n_rows, 1).bit_length()
    growing = grow(features, Limits.of(settings, [total * 4.0**shift for total in square_sums]))
    try:
        asked = next(growing)
        while True:
            measured = yield _ask_histograms(asked, targets, features, shift)
            asked = growing.send(_read_histograms(asked, targets, features, measured))
    except StopIteration as end:
        trees: list[GrownTree] = end.value
        return trees


def _ask_histograms(asked: Asked, targets: Sequence[Target], features: Sequence[Feature], shift: int) -> Query:
    """Ask for the histograms of leaves."""
    leaves: defaultdict[int, list[int]] = defaultdict(list)
    for number, node_id in asked.leaves:
        leaves[number].append(node_id)
    of_models: defaultdict[int, list[GrownTree]] = defaultdict(list)
    for tree in asked.trees:
        if tree.number in leaves:
            of_models[targets[tree.number].model].append(tree)

    def measure(model: int, _: int, block: RowBlock) -> Iterator[tuple[int, int, list[Ints]]]:
        for tree in of_models.get(model, ()):
            target = targets[tree.number]
            rows, units = target.read(block, shift)
            if len(rows):
                counts = count_for_histograms(block, rows, units)
                at = find_nodes(tree.nodes, block.cells.bins)
                yield target.slice, tree.number, [measure_bins(block.cells, counts, at, leaves[tree.number], features)]

    return Query(measure)


def _read_histograms(
    asked: Asked, targets: Sequence[Target], features: Sequence[Feature], measured: Answer
) -> dict[NodeKey, Histograms]:
    """Return the histograms of leaves; zeros of those without rows."""
    n_bins, places = sum(feature.n_bins for feature in features), Counter[int]()
    histograms: dict[NodeKey, Histograms] = {}
    for number, node_id in asked.leaves:
        target, nothing = targets[number], np.zeros((len(asked.leaves), len(Histogram._fields), n_bins), np.int64)
        [sums] = measured.get((target.model, target.slice, number), [nothing])
        histograms[number, node_id] = read_histograms(sums[places[number]], features)
        places[number] += 1
    return histograms
