"""Pinned AUC in the limit of infinitely many samples, from U statistics alone (Mitigating; Pinned, equation 3).

Its authors advise against it: if identities differ in the share of positives, it moves with that share and hides or
invents bias although the model stays the same (Pinned, section 2.2). It is here for comparison with published values;
use the bias suite for decisions.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa

from biasspark.arrays import Floats, Ints, divide
from biasspark.columns import BELOW_MINIMUM_ROWS, WITHHELD
from biasspark.metrics.suite import SUITE
from biasspark.metrics.u_statistics import HIGH, LOW, OVERALL_PAIR, UStatistics, name_empty_cells
from biasspark.ranking.counts import Counts
from biasspark.tables.arrow import Masked, to_table
from biasspark.tables.schemas import PINNED_AUC

PINNED_TERMS = ("background_auc", "subgroup_auc", "bpsn_auc", "bnsp_auc")
"""The four AUCs of which the pinned AUC is a weighted mean."""

PINNED_PAIRS = [metric.pair for name in PINNED_TERMS for metric in SUITE if metric.name == name]


def pinned_weights(cells: Ints, include_subgroup: bool = True) -> Floats:
    """Return the weight of each of the four AUCs in the pinned AUC, not yet divided by their sum.

    Parameters
    ----------
    cells : int64 array, shape (4, ...)
        The sizes of the four cells, in the order of `columns.FOUR_CELLS`.
    include_subgroup : bool
        Whether the background is drawn from all rows, as in the papers, or from those outside the subgroup, as in the
        authors' published code.

    Returns
    -------
    float64 array, shape (4, ...)
        In the order of `PINNED_TERMS`. A term with an empty cell weighs 0; all four do if a class is missing or there
        is nothing to draw.

    Notes
    -----
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
    of_subgroup = n_background + 2 * n_subgroup if include_subgroup else n_background
    of_cells = np.stack([of_subgroup, of_subgroup, n_subgroup, n_subgroup]) * sizes
    weights: Floats = of_cells[LOW[PINNED_PAIRS]] * of_cells[HIGH[PINNED_PAIRS]]
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
    return divide(two_u.astype(np.float64), (2 * negatives * positives).astype(np.float64))


def pinned_terms(statistics: UStatistics) -> Floats:
    """Return the four AUCs of every group, in the order of `PINNED_TERMS`: shape (4, groups)."""
    terms: Floats = statistics.auc[PINNED_PAIRS]
    return terms


def pinned_aucs(
    statistics: UStatistics, include_subgroup: bool = True, trials: int = 0, sampled: Floats | None = None
) -> pa.Table:
    """Return the table ``pinned_auc``: one row for each (model, slice, identity).

    The value is the mean of the row's four AUCs, weighted by the row's four weights, which add up to 1. `sampled` has
    the mean and the standard deviation of the pinned AUC over the `trials`, shape (2, groups), NaN if there is none.
    """
    groups, cells, terms = statistics.groups, statistics.counts.cells, pinned_terms(statistics)
    value = np.where(statistics.suppressed, np.nan, pinned_auc(cells, terms, include_subgroup))
    weights = pinned_weights(cells, include_subgroup)
    shares = divide(weights, reduce(np.add, weights))
    mean, sd = np.full((2, len(value)), np.nan) if sampled is None else sampled
    undefined, rows = np.isnan(value), ~groups.is_overall
    overall_auc = statistics.auc[OVERALL_PAIR, groups.is_overall][np.cumsum(groups.is_overall) - 1]
    # Sizes are withheld, a cell is empty, or else a term is missing.
    reason = np.where(statistics.suppressed, WITHHELD, name_empty_cells(statistics.counts))
    reason = np.array([one or BELOW_MINIMUM_ROWS for one in reason], object)
    known = np.where(statistics.suppressed, np.nan, known_auc(statistics.counts))
    columns: dict[str, Any] = groups._asdict() | {"pinned_auc": value, "overall_auc": overall_auc, "known_auc": known}
    columns |= {"sampled_mean": np.where(undefined, np.nan, mean), "sampled_sd": np.where(undefined, np.nan, sd)}
    for name, share, term in zip(PINNED_TERMS, shares, terms, strict=True):
        columns |= {name.replace("_auc", "_weight"): np.where(statistics.suppressed, np.nan, share), name: term}
    return to_table(
        PINNED_AUC,
        trials=trials,
        reason=Masked(reason[rows], ~undefined[rows]),
        **{name: values[rows] for name, values in columns.items()},
    )
