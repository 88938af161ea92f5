"""Sorted score blocks: what a task hands to the ranking instead of rows. numpy only.

A block holds, for one (model, slice) and one range of the score line, sorted scores by *key*. A key is an integer that
encodes what rows have in common besides their score: see `cell_key` and `membership_key`. Repeated scores of a key
collapse into one score and a count, so a block is never larger than the number of distinct scores, and a shuffled score
costs 8 bytes.

The merged blocks of a range are its *sketch*. Placements follow from sorted scores alone, so the merged blocks of
several runs, and all counts from them, are those of the union of the runs. A *piece* of a sketch is a value of the
column ``block`` of the table ``score_blocks``: the kind of its block, three sizes (keys, scores, bytes of a count),
then keys, lengths, scores and counts as in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from biasspark.arrays import Floats, Ints
from biasspark.ranking.kernels.codec import narrow
from biasspark.ranking.kernels.sorted_runs import (
    collapse,
    find_distinct,
    find_starts,
    merge_runs,
    order_entries,
    split_by_code,
)

MANY_KEYS = 64
"""From this number of keys on, one sort of all rows is faster than one sort per key."""

MAX_BYTES = 4 << 20
"""The size limit of one piece of a sketch."""

_HEADER_BYTES, _ENTRY_BYTES = 32, 32
_MAX_ENTRIES = (MAX_BYTES - _HEADER_BYTES) // _ENTRY_BYTES
"""An entry is a score and a count, and at worst a key and its length."""


Runs: TypeAlias = dict[int, tuple[Floats, Ints]]
"""By key, distinct scores, ascending, and how many rows have each."""


def cell_key(known: Ints, label: Ints) -> Ints:
    """Return the key of a row by its label and the nullable sources that are known on it, as bits."""
    return (known << 1) | label


def membership_key(identity: Ints, unknown: Ints, label: Ints) -> Ints:
    """Return the key of a row that is in an identity, or for which membership is unknown."""
    return (identity << 2) | (unknown << 1) | label


@dataclass(frozen=True)
class Block:
    """Sorted scores by key."""

    keys: Ints
    """Ascending, unique."""
    lengths: Ints
    """How many entries of `scores` belong to each key."""
    scores: Floats
    """Finite, ascending within a key, keys one after another."""
    counts: NDArray[Any]
    """How many rows have each key and score, in the narrowest type: mostly one byte, whose score takes eight. Empty if
    every count is 1."""

    @staticmethod
    def of(keys: Ints, lengths: Ints, scores: Floats, counts: Ints) -> Block:
        """Return the block of distinct (key, score), ascending, and how many rows have each."""
        return Block(keys, lengths, scores, narrow(counts[:0] if (counts == 1).all() else counts))

    @property
    def full_counts(self) -> Ints:
        """The counts of all entries, also if all are 1."""
        return self.counts.astype(np.int64) if len(self.counts) else np.ones(len(self.scores), np.int64)

    @property
    def rows_of_keys(self) -> Ints:
        """How many rows have each key."""
        if not len(self.counts):
            return self.lengths
        return np.add.reduceat(self.full_counts, np.cumsum(self.lengths) - self.lengths)

    def cells(self) -> Iterator[tuple[int, Floats, Ints]]:
        """Yield every key with its scores and their counts."""
        ends, counts = np.cumsum(self.lengths), self.full_counts
        for key, start, end in zip(self.keys, ends - self.lengths, ends, strict=True):
            yield int(key), self.scores[start:end], counts[start:end]


def sort_cells(keys: Ints, scores: Floats, boundaries: Floats) -> Iterator[tuple[int, Block]]:
    """Sort rows by key and score and cut them at the boundaries.

    Range r holds the scores from ``boundaries[r - 1]`` (with it) to ``boundaries[r]`` (without it). Scores are finite,
    and there is no -0.0. Keys are not negative and have few distinct values: each is sorted by itself, since vectorized
    sorting is fastest. Yield the non-empty ranges, ascending.
    """
    distinct = find_distinct(keys)
    if len(distinct) > MANY_KEYS:
        yield from sort_memberships(keys, scores, boundaries)
        return
    scores_by_key = ((int(key), scores[np.flatnonzero(keys == key)]) for key in distinct)
    yield from cut_runs([(key, *collapse(np.sort(key_scores))) for key, key_scores in scores_by_key], boundaries)


def sort_memberships(keys: Ints, scores: Floats, boundaries: Floats) -> Iterator[tuple[int, Block]]:
    """Like `sort_cells`, for any number of distinct keys, by one sort of (range, key, score)."""
    by_score = np.argsort(scores)
    keys, scores = keys[by_score], scores[by_score]
    ranges = find_ranges(scores, boundaries)
    distinct = find_distinct(keys)
    codes = ranges * len(distinct) + np.searchsorted(distinct, keys)
    small = codes.astype(np.uint16) if (len(boundaries) + 1) * len(distinct) < 1 << 16 else codes  # radix sort
    order = np.argsort(small, kind="stable")
    codes, scores = codes[order], scores[order]
    new = find_starts(codes, scores)
    counts = np.diff(np.r_[new, len(codes)])
    codes, scores = codes[new], scores[new]
    cuts = np.searchsorted(codes, np.arange(len(boundaries) + 2) * len(distinct))
    for score_range, (start, end) in enumerate(pairwise(cuts)):
        if end > start:
            within = slice(start, end)
            keys, lengths = collapse(distinct[codes[within] % len(distinct)])
            yield score_range, Block.of(keys, lengths, scores[within], counts[within])


def cut_runs(runs: Sequence[tuple[int, Floats, Ints]], boundaries: Floats) -> Iterator[tuple[int, Block]]:
    """Cut the ascending scores of every key, and their counts, at the boundaries: see `sort_cells`."""
    edges = [np.r_[0, np.searchsorted(scores, boundaries), len(scores)] for _, scores, _ in runs]
    for score_range in range(len(boundaries) + 1):
        inside = [
            (key, scores[start:end], counts[start:end])
            for (key, scores, counts), edge in zip(runs, edges, strict=True)
            for start, end in [edge[score_range : score_range + 2]]
            if end > start
        ]
        if inside:
            yield score_range, block_of(inside)


def block_of(runs: Sequence[tuple[int, Floats, Ints]]) -> Block:
    """Return a block from the ascending scores of every key, by ascending key, and their counts."""
    keys = np.array([key for key, _, _ in runs], np.int64)
    lengths = np.array([len(scores) for _, scores, _ in runs], np.int64)
    scores = np.concatenate([np.empty(0), *(scores for _, scores, _ in runs)])
    counts = np.concatenate([np.empty(0, np.int64), *(counts for _, _, counts in runs)])
    return Block.of(keys, lengths, scores, counts)


def merge_cells(blocks: Sequence[Block]) -> Runs:
    """Return the distinct scores of every key over all blocks, ascending, and their counts."""
    runs: dict[int, list[tuple[Floats, Ints]]] = {}
    for block in blocks:
        for key, scores, counts in block.cells():
            runs.setdefault(key, []).append((scores, counts))
    return {key: merge_runs(*zip(*key_runs, strict=True)) for key, key_runs in runs.items()}


def list_entries(blocks: Sequence[Block]) -> tuple[Ints, Floats, Ints]:
    """Return the key, the score and the count of every entry of some blocks."""
    nothing = np.empty(0, np.int64)
    keys = np.concatenate([nothing, *(np.repeat(block.keys, block.lengths) for block in blocks)])
    scores = np.concatenate([np.empty(0), *(block.scores for block in blocks)])
    return keys, scores, np.concatenate([nothing, *(block.full_counts for block in blocks)])


def find_ranges(scores: Floats, boundaries: Floats) -> Ints:
    """Return the range of each score: see `sort_cells`."""
    return np.searchsorted(boundaries, scores, "right")


def split_by_range(ranges: Ints) -> Iterator[tuple[int, Ints]]:
    """Yield each range that has rows, ascending, with the indices of its rows in order."""
    small = ranges.astype(np.uint16)  # radix sort
    for score_range, inside in enumerate(split_by_code(small, int(small.max(initial=0)) + 1)):
        if len(inside):
            yield score_range, inside


def merge_blocks(blocks: Sequence[Block]) -> Block:
    """Merge blocks into one that has every score of a key once, however the rows had been cut."""
    if sum(len(block.keys) for block in blocks) <= MANY_KEYS * len(blocks):
        return block_of([(key, *run) for key, run in sorted(merge_cells(blocks).items())])
    keys, scores, counts = list_entries(blocks)
    order = order_entries(keys, scores)
    keys, scores, counts = keys[order], scores[order], counts[order]
    first = find_starts(keys, scores)
    return Block.of(*collapse(keys[first]), scores[first], np.add.reduceat(counts, first))


def write_pieces(kind: int, block: Block) -> Iterator[bytes]:
    """Cut a block into pieces of at most 4 MiB."""
    ends = np.cumsum(block.lengths)
    for start in range(0, len(block.scores), _MAX_ENTRIES):
        stop = start + _MAX_ENTRIES
        lengths = np.minimum(ends, stop) - np.maximum(ends - block.lengths, start)
        present = lengths > 0
        scores, counts = block.scores[start:stop], narrow(block.counts[start:stop])
        sizes = [kind, int(present.sum()), len(scores), counts.itemsize if len(counts) else 0]
        arrays = (np.array(sizes, np.int64), block.keys[present], lengths[present], scores, counts)
        yield b"".join(array.tobytes() for array in arrays)


def read_piece(piece: bytes | memoryview) -> tuple[int, Block]:
    """Return the kind and the block of a piece, without a copy."""
    kind, n_keys, n_scores, width = np.frombuffer(piece, np.int64, 4).tolist()
    n_words = 2 * n_keys + n_scores
    keys, lengths, scores = np.split(np.frombuffer(piece, np.int64, n_words, _HEADER_BYTES), [n_keys, 2 * n_keys])
    counts = np.frombuffer(piece, f"u{width}", offset=_HEADER_BYTES + 8 * n_words) if width else keys[:0]
    return kind, Block(keys, lengths, scores.view(np.float64), counts)


def cut_block(block: Block, boundaries: Floats) -> Iterator[tuple[int, Block]]:
    """Cut a block at boundaries: see `sort_cells` for the ranges."""
    if not len(block.scores):
        return
    first, last = np.searchsorted(boundaries, [block.scores.min(), block.scores.max()], "right").tolist()
    inner = boundaries[first:last]
    if not len(inner):
        yield first, block
    elif len(block.keys) <= MANY_KEYS:
        for number, part in cut_runs(list(block.cells()), inner):
            yield first + number, part
    else:
        keys, scores, counts = list_entries([block])
        for number, inside in split_by_range(find_ranges(scores, inner)):
            yield first + number, Block.of(*collapse(keys[inside]), scores[inside], counts[inside])
