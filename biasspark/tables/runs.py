"""One attempt to compute a night, and what the ledger says of it."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

PUBLISHED, ACCEPTED = "published", "accepted"
"""What the ledger says of a run: that readers see it, and that a gate or a person found it good, too."""
ACCEPT_RUN = "accept_run"
"""The job by which a person accepts a run."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# A run's id is a folder's name, and a value that readers of partitions must not take for a number or a date.
RUN_ID_RULE = r"[A-Za-z][A-Za-z0-9_-]{0,63}"
_RUN_ID = re.compile(RUN_ID_RULE)
_COPIED = re.compile(rf"a copy of {RUN_ID_RULE} in fewer files")
_NEW_RUN_ID = re.compile(r"r([0-9]{8}T[0-9]{12})_[0-9a-f]{6}")


@dataclass(frozen=True)
class Run:
    """One attempt of a job to compute one night of one corpus.

    Parameters
    ----------
    run_date : date
        The night.
    corpus : str
        The name of the corpus, any text.
    job : str
        The job, whose tables are published together.
    run_id : str
        New for every attempt: a letter, then letters, digits, ``_`` and ``-``, 64 at most.
    started_at : datetime
        With its time zone.
    window_start : date, optional
        The first night, where it is a window of nights that ends with `run_date`.

    Raises
    ------
    ValueError
        If ``run_id`` could not be a folder's name, or ``started_at`` has no time zone.
    """

    run_date: date
    corpus: str
    job: str
    run_id: str
    started_at: datetime
    window_start: date | None = None

    def __post_init__(self) -> None:
        """Refuse what could not be a partition."""
        if not _RUN_ID.fullmatch(self.run_id):
            raise ValueError(f"run_id: {self.run_id!r} is not a run id: a letter, then letters, digits, _ and -.")
        if self.started_at.tzinfo is None:
            raise ValueError(f"started_at: {self.started_at} has no time zone. Give it one.")

    @property
    def partition(self) -> str:
        """The folder of the run within a table's folder."""
        return f"run_date={self.run_date.isoformat()}/run_id={self.run_id}"


def to_micros(time: datetime) -> int:
    """Return the microseconds since 1970, a number that no time zone of a session or a machine can shift."""
    return (time - EPOCH) // timedelta(microseconds=1)


def from_micros(micros: int) -> datetime:
    """Return the time of so many microseconds since 1970."""
    return EPOCH + timedelta(microseconds=micros)


def new_run(run_date: date, corpus: str, job: str, window_start: date | None = None) -> Run:
    """Start an attempt: its id is the time in UTC and a random end, so that no two attempts share one."""
    started_at = datetime.now(UTC)
    run_id = f"r{started_at:%Y%m%dT%H%M%S%f}_{secrets.token_hex(3)}"
    return Run(run_date, corpus, job, run_id, started_at, window_start)


def parse_start(run_id: str) -> datetime | None:
    """Return when the attempt of an id that ``new_run`` gave was started, None of any other id."""
    made = _NEW_RUN_ID.fullmatch(run_id)
    try:
        return datetime.strptime(made[1], "%Y%m%dT%H%M%S%f").replace(tzinfo=UTC) if made else None
    except ValueError:
        return None


def say_copied(run_id: str) -> str:
    """Return the warning of a run that is a copy of another one: the ledger tells copies by it."""
    return f"a copy of {run_id} in fewer files"


def is_copy(warnings: Sequence[str] | None) -> bool:
    """Say whether a run that the ledger has with these warnings is a copy of another one, which the ledger has too."""
    return any(map(_COPIED.fullmatch, warnings or ()))


@dataclass(frozen=True)
class RunRecord:
    """What the ledger says of a run besides when and who: see the columns of ``bias_runs``."""

    n_rows: int
    n_rejected: int
    config: str
    config_hash: str
    code_version: str
    spark_version: str
    rejects: Mapping[str, int] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    status: str = PUBLISHED
    merged_run_ids: Sequence[str] | None = None
