"""The main job: measure a night of a corpus, judge it by the gate, publish it, and print what is worst."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame

from biasspark.cli import Command, Outcome
from biasspark.config import GROUPS, Config, Gate, load_config
from biasspark.corpus.eligibility import rejected_rows
from biasspark.corpus.template_scores import template_scores
from biasspark.corpus.usable import list_missing_models
from biasspark.gate.bias_alerts import GateInput
from biasspark.report.console_summary import show_worst_identities
from biasspark.tables.publish import Rows
from biasspark.tables.schemas import (
    BIAS_ALERTS,
    BIAS_METRICS,
    JACKKNIFE_STATISTICS,
    REJECTED_ROWS,
    SCORE_BLOCKS,
    TEMPLATE_SCORES,
    THRESHOLD_RATES,
    U_STATISTICS,
    Table,
)
from biasspark.text import format_count
from biasspark.workflows.judge import judge
from biasspark.workflows.leave_out import leave_out_groups
from biasspark.workflows.measurement import measure, ranked_blocks, sample_pinned_auc, survey_for_ranking
from biasspark.workflows.nightly import NightlyJob, backfill_parser, plan_or_run
from biasspark.workflows.plan import Pass, Plan, describe_identities, passes_for_ids
from biasspark.workflows.publish_run import RunContext, describe_run, publish_run
from biasspark.workflows.state import plan_state, score_blocks

JOB = BIAS_METRICS.job


def run_night(corpus: DataFrame, context: RunContext) -> Outcome:
    """Survey, rank, compute, judge, publish, and return what the job prints."""
    config, progress = context.config, context.progress
    gate = config.gate
    progress.stage(f"surveying {config.corpus.name}")
    with ExitStack() as kept:
        surveyed = kept.enter_context(survey_for_ranking(corpus, config, config.corpus.id, config.corpus.duplicates))
        tables: dict[Table, Rows] = {}
        if config.state:
            surveyed, cuts = plan_state(surveyed, context)
            progress.stage(f"ranking {surveyed.size_text}")
            boundaries = [cut.boundaries for cut in cuts]
            ranking = kept.enter_context(ranked_blocks(surveyed, config.rejects, boundaries))
            measurement = ranking.measurement
            if config.pinned_auc:
                measurement = sample_pinned_auc(surveyed, measurement, config.pinned_auc)
            tables[SCORE_BLOCKS] = score_blocks(ranking, config, cuts)
        else:
            progress.stage(f"ranking {surveyed.size_text}")
            measurement = measure(surveyed, config.rejects)
        tables |= measurement.tables
        counts, warnings = measurement.counts.row_counts, measurement.warnings
        rejects = rejected_rows(surveyed.corpus, config, config.corpus.id, counts.rejects, config.rejects.max_rows)
        if rejects is not None:
            tables[REJECTED_ROWS] = rejects
        if config.templates:
            tables[TEMPLATE_SCORES] = template_scores(surveyed.corpus, config, surveyed.encoding, surveyed.id_column)
        if gate and gate.paired:
            progress.stage(f"leaving out each of {GROUPS} groups of ids")
            tables[JACKKNIFE_STATISTICS] = leave_out_groups(surveyed, measurement, gate)
        if gate:
            progress.stage(f"applying {format_count(len(gate.run_rules), 'rule')} of the gate")
        measured = GateInput(
            measurement.tables[U_STATISTICS],
            measurement.tables.get(THRESHOLD_RATES),
            tables.get(JACKKNIFE_STATISTICS),
            list_missing_models(counts),
        )
        verdict = judge(measured, context)
        if verdict.alerts is not None:
            tables[BIAS_ALERTS] = verdict.alerts
        progress.stage(f"publishing {format_count(len(tables), 'table')} as {context.run.run_id}")
        record = describe_run(context, counts, (*warnings, *verdict.warnings), verdict.status)

        def show() -> str:
            worst = show_worst_identities(measurement.tables[BIAS_METRICS])
            return "\n\n".join(filter(None, [worst, verdict.show(BIAS_ALERTS)]))

        outcome = publish_run(context, tables, record, show)
    summary = {**outcome.summary, "gate": verdict.outcome}
    return progress.end(replace(outcome, summary=summary, exit_code=verdict.exit_code))


def plan_night(config: Config) -> Plan:
    """Declare what a night computes, and its passes over the corpus."""
    gate, pinned = config.gate, config.pinned_auc
    if config.ranking.engine == "windows":
        ranking = Pass("rank every score, 4 scans or more", "rows x identities: this is the slow engine without Python")
    else:
        ranking = Pass("rank every score", "8 bytes per score and 24 per mention of an identity")
    passes = [Pass("survey"), *passes_for_ids(config), ranking]
    passes += [Pass("sample pinned AUC", "one sorted block per range")] if pinned and pinned.trials else []
    passes += [Pass("average scores by template", "one row per template and identity")] if config.templates else []
    if gate and gate.paired:
        jackknife = "9 bytes per score and 24 per mention of an identity"
        passes.append(Pass("leave out groups of ids", jackknife))
    passes.append(Pass("write the rejected rows, if there are any"))
    parts = {
        "identities": describe_identities(config.identities),
        "optional": ", ".join(_list_optional_metrics(config)) or "nothing",
        "suppressed": f"groups under {config.privacy.min_group_rows:,} rows" if config.privacy else "nothing",
        "gate": _name_rules(gate) if gate else "none",
        "engine": config.ranking.engine,
    }
    return Plan(parts, passes)


MEASURE = NightlyJob(JOB, lambda config: config, plan_night, run_night)


def _list_optional_metrics(config: Config) -> Iterator[str]:
    """Yield the optional parts that the configuration turns on."""
    if config.pinned_auc:
        trials = config.pinned_auc.trials
        yield "pinned AUC" + (f" with {format_count(trials, 'trial')}" if trials else "")
    if config.thresholds:
        at = config.thresholds.at
        yield f"rates at {', '.join(map(str, at)) if len(at) < 6 else f'{len(at):,} thresholds'}"
    if config.histograms:
        yield f"histograms of {format_count(config.histograms.bins, 'bin')}"
    if config.label_balance:
        length = config.label_balance.text or config.label_balance.length
        yield f"label balance{f' by the length of {length}' if length else ''}"
    if config.templates:
        yield f"mean scores by {config.templates.column}"
    if config.state:
        yield "sorted scores kept for windows of nights"


def _name_rules(gate: Gate) -> str:
    """Name the rules on a night, and those that ``jobs/compare_models.py`` judges."""
    nights, comparisons = (", ".join(rule.name for rule in rules) for rules in (gate.run_rules, gate.comparison_rules))
    return (nights or "none") + (f"; left to jobs/compare_models.py: {comparisons}" if comparisons else "")


# ---- the command line

_DESCRIPTION = """\
Measure a corpus: rank every score once, and publish the bias metrics of every model, slice and identity.
"""


def main(arguments: argparse.Namespace) -> Outcome:
    """Plan or run the night, or each of many."""
    return plan_or_run(MEASURE, load_config(arguments.config, arguments.overrides), arguments)


COMMAND = Command(partial(backfill_parser, _DESCRIPTION), main)
