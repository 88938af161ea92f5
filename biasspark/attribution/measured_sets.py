"""Measure the segments that were found: exact sums over their rows and placements, by one query.

blocks --measure--> sums of ranges --small shuffle--> sums of each set of rows
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from biasspark.arrays import Ints
from biasspark.attribution.block_sums import NodeSums, meet, read_node_sums, sum_sets, sum_values
from biasspark.attribution.influence import (
    PlacedSet,
    combine_ranges,
    influence_variance,
    place_in_sets,
    read_sets,
)
from biasspark.attribution.row_values import AUC, Target, rows_with_opposite, target_values
from biasspark.attribution.segments import MeasuredSet
from biasspark.features import Condition
from biasspark.ranking.kernels.codec import pack, unpack
from biasspark.ranking.kernels.reference_sets import RankOffsets
from biasspark.ranking.kernels.row_block import CellColumns, RowBlock
from biasspark.ranking.row_blocks import Query, Search, sum_arrays
from biasspark.ranking.task_rows import Key

FrozenCondition = frozenset[tuple[int, frozenset[int]]]

_PLACEMENTS = 0
"""The chunk of placements in sets; the chunks of targets follow, then those of comparisons."""


@dataclass(frozen=True)
class MeasuredSets:
    """The measured sets of rows.

    Attributes
    ----------
    of_targets
        By target and condition, the rows that meet it.
    of_segments, of_pairs
        By the numbers of a model and a slice, the sums over placements of each named segment and of each named pair.
    offsets
        By target of a comparison and range of the model, the rank offsets of the range among the honest rows of each
        set.
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
    columns: CellColumns, asked: Mapping[Target, Sequence[Condition]], n_models: int
) -> Search[MeasuredSets]:
    """Measure the rows that meet each condition, and those of the named segments and pairs.

    Parameters
    ----------
    asked : mapping of Target to sequence of Condition
    n_models : int
        Targets with higher model numbers are comparisons.

    Notes
    -----
    One query. The driver collects some integers for each set, and for each set and range of comparisons.
    """
    targets = list(asked)
    asked = {target: [*{freeze(one): one for one in conditions}.values()] for target, conditions in asked.items()}
    n_named = columns.n_segments + columns.n_pairs

    def measure(model: int, score_range: int, block: RowBlock) -> Iterator[tuple[int, int, bytes]]:
        cells, honest_sets = block.cells, {}
        for number, target in enumerate(targets, 1):
            if target.model != model:
                continue
            sets = [meet(condition, cells.bins) for condition in asked[target]]
            rows = rows_with_opposite(block, target.slice)
            sums = sum_values(block, target.slice, rows, target_values(block, target, rows))
            yield target.slice, number, pack([sum_sets(cells, sums, sets)])
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
    placements = {key[:2]: read_sets(data) for key, data in measured.items() if key[2] == _PLACEMENTS}
    of_targets, offsets = {}, {}
    for number, target in enumerate(targets, 1):
        key, conditions = (target.model, target.slice), asked[target]
        data = measured.get((*key, number))
        sums = [NodeSums()] * len(conditions) if data is None else list(map(read_node_sums, unpack(data)[0]))
        variances: list[float | None] = [None] * len(sums)
        if target.name != AUC:  # the loss of a row depends on no other row
            variances = [one.honest.variance_of_mean for one in sums]
        elif target.model < n_models and key in placements:
            variances = [influence_variance(*placed) for placed in placements[key][: len(sums)]]
        of_targets[target] = dict(zip(map(freeze, conditions), map(MeasuredSet, sums, variances), strict=True))
        if data := measured.get((*key, len(targets) + number)):
            offsets[target] = _read_offsets(*unpack(data))
    of_named = {key: of_key[len(of_key) - n_named :] for key, of_key in placements.items()}
    of_segments = {key: sums[: columns.n_segments] for key, sums in of_named.items()}
    of_pairs = {key: sums[columns.n_segments :] for key, sums in of_named.items()}
    return MeasuredSets(of_targets, of_segments, of_pairs, offsets)


def _read_offsets(ranges: Ints, counts: Ints) -> dict[int, RankOffsets]:
    """Return the rank offsets of each range, given the rows in each range: of the sets' negatives, then positives."""
    below, total = counts.cumsum(axis=0) - counts, counts.sum(axis=0)
    return {int(number): RankOffsets(of_range, total) for number, of_range in zip(ranges, below, strict=True)}
