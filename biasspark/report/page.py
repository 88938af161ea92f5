"""The report as one self-contained HTML file, as Markdown for a model card, and as an object in a notebook."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache, cached_property
from html import escape
from importlib import resources
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from biasspark import __version__, columns
from biasspark.command import JOBS
from biasspark.report import (
    attributions,
    baseline_comparison,
    cells,
    charts,
    definitions,
    gate_summary,
    metric_tables,
    report_data,
    score_panels,
)
from biasspark.report.panels import color_rules
from biasspark.report.report_data import OF_ATTRIBUTION, ReportData, Rows
from biasspark.report.text_formats import escape_markdown, write_out
from biasspark.tables.schemas import BIAS_METRICS, TABLES
from biasspark.text import describe_type, format_count, show_visibly

LONGEST_UNBROKEN = 12


class Section(NamedTuple):
    """A section of the report, the tables that it shows, and its title among the links if that is not the heading.

    If none of them was measured, the report says ``what`` is missing, unless that is empty, and names the job that
    measures it and the ``part`` of the configuration that turns it on.
    """

    anchor: str
    heading: str
    tables: Sequence[str] = ()
    what: str = ""
    part: str = ""
    title: str = ""

    @property
    def job(self) -> str:
        """The job that measures the tables, of which the first is a published one."""
        return TABLES[self.tables[0]].job

    def is_shown(self, report: ReportData) -> bool:
        """Return whether the section has anything to show, or a lost table."""
        if self.anchor == "trends":
            return bool(report.history)
        return not self.tables or any(report.tables.get(name) or name in report.lost for name in self.tables)


SECTIONS = (
    Section("models", "Models side by side", ("model_summary",), title="Side by side"),
    Section(
        "against", "Against the baseline", ("model_comparisons",), "comparisons with a baseline", "compare", "Baseline"
    ),
    Section("worst", "The worst identities", ("bias_metrics",), "metrics of identities", "identities", "Worst"),
    Section("identities", "Every identity", ("bias_metrics",)),
    Section("intervals", "Intervals", ("bias_metrics",)),
    Section("scores", "Score distributions", ("score_histograms",), "score distributions", "histograms", "Scores"),
    Section("trends", "Over time"),
    Section(
        "thresholds",
        "At a threshold",
        ("threshold_rates", "threshold_summary"),
        "rates at thresholds",
        "thresholds",
        "Thresholds",
    ),
    Section("templates", "Templates", ("template_scores", "template_means"), "scores by template", "templates"),
    Section(
        "attribution", "Where the AUC is lost", OF_ATTRIBUTION, "where the AUC is lost", "attribution", "Attribution"
    ),
    Section("balance", "Label balance", ("label_balance", "training_balance"), "label balance", "label_balance"),
    Section("pinned", "Pinned AUC", ("pinned_auc", "pinned_skew"), "pinned AUC", "pinned_auc"),
    Section("source", "How it was measured", title="How measured"),
    Section("definitions", "Definitions"),
)
"""In the order of the page. Each has a template of its name, but for the intervals: they are part of the identities."""


def write_model_card(report: ReportData) -> str:
    """Return the report as Markdown for a model card, as GitHub renders it, with headings from the third level on.

    Names are escaped: nothing in them is Markdown or HTML. Equal data give equal text.
    """

    def escape_printed(value: object) -> Markup:
        """Escape whatever a template prints, except what its macros have already escaped."""
        return value if isinstance(value, Markup) else Markup(escape_markdown(str(value)))

    template = environment().overlay(finalize=escape_printed).get_template("model_card.md.j2")
    return template.render(report=report, models=report.models())


def write_page(report: ReportData) -> str:
    """Return the report as one HTML file.

    It loads nothing, is readable without its script, and escapes all text from the data. Equal data give equal bytes.
    """
    sections = [section for section in SECTIONS if section.is_shown(report)]
    configured = report.config.keys() - {"identities"}  # which each configuration has, also without any identity
    unmeasured = [
        section
        for section in (SECTIONS if report.has_suite else ())
        if section.part and section not in sections
        if (section.part not in configured if section.job == BIAS_METRICS.job else report.is_published)
    ]
    return _render(
        "report.html.j2",
        report,
        sections=sections,
        unmeasured=unmeasured,
        commands={command.job: f"biasspark {name}" for name, command in JOBS.items()},
        level=f"{100 * report.level:g}%",
    )


def write_metric_page(rows: Rows, slice_name: str) -> str:
    """Return a page with the table of all identities and models, from one slice and run of ``bias_metrics``."""
    return _render("metrics.html.j2", ReportData(tables={"bias_metrics": rows}), slice=slice_name)


def _render(template: str, report: ReportData | None, **context: Any) -> str:
    style, script = read_template("report.css") + color_rules(), read_template("sort.js")
    context |= {"report": report, "models": report.models() if report else []}
    context |= {"style": Markup(style), "script": Markup(script)}  # files of the package, not data
    context |= {"style_hash": hash_source(style), "script_hash": hash_source(script)}
    return environment().get_template(template).render(context)


def write_table_page(title: str, descriptions: Mapping[str, str], rows: Rows, note: str) -> str:
    """Return a page with a table and a note below it, given the description of each column."""
    shown = [[_show(row[name]) for name in descriptions] for row in rows]
    numeric = [all(_is_number(row[name]) for row in rows) for name in descriptions]
    return _render("table.html.j2", None, title=title, heads=descriptions, rows=shown, numeric=numeric, note=note)


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float | Decimal) and not isinstance(value, bool))


def _show(value: object) -> str:
    """Return a value of a table as text, floats with four significant digits."""
    if value is None:
        return cells.DASH
    if isinstance(value, float):
        return f"{value:.4g}".replace("-", cells.MINUS)
    if isinstance(value, list):
        return ", ".join(map(_show, value))
    return f"{value:,}" if _is_number(value) else str(value)


def break_long_name(name: str) -> str:
    """Allow line breaks after underscores in a long name. A short one, as ``toxicity_1``, is never broken."""
    return Markup("_<wbr>").join(name.split("_")) if len(name) > LONGEST_UNBROKEN else name


def hash_source(text: str) -> str:
    """Return the hash by which a Content-Security-Policy allows a style sheet or a script."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def read_template(name: str) -> str:
    """Return a file of the folder ``templates``."""
    return resources.files("biasspark.report").joinpath("templates", name).read_text("utf-8")


