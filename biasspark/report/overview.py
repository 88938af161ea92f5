"""The models side by side, the worst identities, and the tables of all identities: rows as a page shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from biasspark.columns import ALL_ROWS, IDENTITY, MODEL, OVERALL, SUMMARISED_AUCS, SUMMARISED_GAPS
from biasspark.report.cells import Cell, is_weak, metric_cell, shade_auc, shade_gap, show_count, show_number
from biasspark.report.comparison import COMPARED
from biasspark.report.definitions import say_reason
from biasspark.report.facts import NightFacts, Row

MOST_WORST = 8
_LOWER_IS_BETTER = ("_max_abs", "_difference", "_undefined")
_PLAIN = ("competition_score", "subgroup_auc_power_mean", "bpsn_auc_power_mean", "bnsp_auc_power_mean")


@dataclass(frozen=True, kw_only=True)
class SummaryCell:
    """One number of a model: the number, of whom it is, and whether no other model is better."""

    cell: Cell
    identity: str = ""
    best: bool = False


@dataclass(frozen=True, kw_only=True)
class SummaryRow:
    """One measure of all models, in the order of the models."""

    column: str
    cells: Sequence[SummaryCell]


@dataclass(frozen=True, kw_only=True)
class Worst:
    """One identity of one model: its lowest AUC with its interval, and what it is about."""

    identity: str
    metric: str
    cell: Cell
    low: float | None
    high: float | None
    value: float
    n_positive: int
    n_negative: int
    gaps: Mapping[str, Cell]


@dataclass(frozen=True, kw_only=True)
class MetricRow:
    """One identity with the metrics of all models: cells by (metric, model)."""

    identity: str
    n_positive: int | None
    n_negative: int | None
    n_differs: bool
    background: str
    cells: Mapping[tuple[str, str], Cell]


def summarise_models(facts: NightFacts, cut: str = ALL_ROWS) -> list[SummaryRow]:
    """Return the measures of a slice, each with a cell a model; the worst identity's value has its own interval."""
    summaries = {row[MODEL]: row for row in facts.rows("model_summary", slice=cut)}
    suite = {(row[MODEL], row[IDENTITY]): row for row in facts.rows("bias_metrics", slice=cut)}
    rows = [SummaryRow(column="auc", cells=_mark_best([_overall(summaries, m) for m in facts.models()], "auc"))]
    for name in COMPARED:
        column = f"{name}_min" if name in SUMMARISED_AUCS else f"{name}_max_abs"
        cells = [_worst_of(summaries.get(model), suite, model, name, column) for model in facts.models()]
        rows.append(SummaryRow(column=column, cells=_mark_best(cells, column)))
    for column in _PLAIN:
        cells = [_plain(summaries.get(model), column) for model in facts.models()]
        rows.append(SummaryRow(column=column, cells=_mark_best(cells, column)))
    return rows


def _overall(summaries: Mapping[str, Row], model: str) -> SummaryCell:
    return SummaryCell(cell=metric_cell(summaries[model], "auc") if model in summaries else Cell(text="–"))


def _worst_of(
    summary: Row | None, suite: Mapping[tuple[str, str], Row], model: str, name: str, column: str
) -> SummaryCell:
    identity = (summary and summary[f"{column}_identity"]) or ""
    row = suite.get((model, identity))
    return SummaryCell(cell=metric_cell(row, name), identity=identity) if row else _plain(summary, column)


def _plain(summary: Row | None, column: str) -> SummaryCell:
    value = summary[column] if summary else None
    return SummaryCell(cell=Cell(text=show_number(value), value=value, shade=shade_auc(value)))


def _mark_best(cells: Sequence[SummaryCell], column: str) -> list[SummaryCell]:
    """Mark the best number of a row, so far as its digits tell; none where all are the same, one is alone, or weak."""
    size = -1.0 if column.endswith(_LOWER_IS_BETTER) else 1.0
    values = [None if own.cell.value is None else round(size * abs(own.cell.value), 3) for own in cells]
    there = [value for value in values if value is not None]
    if len(there) < 2 or min(there) == max(there) or any(own.cell.weak for own in cells):
        return list(cells)
    return [
        SummaryCell(cell=own.cell, identity=own.identity, best=value == max(there))
        for own, value in zip(cells, values, strict=True)
    ]


def list_worst(facts: NightFacts, model: str, most: int | None = MOST_WORST, *, sure: bool = False) -> list[Worst]:
    """Return the identities of all rows with the lowest of the three AUCs of a model, the worst first.

    Sure ones are by those AUCs alone that enough rows tell of.
    """
    found = []
    for row in facts.rows("bias_metrics", slice=ALL_ROWS, model=model):
        told = (name for name in SUMMARISED_AUCS if not (sure and is_weak(row[f"{name}_low"], row[f"{name}_high"])))
        there = [(row[name], name) for name in told if row[name] is not None]
        if there and row[IDENTITY] != OVERALL:
            value, name = min(there)
            found.append(_describe_worst(row, name, value))
    return sorted(found, key=lambda worst: (worst.value, worst.identity))[:most]


