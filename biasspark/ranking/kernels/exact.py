"""Exact sums of products, also beyond 64 bits. numpy only."""

from __future__ import annotations

from math import prod

import numpy as np

from biasspark.arrays import BigInts, Ints

_LIMB_BITS = 31
_LIMB_MASK = (1 << _LIMB_BITS) - 1
_LARGEST = 2**63 - 1


def sum_products(first: Ints, second: Ints, starts: Ints, *, wide: bool) -> BigInts:
    """Return the sum of the products of each run of entries, as Python integers. Factors lie within ±2^62.

    `starts` says where each run begins; the first is 0, and none is empty. If a sum may exceed 63 bits, it is `wide`:
    factors and the products of their limbs are split into limbs of 31 bits, whose sums over fewer than 2^32 entries fit
    63 bits. Narrow sums are eight times as fast.
    """
    if not wide:
        return np.add.reduceat(first * second, starts).astype(object)
    sums = np.zeros(len(starts), object)
    for i, a in enumerate(_split_limbs(first)):
        for j, b in enumerate(_split_limbs(second)):
            for k, limb in enumerate(_split_limbs(a * b)):
                sums += np.add.reduceat(limb, starts).astype(object) << _LIMB_BITS * (i + j + k)
    return sums


def dot(first: Ints, second: Ints) -> int:
    """Return the sum of the products of two arrays with entries within ±2^62."""
    largest = prod(max(int(values.max(initial=0)), -int(values.min(initial=0))) for values in (first, second))
    if largest * len(first) <= _LARGEST:
        return int(np.dot(first, second))
    # Sums of some entries at a time fit 63 bits, unless a product does not.
    starts = np.arange(0, len(first), _LARGEST // largest or len(first))
    return int(sum_products(first, second, starts, wide=largest > _LARGEST).sum())


def _split_limbs(values: Ints) -> tuple[Ints, Ints]:
    return values & _LIMB_MASK, values >> _LIMB_BITS
