"""The metrics as tables: models side by side, identities, and what a configuration turns on, such as rates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from biasspark.columns import ALL_ROWS, EVERY_LENGTH, OVERALL, RATES, SUMMARIZED_AUCS, SUMMARIZED_GAPS
from biasspark.distributions import normal_quantile, student_quantile
from biasspark.metrics.proportions import Share, wilson_interval
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


Ends = tuple[float, float] | tuple[None, None]

# ---- rates at thresholds

_COMPLEMENTS = {"tpr", "tnr"}
"""The rates that are 1 minus FNR or FPR. Their intervals are the same with the sign reversed, and are not repeated."""

_OF_ONE_LABEL = {"tpr", "fpr", "tnr", "fnr"}
"""The rates of rows of one label. The others move with the share of positives, and their gaps have no color."""

_ROWS_OF_RATE = {"fpr": "n_negative", "fnr": "n_positive"}


class RateCell(NamedTuple):
    """A rate of an identity, and its gap to the background, which has the color and the interval."""

    rate: str
    gap: TableCell


class ModelRates(NamedTuple):
    """One model: its error rates on all rows, and its sums over identities, by column."""

    model: str
    rates: Mapping[str, TableCell]
    sums: Mapping[str, TableCell]


class ThresholdRates(NamedTuple):
    """The rates at one threshold: rows of ``threshold_rates``, each with its rates by name, and those of each model."""

    threshold: float
    rows: Sequence[tuple[Row, Mapping[str, RateCell]]]
    totals: Sequence[ModelRates]


def list_rates(report: ReportData) -> list[ThresholdRates]:
    """Return the rates of all rows at each shown threshold; none if the night has none."""
    return [_rates_at(report, threshold) for threshold in choose_thresholds(report.rows("threshold_rates"))]


def _rates_at(report: ReportData, threshold: float) -> ThresholdRates:
    rows, totals = (
        report.rows(table, slice=ALL_ROWS, threshold=threshold) for table in ("threshold_rates", "threshold_summary")
    )
    by_key = {(row["identity"], row["model"]): row for row in rows}
    in_order = [by_key.get((name, model)) for name in report.identities() for model in report.models()]
    shown = [(row, {rate: _rate_cell(row, rate) for rate in RATES}) for row in in_order if row]
    return ThresholdRates(threshold, shown, [_model_rates(report, total) for total in totals])


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
    for name, size in _ROWS_OF_RATE.items():
        rate, n = total[name], summary.get(size)
        ends = share_interval(round(rate * n), n, report.level) if rate is not None and n else (None, None)
        rates[name] = interval_cell(rate, *ends)
    return ModelRates(total["model"], rates, {name: sum_cell(total, name, parts) for name in RATE_SUMS})


def share_interval(n: int, total: int, level: float) -> tuple[float, float]:
    """Return Wilson's interval of the share n / total (`biasspark.metrics.proportions.wilson_interval`)."""
    low, high = wilson_interval(Share(np.array([float(n)]), np.array([float(total)])), normal_quantile(level))
    return float(low[0]), float(high[0])


# ---- means over templates


class TemplateScores(NamedTuple):
    """The mean scores over templates.

    ``rows`` has a row of ``template_means`` for each identity, that of the first model, the largest departure first;
    ``spreads`` by model those of the identities that it scores lowest and highest within a template; ``cells`` by
    (identity, model) the mean score and the departure.
    """

    rows: Sequence[Row]
    spreads: Mapping[str, tuple[Row, Row]]
    cells: Mapping[tuple[str, str], Sequence[TableCell]]


def list_templates(report: ReportData) -> TemplateScores | None:
    """Return mean scores over templates; None if the night has none."""
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
    """Return the mean score and the departure of an identity. Means of probabilities lie within 0 and 1."""
    n, score, departure = row["n_templates"], row["mean_score"], row["mean_departure"]
    score_ends = mean_interval(score, row["score_deviation"], n, level, 0.0 if is_probability else None)
    ends = mean_interval(departure, row["departure_deviation"], n, level, -1.0 if is_probability else None)
    return [
        interval_cell(score, *score_ends, note=f"{show_count(row['n_rows'])} rows of {show_count(n)} templates"),
        interval_cell(departure, *ends, signed=True, color=gap_color(departure)),
    ]


