"""How many rows of every cell reach an edge of the score line: what rates at thresholds and histograms follow from.

The edges of a model cut its score line into places: place k holds the scores from edge k - 1 (with it) to edge k
(without it), place 0 what lies below all edges. A range of the ranking touches few of them, and each block is sorted,
so counting costs a search for each edge and one step per membership. numpy only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from biasspark.arrays import Floats, Ints
from biasspark.columns import FOUR_CELLS
from biasspark.ranking.blocks import Block


class PlaceCounts(NamedTuple):
    """Rows by place within one range.

    Attributes
    ----------
    first
        The first place that the range touches.
    counts : int64 array, shape (4, identities, places)
        Of subgroup negatives, subgroup positives, background negatives and background positives.
    """

    first: int
    counts: Ints


def count_places(
    cells: Sequence[Block], memberships: Sequence[Block], base_masks: Sequence[int], edges: Floats
) -> PlaceCounts:
    """Count the rows of a range by place, of every cell of every identity.

    Parameters
    ----------
    cells, memberships : sequences of Block
        The range's part of the corpus, in any order and cut in any way; at least one row.
    base_masks : sequence of int
        For every identity, the bits of the sources one of which must be known; 0 for all rows.
    edges : float64 array
        Ascending, unique.
    """
    dense = [run for block in cells for run in block.cells()]
    ends = [min(scores[0] for _, scores, _ in dense), max(scores[-1] for _, scores, _ in dense)]
    first, last = (int(place) for place in np.searchsorted(edges, ends, "right"))
    inner = edges[first:last]
    masks, which = np.unique(base_masks, return_inverse=True)
    bases = np.zeros((2, len(masks), len(inner) + 1), np.int64)
    for key, scores, counts in dense:
        known = (masks == 0) | ((masks & (key >> 1)) != 0)
        running = np.append(0, np.cumsum(counts))
        cuts = np.r_[0, np.searchsorted(scores, inner), len(scores)]
        bases[key & 1, known] += np.diff(running[cuts])
    states = _count_entries(memberships, len(base_masks), inner)
    members, unknowns = states[:2], states[2:]
    return PlaceCounts(first, np.concatenate([members, bases[:, which] - members - unknowns]))


def _count_entries(memberships: Sequence[Block], n_identities: int, inner: Floats) -> Ints:
    """Count members and unknowns, negative and positive: shape (4, identities, places)."""
    states = np.zeros((4, n_identities, len(inner) + 1), np.int64)
    for block in memberships:
        keys = np.repeat(block.keys, block.lengths)
        places = np.searchsorted(inner, block.scores, "right")
        np.add.at(states, (keys & 3, keys >> 2, places), block.full_counts)
    return states


def add_reached(ranges: Sequence[PlaceCounts], n_identities: int, n_edges: int) -> Ints:
    """Return how many rows of every cell there are at or above each edge, all of them first.

    Returns
    -------
    int64 array, shape (4, identities, n_edges + 1)
        Entry 0 counts all rows of the cell, entry k + 1 those with a score of edge k or more.
    """
    total = np.zeros((len(FOUR_CELLS), n_identities, n_edges + 1), np.int64)
    for first, counts in ranges:
        total[:, :, first : first + counts.shape[2]] += counts
    return np.ascontiguousarray(total[:, :, ::-1].cumsum(axis=2)[:, :, ::-1])


def encode_places(places: PlaceCounts, identities: range) -> bytes:
    """Return the counts of some identities as bytes."""
    counts = places.counts[:, identities.start : identities.stop]
    sizes = np.array([places.first, counts.shape[2]], np.int64)
    return sizes.tobytes() + counts.tobytes()


def decode_places(data: bytes) -> PlaceCounts:
    """Return the counts that `encode_places` wrote."""
    words = np.frombuffer(data, np.int64)
    return PlaceCounts(int(words[0]), words[2:].reshape(len(FOUR_CELLS), -1, words[1]))
