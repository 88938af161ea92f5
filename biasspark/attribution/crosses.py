"""AUC and headroom of every cross of groups, and of named pairs (Attributing, sections 6.1 to 6.4), from counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from biasspark.arrays import divide
from biasspark.columns import MODEL, ORDERED_DOUBLED, SLICE
from biasspark.config.attribution_settings import NamedPair
from biasspark.metrics.intervals import auc_interval, delong_variance
from biasspark.ranking.counts import Counts
from biasspark.ranking.kernels.pair_sums import BACKGROUND_PAIR
from biasspark.tables.schemas import Masked, Table, table_of_rows

OUTSIDE, INSIDE = "outside", "inside"
"""The groups of a named pair."""

_SUMS = ("n_positive", "n_negative", ORDERED_DOUBLED, "low_square_sum", "high_square_sum")


def list_named_pairs(pairs: Mapping[str, NamedPair], counted: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of `measure_crosses` of named pairs: of their groupings, those of the groups inside."""
    rows = []
    for row in sorted(counted, key=itemgetter(MODEL, SLICE)):
        if row["negative_group"] == row["positive_group"] == INSIDE:
            pair = pairs[row["grouping"]]
            predicates = {"negative_predicate": pair.negatives, "positive_predicate": pair.positives}
            rows.append({**row, "pair": row["grouping"], **predicates})
    return rows


def count_wrong_pairs(counts: Counts) -> dict[tuple[str, str], int]:
    """Return twice the wrongly ordered pairs of all rows, by model and slice that has any rows."""
    n_negative, n_positive = counts.cells[2:].astype(object)
    wrong = 2 * n_negative * n_positive - counts.sums[BACKGROUND_PAIR, 0]
    slices = zip(counts.groups.model, counts.groups.slice, strict=True)
    return {key: pairs for key, pairs, n_rows in zip(slices, wrong, n_negative + n_positive, strict=True) if n_rows}


def measure_crosses(
    table: Table, rows: Sequence[Mapping[str, Any]], all_wrong: Mapping[tuple[str, str], int], level: float
) -> pa.Table:
    """Return the table ``auc_crosses``, or ``named_pairs``: some positives against some negatives in each row.

    For positives of group i and negatives of group j: AUC = U/(n_i m_j), the share of correctly ordered pairs, ties
    half, and headroom = n_i m_j - U, the wrongly ordered pairs. The headroom of all crosses over all pairs is 1 - AUC.
    `rows` are, for crosses, the result of `biasspark.ranking.group_pair_counts.count_pairs_of_groups`, and `all_wrong`
    is that of `count_wrong_pairs`.
    """
    sums = (np.array([int(row[name]) for row in rows], object) for name in _SUMS)
    n_positive, n_negative, ordered, *square_sums = sums
    n_pairs = n_positive * n_negative
    wrong = (2 * n_pairs - ordered).astype(np.float64)
    auc = divide(ordered.astype(np.float64), 2 * n_pairs.astype(np.float64))
    variance = delong_variance(n_negative, n_positive, ordered, *square_sums)
    interval = auc_interval(auc, variance, n_negative.astype(np.int64), n_positive.astype(np.int64), level)
    measured = {
        "n_pairs": n_pairs,
        "auc": auc,
        "auc_low": interval.low,
        "auc_high": interval.high,
        "auc_variance": variance,
        "auc_method": Masked(interval.method, np.isnan(auc)),
        "headroom_pairs": wrong / 2,
        "headroom_share": divide(wrong, np.array([all_wrong[row[MODEL], row[SLICE]] for row in rows], np.float64)),
    }
    return table_of_rows(table, rows, **measured)
