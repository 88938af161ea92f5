"""Rules of the gate on a model and its baseline: which rows they are on, outcomes, and what alerts say."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest
from scipy.stats import norm

from biasspark.comparison.differences import PairedMetric
from biasspark.comparison.model_comparisons import ComparedPair
from biasspark.config import Gate, Rule
from biasspark.gate.alerts import Alert, EvaluatedRow, alerts_table, comparison_alerts, evaluate_rule
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
    rows = [EvaluatedRow(("new", "all", name), paired=pair) for name, pair in pairs.items()]
    return evaluate_rule(rule, rows, gate, 0.95, missing)


@pytest.mark.parametrize("missing", ["new", "old"])
def test_without_the_scores_of_either_model_every_row_fails(missing: str) -> None:
    alerts = evaluate(missing={missing}, a=paired_of(None, 0), c=paired_of(0.05))
    assert [(alert.outcome, f"model {missing} " in alert.message) for alert in alerts] == [("fail", True)] * 2


def test_alerts_have_both_values_and_the_change() -> None:
    (worse,) = evaluate(a=paired_of(-0.08))
    (row,) = alerts_table(COMPARISON_ALERTS, [worse]).to_pylist()
    assert (row["baseline_model"], row["severity"]) == ("old", "fail")
    assert (row["bound_kind"], row["bound"]) == ("max_drop", 0.02)
    half = norm.ppf(0.975) * 0.01
    assert (worse.value, worse.baseline_value) == pytest.approx((0.72, 0.8))
    assert (worse.change, worse.change_low, worse.change_high) == pytest.approx((-0.08, -0.08 - half, -0.08 + half))
    assert all(word in worse.message for word in ("bpsn_auc of a", "0.7200", "old", "0.8000", "-0.0996"))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"n_low": 9, "n_high": 81}, "9 and 81 rows"),
        ({"n_groups": 7}, "in 7 groups"),
        ({"n_groups": 40, "difference_variance": None}, "fewer than 5 groups"),
        ({"difference_variance": 0.0}, "no variance"),
        ({"value": None, "baseline_value": None, "n_low": 0}, "0 and 4,500 rows"),
    ],
)
def test_without_evidence_the_alert_names_the_cause(changes: dict[str, Any], words: str) -> None:
    (alert,) = evaluate(a=paired_of(-0.5, **changes))
    assert (alert.outcome, alert.p_violation, alert.change_low) == (NO_EVIDENCE, None, None)
    assert alert.change == (None if alert.value is None else pytest.approx(-0.5))
    assert words in alert.message


def test_a_row_that_a_run_lacks_is_of_the_same_baseline() -> None:
    alerts = evaluate(replace(RULE, models=("new", "other"), identities=("a",), worst=True), a=paired_of(0.05))
    assert len(alerts) == 4
    assert set(alerts_table(COMPARISON_ALERTS, alerts)["baseline_model"].to_pylist()) == {"old"}


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
