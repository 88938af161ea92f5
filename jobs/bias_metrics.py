"""Measure a corpus: rank every score once, and publish the bias metrics of every model, slice and identity."""

from __future__ import annotations

import argparse
import sys

from pyspark.sql import DataFrame

from biasspark.cli import Outcome, Progress, describe_unexpected, format_table, job_parser, run_job
from biasspark.config import Config, load_config
from biasspark.corpus.source import read_corpus
from biasspark.pipeline import WORST, describe_run, find_warnings, measure, ranked_once, worst_identities
from biasspark.plan import describe_plan
from biasspark.session import follow_tasks, job_session
from biasspark.tables.publish import publish
from biasspark.tables.runs import Run, new_run
from biasspark.tables.schemas import BIAS_METRICS, TABLES
from biasspark.tables.store import CatalogStore, PathStore, open_store, session_settings
from biasspark.tables.views import refresh_views

JOB = "bias_metrics"


def main(arguments: argparse.Namespace) -> Outcome:
    """Read the configuration, start Spark, and plan or run the night."""
    progress = Progress()
    config = load_config(arguments.config, arguments.overrides)
    store = open_store(config.output)
    progress.stage("starting Spark")
    with job_session(f"biasspark {JOB}: {config.corpus.name}", session_settings(config.output)) as spark:
        corpus = read_corpus(spark, config.corpus, arguments.run_date, config)
        store.check(spark, TABLES.values())
        if arguments.dry_run:
            plan = describe_plan(config, len(corpus.columns), tuple(TABLES.values()))
            return Outcome(summary={"job": JOB, "status": "planned", "config_hash": config.hash}, table=plan)
        with follow_tasks(spark, progress.advance):
            return run_night(corpus, config, store, new_run(arguments.run_date, config.corpus.name, JOB), progress)


def run_night(
    corpus: DataFrame, config: Config, store: PathStore | CatalogStore, run: Run, progress: Progress
) -> Outcome:
    """Survey, rank, publish, and say what came of it."""
    spark = corpus.sparkSession
    progress.stage(f"survey of {config.corpus.name}")
    measurement = measure(corpus, config, config.corpus.id, config.corpus.duplicates)
    progress.stage(f"ranking {measurement.extent}")
    with ranked_once(measurement) as (tally, profiles):
        tables = measurement.tables(tally, config.rejects.max_rows)
        progress.stage(f"publishing {len(tables)} tables as {run.run_id}")
        warnings = find_warnings(measurement, profiles)
        published = publish(tables, run, store, describe_run(config, tally, warnings, spark.version))
    worst = ""
    try:
        warnings += refresh_views(spark, store)
        worst = format_table(worst_identities(store.read(spark, BIAS_METRICS, run)), WORST)
    except Exception as error:  # noqa: BLE001 - the night is published, whatever happens here
        warnings += (f"{run.run_id} is published, but what follows failed: {describe_unexpected(error)}",)
    progress.stage("done")
    summary = {"job": JOB, "status": "published", "run_id": run.run_id, "run_date": run.run_date}
    summary |= {"n_rows": tally.n_rows, "n_rejected": tally.n_rejected, "rejects": tally.rejects, "warnings": warnings}
    summary |= {"tables": published.n_rows, "output": store.root, "seconds": round(progress.seconds, 1)}
    return Outcome(summary=summary, table=worst + "".join(f"\nwarning: {text}" for text in warnings))


if __name__ == "__main__":
    sys.exit(run_job(main, job_parser(__doc__ or "")))
