"""The gate of a run: evaluate its rules on the run and on earlier accepted runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from biasspark.columns import ALL_ROWS, CROSSED, IDENTITY, MODEL, SLICE
from biasspark.command import name_command
from biasspark.comparison.model_comparisons import ComparedPair
from biasspark.config import Config, ConfigDiff, Rule, diff_config
from biasspark.errors import InputError
from biasspark.gate import alerts
from biasspark.gate.alerts import Baselines, Measured, MetricKey
from biasspark.gate.gate_result import GateResult, summarize_alerts
from biasspark.session import describe, sees_files
from biasspark.tables import schemas
from biasspark.tables.ledger import list_accepted, read_ledger
from biasspark.tables.publish import describe_absence, read_rows
from biasspark.tables.runs import Run
from biasspark.tables.schemas import Table
from biasspark.tables.store import Store
from biasspark.text import format_count, list_first, show_value
from biasspark.workflows.corpus_job import RunContext

MAX_NAMED = 5


def judge(
    tables: Mapping[Table, pa.Table], replicates: pa.Table | None, missing_models: Collection[str], context: RunContext
) -> GateResult:
    """Evaluate the rules on a run before it is published. Reads small tables of accepted runs, never the corpus.

    With `replicates`, the table ``jackknife_statistics``, changes are paired.
    """
    gate, level = context.config.gate, context.config.intervals.level
    n_others = len(gate.comparison_rules) if gate else 0
    judged_by = f"judged by {name_command('compare_models')}"
    note = f"gate: {format_count(n_others, 'rule')} with a baseline, {judged_by}" if n_others else ""
    if gate is None or not gate.run_rules:
        return GateResult(note=note)
    context.progress.stage(f"applying {format_count(len(gate.run_rules), 'rule')} of the gate")
    identities = set(tables[schemas.U_STATISTICS][IDENTITY].to_pylist())
    unknown = {
        rule.name: names
        for rule in gate.run_rules
        if (names := [name for name in rule.identities or () if name not in identities])
    }
    with describe(context.spark, "judge the run"):
        accepted = list_accepted(context.spark, context.store, context.run)
        baselines, warnings = _find_baselines(replicates, context, accepted)
        warnings += [] if accepted else _warn_of_lost_ledger(context)
        named = {identity for names in unknown.values() for identity in names}
        warnings += _warn_of_vanished(tables[schemas.U_STATISTICS], context, [*accepted][:1], named)
    warnings += [
        f"gate: rule {show_value(rule)} names {format_count(len(names), 'identity', 'identities')} that the corpus "
        f"does not have: {_list_names(names)}. Is a name misspelled?"
        for rule, names in unknown.items()
    ]
    evaluated = alerts.bias_alerts(tables, baselines, gate, level, missing_models)
    return replace(summarize_alerts(schemas.BIAS_ALERTS, evaluated, warnings), note=note)


def judge_comparison(compared: Sequence[ComparedPair], config: Config, missing_models: Collection[str]) -> GateResult:
    """Evaluate the rules on models and their baseline before the comparison is published."""
    if config.gate is None or not config.gate.comparison_rules:
        return GateResult()
    level, table = config.intervals.level, schemas.COMPARISON_ALERTS
    return summarize_alerts(table, alerts.comparison_alerts(compared, config.gate, level, missing_models))


def _warn_of_lost_ledger(context: RunContext) -> list[str]:
    """Return a warning if tables have rows of earlier dates, but the ledger is empty."""
    if not sees_files(context.spark):
        return []
    dates = {
        run_date
        for run_date, _ in context.store.list_runs(context.spark, schemas.U_STATISTICS)
        if run_date < context.run.run_date
    }
    if not dates or read_ledger(context.spark, context.store):
        return []
    what = f"{context.store.root} has rows of {format_count(len(dates), 'earlier run date')}, and bias_runs has none."
    return [f"gate: {what} Is the ledger lost? No change is measured."]


def _warn_of_vanished(
    statistics: pa.Table, context: RunContext, accepted: Sequence[Run], named: Collection[str]
) -> list[str]:
    """Return warnings that name the models and identities which the last accepted run has and this one lacks.

    Crossed pairs are left out: they come and go with their numbers of rows. So are identities `named` by rules, which
    have a warning of their own.
    """
    runs = [run for run in accepted if run.wrote(schemas.U_STATISTICS)]
    before, available = read_rows(context.spark, context.store, schemas.U_STATISTICS, runs)
    if runs and not available:
        absence = describe_absence(context.store, schemas.U_STATISTICS, runs[0])
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
    return list_first([show_value(name) for name in names], MAX_NAMED)


def _find_baselines(
    replicates: pa.Table | None, context: RunContext, accepted: Mapping[Run, Mapping[str, Any]]
) -> tuple[Baselines, list[str]]:
    """Return what rules on changes are measured against, and warnings about runs that were skipped.

    Raises `InputError` if files of the newest run are gone: an earlier run would silently take its place.
    """
    spark, store, config = context.spark, context.store, context.config
    assert config.gate is not None
    rules = {schemas.U_STATISTICS: config.gate.change_rules, schemas.THRESHOLD_RATES: config.gate.rate_change_rules}
    if not any(rules.values()):
        return Baselines(), []
    resolved = config.resolved()
    differences = {run: diff_config(resolved, before, ("now", "then")) for run, before in accepted.items()}
    comparable = [run for run, difference in differences.items() if not difference.overall]
    latest: dict[MetricKey, Measured] = {}
    warnings = _warn_of_skipped(differences)
    for table, selected in rules.items():
        if selected:
            wrote = [run for run in comparable if run.wrote(table)]
            rows, available = read_rows(spark, store, table, wrote)
            newest = wrote.index(available[0]) if available else len(wrote)
            _refuse_lost(store, table, wrote[:newest])
            warnings += [describe_absence(store, table, run) for run in wrote if run not in available]
            latest |= alerts.choose_latest(_measure_before(rows, table, selected, differences, config.intervals.level))
    if replicates is None or not latest:
        return Baselines(latest), warnings
    # Paired runs leave out the same groups of ids.
    id_column = resolved["corpus"].get("id")
    paired_with = [
        run
        for run, before in accepted.items()
        if before.get("corpus", {}).get("id") == id_column and before.get("gate", {}).get("paired", False)
    ]
    paired, more_warnings = _pair(spark, replicates, latest, store, paired_with)
    return Baselines(latest, paired), [*warnings, *more_warnings]


def _measure_before(
    rows: pa.Table, table: Table, rules: Sequence[Rule], differences: Mapping[Run, ConfigDiff], level: float
) -> Iterable[Measured]:
    """Return the comparable values of accepted runs, the latest run first."""
    order = {run.run_id: (number, difference) for number, (run, difference) in enumerate(differences.items())}
    before = [
        row
        for row in alerts.measure_rules({table: rows}, rules, level)
        if row.key[0] not in order[str(row.run_id)][1].models and row.key[1] not in order[str(row.run_id)][1].slices
    ]
    return sorted(before, key=lambda row: order[str(row.run_id)][0])


def _refuse_lost(store: Store, table: Table, missing: Sequence[Run]) -> None:
    """Raise `InputError` if the ledger counts rows of a run whose files are missing."""
    lost = [run for run in missing if run.table_rows.get(table.name)]
    if lost:
        raise InputError(*(f"{describe_absence(store, table, run)} The gate compares with it." for run in lost))


def _warn_of_skipped(differences: Mapping[Run, ConfigDiff]) -> list[str]:
    """Return warnings about runs, later than the newest comparable one, that were measured differently."""
    by_phrases: dict[tuple[str, ...], list[Run]] = {}
    for run, difference in takewhile(lambda item: item[1].phrases, differences.items()):
        by_phrases.setdefault(difference.phrases, []).append(run)
    warnings = []
    for phrases, runs in by_phrases.items():
        who = f"the accepted run {runs[0].run_id} of {runs[0].run_date} was"
        if len(runs) > 1:
            who = f"{len(runs)} accepted runs from {runs[-1].run_date} to {runs[0].run_date} were"
        what = f"gate: {who} measured differently: {'; '.join(phrases)}."
        warnings.append(f"{what} Changes of these values are not tested.")
    return warnings


def _pair(
    spark: SparkSession, replicates: pa.Table, latest: Mapping[MetricKey, Measured], store: Store, runs: Sequence[Run]
) -> tuple[Mapping[MetricKey, Any], list[str]]:
    """Pair a run with its baselines of AUCs, as far as they kept the same groups of ids."""
    baseline_ids = {row.run_id for key, row in latest.items() if key[-1] is None}
    chosen = [run for run in runs if run.run_id in baseline_ids]
    rows, available = read_rows(spark, store, schemas.JACKKNIFE_STATISTICS, chosen)
    missing = [run for run in chosen if run not in available]
    _refuse_lost(store, schemas.JACKKNIFE_STATISTICS, missing)
    warnings = [describe_absence(store, schemas.JACKKNIFE_STATISTICS, run) for run in missing]
    if unpaired := sorted(str(run_id) for run_id in baseline_ids - {run.run_id for run in chosen}):
        whose = f"{unpaired[0]} and {len(unpaired) - 1} more" if len(unpaired) > 1 else unpaired[0]
        warnings.append(f"gate: paired, but the baseline {whose} did not keep the same ids: there variances are added.")
    return alerts.pair_runs(replicates, rows, latest), warnings
