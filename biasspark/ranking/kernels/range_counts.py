"""All counts of one score range, and how the counts of all ranges are combined. numpy only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from biasspark.arrays import Floats, Ints
from biasspark.ranking.kernels.blocks import Block, Runs, list_entries
from biasspark.ranking.kernels.pair_sums import BACKGROUND_PAIR, PairSums
from biasspark.ranking.kernels.placements import Profile, measure_range


class RangeCounts(NamedTuple):
    """All counts of some identities over a stretch of the score line: one range, or the whole line.

    `pairs` has the shape (6, identities). `bins`, shape (4, identities, bins), are the rows of each cell by bin, from
    `first_bin` on, the first that overlaps the stretch. `profile` is that of all rows, and `max_range_rows` the rows of
    the largest range.
    """

    pairs: PairSums
    first_bin: int
    bins: Ints
    profile: Profile
    max_range_rows: int

    @property
    def n_rows(self) -> Ints:
        """Rows of each cell, in the order of `columns.FOUR_CELLS`: int64 array, shape (4, identities)."""
        (n_low, n_high), whole = self.pairs[:2], BACKGROUND_PAIR
        return np.stack([n_low[0], n_high[0], n_low[whole], n_high[whole]]).astype(np.int64)

    def of_identities(self, identities: range) -> RangeCounts:
        """Return the counts of some of the identities."""
        chosen = slice(identities.start, identities.stop)
        pairs = PairSums(*(column[:, chosen] for column in self.pairs))
        return self._replace(pairs=pairs, bins=self.bins[:, chosen])


def count_range(
    runs: Runs, memberships: Sequence[Block], known_masks: Sequence[int], edges: Floats | None
) -> RangeCounts:
    """Return all counts of one range: see `measure_range` for the parameters, and `count_bins` for the edges."""
    n_rows, pairs, profile = measure_range(runs, memberships, known_masks)
    first_bin, bins = (0, n_rows[:, :, None]) if edges is None else count_bins(runs, memberships, known_masks, edges)
    return RangeCounts(pairs, first_bin, bins, profile, profile.n_rows)


def combine(ranges: Iterable[RangeCounts], n_edges: int) -> RangeCounts:
    """Combine the counts of ranges, at least one, by ascending score; ranges without any row may be missing.

    `n_edges` is the number of edges that cut the score line into bins.
    """
    remaining = iter(ranges)
    first = next(remaining)
    pairs, profile, max_range_rows = first.pairs, first.profile, first.max_range_rows
    bins = np.zeros((*first.bins.shape[:2], n_edges + 1), np.int64)
    bins[:, :, first.first_bin : first.first_bin + first.bins.shape[2]] = first.bins
    for counts in remaining:
        pairs, lower, higher = pairs.merge(counts.pairs), profile, counts.profile
        profile = Profile(  # of two stretches of the score line that share no score
            lower.n_rows + higher.n_rows,
            lower.n_distinct + higher.n_distinct,
            max(lower.largest_tie, higher.largest_tie),
            min(lower.lowest, higher.lowest),
            max(lower.highest, higher.highest),
        )
        bins[:, :, counts.first_bin : counts.first_bin + counts.bins.shape[2]] += counts.bins
        max_range_rows = max(max_range_rows, counts.max_range_rows)
    return RangeCounts(pairs, 0, bins, profile, max_range_rows)


def count_bins(runs: Runs, memberships: Sequence[Block], known_masks: Sequence[int], edges: Floats) -> tuple[int, Ints]:
    """Return the first bin that a range overlaps, and the rows of every cell of every identity by bin from there on.

    Bin k holds the scores in [edge k - 1, edge k), bin 0 those below all edges. A range overlaps few bins, and blocks
    are sorted, so the cost is a search for each edge and a step for each membership. `edges` ascend, and the range has
    at least one row; else as for `measure_range`. The bins have the shape (4, identities, bins).
    """
    ends = [min(scores[0] for scores, _ in runs.values()), max(scores[-1] for scores, _ in runs.values())]
    first, last = (int(bin_) for bin_ in np.searchsorted(edges, ends, "right"))
    inner = edges[first:last]
    masks, which = np.unique(known_masks, return_inverse=True)
    known = np.zeros((2, len(masks), len(inner) + 1), np.int64)
    for key, (scores, counts) in runs.items():
        running = np.append(0, np.cumsum(counts))
        cuts = np.r_[0, np.searchsorted(scores, inner), len(scores)]
        known[key & 1, (masks == 0) | ((masks & (key >> 1)) != 0)] += np.diff(running[cuts])
    entries = np.zeros((4, len(known_masks), len(inner) + 1), np.int64)
    keys, scores, counts = list_entries(memberships)
    np.add.at(entries, (keys & 3, keys >> 2, np.searchsorted(inner, scores, "right")), counts)
    members, unknowns = entries[:2], entries[2:]
    return first, np.concatenate([members, known[:, which] - members - unknowns])
