"""The map of windows: what nights give when the state that each keeps is merged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, timedelta

import pyspark.sql.functions as F
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DoubleType, FloatType, StructField, StructType

from biasspark.config import Config, Measures, merge_rules, say_count
from biasspark.corpus.codebook import Codebook, Tally
from biasspark.corpus.examples import build_codebook
from biasspark.corpus.marks import mark_scores
from biasspark.corpus.plain_words import input_faults
from biasspark.corpus.survey import Survey, list_valued, order_values
from biasspark.errors import InputError
from biasspark.maps.night_state import decode_states
from biasspark.pipeline import JOB, Measurement, describe_run, statistics_of
from biasspark.ranking.engine import rank_parts
from biasspark.ranking.state_agreement import find_disagreements
from biasspark.ranking.state_engine import read_states
from biasspark.ranking.state_header import Header, join_extremes, join_quantiles
from biasspark.session import describe
from biasspark.tables.nights import Night, Series, list_nights, read_blocks, read_headers
from biasspark.tables.runs import RunRecord
from biasspark.tables.schemas import N_NIGHTS, WINDOW_START, WINDOW_TABLES, Table
from biasspark.tables.store import Store


@dataclass(frozen=True)
class Window:
    """Nights that merge.

    Attributes
    ----------
    first, last
        The days of the window, both included.
    nights
        Those that are there, in order.
    headers
        Of each of them, by model.
    blocks
        Their rows of ``score_blocks``, with the place of each night as ``night``.
    missing
        The days that are left out, each with the reason.
    """

    first: date
    last: date
    nights: tuple[Night, ...]
    headers: tuple[dict[str, Header], ...]
    blocks: DataFrame
    missing: dict[date, str]

    @property
    def extent(self) -> str:
        """What is merged, in words."""
        n_rows = sum(night.n_rows for night in self.nights)
        return f"{say_count(len(self.nights), 'night')} of {say_count(n_rows, 'row')}"


def find_window(
    spark: SparkSession, store: Store, config: Config, days: tuple[date, date], allow_missing: bool
) -> Window:
    """Find the state of all nights of a window, and see that it merges.

    Parameters
    ----------
    days
        The first and the last, both included.
    allow_missing
        Whether a window may lack nights.

    Raises
    ------
    InputError
        If nights are missing, keep no state, or were measured by other rules than each other or the configuration.

    Notes
    -----
    Two small Spark jobs, over the ledger and over the headers of the nights.
    """
    first, last = days
    with describe(spark, "look up the nights"):
        found = list_nights(spark, store, Series(JOB, config.corpus.name), first, last)
        runs = [night.run for night in found.values()]
        blocks = read_blocks(spark, store, runs)
        stored = read_headers(blocks, len(runs))
    states = {day: decode_states(own) for day, own in zip(found, stored, strict=True) if own}
    every = [first + timedelta(days=place) for place in range((last - first).days + 1)]
    missing = {day: "keeps no state" if day in found else "not published" for day in every if day not in states}
    if missing and (not allow_missing or not states):
        raise InputError(_say_missing(missing, len(every)))
    if faults := find_disagreements(states, tuple(config.models), merge_rules(config.resolved())):
        raise InputError(*faults)
    nights = tuple(found[day] for day in states)
    headers = tuple({model: own[model].header for model in config.models} for own in states.values())
    if len(nights) < len(found):
        blocks = read_blocks(spark, store, [night.run for night in nights])
    return Window(first, last, nights, headers, blocks, missing)


def merge_nights(window: Window, config: Measures) -> Measurement:
    """Return the measurement of all nights together: to the last integer that of the union of their rows.

    Notes
    -----
    Lazy. Blocks are read once and shuffled once; no column of the corpus is read.
    """
    measures = replace(config, templates=None, label_balance=None)
    if measures.pinned_auc:
        measures = replace(measures, pinned_auc=replace(measures.pinned_auc, trials=0))
    survey = _survey_states(window, measures)
    codebook = build_codebook(measures, survey)
    nights = [_codebook_of(next(iter(own.values())), measures) for own in window.headers]
    marks = mark_scores(measures, survey, _schema_of(window.headers[-1], measures))
    boundaries, edges = survey.boundaries(measures.ranking.ranges), [own.edges for own in marks.values()]
    parts = read_states(window.blocks, window.headers, nights, codebook, boundaries)
    ranking = rank_parts(parts, codebook, edges)
    return Measurement(
        corpus=window.blocks,
        examples=window.blocks,
        measures=measures,
        survey=survey,
        codebook=codebook,
        ranking=ranking,
        marks=marks,
        statistics=statistics_of(ranking, measures),
    )


@contextmanager
def merged_once(measurement: Measurement) -> Iterator[None]:
    """Merge the nights, and keep the ranking for the block."""
    with measurement.keep():
        with describe(measurement.corpus.sparkSession, "merge the nights"), input_faults("window"):
            measurement.statistics.count()
        yield


def window_tables(measurement: Measurement, window: Window) -> dict[Table, DataFrame | None]:
    """Return the rows of every table of a window, less the run's columns; None where its part is not configured."""
    own = {WINDOW_START.name: F.lit(window.first), N_NIGHTS.name: F.lit(len(window.nights))}
    found = {**measurement.suite_tables(), **measurement.further_tables()}
    return {
        of_window: found[table].withColumns(own) if table in found else None
        for table, of_window in WINDOW_TABLES.items()
    }


