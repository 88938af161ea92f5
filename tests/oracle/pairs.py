"""U statistics counted pair by pair, in Python's integers of any size; shares no code with the product."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from tests.oracle import suite

CELLS = ("subgroup_negative", "subgroup_positive", "background_negative", "background_positive")
PAIRS = tuple(suite.PAIRS.values())

State = bool | None
"""In the identity, out of it, or unknown."""


class Example(NamedTuple):
    """So many rows of one score, one label and one state for each identity."""

    score: float
    positive: bool
    states: tuple[State, ...] = ()
    rows: int = 1


class Sums(NamedTuple):
    """What one pair of cells gives: sizes, 2 U, and the sums of squares of doubled placements of either cell."""

    n_low: int
    n_high: int
    u_doubled: int
    low_squares: int
    high_squares: int


def count_pairs(low: Sequence[Example], high: Sequence[Example]) -> Sums:
    pairs = suite.ordered_doubled([one.score for one in low], [one.score for one in high]).astype(object)
    n_low, n_high = (np.array([one.rows for one in side], object) for side in (low, high))
    of_low, of_high = (pairs * n_high).sum(axis=1), (pairs.T * n_low).sum(axis=1)
    squares = (of_low**2 * n_low).sum(), (of_high**2 * n_high).sum()
    return Sums(n_low.sum(), n_high.sum(), (of_low * n_low).sum(), *squares)


def cut_cells(examples: Iterable[Example], identity: int) -> dict[str, list[Example]]:
    """The four cells of an identity; rows on which it is unknown are in none."""
    cells: dict[str, list[Example]] = {cell: [] for cell in CELLS}
    for example in examples:
        state = example.states[identity]
        if state is not None:
            side, label = "subgroup" if state else "background", "positive" if example.positive else "negative"
            cells[f"{side}_{label}"].append(example)
    return cells


def count_identity(examples: Iterable[Example], identity: int) -> tuple[Sums, ...]:
    """The six pairs of cells of an identity."""
    cells = cut_cells(examples, identity)
    return tuple(count_pairs(cells[low], cells[high]) for low, high in PAIRS)


def cross(one: State, other: State) -> State:
    """Out where one side is out, else unknown where one side is unknown."""
    if one is False or other is False:
        return False
    return None if one is None or other is None else True


def cross_all(states: Sequence[State]) -> tuple[State, ...]:
    """The states themselves, then those of every pair: (1, 2), (1, 3), ..., (2, 3), ..."""
    return (*states, *(cross(one, other) for place, one in enumerate(states) for other in states[place + 1 :]))
