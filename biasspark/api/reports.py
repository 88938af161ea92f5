"""The public functions that show reports and tables in a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from biasspark.api.frame_kinds import collect_first
from biasspark.api.keywords import IdentitiesLike, Keywords, Models, RankingEngine, Unannotated, check_whole
from biasspark.api.measured import check_document, measure
from biasspark.api.record_batches import Frame, collect_columns, list_columns, read_once
from biasspark.columns import ALL_ROWS
from biasspark.errors import ConfigError, InputError
from biasspark.report.definitions import SUITE
from biasspark.report.page import Document, RunReport, write_metric_page, write_table_page
from biasspark.report.report_data import SHOWN_COLUMNS, check_unique
from biasspark.tables.schemas import BIAS_METRICS, TABLES, THRESHOLD_RATES
from biasspark.tables.store import CatalogStore, PathStore, Store
from biasspark.text import describe_type, list_first, show_value
from biasspark.workflows.write_report import MAX_RUNS, read_report_data

_NEEDED = (*SHOWN_COLUMNS, "n_background_negative", "n_background_positive")
"""The columns of ``bias_metrics`` that the table needs."""
MAX_ROWS = 1_000


def night_report(spark: SparkSession, store: Store, run_date: date, corpus: str, nights: int = MAX_RUNS) -> RunReport:
    """Return the report of a published run.

    Parameters
    ----------
    spark : SparkSession
        Any session, classic or Connect.
    store : Store
        The location of the tables: ``PathStore("warehouse")`` or ``CatalogStore("lake.bias")`` of
        ``biasspark.tables.store``.
    run_date : date
        The date of the run.
    corpus : str
        The name of the corpus.
    nights : int
        The most earlier runs to read, 0 or more.

    Returns
    -------
    RunReport
        Shows itself in a notebook. Has ``save(path)`` and ``model_card()``.

    Raises
    ------
    TypeError
        If ``store`` is no store, as for a path, or ``run_date`` no date.
    ConfigError
        If ``nights`` is not a whole number of 0 or more.
    InputError
        If no such run is published, listing the dates and corpora that are, or if files of its tables are gone.
    """
    given: object = store
    if not isinstance(given, PathStore | CatalogStore):
        stores = "PathStore(path) or CatalogStore(schema) of biasspark.tables.store"
        raise TypeError(f"store: it must be {stores}, not {describe_type(given)}.")
    if type(run_date) is not date:  # a datetime is one as well
        raise TypeError(
            f"run_date: it must be a date, datetime.date(2026, 3, 31), not of type {type(run_date).__name__}."
        )
    with Keywords({}).name_faults():
        if wrong := check_whole("nights", nights, 0):
            raise ConfigError(*wrong)
    return RunReport(read_report_data(spark, store, run_date, corpus, nights))


@Keywords({}).name_faults()
def metric_table(table: Frame, slice: str = "all") -> Document:
    """Return any table of the public functions as a page that a notebook shows.

    A frame is read whole. Of a DataFrame of Spark that is not ``bias_metrics``, only the shown rows are read.

    Parameters
    ----------
    table : Frame
        The result of a function of biasspark, or one run of a published table or of its view. ``bias_metrics`` is shown
        as the color-coded table of all identities and models; of other tables, at most 1,000 rows are shown.
    slice : str
        The slice of ``bias_metrics`` to show. Of other tables all slices are shown.

    Returns
    -------
    Document
        Shows itself in a notebook. Has ``html``, and ``save(path)``.

    Raises
    ------
    TypeError
        If ``table`` is not a frame.
    InputError
        If the columns are not those of any table, before any Spark job; if the table or the slice has no row; or if
        metrics have several rows of one key, as those of several runs.
    """
    table = read_once(table, "table")
    columns = list_columns(table)
    if not set(_NEEDED) - set(columns):
        return _identity_table(table, slice)
    if slice != ALL_ROWS:
        raise InputError(
            f"metric_table(): slice = {show_value(slice)}. Of this table all slices are shown. Leave it out, and give "
            "only the rows to show."
        )
    suite = BIAS_METRICS if {"identity", *SUITE} <= set(columns) else None  # in fewer columns, as narrow=True
    complete = (known for known in TABLES.values() if not set(known.value_columns) - set(columns))
    shown = max(complete, key=lambda known: len(known.value_columns), default=suite)
    if shown is None and "worst_auc_difference" not in columns:  # which only side_by_side returns
        missing = [name for name in _NEEDED if name not in columns]
        raise InputError(
            "metric_table(): the columns are those of no table of biasspark. Of bias_metrics it lacks "
            f"{list_first(missing, 6)}. Give what biasspark.bias_metrics() or another function returns."
        )
    rows = collect_first(table, MAX_ROWS + 1, "table")
    if not rows:
        raise InputError("metric_table(): the table has no row. Give one that has.")
    if shown is THRESHOLD_RATES:  # whose eight counts would fill a screen before its rates
        columns.sort(key=lambda name: name.removeprefix("background_").startswith("n_"))
    comments = {column.name: column.comment for column in shown.columns} if shown else {}
    note = f"The first {MAX_ROWS:,} rows." if len(rows) > MAX_ROWS else f"All rows: {len(rows):,}."
    title = shown.name if shown else "Two models side by side"
    described = {name: comments.get(name, "") for name in columns}
    return Document(title, write_table_page(title, described, rows[:MAX_ROWS], note), height=600)


def _identity_table(metrics: Frame, slice_name: str) -> Document:
    """Return the color-coded table of ``bias_metrics``."""
    wanted = {*_NEEDED, "bias", "bias_size"}
    schema = pa.schema([field for field in BIAS_METRICS.full_arrow_schema if field.name in wanted])
    rows = collect_columns(metrics, schema, "table")
    check_unique(rows, BIAS_METRICS.key_columns, "metric_table()")
    slice_rows = [row for row in rows.filter(~pc.field("crossed")).to_pylist() if row["slice"] == slice_name]
    if not slice_rows:
        raise InputError(
            f"metric_table(): slice = {show_value(slice_name)}. The metrics have no identity in a slice of that name. "
            "Pass the name of one of their slices."
        )
    return Document(f"Metrics of slice {slice_name}", write_metric_page(slice_rows, slice_name), height=600)


def bias_report(
    df: Frame,
    *,
    out: str | Path | None = None,
    title: str = "a data frame",
    models: Models,
    label: str,
    label_threshold: float | None = None,
    label_positive: Sequence[Any] | None = None,
    identities: IdentitiesLike,
    identity_threshold: float = 0.5,
    unannotated: Unannotated = "exclude",
    slices: Mapping[str, str] | None = None,
    engine: RankingEngine = "blocks",
    ranges: int = 0,
    level: float = 0.95,
    evidence: Mapping[str, Any] | int | None = None,
    privacy: Mapping[str, Any] | int | bool | None = None,
    thresholds: Mapping[str, Any] | Sequence[float] | None = None,
    histograms: Mapping[str, Any] | int | bool | None = None,
    label_balance: Mapping[str, Any] | str | bool | None = None,
    templates: Mapping[str, Any] | str | None = None,
    pinned_auc: Mapping[str, Any] | int | bool | None = None,
) -> Document:
    """Return the report of a frame as one HTML page: models, worst identities, intervals, score distributions.

    It is the page of a published run without the parts that need one: gate, earlier runs, baseline, attribution.

    The other keywords, errors and warnings are those of `measure`.

    Parameters
    ----------
    out : str or Path, optional
        A file to which the page is also written.
    title : str
        The name of the data on the page.
    histograms : int, bool, or dict, optional
        The number of bins of the score distributions, by default 100; False leaves them out.

    Returns
    -------
    Document
        Shows itself in a notebook. Has ``html``, and ``save(path)``.

    Raises
    ------
    ConfigError
        Also if the extra ``report`` is not installed, or ``out`` cannot be written.

    Examples
    --------
    >>> biasspark.bias_report(
    ...     df, models=["toxicity"], label="toxic", identities=["male", "female"], out="report.html"
    ... )

    Notes
    -----
    Costs as much as `biasspark.measure`, and a second to draw. The page loads nothing, and escapes all text from the
    data.
    """
    arguments = locals() | {"histograms": True if histograms is None else histograms}
    del arguments["out"], arguments["title"]
    check_document(out, title, Keywords(arguments))
    return measure(**arguments).bias_report(out, title)
