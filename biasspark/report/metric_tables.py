"""The metrics as tables: models side by side, identities, and optional tables such as rates at thresholds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, product
from typing import Any, NamedTuple

import numpy as np

from biasspark.columns import ALL_ROWS, EVERY_LENGTH, OVERALL, RATES, SUMMARIZED_AUCS
from biasspark.distributions import normal_quantile
from biasspark.metrics.intervals import Share, normal_interval, wilson_interval
from biasspark.metrics.pinned import PINNED_TERMS
from biasspark.report import cells, report_data
from biasspark.report.cells import DASH, Row, TableCell
from biasspark.report.definitions import SUITE, describe_reason
from biasspark.report.report_data import ReportData, find_lowest, lowest_first
from biasspark.text import show_visibly

MAX_WORST = 8
PINNED_DIFFERENCE = "pinned_auc_equality_difference"
_MEANS = ("competition_score", *(f"{name}_power_mean" for name in SUMMARIZED_AUCS))


class SummaryCell(NamedTuple):
    """A number of a model, and for a worst value its identity."""

    cell: TableCell
    identity: str = ""
    best: bool = False


def summarize_models(report: ReportData, slice_name: str = ALL_ROWS) -> dict[str, list[SummaryCell]]:
    """Return for each measure of a slice a cell per model. Worst values have the interval of their identity."""
    summaries, suite, models = report.summaries(slice_name), report.suite(slice_name), report.models()
    rows = {"auc": [SummaryCell(cells.metric_cell(summaries.get(model), "auc")) for model in models]}
    for name, column in report_data.WORST.items():
        worst = [(model, summaries.get(model, {}).get(f"{column}_identity") or "") for model in models]
        rows[column] = [SummaryCell(cells.metric_cell(suite.get(key), name), key[1]) for key in worst]
    for column in (*_MEANS, *([PINNED_DIFFERENCE] if "mitigation" in report.config else ())):
        rows[column] = [SummaryCell(cells.sum_cell(summaries.get(model), column)) for model in models]
    return {column: _mark_best(row_cells, column) for column, row_cells in rows.items()}


def _mark_best(row_cells: Sequence[SummaryCell], column: str) -> list[SummaryCell]:
    """Mark the best number of a row unless the shown digits are equal or a value is weak."""
    sign = -1.0 if column.endswith("_max_abs") or column == PINNED_DIFFERENCE else 1.0
    values = [None if model.cell.value is None else round(sign * abs(model.cell.value), 3) for model in row_cells]
    defined = {value for value in values if value is not None}
    if len(defined) < 2 or any(model.cell.weak for model in row_cells):
        return list(row_cells)
    return [model._replace(best=value == max(defined)) for model, value in zip(row_cells, values, strict=True)]


def list_worst(report: ReportData, model: str, n: int = MAX_WORST) -> list[Row]:
    """Return the rows of a model on all rows with an AUC, the n worst in the order of `lowest_first`."""
    rows = report.rows("bias_metrics", slice=ALL_ROWS, model=model)
    return sorted((row for row in rows if find_lowest(row).metric), key=lowest_first)[:n]


def list_worst_by_model(report: ReportData) -> dict[str, list[Row]]:
    """Return `list_worst` for every model."""
    return {model: list_worst(report, model) for model in report.models()}


def axis_start(*worst: Sequence[Row]) -> float:
    """Return the lower end of the axis of the intervals of the lowest AUCs: 0.5, or the next tenth below them."""
    lowest_aucs = [(row, find_lowest(row).metric) for row in chain(*worst)]
    ends = (row[name] if row[f"{name}_low"] is None else row[f"{name}_low"] for row, name in lowest_aucs)
    lowest = min(ends, default=0.5)
    return 0.5 if lowest >= 0.5 else int(10 * lowest) / 10


def count_lower(report: ReportData, model: str, worst: Row) -> int:
    """Return the number of other shown identities with an AUC below that of the worst one, though less certainly so."""
    lowest = worst[find_lowest(worst).metric]
    rows = report.rows("bias_metrics", slice=ALL_ROWS, model=model)
    rest = (row for row in rows if row["identity"] != worst["identity"])
    return sum(any(row[name] is not None and row[name] < lowest for name in SUMMARIZED_AUCS) for row in rest)


def list_metrics(report: ReportData, slice_name: str) -> dict[str, dict[str, Row]]:
    """Return the rows of ``bias_metrics`` on a slice by identity and model, the worst identity first."""
    suite, models = report.suite(slice_name), report.models()
    return {
        identity: {model: suite[model, identity] for model in models if (model, identity) in suite}
        for identity in report.identities(slice_name)
    }


def counts_differ(by_model: Mapping[str, Row]) -> bool:
    """Return whether models count different rows of an identity: some rows have no score from one of them."""
    return len({(row["n_subgroup_positive"], row["n_subgroup_negative"]) for row in by_model.values()}) > 1


def count_weak(report: ReportData) -> tuple[int, int]:
    """Return the number of metrics on all rows that rest on too few rows, and the number of all of them."""
    weak = [cells.is_weak(row, name) for row, name in product(report.rows("bias_metrics", slice=ALL_ROWS), SUITE)]
    return sum(weak), len(weak)


# ---- rates at thresholds

_COMPLEMENTS = {"tpr", "tnr"}
"""The rates that are 1 minus FNR or FPR. Their intervals are those with the sign reversed, and are not repeated."""

_OF_ONE_LABEL = {"tpr", "fpr", "tnr", "fnr"}
"""The rates among rows of one label. The others move with the share of positives, so their gaps have no color."""


def list_rates(report: ReportData) -> dict[float, tuple[list[tuple[Row, dict[str, TableCell]]], list[Row]]]:
    """Return by threshold the rows of ``threshold_rates``, each with its rates, and those of ``threshold_summary``.

    The latter have cells by column: ``rates`` are error rates on all rows, and ``sums`` are over identities.
    """
    rates = {}
    for threshold in report_data.choose_thresholds(report.rows("threshold_summary")):
        at = {"slice": ALL_ROWS, "threshold": threshold}
        by_key = {(row["identity"], row["model"]): row for row in report.rows("threshold_rates", **at)}
        in_order = [by_key[key] for key in product(report.identities(), report.models()) if key in by_key]
        shown = [(row, {rate: _rate_cell(row, rate) for rate in RATES}) for row in in_order]
        totals = [_total_with_cells(report, total) for total in report.rows("threshold_summary", **at)]
        rates[threshold] = shown, totals
    return rates


def _total_with_cells(report: ReportData, total: Row) -> Row:
    summary, rates = report.summaries().get(total["model"], {}), {}
    for name, size in (("fpr", "n_negative"), ("fnr", "n_positive")):
        rate, n = total[name], summary.get(size)
        ends = share_interval(round(rate * n), n, report.level) if rate is not None and n else (None, None)
        rates[name] = cells.interval_cell(rate, *ends)
    return {**total, "rates": rates, "sums": {name: cells.sum_cell(total, name) for name in report_data.RATE_SUMS}}


def _rate_cell(row: Row, rate: str) -> TableCell:
    """Return a rate with its gap to the background, which gives the cell its value, interval and color."""
    name = f"{rate}_gap"
    gap, low, high = row[name], row[f"{name}_low"], row[f"{name}_high"]
    if row[rate] is None:
        note = describe_reason(row["reason"]) if row["reason"] else "no such rows in the identity"
        return TableCell(text=DASH, note=note, weak=True)
    return TableCell(
        text=cells.show_number(row[rate]),
        difference="" if gap is None else cells.show_number(gap, signed=True),
        interval="" if rate in _COMPLEMENTS else cells.show_interval(low, high, signed=True),
        color=cells.gap_color(gap) if rate in _OF_ONE_LABEL else "",
        value=gap,
        weak=cells.is_weak(row, name),
    )


def share_interval(n: int, total: int, level: float) -> tuple[float, float]:
    """Return Wilson's interval of the share n / total (`biasspark.metrics.intervals.wilson_interval`)."""
    low, high = wilson_interval(Share(np.array([float(n)]), np.array([float(total)])), normal_quantile(level))
    return float(low[0]), float(high[0])


