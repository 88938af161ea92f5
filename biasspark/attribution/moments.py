"""Exact sums of fractions and of wide integers, in int64: the same bits in any order. numpy only.

A value is a fixed-point number, high/2^25 + low/2^57, with integers up to 2^31, so that its square is made of products
that fit 62 bits. Each product is cut into two *limbs* of 31 bits. Limbs of up to 2^31 rows add up in int64, and Python
joins the sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from biasspark.arrays import Floats, Ints
from biasspark.attribution.significance import Moments

LARGEST_BITS = 6
"""Values lie within ±2^6: an attribution within ±1/2, a cross-entropy of clipped scores below 35."""

N_LIMBS = 8
"""Of the moments of a value."""

_HIGH_BITS, _LOW_BITS = 25, 57
_STEP = _LOW_BITS - _HIGH_BITS
_LIMB_BITS = 31


def cut_limbs(values: Ints) -> tuple[Ints, Ints]:
    """Return the high and the low limb of integers within ±2^63."""
    return values >> _LIMB_BITS, values & (1 << _LIMB_BITS) - 1


def join_limbs(high: int, low: int) -> int:
    """Return the sum of integers from the sums of their limbs."""
    return (int(high) << _LIMB_BITS) + int(low)


def cut_moments(values: Floats) -> Ints:
    """Return the limbs of values within ±64, and of their squares, int64, shape (8, n).

    Each value counts as the nearest multiple of 2^-57, which from 1/16 on is the value itself.
    """
    limbs = np.empty((N_LIMBS, len(values)), np.int64)
    high, low = limbs[:2]
    # In place: half of the time would go into fresh memory.
    scaled = np.rint(values * 2.0**_HIGH_BITS)
    high[:] = scaled
    np.subtract(values, np.multiply(scaled, 0.5**_HIGH_BITS, out=scaled), out=scaled)
    low[:] = np.rint(np.multiply(scaled, 2.0**_LOW_BITS, out=scaled), out=scaled)
    for first, second, of_product in ((high, high, limbs[2:4]), (high, low, limbs[4:6]), (low, low, limbs[6:8])):
        product = np.multiply(first, second, out=of_product[0])
        np.bitwise_and(product, (1 << _LIMB_BITS) - 1, out=of_product[1])
        np.right_shift(product, _LIMB_BITS, out=product)
    return limbs


def read_moments(sums: Sequence[int] | Ints, n: int) -> Moments:
    """Return the moments of some rows from the sums of their limbs and their number."""
    high, low, *limbs = map(int, sums)
    high_squares, products, low_squares = (join_limbs(*limbs[k : k + 2]) for k in (0, 2, 4))
    total = (high << _STEP) + low
    squares = (high_squares << 2 * _STEP) + (products << _STEP + 1) + low_squares
    return Moments(int(n), Fraction(total, 1 << _LOW_BITS), Fraction(squares, 1 << 2 * _LOW_BITS))
