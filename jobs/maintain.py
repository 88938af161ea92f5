"""Tidy the tables: remove superseded and failed runs, and compact files; what readers can see is never touched."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from functools import partial

from biasspark.cli import Outcome, Progress, format_table, job_parser, parse_count, run_job
from biasspark.config import load_config, say_count
from biasspark.session import job_session
from biasspark.tables.maintenance import Plan, copy_run, plan_maintenance, remove_runs, tidy_tables
from biasspark.tables.retention import start_policy
from biasspark.tables.schemas import TABLES
from biasspark.tables.store import open_store, session_settings
from biasspark.tables.views import refresh_views

JOB = "maintain"
EXAMPLES = """\
examples:
  spark-submit jobs/%(prog)s --config conf/demo.toml --run-date 2026-03-31 --dry-run
  spark-submit jobs/%(prog)s --config conf/demo.toml --run-date 2026-03-31 --keep-days 7 --grace-hours 48
"""
NIGHT = "the night from whose end keep_days and grace_hours count back; runs of every night may be removed"
COLUMNS = ("run_date", "run_id", "table", "reason", "since")


def maintenance_parser() -> argparse.ArgumentParser:
    parser = job_parser(__doc__ or "", EXAMPLES, night=NIGHT)
    days, hours = "[maintenance] keep_days, how long a superseded run stays", "[maintenance] grace_hours"
    parser.add_argument("--keep-days", type=partial(parse_count, least=0), metavar="N", help=days)
    parser.add_argument("--grace-hours", type=parse_count, metavar="H", help=f"{hours}, how long a run may take")
    return parser


def main(arguments: argparse.Namespace) -> Outcome:
    """Look at what there is, say what may go, and unless it is a dry run let it go."""
    progress = Progress()
    config = load_config(arguments.config, arguments.overrides)
    rules, store = config.maintenance, open_store(config.output)
    keep_days = rules.keep_days if arguments.keep_days is None else arguments.keep_days
    grace_hours = arguments.grace_hours or rules.grace_hours
    policy = start_policy(arguments.run_date, keep_days, grace_hours, datetime.now(UTC))
    progress.stage("starting Spark")
    with job_session(f"biasspark {JOB}: {store.root}", session_settings(config.output)) as spark:
        store.check(spark, TABLES.values())
        progress.stage(f"looking at the tables in {store.root}")
        plan = plan_maintenance(spark, store, policy, compact=rules.compact)
        if arguments.dry_run:
            return progress.end(describe_outcome(plan, "planned"))
        progress.stage(f"removing {say_count(len({one.run_id for one in plan.removals}), 'run')}")
        remove_runs(spark, store, plan.removals)
        progress.stage(f"compacting {say_count(len(plan.scattered), 'run')}")
        copies = [copy_run(spark, store, run).run_id for run in plan.scattered]
        if rules.compact:
            tidy_tables(spark, store, policy)
        warnings = refresh_views(spark, store)
    done = describe_outcome(plan, "done")
    return progress.end(Outcome(summary={**done.summary, "copies": copies, "warnings": warnings}, table=done.table))


def describe_outcome(plan: Plan, status: str) -> Outcome:
    """Lay out what goes, or has gone, by table and run."""
    rows = [{name: getattr(removal, name) for name in COLUMNS} for removal in plan.removals]
    summary = {"job": JOB, "status": status, "removals": len(rows), "runs": sorted({row["run_id"] for row in rows})}
    summary |= {"scattered": [run.run_id for run in plan.scattered], "left_alone": plan.nameless}
    return Outcome(summary=summary, table=format_table(rows, COLUMNS) if rows else "nothing to remove")


if __name__ == "__main__":
    sys.exit(run_job(main, maintenance_parser()))
