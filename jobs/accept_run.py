"""Accept a published night despite its gate, so that later nights are compared with it. Only the ledger grows."""

from __future__ import annotations

import argparse
import getpass
import sys

from biasspark.cli import Outcome, Progress, job_parser, run_job
from biasspark.config import load_config
from biasspark.config.section import find_broken_text_rule
from biasspark.config.wording import show_value
from biasspark.pipeline import JOB as NIGHT
from biasspark.session import job_session
from biasspark.tables.acceptance import Approval, accept, check_latest
from biasspark.tables.published import find_published
from biasspark.tables.runs import ACCEPT_RUN
from biasspark.tables.schemas import BIAS_RUNS
from biasspark.tables.store import open_store, session_settings

EXAMPLES = """\
examples:
  spark-submit jobs/%(prog)s --config conf/gate.toml --run-date 2026-03-31 --reason "the new annotators, see 4711"
  spark-submit jobs/%(prog)s --config conf/gate.toml --run-date 2026-03-31 --reason "checked by hand" --by "A. Turing"
"""


def parse_text(text: str) -> str:
    """Read what a person says: not empty, on one line; for argparse."""
    if broken_rule := find_broken_text_rule(text):
        raise argparse.ArgumentTypeError(f"{show_value(text)}. {broken_rule} Say it in a sentence.")
    return text


def accept_parser() -> argparse.ArgumentParser:
    parser = job_parser(__doc__ or "", EXAMPLES, can_plan=False, night="the published night to accept")
    add = parser.add_argument
    add("--reason", required=True, type=parse_text, metavar="TEXT", help="why; it is kept in the ledger")
    add("--by", type=parse_text, metavar="NAME", help="who accepts it (the user who runs this)")
    add("--run-id", metavar="ID", help="refuse to accept any other run than this one (the latest of the night)")
    return parser


def main(arguments: argparse.Namespace) -> Outcome:
    """Find the run that readers see, and add to the ledger that it is accepted."""
    progress = Progress()
    config = load_config(arguments.config, arguments.overrides)
    store, by = open_store(config.output), arguments.by or find_user()
    progress.stage("starting Spark")
    with job_session(f"biasspark {ACCEPT_RUN}: {config.corpus.name}", session_settings(config.output)) as spark:
        store.check(spark, (BIAS_RUNS,))
        found = find_published(spark, store, NIGHT, arguments.run_date, config.corpus.name)
        check_latest(spark, store, found, arguments.run_id or found.run_id)
        run = accept(spark, store, found, Approval(arguments.reason, by))
    summary = {"job": ACCEPT_RUN, "status": "accepted", "run_id": run.run_id, "run_date": run.run_date}
    summary |= {"accepted_run_id": found.run_id, "reason": arguments.reason, "by": by, "output": store.root}
    return progress.end(Outcome(summary=summary, table=f"{found.run_id} is accepted by {by}: {arguments.reason}"))


def find_user() -> str:
    """Return the name of the user who runs this, which a container may lack."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


if __name__ == "__main__":
    sys.exit(run_job(main, accept_parser()))
