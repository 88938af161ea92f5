"""The metrics as tables: the models side by side, the worst identities, and every identity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from biasspark.columns import ALL_ROWS, OVERALL, SUMMARIZED_AUCS, SUMMARIZED_GAPS
from biasspark.report.cells import DASH, Row, TableCell, is_weak, metric_cell, show_count, sum_cell
from biasspark.report.definitions import SUITE
from biasspark.report.report_data import WORST, ReportData, Rows, find_lowest

MAX_WORST = 8
_MEANS = ("competition_score", *(f"{name}_power_mean" for name in SUMMARIZED_AUCS))


@dataclass(frozen=True, kw_only=True)
class SummaryCell:
    """One number of a model.

    Attributes
    ----------
    cell, identity
        The number, and of a worst value whose it is.
    best
        Whether no other model is better.
    weak_worst
        The worst value of all identities where it rests on too few rows. Then ``cell`` is the worst with enough rows.
    """

    cell: TableCell
    identity: str = ""
    best: bool = False
    weak_worst: SummaryCell | None = None


class SummaryRow(NamedTuple):
    """One column of ``model_summary`` for all models, in their order."""

    column: str
    cells: Sequence[SummaryCell]


class WorstIdentity(NamedTuple):
    """One identity of one model: its lowest AUC with the interval, its rows and its gaps."""

    identity: str
    metric: str
    cell: TableCell
    low: float | None
    high: float | None
    value: float
    n_positive: int
    n_negative: int
    gaps: Mapping[str, TableCell]


class MetricRow(NamedTuple):
    """One identity with the metrics of all models: cells by (metric, model).

    The counts are those of the first model; ``n_differs`` where other models have others.
    """

    identity: str
    n_positive: int | None
    n_negative: int | None
    n_differs: bool
    background: str
    cells: Mapping[tuple[str, str], TableCell]


def summarize_models(report: ReportData) -> list[SummaryRow]:
    """Return the measures of all rows with a cell per model. Worst values have the interval of their identity."""
    summaries, models = report.summaries(), report.models()
    rows = [("auc", [_overall(summaries.get(model)) for model in models])]
    rows += [(column, [_worst_value(report, model, name) for model in models]) for name, column in WORST.items()]
    rows += [(column, [SummaryCell(cell=_mean(report, model, column)) for model in models]) for column in _MEANS]
    return [SummaryRow(column=column, cells=_mark_best(cells, column)) for column, cells in rows]


def _overall(summary: Row | None) -> SummaryCell:
    return SummaryCell(cell=metric_cell(summary, "auc") if summary else TableCell(text=DASH))


def _worst_value(report: ReportData, model: str, name: str) -> SummaryCell:
    summary, suite = report.summaries().get(model), report.suite()
    identity = (summary and summary[f"{WORST[name]}_identity"]) or ""
    row = suite.get((model, identity))
    worst = SummaryCell(cell=metric_cell(row, name) if row else TableCell(text=DASH), identity=identity)
    if not worst.cell.weak:
        return worst
    precise = [
        (-abs(row[name]) if name in SUMMARIZED_GAPS else row[name], row["identity"], row)
        for row in _identities(report, model)
        if not is_weak(row[f"{name}_low"], row[f"{name}_high"])
    ]
    if not precise:
        return worst
    _, identity, row = min(precise, key=lambda one: one[:2])
    return SummaryCell(cell=metric_cell(row, name), identity=identity, weak_worst=worst)


def _mean(report: ReportData, model: str, column: str) -> TableCell:
    summary = report.summaries().get(model)
    if summary is None:
        return TableCell(text=DASH)
    parts: Row = next(iter(report.rows("auc_sums", model=model)), {})
    return sum_cell(summary[column], parts.get(f"{column}_weak", 0), parts.get(f"{column}_n", 0))


def pinned_differences(report: ReportData) -> dict[str, TableCell]:
    """Return the pinned AUC equality difference by model."""
    return {model: _mean(report, model, "pinned_auc_equality_difference") for model in report.summaries()}


def _mark_best(cells: Sequence[SummaryCell], column: str) -> list[SummaryCell]:
    """Mark the best number of a row, as far as its digits tell.

    None if all are the same, one is alone or weak, or a worst value rests on too few rows: then the numbers are not of
    the same identities.
    """
    sign = -1.0 if column.endswith("_max_abs") else 1.0
    values = [None if one.cell.value is None else round(sign * abs(one.cell.value), 3) for one in cells]
    defined = [value for value in values if value is not None]
    if len(defined) < 2 or min(defined) == max(defined) or any(one.cell.weak or one.weak_worst for one in cells):
        return list(cells)
    return [replace(one, best=value == max(defined)) for one, value in zip(cells, values, strict=True)]


def list_worst(report: ReportData, model: str, n: int = MAX_WORST) -> list[WorstIdentity]:
    """Return the identities with the lowest AUC of a model on all rows, those with enough rows first."""
    return _sort_worst(_identities(report, model))[:n]


def list_worst_pairs(report: ReportData) -> dict[str, list[WorstIdentity]]:
    """Return by model the worst crossed pairs on all rows."""
    pairs = report.rows("crossed_pairs")
    models = dict.fromkeys(row["model"] for row in pairs)
    return {model: _sort_worst(row for row in pairs if row["model"] == model) for model in models}


def count_lower(report: ReportData, model: str, worst: WorstIdentity) -> int:
    """Return how many identities have an AUC below that of the worst with enough rows."""
    rows = _identities(report, model)
    return sum(any(row[name] is not None and row[name] < worst.value for name in SUMMARIZED_AUCS) for row in rows)


def _sort_worst(rows: Iterable[Row]) -> list[WorstIdentity]:
    lowest = sorted(((find_lowest(row), row) for row in rows), key=lambda one: (one[0][:2], one[1]["identity"]))
    return [_worst_identity(row, auc.metric) for auc, row in lowest if auc.metric]


def _worst_identity(row: Row, name: str) -> WorstIdentity:
    return WorstIdentity(
        identity=row["identity"],
        metric=name,
        cell=metric_cell(row, name),
        low=row[f"{name}_low"],
        high=row[f"{name}_high"],
        value=row[name],
        n_positive=row["n_subgroup_positive"],
        n_negative=row["n_subgroup_negative"],
        gaps={gap: metric_cell(row, gap) for gap in SUMMARIZED_GAPS},
    )


def list_metrics(report: ReportData, slice_name: str) -> list[MetricRow]:
    """Return the identities of a slice with all metrics of all models, those with the lowest AUC first."""
    rows = {(row["identity"], row["model"]): row for row in report.rows("bias_metrics", slice=slice_name)}
    return [_metric_row(identity, report.models(), rows) for identity in report.identities(slice_name)]


def _metric_row(identity: str, models: Sequence[str], rows: Mapping[tuple[str, str], Row]) -> MetricRow:
    measured = [rows[identity, model] for model in models if (identity, model) in rows]
    first = measured[0]
    positives, negatives = (show_count(first[f"n_background_{label}"]) for label in ("positive", "negative"))
    unmeasured = TableCell(text=DASH, note="not measured for this model")
    return MetricRow(
        identity=identity,
        n_positive=first["n_subgroup_positive"],
        n_negative=first["n_subgroup_negative"],
        n_differs=len({(row["n_subgroup_positive"], row["n_subgroup_negative"]) for row in measured}) > 1,
        background=f"background: {positives} positives, {negatives} negatives",
        cells={
            (name, model): metric_cell(rows[identity, model], name) if (identity, model) in rows else unmeasured
            for name in SUITE
            for model in models
        },
    )


def count_weak(report: ReportData) -> tuple[int, int]:
    """Return how many metrics of all rows rest on too few rows, and how many there are."""
    rows: Rows = [row for model in report.models() for row in _identities(report, model)]
    weak = [is_weak(row[f"{name}_low"], row[f"{name}_high"]) for row in rows for name in SUITE]
    return sum(weak), len(weak)


def _identities(report: ReportData, model: str) -> list[Row]:
    rows = report.rows("bias_metrics", slice=ALL_ROWS, model=model)
    return [row for row in rows if row["identity"] != OVERALL]
