"""Which of many conditions a row meets, as the bits of one word.

A comparison for every condition and feature would be slow to build, to plan and to compile. So each condition has a
bit, and each bin of each feature the bits of the conditions that allow it. A row meets the conditions whose bits all of
its bins have: one lookup in a constant array for each feature, however many conditions there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import pyspark.sql.functions as F
from pyspark.sql import Column

from biasspark.features import Condition, Feature

MOST_BITS = 63
"""The conditions that share a BIGINT."""


def meet(conditions: Sequence[Condition], features: Sequence[Feature], bins: Sequence[Column]) -> Column:
    """Return a BIGINT whose bit k is set if a row meets the k-th of up to 63 conditions, given its bins, never NULL."""
    restricted = sorted({index for condition in conditions for index in condition})
    words = [look_up(bits_by_bin(conditions, index, features[index].n_bins), bins[index]) for index in restricted]
    return reduce(Column.bitwiseAND, words, F.lit((1 << len(conditions)) - 1).cast("bigint"))


def bits_by_bin(conditions: Sequence[Condition], index: int, n_bins: int) -> list[int]:
    """Return for each bin of a feature the bits of the conditions that allow it."""
    allowed = [0] * n_bins
    for bit, condition in enumerate(conditions):
        for bin_ in condition.get(index, range(n_bins)):
            allowed[bin_] |= 1 << bit
    return allowed


def look_up(numbers: Sequence[int], index: Column) -> Column:
    """Return the number at an index, NULL past the end. One text is a smaller plan than a literal for each number."""
    return F.get(F.split(F.lit(",".join(map(str, numbers))), ",").cast("array<bigint>"), index)
