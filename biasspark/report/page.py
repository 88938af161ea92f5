"""The report as one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from biasspark import __version__
from biasspark.columns import ALL_ROWS, OVERALL, RATE_GAPS, RATES, SUITE_GAPS
from biasspark.report import (
    attributions,
    baseline_comparison,
    charts,
    definitions,
    filters,
    gate_summary,
    metric_tables,
    optional_tables,
)
from biasspark.report.cells import (
    DASH,
    MINUS,
    Row,
    TableCell,
    drop_zeros,
    interval_cell,
    show_count,
    show_name,
    show_number,
    show_p,
    show_percent,
)
from biasspark.report.color_scale import color_rules
from biasspark.report.histogram_paths import Cells, Scale, draw_distribution, read_histograms
from biasspark.report.report_data import ReportData, Rows
from biasspark.report.run_history import read_config

MAX_CARDS = 9
SECTIONS = (
    ("models", "Side by side"),
    ("against", "Baseline"),
    ("worst", "Worst"),
    ("identities", "Every identity"),
    ("intervals", "Intervals"),
    ("scores", "Scores"),
    ("trends", "Over nights"),
    ("thresholds", "Thresholds"),
    ("templates", "Templates"),
    ("attribution", "Attribution"),
    ("balance", "Label balance"),
    ("pinned", "Pinned AUC"),
    ("source", "How measured"),
    ("definitions", "Definitions"),
)
OF_NIGHTS = {"against", "trends", "attribution"}
"""Sections that a frame measured in Python has not."""


def write_page(report: ReportData) -> str:
    """Return the report of a night as one HTML file.

    Returns
    -------
    str
        A page that loads nothing, is readable without its script, and in which all text of the data is text. Equal data
        give equal bytes.
    """
    context = _shared(report) | _source(report) | _gate(report) | _metrics(report) | _scores(report)
    return _render("report.html.j2", context | _attribution(report))


def write_metric_page(rows: Rows, slice_name: str) -> str:
    """Return a page with the table of all identities and models, from one slice and night of ``bias_metrics``."""
    report = ReportData(corpus="", run_date=date.min, run={}, tables={"bias_metrics": rows})  # of no run
    return _render(
        "metrics.html.j2",
        _shared(report) | {"slice": slice_name, "rows": metric_tables.list_metrics(report, slice_name)},
    )


def write_table_page(
    title: str, columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[object]], note: str
) -> str:
    """Return a page with one table.

    Parameters
    ----------
    columns : sequence of (str, str)
        The name of each column, and what it means.
    rows
        Values in the order of the columns.
    note : str
        What is said below it.
    """
    cells = [list(map(_show, row)) for row in rows]
    numeric = [all(_is_number(row[number]) for row in rows) for number in range(len(columns))]
    return _render(
        "table.html.j2", {"title": title, "columns": columns, "rows": cells, "numeric": numeric, "note": note}
    )


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float | Decimal) and not isinstance(value, bool))


def _show(value: object) -> str:
    """Return a value of a table: four significant digits of a float, and all of a count."""
    if value is None:
        return DASH
    if isinstance(value, float):
        return f"{value:.4g}".replace("-", MINUS)
    if isinstance(value, list):
        return ", ".join(map(_show, value))
    return f"{value:,}" if _is_number(value) else str(value)


def _render(template: str, context: Mapping[str, Any]) -> str:
    style, script = _read_template("report.css") + color_rules(), _read_template("sort.js")
    sources = {
        "style": Markup(style),  # the package's own, as is the script
        "style_hash": hash_source(style),
        "script": Markup(script),
        "script_hash": hash_source(script),
    }
    return _environment().get_template(template).render({**context, **sources})


def hash_source(text: str) -> str:
    """Return the hash by which a Content-Security-Policy allows a style sheet or a script."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _read_template(name: str) -> str:
    return resources.files("biasspark.report").joinpath("templates", name).read_text("utf-8")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(_read_template),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "name": show_name,
        "breakable": lambda name: Markup("_<wbr>").join(name.split("_")),  # a line may break after an underscore
        "count": show_count,
        "number": show_number,
        "percent": show_percent,
        "compact": drop_zeros,
        "p": show_p,
        "date": gate_summary.format_date,
    }
    return environment


class _Titles(dict[str, str]):
    """Titles of metrics. One without a title shows its name."""

    def __missing__(self, key: str) -> str:
        return show_name(key)


def _shared(report: ReportData) -> dict[str, Any]:
    """Return what every template needs."""
    return {
        "models": report.models(),
        "suite": definitions.SUITE,
        "titles": _Titles(definitions.TITLES),
        "problems": definitions.PROBLEMS,
        "overall": OVERALL,
        "define": definitions.define,
    }


def _source(report: ReportData) -> dict[str, Any]:
    config = json.dumps(read_config(report.run), indent=2, ensure_ascii=False)
    sections = [(name, title) for name, title in SECTIONS if report.is_night or name not in OF_NIGHTS]
    return {
        "report": report,
        "version": __version__,
        "sections": sections,
        "definitions": definitions.list_definitions({row["metric"] for row in report.alerts()}),
        "level": f"{100 * report.level:g} %",
        "config": "\n".join(map(show_name, config.split("\n"))),
        "rejects": sorted(dict(report.run["rejects"] or {}).items()),
    }


