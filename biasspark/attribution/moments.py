"""Exact sums in Spark, also of fractions: the same bits under any partitioning, without decimals for every row.

A value is held as fixed point, high/2^25 + low/2^57, with whole numbers up to 2^31, so that its square, too, is made of
products that a BIGINT holds. Every product is added up in two halves, and Python puts the sums together.
"""

from __future__ import annotations

from decimal import Decimal

import pyspark.sql.functions as F
from pyspark.sql import Column, Row

from biasspark.attribution.significance import EXACT, Moments

LARGEST_BITS = 6
"""Values lie within ±2^6: an attribution within ±1/2, a cross-entropy of clipped scores below 35."""

_HIGH_BITS, _LOW_BITS = 25, 57
_STEP = _LOW_BITS - _HIGH_BITS
_HALF_BITS = 31


def sum_whole(whole: Column, name: str) -> list[Column]:
    """Return the sums to aggregate for `read_whole`: of whole numbers within ±2^62, in groups of up to 2^31 rows."""
    high, low = F.shiftright(whole, _HALF_BITS), whole.bitwiseAND(F.lit(2**_HALF_BITS - 1))
    return [F.sum(high).alias(f"{name}_high"), F.sum(low).alias(f"{name}_low")]


def read_whole(row: Row, name: str) -> int:
    """Return a total from the sums of `sum_whole`; 0 where they are NULL, as without rows."""
    return ((row[f"{name}_high"] or 0) << _HALF_BITS) + (row[f"{name}_low"] or 0)


def sum_moments(value: Column, name: str) -> list[Column]:
    """Return the sums to aggregate for `read_moments`.

    Parameters
    ----------
    value : Column of DOUBLE
        Never NULL, within ±64. It counts as the nearest multiple of 2^-57, which from 1/16 on is the value itself.
    name : str
        How the columns' names begin.

    Notes
    -----
    Ten sums of BIGINT.
    """
    high = F.rint(value * F.lit(2.0**_HIGH_BITS))
    low = F.rint((value - high * F.lit(0.5**_HIGH_BITS)) * F.lit(2.0**_LOW_BITS)).cast("bigint")
    high = high.cast("bigint")
    products = {"high": high, "low": low, "high_high": high * high, "high_low": high * low, "low_low": low * low}
    return [half for part, product in products.items() for half in sum_whole(product, f"{name}_{part}")]


def read_moments(row: Row, name: str, n: int) -> Moments:
    """Return the moments of a group's values from the sums of `sum_moments` and the number of its rows."""
    high, low = read_whole(row, f"{name}_high"), read_whole(row, f"{name}_low")
    parts = [read_whole(row, f"{name}_{part}") for part in ("high_high", "high_low", "low_low")]
    total = (high << _STEP) + low
    squares = (parts[0] << 2 * _STEP) + (parts[1] << _STEP + 1) + parts[2]
    return Moments(n, _fixed_point(total, _LOW_BITS), _fixed_point(squares, 2 * _LOW_BITS))


def _fixed_point(whole: int, bits: int) -> Decimal:
    """Return whole / 2^bits, which is a finite decimal."""
    return EXACT.divide(Decimal(whole), Decimal(2**bits))
