"""Segments on which a model gains or loses its AUC (Attributing, section 5.3): trees and slices -> rows of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product
from math import inf
from typing import Any, NamedTuple

from biasspark.attribution.evidence import MeasuredSet, compare_with_all, decide
from biasspark.attribution.growth import Tree
from biasspark.attribution.row_values import AUC
from biasspark.attribution.significance import Moments
from biasspark.features import Condition, Feature, describe_condition, write_predicate
from biasspark.metrics.multiple_testing import clip, interval


class TreeKey(NamedTuple):
    """What a tree is about: whose rows, and what is predicted. Without a baseline its name is empty."""

    model: str
    baseline_model: str
    slice: str
    target: str

    @property
    def range(self) -> tuple[float, float]:
        """The range of a mean of the target."""
        if self.target == AUC:
            return (-0.5 if self.baseline_model else 0.0), 0.5
        return 0.0, (1.0 if self.target == "gini" else inf)


def plan_trees(
    models: Mapping[str, bool], slices: Sequence[str], targets: Sequence[str], compare: Sequence[tuple[str, str]] = ()
) -> list[TreeKey]:
    """List the trees to grow: those of single models, then those of comparisons of a model with its baseline.

    `models` says of each whether its scores are probabilities: without, there are no trees of its losses.
    """
    keys = [
        TreeKey(model, "", name, target)
        for target, model, name in product(targets, models, slices)
        if target == AUC or models[model]
    ]
    return keys + [TreeKey(*pair, name, AUC) for pair, name in product(compare, slices)]


def list_segments(
    key: TreeKey, tree: Tree, measured: Sequence[MeasuredSet], features: Sequence[Feature], level: float
) -> list[dict[str, Any]]:
    """Return the rows of ``attribution_segments`` of one tree, one for each node; none of a tree without rows."""
    root = measured[0].sums
    if not root.train.n + root.honest.n:
        return []
    rows = [
        {
            **key._asdict(),
            "node_id": node.node_id,
            "parent_id": node.parent_id,
            "depth": node.depth,
            "is_leaf": node.is_leaf,
            **_describe(node.condition, features),
            **compare_with_all(one.sums, root),
            **_list_ends(one, key.range, level),
        }
        for node, one in zip(tree, measured, strict=True)
    ]
    return decide(rows)


def list_slices(
    conditions: Sequence[Condition],
    measured: Sequence[MeasuredSet],
    whole: MeasuredSet,
    features: Sequence[Feature],
    level: float,
) -> list[dict[str, Any]]:
    """Return the rows of ``attribution_slices`` of one model and slice of the corpus, the greatest score first.

    The score is n_train·(mean of all train rows - mean_train). Slices that are no worse than all rows are left out; of
    equal scores the order is kept. Honest rows do not choose slices, so p-values are adjusted for the number of slices
    and not for the search.
    """
    rows = [
        {
            "score": _score(one.sums.train, whole.sums.train),
            **_describe(condition, features),
            **compare_with_all(one.sums, whole.sums),
            **_list_ends(one, (0.0, 0.5), level),
        }
        for condition, one in zip(conditions, measured, strict=True)
    ]
    ranked = sorted((row for row in rows if row["score"] > 0), key=lambda row: -row["score"])
    return [{"rank": rank, **row} for rank, row in enumerate(decide(ranked), start=1)]


def _describe(condition: Condition, features: Sequence[Feature]) -> dict[str, str]:
    return {"rule": describe_condition(condition, features), "predicate": write_predicate(condition, features)}


def _score(inside: Moments, all_rows: Moments) -> float:
    """Return n·(mean of all rows - mean inside), rounded once; 0 without any row."""
    return float(Fraction(all_rows.total) * inside.n / max(all_rows.n, 1) - Fraction(inside.total))


def _list_ends(measured: MeasuredSet, limits: tuple[float, float], level: float) -> dict[str, float | None]:
    """Return the interval of the honest mean."""
    low, high = clip(interval(measured.sums.honest.mean, measured.variance, level), *limits)
    return {"mean_honest_low": low, "mean_honest_high": high}
