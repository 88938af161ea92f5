"""The table ``comparison_alerts``: a model and its baseline on the same rows, evaluated by the rules on them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from biasspark.comparison.differences import LEAST_GROUPS, LEAST_ROWS, PairedMetric
from biasspark.comparison.jackknife import LEAST_GROUPS_OF_A_CELL
from biasspark.comparison.model_comparisons import ComparedPair
from biasspark.config import Gate
from biasspark.gate.alerts import (
    Alert,
    Key,
    RuleEvaluation,
    alerts_table,
    applies_to,
    decide,
    list_missing,
    paired_change,
)
from biasspark.tables.schemas import COMPARISON_ALERTS
from biasspark.text import show_visibly


def comparison_alerts(
    compared: Sequence[ComparedPair], gate: Gate, level: float, missing_models: Collection[str] = ()
) -> pa.Table:
    """Return the table ``comparison_alerts`` from both models' AUCs of every pair of cells.

    `level` is that of the intervals. Rules without a baseline are left out. `missing_models` lack any usable score.
    """
    alerts = []
    for rule in gate.comparison_rules:
        pairs = {
            (row.model, row.slice, row.identity): row.paired
            for row in compared
            if applies_to(rule, (row.model, row.slice, row.identity, row.metric, None), row.crossed)
        }
        alerts.append(evaluate_comparison(RuleEvaluation(rule, gate, level, missing_models), pairs))
    return alerts_table(COMPARISON_ALERTS, alerts)


def evaluate_comparison(evaluation: RuleEvaluation, pairs: Mapping[Key, PairedMetric]) -> list[Alert]:
    """Return the alerts of a rule that names a baseline, by model, slice and identity.

    `pairs` are the metrics of the run that the rule selects. Keys that the rule names and the run lacks are added.
    """
    alerts = [_test(evaluation, key, paired) for key, paired in pairs.items()]
    for key in list_missing(evaluation.rule, pairs):
        alert = Alert(evaluation.rule, *key)
        alerts.append(replace(alert, message=f"{alert.metric_text}: the run has no such row."))
    return decide(evaluation, alerts)


def _test(evaluation: RuleEvaluation, key: Key, paired: PairedMetric) -> Alert:
    """Return the alert with its evidence, or with the reason why there is none."""
    alert = Alert(evaluation.rule, *key, value=paired.value, baseline_value=paired.baseline_value)
    alert = replace(alert, **paired_change(evaluation, paired))
    if alert.p_violation is not None:
        return alert
    return replace(alert, message=_describe_insufficient(alert, paired))


def _describe_insufficient(alert: Alert, paired: PairedMetric) -> str:
    """Return why there is no evidence."""
    rows = f"{paired.n_low:,} and {paired.n_high:,} rows"
    if alert.value is None:
        return f"{alert.metric_text} has no value: its cells have {rows} that both models score."
    if min(paired.n_low, paired.n_high) < LEAST_ROWS:
        why = f"its cells have {rows}, and a verdict takes {LEAST_ROWS} in each."
    elif paired.n_groups is not None and paired.n_groups < LEAST_GROUPS:
        why = f"the {rows} of its cells are in {paired.n_groups} groups, and a verdict takes {LEAST_GROUPS}."
    elif paired.difference_variance is None:
        why = f"its cells have {rows}, those of one in fewer than {LEAST_GROUPS_OF_A_CELL} groups."
    else:
        why = f"by the {rows} of its cells the difference has no variance, so nothing tells how sure it is."
    baseline = show_visibly(str(alert.rule.baseline))
    return f"{alert.metric_text} is {alert.value:.4f}, that of {baseline} {alert.baseline_value:.4f}: {why}"