# ---- means over templates


def list_templates(report: ReportData) -> dict[str, dict[str, tuple[Row, TableCell, TableCell]]]:
    """Return by identity, the largest departure first, and model the means over templates, as a row and as cells."""
    means: dict[str, dict[str, tuple[Row, TableCell, TableCell]]] = {}
    for model in report.models():
        rows = report.rows("template_means", model=model)
        is_probability = all(row["lowest_score"] >= 0 and row["highest_score"] <= 1 for row in rows)
        for row in rows:
            means.setdefault(row["identity"], {})[model] = row, *_template_cells(row, report.level, is_probability)

    def order(identity: str) -> tuple[float, str]:
        return -max(abs(row["mean_departure"]) for row, *_ in means[identity].values()), identity

    return {identity: means[identity] for identity in sorted(means, key=order)}


def _template_cells(row: Row, level: float, is_probability: bool) -> tuple[TableCell, TableCell]:
    """Return the mean score and the mean departure, with Student's intervals over templates."""
    n, departure = row["n_templates"], row["mean_departure"]

    def ends(name: str, lowest: float) -> tuple[float | None, float | None]:
        deviation, limits = row[f"{name}_deviation"], (lowest, 1.0) if is_probability else (-math.inf, math.inf)
        variance = None if deviation is None else deviation**2 / n
        return normal_interval(row[f"mean_{name}"], variance, level, limits, freedom=n - 1)

    note = f"{cells.show_count(row['n_rows'])} rows of {cells.show_count(n)} templates"
    return (
        cells.interval_cell(row["mean_score"], *ends("score", 0.0), note=note),
        cells.interval_cell(departure, *ends("departure", -1.0), signed=True, color=cells.gap_color(departure)),
    )


