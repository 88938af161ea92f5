"""The tables ``bias_alerts`` and ``comparison_alerts``: the outcomes of the rules of the gate.

A rule compares a metric (an AUC, a rate at a threshold, or a gap of either) with a bound, with its value in earlier
runs, or with that of a baseline model on the same rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from biasspark.arrays import Floats
from biasspark.columns import CROSSED, IDENTITY, MODEL, RATE_GAPS, RATES, SLICE, SUITE_GAPS
from biasspark.comparison.differences import (
    LEAST_GROUPS,
    LEAST_GROUPS_OF_A_CELL,
    LEAST_ROWS,
    PairedMetric,
    Replicates,
    jackknife_aucs,
)
from biasspark.comparison.model_comparisons import ComparedPair
from biasspark.config import Gate, Rule
from biasspark.distributions import normal_quantile
from biasspark.gate.alerts import (
    Alert,
    Key,
    MetricKey,
    RuleEvaluation,
    alerts_table,
    applies_to,
    decide,
    list_missing,
    paired_change,
)
from biasspark.gate.rule_tests import Aucs, Estimates, RateGaps, Rates, compare_with_baseline, compare_with_bound
from biasspark.metrics.intervals import LOGIT_DELONG, auc_interval
from biasspark.metrics.proportions import Share, newcombe_difference, wilson_interval
from biasspark.metrics.suite import METRIC_OF_CELLS
from biasspark.metrics.thresholds import BACKGROUND, SHARES
from biasspark.tables.schemas import BIAS_ALERTS, COMPARISON_ALERTS
from biasspark.text import show_visibly


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One metric of a run with its interval, or the reason why it is missing. A gap of scores is given as its AUC.

    The interval of an AUC follows from `variance`, `n_low`, `n_high` and `by_logit`; that of a rate or its gap from
    `decisions`: counted rows and all rows in the subgroup and, for a gap, in the background. `run_id` is that of an
    earlier run.
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
    """A metric in this run and in the run to compare with; None if the run has no such row.

    `paired` has both values with variances that pair rows with the same ids, if known.
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
    rule = evaluation.rule
    rows = [*rows, *map(EvaluatedRow, list_missing(rule, [row.key for row in rows]))]
    now = _estimates(rule, [row.now for row in rows])
    if rule.is_change:
        before = _estimates(rule, [row.before for row in rows])
        p_values = compare_with_baseline(now, before, rule.kind, rule.bound, is_size_change=rule.is_size_change)
    else:
        offset = 0.5 if rule.is_gap and rule.kind != "max_abs" else 0.0
        p_values = compare_with_bound(now, rule.kind, rule.bound + offset)
    violation, compliance = (map(_known, values) for values in p_values)
    return decide(evaluation, map(_describe, [evaluation] * len(rows), rows, violation, compliance))


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
    """Return the alert with its evidence, or with the reason why there is none.

    The given p-values of a change treat both runs as independent. If the runs are paired by enough groups of ids, the
    paired p-values replace them.
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
        # A size cannot rise by more than itself: if both signs are possible, the size alone is evidence of compliance.
        p_size = float(compare_with_bound(_aucs([now]), "max_abs", rule.bound)[1][0]) if rule.is_size_change else None
        change = paired_change(evaluation, row.paired, p_size)
        if change["p_violation"] is not None:
            return replace(alert, paired=True, **change)
    return replace(alert, paired=False)


def _ends(rule: Rule, measured: Measured) -> list[float | None]:
    """Return the lower end, the value and the upper end of the metric."""
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


def _change(rule: Rule, now: Measured, before: Measured) -> dict[str, Any]:
    """Return the change of a value, or of the size of a gap, and the interval that its p-values invert.

    Each end combines the distances to the ends of both values (`biasspark.gate.rule_tests`). For a gap, the sign of the
    earlier or the current gap is the one that allows the larger change.
    """
    value, baseline = (_ends(rule, measured)[1] for measured in (now, before))
    if value is None or baseline is None:
        return {}
    change = abs(value) - abs(baseline) if rule.is_size_change else value - baseline
    of_now, of_before = _both_signs(rule, now), _both_signs(rule, before)
    if not of_now or not of_before:
        return {"change": change}
    (low, value, _), (low_before, value_before, _) = of_now[0], of_before[0]
    below, may_be_0 = value_before - low_before, rule.is_size_change and low_before == 0
    return {
        "change": change,
        "change_low": min(value - other - _length(value - low, high - other) for _, other, high in of_before),
        "change_high": max(
            other - value_before + (high - other + below if may_be_0 else _length(high - other, below))
            for _, other, high in of_now
        ),
    }


def _length(first: float, second: float) -> float:
    return sqrt(first * first + second * second)  # the last bits of math.hypot differ between platforms


def _both_signs(rule: Rule, measured: Measured) -> list[tuple[float, float, float]]:
    """Return the ends of a value; for a gap, those of its size, 0 or more, and for the other sign; [] without ends."""
    low, value, high = _ends(rule, measured)
    if low is None or value is None or high is None:
        return []
    if not rule.is_size_change:
        return [(low, value, high)]
    size, opposite = (low, value, high), (-high, -value, -low)
    if value < 0:
        size, opposite = opposite, size
    return [(max(size[0], 0.0), *size[1:]), opposite]


_RATE_OF = dict(zip(RATE_GAPS, RATES, strict=True))


class GateInput(NamedTuple):
    """The tables that the gate evaluates, and the models without a usable score.

    These are ``u_statistics``; ``threshold_rates``, if thresholds are configured; and ``jackknife_statistics``, if runs
    are paired.
    """

    statistics: pa.Table
    rates: pa.Table | None = None
    jackknife: pa.Table | None = None
    missing_models: tuple[str, ...] = ()


class Baselines(NamedTuple):
    """The values against which changes are measured.

    These are, for each metric, its row in the latest accepted run that has an interval, and the AUCs of both runs with
    variances from leaving the same groups of ids out of both.
    """

    latest: Mapping[MetricKey, Measured] = {}
    paired: Mapping[MetricKey, PairedMetric] = {}


def bias_alerts(run: GateInput, baselines: Baselines, gate: Gate, level: float) -> pa.Table:
    """Return the table ``bias_alerts``, given the level of the intervals, in (0, 1).

    Rules that name a baseline model are left out.
    """
    measured = measure_rules(run.statistics, run.rates, gate.run_rules, level)
    alerts = []
    for rule in gate.run_rules:
        rows = []
        for row in (row for row in measured if applies_to(rule, row.key, row.crossed)):
            before, aucs, paired = baselines.latest.get(row.key), baselines.paired.get(row.key), None
            if before is not None and aucs is not None and aucs.difference_variance is not None:
                ends = (row.low, row.high), (before.low, before.high)
                paired = aucs.as_gap(*ends) if row.key[3] in SUITE_GAPS else aucs
            rows.append(EvaluatedRow(row.key[:3], row, before, paired))
        alerts.append(evaluate_rule(RuleEvaluation(rule, gate, level, run.missing_models), rows))
    return alerts_table(BIAS_ALERTS, alerts)


def measure_rules(
    statistics: pa.Table | None, rates: pa.Table | None, rules: Sequence[Rule], level: float
) -> list[Measured]:
    """Return the metrics that rules apply to: AUCs and gaps in ``u_statistics``, rates in ``threshold_rates``."""
    rate_rules = [rule for rule in rules if rule.threshold is not None]
    measured = [] if statistics is None else _measure_aucs(statistics, rules, level)
    return measured + ([] if rates is None or not rate_rules else _measure_rates(rates, rate_rules, level))


def choose_latest(rows: Iterable[Measured]) -> dict[MetricKey, Measured]:
    """Return the first row of each metric that has an interval; rows are ordered from the latest run.

    A metric has an interval if its AUC has a variance, or its rate has rows.
    """
    latest: dict[MetricKey, Measured] = {}
    for row in rows:
        if row.value is not None and (row.decisions or row.variance is not None):
            latest.setdefault(row.key, row)
    return latest


def pair_runs(
    jackknife: pa.Table, before: pa.Table, latest: Mapping[MetricKey, Measured]
) -> dict[MetricKey, PairedMetric]:
    """Return the AUCs of both runs, with variances by leaving out groups of ids, for metrics whose change is measured.

    `jackknife` and `before` are ``jackknife_statistics`` of the run and of accepted runs, by the same groups; `latest`
    is the result of `choose_latest`.
    """
    baselines = {(_key(row), row["run_id"]): row for row in before.to_pylist()}
    chosen = [(row, _key(row)) for row in jackknife.to_pylist()]
    return {
        key: jackknife_aucs(Replicates.read(row), Replicates.read(baseline))
        for row, key in chosen
        if key in latest and (baseline := baselines.get((key, latest[key].run_id))) is not None
    }


def _measure_aucs(statistics: pa.Table, rules: Sequence[Rule], level: float) -> list[Measured]:
    """Return the AUCs that rules apply to."""
    metrics = {rule.metric for rule in rules}
    rows = [row for row in statistics.filter(_of_rules(rules)).to_pylist() if _key(row)[3] in metrics]
    auc, variance, n_low, n_high = (_column(rows, name) for name in ("auc", "auc_variance", "n_low", "n_high"))
    interval = auc_interval(auc, variance, n_low, n_high, level)
    return [
        Measured(
            key=_key(row),
            crossed=row[CROSSED],
            reason=row["reason"],
            value=row["auc"],
            low=_known(low),
            high=_known(high),
            variance=row["auc_variance"],
            n_low=row["n_low"],
            n_high=row["n_high"],
            by_logit=method == LOGIT_DELONG,
            run_id=row.get("run_id"),
        )
        for row, low, high, method in zip(rows, *interval, strict=True)
    ]


def _measure_rates(rates: pa.Table, rules: Sequence[Rule], level: float) -> list[Measured]:
    """Return the rates and gaps that rules apply to."""
    z = normal_quantile(level)
    thresholds = pa.array(sorted({rule.threshold for rule in rules if rule.threshold is not None}))
    rows = rates.filter(_of_rules(rules) & pc.is_in(pc.field("threshold"), thresholds)).to_pylist()
    measured = []
    for metric in sorted({rule.metric for rule in rules}):
        rate, is_gap = _RATE_OF.get(metric, metric), metric in RATE_GAPS
        subgroup, background = (  # NaN if they are suppressed
            Share(*(np.sum([_column(rows, f"{side}{kind}") for kind in kinds], axis=0) for kinds in SHARES[rate]))
            for side in ("", BACKGROUND)
        )
        ends = newcombe_difference(subgroup, background, z) if is_gap else wilson_interval(subgroup, z)
        counts = zip(*subgroup, *(background if is_gap else ()), strict=True)
        for row, low, high, decisions in zip(rows, *ends, counts, strict=True):
            measured.append(
                Measured(
                    key=(row[MODEL], row[SLICE], row[IDENTITY], metric, row["threshold"]),
                    crossed=row[CROSSED],
                    reason=row["reason"] or "no rows to compute it from",
                    value=row[metric],
                    low=_known(low),
                    high=_known(high),
                    decisions=() if np.isnan(decisions).any() else tuple(map(float, decisions)),
                    run_id=row.get("run_id"),
                )
            )
    return measured


def _of_rules(rules: Sequence[Rule]) -> pc.Expression:
    """Return whether any rule applies to the model and slice of a row."""
    models, slices = ({name for rule in rules for name in getattr(rule, names)} for names in ("models", "slices"))
    return pc.is_in(pc.field(MODEL), pa.array(sorted(models))) & pc.is_in(pc.field(SLICE), pa.array(sorted(slices)))


def _key(row: Mapping[str, Any]) -> MetricKey:
    """Return the metric of a row of ``u_statistics`` or ``jackknife_statistics``."""
    return row[MODEL], row[SLICE], row[IDENTITY], METRIC_OF_CELLS[row["low_cell"], row["high_cell"]], None


def _column(rows: Sequence[Mapping[str, Any]], name: str) -> Floats:
    return np.array([row[name] for row in rows], np.float64)


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


# ---- a model and its baseline on the same rows


def comparison_alerts(
    compared: Sequence[ComparedPair], gate: Gate, level: float, missing_models: Collection[str] = ()
) -> pa.Table:
    """Return the table ``comparison_alerts`` from both models' AUCs of every pair of cells.

    `level` is that of the intervals. Rules without a baseline are left out. `missing_models` have no usable score.
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
    alerts = []
    for key, paired in pairs.items():
        alert = Alert(evaluation.rule, *key, value=paired.value, baseline_value=paired.baseline_value)
        alert = replace(alert, **paired_change(evaluation, paired))
        if alert.p_violation is None:
            alert = replace(alert, message=_describe_insufficient(alert, paired))
        alerts.append(alert)
    for key in list_missing(evaluation.rule, pairs):
        alert = Alert(evaluation.rule, *key)
        alerts.append(replace(alert, message=f"{alert.metric_text}: the run has no such row."))
    return decide(evaluation, alerts)


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
