"""Alerts: from the evidence row by row to what comes of a rule of the gate, and the sentence that says it. No Spark.

A row fails where the p-value of violation, adjusted by Benjamini and Hochberg over the rows of the rule, is below the
level; it passes where that of compliance is; else the evidence is insufficient, as where there is no value. What
insufficient evidence counts as, the configuration says. A model without a usable score always fails.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from biasspark.columns import FAIL, INSUFFICIENT, OVERALL, OVERALL_METRIC, PASS
from biasspark.config import Gate, Intervals, Rule, show_p_value, show_visibly
from biasspark.metrics.testing import adjust

_CLAIMS = {
    "min": ("below", "at least"),
    "max": ("above", "at most"),
    "max_abs": ("further from 0 than", "no further from 0 than"),
    "max_drop": ("fell by more than", "fell by no more than"),
    "max_rise": ("rose by more than", "rose by no more than"),
}
"""Of each kind of bound what violation and compliance claim."""

_OF_SIZE = ("moved away from 0 by more than", "moved away from 0 by no more than")
"""The same of the size of a gap."""

_COMPARISONS = {
    "max_drop": ("lower by more than", "lower by no more than"),
    "max_rise": ("further from 0 by more than", "further from 0 by no more than"),
}
"""The same of a model that is held against a baseline."""

Key = tuple[str, str, str]
"""Model, slice and identity."""


@dataclass(frozen=True, kw_only=True)
class Alert:
    """A row of ``bias_alerts`` or ``comparison_alerts``: the columns of both, None those that a table lacks."""

    rule: str
    model: str
    baseline_model: str | None = None
    slice: str
    identity: str
    metric: str
    threshold: float | None = None
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
    paired: bool | None = None
    decided: bool = False

    @classmethod
    def of(cls, rule: Rule, key: Key, **found: Any) -> Alert:
        """Return the alert of a rule on a model, slice and identity, with what was found."""
        model, part, identity = key
        return cls(
            rule=rule.name,
            model=model,
            baseline_model=rule.baseline,
            slice=part,
            identity=identity,
            metric=rule.metric,
            threshold=rule.threshold,
            bound=rule.bound,
            severity=rule.severity,
            bound_kind=rule.kind,
            **found,
        )


@dataclass(frozen=True)
class Ruling:
    """A rule with what holds for all rules of a run.

    Attributes
    ----------
    alpha
        The level of the evidence.
    level
        That of the intervals.
    insufficient
        What insufficient evidence counts as.
    missing_models
        Models without one usable score.
    """

    rule: Rule
    alpha: float
    level: float = Intervals.level
    insufficient: str = Gate.insufficient
    missing_models: frozenset[str] = frozenset()

    @classmethod
    def of(cls, rule: Rule, gate: Gate, level: float, missing_models: Collection[str]) -> Ruling:
        """Return the ruling on a rule of a gate."""
        return cls(rule, gate.alpha, level, rule.insufficient or gate.insufficient, frozenset(missing_models))


def settle(ruling: Ruling, weighed: Sequence[Alert]) -> list[Alert]:
    """Return the alerts of a rule with adjusted p-values, outcomes and messages, by model, slice and identity.

    Parameters
    ----------
    weighed
        With both p-values, None where there is no evidence, and the message that says why there is none.
    """
    rows = sorted(weighed, key=lambda alert: (alert.model, alert.slice, alert.identity))
    against, in_favour = (adjust([getattr(row, f"p_{side}") for row in rows]) for side in ("violation", "compliance"))
    n_tested = sum(row.p_violation is not None for row in rows)
    alerts = [
        _decide(ruling, replace(row, p_violation_adjusted=violation, p_compliance_adjusted=compliance), n_tested)
        for row, violation, compliance in zip(rows, against, in_favour, strict=True)
    ]
    alerts += _judge_worst(ruling, alerts) if ruling.rule.worst else []
    return [_conclude(ruling, alert) for alert in alerts]


def list_missing(rule: Rule, found: Sequence[Key]) -> list[Key]:
    """Return what the rule names and a run does not have; where it names no identity, where there is none at all."""
    there, places = set(found), {(model, part) for model, part, _ in found}
    wanted = [(model, part) for model in rule.models for part in rule.slices]
    if rule.identities is None:
        return [(*place, OVERALL) for place in wanted if place not in places]
    return [(*place, name) for place in wanted for name in rule.identities if (*place, name) not in there]


def _decide(ruling: Ruling, alert: Alert, n_tested: int) -> Alert:
    """Return the alert with its outcome and the sentence that says it; without evidence that says why already.

    Of what is undecided only because so many rows of the rule were tested, the sentence says that, and of paired rows
    that are alike that they are too few: their interval excludes the bound. Of what bins leave on either side of the
    bound it says between which values.
    """
    against, in_favour = alert.p_violation_adjusted, alert.p_compliance_adjusted
    if against is None or in_favour is None:
        return alert
    violated, kept = (f"{claim} {alert.bound:g}" for claim in _list_claims(ruling.rule))
    if against < ruling.alpha:
        outcome, said = ruling.rule.severity, f"{violated} ({_say_adjusted(against)})"
    elif in_favour < ruling.alpha:
        outcome, said = PASS, f"{kept} ({_say_adjusted(in_favour)})"
    else:
        outcome = INSUFFICIENT
        said = f"undecided, {violated} ({_say_adjusted(against)}) or {kept} ({_say_adjusted(in_favour)})"
        for claim, p in ((violated, alert.p_violation), (kept, alert.p_compliance)):
            if p is not None and p < ruling.alpha:
                said += f"; {claim}: significant on its own ({_say_p(p)}), but not after correcting for the rule's "
                said += f"{n_tested} tests"
        if _is_alike(alert) and alert.bound > 0 and (alert.p_compliance or 0) >= ruling.alpha:
            said += "; alike row by row, on too few rows to show that the bound is kept"
        said += _say_doubt(alert)
    return replace(alert, outcome=outcome, message=f"{_say_value(alert)}: {said}.")


def _conclude(ruling: Ruling, alert: Alert) -> Alert:
    """Return the alert with what becomes of it where it is not decided: of a missing model, or for want of evidence."""
    missing = [name for name in (alert.model, alert.baseline_model) if name in ruling.missing_models]
    if missing:
        why = f"model {show_visibly(str(missing[0]))} has no usable score"
        return replace(alert, outcome=FAIL, message=f"{name_metric(alert)} has no value: {why}.")
    if alert.outcome != INSUFFICIENT:
        return replace(alert, decided=True)
    if ruling.insufficient == PASS:
        return alert
    message = f"{alert.message} Insufficient evidence counts as {ruling.insufficient}."
    return replace(alert, outcome=ruling.insufficient, message=message)


def _say_adjusted(p: float) -> str:
    return f"adjusted {_say_p(p)}"


def _say_p(p: float) -> str:
    """Say a p-value to two digits, and of a tiny one only that it is below the least that is shown on the screen."""
    return f"p {show_p_value(p)}" if p < 1e-4 else f"p {p:.2g}"


def _is_alike(alert: Alert) -> bool:
    """Tell whether a change is that of paired rows which are all placed alike, so that its interval is one point."""
    is_paired = alert.paired or alert.baseline_model is not None
    return bool(is_paired) and alert.change is not None and alert.change_low == alert.change_high


def _say_doubt(alert: Alert) -> str:
    """Say what bins leave of a value or change of which they leave open whether it keeps its bound; else nothing.

    Both p-values are 1 then.
    """
    what, least, most = "value", alert.value_at_least, alert.value_at_most
    if alert.change is not None:
        what, least, most = "change", alert.change_at_least, alert.change_at_most
    if least is None or most is None or least == most or not alert.p_violation == alert.p_compliance == 1:
        return ""
    return f"; bins leave the {what} between {least:.6g} and {most:.6g}"


def _list_claims(rule: Rule) -> tuple[str, str]:
    if rule.baseline is not None:
        return _COMPARISONS[rule.kind]
    return _OF_SIZE if rule.of_size else _CLAIMS[rule.kind]


def name_metric(alert: Alert) -> str:
    """Say what the alert is about, model and slice aside, which stand beside the sentence."""
    if alert.metric == OVERALL_METRIC:
        return alert.metric
    return f"{alert.metric}{_say_threshold(alert.threshold)} of {show_visibly(alert.identity)}"


def _say_threshold(threshold: float | None) -> str:
    return "" if threshold is None else f" at {threshold:g}"


def _say_value(alert: Alert) -> str:
    value = f"{name_metric(alert)} is {alert.value:.4f}"
    if alert.baseline_model is None:
        value += f" ({alert.value_low:.4f} to {alert.value_high:.4f})"
    if alert.change is None:
        return value
    change = f"a change of {alert.change:+.4f} ({alert.change_low:+.4f} to {alert.change_high:+.4f})"
    change += ", paired by id" if alert.paired else ""
    if alert.baseline_model is None:
        return f"{value} after {alert.baseline_value:.4f} in {alert.baseline_run_id}, {change}"
    return f"{value}, that of {show_visibly(alert.baseline_model)} {alert.baseline_value:.4f}, {change}"


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
    baselines = {alert.baseline_run_id for alert in alerts}
    against = [alert.p_violation_adjusted for alert in alerts if alert.p_violation_adjusted is not None]
    in_favour = [alert.p_compliance_adjusted for alert in alerts if alert.p_compliance_adjusted is not None]
    worst = f"{rule.metric}{_say_threshold(rule.threshold)} of the worst identity"
    return Alert.of(
        rule,
        (alerts[0].model, alerts[0].slice, OVERALL),
        baseline_run_id=baselines.pop() if len(baselines) == 1 else None,
        outcome=rule.severity if broken else INSUFFICIENT if undecided else PASS,
        message=f"{worst}: {'; '.join(said) or f'kept by all {n_all} identities'}.",
        p_violation_adjusted=min(against, default=None),
        p_compliance_adjusted=max(in_favour) if len(in_favour) == n_all else None,
    )


def _list_identities(alerts: Sequence[Alert], n_all: int, most: int = 3) -> str:
    named = [show_visibly(alert.identity) for alert in alerts[:most]] + ["..."] * (len(alerts) > most)
    return f"{len(alerts)} of {n_all} identities ({', '.join(named)})"
