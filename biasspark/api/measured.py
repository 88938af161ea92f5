"""One ranking and all tables that follow from it: `biasspark.measure`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructType

from biasspark.api.frame_kinds import find_table, give, like, spark_rows, warn
from biasspark.api.keywords import IdentitiesLike, Keywords, Models, RankingEngine, Unannotated
from biasspark.api.record_batches import Frame, collect_columns
from biasspark.columns import IDENTITY, MODEL, SLICE, SUMMARIZED_AUCS, SUMMARIZED_GAPS
from biasspark.config.declaration import broken_text_rule
from biasspark.corpus.template_scores import template_scores
from biasspark.errors import ConfigError, Fault, explain_missing
from biasspark.report.report_data import ReportData, filter_tables, list_identities
from biasspark.tables import schemas
from biasspark.tables.runs import read_config
from biasspark.tables.schemas import Table
from biasspark.tables.spark_schemas import value_schema
from biasspark.workflows import corpus_steps
from biasspark.workflows.corpus_steps import Measurement, SurveyedCorpus, survey_for_ranking

if TYPE_CHECKING:
    from biasspark.report.page import Document

_TURNED_ON_BY = {
    schemas.THRESHOLD_RATES: "thresholds=[0.5]",
    schemas.THRESHOLD_SUMMARY: "thresholds=[0.5]",
    schemas.SCORE_HISTOGRAMS: "histograms=100",
    schemas.LABEL_BALANCE: "label_balance=True",
    schemas.TEMPLATE_SCORES: 'templates="template"',
}


class MeasuredCorpus:
    """A measured corpus, as `measure` returns it. Its tables are computed from the counts that it holds.

    Each method returns the table of that name in docs/tables.md, except the columns of a run, as a frame that holds its
    rows, of the kind of the measured frame.

    Attributes
    ----------
    n_rows : int
        The number of rows read.
    rejects : dict of str to int
        The number of rejected rows by reason.
    warnings : tuple of str
        Warnings to review, as the job prints them at its end.
    """

    def __init__(self, df: Frame, surveyed: SurveyedCorpus, measurement: Measurement) -> None:
        self._like, self._surveyed, self._measurement = like(df), surveyed, measurement
        counts = measurement.counts.row_counts
        self.n_rows, self.rejects = counts.n_rows, dict(counts.rejects)
        self.warnings = tuple(measurement.warnings)
        # Tables that need another scan. Frames of Spark are lazy: the scan runs when they are computed.
        self._frames: dict[Table, Frame] = {}
        if surveyed.measures.templates:
            scores = template_scores(surveyed.corpus, surveyed.measures, surveyed.encoding)
            table = schemas.TEMPLATE_SCORES
            self._frames[table] = give(df, table, scores.select(*table.value_columns).orderBy(*table.key_columns))

    def bias_metrics(self, *, narrow: bool = False) -> Frame:
        """Return the bias metrics, a row for each (model, slice, identity). See `biasspark.bias_metrics`."""
        schema, measures = value_schema(schemas.BIAS_METRICS), self._measurement.measures
        names = [name for name in schema.names if not name.endswith("_method")]
        if narrow:
            several = {MODEL: len(measures.models) > 1, SLICE: bool(measures.slices)}
            names = [*(name for name, is_shown in several.items() if is_shown), IDENTITY, "subgroup_size"]
            names += SUMMARIZED_AUCS + SUMMARIZED_GAPS
        rows = self._measurement.tables[schemas.BIAS_METRICS].select(names)
        return self._like(rows, StructType([schema[name] for name in names]))

    def u_statistics(self) -> Frame:
        """Return the integers that determine every metric, for six pairs of cells per identity."""
        return self.table(schemas.U_STATISTICS)

    def model_summary(self) -> Frame:
        """Return a row for each (model, slice): the overall AUC, and the worst, best and mean of each metric."""
        return self.table(schemas.MODEL_SUMMARY)

    def pinned_auc(self) -> Frame:
        """Return the pinned AUC of every identity."""
        return self.table(schemas.PINNED_AUC)

    def threshold_rates(self) -> Frame:
        """Return decisions, rates and gaps of every identity at the requested thresholds."""
        return self.table(schemas.THRESHOLD_RATES)

    def threshold_summary(self) -> Frame:
        """Return the error rates of every slice at the requested thresholds, and their equality differences."""
        return self.table(schemas.THRESHOLD_SUMMARY)

    def score_histograms(self) -> Frame:
        """Return the number of rows by bin of their score, for every cell of every identity."""
        return self.table(schemas.SCORE_HISTOGRAMS)

    def label_balance(self) -> Frame:
        """Return the share of positives of every identity by text length, and the negatives that would balance it."""
        return self.table(schemas.LABEL_BALANCE)

    def template_scores(self) -> Frame:
        """Return the mean score of every template and identity.

        The rows are scanned once more, with Spark when the table is computed, otherwise when they are measured.
        """
        return self.table(schemas.TEMPLATE_SCORES)

    def table(self, table: Table | str) -> Frame:
        """Return one of the tables above by its name. Raises `ConfigError` if it was not requested."""
        tables = self._measurement.tables
        table = find_table(table, {*tables, *self._frames}, _TURNED_ON_BY, "measure")
        return self._frames[table] if table in self._frames else self._like(tables[table], value_schema(table))

    def bias_report(self, out: str | Path | None = None, title: str = "a data frame") -> Document:
        """Return the report of the corpus as one HTML page, with charts of all requested tables.

        Parameters and errors are those of `biasspark.bias_report`.
        """
        check_document(out, title)
        try:  # the libraries that draw are an extra
            from biasspark.report.page import Document, write_page  # noqa: PLC0415 - of an extra
        except ModuleNotFoundError as error:
            raise explain_missing(error) from None
        measurement, tables = self._measurement, dict(self._measurement.tables)
        for table, frame in self._frames.items():
            tables[table] = collect_columns(frame, table.arrow_schema, table.name)
        in_order = {table.name: schemas.sort_rows(table, rows) for table, rows in tables.items()}
        run = {
            "n_rows": self.n_rows,
            "n_rejected": measurement.counts.row_counts.n_rejected,
            "rejects": self.rejects,
            "warnings": self.warnings,
            "config": measurement.measures.json,
            "config_hash": measurement.measures.hash,
        }
        data = ReportData(
            corpus=title,
            run=run,
            tables=filter_tables(in_order, read_config(run)),
            n_identities=len(list_identities(measurement.tables[schemas.BIAS_METRICS])),
        )
        report = Document(f"Unintended bias of {title}", write_page(data))
        if out is not None:
            report.save(out)
        return report

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._surveyed.size_text}>"


def check_document(out: object, title: object, keywords: Keywords | None = None) -> None:
    """Raise `ConfigError` if a report cannot be written or has no title, with the faults of the other keywords."""
    faults: list[Fault] = []
    if out is not None and not _is_page_in_folder(out):
        shown = str(out) if isinstance(out, os.PathLike) else out
        faults.append(Fault(("out",), shown, "It must be the path of an HTML file in an existing folder.", "Name one."))
    if rule := broken_text_rule(title):
        faults.append(Fault(("title",), title, rule, "Give the name of the data."))
    if faults:
        with (keywords or Keywords({})).name_faults():
            if keywords:
                keywords.measures(faults=faults)
            raise ConfigError(*faults)


def _is_page_in_folder(out: object) -> bool:
    if not isinstance(out, str | os.PathLike) or not os.fspath(out):
        return False
    path = os.path.expanduser(out)  # Path.is_dir raises in a folder that may not be read
    is_page = not path.lower().endswith((".md", ".pdf"))
    return is_page and not os.path.isdir(path) and os.path.isdir(Path(path).parent)


def measure_corpus(df: Frame, keywords: Keywords) -> MeasuredCorpus:
    """Survey and rank a corpus, and issue its warnings. See `measure`."""
    with keywords.name_faults():
        measures = keywords.measures()
        with spark_rows(df, measures) as corpus, survey_for_ranking(corpus, measures) as surveyed:
            measured = MeasuredCorpus(df, surveyed, corpus_steps.measure(surveyed))
    warn(measured.warnings)
    return measured


def measure(
    df: Frame,
    *,
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
) -> MeasuredCorpus:
    """Rank a corpus once, and keep the counts for any of its tables.

    The other keywords, errors and warnings are those of `bias_metrics`.

    Parameters
    ----------
    thresholds : list of float, or dict, optional
        Turns on `threshold_rates` and `threshold_summary`: the thresholds, or ``{"grid": {"steps": 100}}``.
    histograms : True, int, or dict, optional
        Turns on `score_histograms`: the number of bins; True for 100.
    label_balance : True, str, or dict, optional
        Turns on `label_balance`: the column with the text, True to ignore lengths, or ``{"length": "n_words"}``.
    templates : str, optional
        Turns on `template_scores`: the column with the template of each row.
    pinned_auc : int, or dict, optional
        Samples of `pinned_auc`, which is always computed: the number of trials, or ``{"trials": 10, "seed": 1}``.

    Returns
    -------
    MeasuredCorpus
        A method for each table, ``n_rows``, ``rejects`` and ``warnings``, each also issued as an InputWarning.

    Examples
    --------
    >>> measured = biasspark.measure(
    ...     df, models=["toxicity"], label="toxic", identities=["male", "female"], thresholds=[0.5]
    ... )
    >>> measured.bias_metrics().show()
    >>> measured.threshold_rates().show()

    Notes
    -----
    The cost is that of `bias_metrics`. After that, tables cost almost nothing unless their method says otherwise: only
    counts are kept, which do not grow with the rows.
    """
    pinned_auc = True if pinned_auc is None or pinned_auc is False else pinned_auc
    return measure_corpus(df, Keywords(locals()))
