"""Slices, which overlap as segments of a tree cannot, over sums by cell: one query for each level.

sums by cell --> counts by bin --> counts by conjunction, of two predicates, then of three
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from biasspark.arrays import Ints
from biasspark.attribution.block_sums import N_COUNTS, SUM_BITS, CellSums, SummedValue, add_by_code, count_for_slices
from biasspark.attribution.moments import LARGEST_BITS
from biasspark.attribution.row_values import Target
from biasspark.attribution.slice_kernel import (
    MOST_CANDIDATES,
    Candidates,
    Counts,
    Searched,
    Slice,
    search,
)
from biasspark.config.attribution_settings import SliceSearch
from biasspark.features import Condition, Feature
from biasspark.ranking.row_blocks import Answer, Query, Search


class SearchedSlices(NamedTuple):
    """The conditions of the best slices by target, the greatest score first.

    `warnings` tell by target that more conjunctions might have been among the best than could be counted.
    """

    conditions: list[Sequence[Condition]]
    warnings: dict[int, str]


def list_slice_values(targets: Sequence[Target], means: Sequence[float], n_rows: int) -> list[SummedValue]:
    """Return the values that are summed up to search slices of each target, of at most so many rows.

    `means` are those of the train rows of each target.
    """
    shift = SUM_BITS - max(n_rows, 1).bit_length() - LARGEST_BITS - 1
    # Rounding to units may move a mean by half a unit.
    ceilings = (int(np.ceil(mean * 2.0**shift)) + 1 for mean in means)
    return [SummedValue(target, shift, ceiling) for target, ceiling in zip(targets, ceilings, strict=True)]


def search_slices(
    features: Sequence[Feature], values: Sequence[SummedValue], settings: SliceSearch
) -> Search[SearchedSlices]:
    """Find for each value the slices that lack most of it, by queries about `CellSums`: one for each predicate.

    The values have one shift. They are rounded to whole units of 2^-s, with s as large as sums of so many rows allow
    (34 for two million), and added up in int64: slices are the same under any partitioning and order of the rows. A
    cell is counted in the candidates that it is in: at most 100,000 per value, and 100,000 of all values at a time,
    beyond which values take turns. The driver collects five integers for each bin and each candidate.
    """
    if not (features and values):
        return SearchedSlices([()] * len(values), {})
    nothing = [np.zeros((feature.n_bins, N_COUNTS), np.int64) for feature in features]
    summed = yield _ask_bins(values, nothing)
    targets = [value.target for value in values]
    by_bin = [summed.get((target.model, target.slice, number), nothing) for number, target in enumerate(targets)]
    searching = search(by_bin, features, settings)
    try:
        batch = next(searching)
        while True:
            counted = yield _ask_slices(values, batch)
            batch = searching.send(_read_slices(batch, counted, settings.min_rows))
    except StopIteration as end:
        searched: list[Searched] = end.value
        warnings = {
            number: f"`slice_search`: more than {MOST_CANDIDATES:,} conjunctions might be among those that lack most. "
            "Those with the highest bounds were counted. One that was not may have a score of up to "
            f"{one.missed / 2 ** values[number].shift:.6g}. Raise min_rows, or lower max_predicates or max_bins, to "
            "search them all."
            for number, one in enumerate(searched)
            if one.missed
        }
        return SearchedSlices([one.conditions for one in searched], warnings)


def _ask_bins(values: Sequence[SummedValue], nothing: Sequence[Ints]) -> Query:
    """Ask for the counts of each bin, shape (bins, 5), by feature."""

    def measure(_: int, _range: int, block: CellSums) -> Iterator[tuple[int, int, list[Ints]]]:
        for number, part, counts in _count(block, values):
            of_features = zip(block.cells.bins, nothing, strict=True)
            yield part, number, [add_by_code(bins, counts, len(zeros)).T for bins, zeros in of_features]

    return Query(measure)


def _ask_slices(values: Sequence[SummedValue], batch: Mapping[int, Candidates]) -> Query:
    """Ask for the counts of candidates, shape (5, candidates)."""
    counters = {number: SliceCounter.of(candidates) for number, candidates in batch.items()}

    def measure(_: int, _range: int, block: CellSums) -> Iterator[tuple[int, int, list[Ints]]]:
        for number, part, counts in _count(block, values):
            if number in counters:
                yield part, number, [counters[number].count([*block.cells.bins], [*counts])]

    return Query(measure)


def _read_slices(batch: Mapping[int, Candidates], counted: Answer, min_rows: int) -> dict[int, dict[Slice, Counts]]:
    """Return the counts of the candidates that have enough rows."""
    slices: dict[int, dict[Slice, Counts]] = {}
    for (_, _, number), [sums] in counted.items():
        enough = np.flatnonzero((sums[:2] >= min_rows).all(axis=0))
        conjunctions = batch[number].slices
        slices[number] = {conjunctions[k]: Counts(*sums[:, k].tolist()) for k in enough.tolist()}
    return slices


def _count(block: CellSums, values: Sequence[SummedValue]) -> Iterator[tuple[int, int, Ints]]:
    """Yield the number of each value that any row of a block has, its slice, and the five counts of each cell."""
    for number, value in enumerate(values):
        if value in block.sums:
            bits = value.shift + LARGEST_BITS + 1
            yield number, value.target.slice, count_for_slices(block.cells, block.sums[value], bits)


@dataclass(frozen=True)
class SliceCounter:
    """Counts the candidates of one tree.

    Attributes
    ----------
    codes
        By feature, the index of the predicate that each bin is in.
    combinations
        By the features that candidates are on: the candidates, and their keys, the numbers whose digits are the indices
        of their predicates.
    """

    candidates: Candidates
    codes: tuple[Ints, ...]
    combinations: Mapping[tuple[int, ...], tuple[Ints, pd.Index[int]]]

    @classmethod
    def of(cls, candidates: Candidates) -> SliceCounter:
        """Return the counter of these candidates."""
        predicates, slices = candidates
        codes: defaultdict[int, dict[int, int]] = defaultdict(dict)
        for number, (feature, bins) in enumerate(predicates):
            codes[feature].update(dict.fromkeys(bins, number))
        by_features: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
        for number, conjunction in enumerate(slices):
            by_features[tuple(predicates[one].feature for one in conjunction)].append(number)
        combinations = {
            features: (np.array(numbers), pd.Index([_key(slices[number], len(predicates)) for number in numbers]))
            for features, numbers in by_features.items()
        }
        by_bin = (np.array([number for _, number in sorted(of_bins.items())]) for _, of_bins in sorted(codes.items()))
        return cls(candidates, tuple(by_bin), combinations)

    def count(self, bins: Sequence[Ints], each: Sequence[Ints]) -> Ints:
        """Return the sums of the five `Counts` over the rows of each candidate, int64, shape (5, candidates).

        Costs about 40 ns for each row and set of features that candidates are on, whatever the number of candidates.

        Parameters
        ----------
        bins, each : sequence of integer arrays, shape (n,)
            By feature the bin of each row, and what a row adds to each of the `Counts`.
        """
        met = [codes[of_feature] for codes, of_feature in zip(self.codes, bins, strict=True)]
        totals = np.zeros((len(Counts._fields), len(self.candidates.slices)), np.int64)
        for features, (slices, keys) in self.combinations.items():
            digits = [met[feature] for feature in features]
            indices = keys.get_indexer(_key(digits, len(self.candidates.predicates)))
            rows = np.flatnonzero(indices >= 0)
            totals[:, slices] = add_by_code(indices[rows], [column[rows] for column in each], len(slices))
        return totals


def _key(digits: Sequence[Any], base: int) -> Any:
    """Return the number that has these digits: one, or an array of them."""
    return reduce(lambda key, digit: key * base + digit, digits)
