"""The bias suite: five metrics and the background AUC, each one U statistic of two cells (Nuanced, section 3)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from biasspark.arrays import Ints, divide
from biasspark.columns import (
    BACKGROUND_NEGATIVE,
    BACKGROUND_POSITIVE,
    CELL_PAIRS,
    FOUR_CELLS,
    NEGATIVE,
    OVERALL_METRIC,
    POSITIVE,
    SUBGROUP_NEGATIVE,
    SUBGROUP_POSITIVE,
)
from biasspark.metrics.bias_names import name_bias
from biasspark.metrics.intervals import auc_interval
from biasspark.metrics.u_statistics import UStatistics
from biasspark.tables.schemas import BIAS_METRICS, Masked, to_table


class Metric(NamedTuple):
    """An AUC, P(score(high) > score(low)) + P(tie)/2 = U/(n·m), less the offset 1/2 if it is an average equality gap.

    An AUC of 1 is best. A gap of 0 is best, a positive one means higher subgroup scores (Nuanced, definition 3).
    """

    name: str
    low: str
    high: str
    offset: float = 0.0

    @property
    def pair(self) -> int:
        """The index of its pair of cells in `columns.CELL_PAIRS`."""
        return CELL_PAIRS.index((self.low, self.high))


SUITE = (
    Metric("subgroup_auc", low=SUBGROUP_NEGATIVE, high=SUBGROUP_POSITIVE),
    Metric("bpsn_auc", low=SUBGROUP_NEGATIVE, high=BACKGROUND_POSITIVE),
    Metric("bnsp_auc", low=BACKGROUND_NEGATIVE, high=SUBGROUP_POSITIVE),
    Metric("background_auc", low=BACKGROUND_NEGATIVE, high=BACKGROUND_POSITIVE),
    Metric("negative_aeg", low=BACKGROUND_NEGATIVE, high=SUBGROUP_NEGATIVE, offset=0.5),
    Metric("positive_aeg", low=BACKGROUND_POSITIVE, high=SUBGROUP_POSITIVE, offset=0.5),
)
"""A metric for each pair of cells in `columns.CELL_PAIRS`. Another metric of such a pair is another line."""

OVERALL_AUC = Metric(OVERALL_METRIC, low=BACKGROUND_NEGATIVE, high=BACKGROUND_POSITIVE)
"""The AUC of a whole slice: ``(overall)`` has only a background."""

METRIC_OF_CELLS = {(m.low, m.high): m.name for m in reversed(SUITE)} | {(NEGATIVE, POSITIVE): OVERALL_METRIC}
"""The first metric of each (low, high) pair of cells in ``u_statistics``; that of a whole slice is its AUC."""


def bias_metrics(statistics: UStatistics, level: float) -> pa.Table:
    """Return the table ``bias_metrics``: one row for each (model, slice, identity), without ``(overall)``.

    The interval of a gap is that of its AUC less 1/2. There is none if a cell has only one row.
    """
    rows = np.flatnonzero(~statistics.groups.is_overall)
    cells, hidden = statistics.counts.cells[:, rows], statistics.suppressed[rows]
    columns: dict[str, Any] = {name: values[rows] for name, values in statistics.groups._asdict().items()}
    columns["subgroup_size"] = Masked(cells[0] + cells[1], hidden)
    columns |= {f"n_{cell}": Masked(size, hidden) for cell, size in zip(FOUR_CELLS, cells, strict=True)}
    columns["subgroup_positive_rate"] = Masked(divide(cells[1], cells[0] + cells[1]), hidden)
    columns["background_positive_rate"] = Masked(divide(cells[3], cells[2] + cells[3]), hidden)
    for metric in SUITE:
        columns |= metric_columns(metric, statistics, rows, level)
    columns["bias"], columns["bias_size"] = name_bias(columns)
    return to_table(BIAS_METRICS, **columns)


def metric_columns(metric: Metric, statistics: UStatistics, rows: Ints, level: float) -> dict[str, Any]:
    """Return the columns ``X, X_low, X_high, X_method, X_reason`` of a metric X for the given groups."""
    pair, name = metric.pair, metric.name
    auc, variance = statistics.auc[pair, rows], statistics.variance[pair, rows]
    interval = auc_interval(auc, variance, statistics.n_low[pair, rows], statistics.n_high[pair, rows], level)
    return {
        name: auc - metric.offset,
        f"{name}_low": interval.low - metric.offset,
        f"{name}_high": interval.high - metric.offset,
        f"{name}_method": interval.method,
        f"{name}_reason": statistics.reason[pair, rows],
    }
