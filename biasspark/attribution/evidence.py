"""What nodes of trees and slices show, and which of them are found to differ: tests on exact sums. No Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeVar

from biasspark.attribution.growth import ROOT, GrownTree, Node, NodeKey
from biasspark.attribution.significance import (
    NO_ROWS,
    Findings,
    Moments,
    chance_p_value,
    welch_p_value,
)
from biasspark.features import Condition, Feature, describe_condition, write_predicate
from biasspark.metrics.multiple_testing import SIGNIFICANT, benjamini_hochberg


@dataclass(frozen=True)
class NodeSums:
    """Sums over the rows of one node.

    Attributes
    ----------
    train, honest
        Of the values of the rows that grow the tree, and of those that estimate.
    loss_doubled
        Twice the number of pairs with a row of the node that are wrongly ordered, ties half.
    """

    train: Moments = NO_ROWS
    honest: Moments = NO_ROWS
    loss_doubled: int = 0


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What some rows of a tree show; the fields are columns of the tables.

    Attributes
    ----------
    n_train, mean_train, n_honest, mean_honest
        Rows of either kind, and their mean value; None without rows.
    p_train_honest
        By Welch's test, rows that search against rows that estimate, both among them.
    false_discovery
        Whether that p-value is below 0.05.
    p_value
        By Welch's test, honest rows among them against honest rows that are not; None where those are none.
    p_chance
        That as many honest rows, drawn at random from all, differ as much; None where there are no others.
    loss_share
        Of the AUC loss of all rows of the tree, theirs; None where there is none.
    p_adjusted, p_chance_adjusted
        By Benjamini and Hochberg over what is tested together with it; None where nothing is tested.
    found, confirmed
        Whether ``p_adjusted`` is below 0.05 and it is no false discovery, and whether ``p_chance_adjusted`` is below
        0.05, too; None where nothing is tested.
    """

    n_train: int
    mean_train: float | None
    n_honest: int
    mean_honest: float | None
    p_train_honest: float | None
    false_discovery: bool | None
    p_value: float | None
    p_chance: float | None
    loss_share: float | None
    p_adjusted: float | None = None
    p_chance_adjusted: float | None = None
    found: bool | None = None
    confirmed: bool | None = None


@dataclass(frozen=True, kw_only=True)
class NodeEvidence(Evidence):
    """What is known of one node.

    Attributes
    ----------
    node_id, parent_id, depth, is_leaf
        Where the node stands.
    rule, predicate
        What selects its rows, as words and as SQL.
    """

    node_id: int
    parent_id: int | None
    depth: int
    is_leaf: bool
    rule: str
    predicate: str


AnyEvidence = TypeVar("AnyEvidence", bound=Evidence)


def compare_with_all(sums: NodeSums, whole: NodeSums) -> dict[str, Any]:
    """Return the fields of `Evidence` for some rows of a tree, before they are decided on together with others."""
    p_train_honest = welch_p_value(sums.train, sums.honest)
    return {
        "n_train": sums.train.n,
        "mean_train": sums.train.mean,
        "n_honest": sums.honest.n,
        "mean_honest": sums.honest.mean,
        "p_train_honest": p_train_honest,
        "false_discovery": None if p_train_honest is None else p_train_honest < SIGNIFICANT,
        "p_value": welch_p_value(sums.honest, whole.honest - sums.honest),
        "p_chance": chance_p_value(sums.honest, whole.honest),
        "loss_share": sums.loss_doubled / whole.loss_doubled if whole.loss_doubled else None,
    }


def decide(tested: Sequence[AnyEvidence]) -> list[AnyEvidence]:
    """Adjust the p-values of what is tested together, and say what is found."""
    p_values, p_chances = (
        benjamini_hochberg([one.p_value for one in tested]),
        benjamini_hochberg([one.p_chance for one in tested]),
    )
    return [
        replace(
            one,
            p_adjusted=p_value,
            p_chance_adjusted=p_chance,
            **Findings.of(p_value, p_chance, one.false_discovery)._asdict(),
        )
        for one, p_value, p_chance in zip(tested, p_values, p_chances, strict=True)
    ]


def judge_nodes(tree: GrownTree, sums: Mapping[NodeKey, NodeSums], features: Sequence[Feature]) -> list[NodeEvidence]:
    """Return what each node of a tree shows, in the order of its nodes.

    Parameters
    ----------
    tree : GrownTree
        Of any depth; a root alone is a leaf about which nothing is found.
    sums : mapping
        By (tree, node_id), with an entry for every node.
    features : sequence of Feature
        What the conditions are on.

    Notes
    -----
    A p-value is None where a sample has fewer than two rows. A leaf without one is not found.
    """
    root = sums[tree.number, ROOT]
    judged = [_judge(node, sums[tree.number, node.node_id], root, features) for node in tree.nodes]
    decided = {leaf.node_id: leaf for leaf in decide([node for node in judged if node.is_leaf])}
    return [decided.get(node.node_id, node) for node in judged]


def _judge(node: Node, sums: NodeSums, root: NodeSums, features: Sequence[Feature]) -> NodeEvidence:
    return NodeEvidence(
        node_id=node.node_id,
        parent_id=node.parent_id,
        depth=node.depth,
        is_leaf=node.is_leaf,
        rule=describe_condition(node.condition, features),
        predicate=write_predicate(node.condition, features),
        **compare_with_all(sums, root),
    )


@dataclass(frozen=True, kw_only=True)
class FoundSlice(Evidence):
    """One slice, and what it shows.

    Attributes
    ----------
    condition
        What its rows meet.
    sums
        Over its rows.
    score
        n_train·(mean of all train rows - mean_train), above 0.
    rank
        By score; 1 is the greatest.
    """

    condition: Condition
    sums: NodeSums
    score: float
    rank: int = 0


def judge_slices(slices: Iterable[tuple[Condition, NodeSums]], whole: NodeSums) -> list[FoundSlice]:
    """Return what the slices of one model show, the greatest score first.

    Parameters
    ----------
    slices : iterable of (Condition, NodeSums)
        Of equal scores the order is kept. What is no worse than all rows is left out.
    whole : NodeSums
        Of all rows.

    Notes
    -----
    A p-value is None where a sample has fewer than two rows. A slice without one is not found. Honest rows choose no
    slice, so p-values are adjusted for the number of slices and not for the search.
    """
    judged = [
        FoundSlice(
            condition=condition,
            sums=sums,
            score=_score_of(sums.train, whole.train),
            **compare_with_all(sums, whole),
        )
        for condition, sums in slices
    ]
    ranked = sorted((one for one in judged if one.score > 0), key=lambda one: -one.score)
    return [replace(one, rank=rank) for rank, one in enumerate(decide(ranked), start=1)]


def _score_of(inside: Moments, all_rows: Moments) -> float:
    """Return n·(mean of all rows - mean inside), rounded once."""
    return float(Fraction(all_rows.total) * inside.n / all_rows.n - Fraction(inside.total))
