"""Segments on which a model gains or loses its AUC (Attributing, section 5.3): trees and slices -> rows of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import inf
from typing import Any, NamedTuple

from biasspark.attribution.evidence import Evidence, judge_nodes, judge_slices
from biasspark.attribution.growth import ROOT, GrownTree
from biasspark.attribution.measured_sets import MeasuredSet
from biasspark.attribution.row_values import AUC
from biasspark.features import Condition, Feature, describe_condition, write_predicate
from biasspark.metrics.multiple_testing import clip, interval


class TreeKey(NamedTuple):
    """What a tree is about.

    Attributes
    ----------
    model, baseline_model, slice
        Whose rows; the baseline is empty where none is subtracted.
    target
        What is predicted: `AUC` stands for the normalized attribution.
    """

    model: str
    baseline_model: str
    slice: str
    target: str

    @property
    def range(self) -> tuple[float, float]:
        """Where a mean of what is predicted can lie."""
        if self.target == AUC:
            return (-0.5 if self.baseline_model else 0.0), 0.5
        return 0.0, (1.0 if self.target == "gini" else inf)


def plan_trees(
    models: Mapping[str, bool], slices: Sequence[str], targets: Sequence[str], compare: Sequence[tuple[str, str]] = ()
) -> list[TreeKey]:
    """List the trees to grow, in the order of their numbers: those of single models, then those of comparisons.

    Parameters
    ----------
    models
        By name, whether the model's scores are probabilities; without, there are no trees of its losses.
    compare
        Models and their baselines.
    """
    keys = [
        TreeKey(model, "", name, target)
        for target, model, name in product(targets, models, slices)
        if target == AUC or models[model]
    ]
    return keys + [TreeKey(*pair, name, AUC) for pair, name in product(compare, slices)]


def list_segments(
    key: TreeKey, tree: GrownTree, measured: Sequence[MeasuredSet], features: Sequence[Feature], level: float
) -> list[dict[str, Any]]:
    """Return the rows of ``attribution_segments`` of one tree, one for every node; none of a tree without rows.

    Parameters
    ----------
    measured : sequence of MeasuredSet
        The rows of each node.
    """
    sums = {(tree.number, node.node_id): one.sums for node, one in zip(tree.nodes, measured, strict=True)}
    root = sums[tree.number, ROOT]
    if not root.train.n + root.honest.n:
        return []
    judged = zip(judge_nodes(tree, sums, features), measured, strict=True)
    return [
        {**key._asdict(), **vars(evidence), **_list_ends(evidence, one.variance, key.range, level)}
        for evidence, one in judged
    ]


def list_slices(
    conditions: Sequence[Condition],
    measured: Sequence[MeasuredSet],
    whole: MeasuredSet,
    features: Sequence[Feature],
    level: float,
) -> list[dict[str, Any]]:
    """Return the rows of ``attribution_slices`` of one model and slice of the corpus, less their names.

    Parameters
    ----------
    conditions, measured
        What the rows of each slice that was found meet, and those rows.
    whole : MeasuredSet
        All rows.
    """
    variances = {id(condition): one.variance for condition, one in zip(conditions, measured, strict=True)}
    judged = judge_slices(zip(conditions, (one.sums for one in measured), strict=True), whole.sums)
    return [
        {
            **vars(evidence),
            "rule": describe_condition(evidence.condition, features),
            "predicate": write_predicate(evidence.condition, features),
            **_list_ends(evidence, variances[id(evidence.condition)], (0.0, 0.5), level),
        }
        for evidence in judged
    ]


def _list_ends(
    evidence: Evidence, variance: float | None, limits: tuple[float, float], level: float
) -> dict[str, float | None]:
    """Return the interval of an honest mean."""
    low, high = clip(interval(evidence.mean_honest, variance, level), *limits)
    return {"mean_honest_low": low, "mean_honest_high": high}
