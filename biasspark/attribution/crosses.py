"""AUC and headroom of every cross of groups (Attributing, sections 6.1 to 6.3), from counts of pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from biasspark.arrays import divide
from biasspark.columns import MODEL, ORDERED_DOUBLED, SLICE
from biasspark.metrics.delong import delong_variance
from biasspark.metrics.intervals import auc_interval
from biasspark.tables.arrow import masked, to_table
from biasspark.tables.schemas import AUC_CROSSES

_KEY = (MODEL, SLICE, "grouping", "positive_group", "negative_group")


def auc_crosses(crosses: Sequence[Mapping[str, Any]], level: float) -> pa.Table:
    """Return the table ``auc_crosses``.

    For positives of group i and negatives of group j: AUC = U/(n_i m_j), the share of rightly ordered pairs, ties half,
    and headroom = n_i m_j - U, the wrongly ordered ones. The headroom of all crosses over all pairs is 1 - AUC. Its
    interval is that of the AUC of any two cells.

    Parameters
    ----------
    crosses : sequence of mappings
        As `biasspark.ranking.group_pair_counts.count_pairs_of_groups` gives them.
    level : float
        Of the intervals.
    """

    def integers(name: str) -> Any:
        return np.array([int(row[name]) for row in crosses], object)

    n_positive, n_negative, ordered = map(integers, ("n_positive", "n_negative", ORDERED_DOUBLED))
    n_pairs = n_positive * n_negative
    wrong = 2 * n_pairs - ordered
    all_wrong: dict[tuple[Any, ...], int] = {}
    groups = [tuple(row[name] for name in _KEY[:3]) for row in crosses]
    for group, count in zip(groups, wrong.tolist(), strict=True):
        all_wrong[group] = all_wrong.get(group, 0) + count
    auc = divide(ordered.astype(np.float64), 2 * n_pairs.astype(np.float64))
    square_sums = integers("low_square_sum"), integers("high_square_sum")
    variance = delong_variance(n_negative, n_positive, ordered, *square_sums)
    interval = auc_interval(auc, variance, n_negative.astype(np.int64), n_positive.astype(np.int64), level)
    return to_table(
        AUC_CROSSES,
        **{name: [row[name] for row in crosses] for name in _KEY},
        n_positive=n_positive,
        n_negative=n_negative,
        n_pairs=n_pairs,
        ordered_doubled=ordered,
        auc=auc,
        auc_low=interval.low,
        auc_high=interval.high,
        auc_variance=variance,
        auc_method=masked(interval.method, np.isnan(auc)),
        headroom_pairs=wrong.astype(np.float64) / 2,
        headroom_share=divide(wrong.astype(np.float64), np.array([float(all_wrong[group]) for group in groups])),
    )
