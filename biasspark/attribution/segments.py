"""Segments that gain or lose AUC (Attributing, section 5.3): sums of nodes and slices -> tests -> table rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from biasspark.attribution.losses import LIMITS
from biasspark.attribution.measured_sets import MeasuredSet
from biasspark.attribution.moments import chance_p_value, welch_p_value
from biasspark.attribution.trees import Tree, list_node_columns
from biasspark.features import Condition, Feature, list_rule
from biasspark.metrics.intervals import SIGNIFICANT, benjamini_hochberg, normal_interval


def decide(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add ``false_discovery``, ``p_adjusted``, ``p_chance_adjusted``, ``found`` and ``confirmed`` to rows.

    p-values are adjusted together, by Benjamini and Hochberg (1995). A false discovery is a row whose training half
    contradicts the estimation half. A row is found if ``p_adjusted`` < 0.05 and ``false_discovery`` is False, and
    confirmed if ``p_chance_adjusted`` < 0.05 as well. Inner nodes are not tested: they get None.
    """
    decided = []
    for row in rows:
        p, untested = row["p_train_honest"], dict.fromkeys(("p_adjusted", "p_chance_adjusted", "found", "confirmed"))
        decided.append({**row, "false_discovery": None if p is None else p < SIGNIFICANT, **untested})
    tested = [row for row in decided if row.get("is_leaf", True)]
    adjusted = (benjamini_hochberg([row[name] for row in tested]) for name in ("p_value", "p_chance"))
    for row, p_value, p_chance in zip(tested, *adjusted, strict=True):
        found = p_value is not None and p_value < SIGNIFICANT and row["false_discovery"] is False
        confirmed = found and p_chance is not None and p_chance < SIGNIFICANT
        row |= {"p_adjusted": p_value, "p_chance_adjusted": p_chance, "found": found, "confirmed": confirmed}
    return decided


class TreeKey(NamedTuple):
    """The rows and the target of a tree. Without a baseline, its name is empty."""

    model: str
    baseline_model: str
    slice: str
    target: str


def list_segments(
    key: TreeKey, tree: Tree, measured: Sequence[MeasuredSet], features: Sequence[Feature], level: float
) -> list[dict[str, Any]]:
    """Return the rows of ``attribution_segments`` of the nodes of one tree; none if the tree has no rows."""
    root, limits = measured[0], (-0.5, 0.5) if key.baseline_model else LIMITS.get(key.target, LIMITS["normalized"])
    if not root.train.n + root.honest.n:
        return []
    rows = [
        {
            **key._asdict(),
            **list_node_columns(node.node_id, node.split is None),
            **list_rule(node.condition, features),
            **_list_columns(measured_set, root, limits, level),
        }
        for node, measured_set in zip(tree, measured, strict=True)
    ]
    return decide(rows)


def list_slices(
    conditions: Sequence[Condition],
    measured: Sequence[MeasuredSet],
    whole: MeasuredSet,
    features: Sequence[Feature],
    level: float,
) -> list[dict[str, Any]]:
    """Return the rows of ``attribution_slices`` of one model and slice of the corpus, the highest score first.

    The score is n_train·(mean of all training rows - mean_train). Slices that are no worse than all rows are left out;
    equal scores keep their order. The estimation half does not choose slices, so p-values are adjusted for the number
    of slices and not for the search.
    """
    mean = whole.train.total / max(whole.train.n, 1)
    rows = [
        {
            "score": float(mean * measured_set.train.n - measured_set.train.total),
            **list_rule(condition, features),
            **_list_columns(measured_set, whole, LIMITS["normalized"], level),
        }
        for condition, measured_set in zip(conditions, measured, strict=True)
    ]
    ranked = sorted((row for row in rows if row["score"] > 0), key=lambda row: -row["score"])
    return [{"rank": rank, **row} for rank, row in enumerate(decide(ranked), start=1)]


def _list_columns(
    measured: MeasuredSet, whole: MeasuredSet, limits: tuple[float, float], level: float
) -> dict[str, Any]:
    """Return the sizes, the means and the tests of a set of rows, given the range of means."""
    train, honest = measured.train, measured.honest
    low, high = normal_interval(honest.mean, measured.variance, level, limits)
    return {
        "n_train": train.n,
        "mean_train": train.mean,
        "n_honest": honest.n,
        "mean_honest": honest.mean,
        "mean_honest_low": low,
        "mean_honest_high": high,
        "p_train_honest": welch_p_value(train, honest),
        "p_value": welch_p_value(honest, whole.honest - honest),
        "p_chance": chance_p_value(honest, whole.honest),
        "loss_share": measured.loss_doubled / whole.loss_doubled if whole.loss_doubled else None,
    }
