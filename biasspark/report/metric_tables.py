"""The metrics as tables: models side by side, identities, and optional tables such as rates at thresholds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from biasspark.columns import ALL_ROWS, EVERY_LENGTH, OVERALL, RATES, SUMMARIZED_AUCS, SUMMARIZED_GAPS
from biasspark.distributions import normal_quantile, student_quantile
from biasspark.metrics.intervals import Share, wilson_interval
from biasspark.report.cells import (
    DASH,
    Row,
    TableCell,
    describe_outside,
    gap_color,
    interval_cell,
    is_weak,
    lacks_by_length,
    metric_cell,
    share_color,
    show_count,
    show_interval,
    show_name,
    show_number,
    show_percent,
    sum_cell,
)
from biasspark.report.definitions import SUITE, describe_bias, describe_reason
from biasspark.report.report_data import (
    RATE_SUMS,
    WORST,
    ReportData,
    Rows,
    choose_thresholds,
    find_lowest,
    group_rows,
    read_config,
)

MAX_WORST = 8
_MEANS = ("competition_score", *(f"{name}_power_mean" for name in SUMMARIZED_AUCS))
_UNMEASURED = TableCell(text=DASH, note="not measured for this model")


class SummaryCell(NamedTuple):
    """One number of a model, whether it is the best of all models, and for a worst value its identity.

    If the worst value of all identities rests on too few rows, it is in ``weak_worst``, and ``cell`` has the worst
    value that rests on enough.
    """

    cell: TableCell
    identity: str = ""
    best: bool = False
    weak_worst: SummaryCell | None = None


class WorstIdentity(NamedTuple):
    """The lowest AUC of one identity and model, and its row of ``bias_metrics``."""

    identity: str
    metric: str
    cell: TableCell
    row: Row


class MetricRow(NamedTuple):
    """One identity with the metrics of all models: cells by (metric, model), and the bias in words by model.

    ``first`` is the row of the first model, whose counts are shown; ``n_differs`` says if those of others differ.
    """

    identity: str
    first: Row
    n_differs: bool
    cells: Mapping[tuple[str, str], TableCell]
    biases: Mapping[str, str]


def summarize_models(report: ReportData, slice_name: str = ALL_ROWS) -> dict[str, list[SummaryCell]]:
    """Return for each measure of a slice a cell per model. Worst values have the interval of their identity."""
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
    """Mark the best number of a row, as far as the shown digits tell.

    None is marked if all are equal, if there is only one, or if any is weak: then the worst values may be of different
    identities.
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
    """Return `list_worst` for every model."""
    return {model: list_worst(report, model) for model in report.models()}


def list_worst_pairs(report: ReportData) -> dict[str, list[WorstIdentity]]:
    """Return the worst crossed pairs of each model on all rows."""
    return {model: _sort_worst(rows) for (model,), rows in group_rows(report.rows("crossed_pairs"), "model").items()}


def count_lower(report: ReportData, model: str, worst: WorstIdentity) -> int:
    """Return the number of identities with an AUC below that of the worst identity with enough rows."""
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
    """Return the identities of a slice with the metrics of all models, those with the lowest AUC first."""
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
    """Return the number of metrics on all rows that rest on too few rows, and the number of all of them."""
    rows: Rows = [row for model in report.models() for row in _identities(report, model)]
    weak = [is_weak(row[f"{name}_low"], row[f"{name}_high"]) for row in rows for name in SUITE]
    return sum(weak), len(weak)


def _identities(report: ReportData, model: str, slice_name: str = ALL_ROWS) -> list[Row]:
    rows = report.rows("bias_metrics", slice=slice_name, model=model)
    return [row for row in rows if row["identity"] != OVERALL]


Ends = tuple[float, float] | tuple[None, None]

# ---- rates at thresholds

_COMPLEMENTS = {"tpr", "tnr"}
"""The rates that are 1 minus FNR or FPR. Their intervals are those with the sign reversed, and are not repeated."""

_OF_ONE_LABEL = {"tpr", "fpr", "tnr", "fnr"}
"""The rates among rows of one label. The others move with the share of positives, so their gaps have no color."""


class RateCell(NamedTuple):
    """A rate of an identity, and its gap to the background, with the color and the interval."""

    rate: str
    gap: TableCell


class ModelRates(NamedTuple):
    """One model: its error rates on all rows, and its sums over identities, by column."""

    model: str
    rates: Mapping[str, TableCell]
    sums: Mapping[str, TableCell]


