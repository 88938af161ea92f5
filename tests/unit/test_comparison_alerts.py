"""Rules of the gate on a model and its baseline: which rows they are on, outcomes, and what alerts say."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest
from scipy.stats import false_discovery_control, norm

from biasspark.comparison.differences import PairedMetric
from biasspark.comparison.model_comparisons import ComparedPair
from biasspark.config import Gate, Rule
from biasspark.gate.alerts import Alert, EvaluatedRow, RuleEvaluation, alerts_table, comparison_alerts, evaluate_rule
from biasspark.tables.schemas import COMPARISON_ALERTS

RULE = Rule(name="no worse", metric="bpsn_auc", models=("new",), baseline="old", max_drop=0.02)
NO_RULES = Gate()
NO_EVIDENCE = "insufficient_evidence"


def paired_of(change: float | None, n: int = 500, **changes: Any) -> PairedMetric:
    value = None if change is None else 0.8 + change
    paired = PairedMetric(
        n_low=n, n_high=9 * n, value=value, baseline_value=value and 0.8, difference_variance=1e-4, sum_variance=3e-4
    )
    return paired._replace(**changes)


def evaluate(rule: Rule = RULE, missing: Collection[str] = (), gate: Gate = NO_RULES, **pairs: Any) -> list[Alert]:
    evaluation = RuleEvaluation(rule, gate, 0.95, missing)
    return evaluate_rule(evaluation, [EvaluatedRow(("new", "all", name), paired=pair) for name, pair in pairs.items()])


def test_p_values_are_adjusted_over_the_rows_of_the_rule() -> None:
    changes = {"a": -0.08, "b": -0.038, "c": -0.02, "d": 0.0, "e": 0.03}
    pairs: Any = {name: paired_of(change) for name, change in reversed(changes.items())}
    alerts = evaluate(RULE, **pairs)
    assert [alert.identity for alert in alerts] == list(changes)
    violation = norm.cdf([(change + 0.02) / 0.01 for change in changes.values()])
    for found, expected in (
        ([alert.p_violation for alert in alerts], violation),
        ([alert.p_violation_adjusted for alert in alerts], false_discovery_control(violation)),
        ([alert.p_compliance_adjusted for alert in alerts], false_discovery_control(1 - violation)),
    ):
        assert found == pytest.approx(expected.tolist(), abs=1e-12)
    assert [alert.outcome for alert in alerts] == ["fail", NO_EVIDENCE, NO_EVIDENCE, NO_EVIDENCE, "pass"]
    assert evaluate(b=paired_of(-0.038))[0].outcome == "fail"  # alone it is shown
    assert evaluate(replace(RULE, severity="warn"), a=paired_of(-0.2))[0].outcome == "warn"


@pytest.mark.parametrize("missing", ["new", "old"])
def test_without_the_scores_of_either_model_every_row_fails(missing: str) -> None:
    alerts = evaluate(missing={missing}, a=paired_of(None, 0), c=paired_of(0.05))
    assert [(alert.outcome, f"model {missing} " in alert.message) for alert in alerts] == [("fail", True)] * 2


def test_insufficient_evidence_counts_as_the_configuration_says() -> None:
    alerts = evaluate(gate=Gate(insufficient="warn"), a=paired_of(0.05), b=paired_of(-0.02))
    assert [(alert.outcome, alert.decided) for alert in alerts] == [("pass", True), ("warn", False)]


def test_alerts_have_both_values_and_the_change() -> None:
    (worse,) = evaluate(a=paired_of(-0.08))
    (row,) = alerts_table(COMPARISON_ALERTS, [[worse]]).to_pylist()
    assert (row["baseline_model"], row["severity"]) == ("old", "fail")
    assert (row["bound_kind"], row["bound"]) == ("max_drop", 0.02)
    half = norm.ppf(0.975) * 0.01
    assert (worse.value, worse.baseline_value) == pytest.approx((0.72, 0.8))
    assert (worse.change, worse.change_low, worse.change_high) == pytest.approx((-0.08, -0.08 - half, -0.08 + half))
    assert all(word in worse.message for word in ("bpsn_auc of a", "0.7200", "old", "0.8000", "-0.0996"))


def test_models_that_are_alike_on_too_few_rows_are_undecided() -> None:
    (alert,) = evaluate(a=paired_of(0.0, 30, difference_variance=0.0))
    assert (alert.outcome, alert.change_low, alert.change_high) == (NO_EVIDENCE, 0, 0)
    assert "rank these rows alike" in alert.message


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"n_low": 9, "n_high": 81}, "9 and 81 rows, and a verdict takes 10"),
        ({"n_groups": 7}, "in 7 groups, and a verdict takes 10"),
        ({"n_groups": 40, "difference_variance": None}, "fewer than 5 groups"),
        ({"difference_variance": 0.0}, "no variance"),
        ({"value": None, "baseline_value": None, "n_low": 0}, "no value: its cells have 0 and 4,500 rows"),
    ],
)
def test_without_evidence_the_alert_names_the_cause(changes: dict[str, Any], words: str) -> None:
    (alert,) = evaluate(a=paired_of(-0.5, **changes))
    assert (alert.outcome, alert.p_violation, alert.change_low) == (NO_EVIDENCE, None, None)
    assert alert.change == (None if alert.value is None else pytest.approx(-0.5))
    assert words in alert.message


def test_what_a_rule_names_and_a_run_lacks_is_no_pass() -> None:
    rule = replace(RULE, models=("new", "other"), identities=("a",), worst=True)
    alerts = evaluate(rule, a=paired_of(0.05))
    assert [(alert.model, alert.identity, alert.outcome) for alert in alerts] == [
        ("new", "a", "pass"),
        ("other", "a", NO_EVIDENCE),
        ("new", "(overall)", "pass"),
        ("other", "(overall)", NO_EVIDENCE),
    ]
    assert "no such row" in alerts[1].message
    assert set(alerts_table(COMPARISON_ALERTS, [alerts])["baseline_model"].to_pylist()) == {"old"}


def test_the_table_has_what_each_rule_selects() -> None:
    keys = [
        ("new", "all", "(overall)", False, "auc"),
        ("new", "all", "a", False, "bpsn_auc"),
        ("new", "all", "a & b", True, "bpsn_auc"),
        ("new", "all", "b", False, "bpsn_auc"),
        ("new", "short", "a", False, "bpsn_auc"),
        ("other", "all", "a", False, "bpsn_auc"),
    ]
    compared = [
        ComparedPair(model, "old", slice_name, identity, crossed, metric, paired_of(0.05), "paired_delong")
        for model, slice_name, identity, crossed, metric in keys
    ]
    rules = [RULE, replace(RULE, name="crossed", crossed=True), replace(RULE, name="b alone", identities=("b",))]
    rules += [replace(RULE, name="slices", slices=("short", "long")), replace(RULE, name="overall", metric="auc")]
    rules += [Rule(name="of the run", metric="bpsn_auc", models=("new",), min=0.5)]
    table = comparison_alerts(compared, Gate(rule=tuple(rules)), 0.95, ())
    assert tuple(table.column_names) == COMPARISON_ALERTS.value_columns
    found: dict[str, list[tuple[str, str]]] = {}
    for row in table.to_pylist():
        found.setdefault(row["rule"], []).append((row["slice"], row["identity"]))
    assert found == {
        "no worse": [("all", "a"), ("all", "b")],
        "crossed": [("all", "a"), ("all", "a & b"), ("all", "b")],
        "b alone": [("all", "b")],
        "slices": [("long", "(overall)"), ("short", "a")],
        "overall": [("all", "(overall)")],
    }
