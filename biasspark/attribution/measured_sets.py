"""Everything that is said of the segments that were found: exact sums over their rows and placements, by one query.

blocks --measure--> sums of ranges --small shuffle--> sums of each set of rows
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from biasspark.arrays import Ints
from biasspark.attribution.block_sums import meet, read_node_sums, sum_sets, sum_values
from biasspark.attribution.evidence import NodeSums
from biasspark.attribution.influence import influence_variance
from biasspark.attribution.row_values import AUC, Target, rows_with_opposite, target_values
from biasspark.attribution.set_placements import SetSums, as_placed, combine_ranges, place_in_sets, read_sets
from biasspark.attribution.significance import Moments
from biasspark.features import Condition
from biasspark.ranking.kernels.codec import pack, unpack
from biasspark.ranking.kernels.reference_sets import RankOffsets
from biasspark.ranking.kernels.row_block import CellColumns, RowBlock
from biasspark.ranking.row_blocks import Query, Search, sum_arrays
from biasspark.ranking.task_rows import Key

FrozenCondition = frozenset[tuple[int, frozenset[int]]]

_PLACEMENTS = 0
"""The chunk of placements in sets; those of targets follow, then those of comparisons."""


class MeasuredSet(NamedTuple):
    """The rows that meet a condition.

    Attributes
    ----------
    sums
        Of the values of a target.
    variance
        Of the honest mean; None where it is not defined.
    """

    sums: NodeSums
    variance: float | None


@dataclass(frozen=True)
class MeasuredSets:
    """What was measured.

    Attributes
    ----------
    of_targets
        By target and condition, the rows that meet it.
    of_segments
        By numbers of model and slice, the sums over the placements of the negatives and positives of each segment.
    of_pairs
        The same of each named pair.
    offsets
        By target of a comparison and range of the model, where the range stands among the honest rows of each set.
    """

    of_targets: Mapping[Target, Mapping[FrozenCondition, MeasuredSet]]
    of_segments: Mapping[tuple[int, int], Sequence[tuple[SetSums, SetSums]]]
    of_pairs: Mapping[tuple[int, int], Sequence[tuple[SetSums, SetSums]]]
    offsets: Mapping[Target, Mapping[int, RankOffsets]]

    def of(self, target: Target, condition: Condition) -> MeasuredSet:
        """Return the rows that meet a condition."""
        return self.of_targets[target][freeze(condition)]

    def with_variances(
        self, conditions: Mapping[Target, Sequence[Condition]], variances: Mapping[Target, Sequence[float | None]]
    ) -> MeasuredSets:
        """Return what was measured, with the variances of comparisons."""
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
        Targets of further numbers are comparisons.

    Notes
    -----
    One query. The driver collects some integers for each set, and of comparisons for each set and range.
    """
    targets = list(asked)
    asked = {target: [*{freeze(one): one for one in conditions}.values()] for target, conditions in asked.items()}

    def measure(model: int, score_range: int, block: RowBlock) -> Iterator[tuple[int, int, bytes]]:
        cells, honest_sets = block.cells, {}
        for number, target in enumerate(targets, 1):
            if target.model != model:
                continue
            sets = [meet(condition, cells.bins) for condition in asked[target]]
            rows = rows_with_opposite(block, target.slice)
            values = target_values(block, target, rows)
            sums = sum_sets(cells, sum_values(block, target.slice, rows, values), sets)
            yield target.slice, number, pack([sums])
            if model >= n_models:
                counts = sums[:, 1, :, 0]
                yield target.slice, len(targets) + number, pack([np.array([score_range]), counts[np.newaxis]])
            elif target.name == AUC:
                honest_sets[target.slice] = [inside & cells.honest for inside in sets]
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
        sums = _read_sums(measured.get((*key, number)), len(conditions))
        if target.name != AUC:
            variances = [_vary_mean(one.honest) for one in sums]
        elif target.model < n_models and key in placements:
            variances = list(map(_vary_attribution, sums, placements[key]))
        else:
            variances = [None] * len(sums)
        of_targets[target] = dict(zip(map(freeze, conditions), map(MeasuredSet, sums, variances), strict=True))
        if data := measured.get((*key, len(targets) + number)):
            offsets[target] = _read_offsets(data)
    n_named = columns.n_segments + columns.n_pairs
    of_named = {key: of_key[len(of_key) - n_named :] for key, of_key in placements.items()}
    of_segments = {key: sums[: columns.n_segments] for key, sums in of_named.items()}
    of_pairs = {key: sums[columns.n_segments :] for key, sums in of_named.items()}
    return MeasuredSets(of_targets, of_segments, of_pairs, offsets)


def _vary_mean(values: Moments) -> float | None:
    """Return the variance of the mean of a loss, which depends on no other row."""
    return None if values.variance is None else values.variance / values.n


def _vary_attribution(sums: NodeSums, placements: tuple[SetSums, SetSums]) -> float | None:
    """Return the variance of the honest mean attribution: unlike a loss, it depends on opposite rows, too."""
    negatives, positives = placements
    labels = ((sums.honest_negative, positives["n"]), (sums.honest_positive, negatives["n"]))
    squares = (losses.ordered_square_sum(n_opposite) for losses, n_opposite in labels)
    return influence_variance(*map(as_placed, placements, squares))


def _read_sums(data: bytes | None, n_sets: int) -> list[NodeSums]:
    return [NodeSums()] * n_sets if data is None else list(map(read_node_sums, unpack(data)[0]))


def _read_offsets(data: bytes) -> dict[int, RankOffsets]:
    """Return where each range stands, given the rows of each set and label in every range that has any."""
    ranges, counts = unpack(data)
    by_label: Ints = np.concatenate([counts[:, :, 0], counts[:, :, 1]], axis=1)
    below = by_label.cumsum(axis=0) - by_label
    total = by_label.sum(axis=0)
    return {int(number): RankOffsets(of_range, total) for number, of_range in zip(ranges, below, strict=True)}
