"""Which runs may go: those that were superseded long enough ago, and those that died long enough ago.

Pure rules over what the ledger says and what the tables hold. They look at nothing but run ids and times, so a
maintenance that was killed is finished by the next: whatever is still there and may go is found again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from biasspark.tables.runs import parse_start

SUPERSEDED, FAILED = "superseded", "failed"

Shown = tuple[date, date | None, str, str]


@dataclass(frozen=True)
class LedgerRow:
    """What the rules need of a row of ``bias_runs``; ``accepted`` is the run that it accepts, if it accepts one."""

    run_date: date
    corpus: str
    job: str
    run_id: str
    published_at: datetime
    accepted: str | None = None
    window_start: date | None = None

    @property
    def shown_as(self) -> Shown:
        """What tells one thing that views show from another: the night or window, the corpus and the job."""
        return self.run_date, self.window_start, self.corpus, self.job


@dataclass(frozen=True)
class Policy:
    """How long what is kept, counted back from one time."""

    now: datetime
    keep: timedelta
    grace: timedelta


@dataclass(frozen=True, order=True)
class Removal:
    """A run that goes from one table, and why."""

    run_date: date
    run_id: str
    table: str
    reason: str
    since: datetime


def start_policy(run_date: date, keep_days: int, grace_hours: int, now: datetime) -> Policy:
    """Return a policy as of the end of a night, but never of a time to come."""
    end = datetime.combine(run_date, time(), UTC) + timedelta(days=1)
    return Policy(min(now, end), timedelta(days=keep_days), timedelta(hours=grace_hours))


def find_latest(ledger: Iterable[LedgerRow]) -> dict[Shown, LedgerRow]:
    """Return the row of the run that views show for each night or window, corpus and job."""
    latest: dict[Shown, LedgerRow] = {}
    for row in ledger:
        latest[row.shown_as] = max(latest.get(row.shown_as, row), row, key=_by_publication)
    return latest


def choose_removals(
    stored: Mapping[str, Collection[tuple[date, str]]], ledger: Sequence[LedgerRow], policy: Policy
) -> list[Removal]:
    """Choose what goes, by night, run and table.

    Parameters
    ----------
    stored
        The runs that each table holds.
    ledger
        Every row of it.
    policy
        How long what is kept.

    Returns
    -------
    list of Removal
        Runs whose night a later run has shown for longer than ``policy.keep``, and runs that the ledger does not know
        and that were started longer than ``policy.grace`` ago. Never the latest run of a night or window, corpus and
        job, nor the latest of those that were accepted, nor one whose id does not tell when it was started.
    """
    superseded = _find_superseded(ledger)
    known = {row.run_id for row in ledger}
    accepted = {row.accepted for row in ledger}
    shown = find_latest(ledger), find_latest(row for row in ledger if row.run_id in accepted)
    kept = {row.run_id for latest in shown for row in latest.values()}
    removals = []
    for table, runs in stored.items():
        for run_date, run_id in runs:
            if run_id in kept:
                continue
            since = superseded[run_id] if run_id in known else parse_start(run_id)
            reason, patience = (SUPERSEDED, policy.keep) if run_id in known else (FAILED, policy.grace)
            if since is not None and since <= policy.now - patience:
                removals.append(Removal(run_date, run_id, table, reason, since))
    return sorted(removals)


def find_nameless(stored: Mapping[str, Collection[tuple[date, str]]], ledger: Iterable[LedgerRow]) -> list[str]:
    """Return the runs that the ledger does not know and whose id does not tell their age; they are left alone."""
    known = {row.run_id for row in ledger}
    found = {run_id for runs in stored.values() for _, run_id in runs}
    return sorted(run_id for run_id in found - known if parse_start(run_id) is None)


def _find_superseded(ledger: Iterable[LedgerRow]) -> dict[str, datetime]:
    """Return when each run that is not the latest of its night ceased to be so: as the next one was published."""
    nights = defaultdict(list)
    for row in ledger:
        nights[row.shown_as].append(row)
    superseded = {}
    for rows in nights.values():
        rows.sort(key=_by_publication)
        for row in rows:
            later = (
                other for other in rows if other.run_id != row.run_id and _by_publication(other) > _by_publication(row)
            )
            if (following := next(later, None)) is not None:
                superseded[row.run_id] = following.published_at
            else:
                superseded.pop(row.run_id, None)
    return superseded


def _by_publication(row: LedgerRow) -> tuple[datetime, str]:
    return row.published_at, row.run_id
