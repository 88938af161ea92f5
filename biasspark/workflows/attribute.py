"""Attribute the AUC of every model to rows, segments, groups and pairs, and publish which of them cost it most."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain, product
from typing import Any

import numpy as np
import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql import DataFrame

from biasspark.arrays import Ints
from biasspark.attribution import attribution_warnings
from biasspark.attribution.block_sums import AUC, SummedValue, Target, count_block_cells, sum_blocks
from biasspark.attribution.crosses import count_pairs_of_groups, list_named_pairs, measure_crosses
from biasspark.attribution.influence import place_all
from biasspark.attribution.losses import add_moments, list_correlations, list_losses, sum_losses
from biasspark.attribution.measured_sets import MeasuredSet, measure_sets
from biasspark.attribution.pairs import pair_segments
from biasspark.attribution.segments import TreeKey, list_segments, list_slices
from biasspark.attribution.slice_search import BestSlices, search_slices
from biasspark.attribution.trees import Tree, grow_tree
from biasspark.cli import DRY_RUN, Command, Outcome, dated_examples, on_date
from biasspark.columns import MODEL, OVERALL, ROW_ID, SLICE
from biasspark.config import Attribution, Config, Measures, Rejects
from biasspark.corpus.check import check_schema
from biasspark.corpus.data_quality import slice_warnings
from biasspark.corpus.decode import count_rows, count_slices
from biasspark.corpus.encode import build_encoding, encode_examples
from biasspark.corpus.read import duplicates_marked
from biasspark.corpus.survey import survey_corpus
from biasspark.corpus.values import column
from biasspark.ranking.feature_columns import VALUES_PASS, RowDescription, SurveyedValues, row_columns, survey_values
from biasspark.ranking.row_blocks import RankedBlocks, RowRanking, Search, run_searches
from biasspark.ranking.row_ranks import EXAMPLES_PASS, rank_rows
from biasspark.report.console_summary import show_lost
from biasspark.session import BYTES_AN_ATTRIBUTION, describe, kept, refuse_too_many, run_side_by_side
from biasspark.session.spark_errors import translate_corpus_errors
from biasspark.tables import schemas
from biasspark.tables.publish import Rows
from biasspark.tables.schemas import Table, table_of_rows
from biasspark.workflows.corpus_job import CorpusJob, Plan, RunContext, configured, plan_or_run, require
from biasspark.workflows.corpus_steps import ROWS_PASS, Measurement, SurveyedCorpus, rows_only, warn_of_rows

JOB = schemas.LOSS_BY_SEGMENT.job
ATTRIBUTION_PASS = "rank every row (shuffles 12 bytes per score, 20 with pairs, 100 per row of two compared models)"


def publish_attribution(corpus: DataFrame, context: RunContext) -> Outcome:
    """Survey, rank, search and publish; return the outcome."""
    config, progress, source = context.config, context.progress, context.config.corpus
    progress.stage(f"surveying {source.name}")
    assert source.id is not None  # [attribution] needs it
    with survey_rows(corpus, config, source.id, source.duplicates, config.rejects) as surveyed:
        progress.stage(f"ranking {surveyed.size_text}")
        with rank_surveyed(surveyed) as ranked:
            tables, warnings = list_tables(surveyed, ranked, progress.stage)
            small = {table: rows for table, rows in tables.items() if isinstance(rows, pa.Table)}
            features, min_leaf = surveyed.values.tree_features, surveyed.attribution.split.min_leaf
            shown = partial(show_lost, small, attribution_warnings.describe_rare(features, min_leaf))
            return context.publish(tables, ranked.counts.row_counts, warnings, shown)


# ---- the survey and the ranking


@dataclass(frozen=True)
class SurveyedRows(SurveyedCorpus):
    """A corpus ready to be ranked for attribution, and the values of its features and groupings.

    The measures have no identities: only rows are ranked. EXAMPLES have the columns that describe rows.
    """

    id_column: str
    attribution: Attribution
    values: SurveyedValues

    @cached_property
    def names(self) -> dict[tuple[int, int], tuple[str, str]]:
        """The names of every model and slice, by their numbers."""
        pairs = product(enumerate(self.encoding.models), enumerate(self.encoding.slices))
        return {(model, part): (name, slice_name) for (model, name), (part, slice_name) in pairs}

    def name_target(self, target: Target) -> TreeKey:
        """Return the names of the model, the baseline and the slice of a target."""
        models = [*((model, "") for model in self.encoding.models), *self.attribution.compare]
        return TreeKey(*models[target.model], self.encoding.slices[target.slice], target.name)

    @property
    def ranking(self) -> RowRanking:
        """How the rows are ranked."""
        attribution, models = self.attribution, self.encoding.models
        description = RowDescription(attribution, self.values, len(self.encoding.slices))
        comparisons = [(models.index(model), models.index(baseline)) for model, baseline in attribution.compare]
        return RowRanking(self.encoding, self.boundaries, description, comparisons, attribution.splits_rows)

    def rank_rows(self, labels: Ints) -> DataFrame:
        """Return ``example_attributions`` without run_date, corpus and run_id. Lazy: see `rank_rows`."""
        row_id = column(self.id_column).alias(ROW_ID)
        examples = encode_examples(self.corpus, self.measures, self.encoding, self.id_column, [row_id])
        return rank_rows(examples, self.encoding, self.boundaries, labels)


@contextmanager
def survey_rows(
    corpus: DataFrame, measures: Measures, id_column: str, duplicates: str = "allow", rejects: Rejects | None = None
) -> Iterator[SurveyedRows]:
    """Check and survey a corpus for AUC attribution. For parameters and errors see `survey_for_ranking`.

    Raises `InputError` also if the embedded engine lacks the memory to rank the rows.

    Runs two narrow jobs in parallel, for the scores and for features and groupings, and a third one for features with
    more than a million distinct numbers.
    """
    attribution = measures.attribution or Attribution()
    measures = replace(rows_only(measures), attribution=attribution)
    check_schema(corpus, measures, id_column)
    surveys: list[Callable[[], Any]] = [
        partial(survey_corpus, corpus, measures, id_column, duplicates),
        partial(survey_values, corpus, attribution),
    ]
    with ExitStack() as stack:
        with describe(corpus.sparkSession, "survey the corpus"), translate_corpus_errors(corpus, measures.expressions):
            survey, values = run_side_by_side(corpus.sparkSession, surveys)
        encoding = build_encoding(measures, survey, corpus)
        n_ranked = len(encoding.models) + len(attribution.compare)
        refuse_too_many(corpus.sparkSession, survey.n_rows, n_ranked, BYTES_AN_ATTRIBUTION)
        with describe(corpus.sparkSession, "list repeated ids"), translate_corpus_errors(corpus, measures.expressions):
            marked = stack.enter_context(duplicates_marked(corpus, id_column, duplicates))
        columns = row_columns(attribution, values.features, marked, id_column, measures.label)
        yield SurveyedRows(
            corpus=marked,
            examples=encode_examples(marked, measures, encoding, id_column, list(columns.values())),
            measures=measures,
            survey=survey,
            encoding=encoding,
            cutpoints={},
            id_column=id_column,
            rejects=rejects,
            attribution=attribution,
            values=values,
        )


@contextmanager
def rank_surveyed(surveyed: SurveyedRows, *, with_losses: bool = True) -> Iterator[RankedBlocks]:
    """Rank the rows, sum their losses, count pairs and crosses of groups, and keep the rows inside the block.

    Runs one Spark action: a scan and a shuffle.
    """
    attribution, encoding = surveyed.attribution, surveyed.encoding
    searches: dict[str, Search[Any]] = {}
    if with_losses or attribution.slice_search:
        links = [attribution.link.get(model) for model in encoding.models]
        searches["losses" if with_losses else "means"] = sum_losses(links, surveyed.names, attribution.segments)
    if attribution.grows_trees or attribution.slice_search:
        searches["cells"] = count_block_cells()
    if attribution.pairs:
        level = surveyed.measures.intervals.level
        searches["pairs"] = pair_segments(surveyed.values.features, surveyed.names, attribution.pairs, level)
    if attribution.groupings:
        groups = dict(zip(attribution.groupings, surveyed.values.groups, strict=True))
        searches["crosses"] = count_pairs_of_groups(encoding, groups)
    if attribution.pairs_of:
        groups = dict.fromkeys(attribution.pairs_of, ("outside", "inside"))
        n_groupings = len(attribution.groupings)
        searches["pairs_of"] = count_pairs_of_groups(encoding, groups, n_groupings, only_last=True)
    with surveyed.job("rank every row"), surveyed.ranking.rank(surveyed.examples, searches) as ranked:
        surveyed.check(ranked.counts.row_counts)
        yield ranked


def attribute_rows(surveyed: SurveyedRows) -> tuple[DataFrame, tuple[str, ...]]:
    """Return ``example_attributions`` without run_date, corpus and run_id, and warnings, except those about scores.

    Runs one Spark action, a scan that counts the rows. The table is lazy: one more scan, and a shuffle.
    """
    encoding, measures = surveyed.encoding, surveyed.measures
    of_models = F.array(*(count_slices(encoding, model) for model in encoding.models)).alias("labels")
    with surveyed.job(ROWS_PASS):
        (counted,) = count_rows(surveyed.examples, encoding, [of_models]).collect()
    counts = encoding.read_row_counts(counted["counts"])
    surveyed.check(counts)
    labels = np.array(counted["labels"], np.int64)  # by model, slice and label
    most = [(negatives, positives) for negatives, positives in labels.max(axis=0).tolist()]
    row_warnings = slice_warnings(encoding.slices, most), warn_of_rows(counts, measures.label)
    return surveyed.rank_rows(np.moveaxis(labels, -1, 0)), (*surveyed.survey.warnings, *chain(*row_warnings))


# ---- tables


def list_tables(
    surveyed: SurveyedRows, ranked: RankedBlocks, stage: Callable[[str], None] = lambda _: None
) -> tuple[dict[Table, Rows], tuple[str, ...]]:
    """Return the configured tables, and warnings. `stage` is called at each step.

    Runs a Spark job for each level of trees, or each predicate of slices if these are more, one to measure the results,
    one for differences of models, and one more if `min_gain` is above 0. The table of examples is lazy.
    """
    attribution, level, slices = surveyed.attribution, surveyed.measures.intervals.level, surveyed.measures.slices
    profiles = ranked.counts.profiles
    outside_0_and_1 = {model for model, scores in profiles.items() if scores.lowest < 0 or scores.highest > 1}
    has_probabilities = {
        model: model in attribution.link or model not in outside_0_and_1 for model in surveyed.encoding.models
    }
    trees, best_slices, measured = search_rows(surveyed, ranked, has_probabilities, stage)
    segments: list[dict[str, Any]] = []
    slice_rows: list[dict[str, Any]] = []
    for target, tree in trees.items():
        key, sets = surveyed.name_target(target), measured[target][: len(tree)]
        segments += list_segments(key, tree, sets, surveyed.values.tree_features, level)
    for target, best in best_slices.items():
        key, conditions, (whole, *sets) = surveyed.name_target(target), best.conditions(), measured[target]
        of_slices = sets[len(sets) - len(conditions) :]
        listed = list_slices(conditions, of_slices, whole, surveyed.values.features, level)
        slice_rows += ({MODEL: key.model, SLICE: key.slice, **row} for row in listed)
    of_all = place_all(ranked.counts)
    losses, of_segments, _ = ranked.results.get("losses", ({}, {}, {}))
    pair_nodes, pairs_of, crosses = (ranked.results.get(name, []) for name in ("pairs", "pairs_of", "crosses"))
    rows: dict[Table, Sequence[Mapping[str, Any]]] = {
        schemas.ATTRIBUTION_SEGMENTS: _within_slices(segments, slices),
        schemas.ATTRIBUTION_SLICES: _within_slices(slice_rows, slices),
        schemas.PAIR_SEGMENTS: _within_slices(pair_nodes, slices),
    }
    if losses:
        placements = {**of_segments, **{(*key, OVERALL): placed for key, placed in of_all.items()}}
        rows[schemas.ATTRIBUTION_CORRELATIONS] = list_correlations(losses, has_probabilities)
        rows[schemas.LOSS_BY_SEGMENT] = list_losses(losses, attribution.segments, placements, has_probabilities, level)
    tables: dict[Table, Rows] = {
        table: table_of_rows(table, rows[table]) for table in configured_tables(attribution) if table in rows
    }
    if attribution.write_examples:
        n_groups = len(surveyed.encoding.models), len(surveyed.encoding.slices)
        tables[schemas.EXAMPLE_ATTRIBUTIONS] = surveyed.rank_rows(ranked.counts.cells[2:].reshape(2, *n_groups))
    all_wrong = {key: 2 * low.n * high.n - high.placed for key, (low, high) in of_all.items()}
    if attribution.pairs_of:
        named_pairs = list_named_pairs(attribution.pairs_of, pairs_of)
        tables[schemas.NAMED_PAIRS] = measure_crosses(schemas.NAMED_PAIRS, named_pairs, all_wrong, level)
    if attribution.groupings:
        tables[schemas.AUC_CROSSES] = measure_crosses(schemas.AUC_CROSSES, crosses, all_wrong, level)
    counted = Measurement(surveyed.measures, surveyed.encoding, surveyed.survey, surveyed.cutpoints, ranked.counts)
    tree_roots = {surveyed.name_target(target): measured[target][0] for target in trees}
    searched_slices = {surveyed.name_target(target): best for target, best in best_slices.items()}
    return tables, (
        *counted.warnings,
        *attribution_warnings.feature_warnings(surveyed.values),
        *attribution_warnings.unsearched_warnings(attribution),
        *attribution_warnings.link_warnings(attribution, profiles),
        *attribution_warnings.search_warnings(attribution, tree_roots, searched_slices, pair_nodes),
        *attribution_warnings.row_warnings(attribution, losses, pairs_of, crosses),
    )


def configured_tables(attribution: Attribution) -> list[Table]:
    """Return the tables of the parts that are configured."""
    return configured(
        {
            schemas.LOSS_BY_SEGMENT: True,
            schemas.ATTRIBUTION_CORRELATIONS: True,
            schemas.ATTRIBUTION_SEGMENTS: attribution.grows_trees,
            schemas.ATTRIBUTION_SLICES: attribution.slice_search,
            schemas.PAIR_SEGMENTS: attribution.pairs,
            schemas.NAMED_PAIRS: attribution.pairs_of,
            schemas.AUC_CROSSES: attribution.groupings,
            schemas.EXAMPLE_ATTRIBUTIONS: attribution.write_examples,
        }
    )


def search_rows(
    surveyed: SurveyedRows, ranked: RankedBlocks, has_probabilities: Mapping[str, bool], stage: Callable[[str], None]
) -> tuple[Mapping[Target, Tree], Mapping[Target, BestSlices], Mapping[Target, Sequence[MeasuredSet]]]:
    """Grow the trees and search the slices together; return these, and the sums over their rows.

    `has_probabilities` is by model, as in `list_losses`.
    """
    attribution, n_rows = surveyed.attribution, ranked.counts.row_counts.n_rows
    targets = plan_trees(surveyed, has_probabilities) if attribution.tree else []
    searches: dict[tuple[str, SummedValue], Search[Any]] = {}
    if attribution.tree and targets:  # no targets if these are losses, and no model has probabilities
        features = surveyed.values.tree_features
        square_sums = _sum_squares(surveyed, ranked, targets) if attribution.tree.min_gain else [0.0] * len(targets)
        for target, square_sum in zip(targets, square_sums, strict=True):
            value = SummedValue.of(target, n_rows)
            searches["trees", value] = grow_tree(features, value, attribution.tree, square_sum)
    if attribution.slice_search:
        *_, train = ranked.results.get("losses") or ranked.results["means"]
        for key in surveyed.names:
            mean = add_moments(train.get(key, {}), "normalized").mean or 0.0
            value = SummedValue.of(Target(*key, AUC), n_rows, mean)
            searches["slices", value] = search_slices(surveyed.values.features, value, attribution.slice_search)
    results: dict[tuple[str, SummedValue], Any] = {}
    if searches:
        names = ", ".join(dict.fromkeys(kind for kind, _ in searches))
        with surveyed.job(f"search {names}"):
            by_cell = sum_blocks(ranked.blocks, [value for _, value in searches], ranked.results["cells"])
            with kept(by_cell.frame, large_rows=True) as frame:
                kept_sums = replace(by_cell, frame=frame)
                answers = run_searches(kept_sums, [*searches.values()], lambda n: stage(f"searching {names}: step {n}"))
        results = dict(zip(searches, answers, strict=True))
    trees = {value.target: tree for (kind, value), tree in results.items() if kind == "trees"}
    slices = {value.target: best for (kind, value), best in results.items() if kind == "slices"}
    return trees, slices, _measure_results(surveyed, ranked, trees, slices, stage)


def plan_trees(surveyed: SurveyedRows, has_probabilities: Mapping[str, bool]) -> list[Target]:
    """List the targets of trees: first of single models, with losses only of probabilities, then of comparisons."""
    attribution, encoding = surveyed.attribution, surveyed.encoding
    targets = [
        Target(model, part, name, None if name == AUC else attribution.link.get(encoding.models[model]))
        for name, (model, part) in product(attribution.targets, surveyed.names)
        if name == AUC or has_probabilities[encoding.models[model]]
    ]
    compared = product(range(len(attribution.compare)), range(len(encoding.slices)))
    return targets + [Target(len(encoding.models) + number, part, AUC) for number, part in compared]


def _sum_squares(surveyed: SurveyedRows, ranked: RankedBlocks, targets: Sequence[Target]) -> list[float]:
    """Return the sum of squared deviations of the training values of each tree. One job."""
    with surveyed.job("sum squares of the targets of trees"):
        measured = measure_sets(ranked.blocks, {target: [{}] for target in targets}, len(surveyed.encoding.models))
    moments = [measured[target][0].train for target in targets]
    return [(tree_moments.variance or 0.0) * (tree_moments.n - 1) for tree_moments in moments]


def _measure_results(
    surveyed: SurveyedRows,
    ranked: RankedBlocks,
    trees: Mapping[Target, Tree],
    slices: Mapping[Target, BestSlices],
    stage: Callable[[str], None],
) -> Mapping[Target, Sequence[MeasuredSet]]:
    """Measure every node and slice."""
    attribution, models = surveyed.attribution, surveyed.encoding.models
    conditions = {target: [node.condition for node in tree] for target, tree in trees.items()}
    for target, best in slices.items():
        conditions[target] = [*conditions.get(target, [{}]), *best.conditions()]
    if not conditions:
        return {}
    edges = {
        number: surveyed.boundaries[models.index(baseline)]
        for number, (_, baseline) in enumerate(attribution.compare, len(models))
    }
    stage("measuring segments and differences of models" if edges else "measuring segments")
    with surveyed.job("measure the segments"):
        return measure_sets(ranked.blocks, conditions, len(models), edges)


def _within_slices(rows: Iterable[dict[str, Any]], slices: Mapping[str, str]) -> list[dict[str, Any]]:
    """Restrict the predicates of each row to its slice, which may end in a comment."""
    groups = {name: f"({text}\n)" if "--" in text else f"({text})" for name, text in slices.items()}
    return [
        {
            name: f"{groups[row[SLICE]]} AND {value}" if name.endswith("predicate") and row[SLICE] in groups else value
            for name, value in row.items()
        }
        for row in rows
    ]


# ---- the plan


def plan_attribution(config: Config) -> Plan:
    """Plan the attribution."""
    attribution = config.attribution
    assert attribution is not None  # the job requires it
    passes = {
        VALUES_PASS: attribution.searches or attribution.groupings,
        ATTRIBUTION_PASS: True,
        EXAMPLES_PASS: attribution.write_examples,
    }
    warnings = attribution_warnings.unsearched_warnings(attribution)
    return Plan(configured(passes), configured_tables(attribution), warnings)


def _attributed_only(config: Config) -> Measures:
    example = 'numeric = ["comment_length"], and on the next line tree = {}'
    return replace(rows_only(config), attribution=require(config.attribution, "attribution", example))


# ---- the command line

EXAMPLES = dated_examples("attribution.toml")
FLAGS = (*on_date("the date whose rows are attributed"), DRY_RUN)
main = partial(plan_or_run, CorpusJob(JOB, _attributed_only, plan_attribution, publish_attribution))
COMMAND = Command(__doc__, EXAMPLES, FLAGS, main)
