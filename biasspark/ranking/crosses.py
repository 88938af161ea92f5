"""Rightly ordered pairs of every cross of groups: positives of one, negatives of another. numpy only.

For each group of negatives, a positive's placement among them is a running count over the distinct scores, and the
placements and their squares are added up by the positives' groups; for the squares of the negatives the other way
round. So K groups cost 2K passes over the scores of a range, where pairs would cost their number, and crosses of single
groups K² passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from biasspark.arrays import BigInts, Floats, Ints
from biasspark.ranking.blocks import double_below, number_runs

_HALF_BITS = 32
_LOW_HALF = 2**_HALF_BITS - 1


class CrossCounts(NamedTuple):
    """Of one range, or of the whole score line.

    Attributes
    ----------
    n_positive, n_negative
        Rows of each group, shape (k,).
    ordered_doubled
        Shape (k, k): for positives of one group and negatives of another, twice the rightly ordered pairs plus ties.
    low_square_sum, high_square_sum
        Shape (k, k), likewise: sum over those negatives, and over those positives, of the square of how many of the
        others the row is rightly ordered with, doubled, plus ties.
    """

    n_positive: Ints | BigInts
    n_negative: Ints | BigInts
    ordered_doubled: Ints | BigInts
    low_square_sum: BigInts
    high_square_sum: BigInts

    def encode(self) -> bytes:
        """Return the counts of a range as bytes: of squares, which may pass 63 bits, first the high half."""
        halves = [half for squares in self[3:] for half in (squares >> _HALF_BITS, squares & _LOW_HALF)]
        return np.concatenate([counts.ravel().astype(np.int64) for counts in (*self[:3], *halves)]).tobytes()

    @staticmethod
    def decode(data: bytes, n_groups: int) -> CrossCounts:
        """Return the counts that `encode` wrote."""
        k, square = n_groups, n_groups * n_groups
        parts = np.split(np.frombuffer(data, np.int64), np.cumsum([k, k, square, square, square, square]))
        n_positive, n_negative, *crosses = parts
        pairs, *halves = (counts.reshape(k, k) for counts in crosses)
        of_low, of_high = (_join(high, low) for high, low in (halves[:2], halves[2:]))
        return CrossCounts(n_positive, n_negative, pairs, of_low, of_high)


def _join(high: Ints, low: Ints) -> BigInts:
    whole: BigInts = high.astype(object) * 2**_HALF_BITS + low
    return whole


class _Rows:
    """The rows of one label of a range, by group: the number of the score of each."""

    def __init__(self, runs: Ints, groups: Ints, n_groups: int) -> None:
        self.n = np.bincount(groups, minlength=n_groups)
        self.there = np.flatnonzero(self.n)
        self._runs = runs[np.argsort(groups, kind="stable")]
        self._starts = (np.cumsum(self.n) - self.n)[self.there]

    def of(self, place: int, n_runs: int) -> Ints:
        """Return how many rows of the group that is there at a place have each score."""
        start = self._starts[place]
        return np.bincount(self._runs[start : start + self.n[self.there[place]]], minlength=n_runs)

    def add_up(self, by_run: Ints) -> tuple[Ints, BigInts]:
        """Return the sums of a value of scores over the rows of each group that is there, and of its square.

        Values are below 2^31, so that a square is below 2^62; sums of squares that may pass it are added up in halves.
        """
        values = by_run[self._runs]
        squares, total = values * values, np.add.reduceat(values, self._starts)
        if int(by_run.max()) ** 2 * len(values) < 2**63:
            return total, np.add.reduceat(squares, self._starts).astype(object)
        halves = (np.add.reduceat(half, self._starts) for half in (squares >> _HALF_BITS, squares & _LOW_HALF))
        return total, _join(*halves)


def count_crosses(scores: Floats, positive: np.ndarray, groups: Ints, n_groups: int) -> CrossCounts:
    """Count the pairs of the rows of one range.

    Parameters
    ----------
    scores : float64 array, shape (n,)
        Ascending. Less than 2^30.
    positive : bool array, shape (n,)
    groups : int array, shape (n,)
        The number of each row's group, below `n_groups`.
    """
    runs = number_runs(scores)
    n_runs = int(runs[-1]) + 1
    high, low = (_Rows(runs[own], groups[own], n_groups) for own in (positive, ~positive))
    pairs, of_low, of_high = (np.zeros((n_groups, n_groups), kind) for kind in (np.int64, object, object))
    if high.there.size and low.there.size:
        for place, group in enumerate(low.there):
            below = double_below(low.of(place, n_runs))
            pairs[high.there, group], of_high[high.there, group] = high.add_up(below)
        for place, group in enumerate(high.there):
            above = double_below(high.of(place, n_runs)[::-1])[::-1]
            _, of_low[group, low.there] = low.add_up(above)
    return CrossCounts(high.n, low.n, pairs, of_low, of_high)


def combine_crosses(ranges: Sequence[CrossCounts]) -> CrossCounts:
    """Return the counts over the whole score line, as Python integers.

    Parameters
    ----------
    ranges
        By ascending score. A positive of one range is above all negatives of the lower ones.
    """
    size = len(ranges[0].n_positive)
    below, n_positive = np.zeros(size, object), np.zeros(size, object)
    above = sum((counts.n_positive.astype(object) for counts in ranges), np.zeros(size, object))
    pairs, of_low, of_high = (np.zeros((size, size), object) for _ in range(3))
    for counts in ranges:
        high, low = counts.n_positive.astype(object), counts.n_negative.astype(object)
        inside = counts.ordered_doubled.astype(object)
        above = above - high
        # A placement within the range, and the rows below it or above: (d + 2b)² = d² + 4bd + 4b².
        of_high += counts.high_square_sum + 4 * inside * below + 4 * np.outer(high, below * below)
        of_low += counts.low_square_sum + 4 * inside * above[:, None] + 4 * np.outer(above * above, low)
        pairs += inside + 2 * np.outer(high, below)
        n_positive += high
        below += low
    return CrossCounts(n_positive, below, pairs, of_low, of_high)
