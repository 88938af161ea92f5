"""What the ledger says around one night: which runs readers see, which were accepted, and what to compare with."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from biasspark.report.facts import Row
from biasspark.tables.runs import ACCEPT_RUN, ACCEPTED

BY_GATE, BY_HAND = "the last accepted run", "the last accepted run, accepted by hand"
BEFORE = "the night before"
"""How the run that a night is compared with came to be it."""


@dataclass(frozen=True)
class Baseline:
    """The ledger's row of the run to compare with, and how it came to be it."""

    row: Row
    standing: str


def latest_runs(ledger: Iterable[Row], run_date: object) -> dict[str, Row]:
    """Return by job the run of a night that was published last: the one that readers see."""
    own = [row for row in ledger if row["run_date"] == run_date and row["job"] != ACCEPT_RUN]
    return {row["job"]: row for row in sorted(own, key=_order)}


def earlier_nights(ledger: Iterable[Row], run: Row, most: int) -> list[Row]:
    """Return the run that readers see of each of the nights before a run, of the same job, oldest first."""
    own = [row for row in ledger if row["job"] == run["job"] and row["run_date"] < run["run_date"]]
    by_night = {row["run_date"]: row for row in sorted(own, key=_order)}
    return list(by_night.values())[-most:] if most else []


def list_overrides(ledger: Iterable[Row]) -> list[Row]:
    """Return what people accepted by hand; what was said last of a run counts."""
    found = {}
    for row in sorted((row for row in ledger if row["job"] == ACCEPT_RUN), key=_order):
        said = json.loads(row["config"] or "{}")
        told = {name: str(said.get(name, "")) for name in ("accepted_run_id", "reason", "by")}
        found[told["accepted_run_id"]] = {**told, "published_at": row["published_at"]}
    return list(found.values())


def find_baseline(ledger: Sequence[Row], run: Row, alerts: Sequence[Row]) -> Baseline | None:
    """Return the run that a night is compared with.

    It is the last run that the gate compared with; else, of the runs of the same job on earlier nights, the last that a
    gate or a person accepted; else, where nobody judges, the last of an earlier night.
    """
    before = [row for row in ledger if row["job"] == run["job"] and row["run_date"] < run["run_date"]]
    by_hand = {row["accepted_run_id"] for row in list_overrides(ledger)}
    named = {row["baseline_run_id"] for row in alerts} - {None}
    accepted = [row for row in before if row["status"] == ACCEPTED or row["run_id"] in by_hand]
    if found := _last([row for row in before if row["run_id"] in named] or accepted):
        return Baseline(found, BY_HAND if _only_by_hand(found, by_hand) else BY_GATE)
    last = None if alerts else _last(before)
    return Baseline(last, BEFORE) if last else None


def read_config(run: Row) -> dict[str, Any]:
    """Return the configuration that a run had; nothing where the ledger does not tell."""
    try:
        found = json.loads(run["config"] or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def read_level(run: Row) -> float:
    """Return the level of a run's intervals."""
    return float((read_config(run).get("intervals") or {}).get("level", 0.95))


def read_alpha(run: Row) -> float:
    """Return the level of the evidence of a run's gate."""
    return float((read_config(run).get("gate") or {}).get("alpha", 0.05))


def count_bins(run: Row) -> int:
    """Return into how many bins a run cut its scores, 0 where it has no histograms."""
    return int((read_config(run).get("histograms") or {}).get("bins", 0))


def _only_by_hand(row: Row, by_hand: Collection[str]) -> bool:
    return row["run_id"] in by_hand and row["status"] != ACCEPTED


def _last(rows: Iterable[Row]) -> Row | None:
    return max(rows, key=_order, default=None)


def _order(row: Row) -> tuple[Any, ...]:
    return row["run_date"], row["published_at"], row["run_id"]
