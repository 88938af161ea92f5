"""The tables of AUC attribution, of rows that are ranked: one function a search or a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql import DataFrame

from biasspark.attribution.compared import difference_rows, difference_variances
from biasspark.attribution.crosses import auc_crosses
from biasspark.attribution.examples import example_attributions
from biasspark.attribution.losses import Losses, lie_within_0_and_1, list_correlations, list_losses, say_what_link_does
from biasspark.attribution.pairs import pair_segments
from biasspark.attribution.segments import AUC, LosingSlice, Segment, TreeKey, list_segments, plan_trees, tree_rows
from biasspark.attribution.slice_search import search_slices
from biasspark.attribution.subgroups import Subgroups, name_conditions, read_statistics
from biasspark.attribution.trees import grow_trees, measure_nodes
from biasspark.columns import ALL_ROWS, IN_SETS, ROW_ID, SLICE
from biasspark.config import Attribution, Identities, Pairs
from biasspark.corpus.eligibility import score_reason
from biasspark.corpus.encode import build_encoding, encode_examples
from biasspark.corpus.feature_columns import flag_rows, group_columns, payload_columns
from biasspark.errors import Fault, InputError
from biasspark.expressions.conditions import MOST_BITS
from biasspark.features import Condition
from biasspark.metrics.data_quality import grouping_warnings, segment_warnings
from biasspark.metrics.intervals import auc_interval
from biasspark.metrics.u_statistics import u_statistics
from biasspark.ranking.engine import rank
from biasspark.ranking.group_pair_counts import count_pairs_of_groups
from biasspark.ranking.row_ranks import rank_rows
from biasspark.session import describe, expression, kept, run_side_by_side
from biasspark.tables.arrow import to_table
from biasspark.tables.publish import Rows
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
from biasspark.workflows.attribution import Attributed, warn_of_features


def list_tables(attributed: Attributed, losses: Losses) -> tuple[dict[Table, Rows], tuple[str, ...]]:
    """Return the tables of the parts that are configured, and warnings.

    Trees and slices are searched here, by several jobs, side by side; the other tables are lazy.
    """
    attribution, ranked, features = attributed.attribution, attributed.ranked, attributed.features
    level, links = attributed.measures.intervals.level, attribution.link
    # Of these models scores are probabilities, or become them, so that rows have losses.
    probable = {model: model in links or lie_within_0_and_1(losses, model) for model in attributed.encoding.models}
    searches: list[Callable[[], Any]] = [partial(grow_segments, attributed, probable), partial(find_slices, attributed)]
    searches += [partial(compare_models, attributed, models) for models in attribution.compare]
    segments, (slices, warnings), *compared = run_side_by_side(attributed.corpus.sparkSession, searches)
    of_auc = [segment for segment in segments if segment.key.target == AUC]
    searched = [segment.condition for segment in of_auc] + [slice_.found.condition for slice_ in slices]
    subgroups = rank_subgroups(attributed, searched)
    nodes = [segment.row(_vary(segment, subgroups), level) for segment in segments]
    nodes += chain.from_iterable(compared)
    losing = [slice_.row(subgroups.variance(slice_.place, slice_.sums), features, level) for slice_ in slices]
    rows = {
        ATTRIBUTION_CORRELATIONS: list_correlations(losses, probable),
        ATTRIBUTION_SEGMENTS: [_within_slice(row, attributed.measures.slices, "predicate") for row in nodes],
        ATTRIBUTION_SLICES: [_within_slice(row, attributed.measures.slices, "predicate") for row in losing],
        LOSS_BY_SEGMENT: _add_intervals(
            list_losses(losses, attribution.segments, subgroups.named, probable, level), level
        ),
    }
    asked = asked_tables(attribution)
    tables: dict[Table, Rows] = {table: table_of(table, of_table) for table, of_table in rows.items() if table in asked}
    if EXAMPLE_ATTRIBUTIONS in asked:
        tables[EXAMPLE_ATTRIBUTIONS] = example_attributions(ranked)
    if PAIR_SEGMENTS in asked:
        tables[PAIR_SEGMENTS] = segment_pairs(attributed)
    if AUC_CROSSES in asked:
        crosses = cross_groups(attributed)
        tables[AUC_CROSSES] = crosses
        warnings = (*warnings, *warn_of_groupings(crosses))
    return tables, (*_warn(attributed, losses), *warnings)


def asked_tables(attribution: Attribution) -> tuple[Table, ...]:
    """Return the tables of the parts that are configured."""
    asked: dict[Table, object] = {
        LOSS_BY_SEGMENT: True,
        ATTRIBUTION_CORRELATIONS: True,
        ATTRIBUTION_SEGMENTS: attribution.tree,
        ATTRIBUTION_SLICES: attribution.slice_search,
        PAIR_SEGMENTS: attribution.pairs,
        AUC_CROSSES: attribution.groupings,
        EXAMPLE_ATTRIBUTIONS: attribution.write_examples,
    }
    return tuple(table for table, part in asked.items() if part)


def warn_of_groupings(crosses: pa.Table) -> tuple[str, ...]:
    """Return a warning of the groupings that put all rows into one group, given the table ``auc_crosses``."""
    groups: dict[str, set[str]] = {}
    for row in crosses.select(["grouping", "positive_group", "negative_group"]).to_pylist():
        groups.setdefault(row["grouping"], set()).update((row["positive_group"], row["negative_group"]))
    return grouping_warnings(list(groups), [name for name, names in groups.items() if len(names) == 1])


def cross_groups(attributed: Attributed) -> pa.Table:
    """Return the table ``auc_crosses``, less the run's columns. The corpus is scanned and shuffled once more."""
    groupings = attributed.attribution.groupings
    columns = group_columns(attributed.corpus, groupings, attributed.groups)
    examples = encode_examples(
        attributed.corpus, attributed.measures, attributed.encoding, attributed.id_column, columns
    )
    named = dict(zip(groupings, attributed.groups, strict=True))
    with describe(attributed.corpus.sparkSession, "count pairs of groups"):
        crosses = count_pairs_of_groups(examples, attributed.encoding, attributed.boundaries, named)
    return auc_crosses(crosses, attributed.measures.intervals.level)


