"""Write any table of a published night as CSV that spreadsheets open safely; the corpus is not read."""

from __future__ import annotations

import argparse
import sys

from biasspark.cli import Outcome, Progress, job_parser, parse_out, run_job
from biasspark.config import load_config
from biasspark.report.export import EXPORTED, export_csv, read_table
from biasspark.session import job_session
from biasspark.tables.store import open_store, session_settings

JOB = "export"
EXAMPLES = """\
examples:
  spark-submit jobs/%(prog)s --config conf/demo.toml --run-date 2026-03-31 --table bias_metrics --out metrics.csv
"""


def export_parser() -> argparse.ArgumentParser:
    parser = job_parser(__doc__ or "", EXAMPLES, can_plan=False, night="the published night to export")
    parser.add_argument(
        "--table", required=True, choices=EXPORTED, metavar="NAME", help=f"one of {', '.join(EXPORTED)}"
    )
    parser.add_argument(
        "--out", required=True, type=parse_out, metavar="FILE", help="the file to write, replaced if it exists"
    )
    return parser


def main(arguments: argparse.Namespace) -> Outcome:
    """Read the table and write it."""
    progress = Progress()
    config = load_config(arguments.config, arguments.overrides)
    progress.stage("starting Spark")
    with job_session(f"biasspark {JOB}: {config.corpus.name}", session_settings(config.output)) as spark:
        progress.stage(f"reading {arguments.table} of {arguments.run_date}")
        store = open_store(config.output)
        rows = read_table(spark, store, arguments.table, arguments.run_date, config.corpus.name)
        n_rows = export_csv(rows, arguments.out)
    summary = {"job": JOB, "table": arguments.table, "run_date": arguments.run_date, "rows": n_rows}
    return progress.end(Outcome(summary=summary | {"out": arguments.out}))


if __name__ == "__main__":
    sys.exit(run_job(main, export_parser()))
