"""U statistics without one group of rows after another, for the jackknife. numpy and pyarrow only.

Of the pairs of two cells those with a group on either side are those with it on the high side, and those with it on the
low side, less those with it on both. So U without the group follows from three placements of every row: among all low
rows, among all high rows, and among the low rows of its own group. Pairs are never formed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from biasspark.arrays import BigInts, Ints
from biasspark.columns import CELL_PAIRS, FOUR_CELLS, GROUP
from biasspark.ranking.blocks import double_below, number_runs
from biasspark.ranking.crowds import MEMBER, UNKNOWN, Crowds, find_crowds
from biasspark.ranking.placements import CELLS_OF_PAIRS
from biasspark.ranking.row_blocks import read_rows


class GroupSums(NamedTuple):
    """Of one range, or of the whole score line; for K identities and G groups.

    Attributes
    ----------
    n
        Rows of every cell in each group, shape (K, 4, G).
    u_doubled
        Twice U of every pair of cells, shape (K, 6).
    touched
        The part of it from pairs with a row of the group on either side, shape (K, 6, G).
    """

    n: Ints | BigInts
    u_doubled: Ints | BigInts
    touched: Ints | BigInts

    def encode(self) -> bytes:
        """Return the sums of a range as bytes."""
        return np.concatenate([part.ravel() for part in self]).tobytes()

    @classmethod
    def decode(cls, data: bytes, n_identities: int, n_groups: int) -> GroupSums:
        """Return the sums that `encode` wrote."""
        shapes = _shapes(n_identities, n_groups)
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
        parts = np.split(np.frombuffer(data, np.int64), ends[:-1])
        return cls(*(part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)))


def sum_groups(blocks: Sequence[bytes], crowds: Crowds, n_groups: int) -> GroupSums:
    """Add up the pairs of one range by the groups of their rows.

    Parameters
    ----------
    blocks : sequence of bytes
        All rows of the range, as `cut_examples` made them, with the column ``jackknife_group``.
    n_groups : int
        Groups are numbered below it.

    Notes
    -----
    Cost: some 250 ns for each row and identity, whatever the number of groups.
    """
    table = read_rows(blocks)
    line = _GroupedLine(table.column("score").to_numpy(), table.column(GROUP).to_numpy(), n_groups)
    members = find_crowds(table, crowds)
    sums = _no_sums(len(crowds.identities), n_groups, np.int64)
    bases = [line.count(members[crowd]) for crowd in range(crowds.n_base_crowds)]
    for place in range(len(crowds.identities)):
        inside, unknown = (
            [line.count(members[crowds.entry(place, state, label)]) for label in (0, 1)] for state in (MEMBER, UNKNOWN)
        )
        cells = [*inside, *(bases[crowds.base(place, label)] - inside[label] - unknown[label] for label in (0, 1))]
        sums.n[place] = [line.by_group(cell.by_key) for cell in cells]
        for pair, (low, high) in enumerate(CELLS_OF_PAIRS):
            sums.u_doubled[place, pair], sums.touched[place, pair] = line.touch(cells[low], cells[high])
    return sums


def combine_groups(ranges: Sequence[GroupSums], n_identities: int, n_groups: int) -> GroupSums:
    """Return the sums over the whole score line.

    Parameters
    ----------
    ranges
        By ascending score: a high row of one range is above all low rows of the lower ones.

    Notes
    -----
    In 64 bits while there are fewer than 2^31 rows, else in Python integers.
    """
    n_rows = sum(int(sums.n.sum(axis=2).max(initial=0)) for sums in ranges)
    total = _no_sums(n_identities, n_groups, np.int64 if 4 * n_rows < 1 << 31 else object)
    lows, highs = ([pair[side] for pair in CELLS_OF_PAIRS] for side in range(2))
    for sums in ranges:
        low: NDArray[Any] = total.n[:, lows]
        high: NDArray[Any] = sums.n[:, highs].astype(total.n.dtype)
        every_low, every_high = low.sum(axis=2), high.sum(axis=2)
        total.u_doubled[:] += sums.u_doubled + 2 * every_low * every_high
        across = high * every_low[:, :, None] + low * every_high[:, :, None] - high * low
        total.touched[:] += sums.touched + 2 * across
        total.n[:] += sums.n
    return total


class _Counts(NamedTuple):
    """How many rows of a cell have each run, and each key, of a `_GroupedLine`."""

    by_run: Ints
    by_key: Ints

    def __sub__(self, other: _Counts) -> _Counts:
        return _Counts(self.by_run - other.by_run, self.by_key - other.by_key)


class _GroupedLine:
    """Rows ascending by score: each has a run of equal scores, and a key for its run within its group."""

    def __init__(self, scores: np.ndarray, groups: np.ndarray, n_groups: int) -> None:
        run = number_runs(scores)
        self._n_runs, self._n_groups = int(run[-1]) + 1, n_groups
        keys, self._key = np.unique(groups.astype(np.int64) * self._n_runs + run, return_inverse=True)
        self._run, self._group, self._run_of_key = run, keys // self._n_runs, keys % self._n_runs
        self._starts = np.searchsorted(self._group, np.arange(n_groups))

    def count(self, rows: Ints) -> _Counts:
        """Count rows."""
        by_run = np.bincount(self._run[rows], minlength=self._n_runs)
        return _Counts(by_run, np.bincount(self._key[rows], minlength=len(self._group)))

    def by_group(self, of_key: Ints) -> Ints:
        """Add up whole numbers of keys by group: doubles hold them exactly, as the sums of a range are below 2^53."""
        return np.bincount(self._group, of_key, self._n_groups).astype(np.int64)

    def touch(self, low: _Counts, high: _Counts) -> tuple[int, Ints]:
        """Return twice U of two cells, and the part of it with a row of each group on either side."""
        below = double_below(low.by_run)
        above = 2 * high.by_run.sum() - double_below(high.by_run)
        within = np.r_[0, np.cumsum(low.by_key)]
        own_below = within[1:] + within[:-1] - 2 * within[self._starts][self._group]
        as_high = self.by_group(high.by_key * below[self._run_of_key])
        as_low = self.by_group(low.by_key * above[self._run_of_key])
        return int(as_high.sum()), as_high + as_low - self.by_group(high.by_key * own_below)


def _shapes(n_identities: int, n_groups: int) -> tuple[tuple[int, ...], ...]:
    k, pairs = n_identities, len(CELL_PAIRS)
    return (k, len(FOUR_CELLS), n_groups), (k, pairs), (k, pairs, n_groups)


def _no_sums(n_identities: int, n_groups: int, kind: type[Any]) -> GroupSums:
    return GroupSums(*(np.zeros(shape, kind) for shape in _shapes(n_identities, n_groups)))
