"""The tables of metrics that a configuration turns on: rates at thresholds, templates, label balance and pinned AUC."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from biasspark.columns import ALL_ROWS, EVERY_LENGTH, OVERALL, RATES
from biasspark.distributions import normal_quantile, student_quantile
from biasspark.metrics.proportions import Share, wilson_interval
from biasspark.report.cells import (
    DASH,
    Row,
    TableCell,
    gap_color,
    interval_cell,
    is_weak,
    metric_cell,
    share_color,
    show_count,
    show_interval,
    show_number,
    show_percent,
    sum_cell,
)
from biasspark.report.definitions import DECISIONS, describe_reason
from biasspark.report.filters import RATE_SUMS
from biasspark.report.report_data import ReportData, Rows, choose_thresholds

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


class IdentityRates(NamedTuple):
    """One identity and model: the counts of `DECISIONS`, and the rates by name."""

    identity: str
    model: str
    counts: Sequence[str]
    cells: Mapping[str, RateCell]


class ModelRates(NamedTuple):
    """One model: its error rates on all rows, and its sums over identities, by column."""

    model: str
    rates: Mapping[str, TableCell]
    sums: Mapping[str, TableCell]


class ThresholdRates(NamedTuple):
    """The rates at one threshold."""

    threshold: float
    rows: Sequence[IdentityRates]
    totals: Sequence[ModelRates]


def list_rates(report: ReportData) -> list[ThresholdRates]:
    """Return the rates of all rows at each shown threshold; none if the night has none."""
    return [_rates_at(report, threshold) for threshold in choose_thresholds(report.rows("threshold_rates"))]


def _rates_at(report: ReportData, threshold: float) -> ThresholdRates:
    rows = report.rows("threshold_rates", slice=ALL_ROWS, threshold=threshold)
    by_key = {(row["identity"], row["model"]): row for row in rows}
    keys = [(name, model) for name in report.identities() for model in report.models()]
    return ThresholdRates(
        threshold=threshold,
        rows=[_identity_rates(by_key[key]) for key in keys if key in by_key],
        totals=[
            _model_rates(report, row) for row in report.rows("threshold_summary", slice=ALL_ROWS, threshold=threshold)
        ],
    )


def _identity_rates(row: Row) -> IdentityRates:
    return IdentityRates(
        identity=row["identity"],
        model=row["model"],
        counts=[show_count(row[name]) for name in DECISIONS],
        cells={rate: _rate_cell(row, rate) for rate in RATES},
    )


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
    return ModelRates(
        model=total["model"],
        rates={
            name: _whole_rate_cell(total[name], summary.get(n) or 0, report.level) for name, n in _ROWS_OF_RATE.items()
        },
        sums={
            name: sum_cell(total[name], parts.get(f"{name}_weak", 0), parts.get(f"{name}_n", 0)) for name in RATE_SUMS
        },
    )


def _whole_rate_cell(rate: float | None, n: int, level: float) -> TableCell:
    return (
        interval_cell(rate, *share_interval(round(rate * n), n, level))
        if rate is not None and n
        else interval_cell(rate)
    )


def share_interval(n: int, total: int, level: float) -> tuple[float, float]:
    """Return Wilson's interval of the share n / total (`biasspark.metrics.proportions.wilson_interval`)."""
    low, high = wilson_interval(Share(np.array([float(n)]), np.array([float(total)])), normal_quantile(level))
    return float(low[0]), float(high[0])


# ---- means over templates


class Spread(NamedTuple):
    """The identities that a model scores lowest and highest within a template, and how far they are apart."""

    model: str
    low: str
    high: str
    cells: Sequence[TableCell]
    size: str


class TemplateRow(NamedTuple):
    """One identity: by model its mean score and its departure. The counts are those of the first model with scores."""

    identity: str
    n_templates: int
    n_rows: int
    cells: Mapping[str, Sequence[TableCell]]


class TemplateScores(NamedTuple):
    """The mean scores over templates, identities with the largest departure first."""

    spreads: Sequence[Spread]
    rows: Sequence[TemplateRow]


def list_templates(report: ReportData) -> TemplateScores | None:
    """Return mean scores over templates; None if the night has none."""
    means = report.rows("template_means")
    if not means:
        return None
    models = [model for model in report.models() if any(row["model"] == model for row in means)]
    by_model = {model: [row for row in means if row["model"] == model] for model in models}
    cells = {}
    for model, rows_of_model in by_model.items():
        is_probability = all(row["lowest_score"] >= 0 and row["highest_score"] <= 1 for row in rows_of_model)
        for row in rows_of_model:
            cells[row["identity"], model] = _template_cells(row, report.level, is_probability)
    first: dict[str, Row] = {}
    largest: dict[str, float] = {}
    for row in means:
        first.setdefault(row["identity"], row)
        largest[row["identity"]] = max(largest.get(row["identity"], 0.0), abs(row["mean_departure"]))
    missing = [TableCell(text=DASH)] * 2
    rows = [
        TemplateRow(
            identity=name,
            n_templates=first[name]["n_templates"],
            n_rows=first[name]["n_rows"],
            cells={model: cells.get((name, model), missing) for model in models},
        )
        for name in sorted(largest, key=lambda name: (-largest[name], name))
    ]
    return TemplateScores(spreads=[_spread(model, by_model[model], cells) for model in models], rows=rows)


