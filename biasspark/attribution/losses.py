"""Losses of single rows by segment, and their correlations with attributions (Attributing, Tables 1 and 3).

All results are sums over the rows of a (model, slice, segment, label). A total attribution is the normalized one times
the number of opposite rows, which is the same for all rows of a label.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from math import exp, inf, log, sqrt
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np

from biasspark.arrays import BigInts, Floats, Ints, apply
from biasspark.attribution.influence import PlacedSet, auc_within, combine_ranges, influence_variance, place_in_sets
from biasspark.attribution.moments import N_LIMBS, Moments, cut_moments, read_moments
from biasspark.columns import MODEL, OVERALL, SLICE
from biasspark.metrics.intervals import interval_of_auc, normal_interval
from biasspark.ranking.kernels.row_block import RowBlock
from biasspark.ranking.kernels.sorted_runs import find_starts
from biasspark.ranking.row_blocks import Query, Search

LOSSES = ("cross_entropy", "gini")
_VALUES = (*LOSSES, "normalized", *(f"normalized_{loss}" for loss in LOSSES))
LIMITS = {"cross_entropy": (0.0, inf), "gini": (0.0, 1.0), "normalized": (0.0, 0.5)}
"""The ranges of mean values."""
_COLUMNS = ("cross_entropy", "gini_impurity", "mean_normalized_attribution")
"""Their columns."""
_SCORES_AT_ONCE = 1 << 12
"""Distinct scores whose sums fit the cache of a processor."""
_CLIP = 1e-15
"""The least distance of a probability from 0 and 1: a certain and wrong prediction would cost infinitely much."""
_MIN_LOG_ODDS = -700.0
"""e^700 is nearly the largest double."""


def losses(scores: Floats, label: int, link: str | None) -> tuple[Floats, Floats]:
    """Return the cross-entropy and the Gini impurity of rows of one label with these scores.

    With q the probability, y the label:

        cross-entropy = -[y ln q + (1 - y) ln(1 - q)],  q kept 1e-15 away from 0 and 1;
        Gini impurity = 1 - the probability of the true label, 0 to 1.

    Under the `link` "logit" scores are log-odds.
    """
    probability = apply(_logistic, scores) if link == "logit" else scores
    clipped = np.maximum(np.minimum(probability, 1 - _CLIP), _CLIP)
    inside = np.maximum(np.minimum(probability, 1.0), 0.0)
    return -apply(log, clipped if label else 1 - clipped), 1 - inside if label else inside


def _logistic(log_odds: float) -> float:
    """Return 1 / (1 + e^-x)."""
    return 1 / (1 + exp(-log_odds)) if log_odds > _MIN_LOG_ODDS else 0.0


OfLabels: TypeAlias = Mapping[bool, Mapping[str, Moments]]
"""By label that occurs, the moments of the rows' normalized attributions, of both losses, and of the attribution plus
each loss, by name."""

Losses: TypeAlias = Mapping[tuple[str, str, str], OfLabels]
Placements: TypeAlias = Mapping[tuple[str, str, str], PlacedSet]
"""By model, slice and segment, `OVERALL` for all rows."""


def sum_losses(
    links: Sequence[str | None], names: Mapping[tuple[int, int], tuple[str, str]], segments: Collection[str]
) -> Search[tuple[Losses, Placements, Mapping[tuple[int, int], OfLabels]]]:
    """Sum up the attributions and losses of all rows and of segments, and those of training rows by number.

    The placements are those of segments. `links` are by model, and `names` are those of models and slices by their
    numbers. One query about single models.
    """

    def measure(model: int, _: int, block: RowBlock) -> Iterator[tuple[int, int, Ints | BigInts]]:
        sets = [block.cells.in_segment(number) for number in range(len(segments))]
        for slice_number, sums in enumerate(_sum_block(block, links[model])):
            yield slice_number, 0, sums
            if sets:
                yield slice_number, 1, place_in_sets(block, slice_number, sets)

    answer = yield Query(measure, lambda key, ranges: combine_ranges(ranges) if key[2] else sum(ranges))
    summed: dict[tuple[str, str, str], OfLabels] = {}
    placed: dict[tuple[str, str, str], PlacedSet] = {}
    train: dict[tuple[int, int], OfLabels] = {}
    for (model, slice_number, is_placed), sums in sorted(answer.items(), key=itemgetter(0)):
        name = names[model, slice_number]
        if is_placed:
            placed |= {(*name, segment): of_set for segment, of_set in zip(segments, sums, strict=True)}
            continue
        train[model, slice_number], *of_segments = map(_read_labels, sums.tolist())
        listed = zip((OVERALL, *segments), of_segments, strict=True)
        summed |= {(*name, segment): by_label for segment, by_label in listed if by_label}
    return summed, placed, train


def _sum_block(block: RowBlock, link: str | None) -> Ints:
    """Return the sums by slice and label over the training rows, all rows, and those of each segment.

    They are an int64 array of shape (slices, 2 + segments, 2, 41). All values depend only on label and score, so they
    are computed once for each distinct score of a label, and weighted with its rows.
    """
    columns, cells = block.cells.columns, block.cells
    sets = [~cells.honest, np.ones(cells.size, bool), *map(cells.in_segment, range(columns.n_segments))]
    members = np.stack([[inside & cells.in_slice(number) for inside in sets] for number in range(columns.n_slices)])
    sums = np.zeros((columns.n_slices, len(sets), 2, 1 + N_LIMBS * len(_VALUES)), np.int64)
    for label in (0, 1):
        rows = np.flatnonzero(block.label == label)
        starts = find_starts(block.scores[rows])
        for first in range(0, len(starts), _SCORES_AT_ONCE):
            begins, end = starts[first : first + _SCORES_AT_ONCE], starts[first + _SCORES_AT_ONCE :][:1]
            distinct, cell = rows[begins], block.cell[rows[begins[0] : end[0] if len(end) else None]]
            row_losses = np.stack(losses(block.scores[distinct], label, link))
            limbs = np.concatenate([np.ones((1, len(distinct))), *map(cut_moments, row_losses)])
            for number, sets_of_slice in enumerate(members):
                set_counts = sets_of_slice[:, cell]
                if len(cell) > len(begins):  # otherwise each row has its own score
                    set_counts = np.add.reduceat(set_counts, begins - begins[0], axis=1, dtype=np.int64)
                inside = np.flatnonzero(set_counts[1])  # the scores that rows of the slice have
                ordered, n_opposite = block.placed(number, distinct[inside]), block.totals[1 - label, number]
                normalized = ordered / (4 * n_opposite) if n_opposite else np.zeros(len(ordered))
                both = [normalized, *(normalized + row_losses[:, inside])]
                of_slice = np.concatenate([*map(cut_moments, both)], dtype=np.float64)
                sums[number, :, label, : len(limbs)] += _sum_by_set(set_counts, limbs)
                sums[number, :, label, len(limbs) :] += _sum_by_set(set_counts[:, inside], of_slice)
    return sums


def _sum_by_set(counts: Ints, columns: Floats) -> Ints:
    """Return the sums of columns over the rows of each set, given its rows with each score; shape (sets, columns)."""
    # Columns are integers within ±2^33: sums over 2^20 rows are below 2^53, so that doubles hold them.
    if counts.sum(axis=1).max(initial=0) > 1 << 20:
        return counts @ columns.astype(np.int64).T
    return (counts.astype(np.float64) @ columns.T).astype(np.int64)


def _read_labels(limbs_by_label: Sequence[Sequence[int]]) -> OfLabels:
    """Return the moments of one set, given the sums of `_sum_block`."""
    by_label = {}
    for label, (n, *limbs) in zip((False, True), limbs_by_label, strict=True):
        parts = (limbs[start : start + N_LIMBS] for start in range(0, len(limbs), N_LIMBS))
        if n:
            by_label[label] = {name: read_moments(part, n) for name, part in zip(_VALUES, parts, strict=True)}
    return by_label


def list_correlations(losses_by_segment: Losses, has_probabilities: Mapping[str, bool]) -> list[dict[str, Any]]:
    """Return the rows of ``attribution_correlations``: Pearson correlations of attributions with losses."""
    return [
        {
            MODEL: model,
            SLICE: name,
            "attribution": attribution,
            "loss": loss,
            "pearson": _pearson(both, attribution == "total", loss) if has_probabilities[model] else None,
            "n_rows": add_moments(both, loss).n,
        }
        for (model, name, segment), both in sorted(losses_by_segment.items())
        if segment == OVERALL
        for attribution in ("total", "normalized")
        for loss in LOSSES
    ]


def list_losses(
    losses_by_segment: Losses,
    predicates: Mapping[str, str],
    placements: Placements,
    has_probabilities: Mapping[str, bool],
    level: float,
) -> list[dict[str, Any]]:
    """Return the rows of ``loss_by_segment``, also of segments without rows.

    `predicates` are by segment. `has_probabilities` says of each model whether its scores are probabilities.
    """
    rows = []
    for model, name in sorted({key[:2] for key in losses_by_segment}):
        for segment in (OVERALL, *predicates):
            key = model, name, segment
            columns = _list_segment(losses_by_segment.get(key, {}), placements[key], has_probabilities[model], level)
            key_columns = {MODEL: model, SLICE: name, "segment": segment, "predicate": predicates.get(segment)}
            rows.append(key_columns | columns)
    return rows


def _list_segment(by_label: OfLabels, placed: PlacedSet, has_probabilities: bool, level: float) -> dict[str, Any]:
    """Return the values of a segment: NULL for mean losses without probabilities, and if the slice lacks a label."""
    auc, auc_variance = auc_within(*placed)
    auc_low, auc_high, method = interval_of_auc(auc, auc_variance, placed[0].k, placed[1].k, level)
    row = {
        "n_rows": add_moments(by_label, "normalized").n,
        "n_positive": by_label[True]["normalized"].n if True in by_label else 0,
        "auc": auc,
        "auc_low": auc_low,
        "auc_high": auc_high,
        "auc_variance": auc_variance,
        "auc_method": method,
    }
    for (value, limits), name in zip(LIMITS.items(), _COLUMNS, strict=True):
        moments = add_moments(by_label, value)
        is_defined, variance = has_probabilities, moments.variance_of_mean
        if value == "normalized":
            is_defined, variance = all(side.n for side in placed), influence_variance(*placed)
        mean, variance = (moments.mean, variance) if is_defined else (None, None)
        low, high = normal_interval(mean, variance, level, limits)
        row |= {name: mean, f"{name}_low": low, f"{name}_high": high}
    return row


def add_moments(by_label: OfLabels, name: str) -> Moments:
    """Return the moments of a value over the rows of both labels."""
    return sum((moments[name] for moments in by_label.values()), Moments())


def _pearson(both: OfLabels, total: bool, loss: str) -> float | None:
    """Return the correlation from exact sums, with Σxy = (Σ(x + y)² - Σx² - Σy²)/2; None if either does not vary."""
    if len(both) < 2:
        return None
    n = add_moments(both, loss).n
    x = x_squares = y = y_squares = products = Fraction()
    for label, moments in both.items():
        weight = both[not label][loss].n if total else 1
        attribution, other, sum_of = (moments[name] for name in ("normalized", loss, f"normalized_{loss}"))
        x += weight * attribution.total
        x_squares += weight**2 * attribution.squares
        y += other.total
        y_squares += other.squares
        products += weight * (sum_of.squares - attribution.squares - other.squares) / 2
    spread = (n * x_squares - x**2) * (n * y_squares - y**2)
    return max(-1.0, min(float(n * products - x * y) / sqrt(spread), 1.0)) if spread > 0 else None
