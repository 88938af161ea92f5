"""Put two models side by side, identity by identity, from the tables of a published night; the corpus is not read."""

from __future__ import annotations

import argparse
import sys

from biasspark.cli import Outcome, job_parser, parse_count, parse_out, run_job
from biasspark.config import load_config
from biasspark.report.side_by_side import SORT_KEYS, Request
from biasspark.report.side_by_side_text import FORMATS
from biasspark.workflows.print_side_by_side import Rendering, print_side_by_side

EXAMPLES = """\
examples:
  spark-submit jobs/%(prog)s --config conf/demo.toml --run-date 2026-03-31 --models toxicity_1 toxicity_6
  spark-submit jobs/%(prog)s --config conf/demo.toml --run-date 2026-03-31 --models toxicity_1 toxicity_6 \\
      --slice all --slice short --sort bpsn_auc --limit 20 --format markdown --out side_by_side.md
"""
MAX_ROWS = 1000


def comparison_parser() -> argparse.ArgumentParser:
    parser = job_parser(__doc__ or "", EXAMPLES, can_plan=False, night="the published night to show")
    add = parser.add_argument
    add("--models", required=True, nargs=2, metavar=("A", "B"), help="two models; differences are B relative to A")
    add("--slice", dest="slices", action="append", default=[], metavar="NAME", help="can be repeated (all slices)")
    add("--sort", default=SORT_KEYS[0], choices=SORT_KEYS, help="metric of A to sort by, worst first (its lowest AUC)")
    add("--crossed", action="store_true", help="show crossed pairs of identities, too")
    add("--limit", type=parse_count, metavar="N", help=f"rows per slice at most ({MAX_ROWS}; in csv all)")
    add("--digits", type=int, default=3, choices=(2, 3), help="decimals in text and markdown (3); csv has all")
    add("--format", default="text", choices=FORMATS, help="text (the default) is followed by a line of JSON")
    add("--out", type=parse_out, metavar="FILE", help="write to this file, in UTF-8, instead of stdout, replacing it")
    return parser


def main(arguments: argparse.Namespace) -> Outcome | int:
    """Print or write the two models."""
    request = Request(
        models=tuple(arguments.models),
        slices=tuple(arguments.slices),
        sort=arguments.sort,
        crossed=arguments.crossed,
        limit=arguments.limit or (None if arguments.format == "csv" else MAX_ROWS),
    )
    config = load_config(arguments.config, arguments.overrides)
    rendering = Rendering(arguments.format, arguments.digits, arguments.out)
    printed = print_side_by_side(config, arguments.run_date, request, rendering)
    if isinstance(printed, Outcome):
        return printed
    sys.stdout.write(printed)
    return 0


if __name__ == "__main__":
    sys.exit(run_job(main, comparison_parser()))
