"""The tables ``bias_alerts`` and ``comparison_alerts``: the outcomes of the rules of the gate, and their messages.

A rule compares a metric (an AUC, a rate at a threshold, or a gap of either) with a bound, with its value in earlier
runs, or with that of a baseline model on the same rows.

P-values of violation, and separately those of compliance, are adjusted by Benjamini and Hochberg over the rows of a
rule. A row fails if its adjusted p-value of violation is below the level, and passes if that of compliance is. If
neither is, or if there is no value, the evidence is insufficient, and the configuration says what that counts as. A
model without an AUC always fails.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, product
from math import nan
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from biasspark.arrays import Floats, euclidean_norm
from biasspark.columns import FAIL, INSUFFICIENT, OUTCOMES, OVERALL, OVERALL_METRIC, PASS, RATE_GAPS, SUITE_GAPS
from biasspark.comparison import differences
from biasspark.comparison.differences import PairedMetric
from biasspark.comparison.model_comparisons import ComparedPair
from biasspark.config import Gate, Rule
from biasspark.distributions import normal_quantile
from biasspark.gate.rule_tests import Aucs, Estimates, RateGaps, Rates, compare_with_baseline, compare_with_bound
from biasspark.metrics import intervals
from biasspark.metrics.suite import METRIC_OF_CELLS
from biasspark.metrics.thresholds import BACKGROUND, DECISIONS, rate
from biasspark.tables.schemas import BIAS_ALERTS, COMPARISON_ALERTS, THRESHOLD_RATES, U_STATISTICS, Table, table_of_rows
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
    """A row of ``bias_alerts`` or ``comparison_alerts``, without the columns of the rule."""

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
        metric, threshold = self.rule.metric, self.rule.threshold
        if metric == OVERALL_METRIC:
            return metric
        which = "the worst identity" if self.identity == OVERALL else show_visibly(self.identity)
        return f"{metric}{'' if threshold is None else f' at {threshold:g}'} of {which}"


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


def list_missing(rule: Rule, present: Collection[Key]) -> list[Key]:
    """Return the keys that the rule names and the run lacks. If it names no identity, return slices without any."""
    groups = list(product(rule.models, rule.slices))
    if rule.identities is None:
        measured = {key[:2] for key in present}
        return [(*group, OVERALL) for group in groups if group not in measured]
    return [(*group, name) for group in groups for name in rule.identities if (*group, name) not in present]


# ---- the rules of a run


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One metric of a run with its interval, or the reason why it is missing.

    The interval follows from the `evidence`, and is missing without it: the fields of `Aucs`, or the counted rows and
    all rows of a rate, in the subgroup and in the background. `run_id` is that of an earlier run.
    """

    key: MetricKey
    crossed: bool = False
    reason: str | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    evidence: Sequence[float] | None = None
    run_id: str | None = None


class EvaluatedRow(NamedTuple):
    """A metric in this run and in the one to compare with, if any; or of a model and its baseline.

    `paired` has both values and variances of their difference, if known: on rows that both models score, or from the
    same groups of ids in both runs.
    """

    key: Key
    now: Measured | None = None
    before: Measured | None = None
    paired: PairedMetric | None = None


