"""Sampled trials of the pinned AUC, within one range of the score line and over all of them (Mitigating; Pinned).

A trial pools equally many rows of the subgroup and of a background, and takes the AUC of the pool. At least one of the
two sets is taken whole, so only the other is drawn. The rows of a set are numbered by their place in the order (score,
label) over the whole score line, and a draw is a subset of places: rows of the same score and label are worth the same,
so nothing depends on how the rows lie. Where the rows of a set stand, range by range, is counted in the ranking.

The set that is drawn from is dense, but it is a base less a few sparse rows, and only what is drawn is looked up. The
cost of a trial is the rows drawn, and never more than the distinct scores of the range. numpy only.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from biasspark.arrays import Ints
from biasspark.config import PinnedAuc
from biasspark.errors import corpus_changed
from biasspark.ranking.blocks import Block, find_starts, merge_cells
from biasspark.ranking.placements import Cell, Points, find_points, merge_base
from biasspark.ranking.segments import Segments
from biasspark.ranking.subsets import Subset, draw_places, stable_number

ALL_KNOWN, BACKGROUND, SUBGROUP = 0, 1, 2
"""The set that is drawn from."""

BATCH_ROWS = 1 << 18
"""Trials are measured together up to so many drawn rows: calls of numpy cost more than few rows."""


class Standings(NamedTuple):
    """Rows of every identity in lower ranges, in this one, and in all: of its subgroup and of its background.

    int64 arrays, shape (2, identities). Without rows in all, no trial is drawn.
    """

    below: Ints
    here: Ints
    total: Ints

    def encode(self) -> bytes:
        """Return the standings as bytes."""
        return np.stack(self).tobytes()

    @staticmethod
    def decode(chunks: Iterable[bytes]) -> Standings:
        """Return the standings that `encode` wrote of consecutive identities."""
        return Standings(*np.concatenate([np.frombuffer(data, np.int64).reshape(3, 2, -1) for data in chunks], axis=2))


class Draw(NamedTuple):
    """What the trials of an identity draw: `size` of the `total` rows of a set, `below` of which lie in lower ranges.

    The other set is taken whole, and has `size` rows.
    """

    source: int
    total: int
    below: int
    size: int


@dataclass(frozen=True)
class Trials:
    """What fixes the draws of a model and slice, by names: a new identity changes no draw of another."""

    pinned: PinnedAuc
    model: str
    slice: str
    identities: tuple[str, ...]

    def choose(self, standings: Standings, number: int) -> Draw:
        """Say which set of an identity is drawn from, and how many rows."""
        subgroup, background = (int(rows) for rows in standings.total[:, number])
        below = [int(rows) for rows in standings.below[:, number]]
        if self.pinned.include_subgroup_in_background:
            return Draw(ALL_KNOWN, subgroup + background, sum(below), subgroup)
        if subgroup <= background:
            return Draw(BACKGROUND, background, below[1], subgroup)
        return Draw(SUBGROUP, subgroup, below[0], background)

    def subsets(self, number: int, draw: Draw) -> Iterator[Subset]:
        """Give the places of each trial of an identity."""
        names = (stable_number(name) for name in (self.model, self.slice, self.identities[number]))
        key = (self.pinned.seed, *names, draw.source)
        return (Subset(draw.total, draw.size, (*key, trial)) for trial in range(self.pinned.trials))


def measure_trials(
    cells: Sequence[Block],
    memberships: Sequence[Block],
    base_masks: Sequence[int],
    standings: Standings,
    trials: Trials,
) -> Iterator[Ints]:
    """Draw the part of every trial that lies in a range, and count it.

    Parameters
    ----------
    cells, memberships : sequences of Block
        The range's part of the corpus, in any order and cut in any way.
    base_masks : sequence of int
        For every identity, the bits of the sources one of which must be known; 0 for all rows.

    Yields
    ------
    int64 array, shape (3, trials)
        For every identity by number, of each trial the negatives and the positives of the pool in this range, and twice
        U among them: 2 x pairs with the positive above, + ties. All 0 where there is nothing to draw.

    Raises
    ------
    InputError
        If the range does not hold the rows that the ranking counted.

    Notes
    -----
    A pool has at most twice the rows of a range, of which there are fewer than 2^30 of one label
    (`placements.MOST_ROWS_OF_A_LABEL`); so twice U stays below 2^63.
    """
    runs = {key: Cell(*run) for key, run in merge_cells(cells).items()}
    bases = {mask: _Base(*merge_base(runs, mask)) for mask in set(base_masks)}
    points = find_points(memberships)
    _refuse_other_rows(points, [bases[mask].rows.size for mask in base_masks], standings, trials.identities)
    ends = np.searchsorted(points.identity, np.arange(len(base_masks) + 1))
    for number, mask in enumerate(base_masks):
        draw = trials.choose(standings, number)
        if draw.size == 0:
            yield np.zeros((3, trials.pinned.trials), np.int64)
            continue
        whole, drawn = bases[mask].split(points, slice(ends[number], ends[number + 1]), draw.source)
        yield _measure_identity(whole, drawn, draw.below, list(trials.subsets(number, draw)))


def pool_ranges(ranges: Iterable[Ints]) -> list[list[float]]:
    """Return the AUCs of the trials of each identity over the whole score line, of those that have both labels.

    Parameters
    ----------
    ranges : iterable of int64 arrays, shape (identities, 3, trials)
        What `measure_trials` counted, by ascending score; at least one.
    """
    negatives = positives = doubled = np.zeros((1, 1), object)  # as Python integers: doubled U may pass 63 bits
    for here in ranges:
        n_negative, n_positive, u_doubled = (here[:, part].astype(object) for part in range(3))
        doubled = doubled + u_doubled + 2 * negatives * n_positive
        negatives, positives = negatives + n_negative, positives + n_positive
    pairs = 2 * negatives * positives
    return [
        [u / of for u, of in zip(*trials, strict=True) if of]
        for trials in zip(doubled.tolist(), pairs.tolist(), strict=True)
    ]


def mean_and_sd(values: Sequence[float]) -> tuple[float | None, float | None]:
    """Return mean and standard deviation (n - 1), each rounded once; None of no value, and of fewer than two."""
    return statistics.mean(values) if values else None, statistics.stdev(values) if len(values) > 1 else None


class _Rows(NamedTuple):
    """Rows in the order (score, label), by element: twice the rank of the score among those of the base, + the label.

    Attributes
    ----------
    elements
        Ascending, unique.
    running
        Rows before each element, and last all.
    """

    elements: Ints
    running: Ints

    @property
    def size(self) -> int:
        return int(self.running[-1])


def _in_order(ranks: Sequence[Ints], counts: Sequence[Ints]) -> _Rows:
    """Bring negatives and positives in one order, elements without rows left out."""
    elements, rows = np.concatenate([2 * ranks[0], 2 * ranks[1] + 1]), np.concatenate(counts)
    order = np.argsort(elements)
    order = order[rows[order] > 0]
    return _Rows(elements[order], np.append(0, np.cumsum(rows[order])))


class _Set:
    """One of the two sets of an identity within a range: dense rows less sparse ones."""

    def __init__(self, rows: _Rows, lacking: _Rows | None = None) -> None:
        self._rows = rows
        self._lacking = _Rows(rows.elements[:0], np.zeros(1, np.int64)) if lacking is None else lacking
        self._holes = np.searchsorted(rows.elements, self._lacking.elements)
        # Of each element the first rows are those that lack. In the places of the set, holes have no width.
        self._hole_starts = rows.running[self._holes] - self._lacking.running[:-1]
        self.size = rows.size - self._lacking.size
        self._largest = int(np.diff(rows.running).max(initial=0))

    def elements_at(self, places: Ints) -> Ints:
        """Return the elements of the rows at some places of the set."""
        inside = places + self._lacking.running[np.searchsorted(self._hole_starts, places, "right")]
        return self._rows.elements[np.searchsorted(self._rows.running, inside, "right") - 1]

    def are_alike(self, a: int, b: int) -> bool:
        """Say whether all places from a to b - 1 are of one element."""
        if b - a > self._largest:
            return False
        first, last = self.elements_at(np.array([a, b - 1]))
        return bool(first == last)

    def pool(self) -> _Pool:
        """Return all rows of the set."""
        counts = np.diff(self._rows.running)
        counts[self._holes] -= np.diff(self._lacking.running)
        return _pool(np.zeros_like(counts), self._rows.elements, counts)


class _Base:
    """All rows of one base within a range."""

    def __init__(self, negative: Cell, positive: Cell) -> None:
        self.scores = np.union1d(negative.scores, positive.scores)
        ranks = [np.searchsorted(self.scores, cell.scores) for cell in (negative, positive)]
        self.rows = _in_order(ranks, [negative.counts, positive.counts])

    def split(self, points: Points, own: slice, source: int) -> tuple[_Pool, _Set]:
        """Return what an identity's trials take whole and what they draw from; `own` says which are its points."""
        ranks = [np.searchsorted(self.scores, points.scores[own])] * 2
        members = _in_order(ranks, [counts[own] for counts in points.members])
        taken = [counts[own] for counts in points.taken]
        if source == ALL_KNOWN:
            unknown = [all_taken - counts[own] for all_taken, counts in zip(taken, points.members, strict=True)]
            return _Set(members).pool(), _Set(self.rows, _in_order(ranks, unknown))
        background = _Set(self.rows, _in_order(ranks, taken))
        return (_Set(members).pool(), background) if source == BACKGROUND else (background.pool(), _Set(members))