@cache
def environment() -> Environment:
    """Return the environment of all templates, which call functions of these modules."""
    shared = Environment(
        loader=FunctionLoader(read_template),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    modules = (
        *(attributions, baseline_comparison, cells, charts, columns, definitions, gate_summary),
        *(metric_tables, report_data, score_panels),
    )
    shared.globals |= {module.__name__.rpartition(".")[2]: module for module in modules}
    shared.globals |= {"version": __version__, "define": definitions.define, "draw_cards": draw_cards}
    shared.filters |= {
        "name": show_visibly,
        "breakable": break_long_name,
        "json": lambda value: json.dumps(value, indent=2, ensure_ascii=False),
        "count": cells.show_count,
        "counted": format_count,
        "number": cells.show_number,
        "percent": cells.show_percent,
        "compact": cells.drop_zeros,
        "p": cells.show_p,
        "date": gate_summary.format_date,
        "title_of": definitions.title_of,
    }
    return shared


def draw_cards(report: ReportData, slices: Sequence[str], identities: Sequence[str]) -> list[dict[str, Any]]:
    """Return the score distributions of each slice and identity that has rows, one picture per model."""
    scales, histograms = score_panels.read_histograms(report.rows("score_histograms"))
    counts = {(row["slice"], row["identity"]): row for row in reversed(report.rows("bias_metrics"))}
    cards = []
    for slice_name, identity in product(slices, identities):
        keys = [score_panels.PanelKey(slice_name, identity, model) for model in report.models()]
        pictures = [(key.model, histograms[key], scales[key.model]) for key in keys if key in histograms]
        in_identity = (columns.SUBGROUP_NEGATIVE, columns.SUBGROUP_POSITIVE)
        n_rows = sum(sum(model_cells.get(cell, ())) for _, model_cells, _ in pictures for cell in in_identity)
        if n_rows and (slice_name, identity) in counts:
            card = {"slice": slice_name, "identity": identity, "pictures": pictures}
            cards.append(card | {"counts": counts[slice_name, identity]})
    return cards


@dataclass(frozen=True)
class Document:
    """A page that a notebook shows in a sandboxed frame."""

    title: str
    html: str = field(repr=False)
    height: int = 800

    def _repr_html_(self) -> str:
        return (
            f'<iframe sandbox="allow-scripts" title="{escape(self.title)}" width="100%" height="{self.height}" '
            f'style="border:1px solid #ccc;border-radius:4px" srcdoc="{escape(self.html)}"></iframe>'
        )

    def save(self, path: str | Path) -> None:
        """Write the page to a file."""
        if not isinstance(path, str | os.PathLike):
            raise TypeError(f"path: it must be that of a file, not {describe_type(path)}.")
        write_out(Path(os.path.expanduser(path)), self.html)


class RunReport(Document):
    """The report of a published run, also as Markdown. The page is drawn when it is first shown or saved."""

    def __init__(self, data: ReportData) -> None:
        self.data = data

    @property
    def title(self) -> str:
        """The subject and the run date."""
        return f"Unintended bias, {self.data.run_date}"

    @cached_property
    def html(self) -> str:
        """The page as one file."""
        return write_page(self.data)

    def model_card(self) -> str:
        """Return the report as Markdown for a model card."""
        return write_model_card(self.data)
