"""The place of a value among ordered ones, as an expression: a binary search written out."""

from __future__ import annotations

from collections.abc import Sequence

import pyspark.sql.functions as F
from pyspark.sql import Column


def count_up_to(value: Column, ordered: Sequence[str] | Sequence[float]) -> Column:
    """Return how many of the ascending values are not above a value, which is not NULL.

    Texts are compared by code points, as Python orders them, and NaN is above all numbers.
    """
    return _search(value, ordered, 0, len(ordered))


def _search(value: Column, ordered: Sequence[str] | Sequence[float], low: int, high: int) -> Column:
    if low == high:
        return F.lit(low)
    middle = (low + high) // 2
    left, right = _search(value, ordered, low, middle), _search(value, ordered, middle + 1, high)
    return F.when(value < F.lit(ordered[middle]), left).otherwise(right)