class ThresholdRates(NamedTuple):
    """The rates at one threshold: of each row of ``threshold_rates`` by name, and of each model."""

    threshold: float
    rows: Sequence[tuple[Row, Mapping[str, RateCell]]]
    totals: Sequence[ModelRates]


def list_rates(report: ReportData) -> list[ThresholdRates]:
    """Return the rates on all rows at each shown threshold."""
    rates = []
    for threshold in choose_thresholds(report.rows("threshold_rates")):
        rows, totals = (
            report.rows(table, slice=ALL_ROWS, threshold=threshold)
            for table in ("threshold_rates", "threshold_summary")
        )
        by_key = {(row["identity"], row["model"]): row for row in rows}
        in_order = [by_key.get((name, model)) for name in report.identities() for model in report.models()]
        shown = [(row, {rate: _rate_cell(row, rate) for rate in RATES}) for row in in_order if row]
        rates.append(ThresholdRates(threshold, shown, [_model_rates(report, total) for total in totals]))
    return rates


def _rate_cell(row: Row, rate: str) -> RateCell:
    gap, low, high = row[f"{rate}_gap"], row[f"{rate}_gap_low"], row[f"{rate}_gap_high"]
    if row[rate] is None:
        note = describe_reason(row["reason"]) if row["reason"] else "no such rows in the identity"
        return RateCell(rate=DASH, gap=TableCell(text="", note=note, weak=True))
    cell = interval_cell(gap, low, high, signed=True, color=gap_color(gap) if rate in _OF_ONE_LABEL else "")
    cell = replace(cell, text="") if gap is None else cell
    return RateCell(rate=show_number(row[rate]), gap=replace(cell, interval="") if rate in _COMPLEMENTS else cell)


def _model_rates(report: ReportData, total: Row) -> ModelRates:
    summary = report.summaries().get(total["model"], {})
    parts: Row = next(iter(report.rows("rate_sums", model=total["model"], threshold=total["threshold"])), {})
    rates = {}
    for name, size in (("fpr", "n_negative"), ("fnr", "n_positive")):
        rate, n = total[name], summary.get(size)
        ends = share_interval(round(rate * n), n, report.level) if rate is not None and n else (None, None)
        rates[name] = interval_cell(rate, *ends)
    return ModelRates(total["model"], rates, {name: sum_cell(total, name, parts) for name in RATE_SUMS})


def share_interval(n: int, total: int, level: float) -> tuple[float, float]:
    """Return Wilson's interval of the share n / total (`biasspark.metrics.intervals.wilson_interval`)."""
    low, high = wilson_interval(Share(np.array([float(n)]), np.array([float(total)])), normal_quantile(level))
    return float(low[0]), float(high[0])


# ---- means over templates


class TemplateScores(NamedTuple):
    """The mean scores over templates.

    ``rows`` has the first model's row of ``template_means`` for each identity, the largest departure of any model
    first; ``spreads`` each model's rows with the lowest and the highest departure; ``cells`` the mean score and the
    departure by (identity, model).
    """

    rows: Sequence[Row]
    spreads: Mapping[str, tuple[Row, Row]]
    cells: Mapping[tuple[str, str], Sequence[TableCell]]


def list_templates(report: ReportData) -> TemplateScores | None:
    """Return the mean scores over templates; None without any."""
    means = report.rows("template_means")
    if not means:
        return None
    spreads: dict[str, tuple[Row, Row]] = {}
    cells: dict[tuple[str, str], Sequence[TableCell]] = {}
    for model in report.models():
        rows = sorted(report.rows("template_means", model=model), key=itemgetter("mean_departure", "identity"))
        is_probability = all(row["lowest_score"] >= 0 and row["highest_score"] <= 1 for row in rows)
        if rows:
            spreads[model] = (rows[0], rows[-1])
        cells |= {(row["identity"], model): _template_cells(row, report.level, is_probability) for row in rows}
    first = {row["identity"]: row for row in reversed(means)}
    largest = {name: max(abs(row["mean_departure"]) for row in means if row["identity"] == name) for name in first}
    names = sorted(first, key=lambda name: (-largest[name], name))
    missing = {(name, model): [TableCell(text=DASH)] * 2 for name in names for model in spreads}
    return TemplateScores([first[name] for name in names], spreads, missing | cells)


