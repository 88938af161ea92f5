"""Measure a window of published nights by merging the rankings that they kept; the corpus is not read."""

from __future__ import annotations

import argparse
import sys

from biasspark.cli import Outcome, Progress, configured_parser, parse_date, run_job
from biasspark.config import load_config
from biasspark.errors import ConfigError
from biasspark.session import follow_tasks, job_session
from biasspark.tables.runs import new_run
from biasspark.tables.schemas import BIAS_RUNS, SCORE_BLOCKS, tables_of
from biasspark.tables.store import open_store, session_settings
from biasspark.workflows.publish_run import RunContext
from biasspark.workflows.window import find_window, run_window

JOB = "window_metrics"
EXAMPLES = """\
examples:
  # The nights first: conf/demo.toml keeps no state by itself.
  spark-submit jobs/bias_metrics.py --config conf/demo.toml --set state.keep=true --run-date 2026-01-15
  spark-submit jobs/bias_metrics.py --config conf/demo.toml --set state.keep=true --run-date 2026-01-16
  spark-submit jobs/%(prog)s --config conf/demo.toml --from 2026-01-15 --to 2026-01-16
  spark-submit jobs/%(prog)s --config conf/demo.toml --from 2026-01-10 --to 2026-01-16 --allow-missing
"""
# Blocks are large: a batch of so many is 256 MiB at most.
SETTINGS = {"spark.sql.execution.arrow.maxRecordsPerBatch": "64"}


def window_parser() -> argparse.ArgumentParser:
    parser = configured_parser(__doc__ or "", EXAMPLES)
    add = parser.add_argument
    add(
        "--from",
        dest="first",
        required=True,
        type=parse_date,
        metavar="YYYY-MM-DD",
        help="the first night of the window",
    )
    add(
        "--to",
        dest="last",
        required=True,
        type=parse_date,
        metavar="YYYY-MM-DD",
        help="its last night, under which its tables are published",
    )
    add("--allow-missing", action="store_true", help="skip missing nights, and list them")
    return parser


def main(arguments: argparse.Namespace) -> Outcome:
    """Read the configuration, start Spark, find the nights, merge them and publish."""
    first, last = arguments.first, arguments.last
    if first > last:
        raise ConfigError(f"--from {first} --to {last}: the first night comes after the last. Swap them.")
    progress = Progress()
    config = load_config(arguments.config, arguments.overrides)
    store = open_store(config.output)
    progress.stage("starting Spark")
    with job_session(f"biasspark {JOB}: {config.corpus.name}", session_settings(config.output) | SETTINGS) as spark:
        store.check(spark, (*tables_of(JOB), SCORE_BLOCKS, BIAS_RUNS))
        progress.stage(f"nights of {config.corpus.name} from {first} to {last}")
        window = find_window(spark, store, config, (first, last), arguments.allow_missing)
        with follow_tasks(spark, progress.advance):
            run = new_run(last, config.corpus.name, JOB, first)
            return run_window(window, RunContext(spark, config, store, run, progress))


if __name__ == "__main__":
    sys.exit(run_job(main, window_parser()))