def evaluate_rule(
    rule: Rule, rows: Sequence[EvaluatedRow], gate: Gate, level: float, missing_models: Collection[str]
) -> list[Alert]:
    """Return the alerts of a rule: one for each row that it selects, and one for each key that the run lacks.

    `level` is that of the intervals, and `missing_models` have no AUC.

    A rule on the worst identity has one more for each (model, slice), of ``(overall)``. It fails if any identity fails,
    and passes if all pass. No identity is chosen by its value, so there is no selection bias.
    """
    missing = [Alert(rule, *key) for key in list_missing(rule, {row.key for row in rows})]
    alerts = [replace(alert, message=f"{alert.metric_text}: the run did not measure it.") for alert in missing]
    if rule.baseline is not None:
        alerts += [_compare_models(rule, row, level) for row in rows]
        return decide(rule, alerts, gate, missing_models)
    now = _estimates(rule, [row.now for row in rows])
    if rule.is_change:
        before = _estimates(rule, [row.before for row in rows])
        p_values = compare_with_baseline(now, before, rule.kind, rule.bound, is_size_change=rule.is_size_change)
    else:
        offset = 0.5 if rule.is_gap and rule.kind != "max_abs" else 0.0
        p_values = compare_with_bound(now, rule.kind, rule.bound + offset)
    alerts += [
        _describe(rule, row, level, _known(violation), _known(compliance))
        for row, violation, compliance in zip(rows, *p_values, strict=True)
    ]
    return decide(rule, alerts, gate, missing_models)


def _estimates(rule: Rule, measured: Sequence[Measured | None]) -> Estimates:
    nothing = [nan] * (5 if rule.threshold is None else 4)
    evidence = [(row and row.evidence) or nothing for row in measured]
    columns = np.array(evidence, float).reshape(-1, len(nothing)).T
    if rule.threshold is None:
        auc, variance, n_low, n_high, by_logit = columns
        return Aucs(auc, variance, n_low, n_high, by_logit == 1)
    subgroup, background = Rates(*columns[:2]), Rates(*columns[2:])
    return RateGaps(subgroup, background) if rule.is_gap else subgroup


def _describe(rule: Rule, row: EvaluatedRow, level: float, violation: float | None, compliance: float | None) -> Alert:
    """Return the alert with its evidence, or with the reason why there is none.

    The p-values of a change treat both runs as independent, unless enough groups of ids pair them.
    """
    now, before = row.now, row.before
    assert now is not None  # only rules with a baseline model have rows without
    alert = Alert(rule, *row.key, now.value, now.low, now.high, p_violation=violation, p_compliance=compliance)
    if rule.is_change and before is not None:
        change = _change(rule, now, before)
        alert = replace(alert, baseline_run_id=before.run_id, baseline_value=before.value, **change)
    if violation is None:
        return replace(alert, message=_describe_missing(alert, now))
    if not rule.is_change:
        return alert
    if row.paired is not None:
        p_size = None
        if rule.is_size_change:
            # It cannot rise by more than itself: if both signs are possible, the size alone is evidence of compliance.
            p_size = float(compare_with_bound(_estimates(rule, [now]), "max_abs", rule.bound)[1][0])
        change = paired_change(rule, row.paired, level, p_size)
        if change["p_violation"] is not None:
            return replace(alert, paired=True, **change)
    return replace(alert, paired=False)


def _describe_missing(alert: Alert, now: Measured) -> str:
    if alert.value is None:
        return f"{alert.metric_text} has no value: {now.reason}."
    if alert.value_low is None:
        return f"{alert.metric_text} is {alert.value:.4f}, without an interval: a cell has fewer than two rows."
    why = "no accepted run before this one has an interval of it to compare with"
    return f"{alert.metric_text} is {alert.value:.4f}: {why}."


def _change(rule: Rule, now: Measured, before: Measured) -> dict[str, Any]:
    """Return the change of a value, or of the size of a gap, and the interval that its p-values invert.

    Each end combines the distances to the ends of both values (`biasspark.gate.rule_tests`). For a gap, the sign of the
    earlier or the current gap is the one that allows the larger change.
    """
    if now.value is None or before.value is None:
        return {}
    change = abs(now.value) - abs(before.value) if rule.is_size_change else now.value - before.value
    later, earlier = _both_signs(rule, now), _both_signs(rule, before)
    if not later or not earlier:
        return {"change": change}
    (low, value, _), (low_before, value_before, _) = later[0], earlier[0]
    below, may_be_0 = value_before - low_before, rule.is_size_change and low_before == 0
    return {
        "change": change,
        "change_low": min(value - past - euclidean_norm(value - low, high - past) for _, past, high in earlier),
        "change_high": max(
            current - value_before + (high - current + below if may_be_0 else euclidean_norm(high - current, below))
            for _, current, high in later
        ),
    }


