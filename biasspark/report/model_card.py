"""The report as a Markdown fragment for a model card, in the order of the page."""

from __future__ import annotations

from markupsafe import Markup

from biasspark.report.page import environment
from biasspark.report.report_data import ReportData
from biasspark.report.text_formats import escape_markdown


def write_model_card(report: ReportData) -> str:
    """Return what a model card says about unintended bias, as Markdown that GitHub renders.

    Returns
    -------
    str
        Headings of the third level and below, to stand within a card. Names are text: nothing in them is Markdown or
        HTML. Equal data give equal text.
    """
    markdown = environment().overlay(finalize=_escape)
    return markdown.get_template("model_card.md.j2").render(report=report, models=report.models())


def _escape(value: object) -> Markup:
    """Escape whatever a template prints, but for what its macros have printed."""
    return value if isinstance(value, Markup) else Markup(escape_markdown(str(value)))
