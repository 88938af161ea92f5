"""The alerts of a night: every rule of the gate on the U statistics of the night, and of those to compare with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import reduce
from typing import Any, NamedTuple

import pandas as pd
import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from biasspark.columns import CROSSED, IDENTITY, MODEL, OVERALL_METRIC, RATE_GAPS, SLICE, SUITE_GAPS
from biasspark.config import Gate, Intervals, Rule
from biasspark.metrics.alerts import Alert, Ruling
from biasspark.metrics.differences import Paired
from biasspark.metrics.intervals import LOGIT_DELONG, auc_interval
from biasspark.metrics.jackknife import IS_BASELINE, paired_by_jackknife
from biasspark.metrics.paired import PairedAucs
from biasspark.metrics.suite import metric_of_pair
from biasspark.metrics.thresholds import BACKGROUND, SHARES, count_decisions
from biasspark.metrics.verdicts import Candidate, Pair, judge
from biasspark.tables.schemas import BIAS_ALERTS, JACKKNIFE_STATISTICS, Table

_KEY = (MODEL, SLICE, IDENTITY, "metric")
_BOUNDS = ("auc_at_least", "auc_at_most", "auc_variance_at_least", "auc_variance_at_most")
_NUMBERS = ("auc", "variance", "n_low", "n_high", "low", "high", *_BOUNDS)
_PAIR = (*_NUMBERS, "by_logit", "joined")
_DECISIONS = ("counted", "among", "background_counted", "background_among")
_BEFORE_RUN, _BY_ID = "before_run_id", "by_id_"
_PAIRED = tuple(f"{_BY_ID}{name}" for name in PairedAucs._fields)


class Night(NamedTuple):
    """What of a night the gate looks at.

    Attributes
    ----------
    statistics
        u_statistics as `biasspark.metrics.statistics.with_auc` gives it, with what is withheld NULL.
    rates
        ``threshold_rates``, where thresholds are configured.
    left_out
        ``jackknife_statistics``, where nights are paired.
    """

    statistics: DataFrame
    rates: DataFrame | None = None
    left_out: DataFrame | None = None


def bias_alerts(
    night: Night, before: DataFrame | None, gate: Gate, intervals: Intervals, paired: DataFrame | None = None
) -> DataFrame:
    """Return the table ``bias_alerts``, less the run's columns.

    Parameters
    ----------
    night : Night
        What is judged.
    before : DataFrame, optional
        What changes are measured against, from `choose_before`, if there is any.
    gate : Gate
        The rules; those that name a baseline are left out.
    intervals : Intervals
        The level of the intervals; their method is that of the evidence.
    paired : DataFrame, optional
        Both nights' AUCs by the same groups of ids, from `pair_nights`.

    Notes
    -----
    Lazy. One Python task, which takes the rules one after the other: a row for each rule, model, slice and identity,
    none for a row of the corpus.
    """
    measured = _measure(night.statistics, intervals)
    before_names = [f"before_{name}" for name in _PAIR]
    measured = _join(measured, before, dict.fromkeys(before_names, "double") | {_BEFORE_RUN: "string"})
    measured = _join(measured, paired, dict.fromkeys(_PAIRED, "double"))
    if gate.of_rates and night.rates is not None:
        measured = measured.unionByName(_measure_rates(night.rates), allowMissingColumns=True)
    rulings = [Ruling(rule, gate.alpha, intervals.level) for rule in gate.of_nights]

    def judge_rows(ruling: Ruling, rows: Iterable[Mapping[Any, Any]]) -> list[Alert]:
        return judge(ruling, list(map(_read_candidate, rows)))

    return judge_rules(measured, rulings, judge_rows, BIAS_ALERTS)


def choose_before(before: DataFrame, intervals: Intervals) -> DataFrame:
    """Return of each (model, slice, identity, metric) what it had in the latest run that has an interval of it.

    Parameters
    ----------
    before : DataFrame
        ``u_statistics`` of accepted runs, with their ``run_id`` and ``place``, the latest first.

    Notes
    -----
    Lazy. An interval is where a variance is, so they are made of the chosen alone.
    """
    key = (MODEL, SLICE, IDENTITY, "low_cell", "high_cell")
    rows = before.where(F.col("auc").isNotNull() & F.col("auc_variance").isNotNull())
    others = F.struct(*(name for name in before.columns if name not in (*key, "place")))
    latest = rows.coalesce(1).groupBy(*key).agg(F.min_by(others, "place").alias("latest"))
    chosen = _measure(latest.select(*key, "latest.*"), intervals, "run_id")
    return chosen.select(*_KEY, *(F.col(name).alias(f"before_{name}") for name in (*_PAIR, "run_id")))


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


def _join(measured: DataFrame, more: DataFrame | None, types: Mapping[str, str]) -> DataFrame:
    """Add columns that belong to a (model, slice, identity, metric); all NULL where there are none."""
    if more is None:
        return measured.withColumns({name: F.lit(None).cast(kind) for name, kind in types.items()})
    return measured.join(F.broadcast(more), on=list(_KEY), how="left")


def _measure(statistics: DataFrame, intervals: Intervals, *further: str) -> DataFrame:
    """Return every AUC with what its p-values come of, by the metric's name; all numbers as DOUBLE."""
    there = [name for name in _BOUNDS if name in statistics.columns]
    # What has no bounds is exact, as a run of before there were any.
    exact = {name: F.col("auc_variance" if "variance" in name else "auc") for name in _BOUNDS}
    known = exact | {name: F.coalesce(name, exact[name]) for name in there}
    pair = F.struct("auc", "auc_variance", "n_low", "n_high", *there)
    interval = auc_interval(pair, intervals.level, bounded=bool(there))
    with_ends = (
        statistics.withColumns(known).coalesce(1).withColumns({"metric": metric_of_pair(), "interval": interval})
    )
    return with_ends.select(
        *(*_KEY, CROSSED, "reason", "auc"),
        F.col("auc_variance").alias("variance"),
        F.col("n_low").cast("double").alias("n_low"),
        F.col("n_high").cast("double").alias("n_high"),
        F.col("interval.low").alias("low"),
        F.col("interval.high").alias("high"),
        (F.col("interval.method") == LOGIT_DELONG).cast("double").alias("by_logit"),
        F.col("interval.joined").cast("double").alias("joined"),
        *(*_BOUNDS, *further),
    )


