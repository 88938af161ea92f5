"""The map of AUC attribution: rows are surveyed, ranked, and kept for the tables that come of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyspark.sql.functions as F
from pyspark.sql import DataFrame

from biasspark.arrays import Floats
from biasspark.attribution.losses import Losses, measure_losses
from biasspark.config import Attribution, Identities, Measures, Rejects, list_first, say_count, show_value
from biasspark.corpus.attributed import carried_columns
from biasspark.corpus.check import check_schema
from biasspark.corpus.codebook import Codebook, Tally
from biasspark.corpus.culprits import corpus_faults
from biasspark.corpus.examples import build_codebook, label_examples
from biasspark.corpus.features import survey_features
from biasspark.corpus.groupings import Grouping, survey_groupings
from biasspark.corpus.source import mark_duplicates
from biasspark.corpus.survey import Survey, survey_corpus
from biasspark.corpus.tallies import count_positives, count_rows, list_empty_slices
from biasspark.corpus.usable import check_usable
from biasspark.features import Feature
from biasspark.metrics.hygiene import label_warnings, slice_warnings
from biasspark.pipeline import warn_of_rejects
from biasspark.ranking.row_engine import rank_rows
from biasspark.session import describe, persisted, run_side_by_side

MOST_NAMED = 5


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
    def search(self) -> str:
        """What is searched, in words."""
        attribution = self.attribution
        searches = {"segments": attribution.tree, "slices": attribution.slice_search, "pairs": attribution.pairs}
        asked = ", ".join(name for name, settings in searches.items() if settings)
        return f"searching {asked}" if asked else "summing losses, without a search"

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


def warn_of_features(attribution: Attribution) -> tuple[str, ...]:
    """Return a warning if there are columns to split on, but neither a tree nor slices nor pairs to search."""
    if not attribution.features or attribution.tree or attribution.slice_search or attribution.pairs:
        return ()
    keys = " and ".join(key for key in ("numeric", "categorical") if getattr(attribution, key))
    columns = list_first([show_value(name) for name in attribution.features], MOST_NAMED)
    return (
        f"[attribution] {keys}: no search uses {columns}, so no table will show them. Columns are searched on request "
        "only. Add tree = {}, slice_search = {} or pairs = {}, or remove the columns.",
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
def ranked_rows(attributed: Attributed, rejects: Rejects | None = None) -> Iterator[Losses]:
    """Rank the rows, keep them for the block, and give what they lose by segment.

    Raises
    ------
    InputError
        If a file cannot be read, or a model has no usable score. Where ``rejects`` allows that, if no model has one.
    """
    attribution, spark = attributed.attribution, attributed.corpus.sparkSession
    with persisted(*attributed.kept):
        with describe(spark, "rank every row"), corpus_faults(attributed.corpus, attributed.expressions):
            losses = measure_losses(attributed.ranked, attribution.segments, attribution.link)
        if {model for model, *_ in losses} < set(attributed.codebook.models):
            check_rows(attributed, rejects)  # which names the models, with the reasons
        yield losses


def check_rows(attributed: Attributed, rejects: Rejects | None = None) -> tuple[Tally, tuple[str, ...]]:
    """Count the rows read and rejected, and warn of what a person should look at in them.

    These are many rejects, models whose rows all have one label, and slices without a row.

    Raises
    ------
    InputError
        If a model has no usable score, or more is rejected than ``rejects`` allows.

    Notes
    -----
    One more scan, of label and scores.
    """
    codebook = attributed.codebook
    positives = F.array(*(count_positives((model,), codebook) for model in codebook.models))
    with (
        describe(attributed.corpus.sparkSession, "count the rows"),
        corpus_faults(attributed.corpus, attributed.expressions),
    ):
        further = [positives.alias("n_positive"), list_empty_slices(codebook).alias("empty_slices")]
        (counted,) = count_rows(attributed.examples, codebook, further).collect()
    tally = codebook.read_tally(counted["counts"])
    check_usable(tally, attributed.measures.models, rejects)
    of_labels = zip(tally.n_eligible.values(), counted["n_positive"], strict=True)
    labels = dict(zip(codebook.models, of_labels, strict=True))
    slices = slice_warnings(codebook.slices, counted["empty_slices"])
    return tally, (*label_warnings(labels), *slices, *warn_of_rejects(tally))
