"""Attributions, losses, crosses and influences by loops over all pairs; shares no code with the product."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Example(NamedTuple):
    """One row: its score, its label, whether it only estimates, and whatever tells groups."""

    score: float
    label: bool
    honest: bool = False
    group: str | None = None


def credit(row: Example, other: Example) -> float:
    """Return 1 where a positive and a negative are rightly ordered, 0 where not, one half for a tie."""
    if row.score == other.score:
        return 0.5
    return float((row.score > other.score) == row.label)


def opposite(row: Example, rows: Sequence[Example]) -> list[Example]:
    return [other for other in rows if other.label != row.label]


def attribution(row: Example, rows: Sequence[Example]) -> float:
    return math.fsum(credit(row, other) for other in opposite(row, rows)) / 2


def normalized(row: Example, rows: Sequence[Example]) -> float:
    return attribution(row, rows) / len(opposite(row, rows))


def auc(rows: Sequence[Example]) -> float:
    positives = [row for row in rows if row.label]
    return math.fsum(2 * normalized(row, rows) for row in positives) / len(positives)


def cross_entropy(row: Example) -> float:
    q = min(max(row.score, 1e-15), 1 - 1e-15)
    return -math.log(q if row.label else 1 - q)


def gini(row: Example) -> float:
    return 1 - row.score if row.label else row.score


def influences(inside: Sequence[bool], rows: Sequence[Example]) -> Floats:
    """Return the influence of every row on the mean normalised attribution of the rows inside, from all its credits."""
    scores, labels, is_in = (
        np.array([row.score for row in rows]),
        np.array([row.label for row in rows]),
        np.array(inside),
    )
    opposes = labels[:, None] != labels
    credits = np.where(scores[:, None] == scores, 0.5, (scores[:, None] > scores) == labels[:, None]) * opposes
    values = credits.sum(1) / 2 / opposes.sum(1)
    k = is_in.sum()
    found = np.where(is_in, (values - values[is_in].mean()) / k, 0.0)
    for label in (False, True):
        alike, others = labels == label, is_in & (labels != label)
        if others.any():
            placed = credits[np.ix_(alike, others)].mean(1) / 2
            found[alike] += others.sum() / k * (placed - values[others].mean()) / alike.sum()
    return found


def variance(inside: Sequence[bool], rows: Sequence[Example], baseline: Sequence[Example] | None = None) -> float:
    """Return the sum of squared influences, of a model or of its difference to a baseline."""
    own = influences(inside, rows)
    theirs = influences(inside, baseline) if baseline else np.zeros(len(rows))
    return math.fsum((own - theirs) ** 2)


def mean_of(value: Callable[[Example], float], rows: Sequence[Example]) -> float:
    return math.fsum(map(value, rows)) / len(rows)
