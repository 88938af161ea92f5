"""Reference sets, among which rows are placed, and the rank offsets of a score range in them. numpy only.

The sets are the negatives and positives among every known population, and among every identity's members and unknown
rows. Everything else follows by subtraction: the background of an identity is its known population less its members and
unknowns, and the same holds for row counts, placements and sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, NamedTuple

import numpy as np

from biasspark.arrays import Flags, Floats, Ints
from biasspark.ranking.kernels.sorted_runs import find_starts, split_by_code

MEMBER, UNKNOWN = 0, 1


@dataclass(frozen=True)
class ReferenceSets:
    """The reference sets of some identities, numbered.

    `identities` are numbers in the encoding, ascending; everywhere else an identity is given by its index here. `masks`
    are the distinct sets of sources, as bits, of which one must be known for a row to be in a known population; 0
    stands for all rows. `mask_of` is the index of the mask of every identity.
    """

    identities: tuple[int, ...]
    masks: tuple[int, ...]
    mask_of: tuple[int, ...]

    @staticmethod
    def of(known_masks: Sequence[int], identities: Iterable[int]) -> ReferenceSets:
        """Return the reference sets of some identities, given the mask of every identity by number."""
        chosen = tuple(identities)
        masks = tuple(dict.fromkeys(known_masks[number] for number in chosen))
        return ReferenceSets(chosen, masks, tuple(masks.index(known_masks[number]) for number in chosen))

    @property
    def size(self) -> int:
        """How many sets there are."""
        return 2 * len(self.masks) + 4 * len(self.identities)

    def entry(self, index: int, state: int, label: int) -> int:
        """Return the number of the set of members or unknowns of an identity."""
        return 2 * len(self.masks) + 4 * index + 2 * state + label

    def four_cells(self, index: int, of_set: Callable[[int], Any]) -> list[Any]:
        """Return an additive quantity of the four cells of an identity, given that quantity of each set."""
        members = [of_set(self.entry(index, MEMBER, label)) for label in (0, 1)]
        unknowns = [of_set(self.entry(index, UNKNOWN, label)) for label in (0, 1)]
        known = 2 * self.mask_of[index]
        return [*members, *(of_set(known + n) - members[n] - unknowns[n] for n in (0, 1))]

    def count_cells(self, counts: Ints) -> Ints:
        """Return the rows of the four cells of every identity, shape (4, identities), from the rows of every set."""
        cells = [self.four_cells(index, counts.__getitem__) for index in range(len(self.identities))]
        return np.array(cells, np.int64).reshape(-1, 4).T

    @cached_property
    def _masks_of_sets(self) -> Ints:
        identity_masks = [self.masks[index] for index in self.mask_of]
        return np.repeat(np.array([*self.masks, *identity_masks]), [2] * len(self.masks) + [4] * len(identity_masks))

    def relevant(self, known: int, totals: Ints) -> list[int]:
        """Return the non-empty sets that are relevant to rows on which these sources are known."""
        masks = self._masks_of_sets
        return np.flatnonzero(((masks == 0) | (masks & known > 0)) & (totals > 0)).tolist()

    def covers(self, known: Ints) -> Flags:
        """Return which rows are in any known population, given their known sources."""
        return reduce(np.logical_or, (is_known(known, mask) for mask in self.masks), np.zeros(len(known), bool))

    def select(self, identity: Ints) -> tuple[Flags, Ints]:
        """Return which of the given identities are in these sets, and the indices of those that are."""
        indices = np.searchsorted(self.identities, identity)
        chosen = np.append(self.identities, -1)[indices] == identity
        return chosen, indices[chosen]

    def members(self, known: Ints, label: Ints, rows: Ints, entries: Ints) -> list[Ints]:
        """Return the rows of every set.

        `known` and `label` are the sources that are known on each row, and its label; `rows` and `entries` the row of
        each entry, and twice the index of its identity, + 1 for unknown membership.
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
    """The rank offsets of a range: how many rows of every reference set lie in lower ranges, and in all ranges.

    Both are sums over rows. So each task counts its rows for every range, including ranges in which it has none, and
    sends the counts along with the rows.
    """

    below: Ints
    total: Ints

    @staticmethod
    def add_up(tasks: Iterable[RankOffsets]) -> RankOffsets:
        """Return the offsets of a range, given those of all tasks."""
        return RankOffsets(*(np.asarray(np.sum(n, axis=0, dtype=np.int64)) for n in zip(*tasks, strict=True)))


def count_by_range(sets: Iterable[Ints], ranges: Ints, n_ranges: int) -> Ints:
    """Return how many rows of every set are in each range, shape (ranges, sets), given the range of each row."""
    return np.stack([np.bincount(ranges[rows], minlength=n_ranges) for rows in sets], axis=1)


def place_rows(scores: Floats | Ints, positive: Flags, sets: Sequence[Flags], offsets: RankOffsets) -> Ints:
    """Return for each set and row twice the rows of the other label it is correctly ordered with, plus ties.

    A positive is correctly ordered with the negatives below it, a negative with the positives above it. `scores`, or
    their indices, are of all rows of a range, ascending; `sets` say which rows are in each set; `offsets` are those of
    the negatives of each set, then of the positives of each. The result has the shape (sets, n).
    """
    first = find_starts(scores)
    ends = np.append(first, len(scores))
    index = np.repeat(np.arange(len(first)), np.diff(ends))
    sides = [np.flatnonzero(positive == label) for label in (False, True)]
    index_of = [index[rows] for rows in sides]
    placed = np.empty((len(sets), len(scores)), np.int64)
    for number, inside in enumerate(sets):
        # The rows of the set below each distinct score and below the next one add up to the doubled placement.
        negatives, positives = (np.append(0, np.cumsum(inside & (positive == label)))[ends] for label in (False, True))
        above_negatives = negatives[:-1] + negatives[1:] + 2 * offsets.below[number]
        n_to_here = offsets.below[len(sets) + number]
        below_positives = 2 * (offsets.total[len(sets) + number] - n_to_here) - positives[:-1] - positives[1:]
        placed[number, sides[0]] = below_positives[index_of[0]]
        placed[number, sides[1]] = above_negatives[index_of[1]]
    return placed
