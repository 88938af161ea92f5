"""Trees over row blocks: one Spark job for each level of all trees, whatever their models, slices and targets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from biasspark.arrays import Ints
from biasspark.attribution.block_sums import count_for_histograms, find_nodes, in_units, measure_bins, read_histograms
from biasspark.attribution.growth import GrownTree, Histograms, Limits, NodeKey, grow
from biasspark.attribution.moments import LARGEST_BITS
from biasspark.attribution.row_values import rows_with_opposite, target_values
from biasspark.config.attribution_settings import TreeSettings
from biasspark.ranking.kernels.row_block import RowBlock
from biasspark.ranking.row_blocks import Blocks, sum_blocks

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
) -> list[GrownTree]:
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
    A job for each level. Of nodes that are split only the smaller side is measured. The driver collects a histogram for
    each node that is measured: nodes times bins, whatever the number of rows.
    """
    features, shift = blocks.features, SUM_BITS - LARGEST_BITS - max(blocks.n_rows, 1).bit_length()
    n_bins = sum(feature.n_bins for feature in features)

    def measure(trees: Sequence[GrownTree], nodes: Sequence[NodeKey]) -> Mapping[NodeKey, Histograms]:
        leaves: defaultdict[int, list[int]] = defaultdict(list)
        for number, node_id in nodes:
            leaves[number].append(node_id)
        of_models: defaultdict[int, list[GrownTree]] = defaultdict(list)
        for tree in trees:
            if tree.number in leaves:
                of_models[targets[tree.number].model].append(tree)

        def count(model: int, block: RowBlock) -> Iterator[tuple[int, int, list[Ints]]]:
            for tree in of_models.get(model, ()):
                target = targets[tree.number]
                rows, units = target.read(block, shift)
                if len(rows):
                    counts = count_for_histograms(block, rows, units)
                    at = find_nodes(tree.nodes, block.cells.bins)
                    histograms = measure_bins(block.cells, counts, at, leaves[tree.number], features)
                    yield target.slice, tree.number, [histograms]

        measured = sum_blocks(blocks, count)
        histograms: dict[NodeKey, Histograms] = {}
        for number, of_tree in leaves.items():
            nothing = [np.zeros((len(of_tree), 3, n_bins), np.int64)]
            [sums] = measured.get((targets[number].model, targets[number].slice, number), nothing)
            histograms |= {
                (number, leaf): read_histograms(one, features) for leaf, one in zip(of_tree, sums, strict=True)
            }
        return histograms

    return grow(measure, features, Limits.of(settings, [total * 4.0**shift for total in square_sums]))
