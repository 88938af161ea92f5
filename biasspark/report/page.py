"""The page: facts become what templates show, and templates one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import date
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from biasspark import __version__
from biasspark.columns import ALL_ROWS, IDENTITY, MODEL, OVERALL, RATE_GAPS, RATES, SUITE_GAPS
from biasspark.report.attributions import (
    list_heat_maps,
    list_pair_trees,
    list_segment_trees,
    tabulate_segments,
    tabulate_slices,
)
from biasspark.report.balance import tabulate_balance
from biasspark.report.cells import (
    TableCell,
    drop_zeros,
    say_bounds,
    show_bounds,
    show_count,
    show_interval,
    show_name,
    show_number,
    show_p,
    show_percent,
)
from biasspark.report.charts import MOST_IN_CHARTS, draw_intervals, draw_pinned
from biasspark.report.comparisons import METRICS, MOST_CHANGES, hold_against, say_method
from biasspark.report.definitions import DECISIONS, PROBLEMS, TITLES, define, list_definitions, say_reason
from biasspark.report.distributions import Cells, Scale, draw_distribution, read_histograms
from biasspark.report.facts import MOST_WORSE, NightFacts, Row, Rows
from biasspark.report.ledger import read_alpha, read_config, read_level
from biasspark.report.overview import (
    Worst,
    count_lower,
    count_weak,
    list_worst,
    list_worst_pairs,
    sum_up_pinned,
    summarise_models,
    tabulate_metrics,
)
from biasspark.report.pinned import tabulate_pinned
from biasspark.report.rate_curves import choose_curves, draw_rate_curves
from biasspark.report.rates import list_rates
from biasspark.report.shades import write_shades
from biasspark.report.side_by_side_metrics import COMPARED
from biasspark.report.template_means import tabulate_templates
from biasspark.report.trends import draw_trends
from biasspark.report.verdict import MOST_MOVES, WORDS, is_undecided_among_many, reach_verdict, say_date

MOST_CARDS = 9
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


def write_page(facts: NightFacts) -> str:
    """Write the report of a night as one HTML file.

    Parameters
    ----------
    facts
        The rows, from `read_night`.

    Returns
    -------
    str
        A page that loads nothing, is readable without its script, and in which any text of the data is text. Equal
        facts give equal bytes.
    """
    return _render("report.html.j2", _gather(facts))


def write_metric_page(rows: Rows, cut: str) -> str:
    """Write a page with the table of all identities and models alone.

    Parameters
    ----------
    rows
        Of ``bias_metrics``, one slice of one night.
    cut
        The name of the slice.
    """
    # A frame of metrics belongs to no run: nothing that the table shows needs one.
    facts = NightFacts(corpus="", run_date=date.min, run={}, tables={"bias_metrics": rows})
    return _render("metrics.html.j2", _vocabulary(facts) | {"cut": cut, "rows": tabulate_metrics(facts, cut)})


def _render(template: str, context: Mapping[str, Any]) -> str:
    style, script = _read_template("report.css") + write_shades(), _read_template("sort.js")
    sources = {
        "style": Markup(style),  # the package's own, as the script
        "style_hash": hash_source(style),
        "script": Markup(script),
        "script_hash": hash_source(script),
    }
    return _environment().get_template(template).render({**context, **sources})


def hash_source(text: str) -> str:
    """Return what a Content-Security-Policy names a style sheet or a script by."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def break_name(name: str) -> Markup:
    """Let a name go on in the next line behind an underscore."""
    return Markup("_<wbr>").join(name.split("_"))


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
        "breakable": break_name,
        "count": show_count,
        "number": show_number,
        "percent": show_percent,
        "compact": drop_zeros,
        "p": show_p,
        "date": say_date,
        "reason": say_reason,
        "bounds": show_bounds,
    }
    return environment


def _vocabulary(facts: NightFacts) -> dict[str, Any]:
    """Return what every template speaks with."""
    return {
        "models": facts.models(),
        "compared": COMPARED,
        "titles": _Titles(TITLES),
        "problems": PROBLEMS,
        "overall": OVERALL,
        "define": define,
        "in_doubt": any(show_bounds(row, name) for row in facts.rows("bias_metrics") for name in COMPARED),
    }


def _gather(facts: NightFacts) -> dict[str, Any]:
    """Return all that the report shows."""
    worst = {model: list_worst(facts, model) for model in facts.models()}
    return (
        _vocabulary(facts)
        | _gather_source(facts)
        | _gather_verdict(facts)
        | _gather_overview(facts, worst)
        | _gather_scores(facts)
        | _gather_attribution(facts)
    )


def _gather_source(facts: NightFacts) -> dict[str, Any]:
    return {
        "facts": facts,
        "version": __version__,
        "sections": SECTIONS,
        "definitions": list_definitions({row["metric"] for row in facts.alerts()}),
        "level": _say_level(facts),
        "config": _lay_out_config(facts),
        "engine": (read_config(facts.run).get("ranking") or {}).get("engine"),
        "rejects": sorted((facts.run["rejects"] or {}).items()),
    }