def list_worst_pairs(facts: NightFacts) -> dict[str, list[Worst]]:
    """Return by model the crossed pairs of all rows with the lowest AUC that has an interval, the worst first."""
    found: dict[str, list[Worst]] = {}
    for row in facts.rows("crossed_pairs"):
        value, name = min((row[name], name) for name in SUMMARISED_AUCS if row[f"{name}_low"] is not None)
        found.setdefault(row[MODEL], []).append(_describe_worst(row, name, value))
    return {model: sorted(rows, key=lambda worst: (worst.value, worst.identity)) for model, rows in found.items()}


def _describe_worst(row: Row, name: str, value: float) -> Worst:
    return Worst(
        identity=row[IDENTITY],
        metric=name,
        cell=metric_cell(row, name),
        low=row[f"{name}_low"],
        high=row[f"{name}_high"],
        value=value,
        n_positive=row["n_subgroup_positive"],
        n_negative=row["n_subgroup_negative"],
        gaps={gap: metric_cell(row, gap) for gap in SUMMARISED_GAPS},
    )


def tabulate_metrics(facts: NightFacts, cut: str) -> list[MetricRow]:
    """Return the identities of a slice with all metrics of all models, those with the lowest AUC first."""
    rows = {(row[IDENTITY], row[MODEL]): row for row in facts.rows("bias_metrics", slice=cut)}
    return [_tabulate_identity(name, facts.models(), rows) for name in facts.identities(cut)]


def _tabulate_identity(identity: str, models: Sequence[str], rows: Mapping[tuple[str, str], Row]) -> MetricRow:
    there = [rows[identity, model] for model in models if (identity, model) in rows]
    first = there[0]
    counts = {(row["n_subgroup_positive"], row["n_subgroup_negative"]) for row in there}
    background = (
        f"background: {show_count(first['n_background_positive'])} positives, "
        f"{show_count(first['n_background_negative'])} negatives"
    )
    return MetricRow(
        identity=identity,
        n_positive=first["n_subgroup_positive"],
        n_negative=first["n_subgroup_negative"],
        n_differs=len(counts) > 1,
        background=background,
        cells={
            (name, model): metric_cell(rows[identity, model], name)
            if (identity, model) in rows
            else Cell(text="–", note="not measured for this model")
            for name in COMPARED
            for model in models
        },
    )


def count_weak(facts: NightFacts, cut: str = ALL_ROWS) -> tuple[int, int]:
    """Return how many values of a slice have no interval or a wide one, and how many values there are."""
    rows = [row for row in facts.rows("bias_metrics", slice=cut) if row[IDENTITY] != OVERALL]
    ends = [(row[f"{name}_low"], row[f"{name}_high"]) for row in rows for name in COMPARED]
    return sum(is_weak(low, high) for low, high in ends), len(ends)


def tabulate_rates(facts: NightFacts, threshold: float) -> list[dict[str, object]]:
    """Return the error rates of each identity at a threshold, by model, with gaps to the background."""
    rows = facts.rows("threshold_rates", slice=ALL_ROWS, threshold=threshold)
    by_key = {(row[IDENTITY], row[MODEL]): row for row in rows}
    names = [name for name in facts.identities() if any((name, model) in by_key for model in facts.models())]
    return [
        {"identity": name, "cells": {model: _rate_cells(by_key.get((name, model))) for model in facts.models()}}
        for name in names
    ]


def _rate_cells(row: Row | None) -> dict[str, Cell]:
    if row is None or row.get("reason"):
        note = say_reason(row["reason"]) if row else ""
        return {name: Cell(text="–", note=note) for name in ("fpr", "fpr_gap", "fnr", "fnr_gap")}
    found = {}
    for name, wrong, over in (
        ("fpr", "n_false_positive", "n_true_negative"),
        ("fnr", "n_false_negative", "n_true_positive"),
    ):
        value, gap, n = row[name], row[f"{name}_gap"], row[wrong] + row[over]
        low, high = row[f"{name}_gap_low"], row[f"{name}_gap_high"]
        counted = f"{show_count(row[wrong])} of {show_count(n)} rows"
        found[name] = Cell(text=show_number(value), value=value, interval=counted)
        found[f"{name}_gap"] = Cell(
            text=show_number(gap, signed=True),
            interval="" if low is None else f"{show_number(low, signed=True)} to {show_number(high, signed=True)}",
            shade=shade_gap(gap),
            value=gap,
            note=f"background {show_number(row[f'background_{name}'])}",
            weak=is_weak(low, high),
        )
    return found
