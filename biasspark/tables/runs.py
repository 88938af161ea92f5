"""A run, and what the ledger records about it."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

from biasspark import __version__
from biasspark.tables.schemas import Table

PUBLISHED, ACCEPTED = "published", "accepted"
"""The status of a run in the ledger: visible to readers, and also accepted by a gate or a person."""
ACCEPT_RUN = "accept_run"
"""The job by which a person accepts a run."""

# A run id is the name of a folder, and readers of partitions must not parse it as a number or a date.
RUN_ID_RULE = r"[A-Za-z][A-Za-z0-9_-]{0,63}"
_NEW_RUN_ID = re.compile(r"r([0-9]{8}T[0-9]{12})_[0-9a-f]{6}")


@dataclass(frozen=True)
class Run:
    """One attempt of a job to measure a corpus for a run date.

    ``run_id`` is new for every attempt, and the name of a folder: a letter, then letters, digits, ``_`` and ``-``, at
    most 64. ``started_at`` has a time zone. ``window_start`` is the first date of a window that ends with ``run_date``.
    ``table_rows`` counts the rows of each table of a published run.
    """

    run_date: date
    corpus: str
    job: str
    run_id: str
    started_at: datetime
    window_start: date | None = None
    table_rows: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Raise `ValueError` for an id that cannot be a partition, and a time without a time zone."""
        if not re.fullmatch(RUN_ID_RULE, self.run_id):
            raise ValueError(f"run_id: {self.run_id!r} is not a run id: a letter, then letters, digits, _ and -.")
        if self.started_at.tzinfo is None:
            raise ValueError(f"started_at: {self.started_at} has no time zone. Give it one.")

    @property
    def partition(self) -> str:
        """The folder of the run within a table's folder."""
        return f"run_date={self.run_date.isoformat()}/run_id={self.run_id}"

    def wrote(self, table: Table) -> bool:
        """Return whether a published run wrote a table."""
        return table.name in self.table_rows


def new_run(run_date: date, corpus: str, job: str, window_start: date | None = None) -> Run:
    """Return a new run. Its id is the time in UTC and a random suffix, so that no two runs share it."""
    started_at = datetime.now(UTC)
    run_id = f"r{started_at:%Y%m%dT%H%M%S%f}_{secrets.token_hex(3)}"
    return Run(run_date, corpus, job, run_id, started_at, window_start)


def parse_start(run_id: str) -> datetime | None:
    """Return the start time in an id made by `new_run`, None for any other id."""
    parts = _NEW_RUN_ID.fullmatch(run_id)
    try:
        return datetime.strptime(parts[1], "%Y%m%dT%H%M%S%f").replace(tzinfo=UTC) if parts else None
    except ValueError:
        return None


@dataclass(frozen=True)
class RunRecord:
    """The columns of ``bias_runs`` that describe a run, except those of `Run`."""

    spark_version: str
    n_rows: int = 0
    n_rejected: int = 0
    config: str = "{}"
    config_hash: str = ""
    code_version: str = __version__
    rejects: Mapping[str, int] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    status: str = PUBLISHED
    merged_run_ids: Sequence[str] | None = None
    copied_from_run_id: str | None = None
    accepts_run_id: str | None = None
    accepted_by: str | None = None
    acceptance_note: str | None = None


def read_config(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration of a run, given its row of the ledger; empty if it has none."""
    config: dict[str, Any] = json.loads(row.get("config") or "{}")
    return config
