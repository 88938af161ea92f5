"""Reference sets: the rows among which rows are placed, and where a score range stands among them. numpy only.

There are negatives and positives of every known population, and of every identity its members and the rows on which it
is unknown. All else follows: the background of an identity is its known population less its members and unknowns, and
so are rows, placements and sums among it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, NamedTuple

import numpy as np

from biasspark.arrays import Flags, Ints
from biasspark.ranking.kernels.codec import narrow, pack, unpack
from biasspark.ranking.kernels.sorted_runs import split_by_code

MEMBER, UNKNOWN = 0, 1


@dataclass(frozen=True)
class ReferenceSets:
    """The reference sets of some identities, numbered.

    Attributes
    ----------
    identities
        Their numbers in the encoding, ascending. Everything else knows an identity by its index here.
    masks
        The bits of the sources one of which must be known for a row to be in a known population, each set once; 0
        stands for all rows.
    mask_of
        For every identity the index of its mask.
    """

    identities: tuple[int, ...]
    masks: tuple[int, ...]
    mask_of: tuple[int, ...]

    @staticmethod
    def of(base_masks: Sequence[int], identities: Iterable[int]) -> ReferenceSets:
        """Return the reference sets of some identities, given the mask of every identity by number."""
        chosen = tuple(identities)
        masks = tuple(dict.fromkeys(base_masks[number] for number in chosen))
        return ReferenceSets(chosen, masks, tuple(masks.index(base_masks[number]) for number in chosen))

    @property
    def size(self) -> int:
        """How many sets there are."""
        return 2 * len(self.masks) + 4 * len(self.identities)

    def known(self, index: int, label: int) -> int:
        """Return the number of the known population of an identity."""
        return 2 * self.mask_of[index] + label

    def entry(self, index: int, state: int, label: int) -> int:
        """Return the number of the set of members or unknowns of an identity."""
        return 2 * len(self.masks) + 4 * index + 2 * state + label

    def four_cells(self, index: int, of_set: Callable[[int], Any]) -> list[Any]:
        """Return what the four cells of an identity have of something that adds up, given what each set has of it."""
        members = [of_set(self.entry(index, MEMBER, label)) for label in (0, 1)]
        unknowns = [of_set(self.entry(index, UNKNOWN, label)) for label in (0, 1)]
        return [*members, *(of_set(self.known(index, n)) - members[n] - unknowns[n] for n in (0, 1))]

    def count_cells(self, counts: Ints) -> Ints:
        """Return the rows of the four cells of every identity, shape (4, identities), from those of every set."""
        cells = [self.four_cells(index, counts.__getitem__) for index in range(len(self.identities))]
        return np.array(cells, np.int64).reshape(-1, 4).T

    @cached_property
    def _masks_of_sets(self) -> Ints:
        of_identities = [self.masks[index] for index in self.mask_of]
        return np.repeat(np.array([*self.masks, *of_identities]), [2] * len(self.masks) + [4] * len(of_identities))

    def relevant(self, known: int, totals: Ints) -> list[int]:
        """Return the non-empty sets among which rows matter on which these sources are known."""
        masks = self._masks_of_sets
        return np.flatnonzero(((masks == 0) | (masks & known > 0)) & (totals > 0)).tolist()

    def covers(self, known: Ints) -> Flags:
        """Return which rows are in any known population, given the sources that are known on them."""
        return reduce(np.logical_or, (is_known(known, mask) for mask in self.masks), np.zeros(len(known), bool))

    def select(self, identity: Ints) -> tuple[Flags, Ints]:
        """Return which of some identities are among these, and the indices of those."""
        indices = np.searchsorted(self.identities, identity)
        chosen = np.append(self.identities, -1)[indices] == identity
        return chosen, indices[chosen]

    def members(self, known: Ints, label: Ints, rows: Ints, entries: Ints) -> list[Ints]:
        """Return the rows of every set.

        Parameters
        ----------
        known, label : int64 arrays, shape (n,)
            The sources that are known on each row, and its label.
        rows, entries : int64 arrays, shape (e,)
            The row of each entry, and twice the index of its identity, + 1 where that is unknown.
        """
        populations = [
            np.flatnonzero(is_known(known, mask) & (label == value)) for mask in self.masks for value in (0, 1)
        ]
        numbers = 2 * entries + label[rows]
        return populations + [rows[inside] for inside in split_by_code(numbers, 4 * len(self.identities))]


def is_known(known: Ints, mask: int) -> Flags:
    """Return the rows on which a source of the mask is known; 0 stands for all rows."""
    return known & mask > 0 if mask else np.ones(len(known), bool)


class RankOffsets(NamedTuple):
    """Where the rows of a range stand: how many rows of every reference set lie in lower ranges, and in all ranges.

    Both are sums over rows, so each task counts its rows for every range, also for those in which it has none, and
    sends the counts along with the rows.
    """

    below: Ints
    total: Ints

    @staticmethod
    def encode(counts: Ints) -> Iterator[bytes]:
        """Give the offsets of every range as bytes, from the rows of a task, shape (ranges, sets); none of no rows."""
        total = narrow(counts.sum(axis=0))
        return (pack([narrow(below), total]) for below in counts.cumsum(axis=0) - counts if total.any())

    @staticmethod
    def add_up(tasks: Iterable[bytes | memoryview]) -> RankOffsets:
        """Return the offsets of a range from those that all tasks have encoded."""
        below, total = zip(*map(unpack, tasks), strict=True)
        return RankOffsets(*(np.asarray(np.sum(counts, axis=0, dtype=np.int64)) for counts in (below, total)))


def count_by_range(sets: Iterable[Ints], ranges: Ints, n_ranges: int) -> Ints:
    """Return how many rows of every set are in each range, shape (ranges, sets), from the rows of sets.

    `ranges` is the range of each row.
    """
    return np.stack([np.bincount(ranges[rows], minlength=n_ranges) for rows in sets], axis=1)
