"""Bins of scores: the approximate mode, in which a task hands on how many rows each bin has, and no score.

Cut points b_0 < b_1 < ... cut the score line of a model. Bin 2i + 1 is the point b_i alone, bin 2i the open interval
below it, down to b_(i-1). Rows of different bins are ordered as their scores are, and rows of one point are tied. So
only the order of two rows of one open bin is lost: with a and c rows of two cells in each, all sums over pairs are
between those with the a·c pairs of every open bin wrongly ordered and those with all of them rightly ordered.
numpy only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from biasspark.ranking.blocks import Block, Floats, Ints, unless_all_one
from biasspark.ranking.placements import Profile
from biasspark.ranking.sorting import TALLIES, Part
from biasspark.ranking.state_blocks import merge_blocks

_HELD_BLOCKS = 8


def find_bins(scores: Floats, cuts: Floats) -> Ints:
    """Return the number of the bin of each score: 2i + 1 where it is cut i, 2i in the open interval below that.

    Parameters
    ----------
    scores : float64 array
        Finite, no -0.0.
    cuts : float64 array, shape (k,)
        Ascending, unique, no -0.0; there are 2k + 1 bins.
    """
    return np.searchsorted(cuts, scores) + np.searchsorted(cuts, scores, "right")


def bin_parts(parts: Iterable[Part], cuts: Sequence[Floats]) -> Iterator[Part]:
    """Count the rows of one task by bin: of what the task has of a range, one part of each kind.

    Parameters
    ----------
    parts : iterable of Part
        Of `sort_rows`, with ranges that meet at cuts.
    cuts : sequence of float64 arrays
        For each model.

    Notes
    -----
    Memory: a count for each bin and key that occurs, and the parts of one flush.
    """
    held: dict[tuple[int, int, int, int], list[Block]] = {}
    for part in parts:
        if part.kind == TALLIES:
            yield part
            continue
        blocks = held.setdefault(part[:4], [])
        blocks.append(bin_block(Block.decode(part.data), cuts[part.model]))
        if len(blocks) == _HELD_BLOCKS:
            blocks[:] = [merge_blocks(part.kind, blocks)]
    for key, blocks in held.items():
        yield Part(*key, merge_blocks(key[3], blocks).encode())


def bin_block(block: Block, cuts: Floats) -> Block:
    """Return a block with numbers of bins in place of scores."""
    if not len(block.scores):
        return block
    keys = np.repeat(np.arange(len(block.keys)), block.lengths)
    bins = find_bins(block.scores, cuts)
    first = np.flatnonzero(np.r_[True, (keys[1:] != keys[:-1]) | (bins[1:] != bins[:-1])])
    counts = np.add.reduceat(block.counts, first) if len(block.counts) else np.diff(np.r_[first, len(bins)])
    lengths = np.bincount(keys[first], minlength=len(block.keys))
    return Block(block.keys, lengths, bins[first].astype(np.float64), unless_all_one(counts))


def profile_bins(cells: Sequence[Block], cuts: Floats) -> Profile:
    """Say of the scores of a range what bins tell of them.

    Returns
    -------
    Profile
        `n_distinct` is right where no open bin has two rows, and else `n_rows`, which it may be; `largest_tie` is that
        of a point; the scores lie from `lowest` to `highest`, the ends of the outermost bins.
    """
    bins = np.concatenate([block.scores for block in cells]).astype(np.int64)
    counts = np.concatenate([block.counts if len(block.counts) else np.ones(len(block.scores)) for block in cells])
    rows = np.bincount(bins, counts).astype(np.int64)
    found = np.flatnonzero(rows)
    is_open = found % 2 == 0
    n_rows, ends = int(rows.sum()), np.r_[-np.inf, cuts, np.inf]
    return Profile(
        n_rows=n_rows,
        n_distinct=n_rows if (rows[found[is_open]] > 1).any() else len(found),
        largest_tie=int(rows[found[~is_open]].max(initial=1)),
        lowest=float(ends[(found[0] + 1) // 2]),
        highest=float(ends[found[-1] // 2 + 1]),
    )


def bins_of_edges(edges: Floats, cuts: Floats) -> Floats:
    """Return edges that are cuts as the numbers of their bins: a score reaches an edge where its bin does."""
    return find_bins(edges, cuts).astype(np.float64)
