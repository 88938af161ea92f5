"""Show that pinned AUC moves with the class balance: drop part of one cell of one identity, many times over."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from biasspark.cli import NIGHTLY_EXAMPLES, Command, Outcome, format_table, job_parser
from biasspark.columns import ALL_ROWS, FOUR_CELLS
from biasspark.config import Config, PinnedAuc, PinnedSkew
from biasspark.corpus.identity_sources import select_identity
from biasspark.corpus.usable import list_missing_models
from biasspark.errors import Fault, InputError
from biasspark.metrics.prevalence_experiment import pinned_skew
from biasspark.ranking.counts import Counts
from biasspark.ranking.sampled_trials import sum_kept_rows
from biasspark.report.console_summary import CHANGED_BY_SKEW, list_skew_changes
from biasspark.tables.schemas import PINNED_SKEW
from biasspark.workflows.measurement import Measurement, SurveyedCorpus, job_on_corpus, measure, survey_for_ranking
from biasspark.workflows.nightly import NightlyJob, plan_or_run, require
from biasspark.workflows.plan import Pass, Plan, passes_for_ids
from biasspark.workflows.publish_run import RunContext, describe_run, publish_run

JOB = PINNED_SKEW.job


def run_night(corpus: DataFrame, context: RunContext) -> Outcome:
    """Survey, rank, drop rows, publish, and return what the job prints."""
    config, progress = context.config, context.progress
    skew = find_experiment(config)
    progress.stage(f"surveying {config.corpus.name}")
    surveying = survey_for_ranking(corpus, config, config.corpus.id, config.corpus.duplicates, only=skew.identity)
    with surveying as surveyed:
        progress.stage(f"ranking {surveyed.size_text}")
        measurement = measure(surveyed, config.rejects)
        progress.stage(f"dropping {describe_drops(skew)}")
        table = skew_classes(surveyed, measurement)
    record = describe_run(context, measurement.counts.row_counts, measurement.warnings)
    outcome = publish_run(
        context, {PINNED_SKEW: table}, record, lambda: format_table(list_skew_changes(table), CHANGED_BY_SKEW)
    )
    return progress.end(outcome)


def skew_classes(surveyed: SurveyedCorpus, measurement: Measurement) -> pa.Table:
    """Return the table ``pinned_skew`` of a corpus that was surveyed for its identity. Runs one Spark action.

    Raises `InputError` if a cell of the identity has no row: then the class balance does not move, whatever is dropped.
    """
    skew, pinned = measurement.measures.pinned_skew, measurement.measures.pinned_auc or PinnedAuc()
    assert skew is not None  # it names the identity
    check_cells(measurement.counts, skew.identity)
    with job_on_corpus(surveyed, "drop rows"):
        kept = sum_kept_rows(surveyed.examples, surveyed.encoding, surveyed.boundaries, measurement.counts, skew)
    return pinned_skew(measurement.statistics, kept, skew, pinned.include_subgroup_in_background)


def check_cells(counts: Counts, identity: str) -> None:
    """Raise `InputError` for an identity that has a cell without rows, of all rows of a model that may be measured."""
    groups, missing_models = counts.groups, list_missing_models(counts.row_counts)
    chosen = (groups.identity == identity) & (groups.slice == ALL_ROWS) & ~np.isin(groups.model, missing_models)
    empty = {
        model: [cell for cell, n_rows in zip(FOUR_CELLS, cells, strict=True) if n_rows == 0]
        for model, cells in zip(groups.model[chosen], counts.cells[:, chosen].T, strict=True)
    }
    fix = "Check its annotations, its threshold and the label, or name another identity."
    if faults := [
        Fault(("pinned_skew", "identity"), identity, f"Of model {model} no usable row is {' or '.join(cells)}.", fix)
        for model, cells in empty.items()
        if cells
    ]:
        raise InputError(*faults)


def plan_experiment(config: Config) -> Plan:
    """Declare the experiment and its passes over the corpus."""
    drops = Pass("drop rows", "one sorted block per range")
    passes = [Pass("survey"), *passes_for_ids(config), Pass("rank every score", "8 bytes per score"), drops]
    return Plan({"drops": describe_drops(find_experiment(config))}, passes)


def find_experiment(config: Config) -> PinnedSkew:
    """Return what the configuration says about the experiment, which other jobs do not need."""
    return require(config.pinned_skew, "pinned_skew", '[pinned_skew] identity = "gay"')


def describe_drops(skew: PinnedSkew) -> str:
    """Say what is dropped, and how often."""
    return f"{skew.fraction:g} of {skew.cell} of {skew.identity}, {skew.trials:,} times"


EXPERIMENT = NightlyJob(
    JOB, lambda config: select_identity(config, find_experiment(config).identity), plan_experiment, run_night
)


# ---- the command line

EXAMPLES = NIGHTLY_EXAMPLES.replace("demo.toml", "pinned_skew.toml")

RUN_DATE = "the night whose rows the experiment takes"
main = partial(plan_or_run, EXPERIMENT)
COMMAND = Command(partial(job_parser, __doc__, EXAMPLES, run_date=RUN_DATE), main)
