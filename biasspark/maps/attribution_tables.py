"""The tables of AUC attribution, of rows that are ranked: one function a search or a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

import pyspark.sql.functions as F
from pyspark.sql import DataFrame, SparkSession

from biasspark.attribution.compared import difference_rows, difference_variances
from biasspark.attribution.crosses import auc_crosses
from biasspark.attribution.examples import example_attributions
from biasspark.attribution.losses import Losses, lie_within_0_and_1, list_correlations, list_losses, say_what_link_does
from biasspark.attribution.pairs import pair_segments
from biasspark.attribution.segments import AUC, LosingSlice, Segment, TreeKey, list_segments, plan_trees, tree_rows
from biasspark.attribution.slice_search import search_slices
from biasspark.attribution.subgroups import Subgroups, name_conditions, read_statistics
from biasspark.attribution.trees import grow_trees, measure_nodes
from biasspark.columns import ALL_ROWS, IDENTITY, IN_CROWDS, OVERALL, ROW_ID, SLICE
from biasspark.config import Identities, Pairs
from biasspark.corpus.attributed import carried_columns, mark_rows
from biasspark.corpus.eligibility import score_reason
from biasspark.corpus.examples import build_codebook, label_examples
from biasspark.corpus.groupings import group_columns
from biasspark.errors import InputError
from biasspark.expressions.conditions import MOST_BITS
from biasspark.features import Condition
from biasspark.maps.attribution import Attributed, warn_of_features
from biasspark.metrics.intervals import with_auc_interval
from biasspark.metrics.statistics import with_auc
from biasspark.ranking.cross_engine import cross_pairs
from biasspark.ranking.engine import rank
from biasspark.ranking.row_engine import rank_rows
from biasspark.session import describe, persisted, run_side_by_side
from biasspark.tables.schemas import (
    ATTRIBUTION_CORRELATIONS,
    ATTRIBUTION_SEGMENTS,
    ATTRIBUTION_SLICES,
    AUC_CROSSES,
    EXAMPLE_ATTRIBUTIONS,
    LOSS_BY_SEGMENT,
    PAIR_SEGMENTS,
    Table,
)


def list_tables(attributed: Attributed, losses: Losses) -> tuple[dict[Table, DataFrame | None], tuple[str, ...]]:
    """Return the rows of every table, less the run's columns, and warnings; None where a part is not configured.

    Trees and slices are searched here, by several jobs, side by side; the other tables are lazy.
    """
    attribution, ranked, features = attributed.attribution, attributed.ranked, attributed.features
    level, probable = attributed.measures.intervals.level, find_probable(attributed, losses)
    searches: list[Callable[[], Any]] = [partial(grow_segments, attributed, probable), partial(find_slices, attributed)]
    searches += [partial(compare_models, attributed, models) for models in attribution.compare]
    segments, (slices, warnings), *compared = run_side_by_side(attributed.corpus.sparkSession, searches)
    of_auc = [segment for segment in segments if segment.key.target == AUC]
    searched = [segment.condition for segment in of_auc] + [own.found.condition for own in slices]
    subgroups = rank_subgroups(attributed, searched)
    nodes = [segment.row(_vary(segment, subgroups), level) for segment in segments]
    nodes += chain.from_iterable(compared)
    losing = [own.row(subgroups.variance(own.place, own.sums), features, level) for own in slices]
    rows = {
        ATTRIBUTION_CORRELATIONS: list_correlations(losses, probable),
        ATTRIBUTION_SEGMENTS: [_within_slice(row, attributed.measures.slices) for row in nodes],
        ATTRIBUTION_SLICES: [_within_slice(row, attributed.measures.slices) for row in losing],
        LOSS_BY_SEGMENT: list_losses(losses, attribution.segments, subgroups.named, probable, level),
    }
    tables = {table: frame_of(attributed.corpus.sparkSession, table, own) for table, own in rows.items()}
    if (lost := tables[LOSS_BY_SEGMENT]) is not None:
        negatives = F.col("n_rows") - F.col("n_positive")
        tables[LOSS_BY_SEGMENT] = with_auc_interval(lost, negatives, F.col("n_positive"), level)
    tables |= {
        EXAMPLE_ATTRIBUTIONS: example_attributions(ranked) if attribution.write_examples else None,
        PAIR_SEGMENTS: segment_pairs(attributed) if attribution.pairs else None,
        AUC_CROSSES: cross_groups(attributed) if attribution.groupings else None,
    }
    return tables, (*_warn(attributed, losses), *warnings)


def find_probable(attributed: Attributed, losses: Losses) -> dict[str, bool]:
    """Say of every model whether its scores are probabilities, or become them, so that it has losses."""
    links = attributed.attribution.link
    return {model: model in links or lie_within_0_and_1(losses, model) for model in attributed.codebook.models}


def cross_groups(attributed: Attributed) -> DataFrame:
    """Return the table ``auc_crosses``, less the run's columns. The corpus is scanned and shuffled once more."""
    groupings = attributed.attribution.groupings
    columns = group_columns(attributed.corpus, groupings, attributed.groups)
    examples = label_examples(
        attributed.corpus, attributed.measures, attributed.codebook, attributed.id_column, columns
    )
    named = dict(zip(groupings, attributed.groups, strict=True))
    crosses = cross_pairs(examples, attributed.codebook, attributed.boundaries, named)
    return auc_crosses(crosses, attributed.measures.intervals.level)


