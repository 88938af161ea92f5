"""The metrics as tables: the models side by side, the worst identities, and every identity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from biasspark.columns import ALL_ROWS, OVERALL, SUMMARIZED_AUCS, SUMMARIZED_GAPS
from biasspark.report.cells import DASH, Row, TableCell, is_weak, metric_cell, sum_cell
from biasspark.report.definitions import SUITE, describe_bias
from biasspark.report.report_data import WORST, ReportData, Rows, find_lowest, group_rows

MAX_WORST = 8
_MEANS = ("competition_score", *(f"{name}_power_mean" for name in SUMMARIZED_AUCS))
_UNMEASURED = TableCell(text=DASH, note="not measured for this model")


class SummaryCell(NamedTuple):
    """One number of a model, and whether no other model is better; of a worst value, whose it is.

    ``weak_worst`` is the worst value of all identities where it rests on too few rows. Then ``cell`` is the worst with
    enough rows.
    """

    cell: TableCell
    identity: str = ""
    best: bool = False
    weak_worst: SummaryCell | None = None


class WorstIdentity(NamedTuple):
    """The lowest AUC of one identity and model, and the row of ``bias_metrics`` that has it."""

    identity: str
    metric: str
    cell: TableCell
    row: Row


class MetricRow(NamedTuple):
    """One identity with the metrics of all models: cells by (metric, model), and by model the bias in words.

    ``first`` is the row of the first model, whose counts are shown; ``n_differs`` where other models have others.
    """

    identity: str
    first: Row
    n_differs: bool
    cells: Mapping[tuple[str, str], TableCell]
    biases: Mapping[str, str]


def summarize_models(report: ReportData, slice_name: str = ALL_ROWS) -> dict[str, list[SummaryCell]]:
    """Return by measure of a slice a cell per model. Worst values have the interval of their identity."""
    summaries, models = report.summaries(slice_name), report.models()
    rows = {"auc": [SummaryCell(metric_cell(summaries.get(model), "auc")) for model in models]}
    rows |= {
        column: [_worst_value(report, slice_name, model, name) for model in models] for name, column in WORST.items()
    }
    rows |= {column: [SummaryCell(_mean(report, slice_name, model, column)) for model in models] for column in _MEANS}
    return {column: _mark_best(cells, column) for column, cells in rows.items()}


def _worst_value(report: ReportData, slice_name: str, model: str, name: str) -> SummaryCell:
    summary, suite = report.summaries(slice_name).get(model), report.suite(slice_name)
    identity = (summary and summary[f"{WORST[name]}_identity"]) or ""
    row = suite.get((model, identity))
    worst = SummaryCell(metric_cell(row, name), identity)
    if not worst.cell.weak:
        return worst
    precise = [
        (-abs(row[name]) if name in SUMMARIZED_GAPS else row[name], row["identity"], row)
        for row in _identities(report, model, slice_name)
        if not is_weak(row[f"{name}_low"], row[f"{name}_high"])
    ]
    if not precise:
        return worst
    _, identity, row = min(precise, key=lambda one: one[:2])
    return SummaryCell(metric_cell(row, name), identity, weak_worst=worst)


def _mean(report: ReportData, slice_name: str, model: str, column: str) -> TableCell:
    summary = report.summaries(slice_name).get(model)
    if summary is None:
        return TableCell(text=DASH)
    parts: Row = next(iter(report.rows("auc_sums", slice=slice_name, model=model)), {})
    return sum_cell(summary, column, parts)


def pinned_differences(report: ReportData) -> dict[str, TableCell]:
    """Return the pinned AUC equality difference by model."""
    return {model: _mean(report, ALL_ROWS, model, "pinned_auc_equality_difference") for model in report.summaries()}


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
    return [one._replace(best=value == max(defined)) for one, value in zip(cells, values, strict=True)]


def list_worst(report: ReportData, model: str, n: int = MAX_WORST) -> list[WorstIdentity]:
    """Return the identities with the lowest AUC of a model on all rows, those with enough rows first."""
    return _sort_worst(_identities(report, model))[:n]


def list_worst_by_model(report: ReportData) -> dict[str, list[WorstIdentity]]:
    """Return `list_worst` of every model."""
    return {model: list_worst(report, model) for model in report.models()}


def list_worst_pairs(report: ReportData) -> dict[str, list[WorstIdentity]]:
    """Return by model the worst crossed pairs on all rows."""
    return {model: _sort_worst(rows) for (model,), rows in group_rows(report.rows("crossed_pairs"), "model").items()}


def count_lower(report: ReportData, model: str, worst: WorstIdentity) -> int:
    """Return how many identities have an AUC below that of the worst with enough rows."""
    rows = _identities(report, model)
    return sum(
        any(row[name] is not None and row[name] < worst.row[worst.metric] for name in SUMMARIZED_AUCS) for row in rows
    )


def _sort_worst(rows: Iterable[Row]) -> list[WorstIdentity]:
    lowest = sorted(((find_lowest(row), row) for row in rows), key=lambda one: (one[0][:2], one[1]["identity"]))
    return [
        WorstIdentity(row["identity"], auc.metric, metric_cell(row, auc.metric), row)
        for auc, row in lowest
        if auc.metric
    ]


def list_metrics(report: ReportData, slice_name: str) -> list[MetricRow]:
    """Return the identities of a slice with all metrics of all models, those with the lowest AUC first."""
    rows = {(row["identity"], row["model"]): row for row in report.rows("bias_metrics", slice=slice_name)}
    keys = [(name, model) for name in SUITE for model in report.models()]
    tables = []
    for identity in report.identities(slice_name):
        measured = [rows[identity, model] for model in report.models() if (identity, model) in rows]
        sizes = {(row["n_subgroup_positive"], row["n_subgroup_negative"]) for row in measured}
        cells = {
            (name, model): metric_cell(rows[identity, model], name) if (identity, model) in rows else _UNMEASURED
            for name, model in keys
        }
        biases = {model: describe_bias(rows.get((identity, model), {})) for model in report.models()}
        tables.append(MetricRow(identity, measured[0], len(sizes) > 1, cells, biases))
    return tables


def count_weak(report: ReportData) -> tuple[int, int]:
    """Return how many metrics of all rows rest on too few rows, and how many there are."""
    rows: Rows = [row for model in report.models() for row in _identities(report, model)]
    weak = [is_weak(row[f"{name}_low"], row[f"{name}_high"]) for row in rows for name in SUITE]
    return sum(weak), len(weak)


def _identities(report: ReportData, model: str, slice_name: str = ALL_ROWS) -> list[Row]:
    rows = report.rows("bias_metrics", slice=slice_name, model=model)
    return [row for row in rows if row["identity"] != OVERALL]