class _Pool(NamedTuple):
    """Negatives and positives by trial and rank of the score, ascending."""

    trial: Ints
    rank: Ints
    negative: Ints
    positive: Ints


def _pool(trial: Ints, elements: Ints, counts: Ints) -> _Pool:
    """Add up rows that are in the order (trial, element)."""
    rank, label = elements >> 1, elements & 1
    first = find_starts(trial, rank)
    negative, positive = (np.add.reduceat(counts * part, first) for part in (1 - label, label))
    return _Pool(trial[first], rank[first], negative, positive)


def _measure_identity(whole: _Pool, drawn: _Set, below: int, subsets: Sequence[Subset]) -> Ints:
    sums = np.zeros((3, len(subsets)), np.int64)
    _add_pool(sums[:, :1], whole)
    sums[:] = sums[:, :1]
    for trial, places, counts in _draw_batches(drawn, below, subsets):
        pool = _pool(trial, drawn.elements_at(places), counts)
        _add_pool(sums, pool)
        np.add.at(sums[2], pool.trial, _across(whole, pool))
    return sums


def _draw_batches(drawn: _Set, below: int, subsets: Sequence[Subset]) -> Iterator[tuple[Ints, Ints, Ints]]:
    """Draw the places of all trials, counted from those of this range, many trials at a time."""

    def alike(a: int, b: int) -> bool:
        return drawn.are_alike(a - below, b - below)

    held: list[tuple[Ints, Ints, Ints]] = []
    n_held = 0
    for trial, subset in enumerate(subsets, 1):
        places, counts = draw_places(subset, below, below + drawn.size, alike)
        held.append((np.full(len(places), trial - 1), places - below, counts))
        n_held += len(places)
        if n_held >= BATCH_ROWS or trial == len(subsets):
            trials, every_place, every_count = map(np.concatenate, zip(*held, strict=True))
            yield trials, every_place, every_count
            held, n_held = [], 0


