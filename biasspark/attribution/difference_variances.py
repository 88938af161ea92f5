"""The variance of the mean difference of two models' attributions, for each set of rows, by one Spark job.

    blocks of comparisons --cut at the ranges of the baseline--> rows, placed among sets by the model
        --one shuffle--> rows, placed among sets by both models --> sums

Both models are ranked among the rows that both score, so a row has as many opposite rows for either, and whatever holds
for the placements of one model holds for the differences of two. Let E be the difference of a row's two doubled
placements among all opposite rows, in place of D, and e that among those of the set, in place of d: then the variance
is that of `influence_variance`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce

import numpy as np

from biasspark.arrays import Flags, Floats, Ints
from biasspark.attribution.block_sums import meet
from biasspark.attribution.influence import Placed, influence_variance
from biasspark.attribution.row_values import rows_with_opposite
from biasspark.attribution.trees import Target
from biasspark.features import Condition
from biasspark.ranking.kernels.blocks import split_by_range
from biasspark.ranking.kernels.codec import narrow, pack, unpack
from biasspark.ranking.kernels.exact import join_wide, signed_dot, split_wide
from biasspark.ranking.kernels.reference_sets import RankOffsets, count_by_range
from biasspark.ranking.kernels.row_block import RowBlock
from biasspark.ranking.kernels.row_placements import place_rows
from biasspark.ranking.range_job import (
    CountsRow,
    combine_counts,
    cut_batches,
    gather_ranges,
    map_to_counts,
    read_ranges,
)
from biasspark.ranking.row_blocks import BLOCKS_A_TASK, N_GROUPS, Blocks, read_blocks
from biasspark.ranking.task_rows import Batches, Key, Kind, Part, Parts

MOST_SETS = 16
"""Sets that rows are placed in by one job: a row carries 8 bytes for each."""


def vary_differences(
    blocks: Blocks,
    asked: Mapping[Target, Sequence[Condition]],
    offsets: Mapping[Target, Mapping[int, RankOffsets]],
    edges: Mapping[int, Floats],
) -> dict[Target, list[float | None]]:
    """Return the variance of the honest mean difference of the rows that meet each condition.

    Parameters
    ----------
    asked : mapping of Target to sequence of Condition
        Of comparisons.
    offsets : mapping
        By target and range of the model, where the range stands among the honest rows of each set.
    edges : mapping of int to float64 array
        By the number of a comparison, the boundaries of its baseline.

    Notes
    -----
    One Spark action for every 16 conditions of a target: a shuffle of the rows of comparisons, of 17 bytes and 4 to 8
    for each condition.
    """
    variances: dict[Target, list[float | None]] = {target: [] for target in asked}
    for start in range(0, max(map(len, asked.values()), default=0), MOST_SETS):
        chosen = slice(start, start + MOST_SETS)
        chunk = {target: conditions[chosen] for target, conditions in asked.items() if conditions[chosen]}
        for target, of_target in _vary_chunk(blocks, chunk, _choose_sets(offsets, chosen), edges).items():
            variances[target] += of_target
    return variances


def _choose_sets(
    offsets: Mapping[Target, Mapping[int, RankOffsets]], chosen: slice
) -> dict[Target, dict[int, RankOffsets]]:
    """Return the offsets of some of the sets, of which there are those of negatives, then of positives."""

    def choose(counts: Ints) -> Ints:
        return counts.reshape(2, -1)[:, chosen].ravel()

    return {
        target: {number: RankOffsets(*map(choose, of_range)) for number, of_range in of_target.items()}
        for target, of_target in offsets.items()
    }


def _vary_chunk(
    blocks: Blocks,
    asked: Mapping[Target, Sequence[Condition]],
    offsets: Mapping[Target, Mapping[int, RankOffsets]],
    edges: Mapping[int, Floats],
) -> dict[Target, list[float | None]]:
    columns = blocks.columns

    def cut(batches: Batches) -> Iterator[Part]:
        for model, score_range, block in read_blocks(batches, columns):
            for target, conditions in asked.items():
                if target.model == model and score_range in offsets.get(target, {}):
                    yield from cut_block(block, target, conditions, offsets[target][score_range], edges[model])

    def measure(batches: Batches) -> Iterator[CountsRow]:
        return ((*key, 0, sum_range(parts)) for key, parts in read_ranges(batches) if Kind.ROWS in parts)

    parts = cut_batches(blocks.frame, cut)
    ranges = gather_ranges(parts, list(edges.values()), columns.n_slices, BLOCKS_A_TASK)
    combined = combine_counts(map_to_counts(ranges, measure), add_wide, N_GROUPS)
    return {
        target: read_variances(combined.get((target.model, target.slice, 0)), len(conditions))
        for target, conditions in asked.items()
    }


def cut_block(
    block: RowBlock, target: Target, conditions: Sequence[Condition], offsets: RankOffsets, edges: Floats
) -> Iterator[Part]:
    """Place the rows of a block among the sets, by the model, and cut them at the ranges of the baseline."""
    assert block.baseline is not None
    rows, cells = rows_with_opposite(block, target.slice), block.cells
    if not len(rows):
        return
    sets = [(meet(condition, cells.bins) & cells.honest)[block.cell[rows]] for condition in conditions]
    label, scores = block.label[rows], block.baseline.scores[rows]
    placed = narrow(place_rows(block.scores[rows], label, sets, offsets))
    differences = block.difference(target.slice, rows)
    members, as_bits = np.stack(sets).astype(np.uint8), label.astype(np.uint8)
    for score_range, inside in split_by_range(scores, edges):
        data = pack([scores[inside], as_bits[inside], differences[inside], members[:, inside], placed[:, inside]])
        yield Part(target.model, target.slice, score_range, Kind.ROWS, data)
    chosen = (np.flatnonzero(inside & (label == value)) for value in (False, True) for inside in sets)
    counts = count_by_range(chosen, np.searchsorted(edges, scores, "right"), len(edges) + 1)
    for score_range, data in enumerate(RankOffsets.encode(counts)):
        yield Part(target.model, target.slice, score_range, Kind.OFFSETS, data)


def sum_range(parts: Parts) -> bytes:
    """Place the rows of a range of the baseline among the sets, and return the sums of `Placed`, by label and set."""
    pieces = zip(*map(unpack, parts[Kind.ROWS]), strict=True)
    scores, label, differences, members, placed = (np.concatenate(arrays, axis=-1) for arrays in pieces)
    order = np.argsort(scores)
    positive, sets = label[order] == 1, members[:, order] == 1
    nobody = np.zeros(2 * len(sets), np.int64)
    offsets = RankOffsets.add_up(parts[Kind.OFFSETS]) if Kind.OFFSETS in parts else RankOffsets(nobody, nobody)
    inside = placed[:, order].astype(np.int64) - place_rows(scores[order], positive, list(sets), offsets)
    of_all = differences[order]
    sums = [
        [_sum_set(of_all[rows], e[rows], is_in[rows]) for e, is_in in zip(inside, sets, strict=True)]
        for rows in map(np.flatnonzero, (~positive, positive))
    ]
    return pack([split_wide(np.array(sums, object))])


def _sum_set(of_all: Ints, inside: Ints, is_in: Flags) -> list[int]:
    """Return the fields of `Placed`, given E and e of the rows of a label."""
    members, within = of_all[is_in], inside[is_in]
    squares, crossed = signed_dot(members, members), signed_dot(members, within)
    sums = [len(of_all), len(members), int(members.sum()), int(within.sum())]
    return [*sums, squares, crossed, signed_dot(inside, inside)]


def add_wide(_: Key, ranges: Iterator[memoryview]) -> bytes:
    """Return the sum of arrays of Python integers, as bytes."""
    return pack([split_wide(reduce(np.add, (join_wide(unpack(data)[0]) for data in ranges)))])


def read_variances(data: bytes | None, n_sets: int) -> list[float | None]:
    """Return the variance of each set, None where no row counts."""
    if data is None:
        return [None] * n_sets
    negatives, positives = join_wide(unpack(data)[0]).tolist()
    return [influence_variance(Placed(*low), Placed(*high)) for low, high in zip(negatives, positives, strict=True)]
