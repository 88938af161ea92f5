"""Random trials of the pinned AUC and of the class-skew experiment, within one range of the score line. numpy only.

The rows of a set are numbered in order of (score, label) over the whole score line, and a trial draws a subset of these
positions. Rows with the same score and label are interchangeable, so the result does not depend on the physical order
of rows. Rank offsets give the position at which a range begins. The cost of a trial is the rows drawn, and never more
than the distinct scores of the range.

A trial of the pinned AUC pools equally many rows of the subgroup and of a background, and takes the AUC of the pool
(Mitigating; Pinned). One of the two sets is taken whole, so only the other is sampled. A trial of the class-skew
experiment keeps a random part of one cell (Pinned). Dropping rows does not change the order of scores, so it needs no
new ranking: U over the kept rows is a sum of their placements among all rows.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from biasspark.arrays import BigInts, Ints
from biasspark.ranking.kernels.blocks import Block, merge_cells
from biasspark.ranking.kernels.placements import known_cells, merge_entries
from biasspark.ranking.kernels.reference_sets import ReferenceSets
from biasspark.ranking.kernels.sorted_runs import Segments, doubled_placement, find_starts, place_runs
from biasspark.ranking.kernels.subsets import Subset, draw_runs

ALL_KNOWN, BACKGROUND, SUBGROUP = 0, 1, 2
"""The set that is drawn from."""

BATCH_ROWS = 1 << 18
"""The most drawn rows that are measured in one batch of trials: a numpy call costs more than a few rows."""

KeptRows: TypeAlias = tuple[int, Sequence[tuple[int, int]]]
"""The number of rows of the cell that each trial of the class-skew experiment drops, and for each trial twice U (2 x
pairs with the positive above, + ties) between the rows of the cell that it keeps and all rows of the other label: those
in the subgroup, and those in the background."""


class IdentityScores(NamedTuple):
    """Negatives and positives of an identity at each score of its known population: int64 arrays, shape (scores, 2)."""

    subgroup: Ints
    background: Ints


class RangeScores:
    """The scores of a range, and the rows of each identity at them, from the range's blocks, cut in any way."""

    def __init__(self, cells: Sequence[Block], memberships: Sequence[Block], sets: ReferenceSets) -> None:
        runs = merge_cells(cells)
        self._sets, self._entries = sets, merge_entries(memberships)
        self._populations = []
        for mask in sets.masks:
            both = known_cells(runs, mask)
            scores = np.union1d(both[0].scores, both[1].scores)
            counts = np.zeros((len(scores), 2), np.int64)
            for label, cell in enumerate(both):
                counts[np.searchsorted(scores, cell.scores), label] = cell.counts
            self._populations.append((scores, counts))

    def identity(self, index: int) -> IdentityScores:
        """Return the rows of an identity."""
        scores, counts = self._populations[self._sets.mask_of[index]]
        number = self._sets.identities[index]
        chosen = slice(*np.searchsorted(self._entries.identity, (number, number + 1)))
        at = np.searchsorted(scores, self._entries.scores[chosen])
        subgroup, background = np.zeros_like(counts), counts.copy()
        subgroup[at] = np.stack([members[chosen] for members in self._entries.members], axis=1)
        background[at] -= np.stack([removed[chosen] for removed in self._entries.removed], axis=1)
        return IdentityScores(subgroup, background)


class Draw(NamedTuple):
    """The draws of an identity's trials: `size` of the `total` rows of a set, of which `below` lie in lower ranges.

    The other set is taken whole and has `size` rows.
    """

    source: int
    total: int
    below: int
    size: int


def choose_draw(below: Sequence[int], total: Sequence[int], *, include_subgroup: bool) -> Draw:
    """Choose the set to draw from, given the rows of subgroup and background in lower ranges and in all ranges.

    `include_subgroup` says whether the background that is drawn from includes the subgroup.
    """
    subgroup, background = total
    if include_subgroup:
        return Draw(ALL_KNOWN, subgroup + background, sum(below), subgroup)
    if subgroup <= background:
        return Draw(BACKGROUND, background, below[1], subgroup)
    return Draw(SUBGROUP, subgroup, below[0], background)


