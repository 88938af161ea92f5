"""One ranking and every table that comes of it: `biasspark.measure`, and what the functions of single tables share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import cached_property, partial
from typing import Any, Self, Unpack

from pyspark.sql import DataFrame

from biasspark import pipeline
from biasspark.api.computed import compute, warn, write_warnings
from biasspark.api.keywords import MeasureKeywords, parse_keywords, with_keywords
from biasspark.config import PinnedAuc
from biasspark.corpus.codebook import Tally
from biasspark.errors import ConfigError
from biasspark.metrics import suite, summary
from biasspark.metrics.statistics import in_table
from biasspark.ranking.placements import Profile
from biasspark.session import run_side_by_side
from biasspark.tables.schemas import (
    LABEL_BALANCE,
    PINNED_AUC,
    SCORE_HISTOGRAMS,
    TEMPLATE_SCORES,
    THRESHOLD_RATES,
    THRESHOLD_SUMMARY,
    U_STATISTICS,
    Table,
)

_TURNED_ON_BY = {
    THRESHOLD_RATES: "thresholds=[0.5]",
    THRESHOLD_SUMMARY: "thresholds=[0.5]",
    SCORE_HISTOGRAMS: "histograms=100",
    LABEL_BALANCE: "label_balance=True",
    TEMPLATE_SCORES: 'templates="template"',
}


class CorpusTables:
    """The tables of a ranking, less the columns of a run. All lazy.

    Each is the table of that name in docs/tables.md.
    """

    def __init__(self, measurement: pipeline.Measurement) -> None:
        self._measurement = measurement

    def bias_metrics(self) -> DataFrame:
        """Return the bias suite: one row a (model, slice, identity)."""
        return suite.bias_metrics(self._measurement.statistics, self._measurement.measures.intervals)

    def u_statistics(self) -> DataFrame:
        """Return the integers from which every metric follows: six pairs of cells per identity."""
        return in_table(self._measurement.statistics, U_STATISTICS)

    def model_summary(self) -> DataFrame:
        """Return one row a (model, slice): overall AUC, and each metric's worst, best and mean over identities."""
        measures = self._measurement.measures
        return summary.model_summary(
            self._measurement.statistics, measures.intervals, measures.pinned_auc or PinnedAuc()
        )

    def pinned_auc(self) -> DataFrame:
        """Return the pinned AUC of every identity. With trials the rows are scanned and shuffled once more."""
        return self._further(PINNED_AUC)

    def threshold_rates(self) -> DataFrame:
        """Return decisions, rates and their gaps of every identity, at the thresholds that were asked for."""
        return self._further(THRESHOLD_RATES)

    def threshold_summary(self) -> DataFrame:
        """Return the error rates of every slice, at the thresholds that were asked for, and how unequal they are."""
        return self._further(THRESHOLD_SUMMARY)

    def score_histograms(self) -> DataFrame:
        """Return the rows of every cell of every identity by equal bins of their scores."""
        return self._further(SCORE_HISTOGRAMS)

    def label_balance(self) -> DataFrame:
        """Return how often every identity is positive by text length, and how many negatives would balance it."""
        return self._further(LABEL_BALANCE)

    def template_scores(self) -> DataFrame:
        """Return the mean score of every template and identity. The rows are scanned once more."""
        return self._further(TEMPLATE_SCORES)

    @cached_property
    def _further_tables(self) -> dict[Table, DataFrame]:
        return self._measurement.further_tables()

    def _further(self, table: Table) -> DataFrame:
        if table not in self._further_tables:
            raise ConfigError(
                f"{table.name}: it was not asked for when the rows were ranked. Add {_TURNED_ON_BY[table]}, say, to "
                "what biasspark.measure is given."
            )
        return self._further_tables[table].select(*table.value_columns)


