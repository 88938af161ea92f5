"""Attribute the AUC of every model to rows, segments, groups and pairs, and publish which of them cost it most."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

from pyspark.sql import DataFrame

from biasspark.attributing import attribute, count_all_rows, ranked_rows, rows_alone
from biasspark.attribution_tables import list_tables
from biasspark.cli import Outcome, Progress, job_parser, run_job
from biasspark.config import Config, load_config
from biasspark.corpus.source import read_corpus
from biasspark.errors import ConfigError
from biasspark.highlights import show_lost
from biasspark.night import conclude
from biasspark.pipeline import describe_run
from biasspark.plan import describe_attribution
from biasspark.session import follow_tasks, job_session
from biasspark.tables.publish import publish
from biasspark.tables.runs import Run, new_run
from biasspark.tables.schemas import BIAS_RUNS, tables_of
from biasspark.tables.store import Store, open_store, session_settings

JOB = "attribution"


def main(arguments: argparse.Namespace) -> Outcome:
    """Read the configuration, start Spark, and plan or run the attribution."""
    progress = Progress()
    config = load_config(arguments.config, arguments.overrides)
    if config.attribution is None:
        raise ConfigError(
            '[attribution]: missing. This job requires the table. Write, for example, numeric = ["comment_length"], '
            "tree = {}."
        )
    store = open_store(config.output)
    progress.stage("starting Spark")
    with job_session(f"biasspark {JOB}: {config.corpus.name}", session_settings(config.output)) as spark:
        asked = replace(rows_alone(config), attribution=config.attribution)
        corpus = read_corpus(spark, config.corpus, arguments.run_date, asked)
        tables = (*tables_of(JOB), BIAS_RUNS)
        store.check(spark, tables)
        if arguments.dry_run:
            plan = describe_attribution(config, len(corpus.columns), tables)
            return Outcome(summary={"job": JOB, "status": "planned", "config_hash": config.hash}, table=plan)
        with follow_tasks(spark, progress.advance):
            return run_night(corpus, config, store, new_run(arguments.run_date, config.corpus.name, JOB), progress)


def run_night(corpus: DataFrame, config: Config, store: Store, run: Run, progress: Progress) -> Outcome:
    """Survey, rank, search, publish, and say where most is lost."""
    spark = corpus.sparkSession
    progress.stage(f"survey of {config.corpus.name}")
    attributed = attribute(corpus, config, str(config.corpus.id), config.corpus.duplicates)
    progress.stage(f"ranking {attributed.extent}")
    with ranked_rows(attributed) as losses:
        progress.stage("searching segments, slices and pairs")
        tables, warnings = list_tables(attributed, losses)
        progress.stage(f"publishing {len(tables)} tables as {run.run_id}")
        record = describe_run(config, count_all_rows(attributed), warnings, spark.version)
        published = publish(tables, run, store, record)
    return progress.end(conclude(spark, store, published, record, lambda: show_lost(spark, store, run)))


if __name__ == "__main__":
    sys.exit(run_job(main, job_parser(__doc__ or "")))
