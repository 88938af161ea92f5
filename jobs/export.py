"""Write any table of a published night as CSV that spreadsheets open safely; the corpus is not read."""

from __future__ import annotations

import argparse
import sys

from biasspark.cli import Outcome, job_parser, parse_out, run_job
from biasspark.config import load_config
from biasspark.tables.schemas import TABLES
from biasspark.workflows.export_table import EXPORTED, export_table

EXAMPLES = """\
examples:
  spark-submit jobs/%(prog)s --config conf/demo.toml --run-date 2026-03-31 --table bias_metrics --out metrics.csv
"""


def export_parser() -> argparse.ArgumentParser:
    parser = job_parser(__doc__ or "", EXAMPLES, can_plan=False, night="the published night to export")
    names = f"one of {', '.join(EXPORTED)}"
    parser.add_argument("--table", required=True, choices=EXPORTED, metavar="NAME", help=names)
    file = "the file to write, replaced if it exists"
    parser.add_argument("--out", required=True, type=parse_out, metavar="FILE", help=file)
    return parser


def main(arguments: argparse.Namespace) -> Outcome:
    """Write the table."""
    config = load_config(arguments.config, arguments.overrides)
    return export_table(config, TABLES[arguments.table], arguments.run_date, arguments.out)


if __name__ == "__main__":
    sys.exit(run_job(main, export_parser()))
