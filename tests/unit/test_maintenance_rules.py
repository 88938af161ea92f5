"""The rules of maintenance on run ids and times, without tables."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from biasspark.tables.ledger import LedgerRow, latest_runs
from biasspark.tables.runs import new_run, parse_start
from biasspark.workflows.maintain import Policy, choose_removals, list_lost, start_policy

RUN_DATE = date(2026, 1, 15)
NOW = datetime(2026, 3, 1, tzinfo=UTC)
POLICY = Policy(NOW, keep=timedelta(days=10), grace=timedelta(hours=48))


def row(run_id: str, day: int, **columns: object) -> LedgerRow:
    published: LedgerRow = {"run_date": RUN_DATE, "corpus": "civil", "job": "bias_metrics", "status": "published"}
    published |= {"run_id": run_id, "published_at": datetime(2026, 2, day, 3, tzinfo=UTC)}
    return published | {"accepts_run_id": None, "window_start": None} | columns


def removed(*ledger: LedgerRow, stored: tuple[str, ...] = (), policy: Policy = POLICY) -> list[tuple[str, str]]:
    """Return (run, reason) of the runs removed from a table that holds those of the ledger, or the given ones."""
    runs = stored or tuple(one["run_id"] for one in ledger)
    removals, _ = choose_removals({"bias_metrics": {(RUN_DATE, run_id) for run_id in runs}}, ledger, policy)
    return [(removal.run_id, removal.reason) for removal in removals]


def test_a_superseded_run_stays_as_long_as_it_is_kept_and_then_goes() -> None:
    # A run is superseded when the next one is published, at any age.
    assert removed(row("old", 1), row("new", 18)) == [("old", "superseded")]
    assert removed(row("old", 1), row("new", 19)) == []


def test_each_run_is_superseded_by_the_next() -> None:
    assert removed(row("a", 1), row("b", 5), row("c", 25)) == [("a", "superseded")]


def test_the_latest_run_of_a_date_corpus_and_job_never_goes() -> None:
    ledger = (row("a", 1), row("b", 2, corpus="wiki"), row("c", 3, job="attribution"))
    assert removed(*ledger, policy=Policy(NOW, timedelta(0), timedelta(0))) == []


def test_windows_that_end_with_the_same_date_do_not_supersede_each_other() -> None:
    week, month = date(2026, 1, 9), date(2025, 12, 19)
    starts = (("old", 1, week), ("week", 2, week), ("month", 3, month))
    windows = [row(run_id, day, job="window_metrics", window_start=start) for run_id, day, start in starts]
    assert removed(*windows) == [("old", "superseded")]


def test_of_two_published_at_once_the_one_that_views_show_stays() -> None:
    assert removed(row("a", 1), row("b", 1)) == [("a", "superseded")]
    assert [latest["run_id"] for latest in latest_runs((row("b", 1), row("a", 1))).values()] == ["b"]


def test_the_latest_accepted_run_of_a_date_stays_when_a_rerun_was_not_accepted() -> None:
    by_gate = (row("a", 1, status="accepted"), row("b", 2, status="accepted"), row("c", 3))
    assert removed(*by_gate) == [("a", "superseded")]
    acceptance = row("d", 4, job="accept_run", status="accepted", accepts_run_id="a")
    assert removed(row("a", 1), row("b", 2), row("c", 3), acceptance) == [("b", "superseded")]


def test_a_run_that_the_ledger_lacks_goes_after_the_grace_period() -> None:
    dead, running = "r20260226T235959000000_0a1b2c", "r20260228T030000000000_0a1b2c"
    assert removed(row("a", 1), stored=("a", dead, running)) == [(dead, "failed")]


def test_an_id_that_does_not_tell_its_age_is_left_alone_and_named() -> None:
    assert removed(row("a", 1), stored=("a", "mine")) == []
    _, undated = choose_removals({"bias_metrics": {(RUN_DATE, "a"), (RUN_DATE, "mine")}}, [row("a", 1)], POLICY)
    assert undated == ["mine"]


def test_removals_come_by_date_run_and_table() -> None:
    later = RUN_DATE + timedelta(days=1)
    dead = {(later, "r20260102T000000000000_000000"), (RUN_DATE, "r20260101T000000000000_000000")}
    removals, _ = choose_removals({"u_statistics": dead, "bias_metrics": dead}, [], POLICY)
    assert [(removal.run_date, removal.table) for removal in removals] == [
        (RUN_DATE, "bias_metrics"),
        (RUN_DATE, "u_statistics"),
        (later, "bias_metrics"),
        (later, "u_statistics"),
    ]


def test_a_policy_is_as_of_the_end_of_the_date_but_never_of_a_time_to_come() -> None:
    assert start_policy(RUN_DATE, 1, 1, NOW).now == datetime(2026, 1, 16, tzinfo=UTC)
    assert start_policy(date(2030, 1, 1), 1, 1, NOW).now == NOW


def test_a_run_id_tells_when_the_run_was_started() -> None:
    run = new_run(RUN_DATE, "civil", "bias_metrics")
    assert parse_start(run.run_id) == run.started_at


@pytest.mark.parametrize(
    "run_id", ["r1", "r20269931T000000000000_000000", "r20260101T000000_000000", "x20260101T000000000000_000000"]
)
def test_other_ids_tell_nothing(run_id: str) -> None:
    assert parse_start(run_id) is None


def test_tables_of_which_the_ledger_counts_rows_and_nothing_is_there() -> None:
    run = replace(
        new_run(RUN_DATE, "c", "bias_metrics"), run_id="a", table_rows={"bias_metrics": 3, "bias_alerts": 0, "u": 2}
    )
    stored = {"bias_metrics": {(RUN_DATE, "a")}, "bias_alerts": set(), "u": {(RUN_DATE, "b")}}
    assert list_lost(stored, [run, replace(run, run_id="b", table_rows=None)]) == {"a": ["u"]}
