"""Accept a published run despite its gate, so that later runs are compared with it. Adds one row to the ledger.

A run that is already accepted stays as it is: nothing is written.
"""

from __future__ import annotations

import argparse
import getpass
from contextlib import suppress

from biasspark.cli import Command, Outcome, Progress, flag, on_date
from biasspark.config import load_config
from biasspark.config.declaration import broken_text_rule
from biasspark.errors import InputError
from biasspark.tables.ledger import accept, find_acceptance, find_published
from biasspark.tables.publish import check_tables
from biasspark.tables.runs import ACCEPT_RUN
from biasspark.tables.schemas import BIAS_ALERTS, BIAS_METRICS, BIAS_RUNS
from biasspark.tables.store import open_tables
from biasspark.text import show_time, show_value, show_visibly

EXAMPLES = """\
examples:
  %(prog)s --config conf/gate.toml --run-date 2026-03-31 --reason "the new annotators, see 4711"
  %(prog)s --config conf/gate.toml --run-date 2026-03-31 --reason "checked by hand" --by "A. Turing"
"""


def parse_text(text: str) -> str:
    """Parse a nonempty text on one line; for argparse."""
    if broken_rule := broken_text_rule(text):
        raise argparse.ArgumentTypeError(f"{show_value(text)}. {broken_rule} Write one sentence.")
    return text


def main(arguments: argparse.Namespace) -> Outcome:
    """Accept the latest run of a run date, unless it is not the one given, or rows of its tables are missing."""
    config, progress, reason = load_config(arguments.config, arguments.overrides), Progress(), arguments.reason
    person = arguments.by or "unknown"
    if not arguments.by:
        with suppress(KeyError, OSError):  # a container may not know the user
            person = getpass.getuser()
    with open_tables(ACCEPT_RUN, config, progress) as (spark, store):
        store.check(spark, (BIAS_RUNS,))
        latest = find_published(spark, store, BIAS_METRICS.job, arguments.run_date, config.corpus.name)
        if arguments.run_id not in (None, latest.run_id):
            shown = f"--run-id {show_value(arguments.run_id)}: readers of {latest.run_date} see {latest.run_id}"
            raise InputError(f"{shown}. Only that run can be accepted. Leave --run-id out to accept it.")
        check_tables(spark, store, latest)
        summary = {
            "job": ACCEPT_RUN,
            "run_date": latest.run_date,
            "accepted_run_id": latest.run_id,
            "output": store.root,
        }
        if row := find_acceptance(spark, store, latest):
            by = (row["accepted_by"] or "a person") if row["accepts_run_id"] else "the gate"
            text = f"{latest.run_id} was already accepted by {by} at {show_time(row['published_at'])}"
            text += f": {row['acceptance_note']}" if row["acceptance_note"] else "."
            summary |= {"status": "already_accepted", "by": by, "accepted_at": row["published_at"].isoformat()}
            return progress.end(Outcome(summary=summary, text=f"{show_visibly(text)}\nNothing was written."))
        run = accept(spark, store, latest, reason, person)
    summary |= {"status": "accepted", "run_id": run.run_id, "reason": reason, "by": person}
    text = f"{latest.run_id} is accepted by {person}: {reason}"
    if not latest.wrote(BIAS_ALERTS):
        text += "\nNo rule of a gate was evaluated on it."
    return progress.end(Outcome(summary=summary, text=text))


FLAGS = (
    *on_date("the run date to accept"),
    flag("--reason", required=True, type=parse_text, metavar="TEXT", help="the reason, stored in the ledger"),
    flag("--by", type=parse_text, metavar="NAME", help="who accepts it (the current user)"),
    flag("--run-id", metavar="ID", help="accept only this run (the latest of the date)"),
)
COMMAND = Command(__doc__, EXAMPLES, FLAGS, main)
