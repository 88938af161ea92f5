"""Attribute the AUC of every model to rows, segments, groups and pairs, and publish which of them cost it most."""

from __future__ import annotations

import argparse
import sys

from biasspark.cli import NIGHTLY_EXAMPLES, Outcome, job_parser, run_job
from biasspark.config import load_config
from biasspark.text import show_visibly
from biasspark.workflows.attribute import ATTRIBUTE
from biasspark.workflows.attribution import warn_of_features
from biasspark.workflows.nightly import plan_or_run

EXAMPLES = NIGHTLY_EXAMPLES.replace("demo.toml", "attribution.toml")


def main(arguments: argparse.Namespace) -> Outcome:
    """Plan or run the attribution."""
    config = load_config(arguments.config, arguments.overrides)
    for warning in warn_of_features(config.attribution) if arguments.dry_run else ():  # a run gives it at its end
        print(f"warning: {show_visibly(warning)}", file=sys.stderr)
    return plan_or_run(ATTRIBUTE, config, arguments)


if __name__ == "__main__":
    sys.exit(run_job(main, job_parser(__doc__ or "", EXAMPLES, night="the night whose rows are attributed")))
