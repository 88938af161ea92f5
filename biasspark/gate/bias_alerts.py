"""The tables ``bias_alerts`` and ``comparison_alerts``: the rules of the gate on a run, and on models and baselines.

A metric is an AUC, a rate at a threshold, or a gap of either. It is compared with a bound, with what earlier runs
measured, or with that of a baseline on the same rows.
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
    PairedAucs,
    PairedMetric,
    pair_sides,
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
    """One metric of a run with its interval, or the reason why there is none; of a gap of scores those of its AUC.

    The interval of an AUC comes of `variance`, `n_low`, `n_high` and `by_logit`; a rate or its gap of `decisions`: rows
    that are counted, of how many, in the subgroup and, of a gap, in the background. An earlier run has its `run_id`.
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
    """What a rule evaluates: a metric now and in the run to compare with, None where there is no such row.

    `paired` has both values with variances by the rows of the same ids, where these are known.
    """

    key: Key
    now: Measured | None = None
    before: Measured | None = None
    paired: PairedMetric | None = None


def evaluate_rule(evaluation: RuleEvaluation, rows: Sequence[EvaluatedRow]) -> list[Alert]:
    """Return the alerts of a rule, by model, slice and identity: one for each row that the rule selects.

    What the rule names and the run lacks is added. A rule on the worst identity has one more for each (model, slice),
    of ``(overall)``: it fails where an identity fails, and passes where every one passes. No identity is chosen by its
    value, so that no estimate is the lowest of many.
    """
    rows = [*rows, *map(EvaluatedRow, list_missing(evaluation.rule, [row.key for row in rows]))]
    violation, compliance = _test(evaluation.rule, rows)
    return decide(evaluation, map(_describe, [evaluation] * len(rows), rows, violation, compliance))


def _test(rule: Rule, rows: Sequence[EvaluatedRow]) -> list[list[float | None]]:
    """Return the p-values of violation and of compliance of every row, None where there is no evidence."""
    now = _estimates(rule, [row.now for row in rows])
    if rule.is_change:
        before = _estimates(rule, [row.before for row in rows])
        p_values = compare_with_baseline(now, before, rule.kind, rule.bound, is_size_change=rule.is_size_change)
    else:
        offset = 0.5 if rule.is_gap and rule.kind != "max_abs" else 0.0
        p_values = compare_with_bound(now, rule.kind, rule.bound + offset)
    return [[None if np.isnan(p) else float(p) for p in values] for values in p_values]


