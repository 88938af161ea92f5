"""Rows of the ledger: visible and accepted runs. No JVM is started."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from biasspark.errors import BiasSparkError, InputError, PublishConflict
from biasspark.tables.ledger import (
    find_published,
    list_accepted,
    list_configurations,
    list_published,
    refuse_conflict,
)
from biasspark.tables.runs import Run
from biasspark.tables.schemas import BIAS_RUNS, U_STATISTICS
from biasspark.tables.store import Store

RUN_DATE = date(2026, 1, 15)
JOB = "bias_metrics"
SPARK = cast("SparkSession", None)
"""Nothing here asks it."""


def at(second: int) -> datetime:
    return datetime(2026, 2, 1, 3, 0, second, tzinfo=UTC)


def row(run_id: str, second: int, day: int = 0, **columns: Any) -> dict[str, Any]:
    published = {"run_date": RUN_DATE + timedelta(days=day), "corpus": "civil", "job": JOB, "status": "published"}
    published |= {"run_id": run_id, "started_at": at(second), "published_at": at(second), "config": "{}"}
    return published | {"n_rows": second, "n_rejected": 0, "rejects": []} | columns


class Ledger:
    """A store with a ledger only."""

    root = "warehouse"
    n_read = 0

    def __init__(self, *rows: dict[str, Any]) -> None:
        self.rows = pa.Table.from_pylist(list(rows), BIAS_RUNS.full_arrow_schema)

    def read_ledger(self, spark: SparkSession, first: date = date.min, last: date = date.max) -> pa.Table:
        read = self.rows.filter((pc.field("run_date") >= first) & (pc.field("run_date") <= last))
        self.n_read += len(read)
        return read


def ledger(*rows: dict[str, Any]) -> Store:
    return cast("Store", Ledger(*rows))


def a_run(day: int = 9, second: int = 5) -> Run:
    return Run(RUN_DATE + timedelta(days=day), "civil", JOB, "r_new", at(second))


def test_readers_see_the_run_published_last() -> None:
    store = ledger(row("a", 2), row("b", 1), row("c", 3, corpus="wiki"), row("d", 3, job="attribution"))
    assert find_published(SPARK, store, JOB, RUN_DATE, "civil").run_id == "a"
    assert find_published(SPARK, ledger(row("a", 1), row("b", 1)), JOB, RUN_DATE, "civil").run_id == "b"


def test_what_is_missing_is_named_with_what_is_there() -> None:
    store = ledger(row("a", 1, 1), row("b", 2, 2), row("c", 3, corpus='wi"ki'))
    with pytest.raises(InputError) as caught:
        find_published(SPARK, store, JOB, RUN_DATE, "civil")
    assert all(part in str(caught.value) for part in ("2026-01-17, 2026-01-16", '"wi\\"ki"', "warehouse"))
    with pytest.raises(InputError) as caught:
        find_published(SPARK, ledger(), JOB, RUN_DATE, "civil")
    assert "biasspark measure" in str(caught.value)
    assert "none" not in str(caught.value)


def test_dates_have_their_latest_run_and_its_counts() -> None:
    rejects = [("null_id", 2)]
    store = ledger(row("a", 1, 1), row("b", 2, 1, rejects=rejects, n_rejected=2), row("c", 3), row("d", 4, 5))
    published = list_published(SPARK, store, JOB, "civil", (RUN_DATE, RUN_DATE + timedelta(days=4)))
    counts = [(row["run_id"], row["n_rows"], row["n_rejected"]) for row in published.values()]
    assert counts == [("c", 3, 0), ("b", 2, 2)]
    assert published[RUN_DATE + timedelta(days=1)]["rejects"] == {"null_id": 2}


def test_configurations_come_with_their_last_run_the_last_first() -> None:
    store = ledger(row("a", 1), row("b", 2, 1, config='{"x": 1}'), row("c", 3, 2), row("e", 0, config=None))
    configurations = [(config, run.run_id) for config, run in list_configurations(SPARK, store, JOB, "civil")]
    assert configurations == [({}, "c"), ({"x": 1}, "b"), ({}, "e")]


def test_accepted_runs_are_those_of_a_gate_or_a_person_of_each_earlier_date_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = ledger(
        row("a", 1, status="accepted"),
        row("b", 2, status="accepted", config='{"x": 1}', table_rows=[("u_statistics", 3)]),
        row("c", 3),
        row("d", 4, 1),
        row("e", 5, 1),
        row("f", 6, 2),
        row("of_d", 7, 1, job="accept_run", status="accepted", accepts_run_id="d"),
        row("of_f", 8, 2, job="accept_run", status="accepted", accepts_run_id="f"),
        row("g", 9, 9, status="accepted"),
        row("h", 9, 3, status="accepted", corpus="wiki"),
    )
    accepted = list_accepted(SPARK, store, a_run())
    assert [run.run_id for run in accepted] == ["f", "d", "b"]
    monkeypatch.setattr("biasspark.tables.ledger.MAX_BASELINES", 2)
    assert [run.run_id for run in list_accepted(SPARK, store, a_run())] == ["f", "d"]
    assert [*accepted.values()][-1] == {"x": 1}
    assert [run.wrote(U_STATISTICS) for run in accepted] == [False, False, True]


@pytest.mark.parametrize("share", [0.02, 0.4, 0.9])
def test_accepted_runs_of_years_published_in_any_order(share: float) -> None:
    """Dates are run again, accepted later by a person, and measured long after."""
    random = Random(1)
    rows = []
    for n in range(1500):
        day, time = random.randrange(800), random.randrange(60)
        status = "accepted" if random.random() < share else "published"
        rows.append(row(f"r{n}", time, day, status=status, corpus=random.choice(["civil", "civil", "wiki"])))
        if random.random() < share / 2:
            accepted = {"job": "accept_run", "status": "accepted", "accepts_run_id": f"r{n}"}
            rows.append(row(f"a{n}", random.randrange(60), day, corpus=rows[-1]["corpus"], **accepted))
    accepted_ids = {each.get("accepts_run_id") or each["run_id"] for each in rows if each["status"] == "accepted"}
    for day in (0, 100, 400, 1000):
        latest = {}
        for each in sorted(rows, key=lambda row: (row["published_at"], row["run_id"])):
            if (each["job"], each["corpus"]) == (JOB, "civil") and each["run_id"] in accepted_ids:
                latest[each["run_date"]] = each["run_id"]
        days = sorted((date for date in latest if date < RUN_DATE + timedelta(days=day)), reverse=True)
        assert [run.run_id for run in list_accepted(SPARK, ledger(*rows), a_run(day))] == [latest[d] for d in days[:60]]


def test_a_run_reads_no_more_of_a_ledger_of_years() -> None:
    store = ledger(*(row(f"r{day}", 1, day, status="accepted") for day in range(2000)))
    assert len(list_accepted(SPARK, store, a_run(day=2000))) == 60
    assert cast("Ledger", store).n_read == 120


def test_a_run_gives_way_to_one_that_came_to_the_ledger_since_it_started() -> None:
    run = a_run(day=0, second=5)
    assert [one["run_id"] for one in refuse_conflict(SPARK, ledger(row("a", 1), row("b", 5)), run)] == ["a", "b"]
    with pytest.raises(PublishConflict, match="run b of bias_metrics"):
        refuse_conflict(SPARK, ledger(row("a", 1), row("b", 6)), run)
    for harmless in (
        {"corpus": "wiki"},
        {"job": "attribution"},
        {"window_start": RUN_DATE},
        {"copied_from_run_id": "a"},
    ):
        refuse_conflict(SPARK, ledger(row("a", 1), row("b", 6, **harmless)), run)
    with pytest.raises(BiasSparkError, match=r"r_new .*already"):
        refuse_conflict(SPARK, ledger(row("r_new", 6)), run)