def segment_pairs(attributed: Attributed) -> DataFrame:
    """Return the table ``pair_segments``, less the run's columns."""
    pairs, level = attributed.attribution.pairs or Pairs(), attributed.measures.intervals.level
    found = pair_segments(attributed.ranked, attributed.features, pairs, level)
    for name, inside in attributed.measures.slices.items():
        for side in ("negative_predicate", "positive_predicate"):
            within = F.concat(F.lit(f"({inside}) AND "), side)
            found = found.withColumn(side, F.when(F.col(SLICE) == name, within).otherwise(F.col(side)))
    return found


def grow_segments(attributed: Attributed, probable: Mapping[str, bool]) -> list[Segment]:
    """Grow the trees, by a job for each level, and return their nodes."""
    attribution, features = attributed.attribution, attributed.features
    if attribution.tree is None:
        return []
    keys = plan_trees(probable, attributed.codebook.slices, attribution.targets)
    if not keys:  # only losses were asked for, and no model has any
        return []
    rows = tree_rows(attributed.ranked, keys, features, attribution.link)
    with describe(attributed.corpus.sparkSession, "grow the trees"):
        trees = grow_trees(rows, len(keys), features, attribution.tree, attributed.survey.n_rows)
        return list_segments(keys, trees, measure_nodes(rows, trees), features)


def find_slices(attributed: Attributed) -> tuple[list[LosingSlice], tuple[str, ...]]:
    """Search the slices that lack most attribution, by a job for each predicate of a conjunction, and give warnings."""
    attribution, features = attributed.attribution, attributed.features
    if attribution.slice_search is None:
        return [], ()
    keys = plan_trees(dict.fromkeys(attributed.codebook.models, True), attributed.codebook.slices, (AUC,))
    rows = tree_rows(attributed.ranked, keys, features, attribution.link)
    with describe(attributed.corpus.sparkSession, "search the slices"):
        found = search_slices(rows, len(keys), features, attribution.slice_search, attributed.survey.n_rows)
    slices = [LosingSlice(keys[own.tree].model, keys[own.tree].slice, own) for own in found.slices]
    return slices, tuple(f"{keys[tree].model}, {keys[tree].slice}: {text}" for tree, text in found.warnings.items())


def compare_models(attributed: Attributed, models: tuple[str, str]) -> list[dict[str, Any]]:
    """Grow the trees on the difference of two models' attributions, and return their rows of ``attribution_segments``.

    Raises
    ------
    InputError
        If ids repeat, so that the two attributions of a row cannot be brought together.

    Notes
    -----
    Both models are ranked anew, among the rows that both score: a scan and a shuffle; and once more for every slice,
    with the nodes of its tree as crowds.
    """
    features, spark = attributed.features, attributed.corpus.sparkSession
    keys = [TreeKey(*models, name, AUC) for name in attributed.codebook.slices]
    ranked = _rank_both(attributed, models, scored_by_both(attributed, models))
    rows = difference_rows(ranked, {key.slice: number for number, key in enumerate(keys)}, models, len(features))
    with persisted(rows), describe(spark, f"compare {models[0]} with {models[1]}"):
        if not rows.where("repeated").isEmpty():
            raise InputError(
                f"[attribution] compare: ids in '{attributed.id_column}' repeat. The attributions of two models are "
                'brought together by id. Set [corpus] duplicates = "reject", or name another id.'
            )
        trees = grow_trees(rows, len(keys), features, attributed.attribution.split, attributed.survey.n_rows)
        segments = list_segments(keys, trees, measure_nodes(rows, trees), features)
        level = attributed.measures.intervals.level
        return [segment.row(variance, level) for segment, variance in _vary_differences(attributed, models, segments)]


def scored_by_both(attributed: Attributed, models: tuple[str, str]) -> DataFrame:
    """Return the rows of the corpus that have a score of either model."""
    schema, names = attributed.corpus.schema, attributed.measures.models
    own, theirs = (score_reason(names[model], schema) == 0 for model in models)
    return attributed.corpus.where(own & theirs)


