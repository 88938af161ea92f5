"""The rules of maintenance on run ids and times, without tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from biasspark.tables.ledger import LedgerRow
from biasspark.tables.runs import new_run, parse_start
from biasspark.text import show_time
from biasspark.workflows import maintain
from biasspark.workflows.maintain import MaintenancePlan, Policy, Removal, choose_removals, list_lost, start_policy
from tests.harness.main_job import assert_refused, run, write_config

RUN_DATE = date(2026, 1, 15)
NOW = datetime(2026, 3, 1, tzinfo=UTC)
POLICY = Policy(NOW - timedelta(days=10), NOW - timedelta(hours=48))


def row(run_id: str, day: int, **columns: object) -> LedgerRow:
    published: LedgerRow = {"run_date": RUN_DATE, "corpus": "civil", "job": "bias_metrics", "status": "published"}
    published |= {"run_id": run_id, "published_at": datetime(2026, 2, day, 3, tzinfo=UTC)}
    return published | {"accepts_run_id": None, "window_start": None} | columns


def removed(ledger: Sequence[LedgerRow], *unlisted: str) -> list[tuple[str, str]]:
    """Return (run, reason) of the runs removed from a table that holds those of the ledger, and others."""
    runs = {(RUN_DATE, run_id) for run_id in (*(one["run_id"] for one in ledger), *unlisted)}
    removals, *_ = choose_removals({"bias_metrics": runs}, ledger, POLICY)
    return [(removal.run_id, removal.reason) for removal in removals]


def window(run_id: str, day: int, start: date) -> LedgerRow:
    return row(run_id, day, job="window_metrics", window_start=start)


WEEK, MONTH = date(2026, 1, 9), date(2025, 12, 19)
ACCEPTANCE = row("d", 4, job="accept_run", status="accepted", accepts_run_id="a")


@pytest.mark.parametrize(
    ("ledger", "superseded"),
    [
        # A run is superseded when the next one is published, at any age.
        ([row("old", 1), row("new", 18)], ["old"]),
        ([row("old", 1), row("new", 19)], []),
        ([row("a", 1), row("b", 5), row("c", 25)], ["a"]),
        # Of two published at once the one that views show stays.
        ([row("a", 1), row("b", 1)], ["a"]),
        ([row("a", 1), row("b", 2, corpus="wiki"), row("c", 3, job="attribution")], []),
        # Windows that end with the same date do not supersede each other.
        ([window("old", 1, WEEK), window("week", 2, WEEK), window("month", 3, MONTH)], ["old"]),
        # The latest accepted run of a date stays when a rerun was not accepted.
        ([row("a", 1, status="accepted"), row("b", 2, status="accepted"), row("c", 3)], ["a"]),
        ([row("a", 1), row("b", 2), row("c", 3), ACCEPTANCE], ["b"]),
    ],
)
def test_a_superseded_run_stays_as_long_as_it_is_kept_and_then_goes(
    ledger: list[LedgerRow], superseded: list[str]
) -> None:
    assert removed(ledger) == [(run_id, "superseded") for run_id in superseded]


def test_a_run_that_the_ledger_lacks_goes_after_the_grace_period() -> None:
    dead, running = "r20260226T235959000000_0a1b2c", "r20260228T030000000000_0a1b2c"
    assert removed([row("a", 1)], dead, running) == [(dead, "failed")]


def test_an_id_that_does_not_tell_its_age_is_left_alone_and_named() -> None:
    stored = {"bias_metrics": {(RUN_DATE, "a"), (RUN_DATE, "mine")}}
    assert choose_removals(stored, [row("a", 1)], POLICY) == ([], ["mine"], [])


def test_runs_from_before_a_ledger_that_was_lost_are_left_alone_and_named() -> None:
    early, earlier_date = "r20260131T000000000000_0a1b2c", date(2026, 1, 14)
    stored = {"bias_metrics": {(RUN_DATE, "a"), (earlier_date, early)}}
    assert choose_removals(stored, [row("a", 1)], POLICY) == ([], [], [early])


def test_a_policy_is_as_of_the_end_of_the_date_but_never_of_a_time_to_come() -> None:
    assert start_policy(RUN_DATE, 1, 1, NOW) == Policy(
        datetime(2026, 1, 15, tzinfo=UTC), datetime(2026, 1, 15, 23, tzinfo=UTC)
    )
    assert start_policy(date.max, 0, 1, NOW) == Policy(NOW, NOW - timedelta(hours=1))


def test_a_run_to_remove_is_one_line_whatever_its_number_of_tables() -> None:
    removals = tuple(Removal(RUN_DATE, "a", table, "superseded", NOW) for table in ("bias_metrics", "u_statistics"))
    outcome = maintain._describe(MaintenancePlan(removals, (), (), (), {}), "planned")
    (line,) = outcome.text.splitlines()[1:]
    assert line.split() == [str(RUN_DATE), "a", "superseded", *show_time(NOW).split(), "2"]
    assert (outcome.summary["removals"], outcome.summary["runs"]) == (2, ["a"])


@pytest.mark.parametrize("flag", ["--keep-days", "--grace-hours"])
def test_flags_are_limited_as_the_configuration_is(tmp_path: Path, flag: str) -> None:
    key = flag[2:].replace("-", "_")
    assert_refused(run(write_config(tmp_path), flag, 999_999_999, job=maintain), 2, f"[maintenance] {key} = 999999999.")


def test_a_run_id_tells_when_the_run_was_started() -> None:
    started = new_run(RUN_DATE, "civil", "bias_metrics")
    assert parse_start(started.run_id) == started.started_at


@pytest.mark.parametrize(
    "run_id", ["r1", "r20269931T000000000000_000000", "r20260101T000000_000000", "x20260101T000000000000_000000"]
)
def test_other_ids_tell_nothing(run_id: str) -> None:
    assert parse_start(run_id) is None


def test_tables_of_which_the_ledger_counts_rows_and_nothing_is_there() -> None:
    known = replace(
        new_run(RUN_DATE, "c", "bias_metrics"),
        run_id="a",
        table_rows={"bias_metrics": 3, "bias_alerts": 0, "u": 2, "of_a_newer_version": 1},
    )
    stored = {"bias_metrics": {(RUN_DATE, "a")}, "bias_alerts": set(), "u": {(RUN_DATE, "b")}}
    assert list_lost(stored, [known, replace(known, run_id="b", table_rows={})]) == {"a": ["u"]}
