"""The mergeable state of a night: its sorted blocks as pieces that a table can hold, and their way into a window.

Placements follow from sorted scores alone, so the scores of nights merged are the scores of their union, and every
integer is that of the union. What differs between nights is which values the identities of a category or an array
have: a night's numbers of identities become those of the window (`Renumbering`), and a pair with a value that a night
lacks is unknown where `find_unseen` says so. numpy only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from biasspark.arrays import Floats, Ints
from biasspark.corpus.codebook import Codebook
from biasspark.ranking.blocks import (
    MANY_KEYS,
    Block,
    collapse,
    cut_runs,
    find_starts,
    merge_cells,
    order_entries,
    split_by_range,
    unless_all_one,
)
from biasspark.ranking.memberships import pair_number
from biasspark.ranking.sorting import CELLS, MEMBERSHIPS

MOST_BYTES = 4 << 20
"""Of one piece."""

_TAG_BYTES, _SIZES_BYTES, _ENTRY_BYTES = 8, 24, 32
_MOST_ENTRIES = (MOST_BYTES - _TAG_BYTES - _SIZES_BYTES) // _ENTRY_BYTES
"""An entry is a score and a count, and at worst a key and its length."""


def merge_blocks(kind: int, blocks: Sequence[Block]) -> Block:
    """Return one block of all, the same however the rows had been cut: every score of a key once."""
    if kind == CELLS:
        runs = sorted(merge_cells(blocks).items())
        return _one_block([key for key, _ in runs], [scores for _, (scores, _) in runs], [c for _, (_, c) in runs])
    keys, scores, counts = _entries(blocks)
    order = order_entries(keys, scores)
    keys, scores, counts = keys[order], scores[order], counts[order]
    first = find_starts(keys, scores)
    return Block(*collapse(keys[first]), scores[first], unless_all_one(np.add.reduceat(counts, first)))


def write_pieces(kind: int, block: Block) -> Iterator[bytes]:
    """Cut a block into pieces of 4 MiB at most, each its kind and a block of its own."""
    ends = np.cumsum(block.lengths)
    for start in range(0, len(block.scores), _MOST_ENTRIES):
        stop = start + _MOST_ENTRIES
        lengths = np.minimum(ends, stop) - np.maximum(ends - block.lengths, start)
        here = lengths > 0
        part = Block(block.keys[here], lengths[here], block.scores[start:stop], block.counts[start:stop])
        yield np.int64(kind).tobytes() + part.encode()


def read_piece(piece: bytes) -> tuple[int, Block]:
    """Return the kind and the block of a piece."""
    return int(np.frombuffer(piece, np.int64, 1)[0]), Block.decode(memoryview(piece)[_TAG_BYTES:])


@dataclass(frozen=True)
class Renumbering:
    """What the numbers of a night's identities are in a window.

    Attributes
    ----------
    singles : int64 array
        The window's number for each of the night's numbers up to its first pair, ascending.
    absent : dict of int to tuple of int
        By the place of a source, the window's identities of it that the night lacks.
    """

    singles: Ints
    absent: dict[int, tuple[int, ...]]

    @staticmethod
    def between(night: Codebook, window: Codebook) -> Renumbering:
        """Compare two codebooks of the same sources, the window having all identities that the night has."""
        numbers = [0, *(window.number[name] for name in night.singles)]
        seen, absent = set(numbers), {}
        for place in window.open_sources:
            own = (window.number[name] for name in window.sources[place].identities)
            absent[place] = tuple(number for number in own if number not in seen)
        return Renumbering(np.array(numbers, np.int64), absent)

    @cached_property
    def _n_singles(self) -> int:
        return len(self.singles) - 1

    def renumber(self, identity: Ints, window: Codebook) -> Ints:
        """Return the window's numbers of the night's identities, crossed pairs among them."""
        found = self.singles[np.minimum(identity, self._n_singles)]
        crossed = np.flatnonzero(identity > self._n_singles)
        if len(crossed):
            low, high = _sides(identity[crossed] - self._n_singles - 1, self._n_singles)
            found[crossed] = pair_number(self.singles[low], self.singles[high], window)
        return found


def enter_window(kind: int, block: Block, renumbering: Renumbering, window: Codebook) -> Iterator[tuple[int, Block]]:
    """Return what a block of a night is in a window: blocks of base cells and of memberships."""
    if kind == CELLS:
        yield CELLS, block
        return
    identity, state = block.keys >> 2, block.keys & 3
    if kind == MEMBERSHIPS:
        keys = renumbering.renumber(identity, window) << 2 | state
        yield MEMBERSHIPS, Block(keys, block.lengths, block.scores, block.counts)
        return
    side, place = np.divmod(identity, len(window.sources))
    side = renumbering.singles[side]
    spread = np.repeat(place, block.lengths)
    for source in np.unique(place).tolist():
        here, chosen = place == source, spread == source
        counts = block.counts[chosen] if len(block.counts) else block.counts
        for absent in renumbering.absent[source]:
            numbers = pair_number(np.minimum(side[here], absent), np.maximum(side[here], absent), window)
            yield MEMBERSHIPS, Block(numbers << 2 | state[here], block.lengths[here], block.scores[chosen], counts)


def cut_block(block: Block, boundaries: Floats) -> Iterator[tuple[int, Block]]:
    """Cut a block at boundaries: see `blocks.sort_cells` for what range has which scores."""
    if not len(block.scores):
        return
    first, last = np.searchsorted(boundaries, [block.scores.min(), block.scores.max()], "right").tolist()
    inner = boundaries[first:last]
    if not len(inner):
        yield first, block
        return
    if len(block.keys) <= MANY_KEYS:
        for number, part in cut_runs(list(block.cells()), inner):
            yield first + number, part
        return
    keys, scores, counts = _entries([block])
    for number, own in split_by_range(scores, inner):
        yield first + number, Block(*collapse(keys[own]), scores[own], unless_all_one(counts[own]))


def _entries(blocks: Sequence[Block]) -> tuple[Ints, Floats, Ints]:
    """Return key, score and count of every entry."""
    nothing = np.empty(0, np.int64)
    keys = [np.repeat(block.keys, block.lengths) for block in blocks]
    counts = [block.full_counts for block in blocks]
    scores = np.concatenate([np.empty(0), *(block.scores for block in blocks)])
    return np.concatenate([nothing, *keys]), scores, np.concatenate([nothing, *counts])


def _one_block(keys: Sequence[int], scores: Sequence[Floats], counts: Sequence[Ints]) -> Block:
    nothing = np.empty(0, np.int64)
    lengths = np.array([len(own) for own in scores], np.int64)
    every = unless_all_one(np.concatenate([nothing, *counts]))
    return Block(np.array(keys, np.int64), lengths, np.concatenate([np.empty(0), *scores]), every)


def _sides(pair: Ints, size: int) -> tuple[Ints, Ints]:
    """Return the numbers of both sides of crossed pairs, counted from 0 as (1, 2), (1, 3), ..., (2, 3), ..."""
    firsts = np.cumsum(np.r_[0, np.arange(size - 1, 0, -1)])  # of the pairs that begin with 1, 2, ...
    low = np.searchsorted(firsts, pair, "right")
    return low, pair - firsts[low - 1] + low + 1
