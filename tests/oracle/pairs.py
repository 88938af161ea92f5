"""U statistics counted pair by pair, in Python's integers of any size; shares no code with the product."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

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


def ordered_doubled(low: Example, high: Example) -> int:
    """Twice the pairs in which the high row scores above the low one, plus ties."""
    if high.score > low.score:
        return 2 * low.rows * high.rows
    return low.rows * high.rows if high.score == low.score else 0


def count_pairs(low: Sequence[Example], high: Sequence[Example]) -> Sums:
    of_low = [sum(ordered_doubled(one, other) for other in high) // one.rows for one in low]
    of_high = [sum(ordered_doubled(other, one) for other in low) // one.rows for one in high]
    return Sums(
        n_low=sum(one.rows for one in low),
        n_high=sum(one.rows for one in high),
        u_doubled=sum(ordered_doubled(one, other) for one in low for other in high),
        low_squares=sum(one.rows * placement**2 for one, placement in zip(low, of_low, strict=True)),
        high_squares=sum(one.rows * placement**2 for one, placement in zip(high, of_high, strict=True)),
    )


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
