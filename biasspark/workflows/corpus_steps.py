"""Steps of the jobs that read a corpus: survey it, rank every score once, and compute all tables from the counts.

corpus --survey, one job--> SurveyedCorpus --rank, one job--> COUNTS --arithmetic--> tables
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from biasspark.arrays import Flags, Floats, Ints
from biasspark.columns import ALL_ROWS, SCORE_REASONS
from biasspark.config import Identities, Label, Measures, PinnedAuc, Rejects
from biasspark.corpus import data_quality
from biasspark.corpus.check import check_schema
from biasspark.corpus.decode import count_labels, count_rows, count_sides
from biasspark.corpus.encode import build_encoding, encode_examples, list_length_bins
from biasspark.corpus.encoding import Encoding, RowCounts
from biasspark.corpus.read import duplicates_marked
from biasspark.corpus.survey import MAX_CHOSEN_RANGES, Cutpoints, Survey, choose_cutpoints, survey_corpus
from biasspark.corpus.usable import A_LABEL, check_identities, check_lengths, check_usable
from biasspark.metrics.label_balance import label_balance
from biasspark.metrics.pinned import pinned_aucs
from biasspark.metrics.suite import OVERALL_AUC, SUITE, bias_metrics, metric_columns
from biasspark.metrics.summary import model_summary
from biasspark.metrics.suppression import require_rows, suppress_statistics
from biasspark.metrics.thresholds import Thresholds, score_histograms, threshold_rates, threshold_summary
from biasspark.metrics.u_statistics import OVERALL_PAIR, UStatistics, u_statistics
from biasspark.ranking.counts import Counts, check_size
from biasspark.ranking.engine import collect_counts, rank, rank_ranges, sort_examples
from biasspark.ranking.kernels.placements import Profile
from biasspark.ranking.sampled_trials import sample_pinned_aucs
from biasspark.session import describe, kept, refuse_too_many
from biasspark.session.spark_errors import translate_corpus_errors
from biasspark.tables import schemas
from biasspark.tables.schemas import Table
from biasspark.text import format_count, format_share

AnyMeasures = TypeVar("AnyMeasures", bound=Measures)
ROWS_PASS, LABELS_PASS = "count the rows", "count the labels"
ROWS_A_SMALL_RANGE = 1 << 17
"""Rows of the corpus per range: fewer than elsewhere, since each row carries a placement for every identity."""


@dataclass(frozen=True)
class SurveyedCorpus:
    """A surveyed corpus, ready to be ranked: its rows and EXAMPLES, both lazy, and the cutpoints of each model.

    ``rejects`` are the limits of rejected rows; without them, as in a notebook, every model needs a usable score.
    """

    corpus: DataFrame
    examples: DataFrame
    measures: Measures
    survey: Survey
    encoding: Encoding
    cutpoints: Mapping[str, Cutpoints]
    id_column: str | None
    rejects: Rejects | None

    @property
    def size_text(self) -> str:
        """The size of the ranking in words."""
        return f"{self.survey.rows_text}: {format_count(len(self.encoding.models), 'model')}, {self.describe_groups()}"

    @property
    def edges(self) -> list[Floats]:
        """The scores at which rows are counted, by model; [] without thresholds and histograms."""
        return [cutpoints.scores for cutpoints in self.cutpoints.values()]

    @property
    def boundaries(self) -> list[Floats]:
        """The boundaries of score ranges, by model."""
        return self.survey.boundaries(self.measures.ranking.ranges)

    def cut_finely(self, models: Iterable[str]) -> list[Floats]:
        """Return the boundaries of small ranges for some models, so that paired rows of a range fit into a worker."""
        chosen = min(-(-self.survey.n_rows // ROWS_A_SMALL_RANGE), MAX_CHOSEN_RANGES)
        boundaries = self.survey.boundaries(self.measures.ranking.ranges or chosen)
        return [boundaries[list(self.measures.models).index(name)] for name in models]

    def describe_groups(self, n_pairs: int | None = None) -> str:
        """Count the slices, identities and crossed pairs in words; without identities, the slices."""
        encoding = self.encoding
        slices = format_count(len(encoding.slices), "slice")
        if not encoding.singles:
            return slices
        pairs = format_count(len(encoding.pairs) if n_pairs is None else n_pairs, "crossed pair")
        return f"{slices}, {format_count(len(encoding.singles), 'identity', 'identities')}, {pairs}"

    @contextmanager
    def job(self, text: str) -> Iterator[None]:
        """Name a Spark job on the corpus, and name the expression or file that makes it fail."""
        with describe(self.corpus.sparkSession, text), translate_corpus_errors(self.corpus, self.measures.expressions):
            yield

    def check(self, counts: RowCounts, sides: Iterable[tuple[int, int]] = (), labels: Ints | None = None) -> None:
        """Raise `InputError` if too few rows are usable, too many rejected, or all identities or lengths unknown.

        `sides` are the usable rows in and outside of each identity, without crossed pairs; `labels` are those of
        `ranking.counts.Counts`.
        """
        measures, singles = self.measures, self.encoding.singles
        check_usable(counts, measures, self.id_column, self.rejects)
        unknown = [name for name, sizes in zip(singles, sides, strict=True) if not any(sizes)]
        check_identities(measures.identities, singles, unknown, counts.unreadable)
        if measures.label_balance and labels is not None:
            check_lengths(labels, measures.label_balance)


@contextmanager
def survey_for_ranking(
    corpus: DataFrame,
    measures: Measures,
    id_column: str | None = None,
    duplicates: str = "allow",
    rejects: Rejects | None = None,
) -> Iterator[SurveyedCorpus]:
    """Check and survey a corpus. `duplicates` says how to treat repeated ids: allow, estimate or reject.

    Runs one narrow Spark job. Rejecting repeated ids takes another; the list of such ids is kept within the block. With
    histograms, the survey reads the rows joined to that list.
    """
    check_schema(corpus, measures, id_column)
    with ExitStack() as stack:
        with describe(corpus.sparkSession, "survey the corpus"), translate_corpus_errors(corpus, measures.expressions):
            marked = stack.enter_context(duplicates_marked(corpus, id_column, duplicates))
            # Only the bins of histograms depend on which rows are duplicates.
            survey = survey_corpus(marked if measures.histograms else corpus, measures, id_column, duplicates)
        cutpoints = choose_cutpoints(measures, survey, corpus.schema)
        encoding = build_encoding(measures, survey, corpus)
        examples = encode_examples(marked, measures, encoding, id_column)
        yield SurveyedCorpus(marked, examples, measures, survey, encoding, cutpoints, id_column, rejects)


@dataclass(frozen=True)
class Measurement:
    """All results of one ranking, computed from its counts. ``sampled`` are those of `sample_pinned_aucs`."""

    measures: Measures
    encoding: Encoding
    survey: Survey
    cutpoints: Mapping[str, Cutpoints]
    counts: Counts
    sampled: Floats | None = None

    @cached_property
    def statistics(self) -> UStatistics:
        """AUC and variance of every pair of cells, except those with too few rows."""
        supported = require_rows(u_statistics(self.counts), self.measures.evidence)
        return suppress_statistics(supported, self.measures.privacy)

    @cached_property
    def tables(self) -> dict[Table, pa.Table]:
        """The configured tables that are computed from the counts, without run_date, corpus and run_id."""
        measures, counts, statistics = self.measures, self.counts, self.statistics
        level, suppressed = measures.intervals.level, statistics.suppressed
        pinned = measures.pinned_auc or PinnedAuc()
        include_subgroup = pinned.include_subgroup_in_background
        tables = {
            schemas.U_STATISTICS: statistics.table(),
            schemas.BIAS_METRICS: bias_metrics(statistics, level),
            schemas.MODEL_SUMMARY: model_summary(statistics, level, include_subgroup),
        }
        if measures.pinned_auc:
            tables[schemas.PINNED_AUC] = pinned_aucs(statistics, include_subgroup, pinned.trials, self.sampled)
        if measures.thresholds:
            indices = {model: cuts.index_of(cuts.thresholds) for model, cuts in self.cutpoints.items()}
            thresholds = Thresholds(measures.thresholds.at, indices)
            tables[schemas.THRESHOLD_RATES] = threshold_rates(counts, thresholds, suppressed, level)
            tables[schemas.THRESHOLD_SUMMARY] = threshold_summary(counts, thresholds, suppressed)
        if measures.histograms:
            bins = {model: (cuts.bin_edges, cuts.index_of(cuts.bin_edges)) for model, cuts in self.cutpoints.items()}
            tables[schemas.SCORE_HISTOGRAMS] = score_histograms(counts, bins, suppressed)
        if measures.label_balance and counts.labels is not None:
            tables[schemas.LABEL_BALANCE] = tabulate_labels(counts.labels, self.encoding, measures)
        return tables

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about scores, identities, slices and rejects, to read before any metric."""
        groups, counts = self.statistics.groups, self.counts.row_counts
        in_all_rows = (groups.slice == ALL_ROWS) & ~groups.crossed
        slice_labels = self._most_by_model(self.counts.cells[2:, groups.is_overall])
        profiles = [self._profile(model, in_all_rows & (groups.model == model)) for model in self.encoding.models]
        thresholds = {model: cuts.thresholds for model, cuts in self.cutpoints.items()}
        n_usable = max(counts.n_eligible.values(), default=0)
        return (
            *self.survey.warnings,
            *data_quality.score_warnings(profiles),
            *data_quality.threshold_warnings(profiles, thresholds),
            *data_quality.identity_warnings(self.encoding.singles, self.sides, n_usable),
            *data_quality.slice_warnings(self.encoding.slices, slice_labels),
            *warn_of_rows(counts, self.measures.label),
            *warn_of_lengths(self.counts.labels, self.measures),
        )

    @cached_property
    def sides(self) -> list[tuple[int, int]]:
        """The rows in and outside of each identity, without crossed pairs, for the model that has most."""
        groups, cells = self.counts.groups, self.counts.cells
        chosen = (groups.slice == ALL_ROWS) & ~groups.crossed & ~groups.is_overall
        return self._most_by_model(np.stack([cells[0] + cells[1], cells[2] + cells[3]])[:, chosen])

    def _most_by_model(self, sizes: Ints) -> list[tuple[int, int]]:
        """Return for each part the maximum over models of sizes, shape (2, models x parts)."""
        n_models = len(self.encoding.models)
        first, second = sizes.reshape(2, n_models, sizes.shape[1] // n_models).max(axis=1).tolist()
        return list(zip(first, second, strict=True))

    @cached_property
    def _upper_ends(self) -> list[Floats]:
        """The upper ends of the intervals of the overall AUC and of the Subgroup AUC, by group."""
        every_group, level = np.arange(len(self.statistics.groups.model)), self.measures.intervals.level
        return [
            metric_columns(metric, self.statistics, every_group, level)[f"{metric.name}_high"]
            for metric in (OVERALL_AUC, SUITE[0])
        ]

    def _profile(self, model: str, groups: Flags) -> data_quality.ScoreProfile:
        statistics, overall = self.statistics, groups & self.statistics.groups.is_overall
        overall_ends, subgroup_ends = self._upper_ends
        return data_quality.ScoreProfile(
            model,
            **self.counts.profiles.get(model, Profile(0, 0, 0, np.inf, -np.inf))._asdict(),
            overall_auc=statistics.auc[OVERALL_PAIR, overall].item(),
            overall_high=_maximum(overall_ends[overall]),
            subgroup_high=_maximum(subgroup_ends[groups]),
            reason=statistics.reason[OVERALL_PAIR, overall].item(),
            n_rarer_label=self.counts.row_counts.count_rarer_label(model),
        )


def _maximum(values: Floats) -> float | None:
    return max(values[~np.isnan(values)].tolist(), default=None)


def measure(surveyed: SurveyedCorpus) -> Measurement:
    """Rank a surveyed corpus: one scan and one shuffle, and one more of each for trials of the pinned AUC."""
    _refuse_size(surveyed)
    with surveyed.job("rank every score"):
        ranking_engine = surveyed.measures.ranking.engine
        counts = rank(surveyed.examples, surveyed.encoding, surveyed.boundaries, surveyed.edges, ranking_engine)
    return _measurement(surveyed, counts)


@contextmanager
def measure_and_keep(surveyed: SurveyedCorpus, boundaries: list[Floats]) -> Iterator[tuple[Measurement, DataFrame]]:
    """Measure with the given boundaries, and keep RANKED until the ``with`` block ends: windows merge its sketches."""
    _refuse_size(surveyed)
    encoding = replace(surveyed.encoding, keeps_sketches=True)
    parts = sort_examples(surveyed.examples, encoding, boundaries)
    ranges = rank_ranges(parts, encoding, boundaries, surveyed.edges)
    with surveyed.job("rank every score"), kept(ranges) as ranked:
        counts = collect_counts(ranked, surveyed.encoding, surveyed.edges)
        yield _measurement(surveyed, counts), ranked


def _refuse_size(surveyed: SurveyedCorpus) -> None:
    """Raise an error if the scores would not fit the engine, or the counts the driver."""
    encoding = surveyed.encoding
    refuse_too_many(surveyed.corpus.sparkSession, surveyed.survey.n_rows, len(encoding.models))
    n_edges = max(map(len, surveyed.edges), default=0)
    check_size(len(encoding.models), len(encoding.slices), len(encoding.names), n_edges)


def _measurement(surveyed: SurveyedCorpus, counts: Counts) -> Measurement:
    """Check the counts, and sample the trials of the pinned AUC, if configured."""
    measures, pinned = surveyed.measures, surveyed.measures.pinned_auc
    measurement = Measurement(measures, surveyed.encoding, surveyed.survey, surveyed.cutpoints, counts)
    surveyed.check(counts.row_counts, measurement.sides, counts.labels)
    if not (pinned and pinned.trials and measures.ranking.engine == "blocks"):
        return measurement
    with surveyed.job("sample pinned AUC"):
        sampled = sample_pinned_aucs(surveyed.examples, surveyed.encoding, surveyed.boundaries, counts, pinned)
    return replace(measurement, sampled=sampled)


def rows_only(measures: AnyMeasures) -> AnyMeasures:
    """Return the measures for a ranking of rows only, without identities and optional parts."""
    ranking = replace(measures.ranking, engine="blocks")
    no_parts: dict[str, Any] = {part.name: None for part in fields(Measures) if part.default is None}
    return replace(measures, identities=Identities(), ranking=ranking, **no_parts)


def warn_of_rows(counts: RowCounts, label: Label) -> Iterator[str]:
    """Yield warnings about labels and annotations, and about frequent reasons of rejected rows and scores."""
    yield from data_quality.label_warnings(counts.n_labeled, counts.n_positive)
    yield from data_quality.count_warnings("off scale", counts.off_scale)
    yield from data_quality.count_warnings("unreadable annotation", counts.unreadable)
    row_rejects = {reason: count for reason, count in counts.rejects.items() if reason not in SCORE_REASONS}
    hints = {"null_label": A_LABEL} if label.threshold is None and label.positive is None else {}
    yield from data_quality.reject_warnings("corpus", "rows", counts.n_rows, row_rejects, hints)
    for model, score_rejects in counts.rejected_scores.items():
        if n_usable := counts.n_eligible[model]:  # otherwise there is a score warning
            n_scores = n_usable + sum(score_rejects.values())
            yield from data_quality.reject_warnings(f"model {model}", "scores", n_scores, score_rejects)


def warn_of_lengths(labels: Ints | None, measures: Measures) -> Iterator[str]:
    """Yield a warning about many rows in no bucket of lengths, unless privacy may withhold how many they are."""
    if labels is not None and labels.shape[1] > 1 and measures.label_balance and not measures.privacy:
        n_outside, n_rows, buckets = labels[0, 0].sum(), labels[0].sum(), measures.label_balance.buckets
        if n_rows >= data_quality.FEW_ROWS and n_outside > data_quality.MANY_REJECTED * n_rows:
            yield (
                f"label_balance: {format_share(n_outside, n_rows)} of the {n_rows:,} rows with a label have no length "
                f"from {buckets[0]:,} to {buckets[-1] - 1:,}, so they are in no bucket. Is that meant?"
            )


@dataclass(frozen=True)
class CountedLabels:
    """The labels of a corpus (`ranking.counts.Counts.labels`), and the labeled rows in and outside of each identity."""

    surveyed: SurveyedCorpus
    counts: RowCounts
    labels: Ints
    sides: Sequence[tuple[int, int]]

    @property
    def balance(self) -> pa.Table:
        """The table ``label_balance``, without run_date, corpus and run_id."""
        return self.tabulate(self.labels)

    def tabulate(self, labels: Ints) -> pa.Table:
        """Return the table ``label_balance`` of some labels."""
        return tabulate_labels(labels, self.surveyed.encoding, self.surveyed.measures)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the corpus."""
        surveyed, counts, measures = self.surveyed, self.counts, self.surveyed.measures
        return (
            *surveyed.survey.warnings,
            *data_quality.identity_warnings(surveyed.encoding.singles, self.sides, counts.n_labeled),
            *warn_of_rows(counts, measures.label),
            *warn_of_lengths(self.labels, measures),
        )


def tabulate_labels(labels: Ints, encoding: Encoding, measures: Measures) -> pa.Table:
    """Return the table ``label_balance`` of counted labels."""
    assert measures.label_balance is not None
    length_bins = list_length_bins(measures.label_balance)
    return label_balance(labels, encoding.names[: encoding.first_pair], length_bins, measures.privacy)


def balance_labels(surveyed: SurveyedCorpus) -> CountedLabels:
    """Count the labels of a surveyed corpus, without reading scores, by two narrow jobs."""
    examples, encoding = surveyed.examples, surveyed.encoding
    with surveyed.job(ROWS_PASS):
        (counted,) = count_rows(examples, encoding, [count_sides(encoding).alias("sides")]).collect()
    with surveyed.job(LABELS_PASS):
        labels = count_labels(examples, encoding)
    counts = encoding.read_row_counts(counted["counts"])
    surveyed.check(counts, counted["sides"], labels)
    return CountedLabels(surveyed, counts, labels, counted["sides"])
