"""Keeping tables in order: what nobody can see any more is removed, and runs in many small files become few.

A run that readers may see is never touched. Rows of the ledger are never removed: that a night was measured and
superseded stays on record when its rows are gone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

import pyspark.sql.functions as F
from pyspark.sql import Row, SparkSession

from biasspark.errors import InputError
from biasspark.session import describe
from biasspark.tables.publish import publish
from biasspark.tables.published import read_published
from biasspark.tables.retention import LedgerRow, Policy, Removal, choose_removals, find_latest, find_nameless
from biasspark.tables.runs import ACCEPT_RUN, ACCEPTED, Run, RunRecord, from_micros, new_run, say_copied
from biasspark.tables.schemas import BIAS_RUNS, TABLES, Table, tables_of
from biasspark.tables.store import Store

BYTES_A_FILE = 128 * 2**20


@dataclass(frozen=True)
class Plan:
    """What maintenance would do: runs to remove, runs to copy into fewer files, and runs left alone for want of age."""

    removals: tuple[Removal, ...]
    scattered: tuple[Run, ...]
    nameless: tuple[str, ...]


def plan_maintenance(spark: SparkSession, store: Store, policy: Policy, *, compact: bool) -> Plan:
    """Look at the ledger and at what every table holds, and choose; nothing is changed.

    Raises
    ------
    InputError
        If there are rows and no ledger.

    Notes
    -----
    The driver receives a row per run. Of compaction only nights younger than ``policy.keep`` are looked at.
    """
    # The ledger last: what is published while tables are listed is then known.
    stored = {table.name: store.list_runs(spark, table) for table in TABLES.values() if table != BIAS_RUNS}
    ledger = _read_ledger(spark, store)
    if not ledger and any(stored.values()):
        raise InputError(
            f"{store.root}: bias_runs has no row, yet tables hold rows of runs. Without the ledger nothing tells what "
            "readers see from what may go. Restore it, or remove the tables by hand."
        )
    recent = [row for row in find_latest(ledger).values() if row.run_date >= (policy.now - policy.keep).date()]
    runs = [Run(row.run_date, row.corpus, row.job, row.run_id, row.published_at, row.window_start) for row in recent]
    return Plan(
        tuple(choose_removals(stored, ledger, policy)),
        tuple(run for run in runs if compact and _find_scattered(spark, store, run, stored)),
        tuple(find_nameless(stored, ledger)),
    )


def remove_runs(spark: SparkSession, store: Store, removals: Sequence[Removal]) -> None:
    """Remove runs, one table of one run at a time."""
    for removal in removals:
        table = TABLES[removal.table]
        with describe(spark, f"maintain: remove {removal.run_id} from {removal.table}"):
            store.remove_run(spark, table, Run(removal.run_date, "", table.job, removal.run_id, removal.since))


def copy_run(spark: SparkSession, store: Store, run: Run) -> Run:
    """Publish the rows of a run again under a new run_id, those of scattered tables in fewer files.

    The run that was copied is then superseded, and goes when its time has come. Raises what ``publish`` raises: a run
    published in the meantime wins. One that was started before it and is published after it is not held up by the copy.
    """
    copy = new_run(run.run_date, run.corpus, run.job, run.window_start)
    frames = {}
    for table in tables_of(run.job):
        rows = read_published(spark, store, table, run).select(*table.value_columns)
        frames[table] = rows.coalesce(_needed_files(store.count_files(spark, table, run))) if table.per_row else rows
    record = _read_record(spark, store, run)
    publish(frames, copy, store, replace(record, warnings=(*record.warnings, say_copied(run.run_id))))
    return copy


def tidy_tables(spark: SparkSession, store: Store, policy: Policy) -> None:
    """Have each table compacted and rid of old files in its format's own way; plain Parquet has none."""
    for table in TABLES.values():
        with describe(spark, f"maintain: tidy {table.name}"):
            store.tidy(spark, table, policy.now - policy.grace)


def _find_scattered(
    spark: SparkSession, store: Store, run: Run, stored: dict[str, set[tuple[date, str]]]
) -> list[Table]:
    """Return the tables of a run that are in more than twice as many files as they need."""
    tables = [
        table for table in tables_of(run.job) if table.per_row and (run.run_date, run.run_id) in stored[table.name]
    ]
    sizes = {table: store.count_files(spark, table, run) for table in tables}
    return [table for table, files in sizes.items() if len(files) > 2 * _needed_files(files)]


def _needed_files(sizes: list[int]) -> int:
    return max(math.ceil(sum(sizes) / BYTES_A_FILE), 1)


def _read_ledger(spark: SparkSession, store: Store) -> list[LedgerRow]:
    accepted = F.when(F.col("job") == ACCEPT_RUN, F.get_json_object("config", "$.accepted_run_id"))
    own = F.when(F.col("status") == ACCEPTED, F.col("run_id"))
    published = F.unix_micros("published_at").alias("published")
    columns = (
        "run_date",
        "corpus",
        "job",
        "run_id",
        published,
        F.coalesce(accepted, own).alias("accepted"),
        "window_start",
    )
    return [_ledger_row(row) for row in store.read_ledger(spark, None).select(*columns).collect()]


def _ledger_row(row: Row) -> LedgerRow:
    published_at = from_micros(row["published"])
    names = ("run_date", "corpus", "job", "run_id", "accepted", "window_start")
    return LedgerRow(published_at=published_at, **{name: row[name] for name in names})


def _read_record(spark: SparkSession, store: Store, run: Run) -> RunRecord:
    """Return what the ledger says of a run."""
    names = list(RunRecord.__dataclass_fields__)
    row = store.read_ledger(spark, run.run_date).where(F.col("run_id") == F.lit(run.run_id)).select(*names).first()
    assert row is not None  # the run came from there
    return RunRecord(**row.asDict() | {"rejects": dict(row["rejects"] or {}), "warnings": tuple(row["warnings"] or ())})
