"""Exact sums over the rows and placements of segments, by one query.

blocks --measure--> sums of ranges --small shuffle--> sums of each set of rows
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from biasspark.arrays import Ints
from biasspark.attribution.block_sums import (
    AUC,
    Target,
    meet,
    opposite_rows,
    rows_with_opposite,
    sum_by_cell,
    target_values,
)
from biasspark.attribution.influence import PlacedSet, combine_ranges, influence_variance, place_in_sets, read_sets
from biasspark.attribution.moments import Moments, cut_moments, read_moments
from biasspark.features import Condition
from biasspark.ranking.kernels.codec import pack, unpack
from biasspark.ranking.kernels.reference_sets import RankOffsets
from biasspark.ranking.kernels.row_block import CellColumns, RowBlock
from biasspark.ranking.range_job import sum_arrays
from biasspark.ranking.row_blocks import Query, Search
from biasspark.ranking.task_rows import Key

FrozenCondition = frozenset[tuple[int, frozenset[int]]]

_PLACEMENTS = 0
"""The chunk of placements in sets; the chunks of targets follow, then those of comparisons."""


class MeasuredSet(NamedTuple):
    """The rows that meet a condition: sums over the training rows and over the estimation rows.

    `loss_doubled` is twice the number of wrongly ordered pairs with a row of the set, ties half; `variance` is that of
    the honest mean, None where not defined.
    """

    train: Moments = Moments()
    honest: Moments = Moments()
    loss_doubled: int = 0
    variance: float | None = None


@dataclass(frozen=True)
class MeasuredSets:
    """The measured sets of rows, by target and condition.

    `of_segments` and `of_pairs` have the sums over placements of each named segment and pair, by the numbers of model
    and slice. `offsets` has the rank offsets of a range among the honest rows of each set, by target of a comparison
    and range of the model.
    """

    of_targets: Mapping[Target, Mapping[FrozenCondition, MeasuredSet]]
    of_segments: Mapping[tuple[int, int], Sequence[PlacedSet]]
    of_pairs: Mapping[tuple[int, int], Sequence[PlacedSet]]
    offsets: Mapping[Target, Mapping[int, RankOffsets]]

    def of(self, target: Target, condition: Condition) -> MeasuredSet:
        """Return the rows that meet a condition."""
        return self.of_targets[target][freeze(condition)]

    def with_variances(
        self, conditions: Mapping[Target, Sequence[Condition]], variances: Mapping[Target, Sequence[float | None]]
    ) -> MeasuredSets:
        """Return these sets with the variances of comparisons."""
        of_targets = dict(self.of_targets)
        for target, of_target in variances.items():
            sets = zip(map(freeze, conditions[target]), of_target, strict=True)
            of_targets[target] = {
                key: self.of_targets[target][key]._replace(variance=variance) for key, variance in sets
            }
        return replace(self, of_targets=of_targets)


def freeze(condition: Condition) -> FrozenCondition:
    """Return a condition as a key."""
    return frozenset(condition.items())


def measure_sets(
    columns: CellColumns, conditions: Mapping[Target, Sequence[Condition]], n_models: int
) -> Search[MeasuredSets]:
    """Measure the rows that meet each condition, and those of the named segments and pairs, by one query.

    Targets with model numbers from `n_models` on are comparisons. The driver collects some integers for each set, and
    for each set and range of comparisons.
    """
    targets = list(conditions)
    conditions = {
        target: [*{freeze(condition): condition for condition in of_target}.values()]
        for target, of_target in conditions.items()
    }

    def measure(model: int, score_range: int, block: RowBlock) -> Iterator[tuple[int, int, bytes]]:
        cells, honest_sets = block.cells, {}
        for number, target in enumerate(targets, 1):
            if target.model != model:
                continue
            sets = [meet(condition, cells.bins) for condition in conditions[target]]
            rows = rows_with_opposite(block, target.slice)
            sums = _sum_cells(block, target, rows)
            halves = [[sums[:, inside & half].sum(axis=1) for half in (~cells.honest, cells.honest)] for inside in sets]
            yield target.slice, number, pack([np.array(halves, np.int64).reshape(len(sets), 2, len(sums))])
            if target.name == AUC:
                honest_sets[target.slice] = [inside & cells.honest for inside in sets]
            if model >= n_models:
                by_label = [cells.label == label for label in (False, True)]
                kinds = [inside & of_label for of_label in by_label for inside in honest_sets[target.slice]]
                counts = [[int(sums[0, inside].sum()) for inside in kinds]]
                yield target.slice, len(targets) + number, pack([np.array([score_range]), np.array(counts)])
        named = [cells.in_segment(number) for number in range(columns.n_segments)]
        named += [cells.in_pair(number) for number in range(columns.n_pairs)]
        for slice_number in range(columns.n_slices) if model < n_models else ():
            if sets := [*honest_sets.get(slice_number, []), *named]:
                placed = place_in_sets(block, slice_number, block.rows_of(slice_number), sets)
                yield slice_number, _PLACEMENTS, placed

    def combine(key: Key, ranges: Iterator[memoryview]) -> bytes:
        if key[2] == _PLACEMENTS:
            return combine_ranges(ranges)
        if key[2] <= len(targets):
            return sum_arrays(key, ranges)
        return pack([np.concatenate(parts) for parts in zip(*map(unpack, ranges), strict=True)])

    measured = yield Query(measure, combine)
    return _read_measured(measured, conditions, columns, n_models)


def _read_measured(
    measured: Mapping[Key, bytes],
    conditions: Mapping[Target, Sequence[Condition]],
    columns: CellColumns,
    n_models: int,
) -> MeasuredSets:
    """Return the measured sets, given the combined counts of `measure_sets` and the distinct conditions."""
    placements = {key[:2]: read_sets(data) for key, data in measured.items() if key[2] == _PLACEMENTS}
    of_targets, offsets = {}, {}
    for number, (target, of_target) in enumerate(conditions.items(), 1):
        key = target.model, target.slice
        data = measured.get((*key, number))
        sets = [MeasuredSet()] * len(of_target) if data is None else list(map(_read_sums, unpack(data)[0]))
        if target.name != AUC:  # the loss of a row depends on no other row
            sets = [of_set._replace(variance=of_set.honest.variance_of_mean) for of_set in sets]
        elif target.model < n_models and key in placements:
            pairs = zip(sets, placements[key], strict=False)  # named segments and pairs follow the sets
            sets = [of_set._replace(variance=influence_variance(*placed)) for of_set, placed in pairs]
        of_targets[target] = dict(zip(map(freeze, of_target), sets, strict=True))
        if data := measured.get((*key, len(conditions) + number)):
            score_ranges, counts = unpack(data)  # of the sets' negatives, then of their positives
            below, total = counts.cumsum(axis=0) - counts, counts.sum(axis=0)
            offsets[target] = {
                int(score_range): RankOffsets(of_range, total)
                for score_range, of_range in zip(score_ranges, below, strict=True)
            }
    n_named = columns.n_segments + columns.n_pairs
    of_named = {key: of_key[len(of_key) - n_named :] for key, of_key in placements.items()}
    of_segments = {key: sums[: columns.n_segments] for key, sums in of_named.items()}
    of_pairs = {key: sums[columns.n_segments :] for key, sums in of_named.items()}
    return MeasuredSets(of_targets, of_segments, of_pairs, offsets)


def _sum_cells(block: RowBlock, target: Target, rows: Ints) -> Ints:
    """Return by cell the number of rows, the limbs of the moments of their values, and their AUC losses."""
    losses = 2 * opposite_rows(block, target.slice, rows) - block.placed(target.slice, rows)
    values = cut_moments(target_values(block, target, rows))
    return sum_by_cell(block, rows, [np.ones(len(rows), np.int64), *values, losses])


def _read_sums(sums: Ints) -> MeasuredSet:
    """Return the sums of one set, given those of `_sum_cells` over its training rows and over its honest rows."""
    (n_train, *of_train, train_loss), (n_honest, *of_honest, honest_loss) = sums.tolist()
    return MeasuredSet(read_moments(of_train, n_train), read_moments(of_honest, n_honest), train_loss + honest_loss)
