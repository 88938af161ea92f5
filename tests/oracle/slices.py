"""Slices by trying every conjunction, row by row: slow, and obvious."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, permutations

from biasspark.config.attribution_settings import SliceSearch
from biasspark.features import Feature
from tests.oracle.trees import GrowingRow


@dataclass(frozen=True)
class ForcedSlice:
    """A slice, and the places of its rows."""

    condition: dict[int, frozenset[int]]
    score: Fraction
    train: tuple[int, ...]
    honest: tuple[int, ...]


def list_predicates(place: int, feature: Feature, rows: Sequence[GrowingRow], max_bins: int) -> list[frozenset[int]]:
    """List the sets of bins of one feature, the lowest first."""
    every = list(range(len(feature.values) + 1))
    if not feature.numeric:
        return [frozenset([number]) for number in every]
    null, *known = every
    in_order = sorted(row.bins[place] for row in rows if not row.honest and row.bins[place] != null)
    full = sorted(set(in_order))
    part_of = {}
    for number in full:
        # The middle of the rows of this bin, when all rows stand in order from 0 to n.
        middle = in_order.index(number) + Fraction(in_order.count(number), 2)
        part_of[number] = int(middle * max_bins / len(in_order)) if len(full) > max_bins else number
    parts: dict[int, list[int]] = {}
    for number in known:
        below = [other for other in full if other <= number] or full[:1]
        parts.setdefault(part_of[below[-1]] if below else 0, []).append(number)
    return [frozenset([null]), *map(frozenset, parts.values())]


def search_by_force(
    rows: Sequence[GrowingRow], features: Sequence[Feature], settings: SliceSearch
) -> list[ForcedSlice]:
    """Return the best slices, joined: by score, then shorter ones first, then those of earlier predicates."""
    training = [row.value for row in rows if not row.honest]
    if not training:
        return []
    mean = Fraction(sum(training)) / len(training)
    predicates = [list_predicates(place, feature, rows, settings.max_bins) for place, feature in enumerate(features)]
    every = [(place, bins) for place, of_feature in enumerate(predicates) for bins in of_feature]
    found: dict[tuple[int, ...], ForcedSlice | None] = {}
    lacked: dict[frozenset[tuple[int, frozenset[int]]], Fraction] = {}
    for length in range(1, settings.max_predicates + 1):
        for chosen in combinations(every, length):
            condition = dict(chosen)
            if len(condition) < length:
                continue
            inside = [
                number for number, row in enumerate(rows) if all(row.bins[p] in bins for p, bins in condition.items())
            ]
            train = tuple(number for number in inside if not rows[number].honest)
            honest = tuple(number for number in inside if rows[number].honest)
            score = sum((mean - rows[number].value for number in train), Fraction(0))
            lacked[frozenset(chosen)] = score / len(train) if train else Fraction(0)
            if min(len(train), len(honest)) >= settings.min_rows and score > 0:
                shorter = [part for size in range(1, length) for part in combinations(chosen, size)]
                stands_out = all(4 * score / len(train) >= 5 * lacked[frozenset(part)] for part in shorter)
                # What is left out for a shorter one stands for its rows all the same.
                found.setdefault(tuple(inside), ForcedSlice(condition, score, train, honest) if stands_out else None)
    best = sorted((forced for forced in found.values() if forced), key=lambda forced: -forced.score)[: settings.most]
    distinct: dict[tuple[int, ...], ForcedSlice] = {}
    for forced in sorted(join_by_force(best, features), key=rank):
        distinct.setdefault(tuple(sorted((*forced.train, *forced.honest))), forced)
    return list(distinct.values())


def join_by_force(slices: Sequence[ForcedSlice], features: Sequence[Feature]) -> list[ForcedSlice]:
    """Join any two slices that are one on paper: by one feature after another, until a round joins nothing."""
    joined, before = list(slices), None
    while before != len(joined):
        before = len(joined)
        for place, feature in enumerate(features):
            while feature.numeric and (two := find_two(joined, place)):
                joined = [forced for forced in joined if forced not in two] + [join_two(*two, place)]
    return joined


def find_two(slices: Sequence[ForcedSlice], place: int) -> tuple[ForcedSlice, ForcedSlice] | None:
    for low, high in permutations(slices, 2):
        if place in low.condition and place in high.condition:
            adjoin = 0 not in low.condition[place] and max(low.condition[place]) == min(high.condition[place]) - 1
            if adjoin and {**low.condition, place: None} == {**high.condition, place: None}:
                return low, high
    return None


def join_two(low: ForcedSlice, high: ForcedSlice, place: int) -> ForcedSlice:
    condition = {**low.condition, place: low.condition[place] | high.condition[place]}
    return ForcedSlice(condition, low.score + high.score, low.train + high.train, low.honest + high.honest)


def rank(forced: ForcedSlice) -> tuple[Fraction, int, list[tuple[int, int]]]:
    return -forced.score, len(forced.condition), sorted((place, min(bins)) for place, bins in forced.condition.items())
