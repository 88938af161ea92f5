"""Train classifiers on an imbalanced corpus, mitigate the bias of one by a plan, and measure what that changes."""

from __future__ import annotations

import argparse
import sys

from biasspark.cli import Outcome, job_parser, run_job
from biasspark.mitigation.settings import load_experiment
from biasspark.workflows.mitigation_experiment import run_experiment

EXAMPLES = """\
examples:
  spark-submit jobs/%(prog)s --config conf/mitigation.toml --run-date 2026-03-31
  spark-submit jobs/%(prog)s --config conf/mitigation.toml --run-date 2026-03-31 --set mitigation.rows=20000

Comments of your own take the place of generated ones where [mitigation] debiasing and random name their files:
conf/mitigation.toml has an example.

The scored test set is measured as any corpus, into the tables of the job bias_metrics. The exit code is 5 unless the
mitigated model has the lowest pinned AUC equality difference of the three and the highest lowest BPSN AUC, and if a
rule of [gate] fails.
"""


def main(arguments: argparse.Namespace) -> Outcome:
    """Plan or run the experiment."""
    experiment = load_experiment(arguments.config, arguments.overrides)
    return run_experiment(experiment, arguments.run_date, arguments.dry_run)


if __name__ == "__main__":
    sys.exit(run_job(main, job_parser(__doc__ or "", EXAMPLES, night="the night to publish the scored test set as")))