def segment_pairs(attributed: Attributed) -> pa.Table:
    """Return the table ``pair_segments``, less the run's columns."""
    pairs, level = attributed.attribution.pairs or Pairs(), attributed.measures.intervals.level
    with describe(attributed.corpus.sparkSession, "grow the trees of pairs"):
        rows = pair_segments(attributed.ranked, attributed.features, pairs, level).to_pylist()
    columns = ("negative_predicate", "positive_predicate")
    return table_of(PAIR_SEGMENTS, [_within_slice(row, attributed.measures.slices, *columns) for row in rows])


def grow_segments(attributed: Attributed, probable: Mapping[str, bool]) -> list[Segment]:
    """Grow the trees, by a job for each level, and return their nodes."""
    attribution, features = attributed.attribution, attributed.features
    if attribution.tree is None:
        return []
    keys = plan_trees(probable, attributed.encoding.slices, attribution.targets)
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
    keys = plan_trees(dict.fromkeys(attributed.encoding.models, True), attributed.encoding.slices, (AUC,))
    rows = tree_rows(attributed.ranked, keys, features, attribution.link)
    with describe(attributed.corpus.sparkSession, "search the slices"):
        searched = search_slices(rows, len(keys), features, attribution.slice_search, attributed.survey.n_rows)
    slices = [LosingSlice(keys[one.tree].model, keys[one.tree].slice, one) for one in searched.slices]
    return slices, tuple(f"{keys[tree].model}, {keys[tree].slice}: {text}" for tree, text in searched.warnings.items())


def compare_models(attributed: Attributed, models: tuple[str, str]) -> list[dict[str, Any]]:
    """Grow the trees on the difference of two models' attributions, and return their rows of ``attribution_segments``.

    Both models are ranked anew, among the rows that both score: a scan and a shuffle; and once more for every slice,
    with the nodes of its tree as sets. Raises `InputError` if ids repeat, by which the two attributions of a row are
    brought together.
    """
    features, spark = attributed.features, attributed.corpus.sparkSession
    keys = [TreeKey(*models, name, AUC) for name in attributed.encoding.slices]
    ranked = _rank_both(attributed, models, scored_by_both(attributed, models))
    rows = difference_rows(ranked, {key.slice: number for number, key in enumerate(keys)}, models, len(features))
    with kept(rows) as both, describe(spark, f"compare {models[0]} with {models[1]}"):
        if not both.where("repeated").isEmpty():
            rule = "Its values repeat, and the attributions of two models are joined by them."
            fix = "Leave out rows with repeated ids, or name another id."
            raise InputError(Fault(("corpus", "id"), attributed.id_column, rule, fix))
        trees = grow_trees(both, len(keys), features, attributed.attribution.split, attributed.survey.n_rows)
        segments = list_segments(keys, trees, measure_nodes(both, trees), features)
        level = attributed.measures.intervals.level
        return [segment.row(variance, level) for segment, variance in _vary_differences(attributed, models, segments)]


def scored_by_both(attributed: Attributed, models: tuple[str, str]) -> DataFrame:
    """Return the rows of the corpus that have a score of either model."""
    schema, names = attributed.corpus.schema, attributed.measures.models
    first, second = (score_reason(names[model], schema) == 0 for model in models)
    return attributed.corpus.where(first & second)


