"""The experiment that pinned AUC moves with the prevalence of positives and the suite does not (Pinned, section 3).

Dropping rows of one cell does not change the order of scores. So a trial needs no new ranking: U over the kept rows is
a sum of their placements, and the pinned AUC is a weighted mean of four AUCs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan, nan, sqrt
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from biasspark.arrays import Floats, Ints, divide
from biasspark.columns import CELL_PAIRS, FOUR_CELLS, SUMMARIZED_AUCS
from biasspark.config import PinnedSkew
from biasspark.metrics.pinned import PINNED_PAIRS, PINNED_TERMS, pinned_auc, pinned_terms
from biasspark.metrics.u_statistics import HIGH, LOW, UStatistics
from biasspark.ranking.counts import Counts
from biasspark.tables.arrow import Masked, to_table
from biasspark.tables.schemas import PINNED_SKEW

Kept: TypeAlias = tuple[int, Sequence[tuple[int, int]]]
"""The number of rows of the cell that each trial drops, and for each trial twice U between the rows of the cell that it
keeps and the rows of the other label, in the subgroup and in the background."""


def pinned_skew(
    statistics: UStatistics,
    kept: Mapping[tuple[str, str], Kept],
    skew: PinnedSkew,
    include_subgroup: bool = True,
    without: Counts | None = None,
) -> pa.Table:
    """Return the table ``pinned_skew``: one row for each (model, slice, identity), the one that loses rows first.

    `kept` has the trials of each ranking, and lacks slices without rows; `include_subgroup` is as in
    `biasspark.metrics.pinned.pinned_weights`; `without` are the counts of the same groups without the rows of the cell;
    None if there are no other identities.

    Each trial drops d = fraction·n of the n rows of the cell, halves rounded up. ``pinned_auc_skewed`` is the closed
    form: the four AUCs of all rows, weighted as if the cell had n - d rows; its difference from the mean over trials is
    noise. All are in [0, 1]. An AUC over an empty cell is NULL and weighs 0. An AUC that does not involve the cell
    keeps its value bit by bit.

    Other identities have only the closed form. Every row of the cell is kept with the same probability q = (n - d) / n,
    and every pair has one row of the cell's label. So the expected size of each of their cells, and the expected U of
    each of their pairs, is q times that of all rows plus 1 - q times that without the cell.
    """
    cell, groups, counts = FOUR_CELLS.index(skew.cell), statistics.groups, statistics.counts
    keys = list(zip(groups.model, groups.slice, strict=True))
    skewed = np.flatnonzero(groups.identity == skew.identity)
    hidden = {keys[group]: bool(statistics.suppressed[group]) for group in skewed}
    n_rows = {keys[group]: int(counts.cells[cell, group]) for group in skewed}
    of_cell = {key: (0, ()) if hidden[key] else kept.get(key, (0, ())) for key in n_rows}
    measured: dict[int, dict[str, float]] = {
        group: _measure(
            counts.cells[:, group], pinned_terms(statistics)[:, group], cell, of_cell[keys[group]], include_subgroup
        )
        for group in skewed.tolist()
    }
    if without is not None:
        for group in np.flatnonzero(~groups.is_overall & (groups.identity != skew.identity)).tolist():
            n_dropped, n = of_cell[keys[group]][0], n_rows[keys[group]]
            projected = _project(statistics, without, group, 1.0 - n_dropped / n if n else 1.0, include_subgroup)
            measured[group] = projected | {"n_dropped": n_dropped}
    rows = np.array(list(measured), np.int64)
    is_hidden = np.array([hidden[keys[group]] or statistics.suppressed[group] for group in rows], bool)
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
        n_rows=Masked(np.array([n_rows[keys[group]] for group in rows]), is_hidden),
        **columns | {"n_dropped": Masked(np.array(columns["n_dropped"]), is_hidden)},
    )


def _project(
    statistics: UStatistics, without: Counts, group: int, share: float, include_subgroup: bool
) -> dict[str, float]:
    """Return the AUCs of a group of another identity: over all rows, and the pinned AUC by the closed form.

    `share` is the share of the cell that is kept.
    """
    sizes, terms = statistics.counts.cells[:, group], pinned_terms(statistics)[:, group]
    left = share * sizes + (1.0 - share) * without.cells[:, group]
    of_all, of_rest = (
        counts.sums[PINNED_PAIRS, 0, group].astype(np.float64) for counts in (statistics.counts, without)
    )
    expected = divide(
        share * of_all + (1.0 - share) * of_rest, 2.0 * left[LOW[PINNED_PAIRS]] * left[HIGH[PINNED_PAIRS]]
    )
    before, after = (
        float(pinned_auc(n, aucs, include_subgroup))
        for n, aucs in ((sizes, terms), (left, np.where(np.isnan(terms), nan, expected)))
    )
    hidden = statistics.suppressed[group]
    values = {"pinned_auc": before, "pinned_auc_skewed": after} if not hidden else {}
    return values | {name: float(terms[PINNED_TERMS.index(name)]) for name in SUMMARIZED_AUCS}


def _measure(sizes: Ints, aucs: Floats, cell: int, kept: Kept, include_subgroup: bool) -> dict[str, float]:
    """Return the AUCs of one (model, slice): over all rows, by the closed form, and over the trials."""
    (n_dropped, two_u), left = kept, sizes.copy()
    left[cell] -= n_dropped
    before, skewed = (float(pinned_auc(n, aucs, include_subgroup)) for n in (sizes, left))
    trials = np.repeat(aucs[:, None], len(two_u), axis=1)
    for term, cells in enumerate(CELL_PAIRS[pair] for pair in PINNED_PAIRS):
        low, high = map(FOUR_CELLS.index, cells)
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
