"""Exact sums over the rows and placements of sets, and the variances of their means: one query, and more to compare.

    blocks --measure--> sums of ranges --small shuffle--> sums of each set of rows
    blocks of comparisons --cut at the ranges of the baseline--> rows, placed among regions by the model
        --one shuffle--> rows, placed among regions by both models --> sums of sets

Both models of a comparison are ranked among the rows that both score, so a row has as many opposite rows for either,
and the formulas for the placements of one model hold for the differences of two. Let E be the difference of the two
doubled placements of a row among all opposite rows, in place of D, and e that among those of the set, in place of d:
then the variance is that of `influence_variance`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from biasspark.arrays import BigInts, Flags, Floats, Ints
from biasspark.attribution.block_sums import AUC, Target, add_by_code, meet, rows_with_opposite, target_values
from biasspark.attribution.influence import combine_ranges, influence_variance, place_in_sets, read_sets, sum_placed
from biasspark.attribution.moments import Moments, cut_moments, read_moments
from biasspark.features import Condition
from biasspark.ranking import range_job, row_blocks
from biasspark.ranking.kernels.blocks import find_ranges, split_by_range
from biasspark.ranking.kernels.codec import narrow
from biasspark.ranking.kernels.exact import dot
from biasspark.ranking.kernels.reference_sets import RankOffsets, count_by_range, place_rows
from biasspark.ranking.kernels.row_block import Cells, RowBlock, SmallInts
from biasspark.ranking.row_blocks import Answer, Blocks, Query
from biasspark.ranking.task_rows import Batches, Key, Kind, Part, Parts, list_offsets

MAX_SETS = 16
"""Sets of comparisons that are measured by one job: a row carries 4 or 8 bytes for each of their regions."""


class MeasuredSet(NamedTuple):
    """The rows that meet a condition: sums over the training rows and over the estimation rows.

    `loss_doubled` is twice the number of wrongly ordered pairs with a row of the set, ties half; `variance` is that of
    the honest mean, None where not defined.
    """

    train: Moments = Moments()
    honest: Moments = Moments()
    loss_doubled: int = 0
    variance: float | None = None


def measure_sets(
    blocks: Blocks,
    conditions: Mapping[Target, Sequence[Condition]],
    n_models: int,
    edges: Mapping[int, Floats] | None = None,
) -> dict[Target, list[MeasuredSet]]:
    """Measure the rows that meet each condition, by target and in the order of its conditions.

    Targets with model numbers from `n_models` on are comparisons. Their sets have variances only if the `edges` are
    given: by number of a comparison the boundaries of its baseline. Any two sets of a comparison nest or exclude each
    other, and the outer one comes first, as with the nodes of a tree. The driver collects some integers for each set,
    and for each set and range of comparisons.

    One Spark action; for the variances of comparisons one more for every 16 sets of a target.
    """
    n_targets = len(conditions)  # which have a chunk each for sums, then one each for placements

    def measure(model: int, _: int, block: RowBlock) -> Iterator[tuple[int, int, Ints | BigInts]]:
        cells = block.cells
        for number, (target, listed) in enumerate(conditions.items()):
            if target.model == model:
                sets = [meet(condition, cells.bins) for condition in listed]
                sums, halves = _sum_cells(block, target), (~cells.honest, cells.honest)
                set_sums = [[sums[:, inside & half].sum(axis=1) for half in halves] for inside in sets]
                yield target.slice, number, np.array(set_sums)
                if target.name == AUC and model < n_models:
                    honest_sets = [inside & cells.honest for inside in sets]
                    yield target.slice, n_targets + number, place_in_sets(block, target.slice, honest_sets)

    def combine(key: Key, ranges: Iterator[Any]) -> Any:
        return sum(ranges) if key[2] < n_targets else combine_ranges(ranges)

    compared = {target: listed for target, listed in conditions.items() if target.model >= n_models}
    measured, counted = row_blocks.query_blocks(blocks, [Query(measure, combine), count_regions(compared)])
    variances = vary_differences(blocks, compared, counted, edges) if edges else {}
    by_target = {}
    for number, (target, listed) in enumerate(conditions.items()):
        sums, placements = (measured.get((*target[:2], chunk)) for chunk in (number, n_targets + number))
        sets = [MeasuredSet()] * len(listed) if sums is None else list(map(_read_sums, sums))
        if target.name != AUC:  # the loss of a row depends on no other row
            variances[target] = [measured_set.honest.variance_of_mean for measured_set in sets]
        elif placements is not None:
            variances[target] = [influence_variance(*placed) for placed in placements]
        of_sets = zip(sets, variances.get(target, [None] * len(listed)), strict=True)
        by_target[target] = [measured_set._replace(variance=variance) for measured_set, variance in of_sets]
    return by_target


def _sum_cells(block: RowBlock, target: Target) -> Ints:
    """Return by cell the number of rows, the limbs of the moments of their values, and their AUC losses."""
    rows = rows_with_opposite(block, target.slice)
    losses = 2 * block.n_opposite(target.slice, rows) - block.placed(target.slice, rows)
    values = cut_moments(target_values(block, target, rows))
    return add_by_code(block.cell[rows], [np.ones(len(rows), np.int64), *values, losses], block.cells.size)


def _read_sums(sums: Ints) -> MeasuredSet:
    """Return the sums of one set, given those of `_sum_cells` over its training rows and over its honest rows."""
    (n_train, *train, train_loss), (n_honest, *honest, honest_loss) = sums.tolist()
    return MeasuredSet(read_moments(train, n_train), read_moments(honest, n_honest), train_loss + honest_loss)


# ---- the variances of differences


class Regions(NamedTuple):
    """Disjoint sets of rows, of which nested sets are unions: rows are placed among regions, and placements add up.

    The region of a set is its honest rows that are in none of the sets within it. `numbers` are those with rows, and
    `offsets` are by range of the model its rank offsets among these.
    """

    conditions: Sequence[Condition]
    numbers: Ints
    offsets: Mapping[int, RankOffsets]

    @classmethod
    def of(cls, conditions: Sequence[Condition], counts: Mapping[int, Ints]) -> Regions:
        """Return the regions of sets, given by range the rows of each, as `count_regions` counts them."""
        n_rows = np.array([range_rows for _, range_rows in sorted(counts.items())])
        numbers = np.flatnonzero(n_rows[..., :-1].any(axis=(0, 1)))
        n_rows = n_rows[..., numbers].reshape(len(counts), -1)
        below = n_rows.cumsum(axis=0) - n_rows
        offsets = (RankOffsets(range_rows, n_rows.sum(axis=0)) for range_rows in below)
        return cls(conditions, numbers, dict(zip(sorted(counts), offsets, strict=True)))

    @property
    def within(self) -> Flags:
        """Which regions each set is the union of, shape (sets, sets + 1): the rows outside of all sets are in none."""
        sets = self.conditions
        return np.array([[*(_is_within(inner, outer) for inner in sets), False] for outer in sets])


def _is_within(inner: Condition, outer: Condition) -> bool:
    """Return whether all rows that meet the inner condition meet the outer one."""
    return all(feature in inner and inner[feature] <= bins for feature, bins in outer.items())


def number_regions(cells: Cells, conditions: Sequence[Condition]) -> SmallInts:
    """Return for each cell in the region of which set it is: the last one that it is in, or the number of all sets."""
    regions = np.full(cells.size, len(conditions), np.uint8)
    for number, condition in enumerate(conditions):
        regions[cells.honest & meet(condition, cells.bins)] = number
    return regions


def count_regions(conditions: Mapping[Target, Sequence[Condition]]) -> Query:
    """Count the negatives and the positives of each region of comparisons: the chunks of the answer are ranges.

    For every 16 sets there is an int64 array, shape (2, sets + 1), the last of the rows outside of all sets.
    """

    def measure(model: int, score_range: int, block: RowBlock) -> Iterator[tuple[int, int, list[Ints]]]:
        for target, listed in conditions.items():
            if target.model == model:
                rows, cells = block.cell[rows_with_opposite(block, target.slice)], block.cells
                n_rows = np.bincount(rows, minlength=cells.size)
                by_label = [np.where(cells.label, 0, n_rows), np.where(cells.label, n_rows, 0)]
                chunks = [listed[start : start + MAX_SETS] for start in range(0, len(listed), MAX_SETS)]
                counts = [add_by_code(number_regions(cells, sets), by_label, len(sets) + 1) for sets in chunks]
                yield target.slice, score_range, counts

    return Query(measure)


def vary_differences(
    blocks: Blocks, conditions: Mapping[Target, Sequence[Condition]], counted: Answer, edges: Mapping[int, Floats]
) -> dict[Target, list[float | None]]:
    """Return the variance of the honest mean difference of the rows that meet each condition of comparisons.

    `counted` is the answer of `count_regions`; for the rest see `measure_sets`.

    One Spark action for every 16 conditions of a target: a shuffle of the rows of comparisons, of 18 bytes and 4 to 8
    for each region.
    """
    variances: dict[Target, list[float | None]] = {target: [] for target in conditions}
    for number, start in enumerate(range(0, max(map(len, conditions.values()), default=0), MAX_SETS)):
        chunk, regions = {target: listed[start : start + MAX_SETS] for target, listed in conditions.items()}, {}
        for target, sets in chunk.items():
            counts = {key[2]: counts[number] for key, counts in counted.items() if sets and key[:2] == target[:2]}
            if any(n_rows[:, :-1].any() for n_rows in counts.values()):
                regions[target] = Regions.of(sets, counts)
        varied = _vary_chunk(blocks, regions, edges) if regions else {}
        for target, sets in chunk.items():
            variances[target] += varied.get(target, [None] * len(sets))
    return variances


def _vary_chunk(
    blocks: Blocks, regions: Mapping[Target, Regions], edges: Mapping[int, Floats]
) -> dict[Target, list[float | None]]:
    by_number = {target[:2]: of_target for target, of_target in regions.items()}

    def cut(batches: Batches) -> Iterator[Part]:
        for model, score_range, block in row_blocks.read_blocks(batches):
            for target, of_target in regions.items():
                if target.model == model:
                    yield from cut_block(block, target, of_target, of_target.offsets[score_range], edges[model])

    def measure(key: Key, parts: Parts) -> list[tuple[int, BigInts]]:
        return [(0, sum_range(parts, by_number[key[:2]]))] if Kind.ROWS in parts else []

    assert blocks.compared is not None
    parts, n_blocks = range_job.cut_batches(blocks.compared, cut), row_blocks.BLOCKS_A_TASK
    counts = range_job.count_ranges(parts, list(edges.values()), blocks.columns.n_slices, measure, n_blocks)
    combined = range_job.combine_counts(counts, range_job.sum_arrays, row_blocks.N_GROUPS)
    return {
        target: [influence_variance(*placed) for placed in read_sets(combined[target.model, target.slice, 0])]
        for target in regions
    }


def cut_block(block: RowBlock, target: Target, regions: Regions, offsets: RankOffsets, edges: Floats) -> Iterator[Part]:
    """Place the rows of a block among the regions by the model's scores, and cut them into ranges of the baseline."""
    assert block.baseline is not None
    rows = rows_with_opposite(block, target.slice)
    region = number_regions(block.cells, regions.conditions)[block.cell[rows]]
    members = [region == number for number in regions.numbers]
    label, scores = block.label[rows], block.baseline.scores[rows]
    placed = narrow(place_rows(block.score_index[rows], label, members, offsets))
    arrays = scores, label, block.difference(target.slice, rows), region, placed
    ranges = find_ranges(scores, edges)
    for score_range, chosen in split_by_range(ranges):
        pieces = [array[..., chosen] for array in arrays]
        row_blocks.refuse_large_range(len(chosen), sum(array.nbytes for array in pieces))
        yield Part(target.model, target.slice, score_range, Kind.ROWS, pieces)
    sets = (np.flatnonzero(inside & (label == value)) for value in (False, True) for inside in members)
    yield from list_offsets(target.model, target.slice, count_by_range(sets, ranges, len(edges) + 1))


def sum_range(parts: Parts, regions: Regions) -> BigInts:
    """Place the rows of a range of the baseline among the regions, and return the sums over it: see `place_in_sets`."""
    arrays = [np.concatenate(task_arrays, axis=-1) for task_arrays in zip(*parts[Kind.ROWS], strict=True)]
    order = np.argsort(arrays[0])
    scores, label, of_all, region, placed = (array[..., order] for array in arrays)
    members = [region == number for number in regions.numbers]
    inside = placed.astype(np.int64) - place_rows(scores, label, members, RankOffsets.add_up(parts[Kind.OFFSETS]))
    sums = []
    for value in (0, 1):
        rows = np.flatnonzero(label == value)
        of_regions, of_all_rows, region_rows = inside[:, rows], of_all[rows], region[rows]
        for in_set in regions.within:
            every, chosen = of_regions[in_set[regions.numbers]].sum(axis=0), in_set[region_rows]
            of_members = sum_placed(of_all_rows[chosen], every[chosen])
            sums.append([len(every), *of_members, int(every.sum()), dot(every, every)])
    return np.array(sums, object).reshape(2, len(regions.conditions), -1)