# ---- label balance

_NO_ROWS = TableCell(text=DASH, note="no rows")
FEWEST_ROWS = 10
MAX_LACKING = 10


class BalanceTable(NamedTuple):
    """Shares of positives by identity, all rows first, and length bin; ``outside`` counts the rows in no bin."""

    bins: Sequence[str]
    rows: Mapping[str, Sequence[TableCell]]
    title: str
    outside: str


def list_training(report: ReportData) -> dict[str, tuple[Row, BalanceTable]]:
    """Return by model the row of all its training data and the identities that lacked most, if comments were added."""
    plan = [row for row in report.rows("label_balance", bucket=EVERY_LENGTH) if row["n_negatives_to_add"]]
    plan.sort(key=lambda row: (-row["n_negatives_to_add"], row["identity"]))
    lacking = {OVERALL, *(row["identity"] for row in plan[:MAX_LACKING])}
    listed = {}
    for model in report.models():
        rows = [row for row in report.rows("training_balance", model=model) if row["identity"] in lacking]
        whole: Row = next((row for row in rows if (row["identity"], row["bucket"]) == (OVERALL, EVERY_LENGTH)), {})
        if whole.get("n_added"):
            listed[model] = whole, tabulate_balance(rows, report.level, report.config, added="n_added")
    return listed


def tabulate_balance(
    rows: Sequence[Row], level: float, config: Mapping[str, Any], added: str = "n_negatives_to_add"
) -> BalanceTable:
    """Lay out rows of ``label_balance`` or of one model, with intervals at a level, titled by the configuration.

    First come identities for which a high share over all lengths is most certain, by the lower end of its interval, and
    last those with fewer than ten rows. ``added`` is the column with the number of added rows, or of those to add.
    """
    lengths = {row["bucket"]: row["length_low"] for row in rows}
    bins = sorted(lengths, key=lambda name: (name == EVERY_LENGTH, lengths[name] or 0, name))
    intervals = {
        (row["identity"], row["bucket"]): share_interval(row["n_positive"], row["n_rows"], level)
        for row in rows
        if row["positive_rate"] is not None
    }
    goals = {row["bucket"]: row["positive_rate"] for row in rows if row["identity"] == OVERALL}
    by_key = {}
    for row in rows:
        key = row["identity"], row["bucket"]
        goal = goals.get(row["bucket"]) if row["identity"] != OVERALL else None
        by_key[key] = _balance_cell(row, intervals.get(key), goal, added)

    sizes = {row["identity"]: row["n_rows"] or 0 for row in rows if row["bucket"] == EVERY_LENGTH}

    def order(name: str) -> tuple[bool, bool, float, str]:
        low, _ = intervals.get((name, EVERY_LENGTH), (0.0, 1.0))
        return name != OVERALL, sizes.get(name, 0) < FEWEST_ROWS, -low, name

    names = sorted({row["identity"] for row in rows}, key=order)
    titles = ["all lengths" if name == EVERY_LENGTH else name for name in bins]
    table = {name: [by_key.get((name, bin_name), _NO_ROWS) for bin_name in bins] for name in names}
    title = "Share of positives"
    if len(bins) > 1:
        keys = config.get("label_balance") or config.get("mitigation") or {}
        text, length = keys.get("text"), show_visibly(keys.get("length") or "length")
        title += f" by the length of {show_visibly(text)} in characters" if text else f" by {length}"
    return BalanceTable(titles, table, title, cells.describe_outside(rows))


