"""Rightly ordered pairs of every cross of groups: positives of one, negatives of another. numpy only.

For each group of negatives, a positive's placement among them is a running count over the distinct scores, and the
placements are added up by the positives' groups. So K groups cost K passes over the scores of a range, where pairs
would cost their number, and crosses of single groups K² passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from biasspark.arrays import BigInts, Floats, Ints
from biasspark.ranking.blocks import double_below, number_runs


class CrossCounts(NamedTuple):
    """Of one range, or of the whole score line.

    Attributes
    ----------
    n_positive, n_negative
        Rows of each group, shape (k,).
    ordered_doubled
        Shape (k, k): for positives of one group and negatives of another, twice the rightly ordered pairs plus ties.
    """

    n_positive: Ints | BigInts
    n_negative: Ints | BigInts
    ordered_doubled: Ints | BigInts

    def encode(self) -> bytes:
        """Return the counts of a range as bytes."""
        return np.concatenate([self.n_positive, self.n_negative, self.ordered_doubled.ravel()]).tobytes()

    @staticmethod
    def decode(data: bytes, n_groups: int) -> CrossCounts:
        """Return the counts that `encode` wrote."""
        n_positive, n_negative, pairs = np.split(np.frombuffer(data, np.int64), [n_groups, 2 * n_groups])
        return CrossCounts(n_positive, n_negative, pairs.reshape(n_groups, n_groups))


def count_crosses(scores: Floats, positive: np.ndarray, groups: Ints, n_groups: int) -> CrossCounts:
    """Count the pairs of the rows of one range.

    Parameters
    ----------
    scores : float64 array, shape (n,)
        Ascending.
    positive : bool array, shape (n,)
    groups : int array, shape (n,)
        The number of each row's group, below `n_groups`.
    """
    run = number_runs(scores)
    high, high_group = run[positive], groups[positive]
    low, low_group = run[~positive], groups[~positive]
    n_negative = np.bincount(low_group, minlength=n_groups)
    pairs = np.zeros((n_groups, n_groups), np.int64)
    for group in np.flatnonzero(n_negative):
        at = np.bincount(low[low_group == group], minlength=run[-1] + 1)
        placements = double_below(at)[high]
        # Sums of a range stay below 2^53, so doubles hold them exactly.
        pairs[:, group] = np.bincount(high_group, placements, n_groups)
    return CrossCounts(np.bincount(high_group, minlength=n_groups), n_negative, pairs)


def combine_crosses(ranges: Sequence[CrossCounts]) -> CrossCounts:
    """Return the counts over the whole score line, as Python integers.

    Parameters
    ----------
    ranges
        By ascending score. A positive of one range is above all negatives of the lower ones.
    """
    size = len(ranges[0].n_positive)
    below, n_positive = np.zeros(size, object), np.zeros(size, object)
    pairs = np.zeros((size, size), object)
    for counts in ranges:
        high = counts.n_positive.astype(object)
        pairs += counts.ordered_doubled + 2 * np.outer(high, below)
        n_positive += high
        below += counts.n_negative
    return CrossCounts(n_positive, below, pairs)
