"""A night of the main job, from a corpus that was read to tables that are published; and how any begins and ends."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession

from biasspark.backfill import list_days, run_nights
from biasspark.cli import Outcome, Progress, describe_unexpected
from biasspark.columns import MALFORMED
from biasspark.config import GROUPS, Config, say_count
from biasspark.dates import CorpusDates
from biasspark.highlights import show_worst_identities
from biasspark.maps.gate import judged, show_alerts
from biasspark.maps.jackknife import compute_left_out, leave_out_groups
from biasspark.maps.night_state import keep_state, state_of
from biasspark.maps.windows import Window, describe_window, merge_nights, merged_once, window_tables
from biasspark.pipeline import describe_run, measure, ranked_once, tabulate
from biasspark.session import follow_tasks, job_session
from biasspark.tables.nights import Series, list_nights
from biasspark.tables.publish import PublishedRun, publish
from biasspark.tables.runs import Run, RunRecord, new_run
from biasspark.tables.schemas import BIAS_ALERTS, BIAS_METRICS, BIAS_RUNS, SCORE_BLOCKS, WINDOW_TABLES, Table, tables_of
from biasspark.tables.store import Store, open_store, session_settings
from biasspark.tables.views import refresh_views


class NightlyJob(NamedTuple):
    """A job on a night of a corpus, or on many.

    Attributes
    ----------
    job
        Its name.
    read
        Reads the corpus of a night, given the session and a ``run_date``.
    describe
        Gives its plan, from the configuration, how many columns are read, and its tables.
    run
        Measures and publishes a night.
    """

    job: str
    read: Callable[..., DataFrame]
    describe: Callable[[Config, int, tuple[Table, ...]], str]
    run: Callable[[DataFrame, Config, Store, Run, Progress], Outcome]


def plan_or_run(nightly: NightlyJob, config: Config, arguments: argparse.Namespace) -> Outcome:
    """Start Spark, read the corpus and look at the tables that are there; then tell the plan, or run the nights."""
    progress, days = Progress(), list_days(arguments.run_date, config)
    store, tables = open_store(config.output), (*tables_of(nightly.job), BIAS_RUNS)
    progress.stage("starting Spark")
    with job_session(f"biasspark {nightly.job}: {config.corpus.name}", session_settings(config.output)) as spark:
        corpus = nightly.read(spark, run_date=days[0])
        store.check(spark, tables)
        if arguments.dry_run:
            plan = nightly.describe(config, len(corpus.drop(MALFORMED).columns), tables)
            return Outcome(summary={"job": nightly.job, "status": "planned", "config_hash": config.hash}, table=plan)

        def measure_day(day: date) -> Outcome:
            of_day = corpus if day == days[0] else nightly.read(spark, run_date=day)
            with dates.named(day):
                return nightly.run(of_day, config, store, new_run(day, config.corpus.name, nightly.job), progress)

        series, dates = Series(nightly.job, config.corpus.name), CorpusDates(spark, config.corpus)
        published = list_nights(spark, store, series, days[0], days[-1]) if arguments.only_missing else ()
        with follow_tasks(spark, progress.advance):
            return run_nights(days, published, measure_day, progress, arguments.debug)


def run_night(corpus: DataFrame, config: Config, store: Store, run: Run, progress: Progress) -> Outcome:
    """Survey, rank, judge, publish, and say what came of it."""
    spark = corpus.sparkSession
    progress.stage(f"surveying {config.corpus.name}")
    measurement = measure(corpus, config, config.corpus.id, config.corpus.duplicates)
    if config.state:
        measurement = keep_state(measurement, config, store)
    if config.gate and config.gate.paired:
        measurement = replace(measurement, left_out=leave_out_groups(measurement, config.gate))
    progress.stage(f"ranking {measurement.extent}")
    with ranked_once(measurement, config.rejects) as (tally, profiles):
        if measurement.left_out is not None:
            progress.stage(f"leaving out each of {GROUPS} groups of ids")
            compute_left_out(measurement)
        tables, found = tabulate(measurement, tally, profiles, config.rejects.max_rows)
        if config.state:
            tables[SCORE_BLOCKS] = state_of(measurement, config)
        if config.gate:
            progress.stage(f"applying {say_count(len(config.gate.of_nights), 'rule')} of the gate")
        with judged(measurement.seen_by_gate(tables, tally), config, store, run) as verdict:
            progress.stage(f"publishing {len(tables)} tables as {run.run_id}")
            warnings = (*found, *verdict.warnings)
            record = replace(describe_run(config, tally, warnings, spark.version), status=verdict.status)
            published = publish(tables | {BIAS_ALERTS: verdict.alerts}, run, store, record)

    def show() -> str:
        worst = show_worst_identities(store.read(spark, BIAS_METRICS, run))
        alerts = show_alerts(store.read(spark, BIAS_ALERTS, run), BIAS_ALERTS, verdict)
        return "\n\n".join(filter(None, [worst, alerts]))

    done = conclude(spark, store, published, record, show)
    return progress.end(replace(done, summary={**done.summary, "gate": verdict.outcome}, exit_code=verdict.exit_code))


def run_window(window: Window, config: Config, store: Store, run: Run, progress: Progress) -> Outcome:
    """Merge the nights of a window, publish, and say what came of it."""
    spark = window.blocks.sparkSession
    measurement = merge_nights(window, config)
    progress.stage(f"merging {window.extent}")
    with merged_once(measurement):
        tables = window_tables(measurement, window)
        progress.stage(f"publishing {len(tables)} tables as {run.run_id}")
        record = describe_window(window, config, spark.version)
        published = publish(tables, run, store, record)

    def show_worst() -> str:
        return show_worst_identities(store.read(spark, WINDOW_TABLES[BIAS_METRICS], run))

    outcome = conclude(spark, store, published, record, show_worst)
    own = {"from": window.first, "to": window.last, "nights": len(window.nights), "missing": list(window.missing)}
    return progress.end(replace(outcome, summary={**outcome.summary, **own}))


def conclude(
    spark: SparkSession,
    store: Store,
    published: PublishedRun,
    record: RunRecord,
    show: Callable[[], str],
) -> Outcome:
    """Refresh the views and say what came of a run that is published; whatever goes wrong now is a warning.

    Parameters
    ----------
    show
        Gives the table that people see.
    """
    run, warnings, table = published.run, tuple(record.warnings), ""
    try:
        warnings += refresh_views(spark, store)
        table = show()
    except Exception as error:  # noqa: BLE001 - the run is published, whatever happens here
        warnings += (f"{run.run_id} is published, but a later step failed: {describe_unexpected(error)}",)
    summary = {"job": run.job, "status": record.status, "run_id": run.run_id, "run_date": run.run_date}
    summary |= {"n_rows": record.n_rows, "n_rejected": record.n_rejected, "rejects": record.rejects}
    summary |= {"warnings": warnings, "tables": published.n_rows, "output": store.root}
    return Outcome(summary=summary, table=table + "".join(f"\nwarning: {text}" for text in warnings))