def _measure_rates(rates: DataFrame) -> DataFrame:
    """Return the gap of every rate at every threshold with what its p-values come of, by its name; all as DOUBLE."""

    def numbers(gap: str) -> Column:
        decisions = [count_decisions(kinds, side) for side in ("", BACKGROUND) for kinds in SHARES[gap[:-4]]]
        found = {"auc": F.col(gap), "low": F.col(f"{gap}_low"), "high": F.col(f"{gap}_high")}
        found |= dict(zip(_DECISIONS, decisions, strict=True))
        return F.struct(F.lit(gap).alias("metric"), *(own.cast("double").alias(name) for name, own in found.items()))

    reason = F.when(F.col("found.auc").isNull(), F.coalesce("reason", F.lit("it is over no rows"))).alias("reason")
    each = rates.select("*", F.explode(F.array(*map(numbers, RATE_GAPS))).alias("found"))
    return each.select(MODEL, SLICE, IDENTITY, CROSSED, "threshold", reason, "found.*")


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
        return None if pd.isna(row[name]) else row[name]

    def pair(prefix: str) -> Pair:
        numbers = {name: known(f"{prefix}{name}") for name in _NUMBERS}
        return Pair(**numbers, by_logit=known(f"{prefix}by_logit") == 1, joined=known(f"{prefix}joined") == 1)

    now, before = pair(""), pair("before_")
    if row["metric"] in RATE_GAPS and now.auc is not None:
        decisions = tuple(row[name] for name in _DECISIONS)
        now = replace(now, decisions=decisions, auc_at_least=now.auc, auc_at_most=now.auc)
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
    if pd.isna(row[f"{_BY_ID}difference_variance"]):
        return None
    found, ends = PairedAucs(*(row[name] for name in _PAIRED)), ((now.low, now.high), (before.low, before.high))
    return Paired.of(found, ends, row["metric"] in SUITE_GAPS)