def _estimates(rule: Rule, measured: Sequence[Measured | None]) -> Estimates:
    """Return the estimates that a rule is on."""
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
    """Return the alert with its evidence, or with why there is none, given its p-values.

    Those of a change are by the variances of both runs, added. Where the runs are paired, by enough groups of ids, the
    paired ones count.
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
        # The size of a gap rises by no more than all of it. So where gaps of two signs are possible, the size alone is
        # the evidence that the bound is kept.
        p_size = float(compare_with_bound(_aucs([now]), "max_abs", rule.bound)[1][0]) if rule.is_size_change else None
        change = paired_change(evaluation, row.paired, p_size)
        if change["p_violation"] is not None:
            return replace(alert, paired=True, **change)
    return replace(alert, paired=False)


def _ends(rule: Rule, measured: Measured) -> list[float | None]:
    """Return the low end, the value and the high end of the metric, given those of its AUC or rate."""
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

    Each end is as far from the change as those of both values are together (`biasspark.gate.rule_tests`), of a gap by
    the sign of the gap before, or now, that leaves more room.
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
    return sqrt(first * first + second * second)  # the last bits of a hypot differ from platform to platform


def _both_signs(rule: Rule, measured: Measured) -> tuple[_Ends, _Ends] | None:
    """Return the ends of a value twice; of a gap those of its size, 0 or more, and of it with the other sign."""
    low, value, high = _ends(rule, measured)
    if low is None or value is None or high is None:
        return None
    ends = _Ends(low, value, high)
    if not rule.is_size_change:
        return ends, ends
    opposite = _Ends(-high, -value, -low)
    size, opposite = (ends, opposite) if value >= 0 else (opposite, ends)
    return size._replace(low=max(size.low, 0.0)), opposite


Row = Mapping[str, Any]

_RATE_OF = dict(zip(RATE_GAPS, RATES, strict=True))


class GateInput(NamedTuple):
    """What the gate evaluates of a run.

    The tables ``u_statistics``; ``threshold_rates``, where thresholds are configured; ``jackknife_statistics``, where
    runs are paired; and the models without one usable score.
    """

    statistics: pa.Table
    rates: pa.Table | None = None
    jackknife: pa.Table | None = None
    missing_models: tuple[str, ...] = ()


class Baselines(NamedTuple):
    """What changes are measured against.

    Of each metric what it had in the latest accepted run that has an interval of it, and both runs' AUCs with variances
    by leaving the same groups of ids out of both.
    """

    latest: Mapping[MetricKey, Measured] = {}
    paired: Mapping[MetricKey, PairedAucs] = {}


def bias_alerts(run: GateInput, baselines: Baselines, gate: Gate, level: float) -> pa.Table:
    """Return the table ``bias_alerts``, given the level of the intervals, in (0, 1).

    Rules that name a baseline model are left out.
    """
    measured = measure_rules(run.statistics, run.rates, gate.run_rules, level)
    alerts = []
    for rule in gate.run_rules:
        rows = [_evaluated(row, baselines) for row in measured if applies_to(rule, row.key, row.crossed)]
        alerts.append(evaluate_rule(RuleEvaluation(rule, gate, level, run.missing_models), rows))
    return alerts_table(BIAS_ALERTS, alerts)


def measure_rules(
    statistics: pa.Table | None, rates: pa.Table | None, rules: Sequence[Rule], level: float
) -> list[Measured]:
    """Return what rules are on: AUCs and gaps from ``u_statistics``, rates and their gaps from ``threshold_rates``."""
    rate_rules = [rule for rule in rules if rule.threshold is not None]
    measured = [] if statistics is None else _measure_aucs(statistics, rules, level)
    return measured + ([] if rates is None or not rate_rules else _measure_rates(rates, rate_rules, level))


def choose_latest(rows: Iterable[Measured]) -> dict[MetricKey, Measured]:
    """Return of each metric the first row that has an interval: given the latest run first, that of the latest.

    An interval is where an AUC has a variance, or a rate is over any row.
    """
    latest: dict[MetricKey, Measured] = {}
    for row in rows:
        if row.value is not None and (row.decisions or row.variance is not None):
            latest.setdefault(row.key, row)
    return latest


def pair_runs(
    jackknife: pa.Table, before: pa.Table, latest: Mapping[MetricKey, Measured]
) -> dict[MetricKey, PairedAucs]:
    """Return both runs' AUCs of what changes are measured of, with variances by leaving out groups of ids.

    Given are ``jackknife_statistics`` of the run and of accepted runs, by the same groups, and what `choose_latest`
    returns.
    """
    baselines = {(_key(row), row["run_id"]): row for row in before.to_pylist()}
    chosen = [(row, _key(row)) for row in jackknife.to_pylist()]
    return {
        key: pair_sides(row, baseline)
        for row, key in chosen
        if key in latest and (baseline := baselines.get((key, latest[key].run_id))) is not None
    }


def _measure_aucs(statistics: pa.Table, rules: Sequence[Rule], level: float) -> list[Measured]:
    """Return the AUCs that rules are on."""
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
    """Return the rates and gaps that rules are on."""
    z = normal_quantile(level)
    thresholds = pa.array(sorted({rule.threshold for rule in rules if rule.threshold is not None}))
    rows = rates.filter(_of_rules(rules) & pc.is_in(pc.field("threshold"), thresholds)).to_pylist()
    measured = []
    for metric in sorted({rule.metric for rule in rules}):
        rate, is_gap = _RATE_OF.get(metric, metric), metric in RATE_GAPS
        subgroup, background = (_share(rows, side, rate) for side in ("", BACKGROUND))
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


def _share(rows: Sequence[Row], side: str, rate: str) -> Share:
    """Return a rate of each row with its counts, NaN where they are withheld."""
    counted, among = (np.sum([_column(rows, f"{side}{kind}") for kind in kinds], axis=0) for kinds in SHARES[rate])
    return Share(counted, among)


def _of_rules(rules: Sequence[Rule]) -> pc.Expression:
    """Return whether any rule is on the model and slice of a row."""
    models, slices = ({name for rule in rules for name in getattr(rule, names)} for names in ("models", "slices"))
    return pc.is_in(pc.field(MODEL), pa.array(sorted(models))) & pc.is_in(pc.field(SLICE), pa.array(sorted(slices)))


def _key(row: Row) -> MetricKey:
    """Return the metric of a row of ``u_statistics`` or ``jackknife_statistics``."""
    return row[MODEL], row[SLICE], row[IDENTITY], METRIC_OF_CELLS[row["low_cell"], row["high_cell"]], None


def _column(rows: Sequence[Row], name: str) -> Floats:
    return np.array([row[name] for row in rows], np.float64)


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _evaluated(row: Measured, baselines: Baselines) -> EvaluatedRow:
    """Return a metric now, with that in the run to compare with."""
    before, aucs, paired = baselines.latest.get(row.key), baselines.paired.get(row.key), None
    if before is not None and aucs is not None and aucs.difference_variance is not None:
        paired = PairedMetric.of(aucs, ((row.low, row.high), (before.low, before.high)), row.key[3] in SUITE_GAPS)
    return EvaluatedRow(row.key[:3], row, before, paired)


# ---- a model and its baseline on the same rows


def comparison_alerts(
    compared: Sequence[ComparedPair], gate: Gate, level: float, missing_models: Collection[str] = ()
) -> pa.Table:
    """Return the table ``comparison_alerts``: of both models' AUCs of every pair of cells, by intervals of a level.

    Rules that name no baseline are left out. `missing_models` are those without one usable score.
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

    `pairs` are what the run has that the rule selects. What the rule names and the run lacks is added.
    """
    alerts = [_test_pair(evaluation, key, paired) for key, paired in pairs.items()]
    for key in list_missing(evaluation.rule, pairs):
        alert = Alert(evaluation.rule, *key)
        alerts.append(replace(alert, message=f"{alert.metric_text}: the run has no such row."))
    return decide(evaluation, alerts)


def _test_pair(evaluation: RuleEvaluation, key: Key, paired: PairedMetric) -> Alert:
    """Return the alert with its evidence, or with why there is none."""
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