def measure_trials(rows: IdentityScores, draw: Draw, subsets: Sequence[Subset]) -> Ints:
    """Draw the part of every trial of an identity that lies in a range, and count it.

    Return the negatives and the positives of each pool in this range, and twice U among them: int64 array, shape
    (3, trials), 0 if there is nothing to draw. U counts pairs within the whole set, within the drawn rows, and across
    both. A pool has at most twice the rows of a range, which has fewer than 2^30 rows of one label
    (`placements.MAX_ROWS_OF_A_LABEL`), so twice U stays below 2^63.
    """
    if draw.size == 0:
        return np.zeros((3, len(subsets)), np.int64)
    subgroup, background = rows
    whole = background if draw.source == SUBGROUP else subgroup
    drawn = (background + subgroup, background, subgroup)[draw.source]
    placed_negatives, placed_positives = (place_runs(counts) for counts in whole.T)
    n_negative, n_positive = whole.sum(axis=0)
    above_positives = 2 * n_positive - placed_positives
    sums = np.repeat([[n_negative], [n_positive], [whole[:, 1] @ placed_negatives]], len(subsets), axis=1)
    running = np.append(0, np.cumsum(drawn))
    for trials, runs, counts in _draw_batches(running, draw.below, subsets):
        first = find_starts(trials, runs >> 1)
        score, label = runs[first] >> 1, runs & 1
        negative, positive = (np.add.reduceat(counts * part, first) for part in (1 - label, label))
        numbers, starts = np.unique(trials[first], return_index=True)
        trial_segments = Segments(starts, len(first), wide=False)
        within = positive * doubled_placement(trial_segments.before(negative), negative)
        across = positive * placed_negatives[score] + negative * above_positives[score]
        sums[:, numbers] += [trial_segments.total(column) for column in (negative, positive, within + across)]
    return sums


def pool_ranges(ranges: Iterable[Ints]) -> list[list[float]]:
    """Return the AUCs over the whole score line of the trials of each identity that have both labels.

    `ranges` are counts of `measure_trials`, by ascending score, shape (identities, 3, trials); at least one.
    """
    negatives = positives = two_u = np.zeros((1, 1), object)  # as Python integers: 2U may pass 63 bits
    for counts in ranges:
        n_negative, n_positive, inside = (counts[:, part].astype(object) for part in range(3))
        two_u = two_u + inside + 2 * negatives * n_positive
        negatives, positives = negatives + n_negative, positives + n_positive
    pairs = 2 * negatives * positives
    return [
        [u / n for u, n in zip(*trials, strict=True) if n]
        for trials in zip(two_u.tolist(), pairs.tolist(), strict=True)
    ]


def mean_and_sd(values: Sequence[float]) -> tuple[float, float]:
    """Return mean and standard deviation (n - 1), each rounded once; NaN without values, or with fewer than two."""
    nan = float("nan")
    return statistics.mean(values) if values else nan, statistics.stdev(values) if len(values) > 1 else nan


def _draw_batches(running: Ints, below: int, subsets: Sequence[Subset]) -> Iterator[tuple[Ints, Ints, Ints]]:
    """Draw the rows of all trials that lie in the range, many trials at a time: trial, run and count of each."""
    held: list[tuple[Ints, Ints, Ints]] = []
    n_held = 0
    for trial, subset in enumerate(subsets):
        runs, counts = draw_runs(running, subset, below)
        held.append((np.full(len(runs), trial), runs, counts))
        n_held += len(runs)
        if n_held >= BATCH_ROWS or (n_held and trial + 1 == len(subsets)):
            trials, every_run, every_count = map(np.concatenate, zip(*held, strict=True))
            yield trials, every_run, every_count
            held, n_held = [], 0


def sum_kept(
    rows: IdentityScores, below: Sequence[int], total: Sequence[int], dropped: int, subsets: Iterable[Subset]
) -> BigInts:
    """Draw the rows of the cell `dropped` that every trial keeps in a range, and place them among the other label.

    Return twice U with the rows of the other label in the subgroup and in the background, as Python integers, shape
    (trials, 2). `rows` are those of the identity in this range, `below` and `total` the sizes of its four cells in
    lower ranges and in all. Within a range, of fewer than 2^30 rows of one label, twice U stays below 2^61.
    """
    background, label = divmod(dropped, 2)
    placed = []
    for side, counts in enumerate(rows):
        opposite = counts[:, 1 - label]
        cell, inside = 2 * side + 1 - label, place_runs(opposite)
        if label:  # a positive is above the negatives below it
            placed.append((inside, 2 * below[cell]))
        else:
            above = total[cell] - below[cell] - int(opposite.sum())
            placed.append((2 * opposite.sum() - inside, 2 * above))
    running = np.append(0, np.cumsum(rows[background][:, label]))

    def sum_trial(subset: Subset) -> list[int]:
        runs, counts = draw_runs(running, subset, below[dropped])
        n_kept = int(counts.sum())
        return [int(counts @ inside[runs]) + n_kept * beyond for inside, beyond in placed]

    return np.array([sum_trial(subset) for subset in subsets], object)
