"""The map: one line per stage, in the order in which data flow."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame

from biasspark import __version__
from biasspark.arrays import Floats
from biasspark.columns import MODEL, SCORE_REASONS
from biasspark.config import Config, Measures, PinnedAuc, Rejects, say_count
from biasspark.corpus.buckets import bucket_ends
from biasspark.corpus.check import check_schema
from biasspark.corpus.codebook import Codebook, Tally
from biasspark.corpus.culprits import corpus_faults
from biasspark.corpus.cuts import choose_boundaries, sample_cuts
from biasspark.corpus.examples import build_codebook, label_examples
from biasspark.corpus.marks import Marks, mark_scores
from biasspark.corpus.one_identity import check_identity, keep_identity
from biasspark.corpus.rejects import rejected_rows
from biasspark.corpus.source import mark_duplicates
from biasspark.corpus.survey import Survey, survey_corpus
from biasspark.corpus.templates import template_scores
from biasspark.corpus.usable import check_usable, list_missing_models
from biasspark.metrics.balance import label_balance
from biasspark.metrics.doubt import say_doubt, widest_doubt
from biasspark.metrics.gate.bias_alerts import JudgedNight
from biasspark.metrics.histograms import Bins, score_histograms
from biasspark.metrics.hygiene import (
    ScoreProfile,
    annotation_warnings,
    identity_warnings,
    reject_warnings,
    score_warnings,
    slice_warnings,
    sum_up_aucs,
    threshold_warnings,
)
from biasspark.metrics.pinned import pinned_aucs
from biasspark.metrics.skew import pinned_skew
from biasspark.metrics.statistics import in_table, with_auc
from biasspark.metrics.suite import bias_metrics
from biasspark.metrics.summary import model_summary
from biasspark.metrics.thresholds import At, threshold_rates, threshold_summary
from biasspark.metrics.withholding import require_rows, withhold_reached, withhold_rows, withhold_statistics
from biasspark.ranking.engine import Ranking, rank, rank_bins, read_overview
from biasspark.ranking.pinned_engine import sampled_pinned_auc
from biasspark.ranking.placements import Profile
from biasspark.ranking.skew_engine import sum_kept_rows
from biasspark.ranking.state_header import Cut
from biasspark.session import describe, persisted, run_side_by_side
from biasspark.tables.runs import RunRecord
from biasspark.tables.schemas import (
    BIAS_METRICS,
    JACKKNIFE_STATISTICS,
    LABEL_BALANCE,
    MODEL_SUMMARY,
    PINNED_AUC,
    REJECTED_ROWS,
    SCORE_HISTOGRAMS,
    TEMPLATE_SCORES,
    THRESHOLD_RATES,
    THRESHOLD_SUMMARY,
    U_STATISTICS,
    Table,
    tables_of,
)

JOB = BIAS_METRICS.job
_NO_SCORES = Profile(0, 0, 0, math.inf, -math.inf)


@dataclass(frozen=True)
class Measurement:
    """A ranked corpus: everything that is published is arithmetic on it. All lazy.

    Attributes
    ----------
    statistics
        `u_statistics`, less the run's columns, and of exact ones less the bounds.
    corpus, examples
        What is measured, row by row; of a window of nights both are their blocks.
    also_kept
        What the tables come of besides the ranking.
    cuts
        Where the scores of each model are cut, where the ranking keeps its state.
    left_out
        The table ``jackknife_statistics``, less the run's columns, where nights are paired.
    """

    corpus: DataFrame
    examples: DataFrame
    measures: Measures
    survey: Survey
    codebook: Codebook
    ranking: Ranking
    marks: dict[str, Marks]
    statistics: DataFrame
    id_column: str | None = None
    also_kept: tuple[DataFrame, ...] = ()
    cuts: tuple[Cut, ...] = ()
    left_out: DataFrame | None = None

    @property
    def kept(self) -> tuple[DataFrame, ...]:
        """What the tables come of."""
        ranking = self.ranking
        frames = (*self.also_kept, ranking.ranked, self.statistics, ranking.reached, self.left_out)
        return tuple(frame for frame in frames if frame is not None)

    def keep(self) -> ExitStack:
        """Persist what the tables come of, for a block, so that each frame is computed once."""
        # A task of the windows engine reads a plan as long as there are identities: 200 of them take a minute of it.
        return persisted(*self.kept, in_few_parts=self.measures.ranking.engine == "windows")

    @property
    def extent(self) -> str:
        """How much there is to rank, in words."""
        book = self.codebook
        return (
            f"{say_count(self.survey.n_rows, 'row')}: {say_count(len(book.models), 'model')}, "
            f"{say_count(len(book.slices), 'slice')}, {say_count(len(book.singles), 'identity', 'identities')}, "
            f"{say_count(len(book.pairs), 'crossed pair')}"
        )

    def tables(self, tally: Tally, max_rejects: int) -> dict[Table, DataFrame | None]:
        """Return the rows of every table, less the run's columns; None where its part is not configured.

        The corpus is scanned again only for rejects, templates and trials.
        """
        rejects = rejected_rows(self.corpus, self.measures, self.id_column, tally.rejects, max_rejects)
        found = {**self.suite_tables(), **self.further_tables(), REJECTED_ROWS: rejects}
        found |= {JACKKNIFE_STATISTICS: self.left_out}
        return {table: found.get(table) for table in tables_of(JOB)}

    def seen_by_gate(self, tables: Mapping[Table, DataFrame | None], tally: Tally) -> JudgedNight:
        """Return what the gate looks at, of the tables of the night."""
        return JudgedNight(self.statistics, tables[THRESHOLD_RATES], self.left_out, list_missing_models(tally))

    def suite_tables(self) -> dict[Table, DataFrame]:
        """Return the rows of the tables that every configuration has."""
        statistics, intervals = self.statistics, self.measures.intervals
        plans = {
            U_STATISTICS: partial(in_table, statistics, U_STATISTICS),
            BIAS_METRICS: partial(bias_metrics, statistics, intervals),
            MODEL_SUMMARY: partial(model_summary, statistics, intervals, self.measures.pinned_auc or PinnedAuc()),
        }
        return dict(zip(plans, run_side_by_side(statistics.sparkSession, list(plans.values())), strict=True))

    def further_tables(self) -> dict[Table, DataFrame]:
        """Return the rows of the tables that the configuration turns on by a part of its own."""
        measures, ranking, found = self.measures, self.ranking, {}
        if measures.pinned_auc:
            found[PINNED_AUC] = pinned_aucs(self.statistics, measures.pinned_auc, self._sampled(measures.pinned_auc))
        reached = None if ranking.reached is None else withhold_reached(ranking.reached, measures.privacy)
        if measures.thresholds and reached is not None:
            at = At(measures.thresholds.at, {name: marks.of_thresholds for name, marks in self.marks.items()})
            found[THRESHOLD_RATES] = threshold_rates(reached, at, measures.intervals)
            found[THRESHOLD_SUMMARY] = threshold_summary(reached, at)
        if measures.histograms and reached is not None:
            bins = {name: Bins(marks.ends, marks.of_ends) for name, marks in self.marks.items()}
            found[SCORE_HISTOGRAMS] = score_histograms(reached, bins)
        if measures.label_balance and ranking.labels is not None:
            found[LABEL_BALANCE] = label_balance(ranking.labels, bucket_ends(measures.label_balance))
        if measures.templates:
            template = measures.templates.column
            found[TEMPLATE_SCORES] = template_scores(self.corpus, measures, self.codebook, template, self.id_column)
        own_groups = {table: found[table] for table in (LABEL_BALANCE, TEMPLATE_SCORES) if table in found}
        return found | {table: withhold_rows(rows, table, measures.privacy) for table, rows in own_groups.items()}

    def _sampled(self, pinned: PinnedAuc) -> DataFrame | None:
        """Sampled pinned AUC: the corpus is scanned and shuffled once more."""
        if not pinned.trials or self.ranking.parts is None:
            return None
        return sampled_pinned_auc(self.ranking.parts, self.ranking.ranked, self.codebook, pinned)


def measure(
    corpus: DataFrame,
    measures: Measures,
    id_column: str | None = None,
    duplicates: str = "allow",
    only: str | None = None,
) -> Measurement:
    """Rank a corpus for the bias metrics.

    Parameters
    ----------
    corpus : DataFrame
        One row per comment.
    measures : Measures
        Label, models, identities, slices, engine and intervals.
    id_column : str, optional
        What identifies a row.
    duplicates : {"allow", "estimate", "reject"}
        What to do about ids that repeat.
    only : str, optional
        The one identity that is asked for: it is ranked by blocks, and all else is left out.

    Raises
    ------
    InputError
        If the corpus does not fit the configuration.

    Notes
    -----
    Runs one narrow job, the survey, and one more where bins are cut. What is returned scans the corpus once and
    shuffles it once, or what bins it counts; `Measurement.keep` it to take several tables of one ranking.
    """
    if only is not None:
        measures = keep_identity(measures, only)
    check_schema(corpus, measures, id_column)
    spark = corpus.sparkSession
    with describe(spark, "survey the corpus"), corpus_faults(corpus, measures.expressions):
        survey = survey_corpus(corpus, measures, id_column if duplicates == "estimate" else None)
    if only is not None:
        check_identity(survey, measures.identities, only)
    marks = mark_scores(measures, survey, corpus.schema)
    edges = [own.edges for own in marks.values()]
    cuts = _cut_bins(corpus, measures, survey, edges, id_column)
    corpus, also_kept = mark_duplicates(corpus, id_column, duplicates)
    codebook = replace(build_codebook(measures, survey), n_bins=tuple(2 * len(own) + 1 for own in cuts))
    examples = label_examples(corpus, measures, codebook, id_column)
    if cuts:
        boundaries = choose_boundaries(cuts, survey.count_ranges(measures.ranking.ranges))
        ranking = rank_bins(examples, codebook, cuts, boundaries, edges)
    else:
        boundaries = survey.boundaries(measures.ranking.ranges)
        ranking = rank(examples, codebook, boundaries, edges, measures.ranking.engine)
    if only is not None and ranking.parts is not None:
        also_kept.append(ranking.parts)  # which its trials read once more
    return Measurement(
        corpus=corpus,
        examples=examples,
        measures=measures,
        survey=survey,
        codebook=codebook,
        ranking=ranking,
        marks=marks,
        statistics=statistics_of(ranking, measures),
        id_column=id_column,
        also_kept=tuple(also_kept),
    )


def _cut_bins(
    corpus: DataFrame, measures: Measures, survey: Survey, edges: Sequence[Floats], id_column: str | None
) -> list[Floats]:
    """Return the cut points of the bins of every model; none where scores are ranked exactly."""
    if not measures.ranking.bins:
        return []
    with describe(corpus.sparkSession, "sample the scores"), corpus_faults(corpus, measures.expressions):
        return sample_cuts(corpus, measures, survey.n_rows, edges, id_column)


def cut_at(measurement: Measurement, cuts: Sequence[Cut]) -> Measurement:
    """Return the same measurement by a ranking that is cut elsewhere and keeps its state."""
    codebook = replace(measurement.codebook, keeps_state=True)
    edges = [own.edges for own in measurement.marks.values()]
    ranking = rank(measurement.examples, codebook, [cut.boundaries for cut in cuts], edges)
    statistics = statistics_of(ranking, measurement.measures)
    return replace(measurement, codebook=codebook, ranking=ranking, statistics=statistics, cuts=tuple(cuts))


def statistics_of(ranking: Ranking, measures: Measures) -> DataFrame:
    """Return `u_statistics`, less the run's columns, without what too few rows say or must not tell.

    Exact ones are without bounds, which `in_table` adds.
    """
    evident = require_rows(with_auc(ranking.statistics), measures.evidence)
    return withhold_statistics(evident, measures.privacy)


@contextmanager
def ranked_once(measurement: Measurement, rejects: Rejects | None = None) -> Iterator[tuple[Tally, dict[str, Profile]]]:
    """Do as `read_ranking` does, and keep the ranking for the block."""
    with measurement.keep():
        yield read_ranking(measurement, rejects)


def read_ranking(measurement: Measurement, rejects: Rejects | None = None) -> tuple[Tally, dict[str, Profile]]:
    """Rank the corpus, and return its counts of rows and each model's profile.

    Parameters
    ----------
    measurement : Measurement
        What is ranked.
    rejects : Rejects, optional
        How many rejects a job may have. Without it, as in a notebook, every model needs a usable score.

    Raises
    ------
    InputError
        If a file cannot be read, a model has no usable score, or more is rejected than is allowed.
    """
    expressions = measurement.measures.expressions
    with describe(measurement.corpus.sparkSession, "rank every score"), corpus_faults(measurement.corpus, expressions):
        tally, profiles = read_overview(measurement.ranking.overview.collect(), measurement.codebook)
    check_usable(tally, measurement.measures.models, rejects)
    return tally, profiles


def skew_classes(measurement: Measurement) -> DataFrame:
    """Return the table ``pinned_skew``, less the run's columns, of a corpus measured for its identity ``only``."""
    skew, pinned = measurement.measures.pinned_skew, measurement.measures.pinned_auc or PinnedAuc()
    assert skew is not None  # it names the identity
    ranking = measurement.ranking
    assert ranking.parts is not None  # the engine is blocks
    kept = sum_kept_rows(ranking.parts, ranking.ranked, measurement.codebook, skew)
    return pinned_skew(measurement.statistics, kept, skew, pinned.include_subgroup_in_background)