def describe_window(window: Window, config: Config, spark_version: str) -> RunRecord:
    """Return what the ledger says of a window: the counts of its nights added up, which they are, and what it lacks."""
    reasons = dict.fromkeys(reason for night in window.nights for reason in night.rejects)
    tally = Tally(
        n_rows=sum(night.n_rows for night in window.nights),
        n_rejected=sum(night.n_rejected for night in window.nights),
        rejects={reason: sum(night.rejects.get(reason, 0) for night in window.nights) for reason in reasons},
    )
    warnings = tuple(f"{day} is not in the window: {reason}." for day, reason in window.missing.items())
    merged = tuple(night.run.run_id for night in window.nights)
    return replace(describe_run(config, tally, warnings, spark_version), merged_run_ids=merged)


def _survey_states(window: Window, measures: Measures) -> Survey:
    """Return what a survey of all nights together would find, from their headers."""
    by_model = {model: [own[model] for own in window.headers] for model in measures.models}
    one_a_night = next(iter(by_model.values()))
    extremes = {model: join_extremes(headers) for model, headers in by_model.items()} if measures.histograms else {}
    return Survey(
        n_rows=sum(night.n_rows for night in window.nights),
        values={
            name: order_values({value for header in one_a_night for value in header.values[name]}, name, numeric)
            for name in list_valued(measures)
            for numeric in [_is_numeric(one_a_night[-1].types[name])]
        },
        quantiles=tuple(join_quantiles(headers) for headers in by_model.values()),
        extremes={model: ends for model, ends in extremes.items() if ends},
    )


def _is_numeric(kind: str) -> bool:
    return kind in ("tinyint", "smallint", "int", "bigint", "float", "double") or kind.startswith("decimal(")


def _codebook_of(header: Header, measures: Measures) -> Codebook:
    """Return the codebook of a night, of which the identities count."""
    values = {name: tuple(values) for name, values in header.values.items()}
    return build_codebook(measures, Survey(n_rows=header.n_rows, values=values, quantiles=()))


def _schema_of(headers: Mapping[str, Header], measures: Measures) -> StructType:
    """Return the columns of scores as the corpus has them."""
    kinds = {
        column: FloatType() if headers[model].is_single else DoubleType() for model, column in measures.models.items()
    }
    return StructType([StructField(column, kind) for column, kind in kinds.items()])


def _say_missing(missing: Mapping[date, str], n_days: int) -> str:
    listed = ", ".join(f"{day} ({reason})" for day, reason in missing.items())
    return (
        f"window: {len(missing)} of its {n_days} nights {'is' if len(missing) == 1 else 'are'} missing: {listed}. A "
        "window holds every night. Measure them with [state] keep = true, or leave out some by --allow-missing."
    )