def _rank_both(
    attributed: Attributed, models: tuple[str, str], corpus: DataFrame, crowds: Sequence[Condition] | None = None
) -> DataFrame:
    """Rank rows that both models score: those of all slices with their bins, or one slice's in crowds."""
    measures = replace(attributed.measures, models={model: attributed.measures.models[model] for model in models})
    boundaries = dict(zip(attributed.codebook.models, attributed.boundaries, strict=True))
    asked = replace(attributed.attribution, segments={}, compare=(models,))
    carried = carried_columns(asked, attributed.features, corpus.schema, attributed.id_column)
    if crowds is not None:
        measures = replace(measures, slices={})
        split = attributed.attribution.split
        corpus, (word,) = mark_rows(corpus, attributed.features, attributed.id_column, split, crowds)
        carried = {ROW_ID: carried[ROW_ID], IN_CROWDS: word}
    codebook = build_codebook(measures, attributed.survey)
    along = [own.alias(name) for name, own in carried.items()]
    examples = label_examples(corpus, measures, codebook, attributed.id_column, along)
    edges = [boundaries[model] for model in models]
    return rank_rows(examples, codebook, edges, [name for name in carried if name != IN_CROWDS], len(crowds or ()))


def _vary_differences(
    attributed: Attributed, models: tuple[str, str], segments: Sequence[Segment]
) -> Iterator[tuple[Segment, float | None]]:
    """Give each segment with the variance of its honest mean."""
    corpus = scored_by_both(attributed, models)
    for name in attributed.codebook.slices:
        own = [segment for segment in segments if segment.key.slice == name]
        rows = corpus.where(F.expr(attributed.measures.slices[name])) if name != ALL_ROWS else corpus
        for start in range(0, len(own), MOST_BITS):
            chunk = own[start : start + MOST_BITS]
            ranked = _rank_both(attributed, models, rows, [segment.condition for segment in chunk])
            yield from zip(chunk, difference_variances(ranked, models[0], len(chunk)), strict=True)


def rank_subgroups(attributed: Attributed, conditions: Iterable[Condition]) -> Subgroups:
    """Rank the honest rows that meet each condition, and the rows of each named segment, as identities.

    The corpus is scanned and shuffled once more; the driver collects six rows for each (model, slice,
    condition).
    """
    corpus, attribution, features = attributed.corpus, attributed.attribution, attributed.features
    names = name_conditions(conditions)
    if not (names or attribution.segments):
        return Subgroups({}, names)
    marked, words = mark_rows(corpus, features, attributed.id_column, attribution.split, list(map(dict, names)))
    flags = (F.getbit(words[place // MOST_BITS], F.lit(place % MOST_BITS)) == 1 for place in range(len(names)))
    marked = marked.select("*", *(flag.alias(name) for name, flag in zip(names.values(), flags, strict=True)))
    # Rows of which a predicate is neither true nor false are among the others, as for predicates of identities.
    identities = Identities(columns=tuple(names.values()), predicates=attribution.segments)
    measures = replace(attributed.measures, identities=identities)
    codebook = build_codebook(measures, attributed.survey)
    examples = label_examples(marked, measures, codebook, attributed.id_column)
    statistics = with_auc(rank(examples, codebook, attributed.boundaries).statistics)
    with describe(corpus.sparkSession, "rank segments as identities"):
        found = statistics.where(F.col(IDENTITY) != OVERALL).collect()
    return Subgroups(read_statistics(found), names)


def frame_of(spark: SparkSession, table: Table, rows: list[dict[str, Any]]) -> DataFrame | None:
    """Return rows of a table, less the run's columns, that were computed on the driver; None if there are none."""
    values = [[row[name] for name in table.value_columns] for row in rows]
    return spark.createDataFrame(values, table.value_schema) if values else None


def _vary(segment: Segment, subgroups: Subgroups) -> float | None:
    """Return the variance of a segment's honest mean: unlike a loss, an attribution depends on opposite rows, too."""
    if segment.key.target != AUC:
        return segment.variance_of_mean
    return subgroups.variance(segment.place, segment.sums)


def _within_slice(row: dict[str, Any], slices: Mapping[str, str]) -> dict[str, Any]:
    """Let a predicate select rows of its slice alone."""
    inside = slices.get(row[SLICE])
    return {**row, "predicate": f"({inside}) AND {row['predicate']}"} if inside else row


def _warn(attributed: Attributed, losses: Losses) -> tuple[str, ...]:
    """Return what a person should look at: features without a search, repeated ids, and doubtful or missing losses."""
    said = (
        say_what_link_does(losses, model, attributed.attribution.link.get(model))
        for model in attributed.codebook.models
    )
    return (*warn_of_features(attributed.attribution), *attributed.survey.warnings, *filter(None, said))
