"""Pinned AUC by its closed form, from U statistics alone (Mitigating; Pinned, equation 3).

The closed form is the AUC of all known rows, each weighted by the number of times it is expected in the pinned set. The
mean over sampled trials of a small identity differs from it: a trial has few rows, and those without both labels are
left out.

Its authors advise against it: if identities differ in the share of positives, it moves with that share and hides or
invents bias although the model stays the same (Pinned, section 2.2). It is here for comparison with published values;
use the bias suite for decisions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from math import isnan, nan, sqrt
from typing import Any

import numpy as np
import pyarrow as pa

from biasspark.arrays import Floats, Ints, divide
from biasspark.columns import BELOW_MINIMUM_ROWS, FOUR_CELLS, SUMMARIZED_AUCS, WITHHELD
from biasspark.config import PinnedSkew
from biasspark.metrics.suite import SUITE
from biasspark.metrics.u_statistics import OVERALL_PAIR, UStatistics, aucs_of_counts, name_empty_cells
from biasspark.ranking.counts import Counts
from biasspark.ranking.kernels.pair_sums import CELLS_OF_PAIRS, HIGH_CELLS, LOW_CELLS
from biasspark.ranking.kernels.pinned_trials import KeptRows
from biasspark.tables.schemas import PINNED_AUC, PINNED_SKEW, Masked, to_table

PINNED_TERMS = ("background_auc", "subgroup_auc", "bpsn_auc", "bnsp_auc")
"""The four AUCs of which the pinned AUC is a weighted mean."""

PINNED_PAIRS = [metric.pair for name in PINNED_TERMS for metric in SUITE if metric.name == name]


def pinned_weights(cells: Ints, include_subgroup: bool = True) -> Floats:
    """Return the weight of each of the four AUCs (`PINNED_TERMS`) in the pinned AUC, not yet divided by their sum.

    `cells` are the sizes of the four cells, in the order of `columns.FOUR_CELLS`; they and the result have the shape
    (4, ...). The background is drawn from all rows, as in the papers, or from those outside the subgroup, as in the
    authors' published code. A term with an empty cell weighs 0; all four do if a class is missing or there is nothing
    to draw.

    The pinned set takes equally many rows from the subgroup Dg and from all rows D whose membership is known, Dg
    included. Let s = |Dg| and N = |D|. In expectation a subgroup row is then in it 1 + s/N times (once for itself, s/N
    times as a draw from D), a background row s/N times. An AUC is a ratio of weights of pairs, so the common factor 1/N
    cancels: rows weigh N + s and s. A pair weighs the product of its rows' weights, so all pairs of two cells weigh
    w(low cell)·w(high cell), where w(cell) = (row weight)·(cell size).

    If the draw is from the background B alone, a subgroup row is in the set once and a background row s/|B| times: rows
    weigh |B| and s. If B is the smaller set, rows of Dg are drawn instead, in the same ratio.
    """
    sizes = cells.astype(np.float64)
    n_subgroup, n_background = sizes[0] + sizes[1], sizes[2] + sizes[3]
    subgroup_weight = n_background + 2 * n_subgroup if include_subgroup else n_background
    cell_weights = np.stack([subgroup_weight, subgroup_weight, n_subgroup, n_subgroup]) * sizes
    weights: Floats = cell_weights[LOW_CELLS[PINNED_PAIRS]] * cell_weights[HIGH_CELLS[PINNED_PAIRS]]
    return weights


def pinned_auc(cells: Ints, terms: Floats, include_subgroup: bool = True) -> Floats:
    """Return the pinned AUC, in [0, 1], low is bad; NaN where the pinned set has no negatives or no positives.

    `cells` and `include_subgroup` are as in `pinned_weights`. `terms` are the four AUCs in the order of `PINNED_TERMS`,
    shape (4, ...). A term with an empty cell is NaN and weighs 0; if any other is NaN, so is the pinned AUC.
    """
    weights = pinned_weights(cells, include_subgroup)
    weighted = np.where(weights > 0, weights * terms, 0.0)
    return divide(reduce(np.add, weighted), reduce(np.add, weights))


def known_auc(counts: Counts) -> Floats:
    """Return for every group the AUC of the rows whose membership in its identity is known.

    Pinned AUC is compared with it, since it is an AUC of these rows. If all memberships are known, it equals the AUC of
    the whole slice bit by bit. NaN if a label is missing.
    """
    two_u = reduce(np.add, counts.sums[PINNED_PAIRS, 0])
    negatives, positives = (reduce(np.add, counts.cells.astype(object)[label::2]) for label in (0, 1))
    return aucs_of_counts(two_u, negatives, positives)


def pinned_aucs(
    statistics: UStatistics, include_subgroup: bool = True, trials: int = 0, sampled: Floats | None = None
) -> pa.Table:
    """Return the table ``pinned_auc``: one row for each (model, slice, identity).

    The value is the mean of the row's four AUCs, weighted by the row's four weights, which add up to 1. `sampled` has
    the mean and the standard deviation of the pinned AUC over the `trials`, shape (2, groups), NaN if there is none.
    """
    groups, cells, terms = statistics.groups, statistics.counts.cells, statistics.auc[PINNED_PAIRS]
    value = np.where(statistics.suppressed, np.nan, pinned_auc(cells, terms, include_subgroup))
    weights = pinned_weights(cells, include_subgroup)
    shares = divide(weights, reduce(np.add, weights))
    mean, sd = np.full((2, len(value)), np.nan) if sampled is None else sampled
    undefined, rows = np.isnan(value), ~groups.is_overall
    has_no_pairs = np.isnan(shares[0])  # all weights are 0
    overall_auc = statistics.auc[OVERALL_PAIR, groups.is_overall][np.cumsum(groups.is_overall) - 1]
    reason = np.where(has_no_pairs, name_empty_cells(statistics.counts), BELOW_MINIMUM_ROWS)
    reason = np.where(statistics.suppressed, WITHHELD, reason)
    known = np.where(statistics.suppressed | np.isnan(overall_auc), np.nan, known_auc(statistics.counts))
    columns: dict[str, Any] = groups._asdict() | {"pinned_auc": value, "overall_auc": overall_auc, "known_auc": known}
    columns |= {"sampled_mean": np.where(undefined, np.nan, mean), "sampled_sd": np.where(undefined, np.nan, sd)}
    for name, share, term in zip(PINNED_TERMS, shares, terms, strict=True):
        columns |= {name.replace("_auc", "_weight"): np.where(undefined, np.nan, share), name: term}
    return to_table(
        PINNED_AUC,
        trials=trials,
        reason=Masked(reason[rows], ~undefined[rows]),
        **{name: values[rows] for name, values in columns.items()},
    )


def pinned_skew(
    statistics: UStatistics,
    kept: Mapping[tuple[str, str], KeptRows],
    skew: PinnedSkew,
    include_subgroup: bool = True,
    without: Counts | None = None,
) -> pa.Table:
    """Return the table ``pinned_skew``: one row for each (model, slice, identity), the one that loses rows first.

    The experiment shows that pinned AUC moves with the prevalence of positives, and the suite does not (Pinned, section
    3). `kept` has the trials of each ranking, and lacks slices without rows; `without` are the counts of the same
    groups without the rows of the cell; None if there are no other identities.

    Each trial drops d = fraction·n of the n rows of the cell, halves rounded up. ``pinned_auc_skewed`` is the closed
    form: the four AUCs of all rows, weighted as if the cell had n - d rows; its difference from the mean over trials is
    noise. All are in [0, 1]. An AUC over an empty cell is NULL and weighs 0. An AUC that does not involve the cell
    keeps its value bit by bit.

    Other identities have only the closed form. Every row of the cell is kept with the same probability q = (n - d) / n,
    and every pair has one row of the cell's label. So the expected size of each of their cells, and the expected U of
    each of their pairs, is q times that of all rows plus 1 - q times that without the cell.
    """
    cell, groups, counts = FOUR_CELLS.index(skew.cell), statistics.groups, statistics.counts
    skewed = np.flatnonzero(groups.identity == skew.identity)
    skewed_of = skewed[np.cumsum(groups.is_overall) - 1]  # the group of each group's slice that loses rows
    n_rows, hidden = counts.cells[cell, skewed_of], statistics.suppressed | statistics.suppressed[skewed_of]
    trials = [
        (0, ()) if statistics.suppressed[first] else kept.get(key, (0, ()))
        for key, first in zip(zip(groups.model, groups.slice, strict=True), skewed_of, strict=True)
    ]
    measured: dict[int, dict[str, float]] = {
        group: _measure(
            counts.cells[:, group], statistics.auc[PINNED_PAIRS, group], cell, trials[group], include_subgroup
        )
        for group in skewed.tolist()
    }
    if without is not None:
        for group in np.flatnonzero(~groups.is_overall & (groups.identity != skew.identity)).tolist():
            n_dropped, n = trials[group][0], int(n_rows[group])
            projected = _project(statistics, without, group, 1.0 - n_dropped / n if n else 1.0, include_subgroup)
            if hidden[group]:  # the number of rows that are dropped is not known
                projected.pop("pinned_auc_skewed", None)
            measured[group] = projected | {"n_dropped": n_dropped}
    rows = np.array(list(measured), np.int64)
    columns: dict[str, Any] = {
        name: [row.get(name, nan) for row in measured.values()] for name in measured[int(skewed[0])]
    }
    return to_table(
        PINNED_SKEW,
        model=groups.model[rows],
        slice=groups.slice[rows],
        identity=groups.identity[rows],
        skewed_identity=skew.identity,
        cell=skew.cell,
        fraction=skew.fraction,
        trials=skew.trials,
        n_rows=Masked(n_rows[rows], hidden[rows]),
        **columns | {"n_dropped": Masked(np.array(columns["n_dropped"]), hidden[rows])},
    )


def _project(
    statistics: UStatistics, without: Counts, group: int, share: float, include_subgroup: bool
) -> dict[str, float]:
    """Return the AUCs of another identity over all rows, and its pinned AUC if a share of the cell is kept."""
    sizes, terms = statistics.counts.cells[:, group], statistics.auc[PINNED_PAIRS, group]
    left = share * sizes + (1.0 - share) * without.cells[:, group]
    all_sums, rest_sums = (
        counts.sums[PINNED_PAIRS, 0, group].astype(np.float64) for counts in (statistics.counts, without)
    )
    n_pairs_doubled = 2.0 * left[LOW_CELLS[PINNED_PAIRS]] * left[HIGH_CELLS[PINNED_PAIRS]]
    expected = divide(share * all_sums + (1.0 - share) * rest_sums, n_pairs_doubled)
    before, after = (
        float(pinned_auc(n, aucs, include_subgroup))
        for n, aucs in ((sizes, terms), (left, np.where(np.isnan(terms), nan, expected)))
    )
    hidden = statistics.suppressed[group]
    values = {"pinned_auc": before, "pinned_auc_skewed": after} if not hidden else {}
    return values | {name: float(terms[PINNED_TERMS.index(name)]) for name in SUMMARIZED_AUCS}


def _measure(sizes: Ints, aucs: Floats, cell: int, kept: KeptRows, include_subgroup: bool) -> dict[str, float]:
    """Return the AUCs of one (model, slice): over all rows, by the closed form, and over the trials."""
    (n_dropped, two_u), left = kept, sizes.copy()
    left[cell] -= n_dropped
    before, skewed = (float(pinned_auc(n, aucs, include_subgroup)) for n in (sizes, left))
    trials = np.repeat(aucs[:, None], len(two_u), axis=1)
    for term, (low, high) in enumerate(CELLS_OF_PAIRS[pair] for pair in PINNED_PAIRS):
        if cell in (low, high):
            side = (low + high - cell) // 2  # of the other cell: 0 in the subgroup, 1 in the background
            two_pairs = 2 * int(left[low]) * int(left[high])
            trials[term] = [trial[side] / two_pairs if two_pairs else nan for trial in two_u]
    row = {"n_dropped": n_dropped, "pinned_auc": before, "pinned_auc_skewed": skewed}
    over_trials = {"pinned_auc": (pinned_auc(left[:, None], trials, include_subgroup), skewed)}
    for name in SUMMARIZED_AUCS:
        term = PINNED_TERMS.index(name)
        row[name] = float(aucs[term])
        over_trials[name] = trials[term], row[name]
    for name, (values, expected) in over_trials.items():
        row[f"{name}_sampled_mean"], row[f"{name}_sampled_sd"] = mean_and_sd(values.tolist(), expected)
    return row


def mean_and_sd(values: Sequence[float], expected: float) -> tuple[float, float]:
    """Return mean and standard deviation (n - 1) of values, summed in order; NaN if there are none.

    Sums are of deviations from the expected value, so constant values keep theirs bit by bit, with a deviation of 0.
    """
    if not values or isnan(expected):
        return nan, nan
    total = squares = 0.0
    for value in values:
        move = value - expected
        total += move
        squares += move * move
    spread = max(squares - total * total / len(values), 0.0)
    return expected + total / len(values), sqrt(spread / (len(values) - 1)) if len(values) > 1 else nan
