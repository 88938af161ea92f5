"""The gate of a run: what was measured, and what accepted runs measured before it -> alerts and a verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from biasspark.cli import Outcome
from biasspark.columns import ALL_ROWS, CROSSED, FAIL, IDENTITY, INSUFFICIENT, MODEL, OUTCOMES, SLICE, WARN
from biasspark.comparison.model_comparisons import ComparedPair
from biasspark.config import Config, ConfigDiff, Rule, diff_config
from biasspark.errors import GATE_FAILED, InputError
from biasspark.gate.alerts import MetricKey
from biasspark.gate.bias_alerts import (
    Baselines,
    GateInput,
    Measured,
    bias_alerts,
    choose_latest,
    comparison_alerts,
    measure_rules,
    pair_runs,
)
from biasspark.session import describe, sees_files
from biasspark.tables.ledger import AcceptedRun, list_accepted, read_ledger
from biasspark.tables.publish import describe_absence, read_rows
from biasspark.tables.runs import ACCEPTED, PUBLISHED, Run
from biasspark.tables.schemas import JACKKNIFE_STATISTICS, THRESHOLD_RATES, U_STATISTICS, Table
from biasspark.tables.store import Store
from biasspark.text import format_count, list_first, show_value, show_visibly
from biasspark.workflows.nightly import RunContext

MOST_SHOWN = 20
MOST_NAMED = 5


@dataclass(frozen=True)
class Verdict:
    """What the gate says of a run: ``bias_alerts`` or ``comparison_alerts``, None without a gate, and warnings.

    They are what kept the gate from comparing with accepted runs, what vanished since the last of them, identities of
    rules that are not there, and how many checks warn for want of evidence.
    """

    alerts: pa.Table | None = None
    warnings: tuple[str, ...] = ()

    @property
    def counts(self) -> Mapping[str, int]:
        """How many alerts have each outcome."""
        return Counter([] if self.alerts is None else self.alerts["outcome"].to_pylist())

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

    def add_to(self, outcome: Outcome) -> Outcome:
        """Return what a job prints, with what the gate says."""
        return replace(outcome, summary={**outcome.summary, "gate": self.outcome}, exit_code=self.exit_code)

    def show(self, table: Table) -> str:
        """Return how many alerts have each outcome, and a line for each that failed or warns, the worst first.

        Alerts without sufficient evidence take one line an outcome, with their number by rule, also where they count as
        failures or warnings; their sentences are in the table.
        """
        if self.alerts is None or self.outcome is None:
            return ""
        counts = ", ".join(f"{self.counts[outcome]} {outcome}" for outcome in OUTCOMES if outcome in self.counts)
        rows = sorted(self.alerts.to_pylist(), key=_by_severity)
        violations = [row for row in rows if row["decided"] and row["outcome"] in (FAIL, WARN)]
        lines = [f"gate: {counts}"]
        lines += [
            f"{row['outcome']}: {row['rule']}, {row[MODEL]}, {row[SLICE]}: {row['message']}"
            for row in violations[:MOST_SHOWN]
        ]
        lines += [f"and {len(violations) - MOST_SHOWN} more"] if len(violations) > MOST_SHOWN else []
        for outcome in OUTCOMES:
            undecided = Counter(row["rule"] for row in rows if row["outcome"] == outcome and not row["decided"])
            if undecided:
                rules = [f"{rule} ({n})" for rule, n in sorted(undecided.items(), key=lambda item: (-item[1], item[0]))]
                checks = f"{format_count(undecided.total(), 'check')}{' without evidence' * (outcome != INSUFFICIENT)}"
                by_rule = f"by rule: {list_first(rules, MOST_NAMED)}"
                lines.append(f"{outcome}: {checks}, {by_rule}. latest_{table.name} says why.")
        return "\n".join(map(show_visibly, lines))


def judge(measured: GateInput, context: RunContext) -> Verdict:
    """Evaluate the rules on a run before it is published.

    The ledger is read, and ``u_statistics`` of the run accepted last; where a rule is on a change, that table,
    ``threshold_rates`` or ``jackknife_statistics`` of earlier ones as well: never the corpus.
    """
    gate, level = context.config.gate, context.config.intervals.level
    if gate is None or not gate.run_rules:
        return Verdict()
    unknown = _list_unknown(gate.run_rules, measured.statistics)
    with describe(context.spark, "judge the night"):
        accepted = list_accepted(context.spark, context.store, context.run)
        lost = [] if accepted else _warn_of_lost_ledger(context)
        baselines, warnings = _find_baselines(measured, context, accepted)
        named = {identity for of_rule in unknown.values() for identity in of_rule}
        warnings += lost
        warnings += _warn_of_vanished(measured.statistics, context, accepted[:1], named)
    warnings += [
        f"gate: rule {show_value(rule)} names {format_count(len(names), 'identity', 'identities')} that the corpus "
        f"does not have: {_list_names(names)}. Is a name misspelled?"
        for rule, names in unknown.items()
    ]
    return _verdict(bias_alerts(measured, baselines, gate, level), warnings)


def judge_comparison(compared: Sequence[ComparedPair], config: Config, missing_models: Collection[str]) -> Verdict:
    """Evaluate the rules on models and their baseline before the comparison is published.

    The compared pairs are both models' AUCs of every pair of cells, the missing models those without one usable score.
    """
    if config.gate is None or not config.gate.comparison_rules:
        return Verdict()
    return _verdict(comparison_alerts(compared, config.gate, config.intervals.level, missing_models))


def _verdict(alerts: pa.Table, warnings: Sequence[str] = ()) -> Verdict:
    rows = alerts.to_pylist()
    n_undecided = sum(row["outcome"] == WARN and not row["decided"] for row in rows)
    nothing = "" if any(row["decided"] for row in rows) else "no check of the gate is decided"
    evidence = f"{format_count(n_undecided, 'check')} {'has' if n_undecided == 1 else 'have'} insufficient evidence"
    undecided = f'{evidence}, which counts as a warning by `insufficient = "warn"`' if n_undecided else ""
    evidence_warning = "; ".join(filter(None, (undecided, nothing)))
    return Verdict(alerts, (*warnings, f"gate: {evidence_warning}.") if evidence_warning else tuple(warnings))


def _list_unknown(rules: Sequence[Rule], statistics: pa.Table) -> dict[str, list[str]]:
    """Return by rule the identities that it names and a run does not have."""
    identities = set(statistics[IDENTITY].to_pylist())
    unknown = {rule.name: [name for name in rule.identities or () if name not in identities] for rule in rules}
    return {rule: names for rule, names in unknown.items() if names}


def _warn_of_lost_ledger(context: RunContext) -> list[str]:
    """Return a warning if earlier nights have rows and the ledger has none: it is lost, or every run before died.

    Nothing is said where a session lists no folders.
    """
    if not sees_files(context.spark):
        return []
    nights = {
        night for night, _ in context.store.list_runs(context.spark, U_STATISTICS) if night < context.run.run_date
    }
    if not nights or read_ledger(context.spark, context.store):
        return []
    return [
        f"gate: {context.store.root} has rows of {format_count(len(nights), 'earlier night')}, and bias_runs has none. "
        "Is the ledger lost? No change is measured."
    ]


def _warn_of_vanished(
    statistics: pa.Table, context: RunContext, accepted: Sequence[AcceptedRun], named: Collection[str]
) -> list[str]:
    """Name the models and identities that the run accepted last has and this one lacks.

    Crossed pairs come and go with their numbers of rows. Identities that a rule names have a warning of their own.
    """
    runs = [one.run for one in accepted if one.run.wrote(U_STATISTICS)]
    before, available = read_rows(context.spark, context.store, U_STATISTICS, runs)
    if runs and not available:
        absence = describe_absence(context.store, U_STATISTICS, runs[0])
        return [f"gate: {absence} Models and identities that vanished since are not known."]
    in_all_rows = (pc.field(SLICE) == ALL_ROWS) & ~pc.field(CROSSED)
    warnings = []
    for column, plural in ((MODEL, "models"), (IDENTITY, "identities")):
        names_before, names = (set(rows.filter(in_all_rows)[column].to_pylist()) for rows in (before, statistics))
        if vanished := sorted(names_before - names - (set(named) if column == IDENTITY else set())):
            warnings.append(
                f"gate: {format_count(len(vanished), column, plural)} of the accepted run {runs[0].run_id} of "
                f"{runs[0].run_date} {'is' if len(vanished) == 1 else 'are'} not in this one: {_list_names(vanished)}."
            )
    return warnings


def _list_names(names: Sequence[str]) -> str:
    return list_first([show_value(name) for name in names], MOST_NAMED)


def _by_severity(row: Mapping[str, Any]) -> tuple[Any, ...]:
    p_value = row["p_violation_adjusted"]
    return (
        OUTCOMES.index(row["outcome"]),
        p_value is None,
        p_value or 0.0,
        row["rule"],
        row[MODEL],
        row[SLICE],
        row[IDENTITY],
    )


def _find_baselines(
    measured: GateInput, context: RunContext, accepted: Sequence[AcceptedRun]
) -> tuple[Baselines, list[str]]:
    """Return what rules on changes are measured against, and warnings of what was passed over.

    A warning names runs that were measured differently only if they are later than the newest that was not. Raises
    `InputError` if files of the newest run are gone: an earlier one, or none, would be compared with in its place.
    """
    spark, store, config = context.spark, context.store, context.config
    assert config.gate is not None
    rules = {U_STATISTICS: config.gate.change_rules, THRESHOLD_RATES: config.gate.rate_change_rules}
    if not any(rules.values()):
        return Baselines(), []
    resolved = config.resolved()
    differences = {one.run: diff_config(resolved, one.config, ("tonight", "then")) for one in accepted}
    comparable = [one for one, difference in differences.items() if not difference.overall]
    latest: dict[MetricKey, Measured] = {}
    warnings = _warn_of_skipped(differences)
    for table, of_table in rules.items():
        if of_table:
            wrote = [one.run for one in accepted if one.run in comparable and one.run.wrote(table)]
            rows, available = read_rows(spark, store, table, wrote)
            newest = wrote.index(available[0]) if available else len(wrote)
            _refuse_lost(store, table, wrote[:newest])
            warnings += [describe_absence(store, table, run) for run in wrote if run not in available]
            latest |= choose_latest(_measure_before(rows, table, of_table, differences, config.intervals.level))
    if measured.jackknife is None or not latest:
        return Baselines(latest), warnings
    paired_with = [one.run for one in accepted if _groups_alike(resolved, one.config)]
    paired, further = _pair(spark, measured.jackknife, latest, store, paired_with)
    return Baselines(latest, paired), [*warnings, *further]


def _measure_before(
    rows: pa.Table, table: Table, rules: Sequence[Rule], differences: Mapping[Run, ConfigDiff], level: float
) -> Iterable[Measured]:
    """Return what the accepted runs measured as the run did, the latest run first."""
    order = {one.run_id: (number, difference) for number, (one, difference) in enumerate(differences.items())}
    statistics, rates = (rows, None) if table == U_STATISTICS else (None, rows)
    before = [
        row
        for row in measure_rules(statistics, rates, rules, level)
        if row.key[0] not in order[str(row.run_id)][1].models and row.key[1] not in order[str(row.run_id)][1].slices
    ]
    return sorted(before, key=lambda row: order[str(row.run_id)][0])


def _refuse_lost(store: Store, table: Table, missing: Sequence[Run]) -> None:
    """Raise `InputError` for missing runs of which the ledger counts rows: what is lost is not absent."""
    lost = [run for run in missing if (run.table_rows or {}).get(table.name)]
    if lost:
        raise InputError(*(f"{describe_absence(store, table, run)} The gate compares with it." for run in lost))


def _warn_of_skipped(differences: Mapping[Run, ConfigDiff]) -> list[str]:
    """Say which runs later than the newest that was measured alike were measured differently."""
    by_phrases: dict[tuple[str, ...], list[Run]] = {}
    for run, difference in takewhile(lambda item: item[1].phrases, differences.items()):
        by_phrases.setdefault(difference.phrases, []).append(run)
    return [_say_otherwise(phrases, runs) for phrases, runs in by_phrases.items()]


def _groups_alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Say whether two runs leave out groups of the same ids, by what `Config.resolved` gives of them."""
    ids = [config.get("corpus", {}).get("id") for config in (one, other)]
    return ids[0] == ids[1] and all(config.get("gate", {}).get("paired", False) for config in (one, other))


