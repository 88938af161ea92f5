"""The map of AUC attribution: rows are surveyed, ranked, and kept for the tables that come of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame

from biasspark.arrays import Floats
from biasspark.attribution.losses import Losses, measure_losses
from biasspark.config import Attribution, Identities, Measures, say_count
from biasspark.corpus.attributed import carried_columns
from biasspark.corpus.check import check_schema
from biasspark.corpus.codebook import Codebook, Tally
from biasspark.corpus.culprits import corpus_faults
from biasspark.corpus.examples import build_codebook, label_examples
from biasspark.corpus.features import survey_features
from biasspark.corpus.groupings import Grouping, survey_groupings
from biasspark.corpus.source import mark_duplicates
from biasspark.corpus.survey import Survey, survey_corpus
from biasspark.corpus.tallies import count_rows
from biasspark.errors import no_usable_row
from biasspark.features import Feature
from biasspark.ranking.row_engine import rank_rows
from biasspark.session import describe, persisted, run_side_by_side


@dataclass(frozen=True)
class Attributed:
    """A corpus whose rows are ranked with what is asked about them. All lazy but the surveys.

    Attributes
    ----------
    measures
        Without identities: nothing but rows is ranked.
    expressions
        What the whole configuration computes of a row.
    groups
        The groups of every grouping, by number.
    examples
        EXAMPLES with what goes along with a row.
    ranked
        RANKED rows.
    kept
        What the tables come of: persist these frames to compute each of them once.
    """

    corpus: DataFrame
    measures: Measures
    attribution: Attribution
    id_column: str
    survey: Survey
    codebook: Codebook
    features: tuple[Feature, ...]
    groups: tuple[Grouping, ...]
    examples: DataFrame
    ranked: DataFrame
    kept: tuple[DataFrame, ...]
    expressions: dict[str, str]

    @property
    def extent(self) -> str:
        """How much there is to rank, in words."""
        book = self.codebook
        models, slices = say_count(len(book.models), "model"), say_count(len(book.slices), "slice")
        return f"{say_count(self.survey.n_rows, 'row')}: {models}, {slices}"

    @property
    def boundaries(self) -> list[Floats]:
        """Where the score ranges of each model meet."""
        return self.survey.boundaries(self.measures.ranking.ranges)


def attribute(corpus: DataFrame, measures: Measures, id_column: str, duplicates: str = "allow") -> Attributed:
    """Rank a corpus for AUC attribution.

    Parameters
    ----------
    corpus : DataFrame
        One row per example.
    measures : Measures
        Label, models, slices and the part ``attribution``.
    id_column : str
        What identifies a row.
    duplicates : {"allow", "estimate", "reject"}
        What to do about ids that repeat.

    Raises
    ------
    InputError
        If the corpus does not fit the configuration.

    Notes
    -----
    Runs up to four narrow jobs: the survey of the scores, two of the features and one of the groupings. What is
    returned scans the corpus once and shuffles it once.
    """
    attribution, expressions = measures.attribution or Attribution(), measures.expressions
    measures = rows_alone(measures)
    check_schema(corpus, replace(measures, attribution=attribution), id_column)
    surveys: list[Callable[[], Any]] = [
        partial(survey_corpus, corpus, measures, id_column if duplicates == "estimate" else None),
        partial(survey_features, corpus, attribution),
        partial(survey_groupings, corpus, attribution.groupings),
    ]
    with describe(corpus.sparkSession, "survey the corpus"), corpus_faults(corpus, expressions):
        survey, features, groups = run_side_by_side(corpus.sparkSession, surveys)
    corpus, kept = mark_duplicates(corpus, id_column, duplicates)
    codebook = build_codebook(measures, survey)
    carried = carried_columns(attribution, features, corpus.schema, id_column)
    along = [own.alias(name) for name, own in carried.items()]
    examples = label_examples(corpus, measures, codebook, id_column, along)
    ranked = rank_rows(examples, codebook, survey.boundaries(measures.ranking.ranges), list(carried))
    return Attributed(
        corpus=corpus,
        measures=measures,
        attribution=attribution,
        id_column=id_column,
        survey=survey,
        codebook=codebook,
        features=features,
        groups=groups,
        examples=examples,
        ranked=ranked,
        kept=(*kept, ranked),
        expressions=expressions,
    )


def rows_alone(measures: Measures) -> Measures:
    """Return what is left of the measures where only rows are ranked."""
    return Measures(
        label=measures.label,
        models=measures.models,
        identities=Identities(),
        slices=measures.slices,
        ranking=replace(measures.ranking, engine="blocks"),
        intervals=measures.intervals,
    )


@contextmanager
def ranked_rows(attributed: Attributed) -> Iterator[Losses]:
    """Rank the rows, keep them for the block, and give what they lose by segment.

    Raises
    ------
    InputError
        If a file cannot be read, or no row counts for any model.
    """
    attribution, spark = attributed.attribution, attributed.corpus.sparkSession
    with persisted(*attributed.kept):
        with describe(spark, "rank every row"), corpus_faults(attributed.corpus, attributed.expressions):
            losses = measure_losses(attributed.ranked, attribution.segments, attribution.link)
        if not losses:
            raise no_usable_row(attributed.survey.n_rows)
        yield losses


def count_all_rows(attributed: Attributed) -> Tally:
    """Count the rows read and rejected: one more scan, of label and scores."""
    with describe(attributed.corpus.sparkSession, "count the rows"):
        (counted,) = count_rows(attributed.examples, attributed.codebook).collect()
    return attributed.codebook.read_tally(counted["counts"])
