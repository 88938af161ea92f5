"""The map of comparing models: one line per stage, in the order in which data flow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructType

from biasspark.arrays import Floats
from biasspark.columns import CROSSED, GROUP, IDENTITY, MODEL, SLICE
from biasspark.config import GROUPS, JACKKNIFE, Compare, Measures, Rejects, say_count
from biasspark.corpus.check import check_schema
from biasspark.corpus.clusters import UNCLUSTERED, cluster_of, group_of, is_unclustered
from biasspark.corpus.codebook import Codebook, Tally
from biasspark.corpus.culprits import corpus_faults
from biasspark.corpus.examples import build_codebook, keep_scored, label_examples
from biasspark.corpus.source import mark_duplicates
from biasspark.corpus.survey import MOST_CHOSEN_RANGES, Survey, survey_corpus
from biasspark.corpus.tallies import count_positives, count_rows, count_sides, counts_for, list_empty_slices
from biasspark.corpus.usable import check_usable, list_missing_models
from biasspark.errors import ConfigError
from biasspark.metrics.comparisons.jackknife import IS_BASELINE, paired_by_jackknife
from biasspark.metrics.comparisons.model_comparisons import (
    PAIRED_DELONG,
    model_comparisons,
    name_models,
    paired_by_delong,
)
from biasspark.metrics.comparisons.scope import Scope, scope_warnings, unclustered_warnings
from biasspark.metrics.hygiene import side_warnings, slice_warnings
from biasspark.ranking.grouped_engine import rank_without_groups
from biasspark.ranking.paired_engine import sum_paired_placements
from biasspark.session import describe
from biasspark.tables.schemas import MODEL_COMPARISONS

COMPARED_ROWS_A_RANGE = 1 << 17
"""Of the corpus: a row takes a placement for every identity along, so fewer of them fit a worker."""

IDENTITIES_AT_ONCE = 32
"""More are compared in several passes."""


@dataclass(frozen=True)
class Comparison:
    """Models held against a baseline.

    Attributes
    ----------
    measures
        What is compared, and nothing else.
    tally
        Rows read and rejected.
    identities
        Numbers of those that are compared: crossed pairs need enough rows.
    kept
        What is used more than once: persist these frames.
    scopes
        What every model shares with the baseline; groups where there are clusters.
    n_unclustered
        Rows read that are in no cluster.
    peculiarities
        What a person should look at in the identities and slices.
    """

    corpus: DataFrame
    measures: Measures
    asked: Compare
    id_column: str | None
    survey: Survey
    tally: Tally
    identities: tuple[int, ...]
    kept: tuple[DataFrame, ...]
    scopes: tuple[Scope, ...]
    n_unclustered: int
    peculiarities: tuple[str, ...]

    @property
    def extent(self) -> str:
        """How much there is to compare, in words. Rows are those read: of how many both models score the table says."""
        n_singles = len(build_codebook(self.measures, self.survey).singles)
        return (
            f"{say_count(len(self.asked.models), 'model')} with {self.asked.baseline}: "
            f"{say_count(self.tally.n_rows, 'row')} read, {say_count(1 + len(self.measures.slices), 'slice')}, "
            f"{say_count(n_singles, 'identity', 'identities')}, "
            f"{say_count(len(self.identities) - 1 - n_singles, 'crossed pair')}"
        )

    @property
    def missing_models(self) -> tuple[str, ...]:
        """Models without one usable score."""
        return list_missing_models(self.tally)

    @property
    def table(self) -> DataFrame:
        """The table ``model_comparisons``, less the run's columns. Lazy."""
        return model_comparisons(self.compared, self.level).select(*MODEL_COMPARISONS.value_columns)

    @cached_property
    def compared(self) -> DataFrame:
        """Both models' AUCs of every pair of cells, with their variances: persist it to use it twice. Lazy."""
        return reduce(DataFrame.unionByName, map(self._compare, self.asked.models))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person should look at: in the corpus, its clusters, and what models share with the baseline."""
        loose = unclustered_warnings(self.asked.cluster, self.n_unclustered, self.tally.n_rows)
        return (*self.survey.warnings, *loose, *scope_warnings(self.asked, self.scopes), *self.peculiarities)

    def compute(self) -> None:
        """Compute `compared`, which should be persisted, and name the expression that fails on a row.

        Raises
        ------
        InputError
            If one does, or a file cannot be read.
        """
        spark = self.corpus.sparkSession
        with describe(spark, "compare the models"), corpus_faults(self.corpus, self.measures.expressions):
            self.compared.agg(F.count(F.lit(1))).collect()

    @property
    def level(self) -> float:
        """Of the intervals."""
        return self.measures.intervals.level

    def _compare(self, model: str) -> DataFrame:
        """Compare one model with the baseline."""
        models = (model, self.asked.baseline)
        measures = replace(self.measures, models={name: self.measures.models[name] for name in models})
        codebook, boundaries = build_codebook(measures, self.survey), cut_finely(self.survey, self.measures, models)
        corpus = keep_scored(self.corpus, measures)
        if self.asked.method == JACKKNIFE:
            paired = self._leave_out(corpus, measures, codebook, boundaries)
            return name_models(paired, models, self.level, JACKKNIFE)
        examples = label_examples(corpus, measures, codebook, self.id_column)
        sums = [sum_paired_placements(examples, codebook, boundaries, chunk) for chunk in _in_chunks(self.identities)]
        return name_models(paired_by_delong(reduce(DataFrame.unionByName, sums)), models, self.level, PAIRED_DELONG)

    def _leave_out(
        self, corpus: DataFrame, measures: Measures, codebook: Codebook, boundaries: list[Floats]
    ) -> DataFrame:
        """Pair the AUCs of two models by leaving out groups of rows."""
        asked, groups = self.asked, self.asked.groups or GROUPS
        group = _group_rows(asked, self.id_column, corpus.schema)
        examples = label_examples(corpus, measures, codebook, self.id_column, [group])
        left = leave_out(examples, codebook, boundaries, self.identities, groups)
        sides = left.withColumn(IS_BASELINE, F.col(MODEL) == F.lit(asked.baseline))
        return paired_by_jackknife(sides, (SLICE, IDENTITY, CROSSED))


def compare(
    corpus: DataFrame,
    measures: Measures,
    id_column: str | None = None,
    duplicates: str = "allow",
    rejects: Rejects | None = None,
) -> Comparison:
    """Hold models against a baseline.

    Parameters
    ----------
    corpus : DataFrame
        One row per comment.
    measures : Measures
        Label, models, identities, slices and the part ``compare``.
    id_column : str, optional
        What identifies a row.
    duplicates : {"allow", "estimate", "reject"}
        What to do about ids that repeat.
    rejects : Rejects, optional
        How many rejects a job may have. Without it, as in a notebook, every model needs a usable score.

    Raises
    ------
    InputError
        If the corpus does not fit the configuration, a model has no usable score, or more is rejected than is allowed.

    Notes
    -----
    Runs two narrow jobs: the survey, and one that counts rows. `Comparison.table` scans the corpus once for each
    model and 32 identities, and shuffles it twice.
    """
    asked = measures.compare
    assert asked is not None  # it names the baseline
    if asked.method == JACKKNIFE and id_column is None:
        raise ConfigError("id: missing. The jackknife groups rows by it. Name the column that identifies a row.")
    expressions, measures = measures.expressions, compared_alone(measures)
    check_schema(corpus, measures, id_column)
    with describe(corpus.sparkSession, "survey the corpus"), corpus_faults(corpus, expressions):
        survey = survey_corpus(corpus, measures, id_column if duplicates == "estimate" else None)
    corpus, kept = mark_duplicates(corpus, id_column, duplicates)
    codebook = build_codebook(measures, survey)
    examples = label_examples(corpus, measures, codebook, id_column, _find_clusters(asked, id_column, corpus.schema))
    with describe(corpus.sparkSession, "count the rows"), corpus_faults(corpus, expressions):
        further = [count_sides(codebook).alias("sides"), list_empty_slices(codebook).alias("empty_slices")]
        further += _count_scopes(asked, codebook)
        (counted,) = count_rows(examples, codebook, further).collect()
    tally = codebook.read_tally(counted["counts"])
    check_usable(tally, measures.models, rejects)
    return Comparison(
        corpus=corpus,
        measures=measures,
        asked=asked,
        id_column=id_column,
        survey=survey,
        tally=tally,
        identities=tuple(codebook.list_identities(counted["counts"])),
        kept=tuple(kept),
        scopes=tuple(Scope(*row) for row in counted["scopes"]),
        n_unclustered=counted[UNCLUSTERED],
        peculiarities=(
            *side_warnings(codebook.singles, counted["sides"]),
            *slice_warnings(codebook.slices, counted["empty_slices"]),
        ),
    )


def _find_clusters(asked: Compare, id_column: str | None, schema: StructType) -> list[Column]:
    """Return whether a row is in no cluster and, where there are clusters, its group."""
    unclustered = is_unclustered(cluster_of(asked.cluster, schema)).alias(UNCLUSTERED)
    return [unclustered, _group_rows(asked, id_column, schema)] if asked.cluster else [unclustered]


def _group_rows(asked: Compare, id_column: str | None, schema: StructType) -> Column:
    """Return the group of a row, which the jackknife leaves out as a whole."""
    return group_of(str(id_column), cluster_of(asked.cluster, schema), asked.groups or GROUPS).alias(GROUP)


def _count_scopes(asked: Compare, codebook: Codebook) -> list[Column]:
    """Return how many rows are in no cluster, and the `Scope` of every model: aggregates over EXAMPLES."""

    def count_shared(model: str) -> Column:
        both = (model, asked.baseline)
        shared = counts_for(both, codebook)
        n_groups = F.size(F.collect_set(F.when(shared, F.col(GROUP)))) if asked.cluster else F.lit(None).cast("int")
        return F.struct(
            F.lit(model).alias(MODEL),
            F.count_if(shared).alias("n_rows"),
            n_groups.alias("n_groups"),
            count_positives(both, codebook).alias("n_positive"),
        )

    scopes = F.array(*map(count_shared, asked.models)).alias("scopes")
    return [F.count_if(UNCLUSTERED).alias(UNCLUSTERED), scopes]


def compared_alone(measures: Measures) -> Measures:
    """Return what is left of the measures where nothing is done but to compare models."""
    asked = measures.compare
    assert asked is not None
    return Measures(
        label=measures.label,
        models={name: measures.models[name] for name in (*asked.models, asked.baseline)},
        identities=measures.identities,
        slices=measures.slices,
        ranking=replace(measures.ranking, engine="blocks"),
        intervals=measures.intervals,
        compare=asked,
    )


def leave_out(
    examples: DataFrame, codebook: Codebook, boundaries: Sequence[Floats], identities: Sequence[int], n_groups: int
) -> DataFrame:
    """Return `rank_without_groups` for any number of identities, 32 per pass."""
    left = (rank_without_groups(examples, codebook, boundaries, chunk, n_groups) for chunk in _in_chunks(identities))
    return reduce(DataFrame.unionByName, left)


def _in_chunks(identities: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(identities), IDENTITIES_AT_ONCE):
        yield identities[start : start + IDENTITIES_AT_ONCE]


def cut_finely(survey: Survey, measures: Measures, models: Sequence[str]) -> list[Floats]:
    """Return where the ranges of some of the surveyed models meet, so many that a worker has room for every row."""
    chosen = min(-(-survey.n_rows // COMPARED_ROWS_A_RANGE), MOST_CHOSEN_RANGES)
    found = survey.boundaries(measures.ranking.ranges or chosen)
    return [found[list(measures.models).index(name)] for name in models]
