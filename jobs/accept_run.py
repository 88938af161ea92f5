"""Accept a published night despite its gate, so that later nights are compared with it. Only the ledger grows."""

from __future__ import annotations

import argparse
import sys

from biasspark.cli import Outcome, job_parser, run_job
from biasspark.config import load_config
from biasspark.config.declaration import broken_text_rule
from biasspark.text import show_value
from biasspark.workflows.accept_run import accept_run

EXAMPLES = """\
examples:
  spark-submit jobs/%(prog)s --config conf/gate.toml --run-date 2026-03-31 --reason "the new annotators, see 4711"
  spark-submit jobs/%(prog)s --config conf/gate.toml --run-date 2026-03-31 --reason "checked by hand" --by "A. Turing"
"""


def parse_text(text: str) -> str:
    """Read text that is not empty and on one line; for argparse."""
    if broken_rule := broken_text_rule(text):
        raise argparse.ArgumentTypeError(f"{show_value(text)}. {broken_rule} Write one sentence.")
    return text


def accept_parser() -> argparse.ArgumentParser:
    parser = job_parser(__doc__ or "", EXAMPLES, can_plan=False, night="the published night to accept")
    add = parser.add_argument
    add("--reason", required=True, type=parse_text, metavar="TEXT", help="why; it is kept in the ledger")
    add("--by", type=parse_text, metavar="NAME", help="who accepts it (the user who runs this)")
    add("--run-id", metavar="ID", help="refuse to accept any other run than this one (the latest of the night)")
    return parser


def main(arguments: argparse.Namespace) -> Outcome:
    """Accept the run that readers see."""
    config = load_config(arguments.config, arguments.overrides)
    return accept_run(config, arguments.run_date, arguments.reason, arguments.by, arguments.run_id)


if __name__ == "__main__":
    sys.exit(run_job(main, accept_parser()))
