"""Show that pinned AUC moves with the class balance: drop part of one cell of one identity, many times over."""

from __future__ import annotations

import argparse
import sys
from functools import partial

from pyspark.sql import DataFrame

from biasspark.cli import NIGHTLY_EXAMPLES, Outcome, Progress, format_table, job_parser, run_job
from biasspark.config import Config, PinnedSkew, load_config
from biasspark.corpus.one_identity import keep_identity
from biasspark.corpus.source import read_corpus
from biasspark.errors import ConfigError
from biasspark.highlights import CHANGED_BY_SKEW, changed_by_skew
from biasspark.night import NightlyJob, conclude, plan_or_run
from biasspark.pipeline import describe_run, find_warnings, measure, ranked_once, skew_classes
from biasspark.plan import describe_plan, lay_out
from biasspark.tables.publish import publish
from biasspark.tables.runs import Run
from biasspark.tables.schemas import PINNED_SKEW, Table
from biasspark.tables.store import Store

JOB = "pinned_skew"
EXAMPLES = NIGHTLY_EXAMPLES.replace("demo.toml", "pinned_skew.toml")


def main(arguments: argparse.Namespace) -> Outcome:
    """Read the configuration, start Spark, and plan or run the experiment."""
    config = load_config(arguments.config, arguments.overrides)
    asked = keep_identity(config, find_experiment(config).identity)
    read = partial(read_corpus, corpus=config.corpus, measures=asked)
    return plan_or_run(NightlyJob(JOB, read, describe_experiment, run_night), config, arguments)


def describe_experiment(config: Config, n_columns: int, tables: tuple[Table, ...]) -> str:
    """Return the plan of a night of one identity, and what is dropped."""
    skew = find_experiment(config)
    plan = describe_plan(keep_identity(config, skew.identity), n_columns, tables)
    return f"{plan}\n{lay_out({'drops': describe_drops(skew)})}"


def run_night(corpus: DataFrame, config: Config, store: Store, run: Run, progress: Progress) -> Outcome:
    """Survey, rank, drop rows, publish, and say what changed."""
    spark, skew = corpus.sparkSession, find_experiment(config)
    progress.stage(f"surveying {config.corpus.name}")
    measurement = measure(corpus, config, config.corpus.id, config.corpus.duplicates, only=skew.identity)
    progress.stage(f"ranking {measurement.extent}")
    with ranked_once(measurement, config.rejects) as (tally, profiles):
        progress.stage(f"dropping {describe_drops(skew)}")
        record = describe_run(config, tally, find_warnings(measurement, profiles), spark.version)
        published = publish({PINNED_SKEW: skew_classes(measurement)}, run, store, record)

    def show_changes() -> str:
        return format_table(changed_by_skew(store.read(spark, PINNED_SKEW, run)), CHANGED_BY_SKEW)

    return progress.end(conclude(spark, store, published, record, show_changes))


def find_experiment(config: Config) -> PinnedSkew:
    """Return what the configuration says about the experiment, which other jobs do not need."""
    if config.pinned_skew is None:
        example = '[pinned_skew] identity = "gay"'
        raise ConfigError(f"[pinned_skew]: missing. This job requires the table. Write, for example, {example}.")
    return config.pinned_skew


def describe_drops(skew: PinnedSkew) -> str:
    return f"{skew.fraction:g} of {skew.cell} of {skew.identity}, {skew.trials:,} times"


if __name__ == "__main__":
    sys.exit(run_job(main, job_parser(__doc__ or "", EXAMPLES, night="the night whose rows the experiment takes")))
