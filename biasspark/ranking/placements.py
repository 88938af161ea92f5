"""What one range of the score line says of every identity, in integers.

For two cells (low, high) and a range of scores, three sums are enough: twice U, and the sums of squares of the doubled
placements of the rows of either cell (how many rows of the other it is rightly ordered with, times two, plus ties).
The subgroup of an identity is sparse, and so is what its background lacks of its *base* (the rows on which the source
of the identity is known): its members, and the rows on which it is unknown. The cells of a base are dense, but they
are the same for all identities of a source. So everything is asked at the scores of an identity's own entries, its
*points*: between two points, a placement against the identity's entries does not change. The cost is the number of
entries, not rows times identities. numpy only.

In place of scores there may be numbers of bins (``bins``). Two rows of one open bin are ordered in a way that nobody
knows: the sums can be had with all such pairs as ties, and, for the least and the most that they may be, with all of
them wrongly or rightly ordered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from biasspark.arrays import BigInts, Floats, Ints
from biasspark.columns import BACKGROUND_NEGATIVE, BACKGROUND_POSITIVE, CELL_PAIRS, FOUR_CELLS, NEGATIVE, POSITIVE
from biasspark.errors import InputError
from biasspark.ranking.blocks import Block, find_starts, merge_cells, merge_runs, order_entries
from biasspark.ranking.segments import Segments

CELLS_OF_PAIRS = tuple((FOUR_CELLS.index(low), FOUR_CELLS.index(high)) for low, high in CELL_PAIRS)
"""Places of the low and the high cell of each pair."""

NARROW_ROWS = int((2**63 / 8) ** (1 / 3)) - 1
"""Up to so many rows in a range no sum passes 63 bits: the largest, a cross term of placements, is at most 8 n³."""

MOST_ROWS_OF_A_LABEL = 2**30 - 1
"""More rows of one label in one range would make doubled placements, squared, pass 62 bits."""

WRONG, TIED, RIGHT = 0, 1, 2
"""How the pairs within an open bin are taken to be ordered: what each of them adds to doubled U."""


class PairSums(NamedTuple):
    """Sums over the pairs of a low and a high cell, an entry for each identity, as Python integers.

    Attributes
    ----------
    u_doubled
        2 x pairs with the high row's score above, + ties.
    low_square_sum, high_square_sum
        Sum over the rows of that cell of its doubled placement, squared.
    """

    u_doubled: BigInts
    low_square_sum: BigInts
    high_square_sum: BigInts

    def reversed(self, n_low: BigInts, n_high: BigInts) -> PairSums:
        """Return the sums with the cells exchanged; `n_low`, `n_high` are their sizes before.

        A doubled placement d against a cell of n rows becomes 2n - d. So U doubled becomes 2nm - U, and the sum of
        squares over the m rows becomes 4n²m - 4nU + S.
        """
        return PairSums(
            2 * n_low * n_high - self.u_doubled,
            4 * n_low * n_low * n_high - 4 * n_low * self.u_doubled + self.high_square_sum,
            4 * n_high * n_high * n_low - 4 * n_high * self.u_doubled + self.low_square_sum,
        )


class RangeSums(NamedTuple):
    """Sums of one range: an entry for each identity by number. ``(overall)``, number 0, has an empty subgroup.

    Attributes
    ----------
    cells
        Sizes of subgroup negatives, subgroup positives, background negatives and background positives.
    pairs
        In the order of `columns.CELL_PAIRS`.
    """

    cells: tuple[BigInts, ...]
    pairs: tuple[PairSums, ...]


def no_sums(size: int) -> RangeSums:
    """Return the sums of no rows, for so many identities."""
    cells = np.zeros((len(FOUR_CELLS), size), object)
    pairs = np.zeros((len(CELLS_OF_PAIRS), len(PairSums._fields), size), object)
    return RangeSums(tuple(cells), tuple(PairSums(*pair) for pair in pairs))


def list_pairs(identity: int) -> Iterator[tuple[int, tuple[str, str]]]:
    """Give the pairs of cells of an identity by number: the place of each in `CELLS_OF_PAIRS`, and the cells' names.

    ``(overall)`` has that of its background alone, which is the whole slice.
    """
    if identity:
        yield from enumerate(CELL_PAIRS)
    else:
        yield CELL_PAIRS.index((BACKGROUND_NEGATIVE, BACKGROUND_POSITIVE)), (NEGATIVE, POSITIVE)


class Profile(NamedTuple):
    """The shape of the scores of one range, all rows together."""

    n_rows: int
    n_distinct: int
    largest_tie: int
    lowest: float
    highest: float


@dataclass(frozen=True)
class Cell:
    """Distinct scores of a dense cell, ascending, and how many rows have each."""

    scores: Floats
    counts: Ints

    @cached_property
    def running(self) -> Ints:
        """Rows before each score, and last all rows."""
        return np.append(0, np.cumsum(self.counts))

    def below_and_at(self, scores: Floats) -> tuple[Ints, Ints]:
        """Return how many rows lie below each score, and how many have it."""
        place = np.searchsorted(self.scores, scores)
        inside = np.minimum(place, max(len(self.scores) - 1, 0))
        found = self.scores[inside] == scores if len(self.scores) else np.zeros(len(scores), bool)
        below = self.running[place]
        return below, np.where(found, self.running[place + found] - below, 0)


class Base:
    """The two dense cells of one base within a range, and their sums against each other."""

    def __init__(self, negative: Cell, positive: Cell, unordered: int = TIED) -> None:
        self.negative, self.positive = negative, positive
        self.n_negative, self.n_positive = int(negative.running[-1]), int(positive.running[-1])
        self.wide = self.n_negative + self.n_positive > NARROW_ROWS
        below, at = negative.below_and_at(positive.scores)
        self._ties = at
        tie = _weigh_ties(positive.scores, unordered)
        # What the positives' doubled placements add up to before each score; 2 x negatives x positives at the most.
        self.placed = np.append(0, np.cumsum(positive.counts * (2 * below + tie * at)))
        self.sums = PairSums(*(np.zeros(1, object) for _ in PairSums._fields))
        if len(at):
            whole = Segments(np.zeros(1, np.int64), len(at), wide=self.wide)
            self.sums = _sparse_above_dense(whole, positive.counts, below, at, tie)

    def profile(self) -> Profile:
        """Describe the scores of both cells together."""
        both = [cell for cell in (self.negative, self.positive) if len(cell.scores)]
        tied = self.positive.counts + self._ties
        largest = max((int(counts.max()) for counts in (self.negative.counts, tied) if len(counts)), default=0)
        distinct = len(self.negative.scores) + len(self.positive.scores) - int((self._ties > 0).sum())
        lowest, highest = min(cell.scores[0] for cell in both), max(cell.scores[-1] for cell in both)
        return Profile(self.n_negative + self.n_positive, distinct, largest, float(lowest), float(highest))


class Points(NamedTuple):
    """Distinct (identity, score) entries, ascending, and how many rows each stands for."""

    identity: Ints
    scores: Floats
    members: tuple[Ints, Ints]
    """Negatives and positives in the subgroup."""
    taken: tuple[Ints, Ints]
    """Negatives and positives that the background lacks: members and unknowns."""


def membership_key(identity: Ints, unknown: Ints, label: Ints) -> Ints:
    """Return the key under which a membership travels in a block."""
    return (identity << 2) | (unknown << 1) | label


def cell_key(pattern: Ints, label: Ints) -> Ints:
    """Return the key of a base cell: the nullable sources known on the row, as bits, and the label."""
    return (pattern << 1) | label


def measure_range(
    cells: Sequence[Block], memberships: Sequence[Block], base_masks: Sequence[int], unordered: int = TIED
) -> tuple[RangeSums, Profile]:
    """Place every row of a range against every cell.

    Parameters
    ----------
    cells, memberships : sequences of Block
        The range's part of the corpus, in any order and cut in any way.
    base_masks : sequence of int
        For every identity, the bits of the sources one of which must be known; 0 for all rows.
    unordered : {TIED, WRONG, RIGHT}
        How the pairs within an open bin are ordered, where the scores are numbers of bins. Between the sums with WRONG
        and those with RIGHT lie those of the scores themselves, and both may be those.

    Returns
    -------
    RangeSums, Profile
        Of the rows of this range alone; `combine` adds what lies below and above.
    """
    runs = {key: Cell(*run) for key, run in merge_cells(cells).items()}
    bases = {mask: Base(*merge_base(runs, mask), unordered) for mask in sorted(set(base_masks))}
    if max(bases[0].n_negative, bases[0].n_positive) > MOST_ROWS_OF_A_LABEL:
        raise InputError(
            f"corpus: more than {MOST_ROWS_OF_A_LABEL:,} rows of one label share one score or one narrow range. "
            "Placements among so many pass the integers that count them. Is that score a default for what was not "
            "scored? Filter it."
        )
    masks = np.array(base_masks, np.int64)
    sums = _without_entries(masks, bases)
    points = find_points(memberships)
    if len(points.identity):
        _add_entries(sums, points, masks, bases, _weigh_ties(points.scores, unordered))
    return sums, bases[0].profile()


def merge_base(runs: Mapping[int, Cell], mask: int) -> tuple[Cell, Cell]:
    """Return the negatives and the positives of the base of a mask, from cells by `cell_key`."""

    def cell(label: int) -> Cell:
        chosen = [run for key, run in runs.items() if key & 1 == label and (mask == 0 or key >> 1 & mask)]
        if len(chosen) == 1:
            return chosen[0]
        if not chosen:
            return Cell(np.empty(0), np.empty(0, np.int64))
        return Cell(*merge_runs([run.scores for run in chosen], [run.counts for run in chosen]))

    return cell(0), cell(1)


def find_points(memberships: Sequence[Block]) -> Points:
    """Bring the entries of all blocks in order."""
    runs = [run for block in memberships for run in block.cells()]
    if not runs:
        nothing = np.empty(0, np.int64)
        return Points(nothing, np.empty(0), (nothing, nothing), (nothing, nothing))
    keys = np.repeat([key for key, _, _ in runs], [len(scores) for _, scores, _ in runs])
    scores = np.concatenate([scores for _, scores, _ in runs])
    counts = np.concatenate([counts for _, _, counts in runs])
    order = order_entries(keys >> 2, scores)
    keys, scores, counts = keys[order], scores[order], counts[order]
    identity = keys >> 2
    first = find_starts(identity, scores)
    states = [np.add.reduceat(np.where(keys & 3 == state, counts, 0), first) for state in range(4)]
    members, unknowns = (states[0], states[1]), (states[2], states[3])
    taken = (members[0] + unknowns[0], members[1] + unknowns[1])
    return Points(identity[first], scores[first], members, taken)


def _without_entries(masks: Ints, bases: Mapping[int, Base]) -> RangeSums:
    """Return the sums of identities of which no row has an entry here: the background is the base."""
    sums = no_sums(len(masks))
    for mask, base in bases.items():
        here = masks == mask
        sums.cells[2][here], sums.cells[3][here] = base.n_negative, base.n_positive
        for column, value in zip(sums.pairs[3], base.sums, strict=True):
            column[here] = value[0]
    return sums


def _weigh_ties(scores: Floats, unordered: int) -> Ints:
    """Return what a pair of rows at each score adds to doubled U: 1, but what is said of pairs within an open bin."""
    weights = np.ones(len(scores), np.int64)
    if unordered != TIED:
        weights[scores % 2 == 0] = unordered  # open bins have the even numbers
    return weights


def _add_entries(sums: RangeSums, points: Points, masks: Ints, bases: Mapping[int, Base], tie: Ints) -> None:
    """Fill in the identities that have entries in the range."""
    numbers, starts = np.unique(points.identity, return_index=True)
    segments = Segments(starts, len(points.identity), wide=any(base.wide for base in bases.values()))
    dense = _ask_bases(points, masks[points.identity], bases)
    columns = _measure_points(segments, points, dense, [bases[mask] for mask in masks[numbers]], tie)
    for target, values in zip(sums.cells, columns.cells, strict=True):
        target[numbers] = values
    for pair, measured in zip(sums.pairs, columns.pairs, strict=True):
        for target, values in zip(pair, measured, strict=True):
            target[numbers] = values


class _Dense(NamedTuple):
    """What the base of each point's identity says at its score: rows below and at it, totals, placements below."""

    negative_below: Ints
    negative_at: Ints
    positive_below: Ints
    positive_at: Ints
    n_positive: Ints
    placed_below: Ints
    placed: Ints