def _both_signs(rule: Rule, measured: Measured) -> list[tuple[float, float, float]]:
    """Return the ends of a value; for a gap, those of its size, 0 or more, and for the other sign; [] without ends."""
    low, value, high = measured.low, measured.value, measured.high
    if low is None or value is None or high is None:
        return []
    if not rule.is_size_change:
        return [(low, value, high)]
    size, opposite = (low, value, high), (-high, -value, -low)
    if value < 0:
        size, opposite = opposite, size
    return [(max(size[0], 0.0), *size[1:]), opposite]


class Baselines(NamedTuple):
    """For each metric its row in the latest accepted run that has an interval, and the AUCs of both runs if paired."""

    latest: Mapping[MetricKey, Measured] = {}
    paired: Mapping[MetricKey, PairedMetric] = {}


def bias_alerts(
    tables: Mapping[Table, pa.Table], baselines: Baselines, gate: Gate, level: float, missing_models: Collection[str]
) -> pa.Table:
    """Return the table ``bias_alerts`` of the rules without a baseline model, given the level of the intervals."""
    measured = measure_rules(tables, gate.run_rules, level)
    alerts: list[Alert] = []
    for rule in gate.run_rules:
        rows = [_with_baseline(row, baselines) for row in measured if applies_to(rule, row.key, row.crossed)]
        alerts += evaluate_rule(rule, rows, gate, level, missing_models)
    return alerts_table(BIAS_ALERTS, alerts)


def _with_baseline(row: Measured, baselines: Baselines) -> EvaluatedRow:
    before, paired = baselines.latest.get(row.key), baselines.paired.get(row.key)
    if before is None or paired is None or paired.difference_variance is None:
        return EvaluatedRow(row.key[:3], row, before)
    if row.key[3] in SUITE_GAPS:
        paired = paired.as_gap((row.low, row.high), (before.low, before.high))
    return EvaluatedRow(row.key[:3], row, before, paired)


def measure_rules(tables: Mapping[Table, pa.Table], rules: Sequence[Rule], level: float) -> list[Measured]:
    """Return the metrics that rules apply to: AUCs and gaps in ``u_statistics``, rates in ``threshold_rates``."""
    measured = _measure_aucs(tables[U_STATISTICS], rules, level) if U_STATISTICS in tables else []
    rate_rules = [rule for rule in rules if rule.threshold is not None]
    if rate_rules and THRESHOLD_RATES in tables:
        measured += _measure_rates(tables[THRESHOLD_RATES], rate_rules, level)
    return measured


def choose_latest(rows: Iterable[Measured]) -> dict[MetricKey, Measured]:
    """Return the first row of each metric that has an interval; rows are ordered from the latest run."""
    latest: dict[MetricKey, Measured] = {}
    for row in rows:
        if row.value is not None and row.evidence:
            latest.setdefault(row.key, row)
    return latest


def pair_runs(
    jackknife: pa.Table, before: pa.Table, latest: Mapping[MetricKey, Measured]
) -> dict[MetricKey, PairedMetric]:
    """Return the AUCs of both runs for `latest` metrics, with variances by leaving groups of ids out of both."""
    baselines = {(_key(row), row["run_id"]): row for row in before.to_pylist()}
    chosen = [(row, _key(row)) for row in jackknife.to_pylist()]
    return {
        key: differences.jackknife_aucs(differences.Replicates.read(row), differences.Replicates.read(baseline))
        for row, key in chosen
        if key in latest and (baseline := baselines.get((key, latest[key].run_id))) is not None
    }


