"""Write the report of a published night: one HTML file that needs nothing else; the corpus is not read."""

from __future__ import annotations

import argparse
import sys

from biasspark.cli import Outcome, job_parser, parse_count, parse_out, run_job
from biasspark.config import load_config
from biasspark.workflows.write_report import MAX_NIGHTS, ReportPaths, report_folder, write_report

EXAMPLES = """\
examples:
  spark-submit jobs/%(prog)s --config conf/demo.toml --run-date 2026-03-31 --out report.html
  spark-submit jobs/%(prog)s --config conf/demo.toml --run-date 2026-03-31 --publish --model-card card.md
"""


def report_parser() -> argparse.ArgumentParser:
    parser = job_parser(__doc__ or "", EXAMPLES, can_plan=False, night="the published night to show")
    add = parser.add_argument
    add("--out", type=parse_out, metavar="FILE", help="the page to write, replaced if it exists")
    add(
        "--publish", action="store_true", help="write the page to the folder of [report] path (reports/ next to tables)"
    )
    add("--model-card", type=parse_out, metavar="FILE", help="the Markdown fragment for a model card to write")
    add("--nights", type=parse_count, default=MAX_NIGHTS, metavar="N", help=f"earlier nights to read ({MAX_NIGHTS})")
    return parser


def main(arguments: argparse.Namespace) -> Outcome:
    """Write the documents that the flags ask for."""
    config = load_config(arguments.config, arguments.overrides)
    folder = report_folder(config) if arguments.publish else None
    paths = ReportPaths(page=arguments.out, model_card=arguments.model_card, folder=folder)
    return write_report(config, arguments.run_date, paths, arguments.nights)


if __name__ == "__main__":
    sys.exit(run_job(main, report_parser()))
