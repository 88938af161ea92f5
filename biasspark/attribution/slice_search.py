"""Slices, which overlap as segments of a tree cannot, over sums by cell: one query for each level.

sums by cell --> counts by bin --> counts by conjunction, of two predicates, then of three
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from biasspark.arrays import Ints
from biasspark.attribution.block_sums import SUM_BITS, CellSums, SummedValue, Target, add_by_code, hash_bins
from biasspark.attribution.moments import LARGEST_BITS
from biasspark.attribution.slice_kernel import BestSlices, Predicate, Slice, SliceCounts
from biasspark.config.attribution_settings import SliceSearch
from biasspark.features import Feature
from biasspark.ranking.kernels.row_block import Cells, SmallInts
from biasspark.ranking.row_blocks import Query, Search

Count: TypeAlias = Callable[[SmallInts, Ints], list[Ints]]
"""Adds up `SliceCounts`, given by feature the bin of each cell, and what a cell adds to each of the counts."""


def scale_slice_value(target: Target, mean: float, n_rows: int) -> SummedValue:
    """Return the value that is summed up to search slices, of at most `n_rows` rows.

    `mean` is that of the training rows.
    """
    shift = SUM_BITS - max(n_rows, 1).bit_length() - LARGEST_BITS - 1
    # Rounding to units may move a mean by half a unit.
    return SummedValue(target, shift, int(np.ceil(mean * 2.0**shift)) + 1)


def search_slices(features: Sequence[Feature], value: SummedValue, settings: SliceSearch) -> Search[BestSlices]:
    """Find the slices that lack most of a value, by queries about `CellSums`: one for each predicate.

    A cell is counted in the candidates that it is in: at most 100,000 at a time. The driver collects five integers for
    each bin and each candidate.
    """

    def count_bins(bins: SmallInts, counts: Ints) -> list[Ints]:
        return [add_by_code(codes, counts, feature.n_bins).T for codes, feature in zip(bins, features, strict=True)]

    by_bin = [np.zeros((feature.n_bins, len(SliceCounts._fields)), np.int64) for feature in features]
    best = BestSlices((yield from _count(value, count_bins, by_bin)), features, settings)
    for _ in range(1, settings.max_predicates):
        if not (slices := best.candidates()):
            break
        nothing = [np.zeros((len(SliceCounts._fields), len(slices)), np.int64)]
        [sums] = yield from _count(value, make_counter(best.predicates, slices), nothing, len(slices))
        enough = np.flatnonzero((sums[:2] >= settings.min_rows).all(axis=0)).tolist()
        best.take({slices[index]: SliceCounts(*sums[:, index].tolist()) for index in enough})
    return best


def _count(value: SummedValue, count: Count, nothing: list[Ints], size: int = 0) -> Search[list[Ints]]:
    """Return what the cells of all blocks add up to, by one query of this size; `nothing` is that of no block."""

    def measure(_: int, _range: int, block: CellSums) -> Iterator[tuple[int, int, list[Ints]]]:
        if value in block.sums:
            counts = count_cells(block.cells, block.sums[value], value.shift)
            yield value.target.slice, 0, count(block.cells.bins, counts)

    answer = yield Query(measure, size=size)
    return next(iter(answer.values()), nothing)


def count_cells(cells: Cells, sums: Ints, shift: int) -> Ints:
    """Return the five `SliceCounts` by cell, given the sums of `CellSums` of a value.

    Their ceiling is at least the mean of the training rows. The hash of a cell's bins has so many bits that sums over
    all rows have 63 at most.
    """
    (n_rows, totals, bounds), honest = sums, cells.honest
    fingerprints = hash_bins(cells.bins) >> np.uint64(64 - shift - LARGEST_BITS - 1)
    train = [np.where(honest, 0, column) for column in (n_rows, totals, bounds)]
    return np.stack([train[0], n_rows - train[0], *train[1:], n_rows * fingerprints.astype(np.int64)])


def make_counter(predicates: Sequence[Predicate], slices: Sequence[Slice]) -> Count:
    """Return a function that adds up `SliceCounts` by slice: one int64 array, shape (5, slices).

    Slices on the same features are looked up together, by a number whose digits are the indices of their predicates.
    Costs about 40 ns for each cell and set of features that slices are on, whatever the number of slices.
    """
    by_feature: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for number, (feature, bins) in enumerate(predicates):
        by_feature[feature].update(dict.fromkeys(bins, number))
    codes = [np.array([number for _, number in sorted(numbers.items())]) for _, numbers in sorted(by_feature.items())]
    together: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
    for number, conjunction in enumerate(slices):
        together[tuple(predicates[index].feature for index in conjunction)].append(number)
    combinations = {
        features: (np.array(numbers), pd.Index([_key(slices[number], len(predicates)) for number in numbers]))
        for features, numbers in together.items()
    }

    def count(bins: SmallInts, counts: Ints) -> list[Ints]:
        met = [code[column] for code, column in zip(codes, bins, strict=True)]
        totals = np.zeros((len(counts), len(slices)), np.int64)
        for features, (numbers, keys) in combinations.items():
            indices = keys.get_indexer(_key([met[feature] for feature in features], len(predicates)))
            inside = np.flatnonzero(indices >= 0)
            totals[:, numbers] = add_by_code(indices[inside], counts[:, inside], len(numbers))
        return [totals]

    return count


def _key(digits: Sequence[Any], base: int) -> Any:
    """Return the number that has these digits: one, or an array of them."""
    return reduce(lambda key, digit: key * base + digit, digits)
