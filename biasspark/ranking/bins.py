"""Bins of scores: the approximate mode, in which a task hands on how many rows each bin has, and no score.

Cut points b_0 < b_1 < ... cut the score line of a model. Bin 2i + 1 is the point b_i alone, bin 2i the open interval
below it, down to b_(i-1). Rows of different bins are ordered as their scores are, and rows of one point are tied. So
only the order of two rows of one open bin is lost: with a and c rows of two cells in each, all sums over pairs are
between those with the a·c pairs of every open bin wrongly ordered and those with all of them rightly ordered.
numpy and pyarrow only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from biasspark.arrays import Floats, Ints
from biasspark.corpus.codebook import Codebook
from biasspark.ranking.blocks import MANY_KEYS, Block, find_distinct, unless_all_one
from biasspark.ranking.placements import Profile
from biasspark.ranking.sorting import CELLS, TALLIES, Part, gather_rows
from biasspark.ranking.state_blocks import cut_block, merge_blocks

_HELD_BLOCKS = 8


def count_bins(
    batches: Iterable[pa.RecordBatch], codebook: Codebook, boundaries: Sequence[Floats], cuts: Sequence[Floats]
) -> Iterator[Part]:
    """Count the rows of one task by bin: of what it has of a range, one part of each kind.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        EXAMPLES: the columns that the codebook names.
    boundaries : sequence of float64 arrays
        For each model the cuts at which ranges meet.
    cuts : sequence of float64 arrays
        For each model, ascending and unique.

    Notes
    -----
    Memory: a count for each bin and key that occurs, and the rows of one flush.
    """

    def count(kind: int, model: int, keys: Ints, scores: Floats) -> Iterator[tuple[int, Block]]:
        yield 0, (count_cells if kind == CELLS else count_memberships)(keys, scores, cuts[model])

    held: dict[tuple[int, int, int, int], list[Block]] = {}
    for part in gather_rows(batches, codebook, count):
        if part.kind == TALLIES:
            yield part
            continue
        blocks = held.setdefault(part[:4], [])
        blocks.append(Block.decode(part.data))
        if len(blocks) == _HELD_BLOCKS:
            blocks[:] = [merge_blocks(part.kind, blocks)]
    for (model, number, _, kind), blocks in held.items():
        meet = bins_of(boundaries[model], cuts[model])
        for score_range, block in cut_block(merge_blocks(kind, blocks), meet):
            yield Part(model, number, score_range, kind, block.encode())


def count_cells(keys: Ints, scores: Floats, cuts: Floats) -> Block:
    """Count rows by key, of which there are few, and bin.

    Parameters
    ----------
    keys : int64 array, shape (n,)
        Not negative.
    scores : float64 array, shape (n,)
        Finite, no -0.0.

    Returns
    -------
    Block
        With the numbers of bins as scores.

    Notes
    -----
    Cost: to sort the scores of a key and look the cuts up in them takes a third of looking up each score.
    """
    distinct = find_distinct(keys)
    if not 0 < len(distinct) <= MANY_KEYS:
        return count_memberships(keys, scores, cuts)
    found = [_count_sorted(np.sort(scores[keys == key]), cuts) for key in distinct]
    bins = [np.flatnonzero(counts) for counts in found]
    counts = np.concatenate([counts[own] for counts, own in zip(found, bins, strict=True)])
    lengths = np.array([len(own) for own in bins], np.int64)
    return Block(distinct, lengths, np.concatenate(bins).astype(np.float64), unless_all_one(counts))


def _count_sorted(scores: Floats, cuts: Floats) -> Ints:
    """Count ascending scores in each of the bins."""
    ends = np.stack([np.searchsorted(scores, cuts, side) for side in ("left", "right")], axis=1).ravel()
    return np.diff(ends, prepend=0, append=len(scores))


def count_memberships(keys: Ints, scores: Floats, cuts: Floats) -> Block:
    """Do what `count_cells` does for any number of distinct keys."""
    n_bins = 2 * len(cuts) + 1
    places, counts = np.unique(keys * n_bins + bins_of(scores, cuts).astype(np.int64), return_counts=True)
    distinct, lengths = np.unique(places // n_bins, return_counts=True)
    return Block(distinct, lengths, (places % n_bins).astype(np.float64), unless_all_one(counts))


def profile_bins(cells: Sequence[Block], cuts: Floats) -> Profile:
    """Describe the scores of a range, as far as their bins say.

    Returns
    -------
    Profile
        `n_distinct` is right where no open bin has two rows, and else `n_rows`, which it may be; `largest_tie` is that
        of a point; the scores lie from `lowest` to `highest`, the ends of the outermost bins.
    """
    bins = np.concatenate([block.scores for block in cells]).astype(np.int64)
    counts = np.concatenate([block.full_counts for block in cells])
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


def bins_of(scores: Floats, cuts: Floats) -> Floats:
    """Return the numbers of the bins of scores, 2i + 1 at cut i and 2i in the open interval below it.

    If an edge or boundary is one of the cuts, a score is at or above it exactly when the score's bin is at or above the
    edge's bin.
    """
    place = np.searchsorted(cuts, scores)
    bins: Floats = 2.0 * place + (np.append(cuts, np.nan)[place] == scores)
    return bins
