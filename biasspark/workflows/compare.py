"""Compare models with a baseline by every metric of the suite, and publish significant differences.

Rules of the gate that name the baseline are judged here. If one fails, the comparison is published and the exit code is
5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import isnan

import numpy as np
import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, Row

from biasspark.cli import DRY_RUN, Command, Outcome, dated_examples, on_date
from biasspark.columns import ALL_ROWS, CELL_PAIRS, GROUP, MODEL, NEGATIVE, OVERALL_METRIC, POSITIVE
from biasspark.comparison.differences import Replicates, delong_aucs, jackknife_aucs
from biasspark.comparison.model_comparisons import (
    PAIRED_DELONG,
    CellPair,
    ComparedPair,
    Scope,
    model_comparisons,
    name_models,
    scope_warnings,
    unclustered_warnings,
)
from biasspark.config import JACKKNIFE, JACKKNIFE_GROUPS, Compare, Config
from biasspark.corpus import decode
from biasspark.corpus.data_quality import ScoreProfile, identity_warnings, score_warnings, slice_warnings
from biasspark.corpus.encode import build_encoding, encode_examples, keep_scored
from biasspark.corpus.encoding import Encoding, RowCounts
from biasspark.corpus.usable import list_missing_models
from biasspark.corpus.values import category, column
from biasspark.metrics.intervals import interval_of_auc
from biasspark.metrics.suite import SUITE
from biasspark.ranking.jackknife_replicates import count_replicates
from biasspark.ranking.kernels.pair_sums import BACKGROUND_PAIR, CELLS_OF_PAIRS, N_PAIRS
from biasspark.ranking.kernels.paired_products import Products
from biasspark.ranking.paired_placements import sum_paired_placements
from biasspark.report.console_summary import show_changes
from biasspark.tables.schemas import COMPARISON_ALERTS, MODEL_COMPARISONS
from biasspark.text import format_count
from biasspark.workflows.corpus_job import CorpusJob, Plan, RunContext, plan_or_run, require
from biasspark.workflows.corpus_steps import ROWS_PASS, AnyMeasures, SurveyedCorpus, rows_only, warn_of_rows
from biasspark.workflows.jackknife import group_of
from biasspark.workflows.judge import judge_comparison

JOB = MODEL_COMPARISONS.job
UNCLUSTERED = "unclustered"
"""True on a row without a cluster."""

IDENTITIES_AT_ONCE = 32
"""The most identities that are ranked in one pass."""

DELONG_PASS = f"compare, once per {IDENTITIES_AT_ONCE} identities (shuffles 8 bytes per score and 8 more per identity)"
JACKKNIFE_PASS = "compare (shuffles both scores of each row)"


def publish_comparison(corpus: DataFrame, context: RunContext) -> Outcome:
    """Survey, compare, judge and publish; return the outcome."""
    config, progress = context.config, context.progress
    with context.survey(corpus, compared_only(config)) as surveyed:
        comparison = prepare_comparison(surveyed)
        progress.stage(f"comparing {comparison.size_text}")
        compared = comparison.compute()
    table = model_comparisons(compared, config.intervals.level)
    gate_result = judge_comparison(compared, config, list_missing_models(comparison.counts))
    warnings, shown = comparison.list_warnings(compared), partial(show_changes, table)
    return context.publish({MODEL_COMPARISONS: table}, comparison.counts, warnings, shown, gate_result)


def prepare_comparison(surveyed: SurveyedCorpus) -> Comparison:
    """Count the rows of a corpus that was surveyed for a comparison, and its scopes. One narrow job."""
    corpus, encoding, id_column = surveyed.corpus, surveyed.encoding, surveyed.id_column
    settings = surveyed.measures.compare
    assert settings is not None
    group, clusters = None, [F.lit(False).alias(UNCLUSTERED)]
    if settings.method == JACKKNIFE:
        assert id_column is not None  # the configuration and the function require it
        # As text: -0.0 becomes 0.0, NaN becomes NULL.
        name = settings.cluster
        cluster = None if name is None else category(column(name), corpus.schema[name].dataType)
        group = group_of(id_column, cluster, settings.groups or JACKKNIFE_GROUPS)
        clusters = clusters if cluster is None else [cluster.isNull().alias(UNCLUSTERED), group]
    examples = encode_examples(corpus, surveyed.measures, encoding, id_column, clusters)
    aggregates = [decode.count_sides(encoding).alias("sides"), decode.count_slices(encoding).alias("slices")]
    aggregates += [decode.list_score_bounds(encoding).alias("score_bounds"), *_count_scopes(settings, encoding)]
    with surveyed.job(ROWS_PASS):
        (counted,) = decode.count_rows(examples, encoding, aggregates).collect()
    counts = encoding.read_row_counts(counted["counts"])
    surveyed.check(counts, counted["sides"])
    return Comparison(surveyed, settings, group, counts, counted)


def _count_scopes(settings: Compare, encoding: Encoding) -> list[Column]:
    """Return aggregates over EXAMPLES: the rows in no cluster, and the `Scope` of every model."""
    scopes = []
    for model in settings.models:
        both = (model, settings.baseline)
        shared = decode.counts_for(both, encoding)
        n_groups = F.size(F.collect_set(F.when(shared, F.col(GROUP)))) if settings.cluster else F.lit(None).cast("int")
        n_positive = F.count_if(shared & (decode.field("label", 0, encoding) == 1))
        scope = (F.lit(model).alias(MODEL), F.count_if(shared).alias("n_rows"), n_groups.alias("n_groups"))
        scopes.append(F.struct(*scope, n_positive.alias("n_positive")))
    return [F.count_if(UNCLUSTERED).alias(UNCLUSTERED), F.array(*scopes).alias("scopes")]


@dataclass(frozen=True)
class Comparison:
    """A comparison of models with a baseline. ``counted`` are the aggregates of `prepare_comparison`.

    ``group`` is the group of a row if the method is the jackknife, else None.
    """

    surveyed: SurveyedCorpus
    settings: Compare
    group: Column | None
    counts: RowCounts
    counted: Row

    @cached_property
    def identities(self) -> tuple[int, ...]:
        """The numbers of the compared identities: crossed pairs need enough rows."""
        return tuple(self.surveyed.encoding.list_identities(self.counted["counts"]))

    @property
    def size_text(self) -> str:
        """The size of the comparison in words. Rows are those read; the table has the rows that both models score."""
        encoding, models = self.surveyed.encoding, format_count(len(self.settings.models), "model")
        groups = self.surveyed.describe_groups(len(self.identities) - 1 - len(encoding.singles))
        return f"{models} with {self.settings.baseline}: {format_count(self.counts.n_rows, 'row')} read, {groups}"

    def list_warnings(self, compared: Sequence[ComparedPair]) -> tuple[str, ...]:
        """Return warnings about the corpus, its clusters, the scores, and the rows that models share."""
        encoding, counted, n_rows = self.surveyed.encoding, self.counted, self.counts.n_rows
        return (
            *self.surveyed.survey.warnings,
            *score_warnings(self._profile(model, compared) for model in encoding.models),
            *unclustered_warnings(self.settings.cluster, counted[UNCLUSTERED], n_rows),
            *scope_warnings(self.settings, [Scope(*row) for row in counted["scopes"]]),
            *identity_warnings(encoding.singles, counted["sides"], sum(counted["slices"][0])),
            *slice_warnings(encoding.slices, counted["slices"]),
            *warn_of_rows(self.counts, self.surveyed.measures.label),
        )

    def _profile(self, model: str, compared: Sequence[ComparedPair]) -> ScoreProfile:
        """Return the profile of one model. Its AUCs are on the rows that it shares with another model."""
        level = self.surveyed.measures.intervals.level
        aucs: dict[str, list[tuple[float, float]]] = {OVERALL_METRIC: [], SUITE[0].name: []}
        for pair in compared:
            paired, is_baseline = pair.paired, model == pair.baseline_model
            value = paired.baseline_value if is_baseline else paired.value
            variance = paired.baseline_variance if is_baseline else paired.variance
            is_of_model = model in (pair.model, pair.baseline_model) and pair.slice == ALL_ROWS and not pair.crossed
            if is_of_model and pair.metric in aucs and value is not None:
                _, high, _ = interval_of_auc(value, variance, paired.n_low, paired.n_high, level)
                aucs[pair.metric].append((value, high))
        overall, subgroups = aucs.values()
        lowest, highest = self.counted["score_bounds"][self.surveyed.encoding.models.index(model)]
        return ScoreProfile(
            model,
            self.counts.n_eligible[model],
            None,
            None,
            lowest,
            highest,
            overall_auc=max((value for value, _ in overall), default=None),
            overall_high=max((high for _, high in overall if not isnan(high)), default=None),
            subgroup_high=max((high for _, high in subgroups if not isnan(high)), default=None),
            n_rarer_label=self.counts.count_rarer_label(model),
        )

    def compute(self) -> list[ComparedPair]:
        """Compute both AUCs of every pair of cells, with variances.

        For each model this scans and shuffles the corpus once by the jackknife; by DeLong, it scans once and shuffles
        twice for every 32 identities.
        """
        with self.surveyed.job("compare the models"):
            return [pair for model in self.settings.models for pair in self._compare(model)]

    def _compare(self, model: str) -> list[ComparedPair]:
        models, survey, all_measures = (model, self.settings.baseline), self.surveyed.survey, self.surveyed.measures
        measures = replace(all_measures, models={name: all_measures.models[name] for name in models})
        corpus, boundaries = keep_scored(self.surveyed.corpus, measures), self.surveyed.cut_finely(models)
        encoding = build_encoding(measures, survey, corpus)
        if self.group is not None:
            examples = encode_examples(corpus, measures, encoding, self.surveyed.id_column, [self.group])
            of_model: dict[CellPair, Replicates] = {}
            of_baseline: dict[CellPair, Replicates] = {}
            groups = self.settings.groups or JACKKNIFE_GROUPS
            for row in count_replicates(examples, encoding, boundaries, self.identities, groups).to_pylist():
                side = of_model if row[MODEL] == model else of_baseline
                side[CellPair(*(row[name] for name in CellPair._fields))] = Replicates.read(row)
            paired = {pair: jackknife_aucs(of_model[pair], of_baseline[pair]) for pair in of_model}
            return name_models(paired, models, measures.intervals.level, JACKKNIFE)
        examples = encode_examples(corpus, measures, encoding, self.surveyed.id_column)
        starts = range(0, len(self.identities), IDENTITIES_AT_ONCE)
        chunks = (self.identities[start : start + IDENTITIES_AT_ONCE] for start in starts)
        sums = [sum_paired_placements(examples, encoding, boundaries, chunk) for chunk in chunks]
        paired = {}
        for slice_name, of_slice in zip(encoding.slices, np.concatenate(sums, axis=1), strict=True):
            for number, products in zip(self.identities, of_slice, strict=True):
                for index in range(N_PAIRS) if number else [BACKGROUND_PAIR]:
                    low, high = CELLS_OF_PAIRS[index]
                    cells = CELL_PAIRS[index] if number else (NEGATIVE, POSITIVE)
                    key = CellPair(slice_name, encoding.names[number], number >= encoding.first_pair, *cells)
                    paired[key] = delong_aucs(Products(*products[low, high]), Products(*products[high, low]))
        return name_models(paired, models, measures.intervals.level, PAIRED_DELONG)


# ---- the plan


def plan_comparison(config: Config) -> Plan:
    """Plan a comparison."""
    settings = config.compare
    assert settings is not None  # the job requires it
    compare_pass = JACKKNIFE_PASS if settings.method == JACKKNIFE else DELONG_PASS
    passes = [ROWS_PASS, *(f"{compare_pass}: {model}" for model in settings.models)]
    alerts = (COMPARISON_ALERTS,) if config.gate and config.gate.comparison_rules else ()
    return Plan(passes, (MODEL_COMPARISONS, *alerts))


def compared_only(measures: AnyMeasures) -> AnyMeasures:
    """Return the measures for a comparison of models only."""
    settings = require(measures.compare, "compare", 'baseline = "old"')
    models = {name: measures.models[name] for name in (*settings.models, settings.baseline)}
    return replace(rows_only(measures), models=models, identities=measures.identities, compare=settings)


# ---- the command line

EXAMPLES = dated_examples("compare.toml")
FLAGS = (*on_date("the date on whose rows the models are compared"), DRY_RUN)
main = partial(plan_or_run, CorpusJob(JOB, compared_only, plan_comparison, publish_comparison))
COMMAND = Command(__doc__, EXAMPLES, FLAGS, main)
