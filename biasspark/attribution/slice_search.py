"""Slices over sums by cell, which overlap as segments of a tree cannot: one query for each level.

sums by cell --> counts by bin --> counts by conjunction, of two predicates, then of three
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
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
    Batch,
    Candidates,
    Counts,
    Predicate,
    Searched,
    Slice,
    search,
)
from biasspark.config.attribution_settings import SliceSearch
from biasspark.features import Condition, Feature
from biasspark.ranking.row_blocks import Answer, Query, Search


class SearchedSlices(NamedTuple):
    """What a search gives.

    Attributes
    ----------
    conditions
        Of the best slices by target, the greatest score first.
    warnings
        By target, where more conjunctions might have been among the best than could be counted.
    """

    conditions: list[Sequence[Condition]]
    warnings: dict[int, str]


def list_slice_values(targets: Sequence[Target], means: Sequence[float], n_rows: int) -> list[SummedValue]:
    """Return what is summed up to search slices of each target, of at most so many rows.

    `means` are those of the train rows of each target.
    """
    shift = SUM_BITS - max(n_rows, 1).bit_length() - LARGEST_BITS - 1
    # Rounding to units may move a mean by half a unit.
    ceilings = (int(np.ceil(mean * 2.0**shift)) + 1 for mean in means)
    return [SummedValue(target, shift, ceiling) for target, ceiling in zip(targets, ceilings, strict=True)]


def search_slices(
    features: Sequence[Feature], values: Sequence[SummedValue], settings: SliceSearch
) -> Search[SearchedSlices]:
    """Find for each value the slices that lack most of it, by queries about `CellSums`.

    Parameters
    ----------
    values : sequence of SummedValue
        Of one shift.
    settings : SliceSearch
        How long conjunctions may be, how many slices are wanted, the fewest rows of one, and how finely numbers are
        cut.

    Returns
    -------
    SearchedSlices
        The same under any partitioning and order of the rows: values are rounded to whole units of 2^-s, with s as
        large as sums of so many rows allow (34 for two million), and added up in int64.

    Notes
    -----
    One query for each predicate. A cell is counted in the candidates that it is in: at most 100,000 per value, and
    100,000 of all values at a time, beyond which values take turns. The driver collects five integers for each bin and
    each candidate at most, and no row of the corpus.
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
            number: _warn(one.missed / 2 ** values[number].shift) for number, one in enumerate(searched) if one.missed
        }
        return SearchedSlices([one.conditions for one in searched], warnings)


def _ask_bins(values: Sequence[SummedValue], nothing: Sequence[Ints]) -> Query:
    """Ask for the counts of each bin, shape (bins, 5), by feature."""

    def measure(_: int, _range: int, block: CellSums) -> Iterator[tuple[int, int, list[Ints]]]:
        for number, part, counts in _count(block, values):
            of_features = zip(block.cells.bins, nothing, strict=True)
            yield part, number, [add_by_code(bins, counts, len(zeros)).T for bins, zeros in of_features]

    return Query(measure)


def _ask_slices(values: Sequence[SummedValue], batch: Batch) -> Query:
    """Ask for the counts of candidates, shape (5, candidates)."""
    counters = {number: SliceCounter.of(candidates) for number, candidates in batch.items()}

    def measure(_: int, _range: int, block: CellSums) -> Iterator[tuple[int, int, list[Ints]]]:
        for number, part, counts in _count(block, values):
            if number in counters:
                yield part, number, [counters[number].count([*block.cells.bins], [*counts])]

    return Query(measure)


def _read_slices(batch: Batch, counted: Answer, min_rows: int) -> dict[int, dict[Slice, Counts]]:
    """Return the counts of the candidates that have enough rows."""
    slices: dict[int, dict[Slice, Counts]] = {}
    for (_, _, number), [sums] in counted.items():
        enough = np.flatnonzero((sums[:2] >= min_rows).all(axis=0))
        conjunctions = batch[number].slices
        slices[number] = {conjunctions[k]: Counts(*sums[:, k].tolist()) for k in enough.tolist()}
    return slices


def _count(block: CellSums, values: Sequence[SummedValue]) -> Iterator[tuple[int, int, Ints]]:
    """Give the number of each value that any row of a block has, its slice, and the five counts of each cell."""
    for number, value in enumerate(values):
        if value in block.sums:
            bits = value.shift + LARGEST_BITS + 1
            yield number, value.target.slice, count_for_slices(block.cells, block.sums[value], bits)


def _warn(missed: float) -> str:
    return (
        f"`slice_search`: more than {MOST_CANDIDATES:,} conjunctions might be among those that lack most. "
        f"Those with the highest bounds were counted. One that was not may have a score of up to {missed:.6g}. Raise "
        "min_rows, or lower max_predicates or max_bins, to search them all."
    )


class _Combination(NamedTuple):
    """The candidates on one set of features.

    Attributes
    ----------
    features
        Their places.
    keys
        The number of each candidate.
    slices
        Its place among all candidates, int64.
    """

    features: tuple[int, ...]
    keys: pd.Index[int]
    slices: Ints


@dataclass(frozen=True)
class SliceCounter:
    """Counts the candidates of one tree.

    Attributes
    ----------
    n_slices
        How many there are.
    base
        Above every code.
    codes
        By feature, the code of each bin's predicate, int64 [n_bins].
    combinations
        By set of features.
    """

    n_slices: int
    base: int
    codes: tuple[Ints, ...]
    combinations: tuple[_Combination, ...]

    @classmethod
    def of(cls, candidates: Candidates) -> SliceCounter:
        """Return what counts these candidates."""
        predicates, slices = candidates
        by_features: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
        for number, conjunction in enumerate(slices):
            by_features[tuple(predicates[one].feature for one in conjunction)].append(number)
        base = len(predicates)
        combinations = [
            _Combination(features, pd.Index([_key(slices[number], base) for number in numbers]), np.array(numbers))
            for features, numbers in by_features.items()
        ]
        return cls(len(slices), base, _codes_by_bin(predicates), tuple(combinations))

    def count(self, bins: Sequence[Ints], each: Sequence[Ints]) -> Ints:
        """Return what rows add up to in each candidate.

        Parameters
        ----------
        bins : sequence of int [n_rows]
            By feature, the bin of each row.
        each : sequence of int64 [n_rows]
            What a row adds to each of the `Counts`.

        Returns
        -------
        int64 [5, n_slices]

        Notes
        -----
        Costs about 40 ns for each row and set of features that candidates are on, whatever the number of candidates.
        """
        met = [codes[of_feature] for codes, of_feature in zip(self.codes, bins, strict=True)]
        totals = np.zeros((len(Counts._fields), self.n_slices), np.int64)
        for features, keys, slices in self.combinations:
            indices = keys.get_indexer(_key([met[feature] for feature in features], self.base))
            rows = np.flatnonzero(indices >= 0)
            totals[:, slices] = add_by_code(indices[rows], [column[rows] for column in each], len(slices))
        return totals


def _codes_by_bin(predicates: Sequence[Predicate]) -> tuple[Ints, ...]:
    """Return by feature the code of each bin: the place of the predicate that it is in."""
    by_feature: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for number, (feature, bins) in enumerate(predicates):
        by_feature[feature].update(dict.fromkeys(bins, number))
    return tuple(np.array([code for _, code in sorted(codes.items())]) for _, codes in sorted(by_feature.items()))


def _key(digits: Sequence[Any], base: int) -> Any:
    """Return the number that has these digits: one, or an array of them."""
    return reduce(lambda key, digit: key * base + digit, digits)
