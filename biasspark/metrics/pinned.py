"""Pinned AUC by its closed form, from U statistics alone (Mitigating; Pinned, equation 3).

The closed form is the AUC of all known rows, each weighted by the number of times it is expected in the pinned set.
`biasspark.pinned_auc` says how it differs from sampled trials, and why its authors advise against it.
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


def pinned_weights(cells: Ints | Floats, include_subgroup: bool = True) -> Floats:
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


def pinned_auc(cells: Ints | Floats, terms: Floats, include_subgroup: bool = True) -> Floats:
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
    value = pinned_auc(cells, terms, include_subgroup)  # NaN for suppressed groups, as their terms are
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

    The experiment is that of Pinned, section 3. `kept` has the trials of each ranking, and lacks slices without rows;
    `without` are the counts of the same groups without the rows of the cell; None if there are no other identities.

    Each trial drops d = fraction·n of the n rows of the cell, halves rounded up. ``pinned_auc_skewed`` is the closed
    form: the four AUCs of all rows, weighted as if the cell had n - d rows; its difference from the mean over trials is
    noise. All are in [0, 1]. An AUC over an empty cell is NULL and weighs 0. An AUC that does not involve the cell
    keeps its value bit by bit.

    Other identities have only the closed form. Every row of the cell is kept with the same probability q = (n - d) / n,
    and every pair has one row of the cell's label. So the expected size of each of their cells, and the expected U of
    each of their pairs, is q times that of all rows plus 1 - q times that without the cell.
    """
    cell, groups, cells = FOUR_CELLS.index(skew.cell), statistics.groups, statistics.counts.cells
    of_slice = np.cumsum(groups.is_overall) - 1  # the (model, slice) of each group
    skewed = np.flatnonzero(groups.identity == skew.identity)  # the group of each (model, slice) that loses rows
    hidden = statistics.suppressed | statistics.suppressed[skewed][of_slice]
    trials = [
        (0, ()) if statistics.suppressed[group] else kept.get((groups.model[group], groups.slice[group]), (0, ()))
        for group in skewed.tolist()
    ]
    n_rows, n_dropped = cells[cell, skewed][of_slice], np.array([n for n, _ in trials], np.int64)[of_slice]
    aucs = statistics.auc[PINNED_PAIRS]  # NaN for suppressed groups, and so is what follows from them
    left, expected, rows = cells.astype(np.float64), aucs.copy(), skewed
    left[cell, skewed] -= n_dropped[skewed]
    if without is not None:
        unskewed = np.flatnonzero(~groups.is_overall & (groups.identity != skew.identity))
        share = np.where(n_rows > 0, 1.0 - divide(n_dropped, n_rows), 1.0)[unskewed]
        left[:, unskewed], projected = _project(statistics.counts, without, unskewed, share)
        expected[:, unskewed] = np.where(np.isnan(aucs[:, unskewed]), nan, projected)
        rows = np.concatenate([skewed, unskewed])
    # The other identities must not show how many rows a suppressed one loses.
    closed = np.where(hidden, nan, pinned_auc(left, expected, include_subgroup))
    sampled = [
        _sample(left[:, group], aucs[:, group], cell, two_u, include_subgroup)
        for group, (_, two_u) in zip(skewed.tolist(), trials, strict=True)
    ]
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
        n_dropped=Masked(n_dropped[rows], hidden[rows]),
        pinned_auc=pinned_auc(cells, aucs, include_subgroup)[rows],
        pinned_auc_skewed=closed[rows],
        **{name: aucs[PINNED_TERMS.index(name), rows] for name in SUMMARIZED_AUCS},
        **{name: [row[name] for row in sampled] + [nan] * (len(rows) - len(skewed)) for name in sampled[0]},
    )


def _project(counts: Counts, without: Counts, groups: Ints, share: Floats) -> tuple[Floats, Floats]:
    """Return the expected sizes of the cells of some groups, and their AUCs, if a share of the cell is kept."""
    left = share * counts.cells[:, groups] + (1.0 - share) * without.cells[:, groups]
    all_sums, rest_sums = (sums[PINNED_PAIRS, 0][:, groups].astype(np.float64) for sums in (counts.sums, without.sums))
    n_pairs_doubled = 2.0 * left[LOW_CELLS[PINNED_PAIRS]] * left[HIGH_CELLS[PINNED_PAIRS]]
    return left, divide(share * all_sums + (1.0 - share) * rest_sums, n_pairs_doubled)


def _sample(
    left: Floats, aucs: Floats, cell: int, two_u: Sequence[tuple[int, int]], include_subgroup: bool
) -> dict[str, float]:
    """Return mean and standard deviation over the trials of the AUCs of one (model, slice), given what is left."""
    trials = np.repeat(aucs[:, None], len(two_u), axis=1)
    for term, (low, high) in enumerate(CELLS_OF_PAIRS[pair] for pair in PINNED_PAIRS):
        if cell in (low, high):
            side = (low + high - cell) // 2  # of the other cell: 0 in the subgroup, 1 in the background
            two_pairs = 2 * int(left[low]) * int(left[high])
            trials[term] = [trial[side] / two_pairs if two_pairs else nan for trial in two_u]
    terms = {name: PINNED_TERMS.index(name) for name in SUMMARIZED_AUCS}
    over_trials = {name: (trials[term], float(aucs[term])) for name, term in terms.items()}
    skewed = float(pinned_auc(left, aucs, include_subgroup))
    over_trials["pinned_auc"] = pinned_auc(left[:, None], trials, include_subgroup), skewed
    row = {}
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
