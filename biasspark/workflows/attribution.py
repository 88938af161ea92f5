"""AUC attribution: rows are surveyed, ranked, and kept for the tables that come of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame

from biasspark.attribution.losses import Losses, measure_losses
from biasspark.config import Attribution, Measures, Rejects
from biasspark.corpus.check import check_schema
from biasspark.corpus.encode import build_encoding, encode_examples
from biasspark.corpus.encoding import RowCounts
from biasspark.corpus.feature_columns import Grouping, payload_columns, survey_features, survey_groupings
from biasspark.corpus.read import list_repeated_ids, mark_duplicates
from biasspark.corpus.survey import survey_corpus
from biasspark.corpus.usable import check_usable
from biasspark.features import Feature
from biasspark.metrics.data_quality import feature_warnings
from biasspark.ranking.engine import rank
from biasspark.ranking.row_ranks import rank_rows
from biasspark.session import describe, persisted, run_side_by_side
from biasspark.session.spark_errors import translate_corpus_errors
from biasspark.text import format_count, list_first, show_value
from biasspark.workflows.measurement import Measurement, SurveyedCorpus, job_on_corpus, rows_alone

MOST_NAMED = 5


@dataclass(frozen=True)
class Attributed(SurveyedCorpus):
    """A corpus whose rows are ranked with what is asked about them. All lazy but the surveys.

    Attributes
    ----------
    measures
        Without identities: nothing but rows is ranked.
    examples
        EXAMPLES with the payload columns of a row.
    groups
        The groups of every grouping, by number.
    ranked
        RANKED rows.
    kept
        What the tables are made from: persist these frames to compute each of them once.
    """

    id_column: str
    attribution: Attribution
    features: tuple[Feature, ...]
    groups: tuple[Grouping, ...]
    ranked: DataFrame
    kept: tuple[DataFrame, ...]

    @property
    def extent(self) -> str:
        """How much there is to rank, in words."""
        book = self.encoding
        models, slices = format_count(len(book.models), "model"), format_count(len(book.slices), "slice")
        return f"{format_count(self.survey.n_rows, 'row')}: {models}, {slices}"

    @property
    def search(self) -> str:
        """What is searched, in words."""
        attribution = self.attribution
        searches = {"segments": attribution.tree, "slices": attribution.slice_search, "pairs": attribution.pairs}
        asked = ", ".join(name for name, settings in searches.items() if settings)
        return f"searching {asked}" if asked else "summing losses, without a search"


def attribute(corpus: DataFrame, measures: Measures, id_column: str, duplicates: str = "allow") -> Attributed:
    """Rank a corpus for AUC attribution. Parameters and errors are those of `survey_for_ranking`.

    Runs up to four narrow jobs: the survey of the scores, two of the features and one of the groupings. What is
    returned scans the corpus once and shuffles it once.
    """
    attribution, expressions = measures.attribution or Attribution(), measures.expressions
    measures = rows_alone(measures)
    check_schema(corpus, replace(measures, attribution=attribution), id_column)
    surveys: list[Callable[[], Any]] = [
        partial(survey_corpus, corpus, measures, id_column if duplicates == "estimate" else None),
        partial(survey_features, corpus, attribution if attribution.searches else Attribution()),
        partial(survey_groupings, corpus, attribution.groupings),
    ]
    with describe(corpus.sparkSession, "survey the corpus"), translate_corpus_errors(corpus, expressions):
        survey, features, groups = run_side_by_side(corpus.sparkSession, surveys)
    kept = [list_repeated_ids(corpus, id_column)] if duplicates == "reject" and id_column else []
    corpus = mark_duplicates(corpus, id_column, kept[0]) if kept and id_column else corpus
    encoding = build_encoding(measures, survey)
    payload = payload_columns(attribution, features, corpus, id_column)
    examples = encode_examples(corpus, measures, encoding, id_column, list(payload.values()))
    ranked = rank_rows(examples, encoding, survey.boundaries(measures.ranking.ranges), list(payload))
    return Attributed(
        corpus=corpus,
        examples=examples,
        measures=measures,
        survey=survey,
        encoding=encoding,
        cutpoints={},
        id_column=id_column,
        expressions=expressions,
        attribution=attribution,
        features=features,
        groups=groups,
        ranked=ranked,
        kept=(*kept, ranked),
    )


def warn_of_features(attribution: Attribution) -> tuple[str, ...]:
    """Return a warning if there are columns to split on, but neither a tree nor slices nor pairs to search."""
    if not attribution.features or attribution.searches:
        return ()
    keys = " and ".join(key for key in ("numeric", "categorical") if getattr(attribution, key))
    columns = list_first([show_value(name) for name in attribution.features], MOST_NAMED)
    return (
        f"[attribution] {keys}: no search uses {columns}, so no table will show them. Columns are searched on request "
        "only. Add tree = {}, slice_search = {} or pairs = {}, or remove the columns.",
    )


@contextmanager
def ranked_rows(attributed: Attributed) -> Iterator[Losses]:
    """Rank the rows, keep them for the block, and give what they lose by segment.

    Raises `InputError` if a file cannot be read.
    """
    attribution = attributed.attribution
    with persisted(*attributed.kept):
        with job_on_corpus(attributed, "rank every row"):
            losses = measure_losses(attributed.ranked, attribution.segments, attribution.link)
        yield losses


def check_rows(attributed: Attributed, rejects: Rejects | None = None) -> tuple[RowCounts, tuple[str, ...]]:
    """Rank the scores alone, count the rows read and rejected, and give the warnings that a measurement gives.

    Runs one Spark action: a scan of label and scores, and a shuffle of 8 bytes per score. Raises `InputError` if a
    model has no usable score or one label alone, or more is rejected than ``rejects`` allows.
    """
    encoding, measures, features = attributed.encoding, attributed.measures, attributed.features
    with job_on_corpus(attributed, "rank the scores"):
        counts = rank(attributed.examples, encoding, attributed.boundaries)
    check_usable(counts.row_counts, measures, attributed.corpus.schema, attributed.id_column, rejects)
    constant = [feature.name for feature in features if len(feature.values) + feature.nullable <= 1]
    warnings = (
        *Measurement(measures, encoding, attributed.survey, {}, counts).warnings,
        *feature_warnings([feature.name for feature in features], constant),
    )
    return counts.row_counts, warnings