def _gather_overview(facts: NightFacts, worst: Mapping[str, Sequence[Worst]]) -> dict[str, Any]:
    pairs = list_worst_pairs(facts)
    axis = _lowest_of_axis([own for of_model in (worst, pairs) for rows in of_model.values() for own in rows])
    return {
        "summary": summarise_models(facts),
        "sizes": {row[MODEL]: row for row in facts.rows("model_summary", slice=ALL_ROWS)},
        "worst": worst,
        "worst_pairs": pairs,
        "against": hold_against(facts),
        "judged_by": say_method(facts),
        "against_metrics": METRICS,
        "most_changes": MOST_CHANGES,
        "most_worse": MOST_WORSE,
        "axis": axis,
        "on_axis": lambda value: round(200 * (value - axis) / (1 - axis), 1),
        "metric_tables": [(cut, tabulate_metrics(facts, cut)) for cut in facts.slices()],
        "weak": count_weak(facts),
    }


def _gather_scores(facts: NightFacts) -> dict[str, Any]:
    scales, histograms = read_histograms(facts)
    return {
        "most_in_charts": MOST_IN_CHARTS,
        "charts": {
            "intervals": draw_intervals(facts),
            "curves": draw_rate_curves(facts, histograms),
            "trends": draw_trends(facts),
            "pinned": draw_pinned(facts),
        },
        "curves_of": choose_curves(facts),
        "distributions": _list_cards(facts, scales, histograms),
        "n_bins": max((scale.n_bins for scale in scales.values()), default=0),
        "rates": list_rates(facts),
        "rate_names": RATES,
        "at_thresholds": (*RATES, *RATE_GAPS),
        "decisions": [(column, TITLES[column]) for column in DECISIONS],
        "template_scores": tabulate_templates(facts),
        "balance": tabulate_balance(facts),
        "pinned": tabulate_pinned(facts),
        "pinned_differences": sum_up_pinned(facts),
    }


def _gather_verdict(facts: NightFacts) -> dict[str, Any]:
    verdict = reach_verdict(facts)
    summary = {row.column: row for row in summarise_models(facts)}["auc"]
    return {
        "verdict": verdict,
        "words": WORDS,
        "most_moves": MOST_MOVES,
        "has_p": any(row.get("p_violation_adjusted") is not None for row in verdict.alerts),
        "alert_cell": _alert_cell,
        "among_many": lambda row: is_undecided_among_many(row, read_alpha(facts.run)),
        "heads": [
            {"model": model, "overall": own.cell, **_choose_worst(facts, model)}
            for model, own in zip(facts.models(), summary.cells, strict=True)
        ],
    }


def _choose_worst(facts: NightFacts, model: str) -> dict[str, Any]:
    """Return the worst identity with enough rows, and how many with too few rows have lower values."""
    worst = next(iter(list_worst(facts, model, 1)), None)
    return {"worst": worst, "n_weak": 0 if worst is None or worst.cell.weak else count_lower(facts, worst, model)}


def _gather_attribution(facts: NightFacts) -> dict[str, Any]:
    found = {
        "heat_maps": list_heat_maps(facts),
        "trees": list_segment_trees(facts),
        "pair_trees": list_pair_trees(facts),
        "slices_found": tabulate_slices(facts),
        "segments": tabulate_segments(facts),
    }
    return found | {"has_attribution": any(found.values())}


class _Titles(dict[str, str]):
    """Titles of metrics; a metric that has none shows its name."""

    def __missing__(self, key: str) -> str:
        return show_name(key)


def _alert_cell(row: Row) -> TableCell:
    """Return what the bound of an alert is on: the value, or its change."""
    what = "value" if row.get("change") is None else "change"
    signed = what == "change" or row["metric"] in (*SUITE_GAPS, *RATE_GAPS)
    value, low, high = (row.get(name) for name in (what, f"{what}_low", f"{what}_high"))
    return TableCell(
        text=show_number(value, signed=signed),
        value=value,
        interval=show_interval(low, high, signed=signed),
        note=say_bounds(row, what),
        bounds=show_bounds(row, what),
    )


def _say_level(facts: NightFacts) -> str:
    return f"{100 * read_level(facts.run):g} %"


def _lay_out_config(facts: NightFacts) -> str:
    return show_lines(json.dumps(read_config(facts.run), indent=2, ensure_ascii=False))


def show_lines(text: str) -> str:
    """Return lines of text, characters that no one sees spelt out."""
    return "\n".join(map(show_name, text.split("\n")))


def _lowest_of_axis(rows: Sequence[Worst]) -> float:
    """Return where the axis of intervals begins: 0.5, or a tenth below the lowest end."""
    lowest = min((own.value if own.low is None else own.low for own in rows), default=0.5)
    return 0.5 if lowest >= 0.5 else int(10 * lowest) / 10


def _list_cards(
    facts: NightFacts, scales: Mapping[str, Scale], histograms: Mapping[tuple[str, str], Cells]
) -> list[list[dict[str, Any]]]:
    """Return the cards of score distributions: those of the worst identities, then the others."""
    counts = {row[IDENTITY]: row for row in reversed(facts.rows("bias_metrics", slice=ALL_ROWS))}
    cards = []
    for name in facts.identities():
        pictures = [
            (model, draw_distribution(histograms[model, name], scales[model]))
            for model in facts.models()
            if (model, name) in histograms
        ]
        if any(picture.n_subgroup for _, picture in pictures):
            row = counts[name]
            n = {"n_positive": row["n_subgroup_positive"], "n_negative": row["n_subgroup_negative"]}
            cards.append({"identity": name, "pictures": pictures, **n})
    return [part for part in (cards[:MOST_CARDS], cards[MOST_CARDS:]) if part]
