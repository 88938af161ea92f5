"""Ranges of run dates: parsing, order and reports. Nothing is measured here."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Mapping
from datetime import date
from pathlib import Path

import pytest

from biasspark.cli import Command, Outcome, Progress, run_job
from biasspark.config import parse_config
from biasspark.errors import BiasSparkError, ConfigError, InputError, NoRows, PublishConflict
from biasspark.workflows import window as window_metrics
from biasspark.workflows.corpus_job import BACKFILL, list_dates, list_days, measure_dates
from tests.harness.least_configuration import changed

CANARY = "canary-3f1c"
DAYS = list_dates(date(2026, 2, 27), date(2026, 3, 2))


PARSER = Command("", "", BACKFILL, lambda _: Outcome(summary={})).parser()


def parse(run_date: str) -> object:
    return PARSER.parse_args(["--config", "c.toml", "--run-date", run_date]).run_date


def test_a_run_date_is_one_date_or_a_range() -> None:
    assert parse("2026-03-31") == date(2026, 3, 31)
    assert parse("2026-02-27..2026-03-02") == (date(2026, 2, 27), date(2026, 3, 2))
    assert parse("2026-02-27..2026-02-27") == (date(2026, 2, 27), date(2026, 2, 27))
    assert list(map(str, DAYS)) == ["2026-02-27", "2026-02-28", "2026-03-01", "2026-03-02"]


@pytest.mark.parametrize(
    ("run_date", "fault"),
    [
        ("2026-03-02..2026-03-01", '"2026-03-02..2026-03-01"'),
        ("1926-03-02..2026-03-01", "3,660 dates"),
        ("2026-03-01..", '"2026-03-01.."'),
        ("2026-03-01...2026-03-02", '".2026-03-02"'),
        ("..2026-03-02", '"..2026-03-02"'),
    ],
)
def test_what_is_no_range(run_date: str, fault: str, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--config", "c.toml", "--run-date", run_date]
    assert run_job(lambda _: Outcome(summary={}), PARSER, flags) == 2
    assert fault in capsys.readouterr().err


def test_a_range_needs_a_column_that_tells_dates_apart() -> None:
    run_dates = DAYS[0], DAYS[-1]
    with pytest.raises(ConfigError, match=r"2026-02-27\.\.2026-03-02.*run_date_column"):
        list_days(run_dates, parse_config(changed(), Path()))
    assert list_days(DAYS[0], parse_config(changed(), Path())) == DAYS[:1]
    assert list_days(run_dates, parse_config(changed(corpus={"run_date_column": "day"}), Path())) == DAYS


@pytest.mark.parametrize(("first", "last"), [("2026-03-02", "2026-03-01"), ("1926-03-01", "2026-03-01")])
def test_a_window_begins_before_it_ends_and_has_no_end_of_dates(
    capsys: pytest.CaptureFixture[str], first: str, last: str
) -> None:
    flags = ["--config", "c.toml", "--from", first, "--to", last]
    assert run_job(window_metrics.main, window_metrics.COMMAND.parser(), flags) == 2
    assert f"--from {first} --to {last}: " in capsys.readouterr().err


def published(day: date, exit_code: int = 0) -> Outcome:
    summary = {"job": "bias_metrics", "status": "published", "run_date": day, "run_id": f"r{day.day}", "n_rows": 5}
    return Outcome(summary=summary, exit_code=exit_code)


def failing(faults: Mapping[int, Exception], gate_failed: Collection[int] = ()) -> Callable[[date], Outcome]:
    """Measure run dates, some of which fail, or whose gate does."""

    def measure(day: date) -> Outcome:
        if day.day in faults:
            raise faults[day.day]
        return published(day, 5 if day.day in gate_failed else 0)

    return measure


def test_runs_are_measured_in_order_and_each_is_reported_with_its_own_seconds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    now = [100.0]
    progress = Progress(clock=lambda: now[0])

    def measure(day: date) -> Outcome:
        now[0] += day.day  # dates in February take long
        return published(day)

    now[0] += 5  # the start of Spark
    outcome = measure_dates("a_job", DAYS, [DAYS[1]], measure, progress, debug=False)
    shown = capsys.readouterr()
    lines = [json.loads(line) for line in shown.out.splitlines()]
    assert shown.err.count("done") == 1
    first, _, *later = DAYS
    assert [(line["run_date"], line["seconds"]) for line in lines] == [(str(day), day.day) for day in (first, *later)]
    assert outcome.exit_code == 0
    assert outcome.summary == {
        "job": "a_job",
        "status": "published",
        "from": DAYS[0],
        "to": DAYS[-1],
        "dates": 4,
        "published": [{"run_date": day, "run_id": f"r{day.day}", "n_rows": 5} for day in (first, *later)],
        "failed": [],
        "gate_failed": [],
        "skipped": [DAYS[1]],
        "seconds": 35,
    }


@pytest.mark.parametrize(
    ("gate_failed", "faults", "codes", "exit_code"),
    [
        ([27], {}, {}, 5),
        ([1, 2], {28: InputError("no row.")}, {28: 3}, 3),
        ([], {27: InputError("gone."), 1: PublishConflict("late.")}, {27: 3, 1: 4}, 3),
        ([], {27: PublishConflict("late."), 28: ValueError(CANARY), 2: InputError("gone.")}, {27: 4, 28: 1, 2: 3}, 1),
    ],
    ids=["gate", "hides no gate", "two", "unexpected"],
)
def test_a_run_that_fails_keeps_no_other_from_being_measured(
    gate_failed: list[int],
    faults: dict[int, Exception],
    codes: dict[int, int],
    exit_code: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    outcome = measure_dates("a_job", DAYS, [], failing(faults, gate_failed), Progress(), debug=False)
    shown = capsys.readouterr()
    statuses = [line["status"] for line in map(json.loads, shown.out.splitlines())]
    assert statuses == ["failed" if day.day in faults else "published" for day in DAYS]
    assert (outcome.exit_code, outcome.summary["status"]) == (exit_code, "failed" if faults else "published")
    failed = [{"run_date": day, "exit_code": codes[day.day]} for day in DAYS if day.day in codes]
    assert outcome.summary["failed"] == failed
    assert outcome.summary["gate_failed"] == [day for day in DAYS if day.day in gate_failed]
    assert all(str(day) in outcome.text for day in DAYS if day.day in (*faults, *gate_failed))
    assert all(f"{one['run_date']}: error: " in shown.err for one in failed)
    assert CANARY not in shown.out + shown.err


def test_a_fault_that_dates_share_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    faults = {27: NoRows("day 27"), 28: NoRows("day 28"), 1: InputError("gone"), 2: InputError("gone")}
    outcome = measure_dates("a_job", DAYS, [], failing(faults), Progress(), debug=False)
    shown = capsys.readouterr()
    assert [(text in shown.err) for text in ("day 27", "day 28")] == [True, False]
    assert shown.err.count("gone") == 1
    lines = [json.loads(line) for line in shown.out.splitlines()]
    assert [line["faults"] for line in lines] == [[str(fault)] for fault in faults.values()]
    assert outcome.text.splitlines()[0].endswith(" 2026-02-27, 2026-02-28")
    assert outcome.summary["failed"] == [{"run_date": day, "exit_code": 3} for day in DAYS]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_below_stdout_is_in_the_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    with Path("/dev/full").open("w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert measure_dates("a_job", DAYS, [], published, Progress(), debug=False).exit_code == 1


def test_an_interrupt_ends_the_range() -> None:
    failure = ValueError("the session is gone")
    failure.__context__ = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        measure_dates("a_job", DAYS, [], failing({DAYS[0].day: failure}), Progress(), debug=False)


def test_debug_shows_the_traceback_of_each_date(capsys: pytest.CaptureFixture[str]) -> None:
    faults = {27: ValueError(CANARY), 28: ValueError(CANARY)}
    measure_dates("a_job", DAYS, [], failing(faults), Progress(), debug=True)
    err = capsys.readouterr().err
    assert (err.count("Traceback"), err.count(f"ValueError: {CANARY}")) == (2, 2)


def test_one_run_is_its_own_outcome() -> None:
    outcome = measure_dates("a_job", DAYS[:1], [], published, Progress(clock=lambda: 0), debug=False)
    assert outcome == Outcome(summary={**published(DAYS[0]).summary, "seconds": 0})
    with pytest.raises(BiasSparkError, match="gone"):
        measure_dates("a_job", DAYS[:1], [], failing({27: InputError("gone")}), Progress(), debug=False)
    assert measure_dates("a_job", DAYS[:1], DAYS[:1], published, Progress(), debug=False).summary["status"] == "skipped"
