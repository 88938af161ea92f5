"""Measure a window of published runs by merging their kept rankings. The corpus is not read."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import DoubleType, FloatType, StructField, StructType

from biasspark.cli import CONFIGURED, Command, Outcome, Progress, flag, parse_date
from biasspark.config import Measures, load_config, merge_rules
from biasspark.corpus.encode import build_encoding
from biasspark.corpus.encoding import RowCounts
from biasspark.corpus.survey import Survey, choose_cutpoints, order_values
from biasspark.errors import ConfigError, InputError
from biasspark.ranking.engine import collect_counts, rank_ranges
from biasspark.report.console_summary import show_suite
from biasspark.session import describe
from biasspark.session.spark_errors import translate_spark_errors
from biasspark.tables import schemas
from biasspark.tables.ledger import LedgerRow, list_published, to_run
from biasspark.tables.publish import Rows, check_count
from biasspark.tables.runs import new_run
from biasspark.tables.schemas import BIAS_METRICS, SCORE_BLOCKS, Table, tables_of
from biasspark.tables.storage_errors import storage_errors
from biasspark.tables.store import open_tables
from biasspark.text import format_count, list_first
from biasspark.windows import sketch
from biasspark.windows.sketch import RUN, SketchHeader
from biasspark.workflows.corpus_job import MAX_DATES, RunContext, list_dates
from biasspark.workflows.corpus_steps import Measurement
from biasspark.workflows.sketches import read_score_blocks, read_states


@dataclass(frozen=True)
class Window:
    """The runs that are merged, in order, their headers by model, and reasons by date for those that are left out."""

    runs: tuple[LedgerRow, ...]
    headers: tuple[dict[str, SketchHeader], ...]
    blocks: DataFrame
    missing: dict[date, str]


def find_window(context: RunContext, *, allow_missing: bool) -> Window:
    """Find the kept rankings of all dates of a window, and check that they can be merged."""
    spark, store, config = context.spark, context.store, context.config
    first, last = context.run.window_start, context.run.run_date
    assert first is not None
    with describe(spark, "look up the runs"):
        published = list_published(spark, store, BIAS_METRICS.job, config.corpus.name, (first, last))
        runs = list(map(to_run, published.values()))
        blocks = read_score_blocks(spark, store, runs)
        with storage_errors(f"{store.root}/{SCORE_BLOCKS.name}", "read"):
            counts = {row[RUN]: row["count"] for row in blocks.groupBy(RUN).count().collect()}
            for index, n_rows in counts.items():
                check_count(store, SCORE_BLOCKS, runs[index], n_rows)
            states = {day: state for day, state in zip(published, read_states(blocks, len(runs)), strict=True) if state}
    days = list_dates(first, last)
    missing = dict.fromkeys((day for day in days if day not in states), "not published")
    for day in missing.keys() & published.keys():
        kept_scores = (published[day]["table_rows"] or {}).get(SCORE_BLOCKS.name)
        missing[day] = "its files are gone" if kept_scores else "its run kept no scores"
    is_refused = missing and (not allow_missing or not states)
    faults = [_describe_missing(missing, len(days))] if is_refused else []
    if states:
        faults += sketch.list_disagreements(states, tuple(config.models), merge_rules(config.resolved()))
    if faults:
        raise InputError(*faults)
    merged = tuple(published[day] for day in states)
    headers = tuple({model: state[model].header for model in config.models} for state in states.values())
    if len(merged) < len(published):
        blocks = read_score_blocks(spark, store, list(map(to_run, merged)))
    return Window(merged, headers, blocks, missing)


def merge_runs(window: Window, config: Measures) -> Measurement:
    """Return the measurement of all runs together, with exactly the counts of the union of their rows.

    Runs one Spark action. Blocks are read once and shuffled once; the corpus is not read.
    """
    pinned_auc = config.pinned_auc and replace(config.pinned_auc, trials=0)
    measures = replace(config, templates=None, label_balance=None, pinned_auc=pinned_auc)
    survey = _survey_states(window, measures)
    encoding = build_encoding(measures, survey)
    encodings = []  # of each run, whose identities count
    for header in (next(iter(headers.values())) for headers in window.headers):
        values = {name: tuple(values) for name, values in header.values.items()}
        encodings.append(build_encoding(measures, Survey(n_rows=header.n_rows, values=values, quantiles=())))
    is_single = {column: window.headers[-1][model].is_single for model, column in measures.models.items()}
    fields = [StructField(name, FloatType() if single else DoubleType()) for name, single in is_single.items()]
    cutpoints = choose_cutpoints(measures, survey, StructType(fields))
    boundaries, edges = survey.boundaries(measures.ranking.ranges), [cuts.scores for cuts in cutpoints.values()]
    parts = sketch.read_sketches(window.blocks, window.headers, encodings, encoding, boundaries)
    ranked = rank_ranges(parts, encoding, boundaries, edges)
    with describe(window.blocks.sparkSession, "merge the runs"), translate_spark_errors("window"):
        counts = collect_counts(ranked, encoding, edges)
    return Measurement(measures, encoding, survey, cutpoints, counts)


def run_window(window: Window, context: RunContext) -> Outcome:
    """Merge the runs of a window, publish, and return the outcome."""
    progress, runs, first, last = context.progress, window.runs, context.run.window_start, context.run.run_date
    n_rows = sum(run["n_rows"] for run in runs)
    progress.stage(f"merging {format_count(len(runs), 'run')}, {format_count(n_rows, 'row')}")
    measurement = merge_runs(window, context.config)
    rejects = sum((Counter[str](run["rejects"]) for run in runs), Counter())
    counts = RowCounts(n_rows=n_rows, n_rejected=sum(run["n_rejected"] for run in runs), rejects=rejects)
    warnings = [f"{day} is not in the window: {reason}." for day, reason in window.missing.items()]
    if context.config.corpus.run_date_column is None and len(runs) > 1:
        warnings.append(
            f"[corpus] run_date_column: not set, so runs of {len(runs)} dates may have measured the same rows, which "
            f"are then counted {len(runs)} times."
        )
    context = replace(context, merged_run_ids=[run["run_id"] for run in runs])
    tables: dict[Table, Rows] = {}
    for table, window_table in schemas.WINDOW_TABLES.items():
        if (rows := measurement.tables.get(table)) is not None:
            for column, value in ((schemas.WINDOW_START, first), (schemas.N_RUNS, len(runs))):
                rows = rows.append_column(column.name, pa.array([value] * len(rows), column.arrow_type))
            tables[window_table] = rows.select(window_table.value_columns)
    outcome = context.publish(tables, counts, warnings, partial(show_suite, measurement.tables))
    days = {"from": first, "to": last, "runs": len(runs), "missing": list(window.missing)}
    return progress.end(replace(outcome, summary={**outcome.summary, **days}))


def _survey_states(window: Window, measures: Measures) -> Survey:
    by_model = {model: [headers[model] for headers in window.headers] for model in measures.models}
    any_headers = next(iter(by_model.values()))
    values = {}
    for name in measures.identities.value_columns:
        kind = any_headers[-1].types[name]
        is_numeric = kind in ("tinyint", "smallint", "int", "bigint", "float", "double") or kind.startswith("decimal(")
        values[name] = order_values({v for header in any_headers for v in header.values[name]}, name, is_numeric)
    return Survey(
        n_rows=sum(run["n_rows"] for run in window.runs),
        values=values,
        quantiles=tuple(sketch.merge_quantiles(headers) for headers in by_model.values()),
        extremes={model: ends for model, headers in by_model.items() if (ends := sketch.merge_extremes(headers))},
    )


def _describe_missing(missing: Mapping[date, str], n_days: int) -> str:
    """Describe the missing dates and the fix. Leaving them out does not help if all are missing."""
    listed = list_first([f"{day} ({reason})" for day, reason in missing.items()])
    have, days = "has" if len(missing) == 1 else "have", format_count(n_days, "date")
    leave_out = ", or pass --allow-missing" if len(missing) < n_days else ""
    return (
        f"window: {len(missing)} of {days} {have} no run to merge: {listed}. Measure each with [state] keep = true"
        f"{leave_out}."
    )


# ---- the command line

JOB = "window_metrics"
EXAMPLES = """\
examples:
  %(prog)s --config conf/demo.toml --from 2026-01-15 --to 2026-01-16
  %(prog)s --config conf/demo.toml --from 2026-01-10 --to 2026-01-16 --allow-missing

