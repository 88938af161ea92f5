"""Compare models with a baseline by every metric of the suite, and publish what got significantly better or worse.

Rules of the gate that name the baseline are judged here; if one fails, the comparison is published and the exit code
is 5.
"""

from __future__ import annotations

import argparse
import sys

from biasspark.cli import NIGHTLY_EXAMPLES, Outcome, job_parser, run_job
from biasspark.config import load_config
from biasspark.workflows.compare import COMPARE
from biasspark.workflows.nightly import plan_or_run

EXAMPLES = NIGHTLY_EXAMPLES.replace("demo.toml", "compare.toml")


def main(arguments: argparse.Namespace) -> Outcome:
    """Plan or run the comparison."""
    return plan_or_run(COMPARE, load_config(arguments.config, arguments.overrides), arguments)


if __name__ == "__main__":
    sys.exit(
        run_job(main, job_parser(__doc__ or "", EXAMPLES, night="the night on whose rows the models are compared"))
    )
