"""The variance of the mean difference of two models' attributions, for each set of rows.

    blocks of comparisons --cut at the ranges of the baseline--> rows, placed among regions by the model
        --one shuffle--> rows, placed among regions by both models --> sums of sets

Both models are ranked among the rows that both score, so a row has as many opposite rows for either, and the formulas
for the placements of one model hold for the differences of two. Let E be the difference of the two doubled placements
of a row among all opposite rows, in place of D, and e that among those of the set, in place of d: then the variance is
that of `influence_variance`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from biasspark.arrays import BigInts, Flags, Floats, Ints
from biasspark.attribution.block_sums import Target, meet, rows_with_opposite
from biasspark.attribution.influence import Placed, influence_variance, read_sets, sum_placed
from biasspark.features import Condition
from biasspark.ranking.kernels.blocks import find_ranges, split_by_range
from biasspark.ranking.kernels.codec import narrow
from biasspark.ranking.kernels.exact import dot
from biasspark.ranking.kernels.reference_sets import RankOffsets, count_by_range, place_rows
from biasspark.ranking.kernels.row_block import Cells, RowBlock
from biasspark.ranking.range_job import combine_counts, count_ranges, cut_batches, sum_arrays
from biasspark.ranking.row_blocks import BLOCKS_A_TASK, N_GROUPS, Answer, Blocks, Query, read_blocks, refuse_large_range
from biasspark.ranking.task_rows import Batches, Key, Kind, Part, Parts, list_offsets

MAX_SETS = 16
"""Sets of one job: a row carries 4 or 8 bytes for each of their regions."""


class Regions(NamedTuple):
    """Disjoint sets of rows, of which nested sets are unions: rows are placed among regions, and placements add up.

    Any two sets nest or exclude each other, and the outer one comes first, as with the nodes of a tree. A region is the
    honest rows of a set that are in none of the sets within it. `numbers` are the sets whose region has rows. `offsets`
    are by range of the model its rank offsets among the rows of each of these regions.
    """

    conditions: Sequence[Condition]
    numbers: Ints
    offsets: Mapping[int, RankOffsets]

    @classmethod
    def of(cls, conditions: Sequence[Condition], counts: Mapping[int, Ints]) -> Regions:
        """Return the regions of sets, given by range the rows of each, shape (2, sets): see `count_regions`."""
        n_rows = np.array([range_rows for _, range_rows in sorted(counts.items())])
        numbers = np.flatnonzero(n_rows.any(axis=(0, 1)))
        n_rows = n_rows[:, :, numbers].reshape(len(counts), -1)
        below = n_rows.cumsum(axis=0) - n_rows
        offsets = (RankOffsets(range_rows, n_rows.sum(axis=0)) for range_rows in below)
        return cls(conditions, numbers, dict(zip(sorted(counts), offsets, strict=True)))

    @property
    def within(self) -> Flags:
        """The regions with rows that each set is the union of, shape (sets, regions)."""
        inner_sets = [self.conditions[number] for number in self.numbers]
        return np.array([[_is_within(inner, outer) for inner in inner_sets] for outer in self.conditions])


def _is_within(inner: Condition, outer: Condition) -> bool:
    """Return whether all rows that meet the inner condition meet the outer one."""
    return all(feature in inner and inner[feature] <= bins for feature, bins in outer.items())


def list_regions(cells: Cells, conditions: Sequence[Condition]) -> list[Flags]:
    """Return for the region of each set which cells are in it."""
    regions, left = [], cells.honest
    for condition in reversed(conditions):
        regions.append(left & meet(condition, cells.bins))
        left = left & ~regions[-1]
    return regions[::-1]


def count_regions(conditions: Mapping[Target, Sequence[Condition]]) -> Query:
    """Count the negatives and the positives of each region, for every 16 sets of a comparison: the chunks are ranges.

    There is an int64 array of shape (2, sets) for each range.
    """

    def measure(model: int, score_range: int, block: RowBlock) -> Iterator[tuple[int, int, list[Ints]]]:
        for target, listed in conditions.items():
            if target.model == model:
                rows = block.cell[rows_with_opposite(block, target.slice)]
                n_rows = np.bincount(rows, minlength=block.cells.size)
                n_positive = np.where(block.cells.label, n_rows, 0)
                chunks = (listed[start : start + MAX_SETS] for start in range(0, len(listed), MAX_SETS))
                regions = np.concatenate([list_regions(block.cells, sets) for sets in chunks])
                yield target.slice, score_range, [np.array([n_rows - n_positive, n_positive]) @ regions.T]

    return Query(measure)


def vary_differences(
    blocks: Blocks, conditions: Mapping[Target, Sequence[Condition]], counted: Answer, edges: Mapping[int, Floats]
) -> dict[Target, list[float | None]]:
    """Return the variance of the honest mean difference of the rows that meet each condition.

    `conditions` are the sets of comparisons (see `Regions`), `counted` is the answer of `count_regions`, and `edges`
    are by number of a comparison the boundaries of its baseline.

    One Spark action for every 16 conditions of a target: a shuffle of the rows of comparisons, of 18 bytes and 4 to 8
    for each region.
    """
    variances: dict[Target, list[float | None]] = {target: [] for target in conditions}
    for start in range(0, max(map(len, conditions.values()), default=0), MAX_SETS):
        chosen = slice(start, start + MAX_SETS)
        regions = {}
        for target, listed in conditions.items():
            counts = {key[2]: n_rows[:, chosen] for key, [n_rows] in counted.items() if key[:2] == target[:2]}
            if any(n_rows.any() for n_rows in counts.values()):
                regions[target] = Regions.of(listed[chosen], counts)
        varied = _vary_chunk(blocks, regions, edges) if regions else {}
        for target, listed in conditions.items():
            variances[target] += varied.get(target, [None] * len(listed[chosen]))
    return variances


def _vary_chunk(
    blocks: Blocks, regions: Mapping[Target, Regions], edges: Mapping[int, Floats]
) -> dict[Target, list[float | None]]:
    columns = blocks.columns
    within = {target[:2]: of_target.within for target, of_target in regions.items()}

    def cut(batches: Batches) -> Iterator[Part]:
        for model, score_range, block in read_blocks(batches):
            for target, of_target in regions.items():
                if target.model == model:
                    yield from cut_block(block, target, of_target, of_target.offsets[score_range], edges[model])

    def measure(key: Key, parts: Parts) -> list[tuple[int, BigInts]]:
        return [(0, sum_range(parts, within[key[:2]]))] if Kind.ROWS in parts else []

    parts = cut_batches(blocks.frame, cut)
    counts = count_ranges(parts, list(edges.values()), columns.n_slices, measure, BLOCKS_A_TASK)
    combined = combine_counts(counts, sum_arrays, N_GROUPS)
    return {
        target: [influence_variance(*placed) for placed in read_sets(combined[target.model, target.slice, 0])]
        for target in regions
    }


def cut_block(block: RowBlock, target: Target, regions: Regions, offsets: RankOffsets, edges: Floats) -> Iterator[Part]:
    """Place the rows of a block among the regions by the model's scores, and cut them into ranges of the baseline."""
    assert block.baseline is not None
    rows = rows_with_opposite(block, target.slice)
    cell_regions = list_regions(block.cells, regions.conditions)
    members = [cell_regions[number][block.cell[rows]] for number in regions.numbers]
    region = np.full(len(rows), len(members), np.uint8)
    for number, inside in enumerate(members):
        region[inside] = number
    label, scores = block.label[rows], block.baseline.scores[rows]
    placed = narrow(place_rows(block.score_index[rows], label, members, offsets))
    arrays = scores, label, block.difference(target.slice, rows), region, placed
    ranges = find_ranges(scores, edges)
    for score_range, chosen in split_by_range(ranges):
        pieces = [array[..., chosen] for array in arrays]
        refuse_large_range(len(chosen), sum(array.nbytes for array in pieces))
        yield Part(target.model, target.slice, score_range, Kind.ROWS, pieces)
    sets = (np.flatnonzero(inside & (label == value)) for value in (False, True) for inside in members)
    yield from list_offsets(target.model, target.slice, count_by_range(sets, ranges, len(edges) + 1))


def sum_range(parts: Parts, within: Flags) -> BigInts:
    """Place the rows of a range of the baseline among the regions, and return the sums of `Placed`.

    Their shape is (labels, fields, sets); for `within` see `Regions`.
    """
    arrays = [np.concatenate(task_arrays, axis=-1) for task_arrays in zip(*parts[Kind.ROWS], strict=True)]
    order = np.argsort(arrays[0])
    scores, label, of_all, region, placed = (array[..., order] for array in arrays)
    members = [region == number for number in range(within.shape[1])]
    inside = placed.astype(np.int64) - place_rows(scores, label, members, RankOffsets.add_up(parts[Kind.OFFSETS]))
    sums = np.zeros((2, len(Placed._fields), len(within)), object)
    for value in (0, 1):
        label_rows = np.flatnonzero(label == value)
        of_regions, of_all_rows, regions = inside[:, label_rows], of_all[label_rows], region[label_rows]
        for number, in_set in enumerate(within):
            every, chosen = of_regions[in_set].sum(axis=0), np.append(in_set, False)[regions]
            of_members = sum_placed(of_all_rows[chosen], every[chosen])
            sums[value, :, number] = [len(every), *of_members, int(every.sum()), dot(every, every)]
    return sums