def _template_cells(row: Row, level: float, is_probability: bool) -> Sequence[TableCell]:
    """Return the mean score and the departure of an identity."""
    n, score, departure = row["n_templates"], row["mean_score"], row["mean_departure"]
    score_ends = mean_interval(score, row["score_deviation"], n, level, 0.0 if is_probability else None)
    ends = mean_interval(departure, row["departure_deviation"], n, level, -1.0 if is_probability else None)
    return [
        interval_cell(score, *score_ends, note=f"{show_count(row['n_rows'])} rows of {show_count(n)} templates"),
        interval_cell(departure, *ends, signed=True, color=gap_color(departure)),
    ]


def mean_interval(mean: float, deviation: float | None, n: int, level: float, lowest: float | None = None) -> Ends:
    """Return Student's interval mean ± t·deviation/sqrt(n), None for fewer than two values.

    ``deviation`` is the sample standard deviation of the n values. If means can only lie between ``lowest`` and 1, the
    interval is clipped to that range, which costs no coverage.
    """
    if deviation is None or n < 2:
        return None, None
    half = student_quantile(level, n - 1) * deviation / math.sqrt(n)
    if lowest is None:
        return mean - half, mean + half
    return max(mean - half, lowest), min(mean + half, 1.0)


# ---- label balance

_NO_ROWS = TableCell(text=DASH, note="no rows")
FEWEST_ROWS = 10
MOST_LACKING = 10


class BalanceTable(NamedTuple):
    """Shares of positives: the titles of the length bins, and the cells of each identity, all rows first.

    ``title`` names the measure of length, and ``outside`` says how many rows are in no bin.
    """

    bins: Sequence[str]
    rows: Mapping[str, Sequence[TableCell]]
    title: str
    outside: str


def list_balance(report: ReportData) -> BalanceTable | None:
    """Return the shares of positives by identity and text length; None without any.

    Identities are sorted by the lower end of the interval over all lengths, the highest first, those with enough rows
    before the others.
    """
    rows = report.rows("label_balance")
    return _tabulate_balance(report, rows, "n_negatives_to_add") if rows else None


def list_training(report: ReportData) -> dict[str, tuple[Row, BalanceTable]]:
    """Return the training data of each model to which comments were added: the whole, and identities that lacked most.

    The whole is the row of ``training_balance`` for all rows of any length.
    """
    plan = [row for row in report.rows("label_balance", bucket=EVERY_LENGTH) if row["n_negatives_to_add"]]
    plan.sort(key=lambda row: (-row["n_negatives_to_add"], row["identity"]))
    lacking = {OVERALL, *(row["identity"] for row in plan[:MOST_LACKING])}
    listed = {}
    for model in report.models():
        rows = [row for row in report.rows("training_balance", model=model) if row["identity"] in lacking]
        whole: Row = next((row for row in rows if (row["identity"], row["bucket"]) == (OVERALL, EVERY_LENGTH)), {})
        if whole.get("n_added"):
            listed[model] = whole, _tabulate_balance(report, rows, "n_added")
    return listed


def _tabulate_balance(report: ReportData, rows: Sequence[Row], added: str) -> BalanceTable:
    """Lay out the rows of one model. ``added`` is the column with the number of added rows, or of those to add."""
    lengths = {row["bucket"]: row["length_low"] for row in rows}
    bins = sorted(lengths, key=lambda name: (name == EVERY_LENGTH, lengths[name] or 0, name))
    intervals = {
        (row["identity"], row["bucket"]): share_interval(row["n_positive"], row["n_rows"], report.level)
        for row in rows
        if row["positive_rate"] is not None
    }
    goals = {row["bucket"]: row["positive_rate"] for row in rows if row["identity"] == OVERALL}
    cells = {
        key: _balance_cell(row, intervals.get(key), goals.get(row["bucket"]) if key[0] != OVERALL else None, added)
        for row in rows
        for key in [(row["identity"], row["bucket"])]
    }

    def order(name: str) -> tuple[bool, bool, float, str]:
        low, _ = intervals.get((name, EVERY_LENGTH), (None, None))
        return name != OVERALL, low is None or cells[name, EVERY_LENGTH].weak, -(low or 0.0), name

    names = sorted({row["identity"] for row in rows}, key=order)
    titles = ["all lengths" if name == EVERY_LENGTH else name for name in bins]
    table = {name: [cells.get((name, one), _NO_ROWS) for one in bins] for name in names}
    title = "Share of positives"
    if len(bins) > 1:
        config = read_config(report.run)
        keys = config.get("label_balance") or config.get("mitigation") or {}
        text, length = keys.get("text"), keys.get("length") or "length"
        title += f" by the length of {show_name(text)} in characters" if text else f" by {show_name(length)}"
    return BalanceTable(titles, table, title, describe_outside(rows))


