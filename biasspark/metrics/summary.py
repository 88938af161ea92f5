"""One row for each model and slice: the overall AUC, and the suite summarized over identities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from biasspark.arrays import ROUNDING, Floats, Strings
from biasspark.columns import SUMMARIZED_AUCS, SUMMARIZED_GAPS
from biasspark.metrics.pinned import PINNED_PAIRS, known_auc, pinned_auc
from biasspark.metrics.suite import OVERALL_AUC, SUITE, metric_columns
from biasspark.metrics.thresholds import equality_difference
from biasspark.metrics.u_statistics import OVERALL_PAIR, UStatistics, identities_of_slices
from biasspark.tables.schemas import MODEL_SUMMARY, Masked, table_of_rows

POWER = -5
"""The exponent of the generalized mean: it gives low values, the worst-served identities, the most weight."""


def model_summary(statistics: UStatistics, level: float, include_subgroup: bool = True) -> pa.Table:
    """Return the table ``model_summary``: one row for each (model, slice), even without identities.

    Aggregates, defined in `biasspark.model_summary`, run over identities, crossed pairs left out, and those without a
    value. An aggregate over no identity is NULL, and so is ``competition_score`` if it lacks a part. Ties are broken by
    name. For `include_subgroup` see `pinned_auc`.
    """
    groups = statistics.groups
    suite = {metric.name: statistics.auc[metric.pair] - metric.offset for metric in SUITE}
    pinned = pinned_auc(statistics.counts.cells, statistics.auc[PINNED_PAIRS], include_subgroup)
    departure = known_auc(statistics.counts) - pinned
    rows: list[dict[str, Any]] = []
    for overall, members in identities_of_slices(groups):
        values = {name: suite[name][members] for name in SUMMARIZED_AUCS + SUMMARIZED_GAPS}
        row = summarize_suite(values, groups.identity[members])
        auc, means = statistics.auc[OVERALL_PAIR, overall], [row[f"{name}_power_mean"] for name in SUMMARIZED_AUCS]
        row["competition_score"] = 0.25 * auc + 0.25 * (means[0] + means[1] + means[2])
        none = np.where(np.isnan(auc), np.nan, 0.0)  # the departure of a model without bias
        row["pinned_auc_equality_difference"] = equality_difference(none, departure[members])
        rows.append(row)
    starts = np.flatnonzero(groups.is_overall)
    hidden = statistics.suppressed[starts]
    return table_of_rows(
        MODEL_SUMMARY,
        rows,
        model=groups.model[starts],
        slice=groups.slice[starts],
        n_negative=Masked(statistics.n_low[OVERALL_PAIR, starts], hidden),
        n_positive=Masked(statistics.n_high[OVERALL_PAIR, starts], hidden),
        auc_variance=statistics.variance[OVERALL_PAIR, starts],
        **metric_columns(OVERALL_AUC, statistics, starts, level),
    )


def summarize_suite(values: dict[str, Floats], names: Strings) -> dict[str, Any]:
    """Return the aggregates of the suite over the identities of one (model, slice), ordered by name."""
    row: dict[str, Any] = {}
    for name in SUMMARIZED_AUCS:
        lowest, row[f"{name}_min_identity"] = _greatest(-values[name], names)
        row[f"{name}_min"], row[f"{name}_max"] = -lowest, _greatest(values[name], names)[0]
        row[f"{name}_power_mean"] = power_mean(values[name][~np.isnan(values[name])])
    for name in SUMMARIZED_GAPS:
        row[f"{name}_max_abs"], row[f"{name}_max_abs_identity"] = _greatest(np.abs(values[name]), names)
    row["n_identities_undefined"] = int(np.isnan(list(values.values())).any(axis=0).sum())
    return row


def _greatest(values: Floats, names: Strings) -> tuple[float, str | None]:
    """Return the greatest value that is not NaN, and the first name with it; NaN and None without values.

    Values are equal within `ROUNDING`: the gaps of two identities that are each other's background have one size.
    """
    known = np.flatnonzero(~np.isnan(values))
    if not len(known):
        return float("nan"), None
    greatest = values[known].max()
    return float(greatest), names[known[values[known] >= greatest - ROUNDING][0]]


def power_mean(values: Floats) -> float:
    """Return the generalized mean (Σ x^p / n)^(1/p) of values in [0, 1], where p is `POWER`.

    If a value is zero, the mean is 0, its limit; without values it is NaN.
    """
    if not len(values):
        return float("nan")
    if (values == 0).any():
        return 0.0
    total = 0.0
    for value in values.tolist():
        product = value
        for _ in range(-POWER - 1):
            product *= value
        total += 1.0 / product
    return float((total / len(values)) ** (1 / POWER))
