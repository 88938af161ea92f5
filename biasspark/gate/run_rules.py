"""One rule of the gate on the metrics of a run: values and changes, and the p-values of each.

A metric is an AUC, a rate at a threshold, or a gap of either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from biasspark.arrays import Floats
from biasspark.comparison.differences import PairedMetric
from biasspark.config import Rule
from biasspark.gate.alerts import Alert, Key, MetricKey, RuleEvaluation, decide, list_missing, paired_change
from biasspark.gate.rate_estimates import RateGaps, Rates
from biasspark.gate.rule_tests import Aucs, Estimates, compare_with_baseline, compare_with_bound


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One metric of a run with its interval, or the reason why there is none; for a gap of scores, those of its AUC.

    The interval of an AUC comes from `variance`, `n_low`, `n_high` and `by_logit`; that of a rate or its gap from
    `decisions`: counted rows and all rows in the subgroup and, for a gap, in the background. An earlier run has its
    `run_id`.
    """

    key: MetricKey
    crossed: bool = False
    reason: str | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    variance: float | None = None
    n_low: int | None = None
    n_high: int | None = None
    by_logit: bool = False
    decisions: tuple[float, ...] = ()
    run_id: str | None = None


class EvaluatedRow(NamedTuple):
    """What a rule evaluates: a metric in this run and in the run to compare with, None if there is no such row.

    `paired` has both values with variances that pair rows of the same ids, if these are known.
    """

    key: Key
    now: Measured | None = None
    before: Measured | None = None
    paired: PairedMetric | None = None


def evaluate_rule(evaluation: RuleEvaluation, rows: Sequence[EvaluatedRow]) -> list[Alert]:
    """Return the alerts of a rule, by model, slice and identity: one for each row that the rule selects.

    Keys that the rule names and the run lacks are added. A rule on the worst identity has one more alert for each
    (model, slice), of ``(overall)``: it fails if any identity fails, and passes if all pass. No identity is chosen by
    its value, so there is no selection bias.
    """
    rows = [*rows, *map(EvaluatedRow, list_missing(evaluation.rule, [row.key for row in rows]))]
    violation, compliance = _test(evaluation.rule, rows)
    return decide(evaluation, map(_describe, [evaluation] * len(rows), rows, violation, compliance))


def _test(rule: Rule, rows: Sequence[EvaluatedRow]) -> list[list[float | None]]:
    """Return the p-values of violation and of compliance of every row, None without evidence."""
    now = _estimates(rule, [row.now for row in rows])
    if rule.is_change:
        before = _estimates(rule, [row.before for row in rows])
        p_values = compare_with_baseline(now, before, rule.kind, rule.bound, is_size_change=rule.is_size_change)
    else:
        offset = 0.5 if rule.is_gap and rule.kind != "max_abs" else 0.0
        p_values = compare_with_bound(now, rule.kind, rule.bound + offset)
    return [[None if np.isnan(p) else float(p) for p in values] for values in p_values]


def _estimates(rule: Rule, measured: Sequence[Measured | None]) -> Estimates:
    """Return the estimates that a rule tests."""
    if rule.threshold is None:
        return _aucs(measured)
    nothing = (np.nan,) * (4 if rule.is_gap else 2)
    decisions = [(one.decisions if one else ()) or nothing for one in measured]
    counts = np.array(decisions, float).reshape(-1, len(nothing)).T
    return RateGaps(Rates(*counts[:2]), Rates(*counts[2:])) if rule.is_gap else Rates(*counts)


def _aucs(measured: Sequence[Measured | None]) -> Aucs:
    def column(name: str) -> Floats:
        return np.array([getattr(one, name, None) for one in measured], np.float64)

    by_logit = np.array([one is not None and one.by_logit for one in measured], bool)
    return Aucs(column("value"), column("variance"), column("n_low"), column("n_high"), by_logit)


