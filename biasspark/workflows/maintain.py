"""Maintain the tables: remove superseded and failed runs, and compact files. Readers see no difference."""

from __future__ import annotations

import argparse
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from pyspark.sql import SparkSession

from biasspark.cli import Command, Outcome, Progress, flag, format_table, on_date, parse_count
from biasspark.config import load_config
from biasspark.errors import ABSENT, Fault, InputError, PublishConflict
from biasspark.session import describe
from biasspark.tables.lake import LakeStore
from biasspark.tables.ledger import (
    VIEW_KEY,
    LedgerRow,
    accept,
    accepted_ids,
    by_publication,
    find_acceptance,
    latest_by,
    read_ledger,
    to_run,
    view_key,
)
from biasspark.tables.publish import Rows, publish, read_frame, read_rows
from biasspark.tables.runs import Run, RunRecord, new_run, parse_start
from biasspark.tables.schemas import BIAS_RUNS, TABLES, Table, tables_of
from biasspark.tables.store import Store, open_tables
from biasspark.tables.views import refresh_views
from biasspark.text import format_count, show_time

# Visible runs are never changed. Rows of the ledger are never removed: they record superseded runs after their rows are
# removed. Only run ids and times decide what is removed, so the next maintenance finishes one that was killed.

JOB = "maintain"
BYTES_A_FILE = 128 * 2**20

StoredRuns = Mapping[str, Collection[tuple[date, str]]]
"""The dates and ids of the runs in each table."""


@dataclass(frozen=True)
class Policy:
    """Runs that were superseded, or were started and never published, by these times are removed."""

    superseded_until: datetime
    started_until: datetime


class Removal(NamedTuple):
    """A run to remove from one table, and the reason."""

    run_date: date
    run_id: str
    table: str
    reason: str
    since: datetime


@dataclass(frozen=True)
class MaintenancePlan:
    """The plan of a maintenance.

    ``fragmented`` runs are in small files, to be copied into fewer. ``undated`` and ``before_ledger`` are runs that the
    ledger lacks and that are kept: see `choose_removals`. ``lost`` are tables of visible runs, by run, with rows in the
    ledger but no files.
    """

    removals: tuple[Removal, ...]
    fragmented: tuple[Run, ...]
    undated: tuple[str, ...]
    before_ledger: tuple[str, ...]
    lost: Mapping[str, list[str]]


def plan_maintenance(spark: SparkSession, store: Store, policy: Policy, *, compact: bool) -> MaintenancePlan:
    """Plan the maintenance from the ledger and the runs in every table. Nothing is changed.

    Raises `InputError` if there is no ledger, as with a misspelled path.
    """
    # The ledger is read last, so that it has runs which are published while tables are listed.
    stored = {table.name: store.list_runs(spark, table) for table in TABLES.values() if table != BIAS_RUNS}
    ledger = read_ledger(spark, store)
    if not ledger and any(stored.values()):
        raise InputError(
            f"{store.root}: bias_runs has no row, but tables have rows of runs. Without the ledger it is unknown which "
            "runs are visible. Restore it, or remove the tables by hand."
        )
    if not ledger:
        problem = f"there is no ledger, bias_runs, and no run in {store.root}."
        raise InputError(Fault(("output",), ABSENT, problem, "Correct the path or catalog, or publish a run first."))
    visible = [to_run(row) for row in latest_by(ledger, *VIEW_KEY).values()]
    lost = list_lost(stored, visible)
    copied = [run for run in visible if run.run_id not in lost and run.table_rows.keys() <= TABLES.keys()]
    removals, undated, before_ledger = choose_removals(stored, ledger, policy)
    is_copied = compact and not isinstance(store, LakeStore)  # such a format compacts its files itself
    fragmented = _find_fragmented(spark, store, copied, stored) if is_copied else ()
    return MaintenancePlan(tuple(removals), fragmented, tuple(undated), tuple(before_ledger), lost)


def list_lost(stored: StoredRuns, shown: Iterable[Run]) -> dict[str, list[str]]:
    """Return by run the tables with rows in the ledger, but no files."""
    lost: dict[str, list[str]] = {}
    for run in shown:
        for name, n_rows in run.table_rows.items():
            # A newer version may have other tables.
            if n_rows and name in stored and (run.run_date, run.run_id) not in stored[name]:
                lost.setdefault(run.run_id, []).append(name)
    return lost


def remove_runs(spark: SparkSession, store: Store, removals: Sequence[Removal]) -> None:
    """Remove runs, one table of one run at a time."""
    for removal in removals:
        table = TABLES[removal.table]
        with describe(spark, f"maintain: remove {removal.run_id} from {removal.table}"):
            store.remove_run(spark, table, Run(removal.run_date, "", table.job, removal.run_id, removal.since))


