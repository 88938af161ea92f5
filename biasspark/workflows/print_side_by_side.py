"""Put two models of a published run side by side, identity by identity. The corpus is not read."""

from __future__ import annotations

import argparse
import io
from datetime import date
from functools import partial

from pyspark.sql import SparkSession

from biasspark.cli import Command, Outcome, Progress, flag, on_date, parse_count, parse_out
from biasspark.config import load_config
from biasspark.report.side_by_side import FORMATS, SORT_KEYS, WORST_AUC, Request, SideBySide, compare_side_by_side
from biasspark.report.text_formats import write_out
from biasspark.session import describe
from biasspark.tables.ledger import find_published
from biasspark.tables.publish import read_run
from biasspark.tables.schemas import BIAS_METRICS
from biasspark.tables.store import Store, open_tables

JOB = "side_by_side"


def read_side_by_side(spark: SparkSession, store: Store, run_date: date, corpus: str, request: Request) -> SideBySide:
    """Read two models side by side from the latest published run of a run date."""
    run = find_published(spark, store, BIAS_METRICS.job, run_date, corpus)
    with describe(spark, "two models side by side"):
        return compare_side_by_side(read_run(spark, store, BIAS_METRICS, run), run, request)


# ---- the command line

EXAMPLES = """\
examples:
  %(prog)s --config conf/demo.toml --run-date 2026-03-31 --models toxicity_1 toxicity_6
  %(prog)s --config conf/demo.toml --run-date 2026-03-31 --models toxicity_1 toxicity_6 \\
      --slice all --slice short --sort bpsn_auc --limit 20 --format markdown --out side_by_side.md
"""
MAX_ROWS = 1000


def main(arguments: argparse.Namespace) -> Outcome:
    """Print or write two models. A document on stdout has no progress, since spark-submit adds stderr to it."""
    request = Request(
        models=tuple(arguments.models),
        slices=tuple(arguments.slices),
        sort=arguments.sort,
        crossed=arguments.crossed,
        min_rows=arguments.min_rows,
        limit=arguments.limit or (None if arguments.format == "csv" else MAX_ROWS),
    )
    config, run_date, path = load_config(arguments.config, arguments.overrides), arguments.run_date, arguments.out
    is_document = arguments.format != "text" and path is None
    progress = Progress(io.StringIO() if is_document else None)
    with open_tables(JOB, config, progress) as (spark, store):
        progress.stage(f"reading {config.corpus.name} of {run_date}")
        compared = read_side_by_side(spark, store, run_date, config.corpus.name, request)
    document = FORMATS[arguments.format](compared, arguments.digits)
    if is_document:
        return Outcome(summary={}, text=document.removesuffix("\n"))
    if path:
        write_out(path, document)
    summary = {"job": JOB, "run_id": compared.run.run_id, "run_date": run_date, "models": request.models}
    n_rows = {part.name: len(part.rows) for part in compared.slices}
    summary |= {"rows": sum(n_rows.values()), "slices": n_rows, "out": path}
    return progress.end(Outcome(summary=summary, text="" if path else document.rstrip("\n")))


_MIN_ROWS = "leave out identities with fewer rows (0)"
_OUT = "write to this file, in UTF-8, instead of stdout, replacing it"
FLAGS = (
    *on_date("the run date to show"),
    flag("--models", required=True, nargs=2, metavar=("A", "B"), help="two models; differences are B relative to A"),
    flag("--slice", dest="slices", action="append", default=[], metavar="NAME", help="can be repeated (all slices)"),
    flag("--sort", default=WORST_AUC, choices=SORT_KEYS, help="metric of A to sort by, worst first (its lowest AUC)"),
    flag("--crossed", action="store_true", help="show crossed pairs of identities, too"),
    flag("--min-rows", type=partial(parse_count, least=0), default=0, metavar="N", help=_MIN_ROWS),
    flag("--limit", type=parse_count, metavar="N", help=f"rows per slice at most ({MAX_ROWS}; in csv all)"),
    flag("--digits", type=int, default=3, choices=(2, 3), help="decimals in text and markdown (3); csv has all"),
    flag("--format", default="text", choices=FORMATS, help="text (the default) is followed by a line of JSON"),
    flag("--out", type=parse_out, metavar="FILE", help=_OUT),
)
COMMAND = Command(__doc__, EXAMPLES, FLAGS, main)