def _ask_bases(points: Points, masks: Ints, bases: Mapping[int, Base]) -> _Dense:
    dense = _Dense(*(np.empty(len(masks), np.int64) for _ in _Dense._fields))
    for mask, base in bases.items():
        here = masks == mask
        scores = points.scores[here]
        dense.negative_below[here], dense.negative_at[here] = base.negative.below_and_at(scores)
        dense.positive_below[here], dense.positive_at[here] = base.positive.below_and_at(scores)
        dense.placed_below[here] = base.placed[np.searchsorted(base.positive.scores, scores)]
        dense.n_positive[here], dense.placed[here] = base.n_positive, base.placed[-1]
    return dense


def _measure_points(segments: Segments, points: Points, dense: _Dense, bases: Sequence[Base], tie: Ints) -> RangeSums:
    members_negative, members_positive = points.members
    taken_negative, taken_positive = points.taken
    background = (  # rows below and at each point
        (dense.negative_below - segments.before(taken_negative), dense.negative_at - taken_negative),
        (dense.positive_below - segments.before(taken_positive), dense.positive_at - taken_positive),
    )
    n_negative = np.array([base.n_negative for base in bases], object) - segments.total(taken_negative).astype(object)
    n_positive = np.array([base.n_positive for base in bases], object) - segments.total(taken_positive).astype(object)
    n_members_negative = segments.total(members_negative).astype(object)
    n_members_positive = segments.total(members_positive).astype(object)
    own = (segments.before(members_negative), members_negative)
    bpsn_upside_down = _sparse_above_dense(segments, members_negative, *background[1], RIGHT - tie)
    pairs = (
        _sparse_above_dense(segments, members_positive, *own, tie),
        bpsn_upside_down.reversed(n_positive, n_members_negative),
        _sparse_above_dense(segments, members_positive, *background[0], tie),
        _background_pair(segments, points, dense, bases, tie),
        _sparse_above_dense(segments, members_negative, *background[0], tie),
        _sparse_above_dense(segments, members_positive, *background[1], tie),
    )
    return RangeSums((n_members_negative, n_members_positive, n_negative, n_positive), pairs)


