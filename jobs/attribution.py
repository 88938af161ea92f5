"""Attribute the AUC of every model to rows, segments, groups and pairs, and publish which of them cost it most."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame

from biasspark.cli import NIGHTLY_EXAMPLES, Outcome, Progress, job_parser, run_job
from biasspark.config import Config, load_config, show_visibly
from biasspark.corpus.source import read_corpus
from biasspark.errors import ConfigError
from biasspark.highlights import show_lost
from biasspark.maps.attribution import attribute, check_rows, ranked_rows, rows_alone, warn_of_features
from biasspark.maps.attribution_tables import list_tables
from biasspark.night import NightlyJob, conclude, plan_or_run
from biasspark.pipeline import describe_run
from biasspark.plan import describe_attribution
from biasspark.tables.publish import publish
from biasspark.tables.runs import Run
from biasspark.tables.store import Store

JOB = "attribution"
EXAMPLES = NIGHTLY_EXAMPLES.replace("demo.toml", "attribution.toml")


def main(arguments: argparse.Namespace) -> Outcome:
    """Read the configuration, start Spark, and plan or run the attribution."""
    config = load_config(arguments.config, arguments.overrides)
    if config.attribution is None:
        raise ConfigError(
            '[attribution]: missing. This job requires the table. Write, for example, numeric = ["comment_length"], '
            "tree = {}."
        )
    for warning in warn_of_features(config.attribution):
        print(f"warning: {show_visibly(warning)}", file=sys.stderr)
    asked = replace(rows_alone(config), attribution=config.attribution)
    read = partial(read_corpus, corpus=config.corpus, measures=asked)
    return plan_or_run(NightlyJob(JOB, read, describe_attribution, run_night), config, arguments)


def run_night(corpus: DataFrame, config: Config, store: Store, run: Run, progress: Progress) -> Outcome:
    """Survey, rank, search, publish, and say where most is lost."""
    spark = corpus.sparkSession
    progress.stage(f"surveying {config.corpus.name}")
    attributed = attribute(corpus, config, str(config.corpus.id), config.corpus.duplicates)
    progress.stage(f"ranking {attributed.extent}")
    with ranked_rows(attributed, config.rejects) as losses:
        tally, of_rows = check_rows(attributed, config.rejects)
        progress.stage(attributed.search)
        tables, warnings = list_tables(attributed, losses)
        progress.stage(f"publishing {len(tables)} tables as {run.run_id}")
        record = describe_run(config, tally, (*warnings, *of_rows), spark.version)
        published = publish(tables, run, store, record)
    return progress.end(conclude(spark, store, published, record, lambda: show_lost(spark, store, run)))


if __name__ == "__main__":
    sys.exit(run_job(main, job_parser(__doc__ or "", EXAMPLES, night="the night whose rows are attributed")))