def _balance_cell(row: Row, ends: tuple[float, float] | None, goal: float | None, added: str) -> TableCell:
    """Return a share of positives. It is weak if its interval is wide and includes the goal, the rate of all rows.

    A wide interval that excludes the goal still answers the question: 85 % of 46 rows are more than 25 %. But a share
    of fewer than ten rows is always weak.
    """
    if ends is None:
        return TableCell(text=DASH, note=describe_reason(row["reason"])) if row["reason"] else _NO_ROWS
    n_added = f"+{show_count(row[added])}" if row[added] else ""
    if added == "n_negatives_to_add" and lacks_by_length(row, goal):
        n_added += " by length"  # some lengths lack negatives though the share over all lengths is below the goal
    counts = f"{show_count(row['n_positive'])} of {show_count(row['n_rows'])}"
    return TableCell(
        text=show_percent(row["positive_rate"], 0),
        interval=n_added,
        color=share_color(row["positive_rate"]),
        value=row["positive_rate"],
        note=f"{counts} rows, {show_interval(*ends, digits=2)}",
        weak=row["n_rows"] < FEWEST_ROWS or (goal is not None and is_weak(*ends) and ends[0] <= goal <= ends[1]),
    )


# ---- pinned AUC

PINNED_PARTS = ("background", "subgroup", "bpsn", "bnsp")
"""The AUCs whose weighted mean is pinned AUC, as prefixes of columns."""


class PinnedRow(NamedTuple):
    """A row of ``pinned_auc`` and of ``bias_metrics``: the value, and the AUCs that form it with their weights.

    Pinned AUC has no interval. It is weak if one of these AUCs is.
    """

    row: Row
    suite: Row
    cell: TableCell
    parts: Sequence[tuple[TableCell, str]]


def list_pinned(report: ReportData) -> list[PinnedRow]:
    """Return the pinned AUC of each identity and model, in the order of the other tables."""
    order = {name: number for number, name in enumerate(report.identities())}
    rows = [row for row in report.rows("pinned_auc", slice=ALL_ROWS) if row["identity"] in order]
    suite, pinned = report.suite(), []
    for row in sorted(rows, key=lambda row: (order[row["identity"]], row["model"])):
        of_suite = suite.get((row["model"], row["identity"]), {})
        parts = []
        for part in PINNED_PARTS:
            name, weight, auc = f"{part}_auc", row[f"{part}_weight"], TableCell(text=DASH)
            if weight:
                in_suite = f"{name}_low" in of_suite  # with an interval
                auc = replace(metric_cell(of_suite, name), color="") if in_suite else interval_cell(row[name])
            parts.append((auc, show_number(weight, 2) if weight else ""))
        cell = TableCell(
            text=show_number(row["pinned_auc"]),
            value=row["pinned_auc"],
            note=describe_reason(row["reason"]) if row["reason"] else "",
            weak=row["pinned_auc"] is None or any(part.weak for part, _ in parts),
        )
        pinned.append(PinnedRow(row, of_suite, cell, parts))
    return pinned


MOST_SKEWED = 20


class SkewedRow(NamedTuple):
    """A row of ``pinned_skew``: whether its identity loses rows, the change of pinned AUC, and values by metric.

    Each value is given before and after rows are dropped, the latter empty if unknown.
    """

    row: Row
    loses_rows: bool
    change: float | None
    values: Mapping[str, tuple[str, str]]


def list_skewed(report: ReportData) -> list[SkewedRow]:
    """Return the class-skew experiment on all rows: the identity that loses rows, then the largest other changes."""
    listed = []
    for row in report.rows("pinned_skew", slice=ALL_ROWS):
        loses_rows = row["identity"] == (row["skewed_identity"] or row["identity"])
        before, after = row["pinned_auc"], row["pinned_auc_skewed"]
        change = None if before is None or after is None else after - before
        values = {"pinned_auc": (show_number(before), show_number(after))}
        for name in SUMMARIZED_AUCS:
            mean = show_number(row[f"{name}_sampled_mean"]) if loses_rows else ""
            values[name] = (show_number(row[name]), mean)
        listed.append(SkewedRow(row, loses_rows, change, values))

    def order(one: SkewedRow) -> tuple[bool, float, str, str]:
        size = 0.0 if one.loses_rows else abs(one.change or 0.0)
        return not one.loses_rows, -size, one.row["identity"], one.row["model"]

    return sorted(listed, key=order)[:MOST_SKEWED]