def _describe(
    evaluation: RuleEvaluation, row: EvaluatedRow, violation: float | None, compliance: float | None
) -> Alert:
    """Return the alert with its evidence, or with the reason why there is none, given its p-values.

    The given p-values of a change are from the sum of both runs' variances. If the runs are paired by enough groups of
    ids, the paired p-values replace them.
    """
    rule, now, before = evaluation.rule, row.now, row.before
    alert = Alert(rule, *row.key, p_violation=violation, p_compliance=compliance)
    if now is None:
        return replace(alert, message=f"{alert.metric_text}: the run has no such row.")
    low, value, high = _ends(rule, now)
    alert = replace(alert, value=value, value_low=low, value_high=high)
    if rule.is_change and before is not None:
        alert = replace(alert, baseline_run_id=before.run_id, baseline_value=_ends(rule, before)[1])
        alert = replace(alert, **_change(rule, now, before))
    if violation is None:
        return replace(alert, message=_describe_missing(alert, now))
    if not rule.is_change:
        return alert
    if row.paired is not None:
        # The size of a gap cannot rise by more than the size itself. So if both signs are possible, the size alone is
        # the evidence of compliance.
        p_size = float(compare_with_bound(_aucs([now]), "max_abs", rule.bound)[1][0]) if rule.is_size_change else None
        change = paired_change(evaluation, row.paired, p_size)
        if change["p_violation"] is not None:
            return replace(alert, paired=True, **change)
    return replace(alert, paired=False)


def _ends(rule: Rule, measured: Measured) -> list[float | None]:
    """Return the low end, the value and the high end of the metric, from those of its AUC or rate."""
    less = 0.5 if rule.is_gap and rule.threshold is None else 0.0
    return [None if end is None else end - less for end in (measured.low, measured.value, measured.high)]


def _describe_missing(alert: Alert, now: Measured) -> str:
    """Return why there is no evidence."""
    if alert.value is None:
        return f"{alert.metric_text} has no value: {now.reason}."
    if alert.value_low is None:
        return f"{alert.metric_text} is {alert.value:.4f}, without an interval: a cell has fewer than two rows."
    why = "no accepted run before this one has an interval of it to compare with"
    return f"{alert.metric_text} is {alert.value:.4f}: {why}."


class _Ends(NamedTuple):
    """A value, or the size of a gap, with its interval."""

    low: float
    value: float
    high: float


def _change(rule: Rule, now: Measured, before: Measured) -> dict[str, Any]:
    """Return the change of a value, or of the size of a gap, and the interval that its p-values invert.

    Each end combines the distances of both values' ends (`biasspark.gate.rule_tests`); for a gap, the sign of the
    earlier or the current gap is the one that leaves more room.
    """
    value, baseline = (_ends(rule, measured)[1] for measured in (now, before))
    if value is None or baseline is None:
        return {}
    change = abs(value) - abs(baseline) if rule.is_size_change else value - baseline
    signs, signs_before = _both_signs(rule, now), _both_signs(rule, before)
    if signs is None or signs_before is None:
        return {"change": change}
    (size, _), (size_before, _) = signs, signs_before
    lows = [
        size.value - other.value - _combine(size.value - size.low, other.high - other.value) for other in signs_before
    ]
    below = size_before.value - size_before.low
    may_be_0 = rule.is_size_change and size_before.low == 0
    highs = [
        other.value
        - size_before.value
        + (other.high - other.value + below if may_be_0 else _combine(other.high - other.value, below))
        for other in signs
    ]
    return {"change": change, "change_low": min(lows), "change_high": max(highs)}


def _combine(first: float, second: float) -> float:
    return sqrt(first * first + second * second)  # the last bits of math.hypot differ between platforms


def _both_signs(rule: Rule, measured: Measured) -> tuple[_Ends, _Ends] | None:
    """Return the ends of a value twice; for a gap, the ends of its size, 0 or more, and those for the other sign."""
    low, value, high = _ends(rule, measured)
    if low is None or value is None or high is None:
        return None
    ends = _Ends(low, value, high)
    if not rule.is_size_change:
        return ends, ends
    opposite = _Ends(-high, -value, -low)
    size, opposite = (ends, opposite) if value >= 0 else (opposite, ends)
    return size._replace(low=max(size.low, 0.0)), opposite
