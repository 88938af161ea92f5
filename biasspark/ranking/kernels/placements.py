"""The placements of all rows of one score range, summed for every pair of cells of every identity. numpy only.

The *known population* of an identity is the rows on which its source is known. Its background is that population
without the members, and without the rows on which this identity is unknown. These removed rows are the *entries* of the
identity, and they are sparse. Known populations are dense, but there are few: one for each set of sources. A placement
among the entries changes only at their scores, so everything is looked up at these scores, in the sorted scores of the
known population. The cost is the number of entries, not rows times identities.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from biasspark.arrays import BigInts, Floats, Ints
from biasspark.ranking.kernels.blocks import Block, Runs, list_entries
from biasspark.ranking.kernels.pair_sums import BACKGROUND_PAIR, N_CELLS, N_PAIRS, PairSums
from biasspark.ranking.kernels.sorted_runs import Segments, doubled_placement, find_starts, merge_runs, order_entries

NARROW_ROWS = int((2**63 / 8) ** (1 / 3)) - 1
"""With at most this many rows in a range, no sum exceeds 63 bits: the largest, a cross term, is at most 8 n³."""

MAX_ROWS_OF_A_LABEL = 2**30 - 1
"""The most in one range: the square of a doubled placement among more rows would exceed 62 bits."""


class Profile(NamedTuple):
    """The shape of the scores of one range, all rows together."""

    n_rows: int
    n_distinct: int
    largest_tie: int
    lowest: float
    highest: float


class Cell:
    """Distinct scores of a cell, ascending, and how many rows have each."""

    def __init__(self, scores: Floats, counts: Ints) -> None:
        self.scores, self.counts = scores, counts
        self.running = np.append(0, np.cumsum(counts))  # rows below each score, followed by the number of all rows
        self.size = int(self.running[-1])

    def below_and_at(self, scores: Floats) -> tuple[Ints, Ints, Ints]:
        """Return how many distinct scores lie below each score, how many rows, and how many rows have it."""
        index = np.searchsorted(self.scores, scores)
        inside = np.minimum(index, max(len(self.scores) - 1, 0))
        hit = self.scores[inside] == scores if len(self.scores) else np.zeros(len(scores), bool)
        below = self.running[index]
        return index, below, np.where(hit, self.running[index + hit] - below, 0)


class KnownPopulation:
    """The negatives and positives of a range on which a source of a mask is known, and the sums of their pairs."""

    def __init__(self, negative: Cell, positive: Cell) -> None:
        self.negative, self.positive = negative, positive
        self.wide = negative.size + positive.size > NARROW_ROWS
        _, below, at = negative.below_and_at(positive.scores)
        self._ties = at
        # Sum of the positives' doubled placements below each score: at most 2 x negatives x positives.
        self.placed = np.append(0, np.cumsum(positive.counts * doubled_placement(below, at)))
        self.sums = [np.zeros(1, object)] * 3
        if len(at):
            whole = Segments(np.zeros(1, np.int64), len(at), wide=self.wide)
            self.sums = _sum_pair(whole, positive.counts, below, at)

    def profile(self) -> Profile:
        """Describe the scores of both cells together."""
        both = [cell for cell in (self.negative, self.positive) if len(cell.scores)]
        tied = self.positive.counts + self._ties
        largest = max((int(counts.max()) for counts in (self.negative.counts, tied) if len(counts)), default=0)
        distinct = len(self.negative.scores) + len(self.positive.scores) - int((self._ties > 0).sum())
        lowest, highest = min(cell.scores[0] for cell in both), max(cell.scores[-1] for cell in both)
        return Profile(self.negative.size + self.positive.size, distinct, largest, float(lowest), float(highest))


class Entries(NamedTuple):
    """Distinct (identity, score) of the entries of a range, ascending, and how many rows each stands for.

    `members` are the negatives and positives in the subgroup, `removed` those that are removed from the known
    population to get the background: members and unknowns.
    """

    identity: Ints
    scores: Floats
    members: tuple[Ints, Ints]
    removed: tuple[Ints, Ints]


def measure_range(
    runs: Runs, memberships: Sequence[Block], known_masks: Sequence[int]
) -> tuple[Ints, PairSums, Profile]:
    """Place every row of a range among every cell: return the rows of each cell, the sums of pairs, and the profile.

    `runs` are keyed by `cell_key`, blocks by `membership_key`, in any order and cut in any way. There are at most
    `MAX_ROWS_OF_A_LABEL` rows of either label. `known_masks` has for every identity the bits of the sources of which
    one must be known; 0 for all rows. Rows are int64, shape (4, identities), in the order of `columns.FOUR_CELLS`. Sums
    have the shape (6, identities), for the rows of this range alone: `PairSums.merge` adds the rows below and above.
    """

    @cache
    def population_of(keys: tuple[int, ...]) -> KnownPopulation:
        return KnownPopulation(*known_cells({key: runs[key] for key in keys}, 0))

    keys_of = {mask: tuple(key for key in runs if mask == 0 or key >> 1 & mask) for mask in sorted({0, *known_masks})}
    populations = {mask: population_of(keys) for mask, keys in keys_of.items()}  # often the same for several masks
    masks = np.array(known_masks, np.int64)
    n_rows, sums = np.zeros((N_CELLS, len(masks)), np.int64), np.zeros((3, N_PAIRS, len(masks)), object)
    for mask, population in populations.items():  # without entries, the background is the known population
        chosen = masks == mask
        n_rows[2, chosen], n_rows[3, chosen] = population.negative.size, population.positive.size
        sums[:, BACKGROUND_PAIR, chosen] = np.stack(population.sums)
    entries = merge_entries(memberships)
    if len(entries.identity):
        _add_entries(n_rows, sums, entries, masks, populations)
    return n_rows, PairSums.of_cells(n_rows, sums), populations[0].profile()


def known_cells(runs: Runs, mask: int) -> tuple[Cell, Cell]:
    """Return the negatives and the positives on which a source of the mask is known, from cells by `cell_key`."""

    def cell(label: int) -> Cell:
        chosen = [run for key, run in runs.items() if key & 1 == label and (mask == 0 or key >> 1 & mask)]
        return Cell(*merge_runs(*zip(*chosen, strict=True))) if chosen else Cell(np.empty(0), np.empty(0, np.int64))

    return cell(0), cell(1)


def merge_entries(memberships: Sequence[Block]) -> Entries:
    """Sort the entries of all blocks, and add up the counts of equal (identity, score)."""
    keys, scores, counts = list_entries(memberships)
    order = order_entries(keys >> 2, scores)
    keys, scores, counts = keys[order], scores[order], counts[order]
    identity = keys >> 2
    first = find_starts(identity, scores)
    if not len(first):
        return Entries(keys, scores, (keys, keys), (keys, keys))
    member_negative, member_positive, unknown_negative, unknown_positive = (
        np.add.reduceat(np.where(keys & 3 == state, counts, 0), first) for state in range(4)
    )
    removed = (member_negative + unknown_negative, member_positive + unknown_positive)
    return Entries(identity[first], scores[first], (member_negative, member_positive), removed)


def _add_entries(
    n_rows: Ints, sums: BigInts, entries: Entries, masks: Ints, populations: Mapping[int, KnownPopulation]
) -> None:
    """Fill in the identities that have entries in the range."""
    numbers, starts = np.unique(entries.identity, return_index=True)
    wide = any(population.wide for population in populations.values())
    segments = Segments(starts, len(entries.identity), wide=wide)
    known = _look_up(entries, masks[entries.identity], populations)
    members = [segments.total(column) for column in entries.members]
    removed = [segments.total(column) for column in entries.removed]
    n_rows[:, numbers] = [*members, n_rows[2, numbers] - removed[0], n_rows[3, numbers] - removed[1]]
    sums[:, :, numbers] = np.stack(
        _sum_pairs(segments, entries, known, n_rows[:, numbers].astype(object), sums[:, BACKGROUND_PAIR, numbers]),
        axis=1,
    )


class _Known(NamedTuple):
    """The known population of each entry's identity, at the score of the entry.

    Rows of each label below the score and at it; all positives; and the sum of the doubled placements of the positives
    below the score, and of all positives.
    """

    negatives_below: Ints
    negatives_at: Ints
    positives_below: Ints
    positives_at: Ints
    n_positive: Ints
    placed_below: Ints
    placed: Ints


def _look_up(entries: Entries, masks: Ints, populations: Mapping[int, KnownPopulation]) -> _Known:
    known = _Known(*(np.empty(len(masks), np.int64) for _ in _Known._fields))
    for mask, population in populations.items():
        chosen = masks == mask
        scores = entries.scores[chosen]
        _, known.negatives_below[chosen], known.negatives_at[chosen] = population.negative.below_and_at(scores)
        index, known.positives_below[chosen], known.positives_at[chosen] = population.positive.below_and_at(scores)
        known.placed_below[chosen] = population.placed[index]
        known.n_positive[chosen], known.placed[chosen] = population.positive.size, population.placed[-1]
    return known


def _sum_pairs(
    segments: Segments, entries: Entries, known: _Known, n_rows: BigInts, population_sums: BigInts
) -> list[BigInts]:
    """Return the sums of the six pairs of cells, each of shape (3, identities), in their order."""
    member_negative, member_positive = entries.members
    removed_negative, removed_positive = entries.removed
    subgroup_negative = (segments.before(member_negative), member_negative)  # rows below and at each entry
    background_negative = (
        known.negatives_below - segments.before(removed_negative),
        known.negatives_at - removed_negative,
    )
    background_positive = (
        known.positives_below - segments.before(removed_positive),
        known.positives_at - removed_positive,
    )
    # Subgroup negatives are the sparse cell here, and sparse rows are the high ones of `_sum_pair`.
    positives_below_negatives = _sum_pair(segments, member_negative, *background_positive)
    bpsn = PairSums.of(n_rows[3], n_rows[0], *positives_below_negatives).exchanged()
    return [
        np.stack(sums)
        for sums in (
            _sum_pair(segments, member_positive, *subgroup_negative),
            bpsn[2:],
            _sum_pair(segments, member_positive, *background_negative),
            _sum_background(segments, entries, known, population_sums),
            _sum_pair(segments, member_negative, *background_negative),
            _sum_pair(segments, member_positive, *background_positive),
        )
    ]


def _sum_pair(segments: Segments, high: Ints, below: Ints, at: Ints) -> list[BigInts]:
    """Return 2U, Σ_low d² and Σ_high d² of a low cell and of a sparse high cell, whose rows are at the entries.

    A low row at an entry has that entry's placement counted from above: 2·(high rows from it on) less its ties. A low
    row between two entries is correctly ordered with the high rows from the next entry on.

    `high` are the high rows at each entry, `below` and `at` the low rows below each entry, and at it.
    """
    placement = doubled_placement(below, at)
    onwards = 2 * segments.onwards(high)
    between = below - segments.previous(below + at)
    return [
        segments.dot(high, placement),
        segments.dot(between, onwards**2) + segments.dot(at, (onwards - high) ** 2),
        segments.dot(high, placement**2),
    ]


def _sum_background(segments: Segments, entries: Entries, known: _Known, population_sums: BigInts) -> list[BigInts]:
    """Return 2U, Σ_low d² and Σ_high d² of background negatives and background positives.

    The background is the known population less the removed rows. A background positive has the doubled placement
    p - t, with p its placement among the population's negatives, and t that among the removed ones. So

        2U = Σ_population p - Σ_removed positives p - Σ_removed negatives q + Σ_removed positives t,

    with q the placement of a negative among the population's positives, counted from above: pairs of two removed rows
    are subtracted twice, so they are added once. For the squares see `_sum_squares`; those of the negatives are the
    same sums counted from above, with q and s in place of p and t.

    `population_sums` are the same sums of the known populations, as Python integers, shape (3, identities).
    """
    removed_negative, removed_positive = entries.removed
    negatives_to_point = known.negatives_below + known.negatives_at
    positives_from_point = known.n_positive - known.positives_below
    p = doubled_placement(known.negatives_below, known.negatives_at)
    q = 2 * positives_from_point - known.positives_at
    t_below = segments.before(removed_negative)
    t = doubled_placement(t_below, removed_negative)
    s_from_point = segments.onwards(removed_positive)
    s = 2 * s_from_point - removed_positive
    dot = segments.dot
    two_u = population_sums[0] - dot(removed_positive, p) - dot(removed_negative, q) + dot(removed_positive, t)

    # Positives between an entry and the next one lie above all removed negatives up to the entry.
    p_at = known.positives_at * p
    high_squares = population_sums[2] + _sum_squares(
        segments,
        at=(known.positives_at, p, t),
        between=(
            segments.following(known.positives_below, known.n_positive) - known.positives_below - known.positives_at,
            segments.following(known.placed_below, known.placed) - known.placed_below - p_at,
            2 * (t_below + removed_negative),
        ),
        removed=removed_positive,
    )
    # Negatives between an entry and the previous one lie below all removed positives from the entry on. Positives below
    # a score are paired with the negatives that their placements count, and each negative below the score also lies
    # below the positives from the score on. So the negatives' placements up to a score add up to `q_below`.
    q_below = known.placed_below + 2 * known.negatives_below * positives_from_point
    q_at = known.negatives_at * q
    low_squares = population_sums[1] + _sum_squares(
        segments,
        at=(known.negatives_at, q, s),
        between=(
            known.negatives_below - segments.previous(negatives_to_point),
            q_below - segments.previous(q_below + q_at),
            2 * s_from_point,
        ),
        removed=removed_negative,
    )
    return [two_u, low_squares, high_squares]


def _sum_squares(
    segments: Segments, *, at: tuple[Ints, Ints, Ints], between: tuple[Ints, Ints, Ints], removed: Ints
) -> BigInts:
    """Return Σ_background (p - t)² less Σ_population p².

    Σ_population (p - t)² = Σp² - 2·Σp·t + Σt². As t changes only at entries, this needs the rows of the population at
    each entry and between it and its neighbor, and the sums of their p. The squares of the removed rows, which are at
    the entries, are subtracted.

    `at` are the rows of the population at each entry, and their p and t; `between` the rows between each entry and its
    neighbor, the sum of their p, and their t; `removed` the removed rows at each entry.
    """
    dot = segments.dot
    n_at, p, t = at
    n_between, p_between, t_between = between
    squares: BigInts = (
        -2 * (dot(n_at * p, t) + dot(p_between, t_between))
        + (dot(n_at, t**2) + dot(n_between, t_between**2))
        - dot(removed, (p - t) ** 2)
    )
    return squares
