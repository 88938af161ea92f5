"""AUC attribution: survey and rank rows, and keep them as blocks for the tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

from pyspark.sql import DataFrame

from biasspark.attribution.examples import count_rounded, example_attributions, is_settled
from biasspark.attribution.pairs import pair_segments
from biasspark.attribution.ranked_blocks import RankedBlocks, rank_blocks
from biasspark.columns import ROW_ID
from biasspark.config import Attribution, Measures, Rejects
from biasspark.corpus.check import check_schema
from biasspark.corpus.encode import build_encoding, encode_examples
from biasspark.corpus.encoding import RowCounts
from biasspark.corpus.feature_columns import SurveyedValues, row_columns, survey_values
from biasspark.corpus.read import duplicates_marked
from biasspark.corpus.survey import survey_corpus
from biasspark.corpus.usable import check_usable
from biasspark.corpus.values import column
from biasspark.features import Feature
from biasspark.metrics.data_quality import count_warnings, group_name_warnings, name_warnings
from biasspark.ranking.counts import Counts
from biasspark.ranking.described_rows import RowDescription
from biasspark.ranking.group_pair_counts import count_pairs_of_groups
from biasspark.ranking.row_blocks import RowRanking, Search
from biasspark.ranking.row_ranks import rank_rows
from biasspark.session import BYTES_AN_ATTRIBUTION, describe, refuse_too_many, run_side_by_side
from biasspark.session.spark_errors import translate_corpus_errors
from biasspark.text import format_count, list_first, show_value, show_visibly
from biasspark.workflows.measurement import Measurement, SurveyedCorpus, job_on_corpus, measure, rows_only

MOST_NAMED = 5
_MANY_ROWS = 1 << 21
"""With fewer rows, rounding their scores saves no time."""


@dataclass(frozen=True)
class SurveyedRows(SurveyedCorpus):
    """A corpus ready to be ranked for attribution, and the values of its features and groupings.

    The measures have no identities: only rows are ranked. EXAMPLES have the columns that describe rows.
    """

    id_column: str
    attribution: Attribution
    values: SurveyedValues

    @property
    def features(self) -> tuple[Feature, ...]:
        """The features to split on."""
        return self.values.features

    @property
    def size_text(self) -> str:
        """The size of the ranking in words."""
        encoding = self.encoding
        models, slices = format_count(len(encoding.models), "model"), format_count(len(encoding.slices), "slice")
        return f"{format_count(self.survey.n_rows, 'row')}: {models}, {slices}"

    @property
    def ranking(self) -> RowRanking:
        """The description of the ranking."""
        attribution, models = self.attribution, self.encoding.models
        description = RowDescription(
            features=self.features,
            groupings=self.values.groups,
            segments=tuple(attribution.segments),
            n_slices=len(self.encoding.slices),
            is_split=bool(attribution.tree or attribution.slice_search),
            is_drawn=bool(attribution.pairs),
            n_pairs=len(attribution.pairs_of),
        )
        comparisons = [(models.index(model), models.index(baseline)) for model, baseline in attribution.compare]
        keeps_blocks = bool(description.is_split or attribution.segments or attribution.pairs_of)
        return RowRanking(self.encoding, self.boundaries, description, comparisons, keeps_blocks)

    def rank_rows(self, counts: Counts) -> DataFrame:
        """Return RANKED rows with their ids, given the counts of all rows. Lazy: a scan and a shuffle."""
        labels = counts.cells[2:].reshape(2, len(self.encoding.models), len(self.encoding.slices))
        row_id = column(self.id_column).alias(ROW_ID)
        examples = encode_examples(self.corpus, self.measures, self.encoding, self.id_column, [row_id])
        return rank_rows(examples, self.encoding, self.boundaries, labels, [ROW_ID])


@contextmanager
def survey_rows(
    corpus: DataFrame, measures: Measures, id_column: str, duplicates: str = "allow"
) -> Iterator[SurveyedRows]:
    """Check and survey a corpus for AUC attribution. For parameters and errors see `survey_for_ranking`.

    Runs two narrow jobs in parallel, for the scores and for features and groupings, and a third one for features with
    more than a million distinct numbers.
    """
    attribution, expressions = measures.attribution or Attribution(), measures.expressions
    measures = rows_only(measures)
    check_schema(corpus, replace(measures, attribution=attribution), id_column)
    surveys: list[Callable[[], Any]] = [
        partial(survey_corpus, corpus, measures, id_column if duplicates == "estimate" else None),
        partial(survey_values, corpus, attribution),
    ]
    with describe(corpus.sparkSession, "survey the corpus"), translate_corpus_errors(corpus, expressions):
        survey, values = run_side_by_side(corpus.sparkSession, surveys)
    encoding = build_encoding(measures, survey)
    with duplicates_marked(corpus, id_column, duplicates) as marked:
        columns = row_columns(attribution, values.features, marked, id_column)
        yield SurveyedRows(
            corpus=marked,
            examples=encode_examples(marked, measures, encoding, id_column, list(columns.values())),
            measures=measures,
            survey=survey,
            encoding=encoding,
            cutpoints={},
            id_column=id_column,
            expressions=expressions,
            attribution=attribution,
            values=values,
        )


def describe_rare(surveyed: SurveyedRows) -> str:
    """Describe how many values of features no rule of a tree names, since they have few rows; "" if none."""
    least = surveyed.attribution.split.min_leaf
    texts = [
        f"{len(feature.rare):,} of {format_count(len(feature.values), 'value')} of {feature.name}"
        for feature in surveyed.values.tree_features
        if feature.rare
    ]
    rule = f'fewer than min_leaf = {least:,} rows, so no rule of a tree names them, only "is not": '
    return show_visibly(f"{rule}{', '.join(texts)}.") if texts else ""


def warn_of_features(attribution: Attribution) -> tuple[str, ...]:
    """Return a warning if there are features, but no tree, slices or pairs that use them."""
    if not attribution.features or attribution.searches:
        return ()
    keys = " and ".join(f"`{key}`" for key in ("numeric", "categorical") if getattr(attribution, key))
    columns = list_first([show_value(name) for name in attribution.features], MOST_NAMED)
    return (
        f"attribution, {keys}: no search uses {columns}, so no table will show them. Columns are searched on request "
        "only. Ask for `tree`, `slice_search` or `pairs`, or remove the columns.",
    )


@contextmanager
def ranked_blocks(
    surveyed: SurveyedRows, rejects: Rejects | None = None, *, with_losses: bool = True
) -> Iterator[RankedBlocks]:
    """Rank the rows, sum their losses, count pairs and crosses of groups, and keep the rows inside the block.

    Runs one Spark action: a scan and a shuffle.
    """
    attribution, encoding = surveyed.attribution, surveyed.encoding
    _refuse_too_many(surveyed)
    links = [attribution.link.get(model) for model in encoding.models] if with_losses else None
    searches: dict[str, Search[Any]] = {}
    if attribution.pairs:
        numbers = product(range(len(encoding.models)), range(len(encoding.slices)))
        names = {(model, part): (encoding.models[model], encoding.slices[part]) for model, part in numbers}
        level = surveyed.measures.intervals.level
        searches["pairs"] = pair_segments(surveyed.features, names, attribution.pairs, level)
    if attribution.groupings:
        groups = dict(zip(attribution.groupings, surveyed.values.groups, strict=True))
        searches["crosses"] = count_pairs_of_groups(encoding, groups)
    with (
        job_on_corpus(surveyed, "rank every row"),
        rank_blocks(surveyed.examples, surveyed.ranking, links, surveyed.survey.n_rows, searches) as ranked,
    ):
        schema = surveyed.corpus.schema
        check_usable(ranked.counts.row_counts, surveyed.measures, schema, surveyed.id_column, rejects)
        yield ranked


def attribute_rows(surveyed: SurveyedRows) -> tuple[DataFrame, tuple[str, ...]]:
    """Return the table of examples, less the run's columns, and the warnings of a measurement.

    Runs one Spark action, which counts rows for the warnings: a scan, and a shuffle of the scores, of which more than
    two million are rounded first. If these leave a warning open, a second action ranks all scores. The table is lazy:
    one more scan and shuffle.
    """
    _refuse_too_many(surveyed)
    if surveyed.survey.n_rows > _MANY_ROWS:
        with job_on_corpus(surveyed, "count every row"):
            counts = count_rounded(surveyed.examples, surveyed.encoding, surveyed.boundaries)
        check_usable(counts.row_counts, surveyed.measures, surveyed.corpus.schema, surveyed.id_column)
        if is_settled(counts, surveyed.encoding):
            return example_attributions(surveyed.rank_rows(counts)), _measurement(surveyed, counts).warnings
    measurement = measure(surveyed)
    return example_attributions(surveyed.rank_rows(measurement.counts)), measurement.warnings


def _measurement(surveyed: SurveyedRows, counts: Counts) -> Measurement:
    return Measurement(surveyed.measures, surveyed.encoding, surveyed.survey, {}, counts)


def _refuse_too_many(surveyed: SurveyedRows) -> None:
    n_ranked = len(surveyed.encoding.models) + len(surveyed.attribution.compare)
    refuse_too_many(surveyed.corpus.sparkSession, surveyed.survey.n_rows, n_ranked, BYTES_AN_ATTRIBUTION)


def describe_rows(surveyed: SurveyedRows, ranked: RankedBlocks) -> tuple[RowCounts, tuple[str, ...]]:
    """Return the counts of rows, and the warnings about the corpus and its features."""
    constant = [feature.name for feature in surveyed.features if len(feature.values) + feature.nullable <= 1]
    rare = [
        feature.name
        for feature in surveyed.values.tree_features
        if feature.rare and len(feature.rare) == len(feature.values) and feature.name not in constant
    ]
    names = [feature.name for feature in surveyed.features]
    warnings = (
        *_measurement(surveyed, ranked.counts).warnings,
        *name_warnings("feature constant", names, constant),
        *name_warnings("feature rare", names, rare),
        *count_warnings("unreadable feature", surveyed.values.unreadable),
        *group_name_warnings(surveyed.values.reserved),
    )
    return ranked.counts.row_counts, warnings