def tabulate(
    measurement: Measurement, tally: Tally, profiles: Mapping[str, Profile], max_rejects: int
) -> tuple[dict[Table, DataFrame | None], tuple[str, ...]]:
    """Return the tables of a ranked corpus and its warnings: the former are planned while the latter are computed."""
    parts: list[Callable[[], Any]] = [
        partial(measurement.tables, tally, max_rejects),
        partial(find_warnings, measurement, profiles),
    ]
    tables, warnings = run_side_by_side(measurement.corpus.sparkSession, parts)
    return tables, (*warnings, *warn_of_rejects(tally))


def warn_of_rejects(tally: Tally) -> Iterator[str]:
    """Say which annotations cannot be read, and which reasons were given often: of rows, and of each model's scores."""
    yield from annotation_warnings(tally.unreadable)
    of_rows = {reason: count for reason, count in tally.rejects.items() if reason not in SCORE_REASONS}
    yield from reject_warnings("corpus", "rows", tally.n_rows, of_rows)
    for model, of_scores in tally.rejected_scores.items():
        n_scores = tally.n_eligible[model] + sum(of_scores.values())
        yield from reject_warnings(f"model {model}", "scores", n_scores, of_scores)


def find_warnings(measurement: Measurement, profiles: Mapping[str, Profile]) -> tuple[str, ...]:
    """Return what a person should look at: bounds of an approximate run, repeated ids, peculiar scores and identities.

    An identity is peculiar where no row that counts for any model says anything about it.
    """
    bins, approximate = measurement.measures.ranking.bins, []
    with describe(measurement.corpus.sparkSession, "combine the ranges"):
        aucs = {row[MODEL]: row for row in sum_up_aucs(measurement.statistics).collect()}
        if bins:
            approximate = [say_doubt(widest_doubt(measurement.statistics).collect()[0], bins)]
    scores = [
        ScoreProfile(
            model,
            **profiles.get(model, _NO_SCORES)._asdict(),
            best_subgroup_auc=aucs[model]["best"] if model in aucs else None,
            reason=aucs[model]["reason"] if model in aucs else None,
        )
        for model in measurement.codebook.models
    ]
    told = [row for model, row in aucs.items() if model in profiles]
    no_subgroup, no_background, no_rows = (
        set.intersection(*(set(row[name]) for row in told)) for name in ("no_subgroup", "no_background", "no_rows")
    )
    thresholds = measurement.measures.thresholds.at if measurement.measures.thresholds else ()
    return (
        *approximate,
        *measurement.survey.warnings,
        *score_warnings(scores),
        *threshold_warnings(scores, thresholds),
        *identity_warnings(measurement.codebook.singles, no_subgroup, no_background),
        *slice_warnings(measurement.codebook.slices, no_rows),
    )


def describe_run(config: Config, tally: Tally, warnings: tuple[str, ...], spark_version: str) -> RunRecord:
    """Return what the ledger says of a run."""
    return RunRecord(
        n_rows=tally.n_rows,
        n_rejected=tally.n_rejected,
        rejects=tally.rejects,
        warnings=warnings,
        config=config.json,
        config_hash=config.hash,
        code_version=__version__,
        spark_version=spark_version,
    )
