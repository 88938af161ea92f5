"""Segments on which a model gains or loses its AUC (Attributing, section 5.3): RANKED rows -> trees -> table rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import inf
from typing import Any, NamedTuple

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from biasspark.attribution.evidence import NodeEvidence, NodeSums, judge_nodes
from biasspark.attribution.growth import ROOT, GrownTree, NodeKey
from biasspark.attribution.losses import cross_entropy, gini, normalized_attribution
from biasspark.attribution.slice_evidence import FoundSlice
from biasspark.columns import HONEST, LABEL, MODEL, N_OPPOSITE, ORDERED_DOUBLED, SLICE
from biasspark.features import Condition, Feature, bin_names, describe_condition, write_predicate
from biasspark.metrics.multiple_testing import clip, interval

AUC = "auc"


class TreeKey(NamedTuple):
    """What a tree is about.

    Attributes
    ----------
    model, baseline_model, slice
        Whose rows; the baseline is empty where none is subtracted.
    target
        What is predicted: `AUC` stands for the normalised attribution.
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


def plan_trees(models: Mapping[str, bool], slices: Sequence[str], targets: Sequence[str]) -> list[TreeKey]:
    """List the trees of single models to grow, in the order of their numbers.

    Parameters
    ----------
    models
        By name, whether the model's scores are probabilities; without, there are no trees of its losses.
    """
    return [
        TreeKey(model, "", name, target)
        for target, model, name in product(targets, models, slices)
        if target == AUC or models[model]
    ]


def tree_rows(
    ranked: DataFrame, keys: Sequence[TreeKey], features: Sequence[Feature], links: Mapping[str, str]
) -> DataFrame:
    """Return ROWS for trees of single models; rows without opposite ones are in no tree.

    Parameters
    ----------
    ranked : DataFrame
        RANKED rows with ``honest`` and bins.
    keys : sequence of TreeKey
        Those of all trees, by number.
    links : mapping of str to str
        Model to what makes probabilities of its scores, where they are none.
    """
    values = {AUC: normalized_attribution(), "cross_entropy": cross_entropy(links), "gini": gini(links)}
    entries = []
    for target in dict.fromkeys(key.target for key in keys):
        number = _number_of({(key.model, key.slice): n for n, key in enumerate(keys) if key.target == target})
        entries.append(F.struct(number.alias("tree"), values[target].alias("value")))
    rows = ranked.where(F.col(N_OPPOSITE) > 0).select(
        (F.explode(F.array(*entries)) if len(entries) > 1 else entries[0]).alias("entry"),
        *(LABEL, HONEST),
        (2 * F.col(N_OPPOSITE) - F.col(ORDERED_DOUBLED)).alias("loss_doubled"),
        *bin_names(len(features)),
    )
    in_trees = rows.where(F.col("entry.tree").isNotNull())
    return in_trees.select("entry.tree", LABEL, HONEST, "entry.value", "loss_doubled", *bin_names(len(features)))


@dataclass(frozen=True)
class Segment:
    """One node of a tree: what the tree is about, what the node shows, what its rows meet, and its sums."""

    key: TreeKey
    evidence: NodeEvidence
    condition: Condition
    sums: NodeSums

    def row(self, variance: float | None, level: float) -> dict[str, Any]:
        """Return its row of ``attribution_segments``, with the interval that the variance of its honest mean gives."""
        low, high = clip(interval(self.evidence.mean_honest, variance, level), *self.key.range)
        return {**self.key._asdict(), **vars(self.evidence), "mean_honest_low": low, "mean_honest_high": high}

    @property
    def place(self) -> tuple[str, str, Condition]:
        """Its model, its slice and its condition."""
        return self.key.model, self.key.slice, self.condition

    @property
    def variance_of_mean(self) -> float | None:
        """The variance of the honest mean of a loss, which depends on no other row."""
        variance = self.sums.honest.variance
        return None if variance is None else variance / self.sums.honest.n


@dataclass(frozen=True)
class LosingSlice:
    """One of the slices that lack most: its model and slice of the corpus, and what it shows."""

    model: str
    slice: str
    found: FoundSlice

    @property
    def place(self) -> tuple[str, str, Condition]:
        """Its model, its slice of the corpus and its condition."""
        return self.model, self.slice, self.found.condition

    @property
    def sums(self) -> NodeSums:
        """The sums over its rows."""
        return self.found.sums

    def row(self, variance: float | None, features: Sequence[Feature], level: float) -> dict[str, Any]:
        """Return its row of ``attribution_slices``, with the interval that the variance of its honest mean gives."""
        low, high = clip(interval(self.found.mean_honest, variance, level), 0.0, 0.5)
        said = {"rule": describe_condition(self.found.condition, features)}
        said |= {"predicate": write_predicate(self.found.condition, features)}
        ends = {"mean_honest_low": low, "mean_honest_high": high}
        return {MODEL: self.model, SLICE: self.slice, **vars(self.found), **said, **ends}


def list_segments(
    keys: Sequence[TreeKey], trees: Sequence[GrownTree], sums: Mapping[NodeKey, NodeSums], features: Sequence[Feature]
) -> list[Segment]:
    """Return every node of every tree that has rows."""
    return [
        Segment(key, evidence, node.condition, sums[tree.number, node.node_id])
        for key, tree in zip(keys, trees, strict=True)
        for node, evidence in zip(tree.nodes, judge_nodes(tree, sums, features), strict=True)
        if sums[tree.number, ROOT].train.n + sums[tree.number, ROOT].honest.n
    ]


def _number_of(numbers: Mapping[tuple[str, str], int]) -> Column:
    """Return the number of the tree of a row's model and slice, NULL where there is none."""
    chosen = F.lit(None).cast("int")
    for (model, name), number in numbers.items():
        chosen = F.when((F.col(MODEL) == model) & (F.col(SLICE) == name), F.lit(number)).otherwise(chosen)
    return chosen
