"""The map of the gate: statistics of a night, those of the last accepted run, or of two models -> alerts -> verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import pyspark.sql.functions as F
from pyspark.sql import DataFrame, SparkSession

from biasspark.attribution.comparison_alerts import comparison_alerts
from biasspark.cli import GATE_FAILED
from biasspark.columns import FAIL, IDENTITY, INSUFFICIENT, MODEL, PASS, SLICE, WARN
from biasspark.config import Config, Gate, show_visibly
from biasspark.errors import InputError
from biasspark.metrics.gate import bias_alerts
from biasspark.session import describe, persisted
from biasspark.tables.acceptance import find_last_accepted
from biasspark.tables.published import read_published
from biasspark.tables.runs import ACCEPTED, PUBLISHED, Run
from biasspark.tables.schemas import U_STATISTICS
from biasspark.tables.store import Store

WORST_FIRST = (FAIL, WARN, INSUFFICIENT, PASS)
SHOWN = ("outcome", "rule", MODEL, SLICE, "message")


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
        What kept the gate from a baseline.
    """

    alerts: DataFrame | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def outcome(self) -> str | None:
        """The worst outcome of any alert; None without a gate."""
        return next((outcome for outcome in WORST_FIRST if self.counts.get(outcome)), None)

    @property
    def status(self) -> str:
        """What the ledger says: accepted where there is a gate and it did not fail."""
        return PUBLISHED if self.outcome in (None, FAIL) else ACCEPTED

    @property
    def exit_code(self) -> int:
        """The exit code of the job."""
        return GATE_FAILED if self.outcome == FAIL else 0


@contextmanager
def judged(statistics: DataFrame, config: Config, store: Store, run: Run) -> Iterator[Verdict]:
    """Judge a night before it is published, and keep its alerts for the block.

    Parameters
    ----------
    statistics : DataFrame
        ``u_statistics`` of the night, persisted.
    run : Run
        The night's.

    Notes
    -----
    Reads the statistics and, where a rule is on a change, the ledger and ``u_statistics`` of the last accepted run:
    never the corpus.
    """
    if config.gate is None or not config.gate.of_nights:
        yield Verdict()
        return
    spark = statistics.sparkSession
    with describe(spark, "judge the night"):
        baseline = _read_baseline(spark, config.gate, store, run)
        alerts = bias_alerts(statistics, baseline.statistics, config.gate, config.intervals, baseline.run_id)
    with _counted(alerts, baseline.warnings) as verdict:
        yield verdict


@contextmanager
def judged_comparison(compared: DataFrame, config: Config) -> Iterator[Verdict]:
    """Judge models against their baseline before the comparison is published, and keep its alerts for the block.

    Parameters
    ----------
    compared : DataFrame
        Both models' AUCs of every pair of cells, persisted.
    """
    if config.gate is None or not config.gate.of_comparisons:
        yield Verdict()
        return
    with _counted(comparison_alerts(compared, config.gate, config.intervals.level)) as verdict:
        yield verdict


@contextmanager
def _counted(alerts: DataFrame, warnings: tuple[str, ...] = ()) -> Iterator[Verdict]:
    """Keep alerts for the block, and say how many came to what."""
    with persisted(alerts):
        with describe(alerts.sparkSession, "judge by the gate"):
            counts = {row["outcome"]: row["count"] for row in alerts.groupBy("outcome").count().collect()}
        yield Verdict(alerts, counts, warnings)


class _Baseline(NamedTuple):
    """The last accepted run, and why it cannot be read if it cannot."""

    statistics: DataFrame | None = None
    run_id: str | None = None
    warnings: tuple[str, ...] = ()


def _read_baseline(spark: SparkSession, gate: Gate, store: Store, run: Run) -> _Baseline:
    """Return what changes are measured against; a night does not fail because an old one is gone."""
    found = find_last_accepted(spark, store, run) if any(rule.is_change for rule in gate.of_nights) else None
    if found is None:
        return _Baseline()
    try:
        return _Baseline(read_published(spark, store, U_STATISTICS, found), found.run_id)
    except InputError as error:
        return _Baseline(None, found.run_id, error.faults)


def show_alerts(published: DataFrame, verdict: Verdict, most: int = 20) -> str:
    """Return how many alerts came to what, and the published ones that did not pass, the worst first, a line each."""
    if verdict.outcome is None:
        return ""
    alerts = published.where(F.col("outcome") != PASS)
    rank = F.array_position(F.array(*map(F.lit, WORST_FIRST)), F.col("outcome"))
    order = (rank, F.col("p_violation_adjusted").asc_nulls_last(), "rule", MODEL, SLICE, IDENTITY)
    shown = alerts.orderBy(*order).select(*SHOWN).limit(most).collect()
    counts = ", ".join(f"{verdict.counts[outcome]} {outcome}" for outcome in WORST_FIRST if outcome in verdict.counts)
    lines = [f"gate: {counts}", *("{}: {}, {}, {}: {}".format(*row) for row in shown)]
    return "\n".join(map(show_visibly, lines))
