"""Sorted arrays: runs of equal entries, sums over runs, and placements among runs of equal scores. numpy only."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from biasspark.arrays import BigInts, Floats, Ints
from biasspark.ranking.kernels.exact import sum_products

Values = TypeVar("Values", Floats, Ints)


def doubled_placement(below: Ints, at: Ints) -> Ints:
    """Return 2·below + at: the doubled placement of a row with `below` rows below it and `at` rows at its score.

    A placement is the number of rows of a cell with which a row is correctly ordered, where a tie counts half. Doubled,
    it is an integer: 2·#{j: s_j < s} + #{j: s_j = s}. Counted from above, by rows with a higher score, it is 2n less
    that value, among n rows.
    """
    return 2 * below + at


def place_among(scores: Floats | Ints, ascending: Floats | Ints) -> Ints:
    """Return the doubled placement of each score among ascending ones: those below it, plus those up to it."""
    return np.searchsorted(ascending, scores, "left") + np.searchsorted(ascending, scores, "right")


def place_runs(counts: Ints) -> Ints:
    """Return the doubled placement at each score among all rows, from the rows at each score, ascending."""
    return doubled_placement(np.cumsum(counts) - counts, counts)


def find_starts(*columns: Ints | Floats) -> Ints:
    """Return where runs of equal entries begin; given several columns, runs of entries equal in all of them."""
    differ = reduce(np.logical_or, (column[1:] != column[:-1] for column in columns))
    return np.flatnonzero(np.r_[np.ones(min(len(columns[0]), 1), bool), differ])


def collapse(values: Values) -> tuple[Values, Ints]:
    """Return the value and the length of each run of equal entries."""
    first = find_starts(values)
    return values[first], np.diff(np.r_[first, len(values)])


def find_distinct(keys: Ints) -> Ints:
    """Return the distinct keys, ascending; for small keys, counting is ten times as fast as sorting."""
    if len(keys) and keys.max() < 1 << 16:
        return np.flatnonzero(np.bincount(keys))
    return np.unique(keys)


def split_by_code(codes: NDArray[np.int64 | np.uint16], n_codes: int) -> list[Ints]:
    """Return the indices of the entries of each code, 0 to ``n_codes - 1``, in order."""
    ends = np.cumsum(np.bincount(codes, minlength=n_codes))
    return np.split(np.argsort(codes, kind="stable"), ends[:-1])


def order_entries(keys: Ints, scores: Floats) -> Ints:
    """Return the order of entries by key, which is not negative, then by score.

    Two sorts, the second a radix sort for small keys, take half the time of ``np.lexsort``.
    """
    by_score = np.argsort(scores)
    ordered = keys[by_score]
    small = ordered.astype(np.uint16) if ordered.max(initial=0) < 1 << 16 else ordered
    return by_score[np.argsort(small, kind="stable")]


def merge_runs(scores: Sequence[Floats], counts: Sequence[Ints]) -> tuple[Floats, Ints]:
    """Return the distinct scores of several runs, ascending, and how many rows have each.

    A run holds distinct scores, ascending.
    """
    if len(scores) == 1:
        return scores[0], counts[0]
    values, weights = np.concatenate(scores), np.concatenate(counts)
    if weights.sum() <= 2 * len(values):  # few more rows than entries: sorting rows is faster than ordering entries
        return collapse(sort_runs(np.repeat(values, weights)))
    order = np.argsort(values, kind="stable")
    values, weights = values[order], weights[order]
    first = find_starts(values)
    return values[first], np.add.reduceat(weights, first)


def sort_runs(scores: Floats) -> Floats:
    """Sort scores that are concatenated ascending runs: finite, no -0.0.

    A stable sort merges runs. On processors with slow vectorized sorting, such as AMD's with AVX-512, it takes half of
    the time, and a third when comparing integers: the bit patterns of non-negative doubles sort like their values.
    """
    if scores.min(initial=0.0) < 0:
        return np.sort(scores, kind="stable")
    merged: Floats = np.sort(scores.view(np.int64), kind="stable").view(np.float64)
    return merged


class Segments:
    """Consecutive runs of entries of arrays of length `size`, none of them empty.

    `starts` says where each run begins; the first is 0. `wide` says whether a sum of products may exceed 63 bits.
    """

    def __init__(self, starts: Ints, size: int, *, wide: bool) -> None:
        self.starts, self.wide = starts, wide
        self.lengths = np.diff(np.append(starts, size))

    def total(self, values: Ints) -> Ints:
        """Return the sum of each run."""
        sums: Ints = np.add.reduceat(values, self.starts)
        return sums

    def before(self, values: Ints) -> Ints:
        """Return, for each entry, the sum of the earlier entries of its run."""
        running = np.cumsum(values) - values
        return running - np.repeat(running[self.starts], self.lengths)

    def onwards(self, values: Ints) -> Ints:
        """Return, for each entry, the sum of its run from that entry on."""
        return np.repeat(self.total(values), self.lengths) - self.before(values)

    def previous(self, values: Ints) -> Ints:
        """Return the previous entry's value, 0 at the start of a run."""
        shifted = np.roll(values, 1)
        shifted[self.starts] = 0
        return shifted

    def following(self, values: Ints, last: Ints) -> Ints:
        """Return the next entry's value; at the end of a run, the entry of `last` there."""
        shifted = np.roll(values, -1)
        ends = self.starts + self.lengths - 1
        shifted[ends] = last[ends]
        return shifted

    def dot(self, first: Ints, second: Ints) -> BigInts:
        """Return the sum of the products of each run, as Python integers; factors lie in [0, 2^62)."""
        return sum_products(first, second, self.starts, wide=self.wide)