def mean_interval(mean: float, deviation: float | None, n: int, level: float, lowest: float | None = None) -> Ends:
    """Return Student's interval mean ± t·deviation/sqrt(n), None for fewer than two values.

    The deviation of the n values is that with n - 1. If means lie between the lowest and 1, the interval is cut off
    there, which costs no coverage.
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


class BalanceTable(NamedTuple):
    """Shares of positives: the titles of the length bins, and the cells of each identity, all rows first.

    `title` says by what length, and `outside` how many rows are in no bin of it.
    """

    bins: Sequence[str]
    rows: Mapping[str, Sequence[TableCell]]
    title: str
    outside: str


def list_balance(report: ReportData) -> BalanceTable | None:
    """Return the shares of positives by identity and text length; None if the night has none.

    Identities are sorted by the lower end of the interval over all lengths, the highest first, those with enough rows
    before the others.
    """
    rows = report.rows("label_balance")
    return _tabulate_balance(report, rows, "n_negatives_to_add") if rows else None


MOST_LACKING = 10


class TrainingBalance(NamedTuple):
    """What a model of a mitigation experiment was trained on: its rows, those added, and shares of positives."""

    n_rows: int
    n_added: int
    balance: BalanceTable


def list_training(report: ReportData) -> dict[str, TrainingBalance]:
    """Return by model what it was trained on, if comments were added: of the identities that lacked most."""
    plan = [row for row in report.rows("label_balance", bucket=EVERY_LENGTH) if row["n_negatives_to_add"]]
    plan.sort(key=lambda row: (-row["n_negatives_to_add"], row["identity"]))
    lacking = {OVERALL, *(row["identity"] for row in plan[:MOST_LACKING])}
    listed = {}
    for model in report.models():
        rows = [row for row in report.rows("training_balance", model=model) if row["identity"] in lacking]
        whole: Row = next((row for row in rows if (row["identity"], row["bucket"]) == (OVERALL, EVERY_LENGTH)), {})
        if whole.get("n_added"):
            balance = _tabulate_balance(report, rows, "n_added")
            listed[model] = TrainingBalance(whole["n_rows"], whole["n_added"], balance)
    return listed


def _tabulate_balance(report: ReportData, rows: Sequence[Row], added: str) -> BalanceTable:
    """Lay out rows of one model, with the column of the rows that are added, or to add."""
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
    title = f"Share of positives{_describe_lengths(report) if len(bins) > 1 else ''}"
    return BalanceTable(titles, table, title, describe_outside(rows))


def _describe_lengths(report: ReportData) -> str:
    """Return by what length rows are counted: a column of lengths, or that of a text."""
    config = read_config(report.run)
    keys = config.get("label_balance") or config.get("mitigation") or {}
    if column := keys.get("text"):
        return f" by the length of {show_name(column)} in characters"
    return f" by {show_name(keys.get('length') or 'length')}"


def _balance_cell(row: Row, ends: tuple[float, float] | None, goal: float | None, added: str) -> TableCell:
    """Return a share of positives: weak where its interval is wide and holds the goal, the rate of all rows.

    A wide interval away from the goal settles what the table is read for: 85 % of 46 rows are more than 25 %. But of
    fewer than ten rows no interval settles anything.
    """
    if ends is None:
        return TableCell(text=DASH, note=describe_reason(row["reason"])) if row["reason"] else _NO_ROWS
    n_added = f"+{show_count(row[added])}" if row[added] else ""
    if added == "n_negatives_to_add" and lacks_by_length(row, goal):
        n_added += " by length"  # only a sum over lengths is above 0 where the share of all of them is below the goal
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
"""The AUCs that pinned AUC is the weighted mean of, as prefixes of columns."""


class PinnedRow(NamedTuple):
    """One row of ``pinned_auc`` and that of ``bias_metrics``: the value, and the AUCs of its parts with their weights.

    Pinned AUC has no interval. It is weak where one of its parts is.
    """

    row: Row
    suite: Row
    cell: TableCell
    parts: Sequence[tuple[TableCell, str]]


def list_pinned(report: ReportData) -> list[PinnedRow]:
    """Return pinned AUC in the order of the other tables."""
    order = {name: number for number, name in enumerate(report.identities())}
    rows = [row for row in report.rows("pinned_auc", slice=ALL_ROWS) if row["identity"] in order]
    suite, pinned = report.suite(), []
    for row in sorted(rows, key=lambda row: (order[row["identity"]], row["model"])):
        of_suite = suite.get((row["model"], row["identity"]), {})
        parts = [_pinned_part(row, of_suite, part) for part in PINNED_PARTS]
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
    """One row of ``pinned_skew``: whether it is that of the identity that loses rows, and values before and after.

    `change` is that of pinned AUC. `values` has by metric the value before, and the value after, empty where nothing is
    known of it.
    """

    row: Row
    loses_rows: bool
    change: float | None
    values: Mapping[str, tuple[str, str]]


def list_skewed(report: ReportData) -> list[SkewedRow]:
    """Return the class-skew experiment of all rows: the identity that loses rows, then the largest other changes."""
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


def _pinned_part(row: Row, suite: Row, part: str) -> tuple[TableCell, str]:
    """Return an AUC with the interval of the suite, and its weight."""
    name, weight = f"{part}_auc", row[f"{part}_weight"]
    if not weight:
        return TableCell(text=DASH), ""
    cell = replace(metric_cell(suite, name), color="") if f"{name}_low" in suite else interval_cell(row[name])
    return cell, show_number(weight, 2)