def _measure_aucs(statistics: pa.Table, rules: Sequence[Rule], level: float) -> list[Measured]:
    metrics = {rule.metric for rule in rules}
    rows = [row for row in statistics.filter(_of_rules(rules)).to_pylist() if _key(row)[3] in metrics]
    keys = list(map(_key, rows))
    auc, variance, n_low, n_high = (_column(rows, name) for name in ("auc", "auc_variance", "n_low", "n_high"))
    low, high, method = intervals.auc_interval(auc, variance, n_low, n_high, level)
    evidence = zip(auc, variance, n_low, n_high, method == intervals.LOGIT_DELONG, strict=True)
    offset = np.array([0.5 if key[3] in SUITE_GAPS else 0.0 for key in keys])
    return _list_measured(rows, keys, (auc - offset, low - offset, high - offset), evidence)


def _measure_rates(rates: pa.Table, rules: Sequence[Rule], level: float) -> list[Measured]:
    z = normal_quantile(level)
    thresholds = pa.array(sorted({rule.threshold for rule in rules if rule.threshold is not None}))
    rows = rates.filter(_of_rules(rules) & pc.is_in(pc.field("threshold"), thresholds)).to_pylist()
    measured: list[Measured] = []
    sides = [{name: _column(rows, f"{side}{name}") for name in DECISIONS} for side in ("", BACKGROUND)]
    for metric in sorted({rule.metric for rule in rules}):
        is_gap = metric in RATE_GAPS
        subgroup, background = (rate(side, metric.removesuffix("_gap")) for side in sides)  # NaN if suppressed
        ends = (
            intervals.newcombe_difference(subgroup, background, z) if is_gap else intervals.wilson_interval(subgroup, z)
        )
        keys = [(row["model"], row["slice"], row["identity"], metric, row["threshold"]) for row in rows]
        values = (_column(rows, metric), *ends)
        measured += _list_measured(rows, keys, values, zip(*subgroup, *background, strict=True))
    return measured


def _list_measured(
    rows: Sequence[Mapping[str, Any]],
    keys: Sequence[MetricKey],
    values: tuple[Floats, Floats, Floats],
    evidence: Iterable[Sequence[float]],
) -> list[Measured]:
    """Return metrics, given their rows, and their values with the lower and the upper ends."""
    return [
        Measured(
            key=key,
            crossed=row["crossed"],
            reason=row["reason"] or "no rows to compute it from",
            value=_known(value),
            low=_known(low),
            high=_known(high),
            evidence=None if np.isnan(low) else numbers,
            run_id=row.get("run_id"),
        )
        for row, key, value, low, high, numbers in zip(rows, keys, *values, evidence, strict=True)
    ]


def _of_rules(rules: Sequence[Rule]) -> pc.Expression:
    """Return whether any rule applies to the model and slice of a row."""
    models, slices = ({name for rule in rules for name in getattr(rule, names)} for names in ("models", "slices"))
    return pc.is_in(pc.field("model"), pa.array(sorted(models))) & pc.is_in(pc.field("slice"), pa.array(sorted(slices)))


def _key(row: Mapping[str, Any]) -> MetricKey:
    """Return the metric of a row of ``u_statistics`` or ``jackknife_statistics``."""
    return row["model"], row["slice"], row["identity"], METRIC_OF_CELLS[row["low_cell"], row["high_cell"]], None


def _column(rows: Sequence[Mapping[str, Any]], name: str) -> Floats:
    return np.array([row[name] for row in rows], np.float64)


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


# ---- a model and its baseline on the same rows


def comparison_alerts(
    compared: Sequence[ComparedPair], gate: Gate, level: float, missing_models: Collection[str]
) -> pa.Table:
    """Return the table ``comparison_alerts`` of the rules with a baseline model, given the level of the intervals."""
    alerts: list[Alert] = []
    for rule in gate.comparison_rules:
        rows = [
            EvaluatedRow((row.model, row.slice, row.identity), paired=row.paired)
            for row in compared
            if applies_to(rule, (row.model, row.slice, row.identity, row.metric, None), row.crossed)
        ]
        alerts += evaluate_rule(rule, rows, gate, level, missing_models)
    return alerts_table(COMPARISON_ALERTS, alerts)