All runs must have kept their state. conf/demo.toml does not do so: measure them with --set state.keep=true.
"""
# Blocks are large: a batch of 64 has at most 256 MiB.
SETTINGS = {"spark.sql.execution.arrow.maxRecordsPerBatch": "64"}


def main(arguments: argparse.Namespace) -> Outcome:
    """Find the runs of the window, merge them and publish."""
    first, last = arguments.first, arguments.last
    if first > last:
        raise ConfigError(f"--from {first} --to {last}: the first date is after the last. Swap them.")
    if (last - first).days >= MAX_DATES:
        rule = f"a window has at most {MAX_DATES:,} dates"
        raise ConfigError(f"--from {first} --to {last}: {rule}. Name a later first date.")
    progress = Progress()
    config = load_config(arguments.config, arguments.overrides)
    with open_tables(JOB, config, progress, SETTINGS) as (spark, store):
        store.check(spark, (*tables_of(JOB), schemas.SCORE_BLOCKS, schemas.BIAS_RUNS))
        progress.stage(f"looking up the runs of {config.corpus.name} from {first} to {last}")
        context = RunContext(spark, config, store, new_run(last, config.corpus.name, JOB, first), progress)
        window = find_window(context, allow_missing=arguments.allow_missing)
        return run_window(window, context)


_DATE: dict[str, Any] = {"required": True, "type": parse_date, "metavar": "YYYY-MM-DD"}
FLAGS = (
    *CONFIGURED,
    flag("--from", dest="first", help="the first date of the window", **_DATE),
    flag("--to", dest="last", help="its last date, which is the run date of its tables", **_DATE),
    flag("--allow-missing", action="store_true", help="skip missing dates, and list them"),
)
COMMAND = Command(__doc__, EXAMPLES, FLAGS, main)
