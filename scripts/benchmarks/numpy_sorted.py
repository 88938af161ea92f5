"""The suite in numpy, by hand, in one process: the scores of a model sorted once, identities placed by binary search.

Scores of negatives and of positives are sorted separately. An identity costs as much as its members: its background,
all rows less the members, follows from sums over all rows and from the steps between members.

The *placement* of a row is twice the rows of another cell that it is correctly ordered with, plus the ties.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc
import pyarrow.dataset as ds

from biasspark.arrays import Flags, Floats, Ints
from scripts.benchmarks.task import (
    COLUMNS,
    IDENTITY_NAMES,
    LABEL,
    MODELS,
    PAIRS,
    THRESHOLD,
    Outcome,
    Statistic,
    list_numbers,
    parse_task,
)


class Rows(NamedTuple):
    """The corpus in memory: labels, the scores of each model, the numbers of the rows in each identity."""

    positive: Flags
    scores: dict[str, Floats]
    members: dict[str, Ints]


class Sums(NamedTuple):
    """The placements of a cell: their sum and the sum of their squares."""

    plain: int
    squares: int

    def without(self, other: Sums) -> Sums:
        """Subtract the placements of some of the rows."""
        return Sums(self.plain - other.plain, self.squares - other.squares)


def measure_corpus(corpus: str) -> Outcome:
    rows = read_rows(corpus)
    statistics: dict[tuple[str, str, str], Statistic] = {}
    for model, scores in rows.scores.items():
        ranked = RankedModel(scores[~rows.positive], scores[rows.positive])
        for identity, members in rows.members.items():
            chosen, positive = scores[members], rows.positive[members]
            pairs = ranked.measure(np.sort(chosen[~positive]), np.sort(chosen[positive]))
            statistics |= {(model, identity, metric): pair for metric, pair in zip(PAIRS, pairs, strict=True)}
    return Outcome(list_numbers(statistics))


def read_rows(corpus: str) -> Rows:
    """Read the corpus a batch at a time; of the annotations keep only the members."""
    positive: list[Flags] = []
    scores: dict[str, list[Floats]] = {model: [] for model in MODELS}
    members: dict[str, list[Ints]] = {name: [] for name in IDENTITY_NAMES}
    n_rows = 0
    for batch in ds.dataset(corpus).to_batches(columns=list(COLUMNS)):
        annotation = batch.column(IDENTITY_NAMES[0])
        rows = batch.filter(pc.is_valid(annotation)) if annotation.null_count else batch
        positive.append(rows.column(LABEL).to_numpy() >= THRESHOLD)
        for model in MODELS:
            scores[model].append(rows.column(model).to_numpy())
        for name in IDENTITY_NAMES:
            members[name].append(np.flatnonzero(rows.column(name).to_numpy() >= THRESHOLD) + n_rows)
        n_rows += len(rows)
    return Rows(
        np.concatenate(positive),
        {model: np.concatenate(parts) for model, parts in scores.items()},
        {name: np.concatenate(parts) for name, parts in members.items()},
    )


class Steps:
    """How the placement over some sorted scores rises along the score line: at each distinct one, and after it."""

    def __init__(self, scores: Floats) -> None:
        self.points, counts = np.unique(scores, return_counts=True)
        self.after = 2 * np.cumsum(counts)
        self.at = self.after - counts
        self.top = 2 * len(scores)

    def over(self, cell: Floats) -> Sums:
        """Sums over a sorted cell of its placements over these scores."""
        below, up_to = (np.searchsorted(cell, self.points, side) for side in ("left", "right"))
        at, after = self._spread(below, up_to, len(cell))
        return Sums(dot(at, self.at) + dot(after, self.after), dot(at, self.at**2) + dot(after, self.after**2))

    def under(self, cell: Floats) -> Sums:
        """Sums over a sorted cell of its placements under these scores."""
        plain, squares = self.over(cell)
        most = self.top * len(cell)
        return Sums(most - plain, self.top * most - 2 * self.top * plain + squares)

    def weigh(self, below: Ints, up_to: Ints, total: int) -> int:
        """Sum over rows of a weight times the placement over these scores.

        The weight of all rows is `total`, that of the rows below and up to each point `below` and `up_to`.
        """
        at, after = self._spread(below, up_to, total)
        return dot(at, self.at) + dot(after, self.after)

    def _spread(self, below: Ints, up_to: Ints, total: int) -> tuple[Ints, Ints]:
        """Return the amounts at each point, and those between it and the next."""
        return up_to - below, np.append(below[1:], [total] * min(1, len(below))) - up_to


class RankedModel:
    """The sorted scores of a model, and the sums over all its rows."""

    def __init__(self, negatives: Floats, positives: Floats) -> None:
        self.negatives, self.positives = np.sort(negatives), np.sort(positives)
        placements = place_rows(self.positives, self.negatives)
        self.placed = np.append(0, np.cumsum(placements))
        self.high, self.low = sums_of(placements), Steps(self.positives).under(self.negatives)

    def measure(self, a: Floats, b: Floats) -> list[Statistic]:
        """Return the U statistics of an identity, sorted negatives `a` and positives `b`, in the order of `PAIRS`."""
        rest_low, rest_high = len(self.negatives) - len(a), len(self.positives) - len(b)
        steps_a, steps_b = Steps(a), Steps(b)
        over_a, under_b = steps_a.over(self.positives), steps_b.under(self.negatives)
        a_under_b, b_over_a = 2 * len(b) - place_rows(a, b), place_rows(b, a)
        a_under_rest = sums_of(2 * len(self.positives) - place_rows(a, self.positives) - a_under_b)
        b_over_rest = sums_of(place_rows(b, self.negatives) - b_over_a)
        inside_low, inside_high = sums_of(a_under_b), sums_of(b_over_a)
        # All pairs of the corpus less those with a member.
        doubled = self.high.plain - a_under_rest.plain - b_over_rest.plain - inside_high.plain
        low = self.low.squares - 2 * self._cross_low(steps_b) + under_b.squares - a_under_rest.squares
        high = self.high.squares - 2 * self._cross_high(steps_a) + over_a.squares - b_over_rest.squares
        return [
            pair(len(a), len(b), inside_low, inside_high),
            pair(len(a), rest_high, a_under_rest, over_a.without(inside_high)),
            pair(rest_low, len(b), under_b.without(inside_low), b_over_rest),
            Statistic(rest_low, rest_high, doubled, low, high),
            measure_gap(a, self.negatives, steps_a),
            measure_gap(b, self.positives, steps_b),
        ]

    def _cross_high(self, steps: Steps) -> int:
        """Sum over all positives of placement over all negatives x placement over some."""
        below, up_to = (np.searchsorted(self.positives, steps.points, side) for side in ("left", "right"))
        return steps.weigh(self.placed[below], self.placed[up_to], self.high.plain)

    def _cross_low(self, steps: Steps) -> int:
        """Sum over all negatives of placement under all positives x placement under some.

        What the negatives up to a point add up to is what the positives up to it do, and their pairs with the others.
        """
        sums = []
        for side in ("left", "right"):
            n, p = (np.searchsorted(cell, steps.points, side) for cell in (self.negatives, self.positives))
            sums.append(self.placed[p] + 2 * n * (len(self.positives) - p))
        return steps.top * self.low.plain - steps.weigh(sums[0], sums[1], self.low.plain)


def measure_gap(members: Floats, cell: Floats, steps: Steps) -> Statistic:
    """Place the rows of a cell that are members over the rest of it."""
    among_members = place_rows(members, members)
    inside = sums_of(place_rows(members, cell) - among_members)
    outside = steps.under(cell).without(sums_of(steps.top - among_members))
    return pair(len(cell) - len(members), len(members), outside, inside)


def pair(n_low: int, n_high: int, low: Sums, high: Sums) -> Statistic:
    """Build a U statistic; both cells see the same pairs."""
    assert low.plain == high.plain
    return Statistic(n_low, n_high, high.plain, low.squares, high.squares)


def place_rows(rows: Floats, cell: Floats) -> Ints:
    """Return the placement of each row over a sorted cell."""
    return np.searchsorted(cell, rows, "left") + np.searchsorted(cell, rows, "right")


def sums_of(placements: Ints) -> Sums:
    return Sums(int(placements.sum()), dot(placements, placements))


def dot(first: Ints, second: Ints) -> int:
    """Sum of products, in long doubles: 64 bits overflow at some million rows, and 53 are too few to subtract."""
    return int(np.dot(first.astype(np.longdouble), second.astype(np.longdouble)))


if __name__ == "__main__":
    arguments = parse_task(__doc__)
    measure_corpus(arguments.corpus).write(arguments.outcome)
