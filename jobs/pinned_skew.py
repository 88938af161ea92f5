"""Show that pinned AUC moves with the class balance: drop part of one cell of one identity, many times over."""

from __future__ import annotations

import argparse
import sys

from biasspark.cli import NIGHTLY_EXAMPLES, Outcome, job_parser, run_job
from biasspark.config import load_config
from biasspark.workflows.nightly import plan_or_run
from biasspark.workflows.pinned_skew import EXPERIMENT

EXAMPLES = NIGHTLY_EXAMPLES.replace("demo.toml", "pinned_skew.toml")


def main(arguments: argparse.Namespace) -> Outcome:
    """Plan or run the experiment."""
    return plan_or_run(EXPERIMENT, load_config(arguments.config, arguments.overrides), arguments)


if __name__ == "__main__":
    sys.exit(run_job(main, job_parser(__doc__ or "", EXAMPLES, night="the night whose rows the experiment takes")))
