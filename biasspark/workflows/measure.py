"""Measure a corpus: rank every score once, and publish the bias metrics of every model, slice and identity.

docs/how-it-works.md lists the steps, and the module of each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from pyspark.sql import DataFrame

from biasspark.cli import Command, Outcome, dated_examples
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
from biasspark.workflows.corpus_job import BACKFILL, CorpusJob, Plan, RunContext, configured, plan_or_run
from biasspark.workflows.corpus_steps import LABELS_PASS, ROWS_PASS, SurveyedCorpus, balance_labels
from biasspark.workflows.jackknife import leave_out_groups
from biasspark.workflows.judge import judge
from biasspark.workflows.sketches import rank_and_measure

JOB = schemas.BIAS_METRICS.job


def publish_configured(corpus: DataFrame, context: RunContext) -> Outcome:
    """Publish the measurement; without models, the label balance alone."""
    return publish_measurement(corpus, context) if context.config.models else publish_balance(corpus, context)


def publish_measurement(
    corpus: DataFrame,
    context: RunContext,
    more_tables: Mapping[Table, Rows] | None = None,
    more_warnings: Sequence[str] = (),
) -> Outcome:
    """Survey, rank, compute, judge and publish. `more_tables` and `more_warnings` are published as well."""
    config, gate = context.config, context.config.gate
    with context.survey(corpus) as surveyed, rank_and_measure(surveyed, context) as (measurement, sketches):
        row_counts = measurement.counts.row_counts
        tables: dict[Table, Rows] = {**sketches, **measurement.tables, **(more_tables or {})}
        tables |= _list_rejects(surveyed, row_counts)
        if config.templates:
            scores = template_scores(surveyed.corpus, config, surveyed.encoding, surveyed.id_column)
            tables[schemas.TEMPLATE_SCORES] = scores
        replicates = None
        if gate and gate.paired:
            context.progress.stage(f"leaving out each of {JACKKNIFE_GROUPS} groups of ids")
            replicates = tables[schemas.JACKKNIFE_STATISTICS] = leave_out_groups(surveyed, measurement, gate)
        gate_result = judge(measurement.tables, replicates, list_missing_models(row_counts), context)
        warnings, shown = (*measurement.warnings, *more_warnings), partial(show_suite, measurement.tables)
        return context.publish(tables, row_counts, warnings, shown, gate_result)


def publish_balance(corpus: DataFrame, context: RunContext) -> Outcome:
    """Survey, count the labels, and publish their balance, without models."""
    with context.survey(corpus) as surveyed:
        context.progress.stage(f"counting the labels of {context.config.corpus.name}")
        counted = balance_labels(surveyed)
        tables = {schemas.LABEL_BALANCE: counted.balance} | _list_rejects(surveyed, counted.counts)
        shown = partial(show_balance, counted.balance)
        return context.publish(tables, counted.counts, counted.warnings, shown)


def _list_rejects(surveyed: SurveyedCorpus, row_counts: RowCounts) -> dict[Table, Rows]:
    """Return the table ``rejected_rows``, none if no row is to be kept."""
    if not (surveyed.rejects and surveyed.rejects.max_rows):
        return {}
    rows: Rows = schemas.REJECTED_ROWS.arrow_schema.empty_table()
    if sum(row_counts.rejects.values()):
        rows = rejected_rows(surveyed.corpus, surveyed.measures, surveyed.id_column, surveyed.rejects.max_rows)
    return {schemas.REJECTED_ROWS: rows}


def plan_measurement(config: Config) -> Plan:
    """Plan a measurement: the passes and tables of the parts that are configured."""
    has_models, gate = bool(config.models), config.gate
    passes = {
        ROWS_PASS: not has_models,
        LABELS_PASS: not has_models,
        RANKING_PASS: has_models and config.ranking.engine == "blocks",
        WINDOWS_PASS: has_models and config.ranking.engine == "windows",
        TRIALS_PASS: config.pinned_auc and config.pinned_auc.trials,
        TEMPLATES_PASS: config.templates,
        REPLICATES_PASS: gate and gate.paired,
        REJECTS_PASS: config.rejects.max_rows,
    }
    tables = {
        schemas.U_STATISTICS: has_models,
        schemas.BIAS_METRICS: has_models,
        schemas.MODEL_SUMMARY: has_models,
        schemas.PINNED_AUC: config.pinned_auc,
        schemas.THRESHOLD_RATES: config.thresholds,
        schemas.THRESHOLD_SUMMARY: config.thresholds,
        schemas.SCORE_HISTOGRAMS: config.histograms,
        schemas.TEMPLATE_SCORES: config.templates,
        schemas.LABEL_BALANCE: config.label_balance or not has_models,
        schemas.REJECTED_ROWS: config.rejects.max_rows,
        schemas.SCORE_BLOCKS: config.state,
        schemas.BIAS_ALERTS: gate and gate.run_rules,
        schemas.JACKKNIFE_STATISTICS: gate and gate.paired,
    }
    return Plan(configured(passes), configured(tables))


# ---- the command line

EXAMPLES = f"""\
{dated_examples("demo.toml")}  %(prog)s --config conf/demo.toml --run-date 2017-09-01..2017-09-30 \\
      --set corpus.run_date_column=created_date --only-missing

Each date of a range is measured and published separately, in order. A date that fails is reported, and the others are
still measured. The exit code is the lowest nonzero code of any date, so another code may hide a failed gate (5): the
last lines list the dates that failed, and those whose gate failed.
"""

main = partial(plan_or_run, CorpusJob(JOB, lambda config: config, plan_measurement, publish_configured))
COMMAND = Command(__doc__, EXAMPLES, BACKFILL, main)
