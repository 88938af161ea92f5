"""The public functions that show reports and tables of metrics in a notebook."""

from __future__ import annotations

from datetime import date

from pyspark.sql import DataFrame, SparkSession

from biasspark.errors import InputError
from biasspark.report.definitions import SUITE
from biasspark.report.notebook import Document, NightReport
from biasspark.report.page import write_metric_page
from biasspark.tables.store import CatalogStore, PathStore, Store
from biasspark.text import describe_type, list_first, show_value
from biasspark.workflows.write_report import MAX_NIGHTS, read_report_data

_NEEDED = (
    *("model", "slice", "identity", "crossed"),
    *(f"n_{side}_{label}" for side in ("subgroup", "background") for label in ("negative", "positive")),
    *(f"{name}{end}" for name in SUITE for end in ("", "_low", "_high", "_reason")),
)
"""The columns of ``bias_metrics`` that the table shows."""
_MAX_LISTED = 6


def night_report(
    spark: SparkSession, store: Store, run_date: date, corpus: str, nights: int = MAX_NIGHTS
) -> NightReport:
    """Return the report of a published night.

    Parameters
    ----------
    spark : SparkSession
        Any session, classic or Connect.
    store : Store
        Where the tables are: ``PathStore("warehouse")`` or ``CatalogStore("lake.bias")`` of ``biasspark.tables.store``.
    run_date : date
        The night.
    corpus : str
        The name of the corpus.
    nights : int
        The most nights before it to read.

    Returns
    -------
    NightReport
        Shows itself in a notebook. Has ``save(path)`` and ``model_card()``.

    Raises
    ------
    TypeError
        If an argument is of another type, such as a path for a store.
    InputError
        If no run is published, with the nights and corpora that there are.
    """
    if not hasattr(spark, "createDataFrame"):
        raise TypeError(f"spark: it must be a SparkSession, not {describe_type(spark)}.")
    if not isinstance(store, PathStore | CatalogStore):
        raise TypeError(
            f"store: it must be a store, not {describe_type(store)}. Give PathStore(path) or CatalogStore(schema) of "
            "biasspark.tables.store."
        )
    if type(run_date) is not date:  # a datetime is one
        raise TypeError(f"run_date: it must be a date, not {describe_type(run_date)}. Give datetime.date(2026, 1, 15).")
    if not isinstance(corpus, str):
        raise TypeError(f"corpus: it must be the name of a corpus, not {describe_type(corpus)}.")
    return NightReport(read_report_data(spark, store, run_date, corpus, nights))


def metric_table(metrics: DataFrame, slice: str = "all") -> Document:
    """Return the color-coded table of all identities and models in a frame of metrics.

    Parameters
    ----------
    metrics : DataFrame
        What `biasspark.bias_metrics` returns, or one night of ``latest_bias_metrics``.
    slice : str
        The slice to show.

    Raises
    ------
    TypeError
        If ``metrics`` is not a Spark DataFrame.
    InputError
        If it lacks columns of ``bias_metrics``, before any Spark job; or if the slice has no rows.

    Notes
    -----
    The rows of that slice come to the driver. They grow with identities, not with the corpus.
    """
    expected = (
        "It takes what biasspark.bias_metrics() returns, or one night of latest_bias_metrics. Pass such a DataFrame."
    )
    if not hasattr(metrics, "sparkSession"):
        raise TypeError(f"metric_table(): metrics is {describe_type(metrics)}, not a Spark DataFrame. {expected}")
    if missing := [name for name in _NEEDED if name not in metrics.columns]:
        raise InputError(f"metric_table(): metrics lacks the columns {list_first(missing, _MAX_LISTED)}. {expected}")
    if metrics.isEmpty():
        raise InputError(f"metric_table(): metrics has no row. {expected}")
    rows = [row.asDict() for row in metrics.where((metrics["slice"] == slice) & ~metrics["crossed"]).collect()]
    if not rows:
        raise InputError(
            f"metric_table(): slice = {show_value(slice)}. The metrics have no identity in a slice of that name. Pass "
            "the name of one of their slices."
        )
    return Document(f"Metrics of slice {slice}", write_metric_page(rows, slice), height=600)
