"""The alerts of a night: every rule of the gate on what the night measured, and the nights to compare with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import reduce
from typing import Any, NamedTuple

import pandas as pd
import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from biasspark.columns import CROSSED, IDENTITY, MODEL, OVERALL_METRIC, RATE_GAPS, RATES, SLICE, SUITE_GAPS
from biasspark.config import Gate, Intervals, Rule
from biasspark.distributions import normal_quantile
from biasspark.metrics.comparisons.differences import Paired
from biasspark.metrics.comparisons.jackknife import IS_BASELINE, paired_by_jackknife
from biasspark.metrics.comparisons.paired import PairedAucs
from biasspark.metrics.gate.alerts import Alert, Ruling
from biasspark.metrics.gate.night_rules import Candidate, Pair, judge_candidates
from biasspark.metrics.intervals import LOGIT_DELONG, auc_interval
from biasspark.metrics.suite import metric_of_pair
from biasspark.metrics.thresholds import BACKGROUND, bound_gap, bound_rate, count_rate
from biasspark.tables.schemas import BIAS_ALERTS, JACKKNIFE_STATISTICS, Table

_KEY = (MODEL, SLICE, IDENTITY, "metric")
_KEY_OF_RATES = (*_KEY, "threshold")
_BOUNDS = ("auc_at_least", "auc_at_most", "auc_variance_at_least", "auc_variance_at_most")
_ENDS = {name: name.removeprefix("auc_") for name in _BOUNDS}
_NUMBERS = ("value", "variance", "n_low", "n_high", "low", "high", *_ENDS.values())
_DECISIONS = ("counted", "among", "background_counted", "background_among")
_RATE_OF = dict(zip(RATE_GAPS, RATES, strict=True))
_BEFORE, _BY_ID = "before_", "by_id_"
_BEFORE_RUN = f"{_BEFORE}run_id"
_PAIRED = tuple(f"{_BY_ID}{name}" for name in PairedAucs._fields)


class JudgedNight(NamedTuple):
    """What of a night the gate looks at.

    Attributes
    ----------
    statistics
        u_statistics as `biasspark.metrics.statistics.with_auc` gives it, with what is withheld NULL.
    rates
        ``threshold_rates``, where thresholds are configured.
    left_out
        ``jackknife_statistics``, where nights are paired.
    missing_models
        Models without one usable score.
    """

    statistics: DataFrame
    rates: DataFrame | None = None
    left_out: DataFrame | None = None
    missing_models: tuple[str, ...] = ()


class Accepted(NamedTuple):
    """What accepted runs have of what rules on changes look at, with ``run_id`` and ``place``, the latest first.

    Attributes
    ----------
    statistics
        ``u_statistics``, where a rule is on an AUC.
    rates
        ``threshold_rates``, where a rule is on a rate.
    """

    statistics: DataFrame | None = None
    rates: DataFrame | None = None


class Before(NamedTuple):
    """What changes are measured against; None where there is nothing.

    Attributes
    ----------
    aucs, rates
        From `choose_before`.
    paired
        Both nights' AUCs by the same groups of ids, from `pair_nights`.
    """

    aucs: DataFrame | None = None
    rates: DataFrame | None = None
    paired: DataFrame | None = None


def bias_alerts(night: JudgedNight, before: Before, gate: Gate, intervals: Intervals) -> DataFrame:
    """Return the table ``bias_alerts``, less the run's columns.

    Parameters
    ----------
    night : JudgedNight
        What is judged.
    before : Before
        What changes are measured against.
    gate : Gate
        The rules; those that name a baseline are left out.
    intervals : Intervals
        The level of the intervals; their method is that of the evidence.

    Notes
    -----
    Lazy. One Python task, which takes the rules one after the other: a row for each rule, model, slice and identity,
    none for a row of the corpus.
    """
    measured = _bound_aucs(_name_aucs(night.statistics), intervals)
    measured = _join(_join(measured, before.aucs, _KEY), before.paired, _KEY)
    measured = measured.withColumn("threshold", F.lit(None).cast("double"))
    if gate.of_rates and night.rates is not None:
        rates = _bound_rates(_name_rates(night.rates, gate.of_rates), intervals)
        measured = measured.unionByName(_join(rates, before.rates, _KEY_OF_RATES), allowMissingColumns=True)
    rulings = [Ruling.of(rule, gate, intervals.level, night.missing_models) for rule in gate.of_nights]

    def judge_rows(ruling: Ruling, rows: Iterable[Mapping[Any, Any]]) -> list[Alert]:
        return judge_candidates(ruling, list(map(_read_candidate, rows)))

    return judge_rules(measured, rulings, judge_rows, BIAS_ALERTS)


def choose_before(accepted: Accepted, gate: Gate, intervals: Intervals) -> Before:
    """Return of each (model, slice, identity, metric) what it had in the latest run that has an interval of it.

    Notes
    -----
    Lazy. An interval is where an AUC has a variance, or a rate is over any row, so they are made of the chosen alone.
    """
    aucs = rates = None
    if accepted.statistics is not None:
        known = _name_aucs(accepted.statistics).where(F.col("auc").isNotNull() & F.col("auc_variance").isNotNull())
        aucs = _as_before(_bound_aucs(_choose_latest(known, _KEY), intervals), _KEY)
    if accepted.rates is not None:
        known = _name_rates(accepted.rates, gate.of_rate_changes).where(F.col("value").isNotNull())
        rates = _as_before(_bound_rates(_choose_latest(known, _KEY_OF_RATES), intervals), _KEY_OF_RATES)
    return Before(aucs, rates)


def _choose_latest(rows: DataFrame, key: Sequence[str]) -> DataFrame:
    """Return the row at the first place of each key."""
    others = F.struct(*(name for name in rows.columns if name not in (*key, "place")))
    latest = rows.coalesce(1).groupBy(*key).agg(F.min_by(others, "place").alias("latest"))
    return latest.select(*key, "latest.*")


def _as_before(chosen: DataFrame, key: Sequence[str]) -> DataFrame:
    """Return what was chosen of earlier runs, under names of its own."""
    names = (name for name in chosen.columns if name not in (*key, CROSSED, "reason"))
    return chosen.select(*key, *(F.col(name).alias(f"{_BEFORE}{name}") for name in names))


def pair_nights(now: DataFrame, before: DataFrame, chosen: DataFrame) -> DataFrame:
    """Return both nights' AUCs of what changes are measured of, with variances by leaving out groups of ids.

    Parameters
    ----------
    now, before : DataFrame
        ``jackknife_statistics`` of the night, and of accepted runs with their ``run_id``, by the same groups.
    chosen : DataFrame
        What changes are measured against, from `choose_before`.

    Notes
    -----
    Lazy. One shuffle of tables that do not grow with the corpus.
    """
    asked = F.broadcast(chosen.select(*_KEY, F.col(_BEFORE_RUN).alias("run_id")))
    earlier = before.withColumn("metric", metric_of_pair()).join(asked, on=[*_KEY, "run_id"], how="left_semi")
    own, others = (
        rows.select(*JACKKNIFE_STATISTICS.value_columns, F.lit(is_baseline).alias(IS_BASELINE))
        for rows, is_baseline in ((now, False), (earlier, True))
    )
    both = paired_by_jackknife(own.unionByName(others), (MODEL, SLICE, IDENTITY))
    numbers = (F.col(name).cast("double").alias(f"{_BY_ID}{name}") for name in PairedAucs._fields)
    return both.select(MODEL, SLICE, IDENTITY, metric_of_pair().alias("metric"), *numbers)


def judge_rules(
    measured: DataFrame,
    rulings: Sequence[Ruling],
    judge_rows: Callable[[Ruling, Iterable[Mapping[Any, Any]]], list[Alert]],
    table: Table,
) -> DataFrame:
    """Return the alerts of rules, each of which is asked with the rows that it looks at, also where there is none.

    Parameters
    ----------
    measured
        Metrics as rows, with ``model, slice, identity, metric, crossed``.
    judge_rows
        Makes alerts of a rule and its rows, as pandas holds them.
    table
        The table that they are for.
    """
    selected = F.array_compact(F.array(*(F.when(_selects(own.rule), F.lit(n)) for n, own in enumerate(rulings))))
    chosen = measured.select(F.explode(selected).alias("rule"), "*")
    # A rule that selects nothing has a row of its own, so that it is asked as well.
    none = measured.sparkSession.range(0, len(rulings), 1, 1).select(F.col("id").cast("int").alias("rule"))
    candidates = chosen.coalesce(1).unionByName(none, allowMissingColumns=True).coalesce(1)

    def judge_rule(rows: pd.DataFrame) -> pd.DataFrame:
        found = (row for row in rows.to_dict("records") if isinstance(row[MODEL], str))
        alerts = judge_rows(rulings[int(rows["rule"].iloc[0])], found)
        return pd.DataFrame([asdict(alert) for alert in alerts], columns=list(table.value_columns), dtype=object)

    return candidates.groupBy("rule").applyInPandas(judge_rule, table.value_schema)


def _join(measured: DataFrame, more: DataFrame | None, key: Sequence[str]) -> DataFrame:
    """Add columns that belong to a key, if there are any."""
    return measured if more is None else measured.join(F.broadcast(more), on=list(key), how="left")


def _name_aucs(statistics: DataFrame) -> DataFrame:
    """Add to every AUC the name of its metric."""
    return statistics.withColumn("metric", metric_of_pair())


def _bound_aucs(named: DataFrame, intervals: Intervals) -> DataFrame:
    """Return every AUC with what its p-values come of; all numbers as DOUBLE."""
    there = [name for name in _BOUNDS if name in named.columns]
    # What has no bounds is exact, as a run of before there were any.
    exact = {name: F.col("auc_variance" if "variance" in name else "auc") for name in _BOUNDS}
    known = exact | {name: F.coalesce(name, exact[name]) for name in there}
    pair = F.struct("auc", "auc_variance", "n_low", "n_high", *there)
    interval = auc_interval(pair, intervals.level, bounded=bool(there))
    with_ends = named.withColumns(known).coalesce(1).withColumn("interval", interval)
    return with_ends.select(
        *(*_KEY, CROSSED, "reason", *_of_run(named)),
        F.col("auc").alias("value"),
        F.col("auc_variance").alias("variance"),
        F.col("n_low").cast("double").alias("n_low"),
        F.col("n_high").cast("double").alias("n_high"),
        F.col("interval.low").alias("low"),
        F.col("interval.high").alias("high"),
        (F.col("interval.method") == LOGIT_DELONG).cast("double").alias("by_logit"),
        F.col("interval.joined").cast("double").alias("joined"),
        *(F.col(name).alias(end) for name, end in _ENDS.items()),
    )


def _name_rates(rates: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """Return the rates and gaps that rules are on, a row each, with the decisions that they come of, as DOUBLE."""

    def find(metric: str) -> Column:
        sides = ("", BACKGROUND) if metric in RATE_GAPS else ("",)
        counts = [count for side in sides for count in count_rate(_RATE_OF.get(metric, metric), side)]
        counts += [F.lit(None).cast("double")] * (len(_DECISIONS) - len(counts))
        decisions = (count.alias(name) for name, count in zip(_DECISIONS, counts, strict=True))
        return F.struct(F.lit(metric).alias("metric"), F.col(metric).alias("value"), *decisions)

    asked = rates.where(F.col("threshold").isin(*{rule.threshold for rule in rules}))
    each = asked.select("*", F.explode(F.array(*map(find, sorted({rule.metric for rule in rules})))).alias("found"))
    why = F.coalesce("reason", F.lit("no rows to compute it from"))
    reason = F.when(F.col("found.value").isNull(), why).alias("reason")
    return each.select(MODEL, SLICE, IDENTITY, "threshold", CROSSED, reason, *_of_run(rates), "found.*")


def _bound_rates(named: DataFrame, intervals: Intervals) -> DataFrame:
    """Add the intervals of rates and gaps."""
    counted, among, background_counted, background_among = map(F.col, _DECISIONS)
    own, background = (counted, among), (background_counted, background_among)
    z = normal_quantile(intervals.level)
    of_gap, of_rate = bound_gap(own, background, z), bound_rate(own, z)
    is_gap = F.col("metric").isin(*RATE_GAPS)
    ends = {name: F.when(is_gap, of_gap[end]).otherwise(of_rate[end]) for end, name in enumerate(("low", "high"))}
    return named.withColumns(ends)


def _of_run(rows: DataFrame) -> list[str]:
    """Return which of the columns there are that tell accepted runs apart."""
    return [name for name in ("run_id", "place") if name in rows.columns]


def _selects(rule: Rule) -> Column:
    """Return whether a rule looks at a row."""
    conditions = [
        F.col("metric") == F.lit(rule.metric),
        F.col(MODEL).isin(*rule.models),
        F.col(SLICE).isin(*rule.slices),
    ]
    if rule.threshold is not None:
        conditions.append(F.col("threshold") == F.lit(rule.threshold))
    if rule.identities is not None:
        conditions.append(F.col(IDENTITY).isin(*rule.identities))
    elif rule.metric != OVERALL_METRIC and not rule.crossed:
        conditions.append(~F.col(CROSSED))
    return reduce(Column.__and__, conditions)


def _read_candidate(row: Mapping[Any, Any]) -> Candidate:
    """Read a row that pandas holds, in which NULL may be NaN."""

    def known(name: str) -> Any:
        return None if pd.isna(row.get(name)) else row[name]

    def pair(prefix: str) -> Pair:
        numbers = {name: known(f"{prefix}{name}") for name in _NUMBERS}
        decisions = tuple(number for name in _DECISIONS if (number := known(f"{prefix}{name}")) is not None)
        if decisions:
            numbers |= {"at_least": numbers["value"], "at_most": numbers["value"]}
        by_logit, joined = (known(f"{prefix}{name}") == 1 for name in ("by_logit", "joined"))
        return Pair(**numbers, by_logit=by_logit, joined=joined, decisions=decisions)

    now, before = pair(""), pair(_BEFORE)
    return Candidate(
        key=(row[MODEL], row[SLICE], row[IDENTITY]),
        reason=known("reason"),
        now=now,
        before=before,
        before_run_id=known(_BEFORE_RUN),
        paired=_read_paired(row, now, before),
    )


def _read_paired(row: Mapping[Any, Any], now: Pair, before: Pair) -> Paired | None:
    """Read the evidence by the rows of the same ids, None where there is none."""
    if pd.isna(row.get(f"{_BY_ID}difference_variance")):
        return None
    found, ends = PairedAucs(*(row[name] for name in _PAIRED)), ((now.low, now.high), (before.low, before.high))
    return Paired.of(found, ends, row["metric"] in SUITE_GAPS)
