"""Which nodes of trees, slices and pair segments differ from the rest: rows of tables, from exact sums. No Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from biasspark.attribution.significance import NO_ROWS, Moments, chance_p_value, welch_p_value
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
