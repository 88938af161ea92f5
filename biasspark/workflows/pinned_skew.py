"""Show that pinned AUC moves with the class balance: drop part of one cell of one identity, many times over."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql import DataFrame

from biasspark.cli import DRY_RUN, Command, Outcome, dated_examples, on_date
from biasspark.columns import ALL_ROWS, FOUR_CELLS
from biasspark.config import Config, Crossed, PinnedAuc, PinnedSkew, unknown_identity
from biasspark.corpus.decode import field, single_states
from biasspark.corpus.encoding import Encoding
from biasspark.errors import Fault, InputError
from biasspark.metrics.pinned import pinned_skew
from biasspark.ranking.counts import Counts
from biasspark.ranking.engine import RANKING_PASS, rank
from biasspark.ranking.sampled_trials import sum_kept_rows
from biasspark.report.console_summary import show_skew
from biasspark.session import kept
from biasspark.tables.schemas import PINNED_SKEW
from biasspark.workflows.corpus_job import CorpusJob, Plan, RunContext, plan_or_run, require
from biasspark.workflows.corpus_steps import AnyMeasures, Measurement, SurveyedCorpus, measure, rows_only

JOB = PINNED_SKEW.job
_IN_CELL = "in_cell"
SKEW_PASS = "drop rows (shuffles every score again without the cell, and one sorted block per range)"


def publish_experiment(corpus: DataFrame, context: RunContext) -> Outcome:
    """Survey, rank, drop rows and publish; return the outcome."""
    config, progress = context.config, context.progress
    skew = config.pinned_skew
    assert skew is not None  # the job requires it
    with context.survey(corpus, skew_only(config)) as surveyed:
        check_identity(surveyed.encoding, skew.identity)
        progress.stage(f"ranking {surveyed.size_text}")
        measurement = measure(surveyed)
        progress.stage(f"dropping {skew.fraction:g} of {skew.cell} of {skew.identity}, {skew.trials:,} times")
        table = skew_classes(surveyed, measurement)
    counts, shown = measurement.counts.row_counts, partial(show_skew, table)
    return context.publish({PINNED_SKEW: table}, counts, measurement.warnings, shown)


def skew_classes(surveyed: SurveyedCorpus, measurement: Measurement) -> pa.Table:
    """Return the table ``pinned_skew``. Raises `InputError` if no balance would change."""
    skew, pinned = measurement.measures.pinned_skew, measurement.measures.pinned_auc or PinnedAuc()
    assert skew is not None  # it names the identity
    check_drops(measurement.counts, skew)
    encoding, boundaries = surveyed.encoding, surveyed.boundaries
    is_member, is_positive = single_states(encoding)[encoding.number[skew.identity]], field("label", 0, encoding) == 1
    side, label = skew.cell.split("_")
    is_in_side = is_member if side == "subgroup" else ~is_member
    is_in_cell = is_in_side & (is_positive if label == "positive" else ~is_positive)
    # Membership may be unknown. Terms are found in Python, by which Sail cannot filter: compute, keep, then filter.
    marked = surveyed.examples.withColumn(_IN_CELL, F.coalesce(is_in_cell, F.lit(False)))
    with surveyed.job("drop rows"), kept(marked) as examples:
        sums = sum_kept_rows(examples.drop(_IN_CELL), encoding, boundaries, measurement.counts, skew)
        without = rank(examples.where(~F.col(_IN_CELL)).drop(_IN_CELL), encoding, boundaries)
    return pinned_skew(measurement.statistics, sums, skew, pinned.include_subgroup_in_background, without)


def skew_only(measures: AnyMeasures) -> AnyMeasures:
    """Return the measures for the experiment: all identities except crossed pairs, ranked by blocks."""
    return replace(
        rows_only(measures),
        identities=replace(measures.identities, crossed=Crossed()),
        pinned_skew=require(measures.pinned_skew, "pinned_skew", 'identity = "gay"'),
        pinned_auc=measures.pinned_auc and replace(measures.pinned_auc, trials=0),
        evidence=measures.evidence,
        privacy=measures.privacy,
    )


def check_identity(encoding: Encoding, identity: str) -> None:
    """Raise `InputError` if the corpus has no such identity; until it is surveyed, its values are unknown."""
    if identity not in encoding.number:
        raise InputError(unknown_identity(("pinned_skew", "identity"), identity, encoding.singles))


def check_drops(counts: Counts, skew: PinnedSkew) -> None:
    """Raise `InputError` if no row of any model would be dropped."""
    groups, cell = counts.groups, FOUR_CELLS.index(skew.cell)
    sizes = counts.cells[cell, (groups.identity == skew.identity) & (groups.slice == ALL_ROWS)].tolist()
    if not any(map(skew.n_dropped, sizes)):
        rule = f"It is no row of the {max(sizes):,} usable ones in {skew.cell} of {skew.identity}."
        fix = "Drop a larger fraction, or name another cell or identity."
        raise InputError(Fault(("pinned_skew", "fraction"), skew.fraction, rule, fix))


def plan_experiment(_: Config) -> Plan:
    """Plan the experiment."""
    return Plan((RANKING_PASS, SKEW_PASS), (PINNED_SKEW,))


# ---- the command line

EXAMPLES = dated_examples("pinned_skew.toml")
FLAGS = (*on_date("the date whose rows the experiment uses"), DRY_RUN)
main = partial(plan_or_run, CorpusJob(JOB, skew_only, plan_experiment, publish_experiment))
COMMAND = Command(__doc__, EXAMPLES, FLAGS, main)
