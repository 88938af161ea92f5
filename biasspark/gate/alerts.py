"""Alerts: from the p-values of each row to the outcome of a rule of the gate, and its message.

P-values of violation, and separately those of compliance, are adjusted by Benjamini and Hochberg over the rows of a
rule. A row fails if its adjusted p-value of violation is below the level, and passes if that of compliance is. If
neither is, or if there is no value, the evidence is insufficient, and the configuration says what that counts as. A
model without a usable score always fails.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from biasspark.columns import FAIL, INSUFFICIENT, OVERALL, OVERALL_METRIC, PASS, SUITE_AUCS, SUITE_GAPS
from biasspark.comparison.differences import PairedMetric, estimate_difference, noninferiority_test
from biasspark.config import Gate, Intervals, Rule
from biasspark.metrics.multiple_testing import benjamini_hochberg
from biasspark.tables.schemas import Table, to_table
from biasspark.text import format_count, show_p_value, show_visibly

_CLAIMS = {
    "min": ("below", "at least"),
    "max": ("above", "at most"),
    "max_abs": ("further from 0 than", "no further from 0 than"),
    "max_drop": ("fell by more than", "fell by no more than"),
    "max_rise": ("rose by more than", "rose by no more than"),
    "max_rise of a size": ("moved away from 0 by more than", "moved away from 0 by no more than"),
    "max_drop from a baseline": ("lower by more than", "lower by no more than"),
    "max_rise from a baseline": ("further from 0 by more than", "further from 0 by no more than"),
}
"""The claims of violation and of compliance, by the kind of bound."""

Key = tuple[str, str, str]
"""Model, slice and identity."""
MetricKey = tuple[str, str, str, str, float | None]
"""Model, slice, identity, metric and threshold."""


@dataclass(frozen=True)
class Alert:
    """A row of ``bias_alerts`` or ``comparison_alerts``: the columns of both, except those that describe the rule.

    Columns that a table lacks are None.
    """

    rule: Rule
    model: str
    slice: str
    identity: str
    value: float | None = None
    value_low: float | None = None
    value_high: float | None = None
    baseline_run_id: str | None = None
    outcome: str = INSUFFICIENT
    message: str = ""
    baseline_value: float | None = None
    change: float | None = None
    change_low: float | None = None
    change_high: float | None = None
    p_violation: float | None = None
    p_compliance: float | None = None
    p_violation_adjusted: float | None = None
    p_compliance_adjusted: float | None = None
    paired: bool | None = None
    decided: bool = False

    @property
    def metric_text(self) -> str:
        """What the alert is about; model and slice have columns of their own."""
        metric = self.rule.metric
        if metric == OVERALL_METRIC:
            return metric
        if self.identity == OVERALL and metric in (*SUITE_AUCS, *SUITE_GAPS):
            return f"{metric} of the worst identity"
        return f"{metric}{_at_threshold(self.rule.threshold)} of {show_visibly(self.identity)}"


@dataclass(frozen=True)
class RuleEvaluation:
    """A rule, and the settings of all rules of a run: the gate, the level of intervals, the models without a score."""

    rule: Rule
    gate: Gate = field(default_factory=Gate)
    level: float = Intervals.level
    missing_models: Collection[str] = ()


def applies_to(rule: Rule, key: MetricKey, crossed: bool) -> bool:
    """Return whether a rule applies to a metric of a model, slice and identity."""
    model, slice_name, identity, metric, threshold = key
    if (metric, threshold) != (rule.metric, rule.threshold) or model not in rule.models:
        return False
    if slice_name not in rule.slices:
        return False
    if rule.identities is not None:
        return identity in rule.identities
    return metric == OVERALL_METRIC or rule.crossed or not crossed


def list_missing(rule: Rule, keys: Iterable[Key]) -> list[Key]:
    """Return the keys that the rule names and the run lacks. If it names no identity, return slices without any."""
    present = set(keys)
    groups = [(model, slice_name) for model in rule.models for slice_name in rule.slices]
    if rule.identities is None:
        measured = {key[:2] for key in present}
        return [(*group, OVERALL) for group in groups if group not in measured]
    return [(*group, name) for group in groups for name in rule.identities if (*group, name) not in present]


def decide(evaluation: RuleEvaluation, tested: Iterable[Alert]) -> list[Alert]:
    """Return the alerts of a rule with adjusted p-values, outcomes and messages, by model, slice and identity.

    The given alerts have both p-values, or none and a message that says why there is no evidence.
    """
    rows = sorted(tested, key=lambda alert: (alert.model, alert.slice, alert.identity))
    violation = benjamini_hochberg([row.p_violation for row in rows])
    compliance = benjamini_hochberg([row.p_compliance for row in rows])
    n_tested = sum(row.p_violation is not None for row in rows)
    alerts = [
        _decide_row(evaluation, replace(row, p_violation_adjusted=against, p_compliance_adjusted=in_favor), n_tested)
        for row, against, in_favor in zip(rows, violation, compliance, strict=True)
    ]
    if evaluation.rule.worst:
        groups: dict[tuple[str, str], list[Alert]] = {}
        for alert in alerts:
            if alert.identity != OVERALL:  # which says that there is no identity
                groups.setdefault((alert.model, alert.slice), []).append(alert)
        alerts += [_worst_identity(evaluation.rule, key, rows) for key, rows in groups.items()]
    return [_count_insufficient(evaluation, alert) for alert in alerts]


def paired_change(evaluation: RuleEvaluation, paired: PairedMetric, p_size: float | None = None) -> dict[str, Any]:
    """Return the change of a metric on paired rows, its interval, and the p-values of `noninferiority_test`."""
    estimate, rule = estimate_difference(paired, evaluation.level), evaluation.rule
    p_violation, p_compliance = noninferiority_test(paired, rule.kind, rule.bound, p_size) or (None, None)
    return {
        "change": estimate.difference,
        "change_low": estimate.low,
        "change_high": estimate.high,
        "p_violation": p_violation,
        "p_compliance": p_compliance,
    }


def alerts_table(table: Table, alerts: Iterable[Sequence[Alert]]) -> pa.Table:
    """Return the alerts of all rules as a table."""
    rows = []
    for alert in (alert for of_rule in alerts for alert in of_rule):
        rule = alert.rule
        columns = {name: getattr(rule, name) for name in ("metric", "threshold", "bound", "severity")}
        columns |= {"rule": rule.name, "baseline_model": rule.baseline, "bound_kind": rule.kind}
        rows.append(vars(alert) | columns)
    return to_table(table, **{name: [row[name] for row in rows] for name in table.value_columns})


def _decide_row(evaluation: RuleEvaluation, alert: Alert, n_tested: int) -> Alert:
    """Return the alert with its outcome and message; unchanged without evidence.

    The message says if a row is undecided only because of the correction for the number of tests, or, although its
    interval excludes the bound, because paired rows that are all placed alike are too few.
    """
    against, in_favor = alert.p_violation_adjusted, alert.p_compliance_adjusted
    if against is None or in_favor is None:
        return alert
    rule = evaluation.rule
    suffix = " from a baseline" if rule.baseline is not None else " of a size" if rule.is_size_change else ""
    violated, kept = (f"{claim} {rule.bound:g}" for claim in _CLAIMS[rule.kind + suffix])
    if against < evaluation.gate.alpha:
        outcome, text = evaluation.rule.severity, f"{violated} (adjusted {_format_p(against)})"
    elif in_favor < evaluation.gate.alpha:
        outcome, text = PASS, f"{kept} (adjusted {_format_p(in_favor)})"
    else:
        outcome = INSUFFICIENT
        text = f"undecided, {violated} (adjusted {_format_p(against)}) or {kept} (adjusted {_format_p(in_favor)})"
        for claim, p in ((violated, alert.p_violation), (kept, alert.p_compliance)):
            if p is not None and p < evaluation.gate.alpha:
                text += f"; {claim}: significant on its own ({_format_p(p)}), but not after correcting for the rule's "
                text += f"{n_tested} tests"
        is_paired = bool(alert.paired) or rule.baseline is not None
        is_alike = is_paired and alert.change is not None and alert.change_low == alert.change_high  # one point
        if is_alike and rule.bound > 0 and (alert.p_compliance or 0) >= evaluation.gate.alpha:
            text += "; alike row by row, on too few rows to show that the bound is kept"
    return replace(alert, outcome=outcome, message=f"{_describe_value(alert)}: {text}.")


def _count_insufficient(evaluation: RuleEvaluation, alert: Alert) -> Alert:
    """Return the alert with the outcome for a missing model or insufficient evidence, if it has either."""
    missing = [name for name in (alert.model, alert.rule.baseline) if name in evaluation.missing_models]
    if missing:
        why = f"model {show_visibly(str(missing[0]))} has no usable score"
        return replace(alert, outcome=FAIL, message=f"{alert.metric_text} has no value: {why}.")
    if alert.outcome != INSUFFICIENT:
        return replace(alert, decided=True)
    outcome = evaluation.rule.insufficient or evaluation.gate.insufficient
    if outcome == PASS:
        return alert
    return replace(alert, outcome=outcome, message=f"{alert.message} Insufficient evidence counts as {outcome}.")


def _worst_identity(rule: Rule, key: tuple[str, str], alerts: Sequence[Alert]) -> Alert:
    """Return the alert on the worst identity of a (model, slice).

    One identity is enough to show violation; compliance must be shown for all of them.
    """
    broken = [alert for alert in alerts if alert.outcome == rule.severity]
    undecided = [alert for alert in alerts if alert.outcome == INSUFFICIENT]
    texts = [f"broken by {_list_identities(broken, len(alerts))}"] if broken else []
    texts += [f"undecided for {_list_identities(undecided, len(alerts))}"] if undecided else []
    baselines = {alert.baseline_run_id for alert in alerts}
    against = [alert.p_violation_adjusted for alert in alerts if alert.p_violation_adjusted is not None]
    in_favor = [alert.p_compliance_adjusted for alert in alerts if alert.p_compliance_adjusted is not None]
    everyone = "the only identity" if len(alerts) == 1 else f"all {len(alerts)} identities"
    worst = f"{rule.metric}{_at_threshold(rule.threshold)} of the worst identity"
    return Alert(
        rule,
        *key,
        OVERALL,
        baseline_run_id=baselines.pop() if len(baselines) == 1 else None,
        outcome=rule.severity if broken else INSUFFICIENT if undecided else PASS,
        message=f"{worst}: {'; '.join(texts) or f'kept by {everyone}'}.",
        p_violation_adjusted=min(against, default=None),
        p_compliance_adjusted=max(in_favor) if len(in_favor) == len(alerts) else None,
    )


def _at_threshold(threshold: float | None) -> str:
    return "" if threshold is None else f" at {threshold:g}"


def _format_p(p: float) -> str:
    """Format a p-value with two digits, a tiny one as an upper bound."""
    return f"p {show_p_value(p)}" if p < 1e-4 else f"p {p:.2g}"


def _describe_value(alert: Alert) -> str:
    value = f"{alert.metric_text} is {alert.value:.4f}"
    if alert.rule.baseline is None:
        value += f" ({alert.value_low:.4f} to {alert.value_high:.4f})"
    if alert.change is None:
        return value
    change = f"a change of {alert.change:+.4f} ({alert.change_low:+.4f} to {alert.change_high:+.4f})"
    change += ", paired by id" if alert.paired else ""
    if alert.rule.baseline is None:
        return f"{value} after {alert.baseline_value:.4f} in {alert.baseline_run_id}, {change}"
    return f"{value}, that of {show_visibly(alert.rule.baseline)} {alert.baseline_value:.4f}, {change}"


def _list_identities(alerts: Sequence[Alert], n_all: int, most: int = 3) -> str:
    names = [show_visibly(alert.identity) for alert in alerts[:most]] + ["..."] * (len(alerts) > most)
    return f"{len(alerts)} of {format_count(n_all, 'identity', 'identities')} ({', '.join(names)})"
