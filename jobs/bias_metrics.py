"""Measure a corpus: rank every score once, and publish the bias metrics of every model, slice and identity."""

from __future__ import annotations

import argparse
import sys

from biasspark.cli import Outcome, run_job
from biasspark.config import load_config
from biasspark.workflows.measure import MEASURE
from biasspark.workflows.nightly import backfill_parser, plan_or_run


def main(arguments: argparse.Namespace) -> Outcome:
    """Plan or run the night, or each of many."""
    return plan_or_run(MEASURE, load_config(arguments.config, arguments.overrides), arguments)


if __name__ == "__main__":
    sys.exit(run_job(main, backfill_parser(__doc__ or "")))
