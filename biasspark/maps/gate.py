"""The map of the gate: statistics of a night, those of accepted runs, or of two models -> alerts -> verdict."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from itertools import starmap, takewhile
from typing import Any, NamedTuple

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, SparkSession

from biasspark.columns import FAIL, IDENTITY, INSUFFICIENT, MODEL, OUTCOMES, SLICE, WARN
from biasspark.config import Config, Otherwise, find_otherwise, list_first, say_count, show_visibly
from biasspark.errors import GATE_FAILED
from biasspark.expressions.ordering import place_among
from biasspark.metrics.gate.bias_alerts import Accepted, JudgedNight, bias_alerts, choose_before, pair_nights
from biasspark.metrics.gate.comparison_alerts import comparison_alerts
from biasspark.session import describe, persisted
from biasspark.tables.acceptance import list_accepted
from biasspark.tables.published import read_those_left, say_gone
from biasspark.tables.runs import ACCEPTED, PUBLISHED, Run
from biasspark.tables.schemas import JACKKNIFE_STATISTICS, THRESHOLD_RATES, U_STATISTICS, Table
from biasspark.tables.store import Store

SHOWN = ("outcome", "rule", MODEL, SLICE, "message")
MOST_RULES = 5


@dataclass(frozen=True)
class Verdict:
    """What the gate says of a night.

    Attributes
    ----------
    alerts
        `bias_alerts`, less the run's columns; None without a gate.
    counts
        How many alerts have each outcome.
    warnings
        What kept the gate from comparing with accepted runs, and how many checks warn for want of evidence.
    """

    alerts: DataFrame | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def outcome(self) -> str | None:
        """The worst outcome of any alert; None without a gate."""
        return next((outcome for outcome in OUTCOMES if self.counts.get(outcome)), None)

    @property
    def status(self) -> str:
        """What the ledger says: accepted where there is a gate and it did not fail."""
        return PUBLISHED if self.outcome in (None, FAIL) else ACCEPTED

    @property
    def exit_code(self) -> int:
        """The exit code of the job."""
        return GATE_FAILED if self.outcome == FAIL else 0


@contextmanager
def judged(night: JudgedNight, config: Config, store: Store, run: Run) -> Iterator[Verdict]:
    """Judge a night before it is published, and keep its alerts for the block.

    Parameters
    ----------
    night : JudgedNight
        What is judged; its statistics and what pairs it are persisted.
    run : Run
        The night's.

    Notes
    -----
    Reads the statistics and, where a rule is on a change, the ledger and ``u_statistics`` or ``threshold_rates`` of
    accepted runs, and ``jackknife_statistics`` of those that a change is measured against: never the corpus.
    """
    if config.gate is None or not config.gate.of_nights:
        yield Verdict()
        return
    spark = night.statistics.sparkSession
    with describe(spark, "judge the night"):
        baselines = _read_baselines(spark, config, store, run)
    before = choose_before(baselines.accepted, config.gate, config.intervals)
    with _paired(night.left_out, before.aucs, store, baselines.groups_alike) as paired:
        alerts = bias_alerts(night, before._replace(paired=paired.nights), config.gate, config.intervals)
        with _counted(alerts, (*baselines.warnings, *paired.warnings)) as verdict:
            yield verdict


@contextmanager
def judged_comparison(compared: DataFrame, config: Config, missing_models: Collection[str] = ()) -> Iterator[Verdict]:
    """Judge models against their baseline before the comparison is published, and keep its alerts for the block.

    Parameters
    ----------
    compared : DataFrame
        Both models' AUCs of every pair of cells, persisted.
    missing_models : collection of str
        Models without one usable score.
    """
    if config.gate is None or not config.gate.of_comparisons:
        yield Verdict()
        return
    alerts = comparison_alerts(compared, config.gate, config.intervals.level, missing_models)
    with _counted(alerts) as verdict:
        yield verdict


@contextmanager
def _counted(alerts: DataFrame, warnings: tuple[str, ...] = ()) -> Iterator[Verdict]:
    """Keep alerts for the block, and say how many came to what."""
    with persisted(alerts):
        with describe(alerts.sparkSession, "judge by the gate"):
            rows = alerts.groupBy("outcome", "decided").count().collect()
        found = {(row["outcome"], row["decided"]): row["count"] for row in rows}
        counts = {outcome: found.get((outcome, True), 0) + found.get((outcome, False), 0) for outcome, _ in found}
        undecided = [_say_undecided(n)] if (n := found.get((WARN, False), 0)) else []
        yield Verdict(alerts, counts, (*warnings, *undecided))


def _say_undecided(n_checks: int) -> str:
    evidence = f"{say_count(n_checks, 'check')} {'has' if n_checks == 1 else 'have'} insufficient evidence"
    return f'gate: {evidence}, which counts as a warning by `insufficient = "warn"`.'


class _Baselines(NamedTuple):
    """What changes are measured against, what was passed over, and the runs whose ids are in groups as tonight's."""

    accepted: Accepted = Accepted()
    warnings: tuple[str, ...] = ()
    groups_alike: tuple[Run, ...] = ()


class _Pairing(NamedTuple):
    """Nights that are paired, and what kept the gate from it."""

    nights: DataFrame | None = None
    warnings: tuple[str, ...] = ()


