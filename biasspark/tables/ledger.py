"""The ledger ``bias_runs``: one row publishes a run, and rows of the ledger say which runs are visible and accepted.

Rows are only ever added. They are few, one per run, and are collected to the driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from operator import attrgetter, itemgetter
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql import SparkSession

from biasspark.command import name_command
from biasspark.ddl import to_rows
from biasspark.errors import BiasSparkError, InputError, PublishConflict
from biasspark.session import describe, engine_version
from biasspark.tables.parquet import CatalogStore
from biasspark.tables.runs import ACCEPT_RUN, ACCEPTED, Run, RunRecord, new_run, read_config
from biasspark.tables.schemas import BIAS_RUNS
from biasspark.tables.storage_errors import storage_errors
from biasspark.tables.store import Store
from biasspark.text import show_time, show_value

MAX_LISTED = 5
MAX_BASELINES = 60
"""The most run dates with an accepted run that a change is compared with."""

LedgerRow: TypeAlias = dict[str, Any]
"""The columns of ``bias_runs``."""


VIEW_KEY = ("run_date", "window_start", "corpus", "job")
"""The columns that identify what a run measures. One run is visible for each combination, the last published."""
view_key = itemgetter(*VIEW_KEY)

# ---- reading


def read_ledger(spark: SparkSession, store: Store, first: date = date.min, last: date = date.max) -> list[LedgerRow]:
    """Return the rows of the ledger from the first to the last run date. A row that accepts a run has its date."""
    return to_rows(store.read_ledger(spark, first, last))


def find_published(spark: SparkSession, store: Store, job: str, run_date: date, corpus: str) -> Run:
    """Return the run of a job without windows that the views show for a date and corpus. Raises as `list_shown`."""
    (run,) = list_shown(spark, store, job, run_date, corpus)
    return run


def list_shown(spark: SparkSession, store: Store, job: str, run_date: date, corpus: str) -> list[Run]:
    """Return the runs of a job that the views show for a date and corpus: one, or one of each window that ends then.

    Without such a run, raises `InputError` with the dates and corpora that exist.
    """
    rows = latest_by(_select(read_ledger(spark, store, run_date, run_date), job, corpus), *VIEW_KEY)
    if not rows:
        raise explain_no_run(spark, store, job, run_date, corpus)
    return list(map(to_run, rows.values()))


def explain_no_run(spark: SparkSession, store: Store, job: str, run_date: date, corpus: str) -> InputError:
    """Return the error that a job has no published run for a date and corpus, with the dates and corpora that exist."""
    job_rows = [row for row in read_ledger(spark, store) if row["job"] == job]
    dates = sorted({row["run_date"] for row in job_rows if row["corpus"] == corpus}, reverse=True)[:MAX_LISTED]
    corpora = sorted({row["corpus"] for row in job_rows if row["run_date"] == run_date})[:MAX_LISTED]
    choices = [f"Its latest dates for this corpus: {', '.join(map(str, dates))}."] if dates else []
    choices += [f"Corpora of this date: {', '.join(map(show_value, corpora))}."] if corpora else []
    command = name_command(job)
    choices += [f"Name one of these, or run {command} first." if choices else f"Run {command} first."]
    absence = f"run_date: {run_date}, corpus {show_value(corpus)}: no run of {job} is published in {store.root}."
    return InputError(" ".join((absence, *choices)))


def list_published(
    spark: SparkSession, store: Store, job: str, corpus: str, dates: tuple[date, date]
) -> dict[date, LedgerRow]:
    """Return the published run dates from the first to the last, in order, each with the row of its latest run."""
    return dict(sorted(latest_by(_select(read_ledger(spark, store, *dates), job, corpus), "run_date").items()))


def list_configurations(spark: SparkSession, store: Store, job: str, corpus: str) -> list[tuple[dict[str, Any], Run]]:
    """Return each configuration of a published run with the last such run, the latest first."""
    latest = latest_by(_select(read_ledger(spark, store), job, corpus), "config")
    rows = sorted(latest.values(), key=by_publication, reverse=True)
    return [(read_config(row), to_run(row)) for row in rows]


def list_accepted(spark: SparkSession, store: Store, run: Run) -> dict[Run, Mapping[str, Any]]:
    """Return the configuration of each accepted run of the same job and corpus with an earlier date, the latest first.

    There is one run for each of the last `MAX_BASELINES` dates that have any, the one published last. A date that is
    run again is compared with earlier dates, as it was the first time, and not with itself.
    """
    latest: dict[date, LedgerRow] = {}
    end, every = run.run_date, date.max.toordinal()
    # Of a ledger that grows for years, most runs read the last dates alone. In a catalog each time is a Spark job.
    for n_days in (every,) if isinstance(store, CatalogStore) else (2 * MAX_BASELINES, every):
        first = date.fromordinal(max(end.toordinal() - n_days, 1))
        if len(latest) < MAX_BASELINES and first < end:
            ledger = read_ledger(spark, store, first, end - timedelta(days=1))
            accepted = accepted_ids(ledger)
            rows = (row for row in _select(ledger, run.job, run.corpus) if row["run_id"] in accepted)
            latest |= latest_by(rows, "run_date")
            end = first
    return {to_run(row): read_config(row) for _, row in sorted(latest.items(), reverse=True)[:MAX_BASELINES]}


def accepted_ids(ledger: Iterable[LedgerRow]) -> set[str]:
    """Return the ids of the runs accepted by a gate or a person."""
    return {row["accepts_run_id"] or row["run_id"] for row in ledger if row["status"] == ACCEPTED}


def latest_by(rows: Iterable[LedgerRow], *columns: str) -> dict[Any, LedgerRow]:
    """Return the row published last for each combination of values of some columns: by `VIEW_KEY`, the visible runs."""
    key = itemgetter(*columns)
    return {key(row): row for row in sorted(rows, key=by_publication)}


def by_publication(row: LedgerRow) -> tuple[datetime, str]:
    """Return the sort key of rows by publication. Of two rows with one time, views show the greater run_id."""
    return row["published_at"], row["run_id"]


def to_run(row: LedgerRow) -> Run:
    """Return the run of a row."""
    fields = row["run_date"], row["corpus"], row["job"], row["run_id"], row["started_at"], row["window_start"]
    return Run(*fields, row.get("table_rows") or {})


# ---- adding rows


def append_to_ledger(spark: SparkSession, store: Store, run: Run, record: RunRecord) -> None:
    """Publish a run by its row in the ledger. Raises as `refuse_conflict`."""
    with describe(spark, "publish: ledger"), storage_errors(store.location(BIAS_RUNS, run), "written"):
        before = refuse_conflict(spark, store, run)
        # Later than all rows before it, even if a clock is slow.
        published_at = max([datetime.now(UTC), *(row["published_at"] + timedelta(microseconds=1) for row in before)])
        values = vars(record) | vars(run) | {"published_at": published_at}
        values |= {"rejects": list(record.rejects.items()), "table_rows": list(run.table_rows.items())}
        row = pa.Table.from_pylist([values], BIAS_RUNS.full_arrow_schema)
        try:
            store.write(spark, BIAS_RUNS, row, run)
        except BiasSparkError:  # the run is published if its row exists
            with suppress(Exception):  # the first failure is reported
                if run.run_id in store.read_ledger(spark, run.run_date, run.run_date)["run_id"].to_pylist():
                    return
            raise


def refuse_conflict(spark: SparkSession, store: Store, run: Run) -> list[LedgerRow]:
    """Return the runs published before this one.

    Raises `PublishConflict` if another run of the same date, corpus and job was published since this one started, and
    `BiasSparkError` if this run is published already. Copies do not conflict: they have the numbers of another run.
    """
    key = attrgetter(*VIEW_KEY)(run)
    before = [row for row in read_ledger(spark, store, run.run_date, run.run_date) if view_key(row) == key]
    if any(row["run_id"] == run.run_id for row in before):
        raise BiasSparkError(
            f"bias_runs: run {run.run_id} is published already. A run is published once. Run again, which takes a new "
            "run_id."
        )
    later = [row for row in before if row["published_at"] > run.started_at and row["copied_from_run_id"] is None]
    if later:
        last = max(later, key=by_publication)
        raise PublishConflict(
            f"bias_runs: run {last['run_id']} of {run.job} for {run.run_date}, corpus {run.corpus!r}, was published at "
            f"{show_time(last['published_at'])}, after this one started at {show_time(run.started_at)}. If two runs "
            "overlap, the first to publish wins. Nothing was published. Run again to supersede it."
        )
    return before


def find_acceptance(spark: SparkSession, store: Store, run: Run) -> LedgerRow | None:
    """Return the first row of the ledger by which a person or the gate accepted a run; None if nobody did."""
    rows = sorted(read_ledger(spark, store, run.run_date, run.run_date), key=by_publication)
    return next((row for row in rows if accepted_ids([row]) == {run.run_id}), None)


def accept(spark: SparkSession, store: Store, accepted: Run, reason: str, by: str) -> Run:
    """Record in the ledger that a person accepts a run, and return the run of the new row."""
    run = new_run(accepted.run_date, accepted.corpus, ACCEPT_RUN)
    record = RunRecord(
        spark_version=engine_version(spark),
        status=ACCEPTED,
        accepts_run_id=accepted.run_id,
        accepted_by=by,
        acceptance_note=reason,
    )
    append_to_ledger(spark, store, run, record)
    return run


def _select(ledger: Iterable[LedgerRow], job: str, corpus: str) -> list[LedgerRow]:
    return [row for row in ledger if row["job"] == job and row["corpus"] == corpus]
