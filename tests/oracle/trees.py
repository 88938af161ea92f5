"""A tree grown row by row, in fractions, with every cut tried; of the product it takes features and settings alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from biasspark.config.attribution_settings import TreeSettings
from biasspark.features import Feature


class GrowingRow(NamedTuple):
    """Bins by feature, 0 being NULL; whether the row only estimates; what is predicted."""

    bins: tuple[int, ...]
    honest: bool
    value: Fraction


def square_sum(rows: Sequence[GrowingRow]) -> Fraction:
    """Sum of squares of the values around their mean."""
    if not rows:
        return Fraction(0)
    mean = sum((row.value for row in rows), Fraction(0)) / len(rows)
    return sum(((row.value - mean) ** 2 for row in rows), Fraction(0))


def grow_by_loops(
    rows: Sequence[GrowingRow], features: Sequence[Feature], settings: TreeSettings
) -> dict[int, list[int]]:
    """Give the rows of each node, by place, under the numbers 1, and 2k and 2k + 1 for the children of k."""
    nodes = {1: list(range(len(rows)))}
    least = Fraction(settings.min_gain) * square_sum([row for row in rows if not row.honest])
    frontier = [(1, dict(enumerate(feature.bins for feature in features)))]
    for _ in range(settings.max_depth):
        children = []
        for node_id, bins in frontier:
            here = nodes[node_id]
            best: tuple[Fraction, int, frozenset[int]] | None = None
            for feature, of_feature in enumerate(features):
                for left in every_left([rows[place] for place in here], feature, bins[feature], of_feature.numeric):
                    gain = gain_of([rows[place] for place in here], feature, left, settings.min_leaf)
                    if gain is not None and gain > 0 and gain >= least and (best is None or gain > best[0]):
                        best = gain, feature, left
            if best:
                _, feature, left = best
                for child, side in ((2 * node_id, left), (2 * node_id + 1, bins[feature] - left)):
                    nodes[child] = [place for place in here if rows[place].bins[feature] in side]
                    children.append((child, {**bins, feature: side}))
        frontier = children
    return nodes


def gain_of(rows: Sequence[GrowingRow], feature: int, left: frozenset[int], min_leaf: int) -> Fraction | None:
    """Say how much of the sum of squares a cut takes away; None where a side has too few rows of either kind."""
    sides: list[list[GrowingRow]] = [[], []]
    for row in rows:
        sides[row.bins[feature] not in left].append(row)
    for side in sides:
        n_honest = sum(row.honest for row in side)
        if min(n_honest, len(side) - n_honest) < min_leaf:
            return None
    growing = [[row for row in side if not row.honest] for side in sides]
    return square_sum(growing[0] + growing[1]) - square_sum(growing[0]) - square_sum(growing[1])


def every_left(
    rows: Sequence[GrowingRow], feature: int, bins: frozenset[int], numeric: bool
) -> Iterator[frozenset[int]]:
    """Give the left sides of all cuts, those that win ties first, with the bins that hold no growing row."""
    by_bin: dict[int, list[Fraction]] = {}
    for row in rows:
        if not row.honest:
            by_bin.setdefault(row.bins[feature], []).append(row.value)
    means = {place: sum(values, Fraction(0)) / len(values) for place, values in by_bin.items()}
    return list_left_sides(means, {place: len(values) for place, values in by_bin.items()}, bins, numeric)


def list_left_sides(
    means: Mapping[int, Any], n_by_bin: Mapping[int, int], bins: frozenset[int], numeric: bool
) -> Iterator[frozenset[int]]:
    """Give the left sides of all cuts of the bins that hold something, those that win ties first, with empty bins."""
    orders = [sorted(means, key=lambda place: (means[place], place))]
    if numeric:
        known = sorted(means.keys() - {0})
        orders = [[0, *known], [*known, 0]] if 0 in means else [known]
    for order in orders:
        for size in range(1, len(order)):
            yield with_empty_bins(set(order[:size]), n_by_bin, bins, numeric)


def with_empty_bins(left: set[int], n_by_bin: Mapping[int, int], bins: frozenset[int], numeric: bool) -> frozenset[int]:
    """Add to a left side the bins without growing rows, or pairs, that belong there."""
    larger_is_left = 2 * sum(n_by_bin[place] for place in left) >= sum(n_by_bin.values())
    known = sorted(n_by_bin.keys() - {0})
    n_values = 2 * len(left) - len(n_by_bin)
    whole = set(left)
    for place in bins - n_by_bin.keys():
        if numeric and place > 0 and known:
            below = [other for other in known if other < place]
            goes_left = (below[-1] if below else known[0]) in left
        elif place > 0 and n_values:  # a value: with more values
            goes_left = n_values > 0
        else:
            goes_left = larger_is_left
        if goes_left:
            whole.add(place)
    return frozenset(whole)
