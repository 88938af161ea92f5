"""Exact sums over the rows and placements of sets, and the variances of their means: one query, and more to compare.

blocks --measure--> sums of ranges --small shuffle--> sums of each set of rows
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from biasspark.arrays import BigInts, Floats, Ints
from biasspark.attribution.block_sums import (
    AUC,
    Target,
    add_by_code,
    meet,
    opposite_rows,
    rows_with_opposite,
    target_values,
)
from biasspark.attribution.difference_variances import count_regions, vary_differences
from biasspark.attribution.influence import PlacedSet, combine_ranges, influence_variance, place_in_sets, read_sets
from biasspark.attribution.moments import Moments, cut_moments, read_moments
from biasspark.features import Condition
from biasspark.ranking.kernels.row_block import RowBlock
from biasspark.ranking.row_blocks import Blocks, Query, query_blocks
from biasspark.ranking.task_rows import Key


class MeasuredSet(NamedTuple):
    """The rows that meet a condition: sums over the training rows and over the estimation rows.

    `loss_doubled` is twice the number of wrongly ordered pairs with a row of the set, ties half; `variance` is that of
    the honest mean, None where not defined.
    """

    train: Moments = Moments()
    honest: Moments = Moments()
    loss_doubled: int = 0
    variance: float | None = None


class MeasuredSets(NamedTuple):
    """The measured sets of rows, by target and in the order of its conditions.

    `segments` has the sums over placements of each named segment, by the numbers of model and slice.
    """

    by_target: Mapping[Target, Sequence[MeasuredSet]]
    segments: Mapping[tuple[int, int], Sequence[PlacedSet]]


def measure_sets(
    blocks: Blocks,
    conditions: Mapping[Target, Sequence[Condition]],
    n_models: int,
    edges: Mapping[int, Floats] | None = None,
) -> MeasuredSets:
    """Measure the rows that meet each condition, and those of the named segments.

    Targets with model numbers from `n_models` on are comparisons. Their sets have variances only if the `edges` are
    given: see `vary_differences`. The driver collects some integers for each set, and for each set and range of
    comparisons.

    One Spark action; for the variances of comparisons one more for every 16 sets of a target.
    """
    columns, targets = blocks.columns, list(conditions)

    def measure(model: int, _: int, block: RowBlock) -> Iterator[tuple[int, int, Ints | BigInts]]:
        cells, honest_sets = block.cells, {}
        for number, target in enumerate(targets):
            if target.model == model:
                sets = [meet(condition, cells.bins) for condition in conditions[target]]
                sums, halves = _sum_cells(block, target), (~cells.honest, cells.honest)
                set_sums = [[sums[:, inside & half].sum(axis=1) for half in halves] for inside in sets]
                yield target.slice, number, np.array(set_sums)
                if target.name == AUC:
                    honest_sets[target.slice] = [inside & cells.honest for inside in sets]
        segments = [cells.in_segment(number) for number in range(columns.n_segments)]
        for slice_number in range(columns.n_slices) if model < n_models else ():
            if sets := [*honest_sets.get(slice_number, []), *segments]:
                placed = place_in_sets(block, slice_number, block.rows_of(slice_number), sets)
                yield slice_number, len(targets), placed

    def combine(key: Key, ranges: Iterator[Any]) -> Any:
        return sum(ranges) if key[2] < len(targets) else combine_ranges(ranges)

    compared = {target: listed for target, listed in conditions.items() if target.model >= n_models}
    measured, counted = query_blocks(blocks, [Query(measure, combine), count_regions(compared)])
    differences = vary_differences(blocks, compared, counted, edges) if edges else {}
    placements = {key[:2]: read_sets(sums) for key, sums in measured.items() if key[2] == len(targets)}
    by_target = {}
    for number, target in enumerate(targets):
        sums = measured.get((target.model, target.slice, number))
        sets = [MeasuredSet()] * len(conditions[target]) if sums is None else list(map(_read_sums, sums))
        if target.name != AUC:  # the loss of a row depends on no other row
            variances = [measured_set.honest.variance_of_mean for measured_set in sets]
        elif sums is None or target in compared:
            variances = differences.get(target, [None] * len(sets))
        else:  # segments follow
            variances = [influence_variance(*placed) for placed in placements[target[:2]][: len(sets)]]
        pairs = zip(sets, variances, strict=True)
        by_target[target] = [measured_set._replace(variance=variance) for measured_set, variance in pairs]
    segments = {key: placed_sets[len(placed_sets) - columns.n_segments :] for key, placed_sets in placements.items()}
    return MeasuredSets(by_target, segments)


def _sum_cells(block: RowBlock, target: Target) -> Ints:
    """Return by cell the number of rows, the limbs of the moments of their values, and their AUC losses."""
    rows = rows_with_opposite(block, target.slice)
    losses = 2 * opposite_rows(block, target.slice, rows) - block.placed(target.slice, rows)
    values = cut_moments(target_values(block, target, rows))
    return add_by_code(block.cell[rows], [np.ones(len(rows), np.int64), *values, losses], block.cells.size)


def _read_sums(sums: Ints) -> MeasuredSet:
    """Return the sums of one set, given those of `_sum_cells` over its training rows and over its honest rows."""
    (n_train, *train, train_loss), (n_honest, *honest, honest_loss) = sums.tolist()
    return MeasuredSet(read_moments(train, n_train), read_moments(honest, n_honest), train_loss + honest_loss)
