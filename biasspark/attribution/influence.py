"""The variance of the mean attribution of a set of rows, from sums over placements within the set. No Spark.

The attribution of a row depends on the rows of the other label, which are a sample as well. So each row of the slice
influences the mean of a set twice: as a row of the set, and as a row that its rows are compared with.

A set is the honest rows that meet a condition, or the rows of a named segment. For each label: n rows of the slice, of
which k are in the set. D is the doubled placement of a row among all rows of the other label, d that among those of the
set. A range knows D, but it knows d only within the range. Rows in other ranges increase all placements d of one label
by the same offset o, twice the rows of the set with the other label below (for positives) or above (for negatives):

    Σ(d + o) = Σd + k·o,   Σ(d + o)² = Σd² + 2o·Σd + k·o²,   ΣD·(d + o) = ΣD·d + o·ΣD.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import starmap
from typing import NamedTuple, TypeAlias

import numpy as np

from biasspark.arrays import BigInts, Flags, Ints
from biasspark.metrics.intervals import delong_part
from biasspark.ranking.counts import Counts
from biasspark.ranking.kernels.exact import dot
from biasspark.ranking.kernels.pair_sums import BACKGROUND_PAIR
from biasspark.ranking.kernels.row_block import RowBlock
from biasspark.ranking.kernels.sorted_runs import collapse, place_among

NEGATIVES, POSITIVES = 0, 1
"""The indices of the two labels."""


class Placed(NamedTuple):
    """Sums over the rows of one label, for a set of rows.

    n and k are rows of the label in the slice, and those in the set. `placed`, `inside`, `squares`, `crossed` and
    `inside_squares` are ΣD, Σd, ΣD², ΣD·d and Σd² over the rows of the set; the last two Σd and Σd² over all rows of
    the label.
    """

    n: int
    k: int
    placed: int
    inside: int
    squares: int
    crossed: int
    inside_squares: int
    inside_of_all: int
    inside_squares_of_all: int

    def square_sum(self, n_opposite: int, mean: Fraction, opposite_total: Fraction) -> Fraction:
        """Return k²·Σψ² over all rows of the label, where k is the number of rows of the set of both labels."""
        total = Fraction(self.placed, 4 * n_opposite)
        around_mean = Fraction(self.squares, 16 * n_opposite**2) - 2 * mean * total + self.k * mean**2
        both = Fraction(self.crossed, 16 * n_opposite) - opposite_total * total
        both -= mean * (Fraction(self.inside, 4) - self.k * opposite_total)
        compared = Fraction(self.inside_squares_of_all, 16) - self.n * opposite_total**2
        return around_mean + 2 * both / self.n + compared / self.n**2


PlacedSet: TypeAlias = Sequence[Placed]
"""The negatives and the positives of a set."""


def influence_variance(negatives: Placed, positives: Placed) -> float | None:
    """Return the variance of the mean normalized attribution of a set of rows, such as the honest ones of a segment.

    Let L be the set, k the number of its rows and t their mean attribution; let T⁺ and T⁻ be the sums of the
    attributions of its positives and of its negatives. The slice has p positives and n negatives. The influence of
    row i on the mean is

        ψ_i = 1[i ∈ L]·(a_i - t)/k + (k⁻/k)(g_i - t⁻)/p    for a positive; for a negative, with k⁺, h_i, t⁺ and n

    where g_i is half the share of the negatives of L that i is correctly ordered with. The variance is the sum of ψ_i²
    over all rows of the slice.

    Ties count one half. The placements may be those of one model, or linear in such, like the difference of those of
    two models. The result is at least 0, and rounded once: None if the slice lacks a label, so that no attribution is
    defined, or if L has fewer than two rows. If L has rows of one label only, no row of that label is compared with L:
    the second term of that label is 0.

    For the positives: D_i is the doubled placement among all n negatives, d_i that among those of L. So a_i = D_i/(4n),
    and (k⁻/k)(g_i - t⁻) = (d_i/4 - T⁻)/k, which does not divide by k⁻. Then

        k²·Σψ² = Σ_L (D/(4n) - t)² + (2/p)·Σ_L (D/(4n) - t)(d/4 - T⁻) + (1/p²)·Σ_all (d/4 - T⁻)²

    The negatives mirror this. Costs some fifty operations on integers, whatever the number of rows.
    """
    k = negatives.k + positives.k
    if k < 2 or not negatives.n or not positives.n:
        return None
    negative_total = Fraction(negatives.placed, 4 * positives.n)
    positive_total = Fraction(positives.placed, 4 * negatives.n)
    mean = (negative_total + positive_total) / k
    squares = positives.square_sum(negatives.n, mean, negative_total)
    squares += negatives.square_sum(positives.n, mean, positive_total)
    return float(squares / k**2)


def auc_within(negatives: Placed, positives: Placed) -> tuple[float | None, float | None]:
    """Return the AUC of the positives of a set against its negatives, and DeLong's variance, each rounded once.

    No AUC if a label has no rows in the set, no variance if it has fewer than two.
    """
    n_pairs = negatives.k * positives.k
    if not n_pairs:
        return None, None
    auc = float(Fraction(positives.inside, 2 * n_pairs))
    if min(negatives.k, positives.k) < 2:
        return auc, None
    low, high = (
        delong_part(side.k, opposite.k, positives.inside, side.inside_squares)
        for side, opposite in ((negatives, positives), (positives, negatives))
    )
    return auc, float(low + high)


# ---- sums over placements


def place_all(counts: Counts) -> dict[tuple[str, str], PlacedSet]:
    """Return the sums over all rows of each model and slice: every row is in the set."""
    sizes, sums = counts.cells[2:].astype(object), counts.sums[BACKGROUND_PAIR]
    placed: dict[tuple[str, str], PlacedSet] = {}
    for model, name, n, p, total, *squares in zip(*counts.groups[:2], *sizes, *sums, strict=True):
        both = zip((n, p), squares, strict=True)
        placed[model, name] = [Placed(k, k, total, total, one, one, one, total, one) for k, one in both]
    return placed


def place_in_sets(block: RowBlock, slice_number: int, sets: Sequence[Flags]) -> BigInts:
    """Return the sums of `Placed` over one range of a slice, given which cells are in each set.

    Their shape is (labels, sets, fields).
    """
    rows = block.rows_of(slice_number)
    index, label, placements = block.score_index[rows], block.label[rows], block.placed(slice_number, rows)
    chosen_rows = [np.flatnonzero(label == value) for value in (False, True)]
    # The rows of each label at or below every score, starting with 0.
    reached = [
        np.append(0, np.cumsum(np.bincount(index[chosen], minlength=len(block.score_starts)))) for chosen in chosen_rows
    ]
    cells = [block.cell[rows[chosen]] for chosen in chosen_rows]
    sums = np.zeros((2, len(sets), len(Placed._fields)), object)
    for number, inside in enumerate(sets):
        members = [chosen[inside[cell]] for chosen, cell in zip(chosen_rows, cells, strict=True)]
        scores = [index[chosen] for chosen in members]
        for side in (NEGATIVES, POSITIVES):
            d = place_among(scores[side], scores[1 - side])
            if side == NEGATIVES:
                d = 2 * len(scores[POSITIVES]) - d
            of_members = sum_placed(placements[members[side]], d)
            of_all = _sum_all(reached[side], scores[1 - side], from_above=side == NEGATIVES)
            sums[side, number] = [len(chosen_rows[side]), *of_members, *of_all]
    return sums


def sum_placed(placements: Ints, inside: Ints) -> list[int]:
    """Return the number of some rows of one label, and the sums over these of D, d, D², D·d and d²."""
    sums = int(placements.sum()), int(inside.sum())
    return [len(inside), *sums, dot(placements, placements), dot(placements, inside), dot(inside, inside)]


def _sum_all(reached: Ints, opposite: Ints, *, from_above: bool) -> tuple[int, int]:
    """Return Σd and Σd² over all rows of a label, given the scores of the rows of the set that have the other label.

    d changes only at these scores: rows at the t-th distinct score have d = 2·C_(t-1) + c_t, with c_t opposite rows at
    that score and C_t up to it, and rows between it and the next have d = 2·C_t. If `from_above`, d counts the opposite
    rows above a row instead: of m opposite rows, it is 2m less that from below. `reached`, shape (scores + 1,), counts
    the rows of the label below each score, the last entry all of them; `opposite` are ascending indices of scores.
    """
    if not len(opposite):
        return 0, 0
    distinct, at = collapse(opposite)
    below, up_to = reached[distinct], reached[distinct + 1]
    counted, between = np.cumsum(at), np.append(below[1:], reached[-1]) - up_to
    of_tied, of_between, tied = 2 * counted - at, 2 * counted, up_to - below
    total = int((tied * of_tied).sum() + (between * of_between).sum())
    squares, two_m, n = dot(tied, of_tied**2) + dot(between, of_between**2), 2 * len(opposite), int(reached[-1])
    return (two_m * n - total, two_m**2 * n - 2 * two_m * total + squares) if from_above else (total, squares)


def combine_ranges(ranges: Iterator[BigInts]) -> list[PlacedSet]:
    """Combine the results of `place_in_sets` for all ranges, by ascending score, to the sums of each set."""
    fields = np.moveaxis(np.array([*ranges]), -1, 0)
    n, k, placed, inside, squares, crossed, inside_squares, inside_of_all, squares_of_all = fields
    below = k[:, NEGATIVES].cumsum(axis=0) - k[:, NEGATIVES]
    above = k[:, POSITIVES].sum(axis=0) - k[:, POSITIVES].cumsum(axis=0)
    offset = 2 * np.stack([above, below], axis=1)
    inside_squares = inside_squares + 2 * offset * inside + k * offset**2
    squares_of_all = squares_of_all + 2 * offset * inside_of_all + n * offset**2
    inside, inside_of_all = inside + k * offset, inside_of_all + n * offset
    crossed = crossed + offset * placed
    shifted = n, k, placed, inside, squares, crossed, inside_squares, inside_of_all, squares_of_all
    return read_sets(np.stack(shifted, axis=-1).sum(axis=0))


def read_sets(sums: BigInts) -> list[PlacedSet]:
    """Return the sums of the negatives and of the positives of each set."""
    return [[*starmap(Placed, labels)] for labels in zip(*sums.tolist(), strict=True)]
