"""The tables of AUC attribution, of blocks of ranked rows: one function a search or a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from biasspark.attribution.crosses import auc_crosses
from biasspark.attribution.difference_variances import vary_differences
from biasspark.attribution.examples import example_attributions
from biasspark.attribution.growth import GrownTree
from biasspark.attribution.losses import add_moments, list_correlations, list_losses, say_what_link_does
from biasspark.attribution.measured_sets import MeasuredSets, measure_sets
from biasspark.attribution.pairs import choose_draws, pair_segments
from biasspark.attribution.ranked_blocks import RankedBlocks
from biasspark.attribution.row_values import AUC
from biasspark.attribution.segments import TreeKey, list_segments, list_slices, plan_trees
from biasspark.attribution.slice_search import SearchedSlices, search_slices
from biasspark.attribution.trees import Target, grow_trees
from biasspark.columns import ALL_ROWS, MODEL, SLICE
from biasspark.config import Attribution, Pairs
from biasspark.features import Condition
from biasspark.metrics.data_quality import grouping_warnings, segment_warnings
from biasspark.ranking.group_pair_counts import count_pairs_of_groups
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
from biasspark.text import format_count
from biasspark.workflows.attribution import SurveyedRows, warn_of_features
from biasspark.workflows.measurement import job_on_corpus


def list_tables(
    surveyed: SurveyedRows, ranked: RankedBlocks, stage: Callable[[str], None] = lambda _: None
) -> tuple[dict[Table, Rows], tuple[str, ...]]:
    """Return the tables of the parts that are configured, and warnings.

    Runs one Spark job for each level of the trees and each predicate of a slice, and up to four more: to measure what
    was found, the differences of models, pairs and crosses. The table of examples is lazy.

    Parameters
    ----------
    stage : callable
        Told of each step.
    """
    attribution, level, slices = surveyed.attribution, surveyed.measures.intervals.level, surveyed.measures.slices
    asked = asked_tables(attribution)
    tables: dict[Table, Rows] = {}
    search = _Search.plan(surveyed, ranked)
    if attribution.tree:
        stage(f"growing {format_count(len(search.keys), 'tree')}")
    trees = search.grow()
    if attribution.slice_search:
        stage("searching slices")
    found = search.find_slices()
    if trees or attribution.slice_search or attribution.segments:
        stage("measuring segments")
    measured = search.measure(trees, found)
    if ATTRIBUTION_SEGMENTS in asked:
        rows = search.list_segments(trees, measured)
        tables[ATTRIBUTION_SEGMENTS] = table_of(ATTRIBUTION_SEGMENTS, _within_slices(rows, slices, "predicate"))
    if ATTRIBUTION_SLICES in asked:
        rows = search.list_slices(found, measured)
        tables[ATTRIBUTION_SLICES] = table_of(ATTRIBUTION_SLICES, _within_slices(rows, slices, "predicate"))
    correlations = list_correlations(ranked.losses, search.probable)
    tables[ATTRIBUTION_CORRELATIONS] = table_of(ATTRIBUTION_CORRELATIONS, correlations)
    placements = {
        (*search.names(*key), segment): sums
        for key, of_segments in measured.of_segments.items()
        for segment, sums in zip(attribution.segments, of_segments, strict=True)
    }
    rows = list_losses(ranked.losses, attribution.segments, placements, search.probable, level)
    tables[LOSS_BY_SEGMENT] = table_of(LOSS_BY_SEGMENT, rows)
    warnings: tuple[str, ...] = _warn(surveyed, ranked)
    if EXAMPLE_ATTRIBUTIONS in asked:
        tables[EXAMPLE_ATTRIBUTIONS] = example_attributions(surveyed.ranked_rows)
    if PAIR_SEGMENTS in asked:
        stage("growing the trees of pairs")
        tables[PAIR_SEGMENTS] = segment_pairs(surveyed, ranked)
    if AUC_CROSSES in asked:
        stage("counting pairs of groups")
        tables[AUC_CROSSES] = cross_groups(surveyed, ranked)
        warnings = (*warnings, *warn_of_groupings(tables[AUC_CROSSES]))
    return tables, (*warnings, *search.warn(found))


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


def cross_groups(surveyed: SurveyedRows, ranked: RankedBlocks) -> pa.Table:
    """Return the table ``auc_crosses``, less the run's columns. Runs one Spark job."""
    groups = dict(zip(surveyed.attribution.groupings, surveyed.groups, strict=True))
    with job_on_corpus(surveyed, "count pairs of groups"):
        crosses = count_pairs_of_groups(ranked.blocks, surveyed.encoding, groups)
    return auc_crosses(crosses, surveyed.measures.intervals.level)