def _spread(model: str, means: Rows, cells: Mapping[tuple[str, str], Sequence[TableCell]]) -> Spread:
    ordered = sorted(means, key=lambda row: (row["mean_departure"], row["identity"]))
    low, high = ordered[0], ordered[-1]
    return Spread(
        model=model,
        low=low["identity"],
        high=high["identity"],
        cells=[cells[row["identity"], model][1] for row in (low, high)],
        size=show_number(high["mean_departure"] - low["mean_departure"]),
    )


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

    Parameters
    ----------
    mean, deviation : float
        Of n values, the deviation with n - 1.
    level : float
        Nominal coverage, in (0, 1).
    lowest : float, optional
        If means lie between this and 1, the interval is cut off there, which costs no coverage.
    """
    if deviation is None or n < 2:
        return None, None
    half = student_quantile(level, n - 1) * deviation / math.sqrt(n)
    if lowest is None:
        return mean - half, mean + half
    return max(mean - half, lowest), min(mean + half, 1.0)


# ---- label balance

_NO_ROWS = TableCell(text=DASH, note="no rows")


class BalanceTable(NamedTuple):
    """Shares of positives: the titles of the length bins, and the cells of each identity, all rows first."""

    bins: Sequence[str]
    rows: Sequence[tuple[str, Sequence[TableCell]]]


def list_balance(report: ReportData) -> BalanceTable | None:
    """Return the shares of positives by identity and text length; None if the night has none.

    Identities are sorted by the lower end of the interval over all lengths, the highest first, those with enough rows
    before the others.
    """
    rows = report.rows("label_balance")
    if not rows:
        return None
    lengths = {row["bucket"]: row["length_low"] for row in rows}
    bins = sorted(lengths, key=lambda name: (name == EVERY_LENGTH, lengths[name] or 0, name))
    cells = {(row["identity"], row["bucket"]): _balance_cell(row, report.level) for row in rows}
    lows = {row["identity"]: _balance_low(row, report.level) for row in rows if row["bucket"] == EVERY_LENGTH}

    def order(name: str) -> tuple[bool, bool, float, str]:
        low = lows.get(name)
        return name != OVERALL, low is None or cells[name, EVERY_LENGTH].weak, -(low or 0.0), name

    names = sorted({row["identity"] for row in rows}, key=order)
    titles = ["all lengths" if name == EVERY_LENGTH else name for name in bins]
    return BalanceTable(titles, [(name, [cells.get((name, one), _NO_ROWS) for one in bins]) for name in names])


def _balance_low(row: Row, level: float) -> float | None:
    return None if row["positive_rate"] is None else share_interval(row["n_positive"], row["n_rows"], level)[0]


def _balance_cell(row: Row, level: float) -> TableCell:
    if row["positive_rate"] is None:
        return TableCell(text=DASH, note=describe_reason(row["reason"])) if row["reason"] else _NO_ROWS
    ends = share_interval(row["n_positive"], row["n_rows"], level)
    counts = f"{show_count(row['n_positive'])} of {show_count(row['n_rows'])}"
    return TableCell(
        text=show_percent(row["positive_rate"], 0),
        interval=f"+{show_count(row['n_negatives_to_add'])}" if row["n_negatives_to_add"] else "",
        color=share_color(row["positive_rate"]),
        value=row["positive_rate"],
        note=f"{counts} rows, {show_interval(*ends, digits=2)}",
        weak=is_weak(*ends),
    )


# ---- pinned AUC

PINNED_PARTS = ("background", "subgroup", "bpsn", "bnsp")
"""The AUCs that pinned AUC is the weighted mean of, as prefixes of columns."""


class PinnedRow(NamedTuple):
    """One identity and model: pinned AUC, the mean and deviation of samples, and the parts with their weights.

    Pinned AUC has no interval. It is weak where one of its parts is.
    """

    identity: str
    model: str
    n_positive: int | None
    n_negative: int | None
    cell: TableCell
    sampled: str
    parts: Sequence[tuple[TableCell, str]]


def list_pinned(report: ReportData) -> list[PinnedRow]:
    """Return pinned AUC in the order of the other tables."""
    order = {name: number for number, name in enumerate(report.identities())}
    rows = [row for row in report.rows("pinned_auc", slice=ALL_ROWS) if row["identity"] in order]
    rows.sort(key=lambda row: (order[row["identity"]], row["model"]))
    suite = report.suite()
    return [_pinned_row(row, suite.get((row["model"], row["identity"]), {})) for row in rows]


def _pinned_row(row: Row, suite: Row) -> PinnedRow:
    parts = [_pinned_part(row, suite, part) for part in PINNED_PARTS]
    cell = TableCell(
        text=show_number(row["pinned_auc"]),
        value=row["pinned_auc"],
        note=describe_reason(row["reason"]) if row["reason"] else "",
        weak=row["pinned_auc"] is None or any(part.weak for part, _ in parts),
    )
    sampled = [row["sampled_mean"], row["sampled_sd"]]
    return PinnedRow(
        identity=row["identity"],
        model=row["model"],
        n_positive=suite.get("n_subgroup_positive"),
        n_negative=suite.get("n_subgroup_negative"),
        cell=cell,
        sampled=DASH if sampled[0] is None else ", ".join(map(show_number, sampled)),
        parts=parts,
    )


def _pinned_part(row: Row, suite: Row, part: str) -> tuple[TableCell, str]:
    """Return an AUC with the interval of the suite, and its weight."""
    name, weight = f"{part}_auc", row[f"{part}_weight"]
    if not weight:
        return TableCell(text=DASH), ""
    if f"{name}_low" not in suite:
        return interval_cell(row[name]), show_number(weight, 2)
    return replace(metric_cell(suite, name), color=""), show_number(weight, 2)
