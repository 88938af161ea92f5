"""The report in a notebook: objects that show themselves where a cell ends with one."""

from __future__ import annotations

import html
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from biasspark.columns import CROSSED, IDENTITY, MODEL, SLICE
from biasspark.config import list_first, show_value
from biasspark.config.wording import describe_kind
from biasspark.errors import InputError
from biasspark.report.facts import NightFacts
from biasspark.report.model_card import write_model_card
from biasspark.report.page import write_metric_page, write_page
from biasspark.report.publishing import write_out
from biasspark.report.reading import MOST_NIGHTS, read_night
from biasspark.report.side_by_side_metrics import COMPARED
from biasspark.tables.store import Store

_NEEDED = (
    *(MODEL, SLICE, IDENTITY, CROSSED),
    *(f"n_{group}_{label}" for group in ("subgroup", "background") for label in ("negative", "positive")),
    *(f"{name}{end}" for name in COMPARED for end in ("", "_low", "_high", "_reason")),
)
"""The columns of ``bias_metrics`` that the table shows."""
_MOST_NAMED = 6
_FRAME = (
    '<iframe sandbox="allow-scripts" title="{title}" width="100%" height="{height}" '
    'style="border:1px solid #ccc;border-radius:4px" srcdoc="{page}"></iframe>'
)


@dataclass(frozen=True)
class Document:
    """A page that a notebook shows in a frame of its own: nothing of it touches the notebook."""

    title: str
    page: str
    height: int = 800

    def _repr_html_(self) -> str:
        return _FRAME.format(title=html.escape(self.title), height=self.height, page=html.escape(self.page))

    def save(self, path: str | Path) -> None:
        """Write the page to a file."""
        write_out(Path(path), self.page)


@dataclass(frozen=True)
class NightReport:
    """The report of a night, drawn when asked for."""

    facts: NightFacts

    @property
    def document(self) -> Document:
        """The report as a page."""
        return Document(f"Unintended bias, {self.facts.run_date}", write_page(self.facts))

    def _repr_html_(self) -> str:
        return self.document._repr_html_()

    def save(self, path: str | Path) -> None:
        """Write the report to a file."""
        self.document.save(path)

    def model_card(self) -> str:
        """Return the same as Markdown, for a model card."""
        return write_model_card(self.facts)


def night_report(
    spark: SparkSession, store: Store, run_date: date, corpus: str, nights: int = MOST_NIGHTS
) -> NightReport:
    """Return the report of a published night.

    Parameters
    ----------
    spark
        Any session, classic or Connect.
    store
        Where the tables are: ``PathStore("warehouse")`` or ``CatalogStore("lake.bias")`` of ``biasspark.tables.store``.
    run_date, corpus
        Which night.
    nights
        How many nights before it are read at most.

    Returns
    -------
    NightReport
        Shows itself in a notebook; has ``save(path)`` and ``model_card()``.

    Raises
    ------
    InputError
        If no run is published, with the nights and corpora that there are.
    """
    return NightReport(read_night(spark, store, run_date, corpus, nights))


def metric_table(metrics: DataFrame, cut: str = "all") -> Document:
    """Return the colour-coded table of all identities and models, of any frame of metrics.

    Parameters
    ----------
    metrics
        What `biasspark.bias_metrics` returns, or one night of ``latest_bias_metrics``.
    cut
        The slice.

    Raises
    ------
    TypeError
        If ``metrics`` is not a Spark DataFrame.
    InputError
        If it lacks columns of ``bias_metrics``, before any Spark job; or if the slice has no rows.

    Notes
    -----
    The rows of that slice come to the driver: they grow with identities, not with the corpus.
    """
    _check_metrics(metrics)
    single = metrics.where((metrics["slice"] == cut) & ~metrics["crossed"])
    rows = [row.asDict() for row in single.collect()]
    if not rows:
        raise InputError(
            f"metric_table(): cut = {show_value(cut)}. The metrics have no identity in a slice of that name. Pass the "
            "name of one of their slices."
        )
    return Document(f"Metrics of slice {cut}", write_metric_page(rows, cut), height=600)


def _check_metrics(metrics: DataFrame) -> None:
    """Refuse anything but a frame of ``bias_metrics``."""
    takes = (
        "It takes what biasspark.bias_metrics() returns, or one night of latest_bias_metrics. Pass such a DataFrame."
    )
    if not hasattr(metrics, "sparkSession"):
        raise TypeError(f"metric_table(): metrics is {describe_kind(metrics)}, not a Spark DataFrame. {takes}")
    if missing := [name for name in _NEEDED if name not in metrics.columns]:
        raise InputError(f"metric_table(): metrics lacks the columns {list_first(missing, _MOST_NAMED)}. {takes}")
