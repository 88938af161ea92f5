"""Decisions at thresholds, and how unequal they are (Mitigating; Dixon et al. 2018), and histograms of scores.

They are exact: a threshold or a bin needs only the number of rows of each cell that score at or above it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from biasspark.arrays import Flags, Floats, Ints
from biasspark.columns import FOUR_CELLS, NEGATIVE, POSITIVE, RATES, WITHHELD
from biasspark.distributions import normal_quantile
from biasspark.metrics.intervals import Share, newcombe_difference
from biasspark.metrics.u_statistics import identities_of_slices
from biasspark.ranking.counts import Counts
from biasspark.tables.schemas import SCORE_HISTOGRAMS, THRESHOLD_RATES, THRESHOLD_SUMMARY, Masked, to_table

DECISIONS = ("n_true_positive", "n_false_positive", "n_true_negative", "n_false_negative")
SHARES = {
    "tpr": (("n_true_positive",), ("n_true_positive", "n_false_negative")),
    "fpr": (("n_false_positive",), ("n_false_positive", "n_true_negative")),
    "tnr": (("n_true_negative",), ("n_false_positive", "n_true_negative")),
    "fnr": (("n_false_negative",), ("n_true_positive", "n_false_negative")),
    "precision": (("n_true_positive",), ("n_true_positive", "n_false_positive")),
    "selection_rate": (("n_true_positive", "n_false_positive"), DECISIONS),
}
"""The decisions in the numerator and in the denominator of each rate."""

BACKGROUND = "background_"

Decisions: TypeAlias = Mapping[str, Ints]
"""Rows of one side, subgroup or background, by each of `DECISIONS`."""


class Thresholds(NamedTuple):
    """Thresholds, at or above which scores are positive, and by model their indices among the counted edges."""

    values: Sequence[float]
    edges: Mapping[str, Sequence[int]]


def threshold_rates(counts: Counts, thresholds: Thresholds, suppressed: Flags, level: float) -> pa.Table:
    """Return the table ``threshold_rates``: decisions, rates and gaps of each (model, slice, identity, threshold).

    A rate over no rows is NULL, and so is its gap. All numbers of `suppressed` groups, shape (groups,), are NULL;
    ``(overall)`` groups are left out.
    """
    z, n_thresholds = normal_quantile(level), len(thresholds.values)
    identities = np.flatnonzero(~counts.groups.is_overall)
    rows, at = np.repeat(identities, n_thresholds), np.tile(np.arange(n_thresholds), len(identities))
    hidden = suppressed[rows]
    subgroup, background = (
        {name: n_rows[rows, at] for name, n_rows in side.items()} for side in decisions(counts, thresholds)
    )
    columns: dict[str, Any] = {name: values[rows] for name, values in counts.groups._asdict().items()}
    for prefix, side in (("", subgroup), (BACKGROUND, background)):
        columns |= {f"{prefix}{name}": Masked(side[name], hidden) for name in DECISIONS}
    for name in RATES:
        p, q = rate(subgroup, name), rate(background, name)
        low, high = newcombe_difference(p, q, z)
        shown = {name: p.value, f"{BACKGROUND}{name}": q.value, f"{name}_gap": p.value - q.value}
        shown |= {f"{name}_gap_low": low, f"{name}_gap_high": high}
        columns |= {column: Masked(values, hidden) for column, values in shown.items()}
    return to_table(
        THRESHOLD_RATES,
        **columns,
        threshold=np.array(thresholds.values, np.float64)[at],
        reason=Masked(np.full(len(rows), WITHHELD, object), ~hidden),
    )


def threshold_summary(counts: Counts, thresholds: Thresholds, suppressed: Flags) -> pa.Table:
    """Return the table ``threshold_summary``: error rates of each slice, and their `equality_difference`.

    They are the False Positive and the False Negative Equality Difference of Dixon et al. 2018: 0 or more, high is bad.
    Crossed pairs, suppressed groups, and identities without the rate are left out; over no identity it is NULL.
    """
    groups, n_thresholds = counts.groups, len(thresholds.values)
    subgroup, background = decisions(counts, thresholds)
    slices = list(identities_of_slices(groups))
    starts = np.array([start for start, _ in slices], np.int64)
    columns: dict[str, Any] = {}
    for name, kind in (("fpr", "false_positive"), ("fnr", "false_negative")):
        slice_rates, identity_rates = (
            np.where(suppressed[:, None], np.nan, rate(side, name).value) for side in (background, subgroup)
        )
        columns[name] = slice_rates[starts].ravel()
        columns[f"{kind}_equality_difference"] = np.array(
            [equality_difference(slice_rates[start], identity_rates[members]) for start, members in slices]
        ).ravel()
    return to_table(
        THRESHOLD_SUMMARY,
        model=np.repeat(groups.model[starts], n_thresholds),
        slice=np.repeat(groups.slice[starts], n_thresholds),
        threshold=np.tile(np.array(thresholds.values, np.float64), len(starts)),
        **columns,
    )


def equality_difference(slice_rates: Floats, identity_rates: Floats) -> Floats:
    """Return Σ |value of the slice - value of the identity| over identities, 0 or more; NaN over no identity.

    `identity_rates`, shape (identities, ...), is NaN where there is no value, which is left out. The sum is in order.
    """
    known = ~np.isnan(identity_rates)
    terms = np.where(known, np.abs(slice_rates - identity_rates), 0.0)
    return np.where(known.any(axis=0), reduce(np.add, terms, np.zeros(np.shape(slice_rates))), np.nan)


def decisions(counts: Counts, thresholds: Thresholds) -> tuple[Decisions, Decisions]:
    """Return the decisions of subgroup and background, each an array of shape (groups, thresholds).

    The background of ``(overall)`` is the whole slice.
    """
    at_or_above = np.concatenate(
        [cells[:, :, np.array(thresholds.edges[model], np.int64) + 1] for model, cells in counts.at_or_above.items()],
        axis=1,
    )

    def decide(negative: int, positive: int) -> Decisions:
        sizes, wrong, right = counts.cells[:, :, None], at_or_above[negative], at_or_above[positive]
        return dict(zip(DECISIONS, (right, wrong, sizes[negative] - wrong, sizes[positive] - right), strict=True))

    return decide(0, 1), decide(2, 3)


def rate(side: Mapping[str, Ints | Floats], name: str) -> Share:
    """Return a rate from the rows of one side by each of `DECISIONS`."""
    counted, among = (reduce(np.add, (side[kind] for kind in kinds)) for kinds in SHARES[name])
    return Share(counted.astype(np.float64), among.astype(np.float64))


# ---- histograms

_CELL_NAMES = np.array([FOUR_CELLS, (NEGATIVE, POSITIVE, NEGATIVE, POSITIVE)], object)
"""The names of the four cells, of an identity and of a whole slice."""


def score_histograms(
    counts: Counts, bins: Mapping[str, tuple[Sequence[float], Sequence[int]]], suppressed: Flags
) -> pa.Table:
    """Return the table ``score_histograms``: one row for each (model, slice, identity, cell, bin) that has rows.

    `bins` are by model the edges, ascending, and the index of each among the edges at which rows were counted. A bin
    holds the scores in [low edge, high edge); the last bin also holds its high edge. No score lies outside the edges.
    ``(overall)`` has the cells ``negative`` and ``positive``. Suppressed groups have no rows. Ties within a bin make an
    AEG that is computed from bins (Nuanced, figure 2) inexact.
    """
    groups, parts = counts.groups, []
    for model, (edges, indices) in bins.items():
        model_groups = np.flatnonzero(groups.model == model)
        from_edge = counts.at_or_above[model][:, :, np.array(indices, np.int64) + 1]
        from_edge[:, :, -1] = 0  # the last bin includes its high edge
        n_rows = from_edge[:, :, :-1] - from_edge[:, :, 1:]
        n_rows[:, suppressed[model_groups]] = 0
        group, cell, bin_ = np.nonzero(n_rows.transpose(1, 0, 2))
        rows, ends = model_groups[group], np.array(edges, np.float64)
        parts.append(
            to_table(
                SCORE_HISTOGRAMS,
                **{name: values[rows] for name, values in groups._asdict().items()},
                cell=_CELL_NAMES[groups.is_overall[rows].astype(np.int64), cell],
                bin=bin_.astype(np.int32),
                bin_low=ends[bin_],
                bin_high=ends[bin_ + 1],
                n_rows=n_rows[cell, group, bin_],
            )
        )
    return pa.concat_tables(parts)
