"""Sums over the positives of one group and the negatives of another, for every two groups. numpy only.

For each group of negatives, a positive's placement among them is a running count over the distinct scores. Placements
and their squares are summed by the positives' groups; the squares of the negatives are computed the other way round. So
K groups cost 2K passes over the scores of a range, instead of K² passes for pairs of groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from biasspark.arrays import BigInts, Floats, Ints
from biasspark.ranking.kernels.blocks import Block, merge_cells
from biasspark.ranking.kernels.pair_sums import PairSums
from biasspark.ranking.kernels.placements import NARROW_ROWS
from biasspark.ranking.kernels.sorted_runs import Segments, place_runs


class _Rows(NamedTuple):
    """The rows of one label, by group: the index of each distinct score, and how many rows of the group have it."""

    groups: Ints
    scores: Ints
    counts: Ints
    starts: Ints


def count_group_pairs(blocks: Sequence[Block], n_groups: int) -> PairSums:
    """Return the sums of one range for every two groups.

    Parameters
    ----------
    blocks : sequence of Block
        The rows of the range, by key: twice the number of the group, + 1 for positives.

    Returns
    -------
    PairSums, shape (groups of the positives, groups of the negatives)
    """
    runs = merge_cells(blocks)
    line = np.unique(np.concatenate([scores for scores, _ in runs.values()]))
    low, high = (_list_rows(runs, line, label) for label in (0, 1))
    n_low, n_high = np.zeros((1, n_groups), np.int64), np.zeros((n_groups, 1), np.int64)
    two_u, low_squares, high_squares = np.zeros((3, n_groups, n_groups), object)
    if len(low.groups):
        n_low[0, low.groups] = np.add.reduceat(low.counts, low.starts)
    if len(high.groups):
        n_high[high.groups, 0] = np.add.reduceat(high.counts, high.starts)
    if len(low.groups) and len(high.groups):
        wide = int(n_low.sum() + n_high.sum()) > NARROW_ROWS
        for index, group in enumerate(low.groups):
            below = place_runs(_at_scores(low, index, len(line)))
            two_u[high.groups, group], high_squares[high.groups, group] = _add_up(high, below, wide)
        for index, group in enumerate(high.groups):
            at = _at_scores(high, index, len(line))
            _, low_squares[group, low.groups] = _add_up(low, 2 * at.sum() - place_runs(at), wide)
    return PairSums.of(n_low, n_high, two_u, low_squares, high_squares)


def _list_rows(runs: dict[int, tuple[Floats, Ints]], line: Floats, label: int) -> _Rows:
    nothing = np.empty(0, np.int64)
    keys = [key for key in sorted(runs) if key & 1 == label]
    scores = [np.searchsorted(line, runs[key][0]) for key in keys]
    starts = np.cumsum([0, *map(len, scores)])[:-1]
    counts = np.concatenate([nothing, *(runs[key][1] for key in keys)])
    return _Rows(np.array(keys, np.int64) >> 1, np.concatenate([nothing, *scores]), counts, starts)


def _at_scores(rows: _Rows, index: int, n_scores: int) -> Ints:
    """Return how many rows of a group have each score."""
    start = rows.starts[index]
    stop = rows.starts[index + 1] if index + 1 < len(rows.starts) else len(rows.scores)
    counts = np.zeros(n_scores, np.int64)
    counts[rows.scores[start:stop]] = rows.counts[start:stop]
    return counts


def _add_up(rows: _Rows, placements: Ints, wide: bool) -> tuple[BigInts, BigInts]:
    """Return the sums of the placements of the rows of each group, and of their squares."""
    segments, placed = Segments(rows.starts, len(rows.scores), wide=wide), placements[rows.scores]
    return segments.dot(rows.counts, placed), segments.dot(rows.counts, placed**2)
