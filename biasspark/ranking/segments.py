"""Sums over runs of an array, exact beyond 64 bits. numpy only."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from biasspark.arrays import BigInts, Ints

_LIMB = 31
_LOW = (1 << _LIMB) - 1


class Segments:
    """Consecutive runs of entries of equally long arrays, none of them empty.

    Parameters
    ----------
    starts : int64 array, shape (s,)
        Where each run begins; the first is 0.
    size : int
        Length of the arrays.
    wide : bool
        Whether a sum of products may pass 63 bits. Exact either way; narrow sums are eight times as fast.
    """

    def __init__(self, starts: Ints, size: int, *, wide: bool) -> None:
        self.starts, self.size, self.wide = starts, size, wide
        self.lengths = np.diff(np.append(starts, size))

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """Repeat the value of each run for each of its entries."""
        return np.repeat(values, self.lengths)

    def total(self, values: Ints) -> Ints:
        """Sum of each run."""
        sums: Ints = np.add.reduceat(values, self.starts)
        return sums

    def before(self, values: Ints) -> Ints:
        """Sum of the entries of the same run before each entry."""
        running = np.cumsum(values) - values
        first: Ints = self.spread(running[self.starts])
        return running - first

    def onwards(self, values: Ints) -> Ints:
        """Sum of the entries of the same run from each entry on."""
        return self.spread(self.total(values)) - self.before(values)

    def previous(self, values: Ints) -> Ints:
        """Value of the entry before, 0 at the start of a run."""
        shifted = np.roll(values, 1)
        shifted[self.starts] = 0
        return shifted

    def following(self, values: Ints, last: Ints) -> Ints:
        """Value of the entry after; at the end of a run, the entry of `last` there."""
        shifted = np.roll(values, -1)
        ends = self.starts + self.lengths - 1
        shifted[ends] = last[ends]
        return shifted

    def dot(self, first: Ints, second: Ints) -> BigInts:
        """Sum of products of each run, as Python integers.

        Both factors lie in [0, 2^62). Where `wide`, they are cut into limbs of 31 bits, and so are the products of
        limbs, whose sums over fewer than 2^32 entries fit 63 bits.
        """
        if not self.wide:
            return self.total(first * second).astype(object)
        sums = np.zeros(len(self.starts), object)
        for i, a in enumerate(_limbs(first)):
            for j, b in enumerate(_limbs(second)):
                for k, part in enumerate(_limbs(a * b)):
                    sums += self.total(part).astype(object) << _LIMB * (i + j + k)
        return sums


def _limbs(values: Ints) -> tuple[Ints, Ints]:
    return values & _LOW, values >> _LIMB