def _pair(
    spark: SparkSession, jackknife: pa.Table, latest: Mapping[MetricKey, Measured], store: Store, runs: Sequence[Run]
) -> tuple[Mapping[MetricKey, Any], list[str]]:
    """Pair a run with those that a change of an AUC is measured against, as far as they kept the same groups of ids."""
    baseline_ids = {row.run_id for key, row in latest.items() if key[-1] is None}
    chosen = [run for run in runs if run.run_id in baseline_ids]
    rows, available = read_rows(spark, store, JACKKNIFE_STATISTICS, chosen)
    missing = [run for run in chosen if run not in available]
    _refuse_lost(store, JACKKNIFE_STATISTICS, missing)
    warnings = [describe_absence(store, JACKKNIFE_STATISTICS, run) for run in missing]
    if unpaired := sorted(str(run_id) for run_id in baseline_ids - {run.run_id for run in chosen}):
        whose = f"{unpaired[0]} and {len(unpaired) - 1} more" if len(unpaired) > 1 else unpaired[0]
        warnings.append(
            f"gate: paired, but the baseline {whose} did not keep tonight's ids: there variances are added."
        )
    return pair_runs(jackknife, rows, latest), warnings


def _say_otherwise(differences: Sequence[str], runs: Sequence[Run]) -> str:
    who = f"the accepted run {runs[0].run_id} of {runs[0].run_date} was"
    if len(runs) > 1:
        who = f"{len(runs)} accepted runs from {runs[-1].run_date} to {runs[0].run_date} were"
    return f"gate: {who} measured differently: {'; '.join(differences)}. No change is measured against what differs."
