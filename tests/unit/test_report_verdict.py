"""The verdict of a report: alerts, overrides, the run to compare with, and the worst identity."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import pytest

from biasspark.report.facts import NightFacts
from biasspark.report.ledger import BY_GATE, BY_HAND, earlier_nights, find_baseline, latest_runs, list_overrides
from biasspark.report.verdict import describe_changes, reach_verdict
from tests.report_rows import EMPTY, MODELS, NIGHT, SCRIPT, alert, with_alerts, write_undrawn


@pytest.mark.parametrize(
    ("outcomes", "outcome", "title"),
    [
        (["pass", "fail", "warn"], "fail", "The gate failed: 1 of 3 checks"),
        (["pass", "warn", "insufficient_evidence"], "warn", "The gate passed with warnings: 1 of 3 checks"),
        (["pass", "insufficient_evidence"], "insufficient_evidence", "Not enough evidence for 1 of 2 checks"),
        (["pass", "pass"], "pass", "The gate passed: all 2 checks"),
        (["pass"], "pass", "The gate passed: the only check"),
        ([], "no_gate", "No gate is configured"),
    ],
)
def test_the_worst_outcome_is_the_verdict(facts: NightFacts, outcomes: list[str], outcome: str, title: str) -> None:
    verdict = reach_verdict(with_alerts(facts, *map(alert, outcomes)))
    assert (verdict.outcome, verdict.title) == (outcome, title)
    assert [row["outcome"] for row in verdict.alerts][:1] == ([outcome] if outcomes else [])


def test_an_override_is_shown_for_its_own_run_alone(facts: NightFacts) -> None:
    own = {"accepted_run_id": "r_now", "reason": SCRIPT, "by": "Ada", "published_at": None}
    failed = with_alerts(facts, alert("fail"))
    shown = write_undrawn(replace(failed, overrides=[own]))
    assert "Accepted by hand" in shown
    assert reach_verdict(replace(failed, overrides=[own | {"accepted_run_id": "r_other"}])).override is None


def test_changes_are_values_whose_intervals_are_apart(facts: NightFacts) -> None:
    sentences, moves = describe_changes(facts)
    assert sentences[0].startswith("Since 14 January 2026 (the night before), ")
    assert {(move.identity, move.metric, move.worse) for move in moves} == {("black", "bpsn_auc", True)}
    assert [move.model for move in moves] == [MODELS[0]]
    assert "toxicity_1: overall AUC 0.930 (0.920 to 0.940), was 0.920 (0.920 to 0.940)." in sentences


def ran(
    run_id: str, day: int, status: str = "published", job: str = "bias_metrics", config: str = ""
) -> dict[str, Any]:
    """Give a row of the ledger; runs are published in the order of their ids."""
    published = datetime(2026, 1, 20, 0, int(run_id[1:]), tzinfo=UTC)
    row = {"run_id": run_id, "run_date": date(2026, 1, day), "status": status, "job": job, "config": config}
    return row | {"published_at": published, "started_at": published}


def accepts(run_id: str, own_id: str, reason: str = "known") -> dict[str, Any]:
    said = json.dumps({"accepted_run_id": run_id, "job": "bias_metrics", "reason": reason, "by": "Ada"})
    return ran(own_id, 15, "accepted", "accept_run", said)


TONIGHT = ran("r9", 15)


@pytest.mark.parametrize(
    ("ledger", "alerts", "found"),
    [
        ([], [], None),
        ([ran("r1", 13), ran("r2", 14)], [], ("r2", "the night before")),
        ([ran("r1", 13), ran("r2", 14), ran("r3", 14)], [], ("r3", "the night before")),
        ([ran("r1", 13), ran("r2", 14)], [alert("pass")], None),
        ([ran("r1", 13, "accepted"), ran("r2", 14)], [], ("r1", "the last accepted run")),
        ([ran("r1", 13, "accepted"), ran("r2", 14), ran("r3", 14, job="attribution")], [], ("r1", BY_GATE)),
        ([ran("r1", 13, "accepted"), ran("r2", 14), accepts("r2", "r3")], [], ("r2", BY_HAND)),
        ([ran("r1", 15, "accepted")], [alert("fail")], None),  # the night itself, run again since
        (
            [ran("r1", 13, "accepted"), ran("r2", 14, "accepted")],
            [alert("fail", baseline_run_id="r1")],
            ("r1", BY_GATE),
        ),
    ],
)
def test_a_night_is_compared_with_the_last_accepted_run(
    ledger: list[dict[str, Any]], alerts: list[dict[str, Any]], found: tuple[str, str] | None
) -> None:
    baseline = find_baseline([*ledger, TONIGHT], TONIGHT, alerts)
    assert (baseline and (baseline.row["run_id"], baseline.standing)) == found


def test_readers_see_the_latest_run_of_each_job_and_night() -> None:
    ledger = [ran("r1", 13), ran("r3", 14, "accepted"), ran("r2", 14), ran("r4", 15), TONIGHT, accepts("r2", "r5")]
    assert {job: row["run_id"] for job, row in latest_runs(ledger, NIGHT).items()} == {"bias_metrics": "r9"}
    assert [row["run_id"] for row in earlier_nights(ledger, TONIGHT, 30)] == ["r1", "r3"]
    assert [row["run_id"] for row in earlier_nights(ledger, TONIGHT, 1)] == ["r3"]


def test_what_was_said_last_of_a_run_counts() -> None:
    (override,) = list_overrides([accepts("r1", "r7", "second"), accepts("r1", "r6", "first"), ran("r1", 14)])
    assert (override["accepted_run_id"], override["reason"], override["by"]) == ("r1", "second", "Ada")


def test_the_verdict_names_an_identity_that_enough_rows_tell_of(facts: NightFacts) -> None:
    rows = [
        row | {"bpsn_auc": 0.2, "bpsn_auc_low": None} if row["identity"] == EMPTY else row
        for row in facts.rows("bias_metrics")
    ]
    page = write_undrawn(replace(facts, tables={**facts.tables, "bias_metrics": rows}))
    assert "Its worst identity with enough rows is <strong><bdi>gay</bdi></strong>" in page
    assert "1 identity with too few rows has a lower value." in page
    assert "<bdi>toxicity_<wbr>1</bdi>" in page


def test_the_verdict_looks_past_a_weak_metric_of_an_identity_to_its_others(facts: NightFacts) -> None:
    """The lowest of its AUCs rests on too few rows, the next lowest does not."""
    low = {"subgroup_auc": 0.1, "subgroup_auc_low": None, "bpsn_auc": 0.2, "bpsn_auc_low": 0.17, "bpsn_auc_high": 0.23}
    rows = [row | low if row["identity"] == "muslim" else row for row in facts.rows("bias_metrics")]
    page = write_undrawn(replace(facts, tables={**facts.tables, "bias_metrics": rows}))
    said = "with enough rows is <strong><bdi>muslim</bdi></strong>: <a [^>]*>BPSN AUC</a> <strong>0.200</strong>"
    assert re.search(said, page)
