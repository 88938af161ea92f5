"""Outcomes of a rule on what a run measured, against SciPy, and what its alerts say."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from biasspark.comparison.differences import PairedMetric
from biasspark.config import Gate, Rule
from biasspark.gate.alerts import Alert, EvaluatedRow, Measured, alerts_table, evaluate_rule
from biasspark.tables.schemas import BIAS_ALERTS
from tests.oracle.intervals import logit_interval

RUN = "r1"
NO_EVIDENCE = "insufficient_evidence"


def rule_of(**changes: Any) -> Rule:
    return Rule(**({"name": "floor", "metric": "bpsn_auc", "models": ("m",)} | changes))


def auc_of(auc: float, offset: float = 0.0, variance: float = 1e-4, n: int = 2000) -> Measured:
    value, low, high = (end - offset for end in (auc, *logit_interval(auc, variance)))
    evidence = (auc, variance, n, n, True)
    return Measured(key=("m", "all", "", "", None), value=value, low=low, high=high, evidence=evidence)


def row_of(identity: str, now: Measured | float | None, before: Measured | float | None = None) -> EvaluatedRow:
    first, second = (auc_of(one) if isinstance(one, float) else one for one in (now, before))
    return EvaluatedRow(("m", "all", identity), first, second and replace(second, run_id=RUN))


def gaps_of(identity: str, now: float, before: float | None = None) -> EvaluatedRow:
    """Gaps, as AUCs."""
    return row_of(identity, auc_of(now, 0.5), before and auc_of(before, 0.5))


def without_value(identity: str, reason: str) -> EvaluatedRow:
    return row_of(identity, Measured(key=("m", "all", identity, "", None), reason=reason))


def evaluate(rule: Rule, *rows: EvaluatedRow, level: float = 0.95, **gate: Any) -> dict[str, Alert]:
    alerts = evaluate_rule(rule, rows, Gate(**gate), level, ())
    by_identity = {alert.identity: alert for alert in alerts}
    assert len(by_identity) == len(alerts)
    return by_identity


def outcomes(alerts: dict[str, Alert]) -> dict[str, str]:
    return {name: alert.outcome for name, alert in alerts.items()}


def oracle_p(auc: float, bound: float, variance: float = 1e-4) -> float:
    """Of violation of a minimum, by the logit."""
    z = (math.log(auc / (1 - auc)) - math.log(bound / (1 - bound))) * auc * (1 - auc) / math.sqrt(variance)
    return float(stats.norm.cdf(z))


def test_p_values_are_adjusted_over_the_rows_of_the_rule_both_ways() -> None:
    aucs = {"a": 0.70, "b": 0.778, "c": 0.80, "d": 0.823, "e": 0.9}
    alerts = evaluate(rule_of(min=0.8), *(row_of(name, auc) for name, auc in reversed(aucs.items())))
    assert list(alerts) == list(aucs)
    violation = np.array([oracle_p(auc, 0.8) for auc in aucs.values()])
    for side, expected in (("violation", violation), ("compliance", 1 - violation)):
        p_values = [getattr(alert, f"p_{side}") for alert in alerts.values()]
        assert p_values == pytest.approx(expected.tolist(), abs=1e-12)
        adjusted = [getattr(alert, f"p_{side}_adjusted") for alert in alerts.values()]
        assert adjusted == pytest.approx(stats.false_discovery_control(expected).tolist(), abs=1e-12)
    assert [alert.outcome for alert in alerts.values()] == ["fail", "fail", NO_EVIDENCE, "pass", "pass"]


def test_one_lucky_row_among_many_fails_nothing() -> None:
    """0.778 alone is shown to be below 0.8; as the lowest of a hundred it is not."""
    assert evaluate(rule_of(min=0.8), row_of("a", 0.778))["a"].outcome == "fail"
    lucky = evaluate(rule_of(min=0.8), row_of("a", 0.778), *(row_of(f"b{n}", 0.801) for n in range(99)))
    assert lucky["a"].outcome == NO_EVIDENCE
    assert "100 tests" in lucky["a"].message
    assert "tests" not in lucky["b1"].message


def test_a_rule_may_only_warn() -> None:
    alert = evaluate(rule_of(min=0.8, severity="warn"), row_of("a", 0.6))["a"]
    (row,) = alerts_table(BIAS_ALERTS, [alert]).to_pylist()
    assert (row["outcome"], row["severity"], row["bound_kind"], row["bound"]) == ("warn", "warn", "min", 0.8)


def test_a_gap_is_compared_with_its_bound_as_a_gap() -> None:
    alerts = evaluate(rule_of(metric="negative_aeg", max_abs=0.1), gaps_of("a", 0.35), gaps_of("b", 0.52))
    assert outcomes(alerts) == {"a": "fail", "b": "pass"}
    low, high = (end - 0.5 for end in logit_interval(0.35, 1e-4))
    shifted = alerts["a"]
    assert (shifted.value, shifted.value_low, shifted.value_high) == pytest.approx((-0.15, low, high), abs=1e-12)
    assert "-0.1500" in shifted.message
    for bound, outcome in (({"min": -0.1}, "fail"), ({"max": -0.1}, "pass")):
        assert evaluate(rule_of(metric="positive_aeg", **bound), gaps_of("a", 0.35))["a"].outcome == outcome


# ---- changes


def test_a_change_is_measured_from_the_last_accepted_run() -> None:
    rows = [row_of("fell", 0.7, 0.8), row_of("near", 0.79, 0.8), row_of("rose", 0.85, 0.8), row_of("new", 0.5)]
    alerts = evaluate(rule_of(max_drop=0.02), *rows)
    assert outcomes(alerts) == {"fell": "fail", "near": NO_EVIDENCE, "new": NO_EVIDENCE, "rose": "pass"}
    fell = alerts["fell"]
    assert (fell.baseline_run_id, fell.baseline_value, fell.paired) == (RUN, 0.8, False)
    assert stats.norm.isf(fell.p_violation) == pytest.approx((0.1 - 0.02) / math.sqrt(2e-4), rel=0.05)
    (low, high), (low_before, high_before) = (logit_interval(auc, 1e-4) for auc in (0.7, 0.8))
    ends = (-0.1 - math.hypot(0.7 - low, high_before - 0.8), -0.1 + math.hypot(high - 0.7, 0.8 - low_before))
    assert (fell.change, fell.change_low, fell.change_high) == pytest.approx((-0.1, *ends), abs=1e-12)
    assert "after 0.8000 in r1" in fell.message
    assert (alerts["new"].p_violation, alerts["new"].baseline_run_id) == (None, None)


def test_a_gap_rises_when_it_moves_away_from_0_to_either_side() -> None:
    rows = [gaps_of("turned", 0.4, 0.6), gaps_of("grew", 0.35, 0.55), gaps_of("shrank", 0.5, 0.65)]
    alerts = evaluate(rule_of(metric="positive_aeg", max_rise=0.02), *rows)
    assert outcomes(alerts) == {"grew": "fail", "shrank": "pass", "turned": NO_EVIDENCE}
    assert [alert.change for alert in alerts.values()] == pytest.approx([0.1, -0.15, 0])
    for alert in alerts.values():
        assert alert.change_low <= alert.change <= alert.change_high  # type: ignore[operator]


# ---- runs that are paired by id


def by_id(identity: str, auc: float, before: float, sd: float = 0.005, n: int = 2000) -> EvaluatedRow:
    """Runs of which the same ids tell that their difference has this standard error."""
    paired = PairedMetric(
        n_low=n, n_high=n, value=auc, baseline_value=before, difference_variance=sd**2, sum_variance=4e-4
    )
    return row_of(identity, auc, before)._replace(paired=paired)


def test_a_change_is_tested_by_the_ids_that_both_runs_have() -> None:
    rows = [
        by_id("fell", 0.765, 0.8),
        by_id("near", 0.775, 0.8),
        by_id("same", 0.8, 0.8, 0),
        by_id("few", 0.7, 0.8, n=9),
    ]
    paired = evaluate(rule_of(max_drop=0.02), *rows)
    added = evaluate(rule_of(max_drop=0.02), *(row._replace(paired=None) for row in rows))
    assert {name: (alert.paired, alert.outcome) for name, alert in paired.items()} == {
        "fell": (True, "fail"), "near": (True, NO_EVIDENCE), "same": (True, "pass"), "few": (False, "fail"),
    }  # fmt: skip
    assert {alert.paired for alert in added.values()} == {False}
    assert outcomes(added) == {"few": "fail", "fell": NO_EVIDENCE, "near": NO_EVIDENCE, "same": NO_EVIDENCE}
    fell, half = paired["fell"], stats.norm.ppf(0.975) * 0.005
    assert (fell.p_violation, fell.p_compliance) == pytest.approx((stats.norm.sf(3), stats.norm.cdf(3)), abs=1e-12)
    assert (fell.change, fell.change_low, fell.change_high) == pytest.approx((-0.035, -0.035 - half, -0.035 + half))
    assert "paired by id" in fell.message
    assert (paired["same"].p_violation, paired["same"].p_compliance) == pytest.approx((1, 0.98**2000))


def test_runs_that_are_alike_on_too_few_rows_are_undecided() -> None:
    rows = [by_id("few", 0.8, 0.8, 0, n=30), by_id("many", 0.8, 0.8, 0, n=500), by_id("varied", 0.8, 0.8, n=30)]
    alerts = evaluate(rule_of(max_drop=0.02), *rows)
    assert {name: (alert.outcome, "alike" in alert.message) for name, alert in alerts.items()} == {
        "few": (NO_EVIDENCE, True), "many": ("pass", False), "varied": (NO_EVIDENCE, False),
    }  # fmt: skip
    nothing = evaluate(rule_of(max_drop=0.0), rows[0])["few"]  # no number of rows shows that nothing changed
    assert (nothing.outcome, "alike" in nothing.message) == (NO_EVIDENCE, False)


def test_ids_tell_nothing_of_a_bound_on_the_value_nor_of_a_metric_without_one() -> None:
    row = by_id("a", 0.7, 0.8)
    alerts = evaluate(rule_of(min=0.75), row)
    assert alerts == evaluate(rule_of(min=0.75), row._replace(paired=None))
    assert alerts["a"].paired is None
    unknown = row._replace(now=Measured(key=("m", "all", "a", "bpsn_auc", None)))
    assert evaluate(rule_of(max_drop=0.02), unknown)["a"].paired is None


def test_of_gaps_near_0_the_size_alone_shows_that_the_bound_is_kept() -> None:
    """Both gaps may have either sign, so their sum counts, of which the variance is four times that of either."""
    ends = ((-0.015, 0.025), (-0.01, 0.03))
    paired_metric = PairedMetric(500, 400, 0.005, 0.01, difference_variance=1e-6, sum_variance=4e-4, intervals=ends)
    row = gaps_of("a", 0.505, 0.51)._replace(paired=paired_metric)
    paired = evaluate(rule_of(metric="negative_aeg", max_rise=0.04), row)["a"]
    alone = evaluate(rule_of(metric="negative_aeg", max_abs=0.04), row)["a"]
    assert (paired.paired, paired.outcome, paired.p_compliance) == (True, "pass", alone.p_compliance)
    assert (paired.change_low, paired.change_high) == pytest.approx((-0.03, 0.025))  # what both intervals allow


def test_without_a_value_an_interval_or_a_baseline_there_is_no_evidence() -> None:
    single = Measured(key=("m", "all", "b", "bpsn_auc", None), value=0.75)
    alerts = evaluate(rule_of(min=0.8), without_value("a", "withheld"), row_of("b", single))
    alerts |= evaluate(rule_of(max_drop=0.1), row_of("c", 0.5))
    assert {(alert.outcome, alert.p_violation) for alert in alerts.values()} == {(NO_EVIDENCE, None)}
    for name, words in {"a": "withheld", "b": "fewer than two rows", "c": "no accepted run"}.items():
        assert words in alerts[name].message


def test_what_a_rule_names_and_a_run_lacks_is_no_pass() -> None:
    rule = rule_of(min=0.8, identities=("a", "b"), models=("m", "n"))
    alerts = evaluate_rule(rule, [row_of("a", 0.95)], Gate(), 0.95, ())
    assert [(alert.model, alert.identity, alert.outcome) for alert in alerts] == [
        ("m", "a", "pass"), ("m", "b", NO_EVIDENCE), ("n", "a", NO_EVIDENCE), ("n", "b", NO_EVIDENCE),
    ]  # fmt: skip
    assert "did not measure it" in alerts[1].message
    assert outcomes(evaluate(rule_of(min=0.8))) == {"(overall)": NO_EVIDENCE}


@pytest.mark.parametrize(("insufficient", "outcome"), [("pass", NO_EVIDENCE), ("warn", "warn"), ("fail", "fail")])
@pytest.mark.parametrize("severity", ["fail", "warn"])
def test_insufficient_evidence_counts_as_the_configuration_says(insufficient: str, outcome: str, severity: str) -> None:
    """Whatever the severity of the rule, and also for the worst identity."""
    rows = [row_of("a", 0.9), row_of("b", 0.8), without_value("c", "withheld")]
    alerts = evaluate(rule_of(min=0.8, worst=True, severity=severity), *rows, insufficient=insufficient)
    assert {name: (alert.outcome, alert.decided) for name, alert in alerts.items()} == {
        "a": ("pass", True), "b": (outcome, False), "c": (outcome, False), "(overall)": (outcome, False),
    }  # fmt: skip


# ---- the worst identity


@pytest.mark.parametrize(
    ("aucs", "outcome", "words"),
    [
        ((0.9, 0.91), "pass", ["all 2"]),
        ((0.9, 0.8), NO_EVIDENCE, ["1 of 2 identities (b)"]),
        ((0.9, 0.8, 0.7), "fail", ["broken by 1 of 3 identities (c)", "undecided for 1 of 3 identities (b)"]),
        ((0.6, 0.6, 0.6, 0.6), "fail", ["4 of 4 identities (a, b, c, ...)"]),
    ],
)
def test_the_worst_identity_fails_where_any_does_and_passes_where_all_do(
    aucs: tuple[float, ...], outcome: str, words: list[str]
) -> None:
    rows = [row_of(name, auc) for name, auc in zip("abcd", aucs, strict=False)]
    alerts = evaluate(rule_of(min=0.8, worst=True), *rows)
    worst = alerts.pop("(overall)")
    rule = rule_of(min=0.8)
    assert {name: replace(alert, rule=rule) for name, alert in alerts.items()} == evaluate(rule, *rows)
    assert (worst.outcome, worst.value) == (outcome, None)
    assert [part for part in words if part not in worst.message] == []
    assert worst.p_violation_adjusted == min(alert.p_violation_adjusted or 0 for alert in alerts.values())
    assert worst.p_compliance_adjusted == max(alert.p_compliance_adjusted or 0 for alert in alerts.values())


def test_the_worst_identity_names_the_run_only_where_all_are_compared_with_one() -> None:
    rows = [row_of("a", 0.9, 0.9), row_of("b", 0.9, 0.9)]
    other = [rows[0], rows[1]._replace(before=replace(rows[1].before, run_id="r0"))]  # type: ignore[type-var]
    rule = rule_of(max_drop=0.1, worst=True)
    assert [alert.baseline_run_id for alert in evaluate(rule, *rows).values()] == [RUN] * 3
    assert [alert.baseline_run_id for alert in evaluate(rule, *other).values()] == [RUN, "r0", None]