def _balance_cell(row: Row, ends: tuple[float, float] | None, goal: float | None, added: str) -> TableCell:
    """Return a share of positives. It is weak if its interval is wide and includes the goal, the share of all rows.

    A narrow interval that includes the goal still answers the question: the share is about the goal. So does a wide one
    that excludes it: 85% of 46 rows are more than 25%. A share of fewer than ten rows is always weak.
    """
    if ends is None:
        return TableCell(text=DASH, note=describe_reason(row["reason"])) if row["reason"] else _NO_ROWS
    n_added = f"+{cells.show_count(row[added])}" if row[added] else ""
    counts = f"{cells.show_count(row['n_positive'])} of {cells.show_count(row['n_rows'])}"
    may_be_goal = goal is not None and cells.is_imprecise(*ends) and ends[0] <= goal <= ends[1]
    return TableCell(
        text=cells.show_percent(row["positive_rate"], 0),
        interval=n_added,
        color=cells.share_color(row["positive_rate"]),
        value=row["positive_rate"],
        note=f"{counts} rows, {cells.show_interval(*ends, digits=2)}",
        weak=row["n_rows"] < FEWEST_ROWS or may_be_goal,
    )


# ---- pinned AUC

PINNED_WEIGHTS = {name: name.replace("_auc", "_weight") for name in PINNED_TERMS}
"""The AUCs of which pinned AUC is the mean, and the columns of their weights."""


def list_pinned(report: ReportData) -> list[Row]:
    """Return the rows of ``pinned_auc`` in the order of the other tables.

    Each also has its row of ``bias_metrics`` as ``suite``, the value as ``cell``, and the AUCs that it averages, with
    their weights, as ``parts``.
    """
    order = {name: number for number, name in enumerate(report.identities())}
    rows = [row for row in report.rows("pinned_auc", slice=ALL_ROWS) if row["identity"] in order]
    suite, pinned = report.suite(), list[Row]()
    for row in sorted(rows, key=lambda row: (order[row["identity"]], row["model"])):
        suite_row = suite.get((row["model"], row["identity"]), {})
        parts = []
        for name, column in PINNED_WEIGHTS.items():
            weight = row[column]
            auc = replace(cells.metric_cell(suite_row, name), color="") if weight else TableCell(text=DASH)
            parts.append((auc, cells.show_number(weight, 2) if weight else ""))
        cell = TableCell(
            text=cells.show_number(row["pinned_auc"]),
            value=row["pinned_auc"],
            note=describe_reason(row["reason"]) if row["reason"] else "",
            weak=is_pinned_weak(row, suite_row),
        )
        pinned.append({**row, "suite": suite_row, "cell": cell, "parts": parts})
    return pinned


def is_pinned_weak(row: Row, suite_row: Row) -> bool:
    """Return whether a pinned AUC has no value, or an AUC of which it is the mean rests on too few rows."""
    weighted = [name for name, column in PINNED_WEIGHTS.items() if row[column]]
    return row["pinned_auc"] is None or any(cells.is_weak(suite_row, name) for name in weighted if suite_row)


MAX_SKEWED = 20


def list_skewed(report: ReportData) -> list[Row]:
    """Return the class-skew experiment on all rows: the identity that loses rows, then the largest other changes.

    Rows of ``pinned_skew`` also have whether the identity ``loses_rows``, the ``change`` of pinned AUC, and as
    ``shown`` each metric before and after rows are dropped, the latter empty if unknown.
    """
    listed: list[Row] = []
    for row in report.rows("pinned_skew", slice=ALL_ROWS):
        loses_rows = row["identity"] == (row["skewed_identity"] or row["identity"])
        before, after = row["pinned_auc"], row["pinned_auc_skewed"]
        change = None if before is None or after is None else after - before
        shown = {"pinned_auc": (cells.show_number(before), cells.show_number(after))}
        for name in SUMMARIZED_AUCS:
            mean = cells.show_number(row[f"{name}_sampled_mean"]) if loses_rows else ""
            shown[name] = (cells.show_number(row[name]), mean)
        listed.append({**row, "loses_rows": loses_rows, "change": change, "shown": shown})

    def order(row: Row) -> tuple[bool, float, str, str]:
        size = 0.0 if row["loses_rows"] else abs(row["change"] or 0.0)
        return not row["loses_rows"], -size, row["identity"], row["model"]

    return sorted(listed, key=order)[:MAX_SKEWED]
