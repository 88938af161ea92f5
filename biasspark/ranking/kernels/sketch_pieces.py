"""The sketch of a score range: its blocks merged, as pieces that a table can hold. numpy only.

A sketch is mergeable: placements follow from sorted scores alone, so the merged blocks of several runs, and all counts
from them, are those of the union of the runs. A piece is a value of the column ``block`` of the table ``score_blocks``:
the kind of its block, three sizes (keys, scores, bytes of a count), then keys, lengths, scores and counts as in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from biasspark.arrays import Floats
from biasspark.ranking.kernels.blocks import (
    MANY_KEYS,
    Block,
    block_of,
    cut_runs,
    list_entries,
    merge_cells,
    split_by_range,
)
from biasspark.ranking.kernels.codec import narrow
from biasspark.ranking.kernels.sorted_runs import find_starts, order_entries

MOST_BYTES = 4 << 20
"""The size limit of one piece."""

_HEADER_BYTES, _ENTRY_BYTES = 32, 32
_MOST_ENTRIES = (MOST_BYTES - _HEADER_BYTES) // _ENTRY_BYTES
"""An entry is a score and a count, and at worst a key and its length."""


def merge_blocks(blocks: Sequence[Block]) -> Block:
    """Merge blocks into one that has every score of a key once, however the rows had been cut."""
    if sum(len(block.keys) for block in blocks) <= MANY_KEYS * len(blocks):
        return block_of([(key, *run) for key, run in sorted(merge_cells(blocks).items())])
    keys, scores, counts = list_entries(blocks)
    order = order_entries(keys, scores)
    keys, scores, counts = keys[order], scores[order], counts[order]
    first = find_starts(keys, scores)
    return Block.of(keys[first], scores[first], np.add.reduceat(counts, first))


def write_pieces(kind: int, block: Block) -> Iterator[bytes]:
    """Cut a block into pieces of at most 4 MiB."""
    ends = np.cumsum(block.lengths)
    for start in range(0, len(block.scores), _MOST_ENTRIES):
        stop = start + _MOST_ENTRIES
        lengths = np.minimum(ends, stop) - np.maximum(ends - block.lengths, start)
        present = lengths > 0
        scores, counts = block.scores[start:stop], narrow(block.counts[start:stop])
        sizes = [kind, int(present.sum()), len(scores), counts.itemsize if len(counts) else 0]
        arrays = (np.array(sizes, np.int64), block.keys[present], lengths[present], scores, counts)
        yield b"".join(array.tobytes() for array in arrays)


def read_piece(piece: bytes | memoryview) -> tuple[int, Block]:
    """Return the kind and the block of a piece; only counts are copied."""
    kind, n_keys, n_scores, width = np.frombuffer(piece, np.int64, 4).tolist()
    n_words = 2 * n_keys + n_scores
    keys, lengths, scores = np.split(np.frombuffer(piece, np.int64, n_words, _HEADER_BYTES), [n_keys, 2 * n_keys])
    counts = np.frombuffer(piece, f"u{width}", offset=_HEADER_BYTES + 8 * n_words) if width else keys[:0]
    return kind, Block(keys, lengths, scores.view(np.float64), counts.astype(np.int64))


def cut_block(block: Block, boundaries: Floats) -> Iterator[tuple[int, Block]]:
    """Cut a block at boundaries: see `blocks.sort_cells` for the ranges."""
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
        for number, inside in split_by_range(scores, inner):
            yield first + number, Block.of(keys[inside], scores[inside], counts[inside])