def copy_run(spark: SparkSession, store: Store, run: Run) -> Run:
    """Publish the rows of a run again under a new run_id, with large tables in as few files as they need.

    The copied run is then superseded, and removed later. Raises as `publish`: a run published in the meantime wins. A
    run that was started before the copy and is published after it does not conflict.
    """
    copy = new_run(run.run_date, run.corpus, run.job, run.window_start)
    row = next(row for row in read_ledger(spark, store, run.run_date, run.run_date) if row["run_id"] == run.run_id)
    tables: dict[Table, Rows] = {}
    for table in filter(to_run(row).wrote, tables_of(run.job)):
        if table.per_row:
            frame = read_frame(spark, store, table, run).select(*table.value_columns)
            tables[table] = frame.coalesce(_needed_files(*store.file_sizes(spark, table, [run])))
        else:
            tables[table] = read_rows(spark, store, table, [run])[0].select(table.value_columns)
    record = RunRecord(**{name: row[name] for name in RunRecord.__dataclass_fields__})
    original = record.copied_from_run_id or run.run_id
    acceptance = find_acceptance(spark, store, run)
    if acceptance and acceptance["accepts_run_id"]:  # by a person; that of a gate is in the record
        # First: no reader sees a copy without it, and one of a run that is never published accepts nothing.
        accept(spark, store, copy, acceptance["acceptance_note"], acceptance["accepted_by"])
    publish(spark, tables, copy, store, replace(record, copied_from_run_id=original))
    return copy


def optimize_tables(spark: SparkSession, store: LakeStore, policy: Policy, progress: Progress) -> list[str]:
    """Compact each table and delete its old files as its format does. Return the names of the tables."""
    names = [table.name for table in TABLES.values() if store.has(spark, table)]
    for number, name in enumerate(names, 1):
        progress.stage(f"compacting {name}, table {number} of {len(names)}")
        with describe(spark, f"maintain: optimize {name}"):
            store.optimize(spark, TABLES[name], policy.started_until)
    return names


def _find_fragmented(spark: SparkSession, store: Store, runs: Sequence[Run], stored: StoredRuns) -> tuple[Run, ...]:
    """Return the runs that have more than twice as many files of a table as needed."""
    fragmented = set()
    for table in TABLES.values():
        if table.per_row:
            written = [run for run in runs if (run.run_date, run.run_id) in stored[table.name]]
            sizes = store.file_sizes(spark, table, written) if written else []
            fragmented |= {
                run for run, files in zip(written, sizes, strict=True) if len(files) > 2 * _needed_files(files)
            }
    return tuple(run for run in runs if run in fragmented)


def _needed_files(sizes: list[int]) -> int:
    return max(math.ceil(sum(sizes) / BYTES_A_FILE), 1)


# ---- which runs may go


def start_policy(run_date: date, keep_days: int, grace_hours: int, now: datetime) -> Policy:
    """Return a policy as of the end of a run date, but not later than `now`."""
    end = datetime.combine(run_date + timedelta(days=1), time(), UTC) if run_date < now.date() else now
    return Policy(end - timedelta(days=keep_days), end - timedelta(hours=grace_hours))


def choose_removals(
    stored: StoredRuns, ledger: Collection[LedgerRow], policy: Policy
) -> tuple[list[Removal], list[str], list[str]]:
    """Choose the runs to remove, and return also the undated runs, and those before the ledger.

    These are runs superseded by ``superseded_until``, and runs not in the ledger that started by ``started_until``. The
    latest run of a date or window, corpus and job is always kept, and so is the latest accepted one. Of the runs not in
    the ledger, the undated ones are kept, whose id does not have their start, and those before the ledger, which may
    have lost them: they started before its first run was published.
    """
    views = defaultdict(list)
    for row in sorted(ledger, key=by_publication):
        views[view_key(row)].append(row)
    superseded_at = {row["run_id"]: later["published_at"] for rows in views.values() for row, later in pairwise(rows)}
    known = {row["run_id"] for row in ledger}
    accepted = accepted_ids(ledger)
    accepted_rows = [row for row in ledger if row["run_id"] in accepted]
    shown = latest_by(ledger, *VIEW_KEY), latest_by(accepted_rows, *VIEW_KEY)
    kept = {row["run_id"] for latest in shown for row in latest.values()}
    first = min(row["published_at"] for row in ledger)
    removals, undated, before_ledger = [], set(), set()
    for table, runs in stored.items():
        for run_date, run_id in runs:
            if run_id in kept:
                continue
            if run_id in known:
                reason, since, until = "superseded", superseded_at[run_id], policy.superseded_until
            else:
                reason, since, until = "failed", parse_start(run_id), policy.started_until
            if since is None:
                undated.add(run_id)
            elif since < first:
                before_ledger.add(run_id)
            elif since <= until:
                removals.append(Removal(run_date, run_id, table, reason, since))
    return sorted(removals), sorted(undated), sorted(before_ledger)