def segment_pairs(surveyed: SurveyedRows, ranked: RankedBlocks) -> pa.Table:
    """Return the table ``pair_segments``, less the run's columns. Runs one Spark job."""
    settings, encoding = surveyed.attribution.pairs or Pairs(), surveyed.encoding
    draws = {key: choose_draws(counts, settings) for key, counts in ranked.draws.items()}
    names = {(model, part): (encoding.models[model], encoding.slices[part]) for model, part in draws}
    level = surveyed.measures.intervals.level
    with job_on_corpus(surveyed, "grow the trees of pairs"):
        rows = pair_segments(ranked.blocks, draws, names, settings, level).to_pylist()
    columns = ("negative_predicate", "positive_predicate")
    return table_of(PAIR_SEGMENTS, _within_slices(rows, surveyed.measures.slices, *columns))


@dataclass(frozen=True)
class _Search:
    """The trees and slices of a corpus: what is searched, of which rows.

    Attributes
    ----------
    probable
        By model, whether its scores are probabilities, or become them, so that rows have losses.
    keys, targets
        Of each tree, by its number.
    searched
        What slices are searched of.
    """

    surveyed: SurveyedRows
    ranked: RankedBlocks
    probable: Mapping[str, bool]
    keys: Sequence[TreeKey]
    targets: Sequence[Target]
    searched: Sequence[Target]

    @classmethod
    def plan(cls, surveyed: SurveyedRows, ranked: RankedBlocks) -> _Search:
        """List what is searched."""
        attribution, encoding = surveyed.attribution, surveyed.encoding
        probable = {model: model in attribution.link or _is_probability(ranked, model) for model in encoding.models}
        keys = (
            plan_trees(probable, encoding.slices, attribution.targets, attribution.compare) if attribution.tree else []
        )
        numbers: dict[tuple[str, str], int] = {(model, ""): number for number, model in enumerate(encoding.models)}
        numbers |= {pair: number for number, pair in enumerate(attribution.compare, len(numbers))}
        targets = [
            Target(
                model=numbers[key.model, key.baseline_model],
                slice=encoding.slices.index(key.slice),
                name=key.target,
                link=None if key.target == AUC else attribution.link.get(key.model),
            )
            for key in keys
        ]
        whole = [
            Target(model, part, AUC)
            for model, _ in enumerate(encoding.models)
            for part, _ in enumerate(encoding.slices)
        ]
        return cls(surveyed, ranked, probable, keys, targets, whole if attribution.slice_search else [])

    def names(self, model: int, slice_number: int) -> tuple[str, str]:
        """Return the names of a model and a slice."""
        return self.surveyed.encoding.models[model], self.surveyed.encoding.slices[slice_number]

    def grow(self) -> list[GrownTree]:
        """Grow the trees, by a job for each level."""
        settings = self.surveyed.attribution.tree
        if settings is None or not self.keys:  # only losses were asked for, and no model has any
            return []
        square_sums = self._sum_squares() if settings.min_gain else [0.0] * len(self.keys)
        with job_on_corpus(self.surveyed, "grow the trees"):
            return grow_trees(self.ranked.blocks, self.targets, settings, square_sums)

    def _sum_squares(self) -> list[float]:
        """Return for each tree the sum of squares of the values of its train rows around their mean, by one job."""
        with job_on_corpus(self.surveyed, "sum up the squares of what trees predict"):
            whole: dict[Target, list[Condition]] = {target: [{}] for target in self.targets}
            measured = measure_sets(self.ranked.blocks, whole, len(self.surveyed.encoding.models))
        moments = [measured.of(target, {}).sums.train for target in self.targets]
        return [(of_tree.variance or 0.0) * (of_tree.n - 1) for of_tree in moments]

    def find_slices(self) -> SearchedSlices:
        """Search the slices that lack most attribution, by a job for each predicate of a conjunction."""
        settings = self.surveyed.attribution.slice_search
        if settings is None:
            return SearchedSlices([], {})
        means = [self._train_mean(target) for target in self.searched]
        with job_on_corpus(self.surveyed, "search the slices"):
            return search_slices(self.ranked.blocks, self.searched, means, settings)

    def _train_mean(self, target: Target) -> float:
        return add_moments(self.ranked.train.get((target.model, target.slice), {}), "normalized").mean or 0.0

    def measure(self, trees: Sequence[GrownTree], found: SearchedSlices) -> MeasuredSets:
        """Measure every node, every slice and every segment, by one job, and comparisons by another."""
        asked: dict[Target, list[Condition]] = {
            target: [node.condition for node in tree.nodes]
            for target, tree in zip(self.targets, trees, strict=bool(trees))
        }
        for target, conditions in zip(self.searched, found.conditions, strict=True):
            asked.setdefault(target, []).extend([{}, *conditions])
        if not asked and not self.surveyed.attribution.segments:
            return MeasuredSets({}, {}, {})
        encoding, boundaries = self.surveyed.encoding, self.surveyed.boundaries
        with job_on_corpus(self.surveyed, "measure the segments"):
            measured = measure_sets(self.ranked.blocks, asked, len(encoding.models))
        compared = {target: conditions for target, conditions in asked.items() if target.model >= len(encoding.models)}
        edges = {
            number: boundaries[encoding.models.index(baseline)]
            for number, (_, baseline) in enumerate(self.surveyed.attribution.compare, len(encoding.models))
        }
        with job_on_corpus(self.surveyed, "measure the differences of models"):
            variances = vary_differences(self.ranked.blocks, compared, measured.offsets, edges)
        return measured.with_variances(compared, variances)

    def list_segments(self, trees: Sequence[GrownTree], measured: MeasuredSets) -> list[dict[str, Any]]:
        """Return the rows of ``attribution_segments``."""
        features, level = self.surveyed.features, self.surveyed.measures.intervals.level
        rows: list[dict[str, Any]] = []
        for key, target, tree in zip(self.keys, self.targets, trees, strict=bool(trees)):
            sets = [measured.of(target, node.condition) for node in tree.nodes]
            rows += list_segments(key, tree, sets, features, level)
        return rows

    def list_slices(self, found: SearchedSlices, measured: MeasuredSets) -> list[dict[str, Any]]:
        """Return the rows of ``attribution_slices``."""
        features, level = self.surveyed.features, self.surveyed.measures.intervals.level
        rows: list[dict[str, Any]] = []
        for target, conditions in zip(self.searched, found.conditions, strict=True):
            model, name = self.names(target.model, target.slice)
            sets = [measured.of(target, condition) for condition in conditions]
            listed = list_slices(conditions, sets, measured.of(target, {}), features, level)
            rows += ({MODEL: model, SLICE: name, **row} for row in listed)
        return rows

    def warn(self, found: SearchedSlices) -> tuple[str, ...]:
        """Return what was left out of the search of slices."""
        targets = ((self.searched[number], text) for number, text in found.warnings.items())
        return tuple(f"{', '.join(self.names(target.model, target.slice))}: {text}" for target, text in targets)


