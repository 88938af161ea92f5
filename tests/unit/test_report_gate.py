"""The top of a report: alerts, acceptances and the baseline."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from biasspark.config import parse_config
from biasspark.report.gate_summary import build_gate_summary, describe_changes
from biasspark.report.page import write_model_card
from biasspark.report.report_data import ReportData
from biasspark.workflows.write_report import (
    BY_GATE,
    BY_PERSON,
    RUN_BEFORE,
    find_baseline,
    latest_by_job,
    list_acceptances,
)
from tests.fixtures.made_up_report import (
    IMAGE,
    MODELS,
    RUN_DATE,
    SCRIPT,
    alert,
    comparison_alert,
    page_without_charts,
    with_rows,
)
from tests.harness.least_configuration import changed

OLD, NEW = MODELS
FEW, WARN = "insufficient_evidence", "warn"


@pytest.mark.parametrize(
    ("outcomes", "outcome", "words"),
    [
        (["pass", "fail", WARN], "fail", "failed: 1 of 3"),
        (["pass", WARN, FEW], WARN, "warnings: 1 of 3"),
        (["pass", FEW], FEW, "1 of 2"),
        (["pass", "pass"], "pass", "passed: all 2"),
        (["pass"], "pass", "passed: the only check"),
        ([], "no_gate", "No gate"),
    ],
)
def test_the_worst_outcome_decides(report: ReportData, outcomes: list[str], outcome: str, words: str) -> None:
    gate = build_gate_summary(with_rows(report, bias_alerts=list(map(alert, outcomes))))
    assert (gate.outcome, words in gate.title) == (outcome, True)
    assert [row["outcome"] for row in (*gate.broken, *gate.other_alerts)][:1] == ([outcome] if outcomes else [])


@pytest.mark.parametrize(
    ("outcomes", "outcome", "words"),
    [
        ([], "no_gate", ["no rule"]),
        (["pass"], "pass", ["only check", "hold"]),
        (["fail"], "fail", ["only check", "broken", "“floor 0”"]),
        (["fail", FEW, "pass"], "fail", ["1 of 3 checks is", "(rule “floor 0”)", "evidence for 1 more"]),
        (["fail", WARN, "pass"], "fail", ["1 of 3", "1 more is broken"]),
        ([WARN, WARN, "pass"], WARN, ["2 of 3 checks are", "(rules “floor 0”, “floor 1”)", "only warn"]),
        ([FEW] * 5, FEW, ["5 of 5 checks", "(rules “floor 0”, “floor 1”, “floor 2” and 2 more)"]),
    ],
)
def test_every_model_has_a_decision(report: ReportData, outcomes: list[str], outcome: str, words: list[str]) -> None:
    alerts = [alert(one, rule=f"floor {number}", model=NEW) for number, one in enumerate(outcomes)]
    data = with_rows(report, bias_alerts=[alert("pass"), *alerts])
    old, new = build_gate_summary(data).decisions
    assert (old.model, old.outcome, new.model, new.outcome) == (OLD, "pass", NEW, outcome)
    assert [word for word in words if word not in new.sentence] == []
    assert f"</bdi></span> {new.sentence}</span></li>" in page_without_charts(data)
    assert f": {NEW} {new.sentence}\n" in write_model_card(data).replace("\\", "")


@pytest.mark.parametrize("outcome", ["fail", WARN])
def test_without_evidence_nothing_is_called_broken(report: ReportData, outcome: str) -> None:
    rows = [alert(outcome, model=NEW) | {"decided": False}, alert("pass", model=NEW) | {"decided": True}]
    _, new = build_gate_summary(with_rows(report, bias_alerts=rows)).decisions
    assert (new.outcome, "1 of 2 checks" in new.sentence) == (outcome, True)
    assert "broken" not in new.sentence


def test_the_alerts_of_run_and_comparison_decide_together(report: ReportData) -> None:
    both = with_rows(report, bias_alerts=[alert("pass")], comparison_alerts=[comparison_alert("fail", identity=IMAGE)])
    gate = build_gate_summary(both)
    assert (gate.outcome, "1 of 2" in gate.title) == ("fail", True)
    assert [row["rule"] for row in (*gate.broken, *gate.other_alerts)] == ["no worse", "bpsn floor"]
    page = page_without_charts(both)
    assert "<small>against <bdi>toxicity_1</bdi></small>" in page
    assert "−0.040<small>−.060 to −.020</small>" in page  # what the bound is on
    assert IMAGE not in page


def test_alerts_that_are_not_shown_are_counted(report: ReportData) -> None:
    counts = {"bias_alerts": {(OLD, "fail"): 903, (NEW, "pass"): 97}}
    gate = build_gate_summary(replace(with_rows(report, bias_alerts=[alert("fail")]), counts=counts))
    assert (gate.n_hidden, "903 of 1,000" in gate.title) == (800, True)
    assert ["903 of 903" in gate.decisions[0].sentence, "97" in gate.decisions[1].sentence] == [True, True]


def test_a_gate_without_an_alert_is_not_called_missing(report: ReportData) -> None:
    gate = build_gate_summary(replace(report, run=report.run | {"config": '{"gate": {"alpha": 0.05}}'}))
    assert (gate.outcome, "configured" in gate.title) == ("no_gate", False)


def test_a_run_without_a_baseline_says_whether_earlier_dates_have_runs(report: ReportData) -> None:
    hidden = replace(report, history=(), baseline=None)
    notes = {runs: describe_changes(replace(hidden, has_earlier_runs=runs))[0] for runs in (False, True)}
    assert [["published" in note for note in notes[runs]] for runs in (False, True)] == [[True], [False]]
    assert "first" not in str(notes)  # a date may be measured again, or after later ones


def test_rules_go_by_their_adjusted_p_values(report: ReportData) -> None:
    p_values = {"floor 0": 0.02, "floor 1": 0.03, "floor 2": 0.0, "floor 3": None, "floor 4": 0.01}
    alerts = [alert("fail", rule=rule, p_violation_adjusted=p, model=NEW) for rule, p in p_values.items()]
    alerts.append(alert("fail", rule="floor 2", identity="(overall)", value=None, p_violation_adjusted=0.0, model=NEW))
    gate = build_gate_summary(
        with_rows(report, bias_alerts=[*alerts, alert("pass", p_violation_adjusted=0.0, model=NEW)])
    )
    assert "“floor 2”, “floor 4”, “floor 0” and 2 more" in gate.decisions[-1].sentence
    assert [(row["rule"][-1], row["value"] is None) for row in gate.broken] == [
        *(("2", True), ("2", False), ("4", False), ("0", False), ("1", False), ("3", False))
    ]


def test_broken_rules_come_before_the_other_checks(report: ReportData) -> None:
    alerts = [alert("pass"), alert(FEW, message="nobody knows", value=None), *[alert(WARN)] * 20]
    data = with_rows(report, bias_alerts=alerts)
    gate, page = build_gate_summary(data), page_without_charts(data)
    assert (len(gate.broken), len(gate.other_alerts), {row["outcome"] for row in gate.broken}) == (20, 10, {WARN})
    assert page.index("The worst of the rules") < page.index("The other checks")
    assert '<small class="why"><bdi>nobody knows</bdi></small>' in page


def test_an_alert_that_only_the_many_checks_of_its_rule_leave_undecided_has_its_message(report: ReportData) -> None:
    alone = alert(FEW, p_violation=0.02, p_violation_adjusted=0.2, message="by itself below")
    between = alert(FEW, p_violation=0.2, p_violation_adjusted=0.3, message="between")
    warning = alone | {"outcome": WARN, "decided": False, "message": "counts as a warning"}
    page = page_without_charts(with_rows(report, bias_alerts=[alone, between, warning]))
    assert '<small class="why"><bdi>by itself below</bdi></small>' in page
    assert '<small class="why"><bdi>counts as a warning</bdi></small>' in page
    assert '<small class="why"><bdi>between' not in page
    assert "<td>violated 0.200<small>kept 0.900</small></td>" in page


def test_a_rule_on_a_rate_or_its_gap_names_its_threshold_and_its_definition(report: ReportData) -> None:
    ends = {"threshold": 0.8, "value_low": 0.16, "value_high": 0.33}
    alerts = [
        {"metric": "fnr", "value": 0.2413, "bound": 0.2} | ends,
        {"metric": "tpr", "threshold": 0.8, "bound_kind": "max_drop", "bound": 0.02, "change": -0.1},
        {"metric": "precision_gap", "threshold": 0.8, "value": -0.3, "bound": 0.2},
        {"metric": "fpr_gap", "value": 0.24, "bound": 0.1} | ends,
    ]
    page = page_without_charts(with_rows(report, bias_alerts=[alert("fail", **values) for values in alerts]))
    for metric, title in {"fnr": "FNR", "tpr": "TPR", "precision-gap": "Precision gap", "fpr-gap": "FPR gap"}.items():
        assert f'<a class="def" href="#def-threshold-rates-{metric}">{title}</a> at 0.8</small>' in page
        assert f'id="def-threshold-rates-{metric}"' in page
    assert [text for text in (">0.241<small>", ">−0.100</td>", ">+0.240<", "max drop") if text not in page] == []


def test_bounds_and_thresholds_have_all_their_digits(report: ReportData) -> None:
    page = page_without_charts(with_rows(report, bias_alerts=[alert("fail", threshold=1234567.5, bound=0.9123456)]))
    assert [text for text in (" at 1234567.5</small>", "<td>0.9123456<small>min") if text not in page] == []


@pytest.mark.parametrize(
    ("job", "table", "n"), [("attribution", "loss_by_segment", 0), ("compare_models", "model_comparisons", 1)]
)
def test_identities_of_other_jobs_matter_if_the_job_has_any(job: str, table: str, n: int) -> None:
    now, then = (parse_config(changed(identities={"threshold": at}), Path()).json for at in (0.8, 0.5))
    report = ReportData(tables={table: []}, run={"config": now}, configs={job: json.loads(then)})
    assert len(report.describe_other_settings()) == n


def test_an_acceptance_is_shown_for_its_own_run_alone(report: ReportData) -> None:
    row = {"accepts_run_id": "r_now", "acceptance_note": SCRIPT, "accepted_by": "Ada", "published_at": None}
    failed = with_rows(report, bias_alerts=[alert("fail")])
    assert "Accepted by hand" in page_without_charts(replace(failed, acceptances=[row]))
    assert build_gate_summary(replace(failed, acceptances=[row | {"accepts_run_id": "r_other"}])).acceptance is None


def test_changes_are_values_whose_intervals_are_apart(report: ReportData) -> None:
    notes, changes = describe_changes(report)
    assert ["14 January 2026" in notes[0], RUN_BEFORE in notes[0]] == [True, True]
    assert [(change.model, change.identity, change.metric, change.worse) for change in changes] == [
        (OLD, "black", "bpsn_auc", True)
    ]
    assert f"changes since {RUN_BEFORE}, " in page_without_charts(report)
    assert any("0.930 (0.920 to 0.940)" in note and "0.920 (0.920 to 0.940)" in note for note in notes)


# ---- the ledger


def ran(run_id: str, day: int, status: str = "published", job: str = "bias_metrics") -> dict[str, Any]:
    """Return a row of the ledger; runs are published in the order of their ids."""
    published = datetime(2026, 1, 20, 0, int(run_id[1:]), tzinfo=UTC)
    row = {"run_id": run_id, "run_date": date(2026, 1, day), "status": status, "job": job, "accepts_run_id": None}
    return row | {"published_at": published, "started_at": published, "copied_from_run_id": None}


def accepts(run_id: str, acceptance_id: str, note: str = "known") -> dict[str, Any]:
    row = ran(acceptance_id, 15, "accepted", "accept_run")
    return row | {"accepts_run_id": run_id, "accepted_by": "Ada", "acceptance_note": note}


THIS_RUN = ran("r9", 15)


@pytest.mark.parametrize(
    ("ledger", "baseline_ids", "has_gate", "expected"),
    [
        ([], [], False, None),
        ([ran("r1", 13), ran("r2", 14)], [], False, ("r2", RUN_BEFORE)),
        ([ran("r1", 13), ran("r2", 14), ran("r3", 14)], [], False, ("r3", RUN_BEFORE)),
        ([ran("r1", 13), ran("r2", 14)], [None], True, None),
        ([ran("r1", 13, "accepted"), ran("r2", 14)], [], False, ("r1", BY_GATE)),
        ([ran("r1", 13, "accepted"), ran("r2", 14), accepts("r2", "r3")], [], False, ("r2", BY_PERSON)),
        ([ran("r1", 13, "accepted"), ran("r2", 14, "accepted")], ["r1"], True, ("r1", BY_GATE)),
        ([ran("r1", 13), ran("r2", 13) | {"copied_from_run_id": "r1"}, ran("r3", 14)], ["r1"], True, ("r2", BY_GATE)),
    ],
)
def test_a_date_is_compared_with_the_last_accepted_run(
    ledger: list[dict[str, Any]], baseline_ids: list[str], has_gate: bool, expected: tuple[str, str] | None
) -> None:
    before = [row for row in ledger if row["job"] == "bias_metrics"]
    baseline, label = find_baseline([*ledger, THIS_RUN], before, baseline_ids, has_gate)
    assert (baseline and (baseline["run_id"], label)) == expected


def test_readers_see_the_latest_run_of_each_job() -> None:
    ledger = [ran("r1", 13), ran("r3", 14, "accepted"), ran("r2", 14), ran("r4", 15), THIS_RUN, accepts("r2", "r5")]
    assert {job: row["run_id"] for job, row in latest_by_job(ledger, RUN_DATE).items()} == {"bias_metrics": "r9"}


def test_the_last_acceptance_of_a_run_counts() -> None:
    """One of a run that was never published is left out."""
    rows = [accepts("r1", "r7", "second"), accepts("r1", "r6", "first"), ran("r1", 14), accepts("copy", "r8")]
    (acceptance,) = list_acceptances(rows)
    assert (acceptance["accepts_run_id"], acceptance["acceptance_note"]) == ("r1", "second")


def test_an_acceptance_without_a_name_and_a_reason(report: ReportData) -> None:
    unnamed = accepts("r_now", "r7") | {"acceptance_note": None, "accepted_by": None}
    acceptances = list_acceptances([ran("r1", 15) | {"run_id": "r_now"}, unnamed])
    failed = replace(with_rows(report, bias_alerts=[alert("fail")]), acceptances=acceptances)
    for text in (write_model_card(failed), page_without_charts(failed)):
        assert "someone" in text
        assert "no reason given" in text
