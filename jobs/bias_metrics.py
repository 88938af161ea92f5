"""Measure a corpus: rank every score once, and publish the bias metrics of every model, slice and identity."""

from __future__ import annotations

import argparse
import sys
from functools import partial

from biasspark.backfill import backfill_parser
from biasspark.cli import Outcome, run_job
from biasspark.config import load_config
from biasspark.corpus.source import read_corpus
from biasspark.night import NightlyJob, plan_or_run, run_night
from biasspark.pipeline import JOB
from biasspark.plan import describe_plan


def main(arguments: argparse.Namespace) -> Outcome:
    """Read the configuration, start Spark, and plan or run the night, or each of many."""
    config = load_config(arguments.config, arguments.overrides)
    read = partial(read_corpus, corpus=config.corpus, measures=config)
    return plan_or_run(NightlyJob(JOB, read, describe_plan, run_night), config, arguments)


if __name__ == "__main__":
    sys.exit(run_job(main, backfill_parser(__doc__ or "")))
