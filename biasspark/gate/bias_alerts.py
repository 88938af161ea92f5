"""The table ``bias_alerts``: every rule of the gate, on the metrics of a run and their changes since earlier runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from biasspark.arrays import Floats
from biasspark.columns import CROSSED, IDENTITY, MODEL, RATE_GAPS, RATES, SLICE, SUITE_GAPS
from biasspark.comparison.differences import PairedMetric
from biasspark.comparison.jackknife import pair_sides
from biasspark.comparison.paired import PairedAucs
from biasspark.config import Gate, Rule
from biasspark.distributions import normal_quantile
from biasspark.gate.alerts import MetricKey, RuleEvaluation, alerts_table, applies_to
from biasspark.gate.run_rules import EvaluatedRow, Measured, evaluate_rule
from biasspark.metrics.intervals import LOGIT_DELONG, auc_interval
from biasspark.metrics.proportions import Share, newcombe_difference, wilson_interval
from biasspark.metrics.suite import METRIC_OF_CELLS
from biasspark.metrics.thresholds import BACKGROUND, SHARES
from biasspark.tables.schemas import BIAS_ALERTS

Row = Mapping[str, Any]

_RATE_OF = dict(zip(RATE_GAPS, RATES, strict=True))


class GateInput(NamedTuple):
    """The tables of a run that the gate evaluates.

    These are ``u_statistics``; ``threshold_rates``, where thresholds are configured; ``jackknife_statistics``, where
    runs are paired; and the models without one usable score.
    """

    statistics: pa.Table
    rates: pa.Table | None = None
    jackknife: pa.Table | None = None
    missing_models: tuple[str, ...] = ()


class Baselines(NamedTuple):
    """What changes are measured against.

    For each metric, its row in the latest accepted run with an interval, and both runs' AUCs with variances from
    leaving the same groups of ids out of both.
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
) -> dict[MetricKey, PairedAucs]:
    """Return both runs' AUCs of the metrics whose changes are measured, with variances by leaving out groups of ids.

    `jackknife` and `before` are ``jackknife_statistics`` of the run and of accepted runs, by the same groups; `latest`
    is the result of `choose_latest`.
    """
    baselines = {(_key(row), row["run_id"]): row for row in before.to_pylist()}
    chosen = [(row, _key(row)) for row in jackknife.to_pylist()]
    return {
        key: pair_sides(row, baseline)
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
    """Return a rate of each row with its counts, NaN if they are suppressed."""
    counted, among = (np.sum([_column(rows, f"{side}{kind}") for kind in kinds], axis=0) for kinds in SHARES[rate])
    return Share(counted, among)


def _of_rules(rules: Sequence[Rule]) -> pc.Expression:
    """Return whether any rule applies to the model and slice of a row."""
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
    """Return a metric of this run together with that of the run to compare with."""
    before, aucs, paired = baselines.latest.get(row.key), baselines.paired.get(row.key), None
    if before is not None and aucs is not None and aucs.difference_variance is not None:
        paired = PairedMetric.of(aucs, ((row.low, row.high), (before.low, before.high)), row.key[3] in SUITE_GAPS)
    return EvaluatedRow(row.key[:3], row, before, paired)