def _compare_models(rule: Rule, row: EvaluatedRow, level: float) -> Alert:
    """Return the alert on a model and its baseline with its evidence, or with the reason why there is none."""
    paired = row.paired
    assert paired is not None
    change = paired_change(rule, paired, level)
    alert = Alert(rule, *row.key, value=paired.value, baseline_value=paired.baseline_value, **change)
    return alert if alert.p_violation is not None else replace(alert, message=_describe_insufficient(alert, paired))


def _describe_insufficient(alert: Alert, paired: PairedMetric) -> str:
    rows = f"{paired.n_low:,} and {paired.n_high:,} rows"
    if alert.value is None:
        return f"{alert.metric_text} has no value: its cells have {rows} that both models score."
    if min(paired.n_low, paired.n_high) < differences.MIN_ROWS:
        why = f"its cells have {rows}, and a verdict needs {differences.MIN_ROWS} in each."
    elif paired.n_groups is not None and paired.n_groups < differences.MIN_GROUPS:
        why = f"the {rows} of its cells are in {paired.n_groups} groups, and a verdict needs {differences.MIN_GROUPS}."
    elif paired.difference_variance is None:
        why = f"its cells have {rows}, those of one in fewer than {differences.MIN_GROUPS_OF_A_CELL} groups."
    else:
        why = f"by the {rows} of its cells the difference has no variance, so it cannot be tested."
    baseline = show_visibly(str(alert.rule.baseline))
    return f"{alert.metric_text} is {alert.value:.4f}, that of {baseline} {alert.baseline_value:.4f}: {why}"


# ---- from p-values to outcomes


def decide(rule: Rule, tested: Iterable[Alert], gate: Gate, missing_models: Collection[str]) -> list[Alert]:
    """Return alerts with outcomes, sorted by their keys. Each has p-values, or a message that says why it has none."""
    rows = sorted(tested, key=attrgetter("model", "slice", "identity"))
    violation = intervals.benjamini_hochberg([row.p_violation for row in rows])
    compliance = intervals.benjamini_hochberg([row.p_compliance for row in rows])
    n_tested = sum(row.p_violation is not None for row in rows)
    alerts = [
        _decide_row(replace(row, p_violation_adjusted=against, p_compliance_adjusted=in_favor), gate.alpha, n_tested)
        for row, against, in_favor in zip(rows, violation, compliance, strict=True)
    ]
    if rule.worst:
        identities = [alert for alert in alerts if alert.identity != OVERALL]  # which says that there is no identity
        groups = groupby(identities, key=attrgetter("model", "slice"))  # alerts are sorted
        alerts += [_worst_identity(rule, key, list(group)) for key, group in groups]
    return [_count_insufficient(alert, gate, missing_models) for alert in alerts]


def paired_change(rule: Rule, paired: PairedMetric, level: float, p_size: float | None = None) -> dict[str, Any]:
    """Return the change of a metric on paired rows, its interval, and the p-values of `noninferiority_test`."""
    estimate = differences.estimate_difference(paired, level)
    p_violation, p_compliance = differences.noninferiority_test(paired, rule.kind, rule.bound, p_size) or (None, None)
    return {
        "change": estimate.difference,
        "change_low": estimate.low,
        "change_high": estimate.high,
        "p_violation": p_violation,
        "p_compliance": p_compliance,
    }


def alerts_table(table: Table, alerts: Iterable[Alert]) -> pa.Table:
    """Return the alerts of all rules as a table."""
    rows = []
    for alert in alerts:
        rule = alert.rule
        columns = {name: getattr(rule, name) for name in ("metric", "threshold", "bound", "severity")}
        columns |= {"rule": rule.name, "baseline_model": rule.baseline, "bound_kind": rule.kind}
        rows.append(vars(alert) | columns)
    return table_of_rows(table, rows)


