"""Warnings about features, searches, segments, pairs and groupings that are probably not what the user expects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from biasspark.attribution.measured_sets import MeasuredSet
from biasspark.attribution.segments import TreeKey
from biasspark.attribution.slice_search import MAX_CANDIDATES, BestSlices
from biasspark.columns import ALL_ROWS, MODEL, SLICE
from biasspark.config import Attribution
from biasspark.corpus.data_quality import count_warnings, name_warnings
from biasspark.features import Feature
from biasspark.ranking.feature_columns import SurveyedValues
from biasspark.ranking.kernels.placements import Profile
from biasspark.text import format_count, list_first, show_value, show_visibly


def unsearched_warnings(attribution: Attribution) -> tuple[str, ...]:
    """Return a warning if there are features, but no tree, slices or pairs that use them."""
    if not attribution.features or attribution.searches:
        return ()
    keys = " and ".join(f"`{key}`" for key in ("numeric", "categorical") if getattr(attribution, key))
    columns = list_first([show_value(name) for name in attribution.features])
    return (
        f"attribution, {keys}: no search uses {columns}, so no table will show them. Columns are searched on request "
        "only. Ask for `tree`, `slice_search` or `pairs`, or remove the columns.",
    )


def feature_warnings(values: SurveyedValues) -> tuple[str, ...]:
    """Return warnings about features that nothing is split on, and about unreadable values."""
    constant = [feature.name for feature in values.features if len(feature.bins) <= 1]
    rare = [feature.name for feature in values.tree_features if feature.rare == feature.bins and len(feature.bins) > 1]
    names = [feature.name for feature in values.features]
    return (
        *name_warnings("feature constant", names, constant),
        *name_warnings("feature rare", names, rare),
        *count_warnings("unreadable feature", values.unreadable),
    )


def describe_rare(features: Iterable[Feature], min_leaf: int) -> str:
    """Describe how many values of features have too few rows to be named by trees; "" if none."""
    texts = [
        f"{len(feature.rare):,} of {format_count(len(feature.values), 'value')} of {feature.name}"
        for feature in features
        if feature.rare
    ]
    rule = f'Values with fewer than min_leaf = {min_leaf:,} rows are never named in a rule, only covered by "is not": '
    return show_visibly(f"{rule}{', '.join(texts)}.") if texts else ""


def row_warnings(
    attribution: Attribution,
    losses: Iterable[tuple[str, str, str]],
    pairs: Sequence[Mapping[str, Any]],
    crosses: Sequence[Mapping[str, Any]],
) -> Iterator[str]:
    """Yield warnings about named segments and pairs without rows, and about groupings with a single group.

    Given are the model, slice and segment of all losses, and what `count_pairs_of_groups` counts.
    """
    with_rows = {segment for _, name, segment in losses if name == ALL_ROWS}
    yield from name_warnings("segment empty", [*attribution.segments], {*attribution.segments} - with_rows)
    empty = {row["grouping"] for row in pairs if row[SLICE] == ALL_ROWS and not row["n_positive"] * row["n_negative"]}
    yield from name_warnings("pair empty", [*attribution.pairs_of], empty)
    several = {row["grouping"] for row in crosses if row["positive_group"] != row["negative_group"]}
    single = {row["grouping"] for row in crosses} - several
    yield from name_warnings("grouping single", [*attribution.groupings], single)


def link_warnings(attribution: Attribution, profiles: Mapping[str, Profile]) -> Iterator[str]:
    """Yield warnings about links that are probably wrong, given the score profile of each model."""
    for model, scores in profiles.items() if attribution.has_losses else ():
        if model not in attribution.link and (scores.lowest < 0 or scores.highest > 1):
            yield (
                f"model {model}: some scores lie outside 0 to 1, so its cross-entropy and Gini impurity are NULL, and "
                "no tree predicts them. If they are percentages, divide them by 100; if they are log-odds, set the "
                '`link` of this model to "logit".'
            )
        if model in attribution.link and scores.lowest >= 0:
            yield (
                f"model {model}: none of its scores is negative, and `link` takes them for log-odds. If they are "
                "probabilities, remove the model from `link`; if they are percentages, also divide them by 100."
            )


def _name(key: TreeKey) -> str:
    return f"{key.model} against {key.baseline_model}" if key.baseline_model else key.model


def search_warnings(
    attribution: Attribution,
    trees: Mapping[TreeKey, MeasuredSet],
    slices: Mapping[TreeKey, BestSlices],
    pair_nodes: Sequence[Mapping[str, Any]],
) -> Iterator[str]:
    """Yield warnings about slice searches that left conjunctions out, and searches that have too few rows.

    `trees` has the sums over all rows of each tree, `slices` the finished searches, `pair_nodes` ``pair_segments``.
    """
    for key, best in slices.items():
        if best.missed:
            yield (
                f"{key.model}, {key.slice}: `slice_search`: more than {MAX_CANDIDATES:,} conjunctions might be among "
                "those that lack most. Those with the highest bounds were counted. Raise min_rows, or lower "
                "max_predicates or max_bins, to search them all."
            )
    min_leaf, pairs = attribution.split.min_leaf, attribution.pairs
    min_rows = attribution.slice_search.min_rows if attribution.slice_search else 0
    n_halves = {key: (train.n, honest.n) for key, (train, honest, *_) in trees.items() if key.slice == ALL_ROWS}
    few_of_trees = [_name(key) for key, halves in n_halves.items() if any(halves) and min(halves) < 2 * min_leaf]
    few_of_slices = [key.model for key, best in slices.items() if key.slice == ALL_ROWS and best.has_too_few]
    few_of_pairs = [
        row[MODEL]
        for row in pair_nodes
        if pairs and row["node_id"] == 1 and row["is_leaf"] and row[SLICE] == ALL_ROWS
        if min(row["n_negatives_honest"], row["n_positives_honest"]) < 2 * pairs.min_side
        or row["n_pairs_train"] < 2 * (pairs.min_leaf or 0)
    ]
    for key, halves in n_halves.items():
        if key.baseline_model and not any(halves):
            yield f"`compare`: no row is scored by both models of {_name(key)}, so their difference has no tree."
    too_few = f"one of the halves, by a hash of the id (do ids repeat?), has too few rows for `min_leaf` = {min_leaf:,}"
    for what, names, why in (
        ("tree", few_of_trees, too_few),
        ("slice_search", few_of_slices, f"no value and no interval has `min_rows` = {min_rows:,} rows in both halves"),
        ("pairs", few_of_pairs, "there are too few rows for `min_leaf` or `min_side` in one of their halves"),
    ):
        if names:
            yield f"`{what}` of {', '.join(dict.fromkeys(names))}: {why}, so nothing is searched. Lower it."
