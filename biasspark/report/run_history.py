"""The runs of the ledger that a report names: the latest of a night, those before it, the baseline, and acceptances."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from biasspark.report.cells import Row
from biasspark.tables.runs import ACCEPT_RUN, ACCEPTED

BY_GATE, BY_PERSON = "the last accepted run", "the last accepted run, accepted by hand"
NIGHT_BEFORE = "the night before"
"""Why a run is the baseline."""


class Baseline(NamedTuple):
    """The ledger's row of the run that a night is compared with, and why."""

    row: Row
    label: str


def latest_runs(ledger: Iterable[Row], run_date: object) -> dict[str, Row]:
    """Return by job the run of a night that was published last: the one that readers see."""
    runs = [row for row in ledger if row["run_date"] == run_date and row["job"] != ACCEPT_RUN]
    return {row["job"]: row for row in sorted(runs, key=_by_publication)}


def earlier_runs(ledger: Iterable[Row], run: Row, n_nights: int) -> list[Row]:
    """Return the runs of the same job that readers see of the nights before a run, oldest first."""
    by_night = {row["run_date"]: row for row in sorted(_runs_before(ledger, run), key=_by_publication)}
    return list(by_night.values())[-n_nights:] if n_nights else []


def list_acceptances(ledger: Iterable[Row]) -> list[Row]:
    """Return the rows by which people accepted runs; of a run that was accepted twice, the last."""
    rows = (row for row in ledger if row["job"] == ACCEPT_RUN)
    return list({row["accepts_run_id"]: row for row in sorted(rows, key=_by_publication)}.values())


def find_baseline(ledger: Sequence[Row], run: Row, baseline_ids: Collection[str], has_gate: bool) -> Baseline | None:
    """Return the run that a night is compared with.

    It is the last run that the gate compared with; else the last run of an earlier night that a gate or a person
    accepted; else, without a gate, the last run of an earlier night.
    """
    before = _runs_before(ledger, run)
    by_person = {row["accepts_run_id"] for row in list_acceptances(ledger)}
    accepted = [row for row in before if row["status"] == ACCEPTED or row["run_id"] in by_person]
    candidates = [row for row in before if row["run_id"] in baseline_ids] or accepted
    if candidates:
        row = max(candidates, key=_by_publication)
        return Baseline(row, BY_GATE if row["status"] == ACCEPTED or row["run_id"] not in by_person else BY_PERSON)
    return Baseline(max(before, key=_by_publication), NIGHT_BEFORE) if before and not has_gate else None


def read_config(run: Row) -> dict[str, Any]:
    """Return the configuration of a run; empty if the ledger has none."""
    try:
        config = json.loads(run["config"] or "{}")
    except ValueError:
        return {}
    return config if isinstance(config, dict) else {}


def _runs_before(ledger: Iterable[Row], run: Row) -> list[Row]:
    return [row for row in ledger if row["job"] == run["job"] and row["run_date"] < run["run_date"]]


def _by_publication(row: Row) -> tuple[Any, ...]:
    return row["run_date"], row["published_at"], row["run_id"]
