"""Trials of the class-skew experiment within one range of the score line: a random part of one cell is kept (Pinned).

Dropping rows changes no order of scores, so a trial ranks nothing anew: U over the rows that are kept is a sum over
their placements among all rows. The rows of the cell are numbered by their place in the order of scores, over the whole
score line, and what a trial keeps is a subset of places: rows that tie have one placement, so nothing depends on how
the rows lie. The cost of a trial is the rows kept, and never more than the distinct scores of the range. numpy only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from biasspark.arrays import Floats, Ints
from biasspark.columns import (
    BACKGROUND_NEGATIVE,
    BACKGROUND_POSITIVE,
    FOUR_CELLS,
    NEGATIVE,
    SUBGROUP_NEGATIVE,
    SUBGROUP_POSITIVE,
)
from biasspark.config import PinnedSkew
from biasspark.errors import corpus_changed
from biasspark.ranking.blocks import Block, merge_cells
from biasspark.ranking.placements import Cell, find_points, merge_base
from biasspark.ranking.subsets import Subset, draw_places, stable_number


class Standing(NamedTuple):
    """Rows of a cell in lower ranges, in this one, and in all."""

    below: int
    here: int
    total: int

    @property
    def above(self) -> int:
        """Rows in higher ranges."""
        return self.total - self.below - self.here


@dataclass(frozen=True)
class SkewTrials:
    """What fixes the rows that the trials of a model and slice keep, by names: what else is measured changes none."""

    skew: PinnedSkew
    model: str
    slice: str

    def subsets(self, n_rows: int) -> Iterator[Subset]:
        """Give the places of the cell that each trial keeps, 1 to `trials`."""
        names = (self.model, self.slice, self.skew.identity, self.skew.cell)
        key = (self.skew.seed, *map(stable_number, names))
        n_kept = n_rows - self.skew.n_dropped(n_rows)
        return (Subset(n_rows, n_kept, (*key, trial)) for trial in range(1, self.skew.trials + 1))


def find_cells(cells: Sequence[Block], memberships: Sequence[Block], base_mask: int, identity: int) -> dict[str, Cell]:
    """Return the four cells of an identity within a range, by name; a score may stand there for no row.

    Parameters
    ----------
    cells, memberships : sequences of Block
        The range's part of the corpus, in any order and cut in any way.
    base_mask : int
        The bits of the sources one of which must be known; 0 for all rows.
    identity : int
        Its number.
    """
    base = merge_base({key: Cell(*run) for key, run in merge_cells(cells).items()}, base_mask)
    points = find_points(memberships)
    own = points.identity == identity
    scores = points.scores[own]
    return {
        SUBGROUP_NEGATIVE: Cell(scores, points.members[0][own]),
        SUBGROUP_POSITIVE: Cell(scores, points.members[1][own]),
        BACKGROUND_NEGATIVE: _take(base[0], scores, points.taken[0][own]),
        BACKGROUND_POSITIVE: _take(base[1], scores, points.taken[1][own]),
    }


def sum_kept(
    cells: Mapping[str, Cell], standings: Mapping[str, Standing], trials: SkewTrials
) -> Iterator[tuple[int, int]]:
    """Draw the part of every trial that lies in a range, and place it among all rows of the other label.

    Parameters
    ----------
    cells : mapping of str to Cell
        What `find_cells` returned.
    standings : mapping of str to Standing
        Where the four cells stand, as the ranking counted them.

    Yields
    ------
    int, int
        Of each trial twice U, 2 x pairs with the positive above, + ties, between the rows of the cell that it keeps in
        this range and all rows of the other label: those of the subgroup, and those of the background.

    Raises
    ------
    InputError
        If the range does not hold the rows that the ranking counted.

    Notes
    -----
    A range has fewer than 2^30 rows of one label (`placements.MOST_ROWS_OF_A_LABEL`), so within it twice U stays below
    2^61.
    """
    _refuse_other_rows(cells, standings)
    cell, (below, here, total) = cells[trials.skew.cell], standings[trials.skew.cell]
    other_label = [name for name in FOUR_CELLS if name.endswith(NEGATIVE) != trials.skew.cell.endswith(NEGATIVE)]
    placed = [_place(cell, cells[name], standings[name], name.endswith(NEGATIVE)) for name in other_label]
    largest = int(cell.counts.max(initial=0))

    def runs_of(places: Ints) -> Ints:
        return np.searchsorted(cell.running, places - below, "right") - 1

    def alike(a: int, b: int) -> bool:
        first, last = runs_of(np.array([a, b - 1])) if b - a <= largest else (0, 1)
        return bool(first == last)

    for subset in trials.subsets(total):
        places, counts = draw_places(subset, below, below + here, alike)
        runs, n_kept = runs_of(places), int(counts.sum())
        of_subgroup, of_background = (int(counts @ inside[runs]) + n_kept * beyond for inside, beyond in placed)
        yield of_subgroup, of_background


def _take(base: Cell, scores: Floats, taken: Ints) -> Cell:
    """Return a cell of the base less what is taken from it at some scores, each of them there once."""
    some, counts = taken > 0, base.counts.copy()
    counts[np.searchsorted(base.scores, scores[some])] -= taken[some]
    return Cell(base.scores, counts)


def _place(cell: Cell, other: Cell, standing: Standing, is_above: bool) -> tuple[Ints, int]:
    """Return the doubled placement of a row at each score of a cell, among another's rows in the range and beyond."""
    below, at = other.below_and_at(cell.scores)
    if is_above:
        return 2 * below + at, 2 * standing.below
    return 2 * (other.running[-1] - below) - at, 2 * standing.above


def _refuse_other_rows(cells: Mapping[str, Cell], standings: Mapping[str, Standing]) -> None:
    """Refuse a range with other rows than the ranking counted: its parts may have been read from the corpus again."""
    for name, cell in cells.items():
        n_rows, n_ranked = int(cell.running[-1]), standings[name].here
        if n_rows != n_ranked:
            raise corpus_changed(
                f"a range of scores has {n_rows:,} rows of {name}, and had {n_ranked:,} when it was ranked"
            )
