"""Put two models side by side, identity by identity, from the tables of a published night; the corpus is not read."""

from __future__ import annotations

import argparse
import io
import sys

from biasspark.cli import Outcome, Progress, job_parser, parse_count, parse_out, run_job
from biasspark.config import load_config
from biasspark.report.publishing import write_out
from biasspark.report.side_by_side import read_side_by_side
from biasspark.report.side_by_side_files import write_csv, write_markdown
from biasspark.report.side_by_side_question import SORTS, Question
from biasspark.report.side_by_side_text import write_text
from biasspark.session import job_session
from biasspark.tables.store import open_store, session_settings

JOB = "side_by_side"
EXAMPLES = """\
examples:
  spark-submit jobs/%(prog)s --config conf/demo.toml --run-date 2026-03-31 --models toxicity_1 toxicity_6
  spark-submit jobs/%(prog)s --config conf/demo.toml --run-date 2026-03-31 --models toxicity_1 toxicity_6 \\
      --slice all --slice short --sort bpsn_auc --limit 20 --format markdown --out side_by_side.md
"""
WRITERS = {"text": write_text, "markdown": write_markdown, "csv": write_csv}
MOST_ROWS = 1000


def comparison_parser() -> argparse.ArgumentParser:
    parser = job_parser(__doc__ or "", EXAMPLES, can_plan=False, night="the published night to show")
    add = parser.add_argument
    add("--models", required=True, nargs=2, metavar=("A", "B"), help="two models; differences are B relative to A")
    add("--slice", dest="slices", action="append", default=[], metavar="NAME", help="can be repeated (all slices)")
    add("--sort", default=SORTS[0], choices=SORTS, help="metric of A to sort by, the worst first (its lowest AUC)")
    add("--crossed", action="store_true", help="show crossed pairs of identities, too")
    add("--limit", type=parse_count, metavar="N", help=f"rows per slice at most ({MOST_ROWS}; in csv all)")
    add("--digits", type=int, default=3, choices=(2, 3), help="decimals in text and markdown (3); csv has all")
    add("--format", default="text", choices=WRITERS, help="text (the default) is followed by a line of JSON")
    add("--out", type=parse_out, metavar="FILE", help="write to this file, in UTF-8, instead of stdout, replacing it")
    return parser


def main(arguments: argparse.Namespace) -> Outcome | int:
    """Read the night, lay it out, and print or write it."""
    question = Question(
        models=tuple(arguments.models),
        slices=tuple(arguments.slices),
        sort=arguments.sort,
        crossed=arguments.crossed,
        limit=arguments.limit or (None if arguments.format == "csv" else MOST_ROWS),
    )
    config = load_config(arguments.config, arguments.overrides)
    # A document on stdout is there to be redirected, and spark-submit joins stderr to it: nothing else is said.
    stands_alone = arguments.format != "text" and arguments.out is None
    progress = Progress(io.StringIO() if stands_alone else None)
    progress.stage("starting Spark")
    with job_session(f"biasspark {JOB}: {config.corpus.name}", session_settings(config.output)) as spark:
        progress.stage(f"reading {config.corpus.name} of {arguments.run_date}")
        found = read_side_by_side(spark, open_store(config.output), arguments.run_date, config.corpus.name, question)
    document = WRITERS[arguments.format](found, arguments.digits)
    if stands_alone:
        sys.stdout.write(document)
        return 0
    if arguments.out:
        write_out(arguments.out, document)
    summary = {"job": JOB, "run_id": found.run.run_id, "run_date": arguments.run_date, "models": arguments.models}
    summary |= {"rows": found.n_rows, "slices": {part.name: len(part.rows) for part in found.slices}}
    summary |= {"out": arguments.out}
    return progress.end(Outcome(summary=summary, table="" if arguments.out else document.rstrip("\n")))


if __name__ == "__main__":
    sys.exit(run_job(main, comparison_parser()))