def _gate(report: ReportData) -> dict[str, Any]:
    gate = gate_summary.build_gate_summary(report)
    overall = {row.column: row.cells for row in metric_tables.summarize_models(report)}["auc"]
    return {
        "gate": gate,
        "outcome_titles": gate_summary.OUTCOME_TITLES,
        "max_changes": gate_summary.MAX_CHANGES,
        "has_p": any(row.get("p_violation_adjusted") is not None for row in gate.alerts),
        "alert_cell": _alert_cell,
        "is_among_many": lambda row: gate_summary.is_undecided_among_many(row, report.alpha),
        "heads": [_head(report, model, one.cell) for model, one in zip(report.models(), overall, strict=True)],
        "weak": metric_tables.count_weak(report),
    }


def _head(report: ReportData, model: str, overall: TableCell) -> dict[str, Any]:
    """Return the overall AUC, the worst identity with enough rows, and how many weak identities are lower."""
    worst = next(iter(metric_tables.list_worst(report, model, 1)), None)
    n_weak = 0 if worst is None or worst.cell.weak else metric_tables.count_lower(report, model, worst)
    return {"model": model, "overall": overall, "worst": worst, "n_weak": n_weak}


def _alert_cell(row: Row) -> TableCell:
    """Return what the bound of an alert is on: the value, or its change."""
    what = "value" if row.get("change") is None else "change"
    signed = what == "change" or row["metric"] in (*SUITE_GAPS, *RATE_GAPS)
    value, low, high = (row.get(name) for name in (what, f"{what}_low", f"{what}_high"))
    return replace(interval_cell(value, low, high, signed=signed), weak=False)


def _metrics(report: ReportData) -> dict[str, Any]:
    worst = {model: metric_tables.list_worst(report, model) for model in report.models()}
    return {
        "summary": metric_tables.summarize_models(report),
        "sizes": report.summaries(),
        "worst": worst,
        "worst_pairs": metric_tables.list_worst_pairs(report),
        "axis_start": _axis_start,
        "on_axis": lambda value, start: round(200 * (value - start) / (1 - start), 1),
        "comparisons": baseline_comparison.compare_with_baselines(report),
        "comparison_method": baseline_comparison.describe_method(report),
        "comparison_metrics": baseline_comparison.METRICS,
        "max_differences": baseline_comparison.MAX_DIFFERENCES,
        "max_worse": filters.MAX_WORSE,
        "metric_tables": [(name, metric_tables.list_metrics(report, name)) for name in report.slices()],
    }


def _axis_start(by_model: Mapping[str, Sequence[metric_tables.WorstIdentity]]) -> float:
    """Return where the axis of intervals begins: at 0.5, or at the tenth below the lowest end."""
    rows = [row for of_model in by_model.values() for row in of_model]
    lowest = min((row.value if row.low is None else row.low for row in rows), default=0.5)
    return 0.5 if lowest >= 0.5 else int(10 * lowest) / 10


def _scores(report: ReportData) -> dict[str, Any]:
    scales, histograms = read_histograms(report)
    return {
        "max_in_charts": charts.MAX_IN_CHARTS,
        "charts": {
            "intervals": charts.draw_intervals(report),
            "curves": charts.draw_rate_curves(report, histograms),
            "trends": charts.draw_trends(report),
            "pinned": charts.draw_pinned(report),
        },
        "curve_names": charts.choose_curves(report),
        "distributions": _cards(report, scales, histograms),
        "n_bins": max((scale.n_bins for scale in scales.values()), default=0),
        "rates": optional_tables.list_rates(report),
        "rate_names": RATES,
        "threshold_metrics": (*RATES, *RATE_GAPS),
        "decisions": [(column, definitions.TITLES[column]) for column in definitions.DECISIONS],
        "template_scores": optional_tables.list_templates(report),
        "balance": optional_tables.list_balance(report),
        "pinned": optional_tables.list_pinned(report),
        "pinned_differences": metric_tables.pinned_differences(report),
    }


def _cards(
    report: ReportData, scales: Mapping[str, Scale], histograms: Mapping[tuple[str, str], Cells]
) -> list[list[dict[str, Any]]]:
    """Return the cards of score distributions: those of the worst identities, then the others."""
    counts = {row["identity"]: row for row in reversed(report.rows("bias_metrics", slice=ALL_ROWS))}
    cards = []
    for name in report.identities():
        pictures = [
            (model, draw_distribution(histograms[model, name], scales[model]))
            for model in report.models()
            if (model, name) in histograms
        ]
        if any(picture.n_subgroup for _, picture in pictures):
            cards.append({"identity": name, "pictures": pictures, "counts": counts[name]})
    return [part for part in (cards[:MAX_CARDS], cards[MAX_CARDS:]) if part]


def _attribution(report: ReportData) -> dict[str, Any]:
    parts = {
        "heat_maps": attributions.list_heat_maps(report),
        "trees": attributions.list_segment_trees(report),
        "pair_trees": attributions.list_pair_trees(report),
        "losing_slices": attributions.list_losing_slices(report),
        "segments": attributions.list_named_segments(report),
    }
    return parts | {"has_attribution": any(parts.values())}