def _add_pool(sums: Ints, pool: _Pool) -> None:
    """Add to each trial its negatives, its positives, and twice U among them."""
    if not len(pool.trial):
        return
    numbers, starts = np.unique(pool.trial, return_index=True)
    within = Segments(starts, len(pool.trial), wide=False)
    placed = pool.positive * (2 * within.before(pool.negative) + pool.negative)
    for target, values in zip(sums, (pool.negative, pool.positive, placed), strict=True):
        target[numbers] += within.total(values)


def _across(whole: _Pool, drawn: _Pool) -> Ints:
    """Return twice U between the rows drawn of each rank and the opposite rows of the whole set."""
    left, right = (np.searchsorted(whole.rank, drawn.rank, side) for side in ("left", "right"))
    negatives, positives = (np.append(0, np.cumsum(column)) for column in (whole.negative, whole.positive))
    below = negatives[left] + negatives[right]
    above = 2 * positives[-1] - positives[left] - positives[right]
    doubled: Ints = drawn.positive * below + drawn.negative * above
    return doubled


def _refuse_other_rows(
    points: Points, base_sizes: Sequence[int], standings: Standings, identities: Sequence[str]
) -> None:
    """Refuse a range with other rows than the ranking counted: its parts were read from the corpus once more."""
    here = np.zeros((2, len(base_sizes)), np.int64)
    np.add.at(here[0], points.identity, sum(points.members))
    np.add.at(here[1], points.identity, sum(points.taken))
    here[1] = base_sizes - here[1]
    other = np.flatnonzero((here != standings.here).any(axis=0))
    if len(other):
        (inside, outside), (was_inside, was_outside) = here[:, other[0]], standings.here[:, other[0]]
        raise corpus_changed(
            f"a range of scores has {inside:,} rows in '{identities[other[0]]}' and {outside:,} outside, and had "
            f"{was_inside:,} and {was_outside:,} when it was ranked"
        )
