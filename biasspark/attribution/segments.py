"""Segments that gain or lose AUC (Attributing, section 5.3): exact sums of nodes and slices -> tests, table rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import inf
from typing import Any, NamedTuple

from biasspark.attribution.block_sums import NodeSums
from biasspark.attribution.moments import Moments, chance_p_value, welch_p_value
from biasspark.attribution.row_values import AUC
from biasspark.attribution.trees import Tree
from biasspark.features import Condition, Feature, describe_condition, write_predicate
from biasspark.metrics.intervals import SIGNIFICANT, benjamini_hochberg, clip, interval


class MeasuredSet(NamedTuple):
    """The rows that meet a condition: their sums, and the variance of their honest mean, None where not defined."""

    sums: NodeSums
    variance: float | None


def compare_with_all(sums: NodeSums, whole: NodeSums) -> dict[str, Any]:
    """Return the columns of a set of rows that say what it shows, before sets are decided on together.

    ``p_train_honest`` compares the rows that search with those that estimate, ``p_value`` the honest rows of the set
    with all other honest rows, both by Welch's test; ``p_chance`` is that as many honest rows, drawn at random, differ
    as much. A p-value is None where a sample has fewer than two rows. ``loss_share`` is None without any loss.
    """
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


def decide(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add ``p_adjusted``, ``p_chance_adjusted``, ``found`` and ``confirmed`` to rows that are tested together.

    p-values are adjusted by Benjamini and Hochberg (1995). A row is found where ``p_adjusted`` < 0.05 and the sample
    that searched does not contradict the one that estimates, and confirmed where ``p_chance_adjusted`` < 0.05 as well.
    Inner nodes are not tested: they get None.
    """
    tested = [row.get("is_leaf", True) for row in rows]
    p_values, p_chances = (
        benjamini_hochberg([row[name] if is_tested else None for row, is_tested in zip(rows, tested, strict=True)])
        for name in ("p_value", "p_chance")
    )
    decided = []
    for row, is_tested, p_adjusted, p_chance in zip(rows, tested, p_values, p_chances, strict=True):
        found = p_adjusted is not None and p_adjusted < SIGNIFICANT and row["false_discovery"] is False
        confirmed = found and p_chance is not None and p_chance < SIGNIFICANT
        findings = {"found": found, "confirmed": confirmed} if is_tested else {"found": None, "confirmed": None}
        decided.append({**row, "p_adjusted": p_adjusted, "p_chance_adjusted": p_chance, **findings})
    return decided


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
    return float(all_rows.total * inside.n / max(all_rows.n, 1) - inside.total)


def _list_ends(measured: MeasuredSet, limits: tuple[float, float], level: float) -> dict[str, float | None]:
    """Return the interval of the honest mean."""
    low, high = clip(interval(measured.sums.honest.mean, measured.variance, level), *limits)
    return {"mean_honest_low": low, "mean_honest_high": high}