def _is_probability(ranked: RankedBlocks, model: str) -> bool:
    """Return whether all scores of a model lie within 0 to 1."""
    profile = ranked.counts.profiles.get(model)
    return profile is None or (profile.lowest >= 0 and profile.highest <= 1)


def table_of(table: Table, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return rows as a table."""
    return to_table(table, **{name: [row[name] for row in rows] for name in table.value_columns})


def _within_slices(
    rows: Sequence[Mapping[str, Any]], slices: Mapping[str, str], *predicates: str
) -> list[Mapping[str, Any]]:
    """Let the predicates of each row select rows of its slice alone."""
    return [
        row | {name: f"({inside}) AND {row[name]}" for name in predicates}
        if (inside := slices.get(row[SLICE]))
        else row
        for row in map(dict, rows)
    ]


def _warn(surveyed: SurveyedRows, ranked: RankedBlocks) -> tuple[str, ...]:
    """Return what a person should look at: features without a search, empty segments, and missing losses."""
    attribution, models = surveyed.attribution, surveyed.encoding.models
    of_links = (
        say_what_link_does(model, _is_probability(ranked, model), attribution.link.get(model)) for model in models
    )
    segments = list(attribution.segments)
    empty = set(segments) - {segment for _, slice_name, segment in ranked.losses if slice_name == ALL_ROWS}
    return (*warn_of_features(attribution), *segment_warnings(segments, empty), *filter(None, of_links))
