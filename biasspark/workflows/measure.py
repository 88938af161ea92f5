"""Measure a corpus: rank every score once, and publish the bias metrics of every model, slice and identity.

docs/how-it-works.md lists the steps, and the module of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from pyspark.sql import DataFrame

from biasspark.cli import DATED_EXAMPLES, Command, Outcome
from biasspark.config import JACKKNIFE_GROUPS, Config
from biasspark.corpus.eligibility import REJECTS_PASS, rejected_rows
from biasspark.corpus.encoding import RowCounts
from biasspark.corpus.template_scores import TEMPLATES_PASS, template_scores
from biasspark.corpus.usable import list_missing_models
from biasspark.ranking.engine import RANKING_PASS
from biasspark.ranking.jackknife_replicates import REPLICATES_PASS
from biasspark.ranking.sampled_trials import TRIALS_PASS
from biasspark.ranking.window_engine import WINDOWS_PASS
from biasspark.report.console_summary import show_balance, show_suite
from biasspark.tables import schemas
from biasspark.tables.publish import Rows
from biasspark.tables.schemas import Table
from biasspark.text import format_count
from biasspark.workflows.compare import leave_out_groups
from biasspark.workflows.corpus_job import BACKFILL, CorpusJob, Plan, RunContext, plan_or_run
from biasspark.workflows.corpus_steps import (
    LABELS_PASS,
    ROWS_PASS,
    Measurement,
    SurveyedCorpus,
    balance_labels,
    measure,
    measure_and_keep,
)
from biasspark.workflows.judge import judge
from biasspark.workflows.window import plan_state, score_blocks

JOB = schemas.BIAS_METRICS.job


def publish_measurement(
    corpus: DataFrame,
    context: RunContext,
    more_tables: Mapping[Table, Rows] | None = None,
    more_warnings: Sequence[str] = (),
) -> Outcome:
    """Survey, rank, compute, judge and publish, with `more_tables` and `more_warnings`; return the outcome.

    Without models, only the label balance is published, without these.
    """
    if not context.config.models:
        return publish_balance(corpus, context)
    config, gate, progress = context.config, context.config.gate, context.progress
    with context.survey(corpus) as surveyed, _ranked(surveyed, context) as (measurement, state_tables):
        counts = measurement.counts.row_counts
        tables: dict[Table, Rows] = {**state_tables, **measurement.tables, **(more_tables or {})}
        tables |= _list_rejects(surveyed, config, counts)
        if config.templates:
            scores = template_scores(surveyed.corpus, config, surveyed.encoding, surveyed.id_column)
            tables[schemas.TEMPLATE_SCORES] = scores
        gate_inputs = dict(measurement.tables)
        if gate and gate.paired:
            progress.stage(f"leaving out each of {JACKKNIFE_GROUPS} groups of ids")
            replicates = leave_out_groups(surveyed, measurement, gate)
            tables[schemas.JACKKNIFE_STATISTICS] = gate_inputs[schemas.JACKKNIFE_STATISTICS] = replicates
        if gate and gate.run_rules:
            progress.stage(f"applying {format_count(len(gate.run_rules), 'rule')} of the gate")
        gate_result = judge(gate_inputs, list_missing_models(counts), context)
        warnings = (*measurement.warnings, *more_warnings)
        shown = partial(show_suite, *(gate_inputs[table] for table in (schemas.BIAS_METRICS, schemas.MODEL_SUMMARY)))
        return context.publish(tables, counts, warnings, shown, gate_result)


def publish_balance(corpus: DataFrame, context: RunContext) -> Outcome:
    """Measure without models: count the labels, publish their balance, and return the outcome."""
    config, progress = context.config, context.progress
    with context.survey(corpus) as surveyed:
        progress.stage(f"counting the labels of {config.corpus.name}")
        counted = balance_labels(surveyed)
        tables = {schemas.LABEL_BALANCE: counted.balance} | _list_rejects(surveyed, config, counted.counts)
        shown = partial(show_balance, counted.balance)
        return context.publish(tables, counted.counts, counted.warnings, shown)


def _list_rejects(surveyed: SurveyedCorpus, config: Config, counts: RowCounts) -> dict[Table, Rows]:
    """Return the table ``rejected_rows``, none if no row is to be kept."""
    if not config.rejects.max_rows:
        return {}
    rows: Rows = schemas.REJECTED_ROWS.arrow_schema.empty_table()
    if sum(counts.rejects.values()):
        rows = rejected_rows(surveyed.corpus, config, config.corpus.id, config.rejects.max_rows)
    return {schemas.REJECTED_ROWS: rows}


@contextmanager
def _ranked(surveyed: SurveyedCorpus, context: RunContext) -> Iterator[tuple[Measurement, dict[Table, DataFrame]]]:
    """Rank every score, and yield the measurement, and ``score_blocks`` if the run keeps its ranking."""
    config, progress = context.config, context.progress
    if not config.state:
        progress.stage(f"ranking {surveyed.size_text}")
        yield measure(surveyed), {}
        return
    surveyed, chosen = plan_state(surveyed, context)
    progress.stage(f"ranking {surveyed.size_text}")
    boundaries = [ranges.boundaries for ranges in chosen]
    with measure_and_keep(surveyed, boundaries) as (measurement, ranked):
        yield measurement, {schemas.SCORE_BLOCKS: score_blocks(surveyed, measurement.counts, ranked, config, chosen)}


def plan_measurement(config: Config) -> Plan:
    """Plan a measurement."""
    gate = config.gate
    passes: dict[str, object] = {
        ROWS_PASS: not config.models,
        LABELS_PASS: not config.models,
        RANKING_PASS: config.models and config.ranking.engine == "blocks",
        WINDOWS_PASS: config.models and config.ranking.engine == "windows",
        TRIALS_PASS: config.pinned_auc and config.pinned_auc.trials,
        TEMPLATES_PASS: config.templates,
        REPLICATES_PASS: gate and gate.paired,
        REJECTS_PASS: config.rejects.max_rows,
    }
    optional: dict[Table, object] = {
        schemas.PINNED_AUC: config.pinned_auc,
        schemas.THRESHOLD_RATES: config.thresholds,
        schemas.THRESHOLD_SUMMARY: config.thresholds,
        schemas.SCORE_HISTOGRAMS: config.histograms,
        schemas.TEMPLATE_SCORES: config.templates,
        schemas.LABEL_BALANCE: config.label_balance or not config.models,
        schemas.TRAINING_BALANCE: None,  # only the mitigation experiment writes it
        schemas.BIAS_ALERTS: gate and gate.run_rules,
        schemas.JACKKNIFE_STATISTICS: gate and gate.paired,
        schemas.SCORE_BLOCKS: config.state,
        schemas.REJECTED_ROWS: config.rejects.max_rows,
    }
    tables = [table for table in schemas.tables_of(JOB) if optional.get(table, config.models)]
    return Plan([name for name, part in passes.items() if part], tables)


# ---- the command line

EXAMPLES = f"""\
{DATED_EXAMPLES}  %(prog)s --config conf/demo.toml --run-date 2017-09-01..2017-09-30 \\
      --set corpus.run_date_column=created_date --only-missing

Each date of a range is measured and published separately, in order. A date that fails is reported, and the others are
still measured. The exit code is the lowest nonzero code of any date, so another code may hide a failed gate (5): the
last lines list the dates that failed, and those whose gate failed.
"""

main = partial(plan_or_run, CorpusJob(JOB, lambda config: config, plan_measurement, publish_measurement))
COMMAND = Command(__doc__, EXAMPLES, BACKFILL, main)
