"""What comes of one rule of the gate: evidence row by row, adjusted over the rule, and the sentence that says it.

No Spark. A row fails where the p-value of violation, adjusted by Benjamini and Hochberg over the rows of the rule, is
below the level; it passes where that of compliance is; else the evidence is insufficient, as where there is no value.
Where an AUC is only known between bounds, both p-values are the largest that the bounds allow: what they leave open is
no evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from biasspark.columns import FAIL, INSUFFICIENT, OVERALL, OVERALL_METRIC, PASS, SUITE_GAPS
from biasspark.config import Rule, show_visibly
from biasspark.metrics.evidence import (
    Aucs,
    Bounds,
    adjust,
    compare_with_baseline,
    compare_with_bound,
    list_cases,
    weakest,
)

Floats = NDArray[np.float64]

_BOUNDED = ("at_least", "at_most", "variance_at_least", "variance_at_most")

_CLAIMS = {
    "min": ("below", "at least"),
    "max": ("above", "at most"),
    "max_abs": ("further from 0 than", "no further from 0 than"),
    "max_drop": ("fell by more than", "fell by no more than"),
    "max_rise": ("moved away from 0 by more than", "moved away from 0 by no more than"),
}
"""Of each kind of bound what violation and compliance claim."""

_COMPARISONS = {
    "max_drop": ("lower by more than", "lower by no more than"),
    "max_rise": ("further from 0 by more than", "further from 0 by no more than"),
}
"""The same of a model that is held against a baseline."""

Key = tuple[str, str, str]
"""Model, slice and identity."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """The AUC of two cells in one night, with its interval; None where there is none."""

    auc: float | None = None
    variance: float | None = None
    n_low: int | None = None
    n_high: int | None = None
    low: float | None = None
    high: float | None = None
    by_logit: bool = False
    joined: bool = False
    auc_at_least: float | None = None
    auc_at_most: float | None = None
    auc_variance_at_least: float | None = None
    auc_variance_at_most: float | None = None


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """What a rule looks at: a pair now and in the run to compare with; ``found`` is false where tonight has no row."""

    model: str
    slice: str
    identity: str
    reason: str | None = None
    now: Pair = Pair()
    before: Pair = Pair()
    found: bool = True


@dataclass(frozen=True, kw_only=True)
class Alert:
    """A row of ``bias_alerts`` or ``comparison_alerts``: the columns of both, None those that a table lacks."""

    rule: str
    model: str
    baseline_model: str | None = None
    slice: str
    identity: str
    metric: str
    value: float | None = None
    value_low: float | None = None
    value_high: float | None = None
    bound: float
    baseline_run_id: str | None = None
    outcome: str = INSUFFICIENT
    message: str = ""
    severity: str = FAIL
    bound_kind: str
    baseline_value: float | None = None
    change: float | None = None
    change_low: float | None = None
    change_high: float | None = None
    p_violation: float | None = None
    p_compliance: float | None = None
    p_violation_adjusted: float | None = None
    p_compliance_adjusted: float | None = None
    value_at_least: float | None = None
    value_at_most: float | None = None
    baseline_value_at_least: float | None = None
    baseline_value_at_most: float | None = None
    change_at_least: float | None = None
    change_at_most: float | None = None


@dataclass(frozen=True)
class Ruling:
    """A rule, the level of its evidence, and the accepted run that changes are measured against, if there is one."""

    rule: Rule
    alpha: float
    baseline_run_id: str | None = None


def judge(ruling: Ruling, candidates: Sequence[Candidate]) -> list[Alert]:
    """Return the alerts of a rule, in the order of model, slice and identity.

    Parameters
    ----------
    ruling : Ruling
        The rule.
    candidates : sequence of Candidate
        What tonight has that the rule selects, each once. What the rule names and tonight lacks is added.

    Returns
    -------
    list of Alert
        One a candidate. A rule on the worst identity has one more for each (model, slice), of ``(overall)``: it fails
        where an identity fails, and passes where every one passes. No identity is chosen by its value, so that no
        estimate is the lowest of many.
    """
    missing = list_missing(ruling.rule, [(row.model, row.slice, row.identity) for row in candidates])
    absent = [Candidate(model=model, slice=part, identity=name, found=False) for model, part, name in missing]
    rows = [*candidates, *absent]
    weighed = zip(rows, *_weigh(ruling.rule, rows), strict=True)
    return settle(ruling, [_describe_weighed(ruling, row, p_values) for row, *p_values in weighed])


def settle(ruling: Ruling, weighed: Sequence[Alert]) -> list[Alert]:
    """Return the alerts of a rule with adjusted p-values, outcomes and messages, by model, slice and identity.

    Parameters
    ----------
    weighed
        With both p-values, None where there is no evidence, and the message that says why there is none.
    """
    rows = sorted(weighed, key=lambda alert: (alert.model, alert.slice, alert.identity))
    against, in_favour = (adjust([getattr(row, f"p_{side}") for row in rows]) for side in ("violation", "compliance"))
    alerts = [
        _decide(ruling, replace(row, p_violation_adjusted=violation, p_compliance_adjusted=compliance))
        for row, violation, compliance in zip(rows, against, in_favour, strict=True)
    ]
    return alerts + (_judge_worst(ruling, alerts) if ruling.rule.worst else [])


def list_missing(rule: Rule, found: Sequence[Key]) -> list[Key]:
    """Return what the rule names and a run does not have; where it names no identity, where there is none at all."""
    there, places = set(found), {(model, part) for model, part, _ in found}
    wanted = [(model, part) for model in rule.models for part in rule.slices]
    if rule.identities is None:
        return [(*place, OVERALL) for place in wanted if place not in places]
    return [(*place, name) for place in wanted for name in rule.identities if (*place, name) not in there]


def _weigh(rule: Rule, rows: Sequence[Candidate]) -> tuple[list[float | None], list[float | None]]:
    """Return the p-values of violation and of compliance of every row, None where there is no evidence."""
    now, bounds = _aucs([row.now for row in rows])
    in_doubt = bounds.in_doubt
    if rule.is_change:
        before, bounds_before = _aucs([row.before for row in rows])
        cases = product(list_cases(now, bounds), list_cases(before, bounds_before))
        found = [compare_with_baseline(*nights, rule.kind, rule.bound) for nights in cases]
        in_doubt = in_doubt | bounds_before.in_doubt
    else:
        bound = rule.bound if rule.kind == "max_abs" else rule.bound + _offset(rule)
        found = [compare_with_bound(case, rule.kind, bound) for case in list_cases(now, bounds)]
    weighed = [weakest(p_values, in_doubt) for p_values in zip(*found, strict=True)]
    violation, compliance = ([None if np.isnan(p) else float(p) for p in values] for values in weighed)
    return violation, compliance


def _aucs(pairs: Sequence[Pair]) -> tuple[Aucs, Bounds]:
    def numbers(name: str) -> Floats:
        found = (getattr(pair, name) for pair in pairs)
        return np.array([np.nan if number is None else float(number) for number in found])

    auc, variance, n_low, n_high = (numbers(name) for name in ("auc", "variance", "n_low", "n_high"))
    lowest, highest, *variances = (numbers(f"auc_{name}") for name in _BOUNDED)
    in_doubt = (lowest < highest) | (variances[0] < variances[1])
    by_logit, joined = (np.array([getattr(pair, name) for pair in pairs], bool) for name in ("by_logit", "joined"))
    return Aucs(auc, variance, n_low, n_high, by_logit), Bounds(lowest, highest, variances[1], in_doubt, joined)


def _offset(rule: Rule) -> float:
    """Return what a metric is less than its AUC."""
    return 0.5 if rule.metric in SUITE_GAPS else 0.0


def _describe_weighed(ruling: Ruling, row: Candidate, p_values: Sequence[float | None]) -> Alert:
    """Return the alert with its evidence, or with why there is none."""
    violation, compliance = p_values
    alert = replace(_describe(ruling, row), p_violation=violation, p_compliance=compliance)
    return replace(alert, message=_say_missing(ruling, alert, row)) if violation is None else alert


def _describe(ruling: Ruling, row: Candidate) -> Alert:
    """Return the alert with what is compared, before it is decided."""
    rule, offset = ruling.rule, _offset(ruling.rule)
    value, low, high = (_less(end, offset) for end in (row.now.auc, row.now.low, row.now.high))
    alert = Alert(
        rule=rule.name,
        model=row.model,
        slice=row.slice,
        identity=row.identity,
        metric=rule.metric,
        value=value,
        value_low=low,
        value_high=high,
        value_at_least=_less(row.now.auc_at_least, offset),
        value_at_most=_less(row.now.auc_at_most, offset),
        bound=rule.bound,
        severity=rule.severity,
        bound_kind=rule.kind,
    )
    if not rule.is_change:
        return alert
    alert = replace(alert, baseline_run_id=ruling.baseline_run_id)
    if row.before.auc is None:
        return alert
    return replace(
        alert,
        baseline_value=row.before.auc - offset,
        baseline_value_at_least=_less(row.before.auc_at_least, offset),
        baseline_value_at_most=_less(row.before.auc_at_most, offset),
        **_measure_change(rule, row),
    )


def _less(value: float | None, offset: float) -> float | None:
    return None if value is None else value - offset


def _measure_change(rule: Rule, row: Candidate) -> dict[str, Any]:
    """Return the change of an AUC, or of the size of a gap, its bounds, and the interval that its p-values invert."""
    if row.now.auc is None or row.before.auc is None:
        return {}
    now, before = _ends(rule, row.now), _ends(rule, row.before)
    least, most = now.lowest - before.highest, now.highest - before.lowest
    change = _size(rule, row.now.auc) - _size(rule, row.before.auc)
    found: dict[str, Any] = {"change": change, "change_at_least": least, "change_at_most": most}
    if now.low is None or now.high is None or before.low is None or before.high is None:
        return found
    down = np.hypot(now.lowest - now.low, before.high - before.highest)
    up = now.high - now.highest, before.lowest - before.low
    may_be_0 = rule.kind == "max_rise" and before.low == 0
    return found | {
        "change_low": float(least - down),
        "change_high": float(most + (sum(up) if may_be_0 else np.hypot(*up))),
    }


class _Ends(NamedTuple):
    """The interval of an AUC or of the size of a gap, which is not below 0, around what the value may be."""

    low: float | None
    lowest: float
    highest: float
    high: float | None


def _ends(rule: Rule, pair: Pair) -> _Ends:
    auc = pair.auc
    assert auc is not None
    lowest = auc if pair.auc_at_least is None else pair.auc_at_least
    highest = auc if pair.auc_at_most is None else pair.auc_at_most
    if rule.kind != "max_rise":
        return _Ends(pair.low, lowest, highest, pair.high)
    if auc >= 0.5:
        ends = _Ends(_less(pair.low, 0.5), lowest - 0.5, highest - 0.5, _less(pair.high, 0.5))
    else:
        low, high = (None if end is None else 1 - end - 0.5 for end in (pair.high, pair.low))
        ends = _Ends(low, 0.5 - highest, 0.5 - lowest, high)
    return ends._replace(low=None if ends.low is None else max(ends.low, 0.0), lowest=max(ends.lowest, 0.0))


def _size(rule: Rule, auc: float) -> float:
    return abs(auc - 0.5) if rule.kind == "max_rise" else auc


def _decide(ruling: Ruling, alert: Alert) -> Alert:
    """Return the alert with its outcome and the sentence that says it; without evidence that says why already."""
    against, in_favour = alert.p_violation_adjusted, alert.p_compliance_adjusted
    if against is None or in_favour is None:
        return alert
    claims = _CLAIMS if alert.baseline_model is None else _COMPARISONS
    violated, kept = (f"{claim} {alert.bound:g}" for claim in claims[alert.bound_kind])
    if against < ruling.alpha:
        outcome, said = ruling.rule.severity, f"{violated} (adjusted p {against:.2g})"
    elif in_favour < ruling.alpha:
        outcome, said = PASS, f"{kept} (adjusted p {in_favour:.2g})"
    else:
        outcome = INSUFFICIENT
        said = f"undecided, {violated} (adjusted p {against:.2g}) or {kept} (adjusted p {in_favour:.2g})"
    return replace(alert, outcome=outcome, message=f"{_say_value(alert)}: {said}.")


def name_metric(alert: Alert) -> str:
    """Say what the alert is about, model and slice aside, which stand beside the sentence."""
    if alert.metric == OVERALL_METRIC:
        return alert.metric
    return f"{alert.metric} of {show_visibly(alert.identity)}"


def _say_value(alert: Alert) -> str:
    value = f"{name_metric(alert)} is {alert.value:.4f}"
    if alert.baseline_model is None:
        value += f" ({alert.value_low:.4f} to {alert.value_high:.4f})"
    if alert.change is None:
        return value
    change = f"a change of {alert.change:+.4f} ({alert.change_low:+.4f} to {alert.change_high:+.4f})"
    if alert.baseline_model is None:
        return f"{value} after {alert.baseline_value:.4f} in {alert.baseline_run_id}, {change}"
    return f"{value}, that of {show_visibly(alert.baseline_model)} {alert.baseline_value:.4f}, {change}"


def _say_missing(ruling: Ruling, alert: Alert, row: Candidate) -> str:
    """Say why there is no evidence."""
    what = name_metric(alert)
    if not row.found:
        return f"{what}: the run has no such row."
    if alert.value is None:
        return f"{what} has no value: {row.reason}."
    if alert.value_low is None:
        return f"{what} is {alert.value:.4f}, without an interval: a cell has fewer than two rows."
    if ruling.baseline_run_id is None:
        return f"{what} is {alert.value:.4f}: there is no accepted run before this one to compare it with."
    return (
        f"{what} is {alert.value:.4f}: the accepted run {ruling.baseline_run_id} has no interval of it to compare with."
    )


def _judge_worst(ruling: Ruling, alerts: Sequence[Alert]) -> list[Alert]:
    """Return the verdict on the worst identity of every (model, slice)."""
    by_place: dict[tuple[str, str], list[Alert]] = {}
    for alert in alerts:
        if alert.identity != OVERALL:  # which says that there is no identity
            by_place.setdefault((alert.model, alert.slice), []).append(alert)
    return [_sum_up(ruling, own) for own in by_place.values()]


def _sum_up(ruling: Ruling, alerts: Sequence[Alert]) -> Alert:
    """Return the verdict: violation where the strongest case shows it, compliance where even the weakest case does."""
    rule, n_all = ruling.rule, len(alerts)
    broken = [alert for alert in alerts if alert.outcome == rule.severity]
    undecided = [alert for alert in alerts if alert.outcome == INSUFFICIENT]
    said = [f"broken by {_list_identities(broken, n_all)}"] if broken else []
    said += [f"undecided for {_list_identities(undecided, n_all)}"] if undecided else []
    against = [alert.p_violation_adjusted for alert in alerts if alert.p_violation_adjusted is not None]
    in_favour = [alert.p_compliance_adjusted for alert in alerts if alert.p_compliance_adjusted is not None]
    return Alert(
        rule=rule.name,
        model=alerts[0].model,
        baseline_model=alerts[0].baseline_model,
        slice=alerts[0].slice,
        identity=OVERALL,
        metric=rule.metric,
        bound=rule.bound,
        baseline_run_id=alerts[0].baseline_run_id,
        outcome=rule.severity if broken else INSUFFICIENT if undecided else PASS,
        message=f"{rule.metric} of the worst identity: {'; '.join(said) or f'kept by all {n_all} identities'}.",
        severity=rule.severity,
        bound_kind=rule.kind,
        p_violation_adjusted=min(against, default=None),
        p_compliance_adjusted=max(in_favour) if len(in_favour) == n_all else None,
    )


def _list_identities(alerts: Sequence[Alert], n_all: int, most: int = 3) -> str:
    named = [show_visibly(alert.identity) for alert in alerts[:most]] + ["..."] * (len(alerts) > most)
    return f"{len(alerts)} of {n_all} identities ({', '.join(named)})"
