"""Keep the tables in order: remove superseded and failed runs, and compact files; readers see no difference."""

from __future__ import annotations

import argparse
from datetime import UTC, date, datetime
from functools import partial

from biasspark.cli import DRY_RUN, Command, Outcome, Progress, flag, format_table, make_parser, on_night, parse_count
from biasspark.config import Config, load_config
from biasspark.session import job_session
from biasspark.tables.maintenance import Plan, copy_run, optimize_tables, plan_maintenance, remove_runs, start_policy
from biasspark.tables.schemas import TABLES
from biasspark.tables.store import open_store, session_settings
from biasspark.tables.views import refresh_views
from biasspark.text import format_count

JOB = "maintain"
COLUMNS = ("run_date", "run_id", "table", "reason", "since")


def maintain(
    config: Config, run_date: date, keep_days: int | None, grace_hours: int | None, *, dry_run: bool = False
) -> Outcome:
    """Plan the maintenance, do it unless it is a dry run, and return what the job prints.

    Days and hours count back from the end of the night; None is what ``[maintenance]`` says.
    """
    progress, rules, store = Progress(), config.maintenance, open_store(config.output)
    kept_days = rules.keep_days if keep_days is None else keep_days
    policy = start_policy(run_date, kept_days, grace_hours or rules.grace_hours, datetime.now(UTC))
    progress.stage("starting the engine")
    with progress.reminding(), job_session(f"biasspark {JOB}: {store.root}", session_settings(config.output)) as spark:
        store.check(spark, TABLES.values())
        progress.stage(f"looking at the tables in {store.root}")
        plan = plan_maintenance(spark, store, policy, compact=rules.compact)
        if dry_run:
            return progress.end(_describe(plan, "planned"))
        progress.stage(f"removing {format_count(len({removal.run_id for removal in plan.removals}), 'run')}")
        remove_runs(spark, store, plan.removals)
        progress.stage(f"compacting {format_count(len(plan.fragmented), 'run')}")
        copies = [copy_run(spark, store, run).run_id for run in plan.fragmented]
        if rules.compact:
            optimize_tables(spark, store, policy)
        warnings = [*_describe_lost(plan), *refresh_views(spark, store)]
    done = _describe(plan, "done")
    return progress.end(Outcome(summary={**done.summary, "copies": copies, "warnings": warnings}, table=done.table))


def _describe(plan: Plan, status: str) -> Outcome:
    """Return what is removed, by table and run, and warnings of what is lost."""
    rows = [{name: getattr(removal, name) for name in COLUMNS} for removal in plan.removals]
    summary = {"job": JOB, "status": status, "removals": len(rows), "runs": sorted({row["run_id"] for row in rows})}
    summary |= {"fragmented": [run.run_id for run in plan.fragmented], "undated": plan.undated}
    lost = _describe_lost(plan)
    lines = [format_table(rows, COLUMNS) if rows else "nothing to remove", *(f"warning: {text}" for text in lost)]
    return Outcome(summary=summary | {"warnings": lost}, table="\n".join(lines))


def _describe_lost(plan: Plan) -> list[str]:
    return [
        f"run {run_id}: the files of {', '.join(tables)} are gone. Restore them, or measure the night again."
        for run_id, tables in sorted(plan.lost.items())
    ]


# ---- the command line

EXAMPLES = """\
examples:
  %(prog)s --config conf/demo.toml --run-date 2026-03-31 --dry-run
  %(prog)s --config conf/demo.toml --run-date 2026-03-31 --keep-days 7 --grace-hours 48
"""


def main(arguments: argparse.Namespace) -> Outcome:
    """Plan or do the maintenance."""
    config = load_config(arguments.config, arguments.overrides)
    keep_days, grace_hours = arguments.keep_days, arguments.grace_hours
    return maintain(config, arguments.run_date, keep_days, grace_hours, dry_run=arguments.dry_run)


NIGHT = "the night from whose end keep_days and grace_hours count back; runs of every night may be removed"
KEEP_DAYS = "[maintenance] keep_days, how long a superseded run stays"
FLAGS = (
    *on_night(NIGHT),
    DRY_RUN,
    flag("--keep-days", type=partial(parse_count, least=0), metavar="N", help=KEEP_DAYS),
    flag("--grace-hours", type=parse_count, metavar="H", help="[maintenance] grace_hours, how long a run may take"),
)
COMMAND = Command(partial(make_parser, __doc__, EXAMPLES, FLAGS), main)
