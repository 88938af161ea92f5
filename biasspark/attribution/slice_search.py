"""Slices, which overlap as segments of a tree cannot, over sums by cell: one query for each level.

sums by cell --> counts by bin --> counts by conjunction, of two predicates, then of three
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from biasspark.arrays import Ints
from biasspark.attribution.block_sums import SUM_BITS, CellSums, SummedValue, Target, add_by_code, hash_bins
from biasspark.attribution.moments import LARGEST_BITS
from biasspark.attribution.slice_kernel import MAX_CANDIDATES, BestSlices, Predicate, Slice, SliceCounts, list_batches
from biasspark.config.attribution_settings import SliceSearch
from biasspark.features import Condition, Feature
from biasspark.ranking.kernels.row_block import Cells, SmallInts
from biasspark.ranking.row_blocks import Query, Search

Count: TypeAlias = Callable[[SmallInts, Ints], list[Ints]]
"""Adds up `SliceCounts`, given by feature the bin of each cell, and what a cell adds to each of the counts."""


class SearchedSlices(NamedTuple):
    """The conditions of the best slices by target, the highest score first.

    `warnings` tell by target that more conjunctions might have been among the best than could be counted. `too_few` are
    the targets of which no slice has enough rows.
    """

    conditions: list[Sequence[Condition]]
    warnings: dict[int, str]
    too_few: list[int]


def list_slice_values(targets: Sequence[Target], means: Sequence[float], n_rows: int) -> list[SummedValue]:
    """Return the values that are summed up to search slices of each target, of at most `n_rows` rows.

    `means` are those of the training rows of each target.
    """
    shift = SUM_BITS - max(n_rows, 1).bit_length() - LARGEST_BITS - 1
    # Rounding to units may move a mean by half a unit.
    ceilings = (int(np.ceil(mean * 2.0**shift)) + 1 for mean in means)
    return [SummedValue(target, shift, ceiling) for target, ceiling in zip(targets, ceilings, strict=True)]


def search_slices(
    features: Sequence[Feature], values: Sequence[SummedValue], settings: SliceSearch
) -> Search[SearchedSlices]:
    """Find for each value the slices that lack most of it, by queries about `CellSums`: one for each predicate.

    The values have one shift. They are rounded to whole units of 2^-s, with s as large as sums of that many rows allow
    (34 for two million), and added up in int64: slices are the same under any partitioning and order of the rows. A
    cell is counted in the candidates that it is in: at most 100,000 per value, and 100,000 of all values at a time,
    beyond which values take turns. The driver collects five integers for each bin and each candidate.
    """
    if not (features and values):
        return SearchedSlices([()] * len(values), {}, [])
    nothing = [np.zeros((feature.n_bins, len(SliceCounts._fields)), np.int64) for feature in features]
    keys = [(value.target.model, value.target.slice, number) for number, value in enumerate(values)]

    def count_bins(bins: SmallInts, counts: Ints) -> list[Ints]:
        return [add_by_code(codes, counts, feature.n_bins).T for codes, feature in zip(bins, features, strict=True)]

    by_bin = yield _ask(values, dict.fromkeys(range(len(values)), count_bins))
    searches = [BestSlices(by_bin.get(key, nothing), features, settings) for key in keys]
    for batch in list_batches(searches, settings.max_predicates):
        counters = {number: make_counter(searches[number].predicates, slices) for number, slices in batch.items()}
        counted = yield _ask(values, counters)
        for number, slices in batch.items():
            [sums] = counted.get(keys[number], [np.zeros((len(SliceCounts._fields), 0), np.int64)])
            enough = np.flatnonzero((sums[:2] >= settings.min_rows).all(axis=0)).tolist()
            searches[number].take({slices[index]: SliceCounts(*sums[:, index].tolist()) for index in enough})
    warnings = {
        number: f"`slice_search`: more than {MAX_CANDIDATES:,} conjunctions might be among those that lack most. "
        "Those with the highest bounds were counted. One that was not may have a score of up to "
        f"{search.missed / 2 ** values[number].shift:.6g}. Raise min_rows, or lower max_predicates or max_bins, to "
        "search them all."
        for number, search in enumerate(searches)
        if search.missed
    }
    too_few = [number for number, search in enumerate(searches) if search.has_too_few]
    return SearchedSlices([search.conditions() for search in searches], warnings, too_few)


def _ask(values: Sequence[SummedValue], counters: Mapping[int, Count]) -> Query:
    """Count the cells of some values, by number of the value."""

    def measure(_: int, _range: int, block: CellSums) -> Iterator[tuple[int, int, list[Ints]]]:
        for number, count in counters.items():
            value = values[number]
            if value in block.sums:
                counts = count_cells(block.cells, block.sums[value], value.shift)
                yield value.target.slice, number, count(block.cells.bins, counts)

    return Query(measure)


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
