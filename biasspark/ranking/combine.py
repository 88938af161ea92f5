"""From the sums of single ranges to those of the whole score line. numpy only.

A row of range r is also above all rows of lower ranges and below all of higher ones. With a the rows of the low cell
in lower ranges, a high row's doubled placement grows by 2a; with b the rows of the high cell in higher ranges, a low
row's grows by 2b. So pairs across ranges cost one product per range and identity.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from biasspark.arrays import BigInts
from biasspark.ranking.placements import CELLS_OF_PAIRS, PairSums, RangeSums

_LIMB = 62
_LOW = (1 << _LIMB) - 1


def combine_ranges(ranges: Sequence[RangeSums]) -> RangeSums:
    """Return the sums over the whole score line.

    Parameters
    ----------
    ranges : sequence of RangeSums
        By ascending score; ranges without any row may be missing.
    """
    counts = [np.stack(column) for column in zip(*(one.cells for one in ranges), strict=True)]  # (ranges, identities)
    below = [np.cumsum(column, axis=0) - column for column in counts]
    above = [column.sum(axis=0) - lower - column for column, lower in zip(counts, below, strict=True)]
    pairs = []
    for place, (low, high) in enumerate(CELLS_OF_PAIRS):
        u, low_square_sum, high_square_sum = (
            np.stack(column) for column in zip(*(r.pairs[place] for r in ranges), strict=True)
        )
        a, b = below[low], above[high]
        pairs.append(
            PairSums(
                (u + 2 * a * counts[high]).sum(axis=0),
                (low_square_sum + 4 * b * u + 4 * b * b * counts[low]).sum(axis=0),
                (high_square_sum + 4 * a * u + 4 * a * a * counts[high]).sum(axis=0),
            )
        )
    return RangeSums(tuple(column.sum(axis=0) for column in counts), tuple(pairs))


def encode_sums(sums: RangeSums, identities: range) -> bytes:
    """Return the sums of some identities as bytes: an int64 matrix of the low limbs, then one of the high limbs."""
    columns = [*sums.cells, *(column for pair in sums.pairs for column in pair)]
    matrix: BigInts = np.stack([column[identities.start : identities.stop] for column in columns])
    return np.stack([matrix & _LOW, matrix >> _LIMB]).astype(np.int64).tobytes()


def decode_sums(data: bytes) -> RangeSums:
    """Return the sums that `encode_sums` wrote."""
    low, high = np.frombuffer(data, np.int64).reshape(2, 4 + 3 * len(CELLS_OF_PAIRS), -1).astype(object)
    matrix = low + (high << _LIMB)
    pairs = (PairSums(*matrix[place : place + 3]) for place in range(4, len(matrix), 3))
    return RangeSums(tuple(matrix[:4]), tuple(pairs))