def _sparse_above_dense(segments: Segments, sparse: Ints, below: Ints, at: Ints, tie: Ints) -> PairSums:
    """Sum over pairs of a dense low cell and a sparse high cell, whose rows are at the points.

    `sparse` counts the high rows at each point, `below` and `at` the low rows below and at it. A low row between two
    points is rightly ordered with the sparse rows from the next point on. `tie` is what each pair at a point adds.
    """
    placement = 2 * below + tie * at
    onwards = 2 * segments.onwards(sparse)
    between = below - segments.previous(below + at)
    return PairSums(
        segments.dot(sparse, placement),
        segments.dot(between, onwards**2) + segments.dot(at, (onwards - (RIGHT - tie) * sparse) ** 2),
        segments.dot(sparse, placement**2),
    )


def _background_pair(segments: Segments, points: Points, dense: _Dense, bases: Sequence[Base], tie: Ints) -> PairSums:
    """Sum over pairs of background negatives and background positives: the base's sums less what is taken from it.

    A background positive's placement is its placement in the base, p, less that among the taken negatives, t, which
    changes at points only. So the sum of (p - t)² over all positives of the base needs, of every stretch between two
    points, how many there are and what their p add up to; the taken positives' own (p - t)² come off. The negatives
    likewise, seen from above.
    """
    taken_negative, taken_positive = points.taken
    negatives_above_all = dense.n_positive - dense.positive_below
    p = 2 * dense.negative_below + tie * dense.negative_at
    q = 2 * negatives_above_all - (RIGHT - tie) * dense.positive_at
    t_before = 2 * segments.before(taken_negative)
    t_at, t_after = t_before + tie * taken_negative, t_before + 2 * taken_negative
    s_before = 2 * segments.onwards(taken_positive)
    s_at = s_before - (RIGHT - tie) * taken_positive

    # Sums of placements in the base, below and at each point. Each positive below x is above all that its placement
    # counts; each negative below x is also below all positives from x on.
    positives_at = dense.positive_at * p
    negatives_below = dense.placed_below + 2 * dense.negative_below * negatives_above_all
    negatives_at = dense.negative_at * q

    base = [np.array(column, object) for column in zip(*(b.sums for b in bases), strict=True)]
    base_u, base_low, base_high = (np.concatenate(column) for column in base)
    dot = segments.dot
    u_doubled = base_u - dot(taken_positive, p) - dot(taken_negative, q) + dot(taken_positive, t_at)

    stretch = segments.following(dense.positive_below, dense.n_positive) - dense.positive_below - dense.positive_at
    placed = segments.following(dense.placed_below, dense.placed) - dense.placed_below - positives_at
    high = base_high - 2 * (dot(positives_at, t_at) + dot(placed, t_after))
    high += dot(dense.positive_at, t_at**2) + dot(stretch, t_after**2) - dot(taken_positive, (p - t_at) ** 2)

    stretch = dense.negative_below - segments.previous(dense.negative_below + dense.negative_at)
    placed = negatives_below - segments.previous(negatives_below + negatives_at)
    low = base_low - 2 * (dot(negatives_at, s_at) + dot(placed, s_before))
    low += dot(dense.negative_at, s_at**2) + dot(stretch, s_before**2) - dot(taken_negative, (q - s_at) ** 2)
    return PairSums(u_doubled, low, high)
