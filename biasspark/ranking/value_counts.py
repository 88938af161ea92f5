"""Distinct values of columns, and the values at exact quantiles, independent of partitions.

rows --count--> distinct values of a task --small shuffle--> distinct values, or the values at quantiles
rows --count--> values by range --one shuffle--> the values at quantiles, of columns with very many values
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial, reduce
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame

from biasspark.arrays import Floats, Ints
from biasspark.ranking import range_job
from biasspark.ranking.kernels.blocks import find_ranges, split_by_range
from biasspark.ranking.kernels.reference_sets import RankOffsets
from biasspark.ranking.task_rows import Batches, Key, Kind, Part, Parts, list_offsets

MAX_NUMBERS = 1 << 20
"""Distinct numbers of a column that one task counts; beyond that it keeps a sample, and they are counted by range."""

MAX_CATEGORIES = 1000
"""With more values, tables and pictures of a feature or a grouping cannot be read; it may be the text itself."""

_ROWS_A_RANGE = 500_000


class NumberCounts(NamedTuple):
    """Numbers, ascending, and how many rows have each; NaN is last. If not exact, they are a sample of as many rows."""

    values: Floats
    counts: Ints
    is_exact: bool

    @staticmethod
    def of(values: Floats, counts: Ints, is_exact: bool = True) -> NumberCounts:
        """Return the counts of numbers that may repeat."""
        distinct, index = np.unique(values + 0.0, return_inverse=True)  # -0.0 becomes 0.0
        totals = np.zeros(len(distinct), np.int64)
        np.add.at(totals, index, counts)
        return NumberCounts(distinct, totals, is_exact)

    def add(self, other: NumberCounts) -> NumberCounts:
        """Return the counts of both, or of an evenly spaced sample of the rows if there are too many values."""
        values, counts = (np.concatenate(both) for both in zip(self[:2], other[:2], strict=True))
        total = NumberCounts.of(values, counts, self.is_exact and other.is_exact)
        if len(total.values) <= MAX_NUMBERS:
            return total
        size, reached = MAX_NUMBERS // 16, np.cumsum(total.counts)
        chosen = np.searchsorted(reached, np.arange(1, size + 1) * int(reached[-1]) // size)
        return NumberCounts(total.values[chosen], np.diff(np.append(0, reached[chosen])), False)


class Numbers(NamedTuple):
    """A column of numbers: the lower edges of its bins (`choose_edges`), and the rows with a number, NaN included.

    If the numbers are a sample, the edges cut them into ranges instead, of which `_count_by_range` makes bins.
    """

    edges: Floats
    n_known: int
    is_exact: bool = True


def choose_edges(values: Floats, counts: Ints, n_below: int, n_all: int, n_bins: int) -> Floats:
    """Return the values at which bins begin, among some distinct values, ascending, with the rows of each.

    Of N rows in order, the value of row floor(k N / n_bins), for every k, begins a bin, and so does the smallest value.
    `n_below` rows have a lower value than these; N is `n_all`.
    """
    # The rows of a value are before ... before + count - 1. It begins a bin if row floor(k N / n_bins) is one.
    before = n_below + np.cumsum(counts) - counts
    k = -(-before * n_bins // max(n_all, 1))
    begins = (k >= 1) & (k < n_bins) & (k * n_all < (before + counts) * n_bins)
    chosen: Floats = values[begins | (before == 0)]
    return chosen


Name: TypeAlias = tuple[str, str]
"""The name of a column that is counted: what it is for, and its name in the corpus."""


class ValueCounts(NamedTuple):
    """Columns of numbers; the texts of columns with their rows; and whether any row of a column is NULL."""

    numbers: dict[Name, Numbers]
    texts: dict[Name, dict[str, int]]
    has_null: dict[Name, bool]


def count_values(
    corpus: DataFrame, numbers: Mapping[Name, Column], texts: Mapping[Name, Column], most_bins: int
) -> ValueCounts:
    """Count the values of DOUBLE columns, and of columns of STRING, integers or BOOLEAN as strings.

    Numbers have a bin for each value, or `most_bins` at quantiles. A column with more than `MAX_CATEGORIES` strings
    gets more keys than that, and incomplete counts.

    Runs one Spark job, a narrow scan; a second for numbers with more than a million distinct values. A task holds a
    million numbers of each column.
    """
    columns = {**numbers, **texts}
    n_numbers, n_columns = len(numbers), len(columns)
    if not columns:
        return ValueCounts({}, {}, {})
    narrow = corpus.select(*(value.alias(f"value_{n}") for n, value in enumerate(columns.values())))

    def combine(key: Key, tasks: Iterator[Any]) -> Any:
        if key[0] == n_columns:
            return sum(tasks)
        if key[0] < n_numbers:
            return _summarize(reduce(NumberCounts.add, tasks), most_bins)
        total = Counter[str]()
        for counted in tasks:
            total.update(counted)
        return dict(total.most_common(MAX_CATEGORIES + 1))

    count = partial(_count_task, n_numbers=n_numbers, n_columns=n_columns)
    combined = range_job.combine_counts(range_job.map_to_counts(narrow, count), combine, 2 * n_columns)
    listed = [combined.get((number, 0, 0), Numbers(np.empty(0), 0)) for number in range(n_numbers)]
    if many := {number: counted for number, counted in enumerate(listed) if not counted.is_exact}:
        for number, edges in _count_by_range(narrow, many, most_bins).items():
            listed[number] = Numbers(edges, listed[number].n_known)
    text_counts = [combined.get((number, 0, 0), {}) for number in range(n_numbers, n_columns)]
    n_null = combined.get((n_columns, 0, 0), np.zeros(n_columns, np.int64))
    return ValueCounts(
        dict(zip(numbers, listed, strict=True)),
        dict(zip(texts, text_counts, strict=True)),
        dict(zip(columns, (n_null > 0).tolist(), strict=True)),
    )


def _count_task(batches: Batches, n_numbers: int, n_columns: int) -> Iterator[range_job.CountsRow]:
    """Count the values in the batches of a task, whose columns of numbers are first, and the rows with NULL."""
    number_counts = [NumberCounts(np.empty(0), np.empty(0, np.int64), True)] * n_numbers
    text_counts = [Counter[str]() for _ in range(n_columns - n_numbers)]
    n_null = np.zeros(n_columns, np.int64)
    for batch in batches:
        for number, column in enumerate(batch.columns):
            n_null[number] += column.null_count
            values, counts = count_batch(column)
            if number < n_numbers:
                number_counts[number] = number_counts[number].add(NumberCounts.of(values.to_numpy(), counts))
            elif len(text_counts[number - n_numbers]) <= MAX_CATEGORIES:
                names = values.cast(pa.string()).to_pylist()
                text_counts[number - n_numbers].update(dict(zip(names, counts.tolist(), strict=True)))
    for number, counted in enumerate(number_counts):
        yield number, 0, 0, 0, counted
    for number, counted_texts in enumerate(text_counts, n_numbers):
        yield number, 0, 0, 0, dict(counted_texts.most_common(MAX_CATEGORIES + 1))
    yield n_columns, 0, 0, 0, n_null


def count_batch(column: pa.Array) -> tuple[pa.Array, Ints]:
    """Return the distinct values of a column except NULL, and how many rows have each."""
    counted = pc.value_counts(column.drop_null())
    return counted.field("values"), counted.field("counts").to_numpy().astype(np.int64)


def _summarize(counted: NumberCounts, most_bins: int) -> Numbers:
    """Return a column with its bin edges, or range boundaries if there are too many values."""
    n_known, values = int(counted.counts.sum()), counted.values
    if not counted.is_exact:
        n_ranges = -(-n_known // _ROWS_A_RANGE)
        values = np.unique(choose_edges(values, counted.counts, 0, n_known, n_ranges)[1:])
    elif len(values) > most_bins:
        values = choose_edges(values, counted.counts, 0, n_known, most_bins)
    return Numbers(values, n_known, counted.is_exact)


def _count_by_range(narrow: DataFrame, many: Mapping[int, Numbers], most_bins: int) -> dict[int, Floats]:
    """Return the bin edges of columns with very many numbers, given their range boundaries."""

    def cut(batches: Batches) -> Iterator[Part]:
        for batch in batches:
            for number, (edges, *_) in many.items():
                numbers, n_rows = count_batch(batch.columns[number])
                values, counts, _ = NumberCounts.of(numbers.to_numpy(), n_rows)
                ranges = find_ranges(values, edges)
                for score_range, inside in split_by_range(ranges):
                    yield Part(number, 0, score_range, Kind.ROWS, (values[inside], counts[inside]))
                rows_of_ranges = np.bincount(ranges, counts, len(edges) + 1).astype(np.int64)
                yield from list_offsets(number, 0, rows_of_ranges[:, np.newaxis])

    def measure(_: Key, parts: Parts) -> Iterator[tuple[int, Floats]]:
        if Kind.ROWS in parts:
            values, counts = (np.concatenate(arrays) for arrays in zip(*parts[Kind.ROWS], strict=True))
            counted = NumberCounts.of(values, counts)
            [below], [total] = RankOffsets.add_up(parts[Kind.OFFSETS])
            yield 0, choose_edges(counted.values, counted.counts, int(below), int(total), most_bins)

    def combine(_: Key, ranges: Iterator[Floats]) -> Floats:
        return np.concatenate(list(ranges))

    parts = range_job.cut_batches(narrow, cut)
    ranges = range_job.count_ranges(parts, [numbers.edges for numbers in many.values()], 1, measure)
    combined = range_job.combine_counts(ranges, combine, len(many))
    return {number: edges for (number, _, _), edges in combined.items()}
