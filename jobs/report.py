"""Write the report of a published night: one HTML file that needs nothing else; the corpus is not read."""

from __future__ import annotations

import argparse
import sys

from biasspark.cli import Outcome, Progress, job_parser, parse_count, parse_out, run_job
from biasspark.config import load_config
from biasspark.report.facts import worst_outcome
from biasspark.report.publishing import Places, locate_reports, write_documents
from biasspark.report.reading import MOST_NIGHTS, read_night
from biasspark.session import job_session
from biasspark.tables.store import open_store, session_settings

JOB = "report"
EXAMPLES = """\
examples:
  spark-submit jobs/%(prog)s --config conf/demo.toml --run-date 2026-03-31 --out report.html
  spark-submit jobs/%(prog)s --config conf/demo.toml --run-date 2026-03-31 --publish --model-card card.md
"""


def report_parser() -> argparse.ArgumentParser:
    parser = job_parser(__doc__ or "", EXAMPLES, can_plan=False, night="the published night to show")
    add = parser.add_argument
    add("--out", type=parse_out, metavar="FILE", help="the page to write, replaced if it exists")
    add("--publish", action="store_true", help="write the page to the folder of [report] path (reports/ beside tables)")
    add("--model-card", type=parse_out, metavar="FILE", help="the Markdown fragment for a model card to write")
    add("--nights", type=parse_count, default=MOST_NIGHTS, metavar="N", help=f"earlier nights to read ({MOST_NIGHTS})")
    return parser


def main(arguments: argparse.Namespace) -> Outcome:
    """Read the night, and write what is asked for."""
    config = load_config(arguments.config, arguments.overrides)
    store = open_store(config.output)
    places = Places(
        page=arguments.out,
        model_card=arguments.model_card,
        folder=locate_reports(config) if arguments.publish else None,
    )
    progress = Progress()
    progress.stage("starting Spark")
    with job_session(f"biasspark {JOB}: {config.corpus.name}", session_settings(config.output)) as spark:
        progress.stage(f"reading {config.corpus.name} of {arguments.run_date}")
        facts = read_night(spark, store, arguments.run_date, config.corpus.name, arguments.nights)
        progress.stage("drawing")
        written = write_documents(spark, facts, places)  # imports from zips that Spark removes when it stops
    summary = {"job": JOB, "run_id": facts.run["run_id"], "run_date": arguments.run_date}
    summary |= {"outcome": worst_outcome(facts.alerts()), "written": written}
    return progress.end(Outcome(summary=summary))


if __name__ == "__main__":
    sys.exit(run_job(main, report_parser()))
