"""The ledger ``bias_runs``: a row of it publishes a run, and says which runs readers see and which were accepted.

Rows are only ever added. They are few, one per run, and come to the driver as Arrow.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
from pyspark.sql import SparkSession

from biasspark import __version__
from biasspark.command import name_command
from biasspark.ddl import to_rows
from biasspark.errors import BiasSparkError, InputError, PublishConflict
from biasspark.session import describe, engine_version
from biasspark.tables.runs import ACCEPT_RUN, ACCEPTED, Run, RunRecord, new_run
from biasspark.tables.schemas import BIAS_RUNS
from biasspark.tables.storage_errors import storage_errors
from biasspark.tables.store import Store
from biasspark.text import show_value

MOST_LISTED = 5
MOST_BASELINES = 60
"""How many nights back a change is measured, of those that have an accepted run."""

LedgerRow: TypeAlias = dict[str, Any]
"""The columns of ``bias_runs``."""


class JobCorpus(NamedTuple):
    """A job on a corpus: what has one run that readers see per night."""

    job: str
    corpus: str


class ViewKey(NamedTuple):
    """What has one run that readers see: a night, or a window of nights, of a job on a corpus."""

    run_date: date
    window_start: date | None
    corpus: str
    job: str


@dataclass(frozen=True)
class PublishedNight:
    """The run that readers see of one night, and what the ledger counts of it."""

    run: Run
    n_rows: int
    n_rejected: int
    rejects: Mapping[str, int]


class AcceptedRun(NamedTuple):
    """An accepted run, and the configuration that it had."""

    run: Run
    config: Mapping[str, Any]


# ---- reading


def read_ledger(spark: SparkSession, store: Store, run_date: date | None = None) -> list[LedgerRow]:
    """Return the rows of the ledger, of one night or of all."""
    rows: list[LedgerRow] = to_rows(store.read_ledger(spark, run_date))
    for row in rows:
        if row["job"] == ACCEPT_RUN and row["accepts_run_id"] is None:  # a row of an older version
            row["accepts_run_id"] = json.loads(row["config"] or "{}").get("accepted_run_id")
    return rows


def find_published(spark: SparkSession, store: Store, job: str, run_date: date, corpus: str) -> Run:
    """Return the latest published run of a job for one night and corpus: the one that the views show.

    Raises `InputError` if there is none, naming the nights and corpora that there are.
    """
    rows = latest_by_night(_select(read_ledger(spark, store, run_date), job, corpus))
    if run_date not in rows:
        raise InputError(_describe_absence(read_ledger(spark, store), store, job, run_date, corpus))
    return to_run(rows[run_date])


def list_nights(
    spark: SparkSession, store: Store, series: JobCorpus, first: date, last: date
) -> dict[date, PublishedNight]:
    """Return the nights from the first to the last that are published, in order, each with its latest run."""
    rows = [row for row in _select(read_ledger(spark, store), *series) if first <= row["run_date"] <= last]
    return {
        day: PublishedNight(to_run(row), row["n_rows"], row["n_rejected"], row["rejects"])
        for day, row in sorted(latest_by_night(rows).items())
    }


def list_configurations(spark: SparkSession, store: Store, series: JobCorpus) -> list[tuple[dict[str, Any], Run]]:
    """Return every configuration that a run was published with, and the last such run, the last first."""
    rows = sorted(_select(read_ledger(spark, store), *series), key=by_publication)
    latest = {row["config"]: row for row in rows}
    return [
        (json.loads(row["config"]), to_run(row)) for row in sorted(latest.values(), key=by_publication, reverse=True)
    ]


def list_accepted(spark: SparkSession, store: Store, run: Run, most: int = MOST_BASELINES) -> list[AcceptedRun]:
    """Return the accepted runs of the nights before a run, of the same job and corpus, the latest first.

    They are those of the last ``most`` nights that have one, and of a night the one published last. A night that is run
    again is compared with the nights before it, as it was the first time, and not with itself.
    """
    ledger = read_ledger(spark, store)
    accepted = accepted_ids(ledger)
    rows = [
        row
        for row in _select(ledger, run.job, run.corpus)
        if row["run_date"] < run.run_date and row["run_id"] in accepted
    ]
    latest = [row for _, row in sorted(latest_by_night(rows).items(), reverse=True)][:most]
    return [AcceptedRun(to_run(row), json.loads(row["config"] or "{}")) for row in latest]


def accepted_ids(ledger: Iterable[LedgerRow]) -> set[str]:
    """Return the runs that their gate or a person accepted."""
    return {row["accepts_run_id"] or row["run_id"] for row in ledger if row["status"] == ACCEPTED}


def latest_by_night(rows: Iterable[LedgerRow]) -> dict[date, LedgerRow]:
    """Return the row of each night that was published last."""
    return {row["run_date"]: row for row in sorted(rows, key=by_publication)}


def latest_runs(ledger: Iterable[LedgerRow]) -> dict[ViewKey, LedgerRow]:
    """Return the row of the run that views show for each night or window, corpus and job."""
    return {view_key(row): row for row in sorted(ledger, key=by_publication)}


def view_key(row: LedgerRow) -> ViewKey:
    """Return which night or window, corpus and job a row is of."""
    return ViewKey(*(row[name] for name in ViewKey._fields))


def by_publication(row: LedgerRow) -> tuple[datetime, str]:
    """Return what rows are sorted by: of two of one time the views show that of the greater run_id."""
    return row["published_at"], row["run_id"]


def to_run(row: LedgerRow) -> Run:
    """Return the run of a row."""
    fields = row["run_date"], row["corpus"], row["job"], row["run_id"], row["started_at"], row["window_start"]
    return Run(*fields, row.get("table_rows"))


# ---- adding rows


def append_to_ledger(
    spark: SparkSession, store: Store, run: Run, record: RunRecord, table_rows: Mapping[str, int] | None = None
) -> datetime:
    """Add the row of a run to the ledger, and return when that was: from then on readers see the run.

    Raises as `refuse_conflict`, and `BiasSparkError` if it cannot be written.
    """
    with describe(spark, "publish: ledger"), storage_errors(store.location(BIAS_RUNS, run), "written"):
        before = refuse_conflict(spark, store, run)
        # Later than all before it, also where a clock runs behind.
        published_at: datetime = max(
            [datetime.now(UTC), *(row["published_at"] + timedelta(microseconds=1) for row in before)]
        )
        values = vars(record) | vars(run) | {"published_at": published_at}
        values |= {"rejects": list(record.rejects.items()), "table_rows": list((table_rows or {}).items())}
        row = pa.Table.from_pylist([values], BIAS_RUNS.full_arrow_schema)
        try:
            store.write(spark, BIAS_RUNS, row, run)
        except BiasSparkError:  # it is published all the same if its row is there
            if run.run_id not in store.read_ledger(spark, run.run_date)["run_id"].to_pylist():
                raise
    return published_at


def refuse_conflict(spark: SparkSession, store: Store, run: Run) -> list[LedgerRow]:
    """Return the runs that were published before this one.

    A copy is no other run: it has the numbers of a run that the ledger has as well. Raises `PublishConflict` if another
    run of the same date, corpus and job came to the ledger since this one started, and `BiasSparkError` if the run
    itself is there.
    """
    key = ViewKey(run.run_date, run.window_start, run.corpus, run.job)
    before = [row for row in read_ledger(spark, store, run.run_date) if view_key(row) == key]
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
            f"{last['published_at']}, after this one started at {run.started_at}. Of two runs of a night at once the "
            "first to publish counts. Nothing was published. Run again to supersede it."
        )
    return before


def check_latest(spark: SparkSession, store: Store, latest: Run, run_id: str) -> None:
    """Raise `InputError` for a run that is not the latest of its night: only what readers see is accepted."""
    if run_id == latest.run_id:
        return
    rows = _select(read_ledger(spark, store, latest.run_date), latest.job, latest.corpus)
    is_there = any(row["run_id"] == run_id for row in rows)
    fault = "a later one has superseded it" if is_there else f"no such run of {latest.job} is published"
    raise InputError(
        f"run_id: {show_value(run_id)}, {fault} for {latest.run_date}, corpus {show_value(latest.corpus)}. Only the "
        f"run that readers see is accepted. Leave --run-id out to accept {latest.run_id}."
    )


def accept(spark: SparkSession, store: Store, accepted: Run, reason: str, by: str) -> Run:
    """Add to the ledger that a person accepts a run, and return the row's own run.

    Accepting a run twice adds a second row, and means what the first one does.
    """
    run = new_run(accepted.run_date, accepted.corpus, ACCEPT_RUN)
    record = RunRecord(
        n_rows=0,
        n_rejected=0,
        config="{}",
        config_hash="",
        code_version=__version__,
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


def _describe_absence(ledger: Iterable[LedgerRow], store: Store, job: str, run_date: date, corpus: str) -> str:
    """Return that nothing is published, and what is: the last nights of the corpus, and other corpora of the night."""
    rows = [row for row in ledger if row["job"] == job]
    nights = sorted({row["run_date"] for row in rows if row["corpus"] == corpus}, reverse=True)[:MOST_LISTED]
    corpora = sorted({row["corpus"] for row in rows if row["run_date"] == run_date})[:MOST_LISTED]
    choices = [f"Its last nights there: {', '.join(map(str, nights))}."] if nights else []
    choices += [f"Corpora of this night: {', '.join(map(show_value, corpora))}."] if corpora else []
    command = name_command(job)
    choices += [f"Name one of these, or run {command} first." if choices else f"Run {command} first."]
    absence = f"run_date: {run_date}, corpus {show_value(corpus)}: no run of {job} is published in {store.root}."
    return " ".join((absence, *choices))