def _describe(plan: MaintenancePlan, status: str, more_warnings: Sequence[str] = (), **more: object) -> Outcome:
    """Return the outcome: removals by run, and warnings about lost tables."""
    n_tables = Counter((one.run_date, one.run_id, one.reason, one.since) for one in plan.removals)
    columns = ("run_date", "run_id", "reason", "since", "tables")
    rows = [
        dict(zip(columns, (*run, show_time(since), count), strict=True)) for (*run, since), count in n_tables.items()
    ]
    runs = sorted({removal.run_id for removal in plan.removals})
    summary = {"job": JOB, "status": status, "removals": len(plan.removals), "runs": runs}
    summary |= {"fragmented": [run.run_id for run in plan.fragmented], "undated": plan.undated}
    summary |= {"before_ledger": plan.before_ledger}
    n_before = format_count(len(plan.before_ledger), "run")
    older = f"the tables have rows of {n_before} from before the first run in bias_runs, the ledger. They are kept."
    warnings = [f"{older} Is the ledger lost? Restore it, or remove the runs by hand."] if plan.before_ledger else []
    warnings += [
        f"run {run_id}: the files of {', '.join(tables)} are gone. Restore them, or measure that date again."
        for run_id, tables in sorted(plan.lost.items())
    ] + [*more_warnings]
    removed = format_table(rows, columns) if rows else "nothing to remove"
    lines = [removed, *(f"warning: {text}" for text in warnings)]
    return Outcome(summary=summary | more | {"warnings": warnings}, text="\n".join(lines))


# ---- the command line

EXAMPLES = """\
examples:
  %(prog)s --config conf/demo.toml --run-date 2026-03-31 --dry-run
  %(prog)s --config conf/demo.toml --run-date 2026-03-31 --keep-days 7 --grace-hours 48
"""


def main(arguments: argparse.Namespace) -> Outcome:
    """Plan the maintenance, and do it unless it is a dry run."""
    given = {"keep_days": arguments.keep_days, "grace_hours": arguments.grace_hours}
    overrides = [f"maintenance.{name}={number}" for name, number in given.items() if number is not None]
    config = load_config(arguments.config, [*arguments.overrides, *overrides])
    progress, rules = Progress(), config.maintenance
    policy = start_policy(arguments.run_date, rules.keep_days, rules.grace_hours, datetime.now(UTC))
    with open_tables(JOB, config, progress) as (spark, store):
        store.check(spark, TABLES.values())
        progress.stage(f"looking at the tables in {store.root}")
        plan = plan_maintenance(spark, store, policy, compact=rules.compact)
        if arguments.dry_run:
            return progress.end(_describe(plan, "planned"))
        progress.stage(f"removing {format_count(len({removal.run_id for removal in plan.removals}), 'run')}")
        remove_runs(spark, store, plan.removals)
        if plan.fragmented:
            progress.stage(f"compacting {format_count(len(plan.fragmented), 'run')}")
        copies, conflicts = [], []
        for run in plan.fragmented:
            try:
                copies.append(copy_run(spark, store, run).run_id)
            except PublishConflict:
                conflicts.append(f"run {run.run_id}: not copied, {run.run_date} was measured again in the meantime.")
        compacted = []
        if rules.compact and isinstance(store, LakeStore):
            compacted = optimize_tables(spark, store, policy, progress)
        more_warnings = (*conflicts, *refresh_views(spark, store))
        return progress.end(_describe(plan, "done", more_warnings, copies=copies, compacted=compacted))


_RUN_DATE = (
    "count keep_days and grace_hours back from the end of this date, or from now if that is earlier; runs of every "
    "date may be removed"
)
_KEEP_DAYS = "[maintenance] keep_days, how long a superseded run is kept"
FLAGS = (
    *on_date(_RUN_DATE),
    flag("--dry-run", action="store_true", help="print what would be removed, and stop"),
    flag("--keep-days", type=partial(parse_count, least=0), metavar="N", help=_KEEP_DAYS),
    flag("--grace-hours", type=parse_count, metavar="H", help="[maintenance] grace_hours, how long a run may take"),
)
COMMAND = Command(__doc__, EXAMPLES, FLAGS, main)
