"""Measure a corpus: rank every score once, and publish the bias metrics of every model, slice and identity."""

from __future__ import annotations

import argparse
import sys
from datetime import date

from biasspark.backfill import backfill_parser, list_days, run_nights
from biasspark.cli import Outcome, Progress, run_job
from biasspark.config import load_config
from biasspark.corpus.source import read_corpus
from biasspark.night import run_night
from biasspark.pipeline import JOB
from biasspark.plan import describe_plan
from biasspark.session import follow_tasks, job_session
from biasspark.tables.nights import Series, list_nights
from biasspark.tables.runs import new_run
from biasspark.tables.schemas import BIAS_RUNS, tables_of
from biasspark.tables.store import open_store, session_settings


def main(arguments: argparse.Namespace) -> Outcome:
    """Read the configuration, start Spark, and plan or run the night, or each of many."""
    progress = Progress()
    config = load_config(arguments.config, arguments.overrides)
    days, store = list_days(arguments.run_date, config), open_store(config.output)
    progress.stage("starting Spark")
    with job_session(f"biasspark {JOB}: {config.corpus.name}", session_settings(config.output)) as spark:
        corpus = read_corpus(spark, config.corpus, days[0], config)
        tables = (*tables_of(JOB), BIAS_RUNS)
        store.check(spark, tables)
        if arguments.dry_run:
            plan = describe_plan(config, len(corpus.columns), tables)
            return Outcome(summary={"job": JOB, "status": "planned", "config_hash": config.hash}, table=plan)

        def measure(day: date) -> Outcome:
            of_day = corpus if day == days[0] else read_corpus(spark, config.corpus, day, config)
            return run_night(of_day, config, store, new_run(day, config.corpus.name, JOB), progress)

        series = Series(JOB, config.corpus.name)
        published = list_nights(spark, store, series, days[0], days[-1]) if arguments.only_missing else ()
        with follow_tasks(spark, progress.advance):
            return run_nights(days, published, measure, progress, arguments.debug)


if __name__ == "__main__":
    sys.exit(run_job(main, backfill_parser(__doc__ or "")))