class MeasuredCorpus(CorpusTables):
    """A corpus that is ranked, the ranking kept on the executors until it is closed: what `measure` returns.

    Attributes
    ----------
    n_rows
        Rows read.
    rejects
        Rows that do not count, by reason.
    warnings
        What a person should look at, as the job says it at its end.
    """

    def __init__(
        self, measurement: pipeline.Measurement, tally: Tally, warnings: tuple[str, ...], kept: ExitStack
    ) -> None:
        super().__init__(measurement)
        self.n_rows, self.rejects, self.warnings = tally.n_rows, dict(tally.rejects), warnings
        self._kept = kept

    def close(self) -> None:
        """Release what is kept. What is computed after that is ranked anew, with the same numbers."""
        self._kept.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._measurement.extent}>"


@with_keywords
def measure(df: DataFrame, **measures: Unpack[MeasureKeywords]) -> MeasuredCorpus:
    """Rank a corpus once, and keep the ranking for as many tables as are wanted of it.

    Parameters
    ----------
    df : DataFrame
        One row per comment.
    thresholds : list of float, or dict, optional
        Turns on `threshold_rates` and `threshold_summary`: the thresholds, or ``{"grid": {"steps": 100}}``.
    histograms : True, int, or dict, optional
        Turns on `score_histograms`: the number of bins; True for 100.
    label_balance : True, str, or dict, optional
        Turns on `label_balance`: the column with the text, True to leave lengths out, or ``{"length": "n_words"}``.
    templates : str, optional
        Turns on `template_scores`: the column that says from which template a row was made.
    pinned_auc : int, or dict, optional
        How `pinned_auc`, which is always there, is also sampled: how many trials, or ``{"trials": 10, "seed": 1}``.
    **measures
        What `bias_metrics` takes.

    Returns
    -------
    MeasuredCorpus
        A method for each table, ``n_rows``, ``rejects`` and ``warnings``. The end of a ``with`` block, or ``close()``,
        releases what is kept, whatever happened.

    Raises
    ------
    ConfigError, InputError
        With all faults at once; also if a model has no usable score.

    Warns
    -----
    InputWarning
        For each of ``warnings``.

    Examples
    --------
    >>> import biasspark  # doctest: +SKIP
    >>> with biasspark.measure(
    ...     df, models=["toxicity"], label="toxic", identities=["male", "female"], thresholds=[0.5]
    ... ) as measured:  # doctest: +SKIP
    ...     measured.bias_metrics().show()
    ...     measured.threshold_rates().show()

    Notes
    -----
    When called, the rows are scanned twice, for a survey and for the ranking, and shuffled once; with the engine
    "windows" four times or more. Tables cost next to nothing after that, unless their method says so. What is kept are
    the counts of score ranges, which do not grow with the rows; with the engine "windows" every ranked score.
    """
    parts: Mapping[str, Any] = {} if measures.get("pinned_auc") else {"pinned_auc": {}}
    measurement = pipeline.measure(df, parse_keywords(measures, parts))
    with measurement.keep() as kept:
        tally, profiles = pipeline.read_ranking(measurement)
        warnings = find_all_warnings(measurement, tally, profiles)
        warn(warnings)  # before anything is handed over: a filter may turn warnings into exceptions
        return MeasuredCorpus(measurement, tally, warnings, kept.pop_all())


def compute_ranked(measurement: pipeline.Measurement, table: Callable[[], DataFrame]) -> DataFrame:
    """Rank a corpus, give the warnings about it, and return a table of the ranking that holds its rows.

    Parameters
    ----------
    measurement : Measurement
        What is ranked. It is released before the function returns.
    table : callable
        Plans the table.

    Raises
    ------
    InputError
        As `measure`.
    """
    corpus, expressions = measurement.corpus, measurement.measures.expressions
    with pipeline.ranked_once(measurement) as (tally, profiles):
        parts: list[Callable[[], Any]] = [
            partial(compute, corpus, expressions, table),
            partial(find_all_warnings, measurement, tally, profiles),
        ]
        computed: DataFrame
        computed, warnings = run_side_by_side(corpus.sparkSession, parts)
    warn(warnings)
    return computed


def find_all_warnings(
    measurement: pipeline.Measurement, tally: Tally, profiles: Mapping[str, Profile]
) -> tuple[str, ...]:
    """Return what a person should look at, in the words of a notebook, as the job says it at its end: a small job."""
    found = pipeline.find_warnings(measurement, profiles)
    return write_warnings((*found, *pipeline.warn_of_rejects(tally)))