def _rank_both(
    attributed: Attributed, models: tuple[str, str], corpus: DataFrame, sets: Sequence[Condition] | None = None
) -> DataFrame:
    """Rank rows that both models score: those of all slices with their bins, or one slice's in sets."""
    measures = replace(attributed.measures, models={model: attributed.measures.models[model] for model in models})
    boundaries = dict(zip(attributed.encoding.models, attributed.boundaries, strict=True))
    asked = replace(attributed.attribution, segments={}, compare=(models,))
    payload = payload_columns(asked, attributed.features, corpus, attributed.id_column)
    if sets is not None:
        measures = replace(measures, slices={})
        split = attributed.attribution.split
        corpus, (word,) = flag_rows(corpus, attributed.features, attributed.id_column, split, sets)
        payload = {ROW_ID: payload[ROW_ID], IN_SETS: word.alias(IN_SETS)}
    encoding = build_encoding(measures, attributed.survey)
    examples = encode_examples(corpus, measures, encoding, attributed.id_column, list(payload.values()))
    edges = [boundaries[model] for model in models]
    return rank_rows(examples, encoding, edges, [name for name in payload if name != IN_SETS], len(sets or ()))


def _vary_differences(
    attributed: Attributed, models: tuple[str, str], segments: Sequence[Segment]
) -> Iterator[tuple[Segment, float | None]]:
    """Give each segment with the variance of its honest mean."""
    corpus = scored_by_both(attributed, models)
    for name in attributed.encoding.slices:
        of_slice = [segment for segment in segments if segment.key.slice == name]
        rows = corpus.where(expression(corpus, attributed.measures.slices[name])) if name != ALL_ROWS else corpus
        for start in range(0, len(of_slice), MOST_BITS):
            chunk = of_slice[start : start + MOST_BITS]
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
    marked, words = flag_rows(corpus, features, attributed.id_column, attribution.split, list(map(dict, names)))
    flags = (F.getbit(words[bit // MOST_BITS], F.lit(bit % MOST_BITS)) == 1 for bit in range(len(names)))
    marked = marked.select("*", *(flag.alias(name) for name, flag in zip(names.values(), flags, strict=True)))
    # Rows of which a predicate is neither true nor false are among the others, as for predicates of identities.
    identities = Identities(columns=tuple(names.values()), predicates=attribution.segments)
    measures = replace(attributed.measures, identities=identities)
    encoding = build_encoding(measures, attributed.survey)
    examples = encode_examples(marked, measures, encoding, attributed.id_column)
    with describe(corpus.sparkSession, "rank segments as identities"):
        counts = rank(examples, encoding, attributed.boundaries)
    return Subgroups(read_statistics(u_statistics(counts).table()), names)


def table_of(table: Table, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return rows as a table."""
    return to_table(table, **{name: [row[name] for row in rows] for name in table.value_columns})


def _add_intervals(rows: Sequence[dict[str, Any]], level: float) -> list[dict[str, Any]]:
    """Return losses by segment with the intervals of their AUCs."""
    auc, variance = (np.array([row[name] for row in rows], np.float64) for name in ("auc", "auc_variance"))
    n_positive = np.array([row["n_positive"] for row in rows], np.int64)
    n_negative = np.array([row["n_rows"] for row in rows], np.int64) - n_positive
    interval = auc_interval(auc, variance, n_negative, n_positive, level)
    return [
        row | {"auc_low": low, "auc_high": high, "auc_method": None if row["auc"] is None else method}
        for row, low, high, method in zip(rows, *map(np.ndarray.tolist, interval), strict=True)
    ]


def _vary(segment: Segment, subgroups: Subgroups) -> float | None:
    """Return the variance of a segment's honest mean: unlike a loss, an attribution depends on opposite rows, too."""
    if segment.key.target != AUC:
        return segment.variance_of_mean
    return subgroups.variance(segment.place, segment.sums)


def _within_slice(row: dict[str, Any], slices: Mapping[str, str], *predicates: str) -> dict[str, Any]:
    """Let the predicates of a row select rows of its slice alone."""
    inside = slices.get(row[SLICE])
    return row | {name: f"({inside}) AND {row[name]}" for name in predicates} if inside else row


def _warn(attributed: Attributed, losses: Losses) -> tuple[str, ...]:
    """Return what a person should look at: features without a search, empty segments, and missing losses."""
    links, models = attributed.attribution.link, attributed.encoding.models
    link_warnings = (say_what_link_does(losses, model, links.get(model)) for model in models)
    segments = list(attributed.attribution.segments)
    empty = set(segments) - {segment for _, slice_name, segment in losses if slice_name == ALL_ROWS}
    return (*warn_of_features(attributed.attribution), *segment_warnings(segments, empty), *filter(None, link_warnings))
