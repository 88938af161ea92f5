"""Which of many conditions a row meets, as the bits of one word.

A comparison for every condition and feature would be slow to build, to plan and to compile. So each condition has a
bit, and each bin of each feature the bits of the conditions that allow it. What the bits of all of a row's bins have in
common are the conditions that it meets: one lookup in a constant array for each feature, however many there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import pyspark.sql.functions as F
from pyspark.sql import Column

from biasspark.features import Condition, Feature

MOST_BITS = 63
"""So many conditions share a BIGINT."""


def meet(conditions: Sequence[Condition], features: Sequence[Feature], bins: Sequence[Column]) -> Column:
    """Return the BIGINT of which bit k is set where a row meets the k-th of up to 63 conditions.

    Parameters
    ----------
    bins : sequence of Column
        By feature, the bin of a row, never NULL.
    """
    asked = sorted({place for condition in conditions for place in condition})
    words = [look_up(bits_by_bin(conditions, place, features[place].n_bins), bins[place]) for place in asked]
    return reduce(Column.bitwiseAND, words, F.lit((1 << len(conditions)) - 1).cast("bigint"))


def bits_by_bin(conditions: Sequence[Condition], place: int, n_bins: int) -> list[int]:
    """Return for each bin of a feature the bits of the conditions that allow it."""
    allowed = [0] * n_bins
    for bit, condition in enumerate(conditions):
        for bin_ in condition.get(place, range(n_bins)):
            allowed[bin_] |= 1 << bit
    return allowed


def look_up(numbers: Sequence[int], place: Column) -> Column:
    """Return the number at a place, NULL past the end. One text is a smaller plan than a literal for each number."""
    return F.get(F.split(F.lit(",".join(map(str, numbers))), ",").cast("array<bigint>"), place)
