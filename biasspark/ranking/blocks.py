"""Sorted score blocks: what a task hands to the ranking instead of rows.

A block holds, for one (model, slice) and one range of the score line, sorted scores by *key*. A key is a base cell
(which sources of identities are known on the row, and its label) or a membership (an identity, in or unknown, and the
row's label); a block holds keys of one of the two kinds. Repeated scores of a key collapse into one score and a count,
so a block is never larger than the number of distinct scores, and a shuffled score costs 8 bytes. numpy only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from biasspark.arrays import Floats, Ints

Values = TypeVar("Values", Floats, Ints)

MANY_KEYS = 64
"""From here on one sort of all keys is faster than one of each."""


@dataclass(frozen=True)
class Block:
    """Sorted scores by key.

    Attributes
    ----------
    keys : int64 array, shape (k,)
        Ascending, unique.
    lengths : int64 array, shape (k,)
        How many entries of `scores` belong to each key.
    scores : float64 array, shape (n,)
        Finite, ascending within a key, keys one after another.
    counts : int64 array, shape (n,) or (0,)
        How many rows have that key and score; empty where that is one everywhere.
    """

    keys: Ints
    lengths: Ints
    scores: Floats
    counts: Ints

    @property
    def full_counts(self) -> Ints:
        """The counts of all entries, also where all are one."""
        return self.counts if len(self.counts) else np.ones(len(self.scores), np.int64)

    def encode(self) -> bytes:
        """Return the block as bytes: three sizes, then the arrays as they are in memory, counts as narrow as they fit.

        Most rows have a score of their own, so a count is a byte beside the eight of its score.
        """
        counts = self.counts.astype(np.min_scalar_type(self.counts.max(initial=0)))
        sizes = np.array([len(self.keys), len(self.scores), counts.itemsize if len(counts) else 0], np.int64)
        return b"".join(part.data for part in (sizes, self.keys, self.lengths, self.scores, counts))

    @staticmethod
    def decode(data: bytes | memoryview) -> Block:
        """Return the block that `encode` wrote; only counts are copied."""
        n_keys, n_scores, width = (int(size) for size in np.frombuffer(data, np.int64, 3))
        n_words = 2 * n_keys + n_scores
        keys, lengths, scores = np.split(np.frombuffer(data, np.int64, n_words, offset=24), [n_keys, 2 * n_keys])
        counts = np.frombuffer(data, f"u{width}", offset=24 + 8 * n_words) if width else keys[:0]
        return Block(keys, lengths, scores.view(np.float64), counts.astype(np.int64))

    def cells(self) -> Iterator[tuple[int, Floats, Ints]]:
        """Yield every key with its scores and their counts."""
        ends, counts = np.cumsum(self.lengths), self.full_counts
        for key, start, end in zip(self.keys, ends - self.lengths, ends, strict=True):
            yield int(key), self.scores[start:end], counts[start:end]


def sort_cells(keys: Ints, scores: Floats, boundaries: Floats) -> Iterator[tuple[int, Block]]:
    """Sort rows by key and score and cut them at the boundaries.

    Range r holds the scores from ``boundaries[r - 1]`` (with it) to ``boundaries[r]`` (without it).

    Parameters
    ----------
    keys : int64 array, shape (n,)
        Not negative, of few distinct values: each is sorted by itself, as vectorised sorting is fastest.
    scores : float64 array, shape (n,)
        Finite, no -0.0.
    boundaries : float64 array, shape (ranges - 1,)
        Ascending. They only balance the work; no result depends on them.

    Yields
    ------
    (int, Block)
        The non-empty ranges, ascending.
    """
    distinct = find_distinct(keys)
    if len(distinct) > MANY_KEYS:
        yield from sort_memberships(keys, scores, boundaries)
        return
    yield from cut_runs([(int(key), *collapse(np.sort(scores[keys == key]))) for key in distinct], boundaries)


def sort_memberships(keys: Ints, scores: Floats, boundaries: Floats) -> Iterator[tuple[int, Block]]:
    """Do what `sort_cells` does for any number of distinct keys, by one sort of (range, key, score)."""
    by_score = np.argsort(scores)
    keys, scores = keys[by_score], scores[by_score]
    ranges = np.searchsorted(boundaries, scores, "right")
    distinct, dense = np.unique(keys, return_inverse=True)
    place = ranges * len(distinct) + dense
    fits = place.astype(np.uint16) if (len(boundaries) + 1) * len(distinct) < 1 << 16 else place  # radix sort
    order = np.argsort(fits, kind="stable")
    place, scores = place[order], scores[order]
    new = find_starts(place, scores)
    counts = np.diff(np.r_[new, len(place)])
    place, scores = place[new], scores[new]
    cuts = np.searchsorted(place, np.arange(len(boundaries) + 2) * len(distinct))
    for score_range, (start, end) in enumerate(pairwise(cuts)):
        if end > start:
            found, lengths = np.unique(place[start:end] % len(distinct), return_counts=True)
            yield score_range, Block(distinct[found], lengths, scores[start:end], unless_all_one(counts[start:end]))


def merge_cells(blocks: Sequence[Block]) -> dict[int, tuple[Floats, Ints]]:
    """Return the distinct scores of every key over all blocks, ascending, and their counts."""
    parts: dict[int, list[tuple[Floats, Ints]]] = {}
    for block in blocks:
        for key, scores, counts in block.cells():
            parts.setdefault(key, []).append((scores, counts))
    return {key: merge_runs(*zip(*runs, strict=True)) for key, runs in parts.items()}


def split_by_range(scores: Floats, boundaries: Floats) -> Iterator[tuple[int, Ints]]:
    """Yield each range that holds scores, ascending, with their places in order: see `sort_cells` for the ranges."""
    ranges = np.searchsorted(boundaries, scores, "right").astype(np.uint16)  # radix sort
    for score_range, places in enumerate(split_by_code(ranges, len(boundaries) + 1)):
        if len(places):
            yield score_range, places


def split_by_code(codes: NDArray[np.int64 | np.uint16], n_codes: int) -> list[Ints]:
    """Return for each code, 0 to ``n_codes - 1``, the places of its entries, in order."""
    ends = np.cumsum(np.bincount(codes, minlength=n_codes))
    return np.split(np.argsort(codes, kind="stable"), ends[:-1])


def find_starts(*columns: Ints | Floats) -> Ints:
    """Return where runs of equal entries begin; of several columns, of entries that are equal in all."""
    differ = reduce(np.logical_or, (column[1:] != column[:-1] for column in columns))
    return np.flatnonzero(np.r_[np.ones(min(len(columns[0]), 1), bool), differ])


def number_runs(values: Floats) -> Ints:
    """Return of each entry in which run of equal ones it is, from 0."""
    return np.cumsum(np.r_[False, values[1:] != values[:-1]])


def double_below(counts: Ints) -> Ints:
    """Return for each run of equal scores twice the rows before it plus its own, from how many rows the runs have.

    That is the doubled placement of a row at that score above them; below them it is twice all rows less that.
    """
    return 2 * np.cumsum(counts) - counts


def collapse(values: Values) -> tuple[Values, Ints]:
    """Return of each run of equal entries the value, and how long it is."""
    first = find_starts(values)
    return values[first], np.diff(np.r_[first, len(values)])


def find_distinct(keys: Ints) -> Ints:
    """Return the distinct keys, ascending; counting is ten times as fast as sorting, where keys are small."""
    if len(keys) and keys.max() < 1 << 16:
        return np.flatnonzero(np.bincount(keys))
    return np.unique(keys)


def cut_runs(runs: Sequence[tuple[int, Floats, Ints]], boundaries: Floats) -> Iterator[tuple[int, Block]]:
    """Cut the ascending scores of every key, and their counts, at the boundaries: see `sort_cells`."""
    edges = [np.r_[0, np.searchsorted(scores, boundaries), len(scores)] for _, scores, _ in runs]
    for score_range in range(len(boundaries) + 1):
        parts = [
            (key, scores[edge[score_range] : edge[score_range + 1]], counts[edge[score_range] : edge[score_range + 1]])
            for (key, scores, counts), edge in zip(runs, edges, strict=True)
            if edge[score_range + 1] > edge[score_range]
        ]
        if parts:
            yield (
                score_range,
                Block(
                    np.array([key for key, _, _ in parts], np.int64),
                    np.array([len(scores) for _, scores, _ in parts], np.int64),
                    np.concatenate([scores for _, scores, _ in parts]),
                    unless_all_one(np.concatenate([counts for _, _, counts in parts])),
                ),
            )


def order_entries(keys: Ints, scores: Floats) -> Ints:
    """Return the order of entries by key, which is not negative, then by score.

    Two sorts, the second by radix where keys are small, take half the time of ``np.lexsort``.
    """
    by_score = np.argsort(scores)
    ordered = keys[by_score]
    small = ordered.astype(np.uint16) if ordered.max(initial=0) < 1 << 16 else ordered
    return by_score[np.argsort(small, kind="stable")]


def merge_runs(scores: Sequence[Floats], counts: Sequence[Ints]) -> tuple[Floats, Ints]:
    """Return the distinct scores of several runs, ascending, and how many rows have each.

    A run holds distinct scores, ascending.
    """
    if len(scores) == 1:
        return scores[0], counts[0]
    values, weights = np.concatenate(scores), np.concatenate(counts)
    if weights.sum() <= 2 * len(values):  # rows are few more than entries: sorting them beats ordering these
        return collapse(np.sort(np.repeat(values, weights)))
    order = np.argsort(values)
    values, weights = values[order], weights[order]
    first = find_starts(values)
    return values[first], np.add.reduceat(weights, first)


def unless_all_one(counts: Ints) -> Ints:
    """Return the counts as a block keeps them."""
    return counts[:0] if (counts == 1).all() else counts