def _read_baselines(spark: SparkSession, config: Config, store: Store, run: Run) -> _Baselines:
    """Return what rules on changes need of accepted runs, as far as they were measured alike, and each run's ``place``.

    A missing old night does not fail this one. A warning names skipped runs only if they are later than the newest
    complete one.
    """
    assert config.gate is not None
    rules = {U_STATISTICS: config.gate.of_changes, THRESHOLD_RATES: config.gate.of_rate_changes}
    if not any(rules.values()):
        return _Baselines()
    accepted, resolved = list_accepted(spark, store, run), config.resolved()
    found = {own.run: find_otherwise(resolved, own.config, ("tonight", "then")) for own in accepted}
    alike = [own for own, otherwise in found.items() if not otherwise.everywhere]
    read: dict[Table, DataFrame] = {}
    gone: dict[Run, list[str]] = {}
    for table in (own for own in rules if rules[own]):
        rows, left = read_those_left(spark, store, table, alike)
        if rows is not None:
            read[table] = _keep_alike(rows, found)
        for own in set(alike) - set(left):
            gone.setdefault(own, []).append(say_gone(store, table, own))
    incomplete = dict(takewhile(lambda item: item[1].phrases or item[0] in gone, found.items()))
    others: dict[tuple[str, ...], list[Run]] = {}
    for own, otherwise in incomplete.items():
        if otherwise.phrases:
            others.setdefault(otherwise.phrases, []).append(own)
    faults = [fault for own in incomplete for fault in gone.get(own, ())]
    return _Baselines(
        Accepted(read.get(U_STATISTICS), read.get(THRESHOLD_RATES)),
        (*starmap(_say_otherwise, others.items()), *faults),
        tuple(own.run for own in accepted if _groups_alike(resolved, own.config)),
    )


def _groups_alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Say whether two nights leave out groups of the same ids, by what `Config.resolved` gives of them."""
    ids = [own.get("corpus", {}).get("id") for own in (one, other)]
    return ids[0] == ids[1] and all(own.get("gate", {}).get("paired", False) for own in (one, other))


@contextmanager
def _paired(
    left_out: DataFrame | None, before: DataFrame | None, store: Store, runs: Sequence[Run]
) -> Iterator[_Pairing]:
    """Pair a night, for the block, with those of the runs that a change is measured against.

    Notes
    -----
    One job over ``u_statistics`` of accepted runs.
    """
    if left_out is None or before is None:
        yield _Pairing()
        return
    spark = before.sparkSession
    with persisted(before):
        with describe(spark, "choose what is compared"):
            chosen = {row["before_run_id"] for row in before.select("before_run_id").distinct().collect()}
            asked = [run for run in runs if run.run_id in chosen]
            rows, left = read_those_left(spark, store, JACKKNIFE_STATISTICS, asked)
        gone = [say_gone(store, JACKKNIFE_STATISTICS, run) for run in asked if run not in left]
        if others := sorted(chosen - {run.run_id for run in asked}):
            whose = f"{others[0]} and {len(others) - 1} more" if len(others) > 1 else others[0]
            gone.append(
                f"gate: paired, but the baseline {whose} did not keep tonight's ids: there variances are added."
            )
        yield _Pairing(None if rows is None else pair_nights(left_out, rows, before), tuple(gone))


def _keep_alike(rows: DataFrame, found: Mapping[Run, Otherwise]) -> DataFrame:
    """Return the rows of the models and slices that were measured as they are tonight, the latest run at place 1."""
    others = [
        (F.col("run_id") == F.lit(run.run_id)) & (F.col(MODEL).isin(*own.models) | F.col(SLICE).isin(*own.slices))
        for run, own in found.items()
        if own.models or own.slices
    ]
    kept = rows.where(~reduce(Column.__or__, others)) if others else rows
    return kept.withColumn("place", place_among((run.run_id for run in found), F.col("run_id")))


def _say_otherwise(differences: Sequence[str], runs: Sequence[Run]) -> str:
    who = f"the accepted run {runs[0].run_id} of {runs[0].run_date} was"
    if len(runs) > 1:
        who = f"{len(runs)} accepted runs from {runs[-1].run_date} to {runs[0].run_date} were"
    return f"gate: {who} measured differently: {'; '.join(differences)}. No change is measured against what differs."


def show_alerts(published: DataFrame, table: Table, verdict: Verdict, most: int = 20) -> str:
    """Return how many alerts have each outcome, and a line for each that failed or warns, the worst first.

    Alerts without sufficient evidence take one line together, with their number by rule; their sentences are in the
    table.
    """
    if verdict.outcome is None:
        return ""
    counts = ", ".join(f"{verdict.counts[outcome]} {outcome}" for outcome in OUTCOMES if outcome in verdict.counts)
    lines = [f"gate: {counts}"]
    if n_violations := verdict.counts.get(FAIL, 0) + verdict.counts.get(WARN, 0):
        rank = place_among(OUTCOMES, F.col("outcome"))
        order = (rank, F.col("p_violation_adjusted").asc_nulls_last(), "rule", MODEL, SLICE, IDENTITY)
        violations = published.where(F.col("outcome").isin(FAIL, WARN))
        shown = violations.orderBy(*order).select(*SHOWN).limit(most).collect()
        lines += ["{}: {}, {}, {}: {}".format(*row) for row in shown]
        lines += [f"and {n_violations - len(shown)} more"] if n_violations > len(shown) else []
    if n_undecided := verdict.counts.get(INSUFFICIENT, 0):
        by_rule = published.where(F.col("outcome") == INSUFFICIENT).groupBy("rule").count()
        rules = [f"{row['rule']} ({row['count']})" for row in by_rule.orderBy(F.desc("count"), "rule").collect()]
        checks = f"{say_count(n_undecided, 'check')}, by rule: {list_first(rules, MOST_RULES)}"
        lines.append(f"{INSUFFICIENT}: {checks}. latest_{table.name} says why.")
    return "\n".join(map(show_visibly, lines))
