"""Keep the tables in order: remove superseded and failed runs, and compact files; readers see no difference."""

from __future__ import annotations

import argparse
import sys
from functools import partial

from biasspark.cli import Outcome, job_parser, parse_count, run_job
from biasspark.config import load_config
from biasspark.workflows.maintain import maintain

EXAMPLES = """\
examples:
  spark-submit jobs/%(prog)s --config conf/demo.toml --run-date 2026-03-31 --dry-run
  spark-submit jobs/%(prog)s --config conf/demo.toml --run-date 2026-03-31 --keep-days 7 --grace-hours 48
"""
NIGHT = "the night from whose end keep_days and grace_hours count back; runs of every night may be removed"


def maintenance_parser() -> argparse.ArgumentParser:
    parser = job_parser(__doc__ or "", EXAMPLES, night=NIGHT)
    days, hours = "[maintenance] keep_days, how long a superseded run stays", "[maintenance] grace_hours"
    parser.add_argument("--keep-days", type=partial(parse_count, least=0), metavar="N", help=days)
    parser.add_argument("--grace-hours", type=parse_count, metavar="H", help=f"{hours}, how long a run may take")
    return parser


def main(arguments: argparse.Namespace) -> Outcome:
    """Plan or do the maintenance."""
    config = load_config(arguments.config, arguments.overrides)
    keep_days, grace_hours = arguments.keep_days, arguments.grace_hours
    return maintain(config, arguments.run_date, keep_days, grace_hours, dry_run=arguments.dry_run)


if __name__ == "__main__":
    sys.exit(run_job(main, maintenance_parser()))
