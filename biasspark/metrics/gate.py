"""The alerts of a night: every rule of the gate on the U statistics of the night, and of those to compare with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import reduce
from typing import Any

import pandas as pd
import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from biasspark.columns import CROSSED, IDENTITY, MODEL, OVERALL_METRIC, SLICE
from biasspark.config import Gate, Intervals, Rule
from biasspark.metrics.alerts import Alert, Ruling
from biasspark.metrics.intervals import LOGIT_DELONG, auc_interval
from biasspark.metrics.suite import metric_of_pair
from biasspark.metrics.verdicts import Candidate, Pair, judge
from biasspark.tables.schemas import BIAS_ALERTS, Table

_KEY = (MODEL, SLICE, IDENTITY, "metric")
_BOUNDS = ("auc_at_least", "auc_at_most", "auc_variance_at_least", "auc_variance_at_most")
_NUMBERS = ("auc", "variance", "n_low", "n_high", "low", "high", *_BOUNDS)
_PAIR = (*_NUMBERS, "by_logit", "joined")


def bias_alerts(statistics: DataFrame, before: DataFrame | None, gate: Gate, intervals: Intervals) -> DataFrame:
    """Return the table ``bias_alerts``, less the run's columns.

    Parameters
    ----------
    statistics : DataFrame
        u_statistics as `biasspark.metrics.statistics.with_auc` gives it: the night's own, with what is withheld NULL.
    before : DataFrame, optional
        The same of accepted runs, with their ``run_id`` and ``place``, the latest first, if there are any and a rule is
        on a change. Each (model, slice, identity, metric) is compared with the latest that has an interval of it.
    gate : Gate
        The rules; those that name a baseline are left out.
    intervals : Intervals
        The level of the intervals; their method is that of the evidence.

    Notes
    -----
    Lazy. One Python task, which takes the rules one after the other: a row for each rule, model, slice and identity,
    none for a row of the corpus.
    """
    measured = _measure(statistics, intervals)
    if before is None:
        numbers = {f"before_{name}": F.lit(None).cast("double") for name in _PAIR}
        measured = measured.withColumns(numbers | {"before_run_id": F.lit(None).cast("string")})
    else:
        measured = measured.join(F.broadcast(_choose_before(before, intervals)), on=list(_KEY), how="left")
    rulings = [Ruling(rule, gate.alpha) for rule in gate.of_nights]

    def judge_rows(ruling: Ruling, rows: Iterable[Mapping[Any, Any]]) -> list[Alert]:
        return judge(ruling, list(map(_read_candidate, rows)))

    return judge_rules(measured, rulings, judge_rows, BIAS_ALERTS)


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


def _choose_before(before: DataFrame, intervals: Intervals) -> DataFrame:
    """Return of each (model, slice, identity, metric) the pair of the latest run that has an interval of it.

    Which is where it has a variance: so intervals are made of the chosen alone.
    """
    key = (MODEL, SLICE, IDENTITY, "low_cell", "high_cell")
    rows = before.where(F.col("auc").isNotNull() & F.col("auc_variance").isNotNull())
    others = F.struct(*(name for name in before.columns if name not in (*key, "place")))
    latest = rows.coalesce(1).groupBy(*key).agg(F.min_by(others, "place").alias("latest"))
    chosen = _measure(latest.select(*key, "latest.*"), intervals, "run_id")
    return chosen.select(*_KEY, *(F.col(name).alias(f"before_{name}") for name in (*_PAIR, "run_id")))


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


def _selects(rule: Rule) -> Column:
    """Return whether a rule looks at a row."""
    conditions = [
        F.col("metric") == F.lit(rule.metric),
        F.col(MODEL).isin(*rule.models),
        F.col(SLICE).isin(*rule.slices),
    ]
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

    return Candidate(
        key=(row[MODEL], row[SLICE], row[IDENTITY]),
        reason=known("reason"),
        now=pair(""),
        before=pair("before_"),
        before_run_id=known("before_run_id"),
    )
