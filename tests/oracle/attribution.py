"""Attributions, losses, crosses and influences by loops over all pairs; shares no code with the product."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Example(NamedTuple):
    """One row: its score, its label, and what else is known of it.

    Attributes
    ----------
    honest
        Whether it only estimates.
    bins, groups
        By feature and grouping; 0 is NULL.
    slices, segments, pairs
        Whether it is in each, slices without the first, in which all are, and pairs on the side of its label.
    draw
        The hash that draws it; None if no row is drawn.
    baseline
        The score of another model; None if there is none.
    """

    score: float
    label: bool
    honest: bool = False
    bins: tuple[int, ...] = ()
    slices: tuple[bool, ...] = ()
    segments: tuple[bool, ...] = ()
    groups: tuple[int, ...] = ()
    pairs: tuple[bool, ...] = ()
    draw: int | None = None
    baseline: float | None = None

    def in_slice(self, number: int) -> bool:
        return not number or self.slices[number - 1]

    def meets(self, condition: Mapping[int, frozenset[int]]) -> bool:
        return all(self.bins[feature] in bins for feature, bins in condition.items())

    @property
    def of_baseline(self) -> Example:
        assert self.baseline is not None
        return self._replace(score=self.baseline)


def credits_of(rows: Sequence[Example], among: Sequence[Example]) -> Floats:
    """Return 1 where two rows of different labels are rightly ordered, one half for a tie, and 0 elsewhere."""
    (scores, labels), (other_scores, other_labels) = (
        (np.array([row.score for row in side]), np.array([row.label for row in side], bool)) for side in (rows, among)
    )
    ordered = np.sign((scores[:, None] - other_scores) * np.where(labels, 1, -1)[:, None])
    credits: Floats = (1 + ordered) / 2 * (labels[:, None] != other_labels)
    return credits


def attribution(row: Example, rows: Sequence[Example]) -> float:
    return float(credits_of([row], rows).sum()) / 2


def normalized(row: Example, rows: Sequence[Example]) -> float:
    return attribution(row, rows) / sum(other.label != row.label for other in rows)


def placements(rows: Sequence[Example], among: Sequence[bool] | None = None) -> Ints:
    """Return twice the rows of the other label, of all or of some, that each row is rightly ordered with, plus ties."""
    counted = rows if among is None else [row for row, is_counted in zip(rows, among, strict=True) if is_counted]
    placed: Ints = (2 * credits_of(rows, counted)).sum(axis=1).astype(np.int64)
    return placed


def target_values(rows: Sequence[Example], name: str, link: str | None = None) -> list[float]:
    """Return what a tree predicts of each row of a slice; nothing where the slice lacks a label.

    The attribution is less that of the baseline, where there is one.
    """
    labels = [row.label for row in rows]
    if len(set(labels)) < 2:
        return []
    if name == "auc":
        ordered = placements(rows)
        if rows[0].baseline is not None:
            ordered = ordered - placements([row.of_baseline for row in rows])
        n_opposite = [labels.count(not label) for label in labels]
        return [value / (4 * n) for value, n in zip(ordered.tolist(), n_opposite, strict=True)]
    if link:
        rows = [row._replace(score=1 / (1 + math.exp(-row.score))) for row in rows]
    return list(map({"gini": gini, "cross_entropy": cross_entropy}[name], rows))


def round_to_units(value: float, bits: int) -> Fraction:
    """Return the nearest multiple of 2^-bits."""
    return Fraction(round(Fraction(value) * 2**bits), 2**bits)


def auc(rows: Sequence[Example]) -> float:
    positives = [row for row in rows if row.label]
    return math.fsum(2 * normalized(row, rows) for row in positives) / len(positives)


def cross_entropy(row: Example) -> float:
    q = min(max(row.score, 1e-15), 1 - 1e-15)
    return -math.log(q if row.label else 1 - q)


def gini(row: Example) -> float:
    return 1 - row.score if row.label else row.score


def influences(inside: Sequence[bool], rows: Sequence[Example]) -> Floats:
    """Return the influence of every row on the mean normalized attribution of the rows inside, from all its credits."""
    credits, labels, is_in = credits_of(rows, rows), np.array([row.label for row in rows], bool), np.array(inside)
    values = credits.sum(1) / 2 / (labels[:, None] != labels).sum(1)
    k = is_in.sum()
    found = np.where(is_in, (values - values[is_in].mean()) / k, 0.0)
    for label in (False, True):
        alike, opposite = labels == label, is_in & (labels != label)
        if opposite.any():
            placed = credits[np.ix_(alike, opposite)].mean(1) / 2
            found[alike] += opposite.sum() / k * (placed - values[opposite].mean()) / alike.sum()
    return found


def variance(inside: Sequence[bool], rows: Sequence[Example], baseline: Sequence[Example] | None = None) -> float:
    """Return the sum of squared influences, of a model or of its difference to a baseline."""
    of_model = influences(inside, rows)
    theirs = influences(inside, baseline) if baseline else np.zeros(len(rows))
    return math.fsum((of_model - theirs) ** 2)


def mean_of(value: Callable[[Example], float], rows: Sequence[Example]) -> float:
    return math.fsum(map(value, rows)) / len(rows)