def alert_order(alert: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the sort key of rows of ``bias_alerts`` or ``comparison_alerts``: outcome, adjusted p-value, and rule.

    Of equal ones, the alert on "the worst identity" comes first, then the value or change farthest beyond its bound.
    """
    p, kind, size = alert["p_violation_adjusted"], alert["bound_kind"], alert.get("change")
    size = (alert["value"] if size is None else size) or 0.0
    size = abs(size) if kind == "max_abs" else size
    inside = size - alert["bound"] if kind == "min" else alert["bound"] + (size if kind == "max_drop" else -size)
    return OUTCOMES.index(alert["outcome"]), p is None, p or 0.0, alert["rule"], alert["value"] is not None, inside


def _decide_row(alert: Alert, alpha: float, n_tested: int) -> Alert:
    """Return the alert with its outcome and message, which says why a row is undecided."""
    rule, against, in_favor = alert.rule, alert.p_violation_adjusted, alert.p_compliance_adjusted
    if against is None or in_favor is None:
        return alert
    suffix = " from a baseline" if rule.baseline is not None else " of a size" if rule.is_size_change else ""
    violated, kept = (f"{claim} {rule.bound:g}" for claim in _CLAIMS[rule.kind + suffix])
    if against < alpha:
        outcome, text = rule.severity, f"{violated} (adjusted {_format_p(against)})"
    elif in_favor < alpha:
        outcome, text = PASS, f"{kept} (adjusted {_format_p(in_favor)})"
    else:
        outcome = INSUFFICIENT
        text = f"undecided, {violated} (adjusted {_format_p(against)}) or {kept} (adjusted {_format_p(in_favor)})"
        for claim, p in ((violated, alert.p_violation), (kept, alert.p_compliance)):
            if p is not None and p < alpha:
                text += f"; {claim}: significant on its own ({_format_p(p)}), but not after correcting for the rule's "
                text += f"{n_tested} tests"
        is_paired = bool(alert.paired) or rule.baseline is not None
        is_alike = is_paired and alert.change is not None and alert.change_low == alert.change_high  # one point
        if is_alike and rule.bound > 0 and (alert.p_compliance or 0) >= alpha:
            text += "; both rank these rows alike, but the rows are too few to show that the bound is kept"
    return replace(alert, outcome=outcome, message=f"{_describe_value(alert)}: {text}.")


def _count_insufficient(alert: Alert, gate: Gate, missing_models: Collection[str]) -> Alert:
    """Return the alert with the outcome for a missing model or insufficient evidence, if it has either."""
    missing = [name for name in (alert.model, alert.rule.baseline) if name in missing_models]
    if missing:
        why = f"model {show_visibly(str(missing[0]))} has no AUC: no usable score, or those of one label only"
        return replace(alert, outcome=FAIL, message=f"{alert.metric_text} is not judged: {why}.")
    if alert.outcome != INSUFFICIENT:
        return replace(alert, decided=True)
    outcome = alert.rule.insufficient or gate.insufficient
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
    worst = Alert(
        rule,
        *key,
        OVERALL,
        baseline_run_id=baselines.pop() if len(baselines) == 1 else None,
        outcome=rule.severity if broken else INSUFFICIENT if undecided else PASS,
        p_violation_adjusted=min(against, default=None),
        p_compliance_adjusted=max(in_favor) if len(in_favor) == len(alerts) else None,
    )
    return replace(worst, message=f"{worst.metric_text}: {'; '.join(texts) or f'kept by {everyone}'}.")


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


def _list_identities(alerts: Sequence[Alert], n_all: int) -> str:
    names = [show_visibly(alert.identity) for alert in alerts[:3]] + ["..."] * (len(alerts) > 3)
    return f"{len(alerts)} of {format_count(n_all, 'identity', 'identities')} ({', '.join(names)})"
