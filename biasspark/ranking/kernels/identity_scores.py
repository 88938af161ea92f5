"""The rows of each identity at every score of a range, for trials that draw from them. numpy only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from biasspark.arrays import Ints
from biasspark.ranking.kernels.blocks import Block, merge_cells
from biasspark.ranking.kernels.placements import Cell, known_cells, merge_entries
from biasspark.ranking.kernels.reference_sets import ReferenceSets


class IdentityScores(NamedTuple):
    """Negatives and positives of an identity at each score of its known population: int64 arrays, shape (scores, 2)."""

    subgroup: Ints
    background: Ints


class RangeScores:
    """The scores of a range, and the rows of each identity at them.

    Parameters
    ----------
    cells, memberships : sequences of Block
        The range's part of the corpus, in any order and cut in any way.
    sets : ReferenceSets
        Of the identities.
    """

    def __init__(self, cells: Sequence[Block], memberships: Sequence[Block], sets: ReferenceSets) -> None:
        runs = {key: Cell(*run) for key, run in merge_cells(cells).items()}
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
