"""What slices show, and which of them are found to be worse: tests on exact sums. No Spark."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

from biasspark.attribution.evidence import NodeSums
from biasspark.attribution.significance import SIGNIFICANT, Moments, adjust, welch_p_value
from biasspark.features import Condition


@dataclass(frozen=True)
class FoundSlice:
    """One slice, and what it shows.

    Attributes
    ----------
    tree
        The number of its tree.
    condition
        What its rows meet.
    sums
        Over its rows.
    score
        n_train·(mean of all training rows - mean_train), above 0.
    n_train, mean_train, n_honest, mean_honest
        Rows of either kind, and their mean value; None of no rows.
    p_train_honest
        By Welch's test, rows that search against rows that estimate, both in the slice.
    false_discovery
        Whether that p-value is below 0.05.
    p_value
        By Welch's test, honest rows in the slice against honest rows outside of it.
    loss_share
        Of the AUC loss of all rows of the tree, that of the slice's; None where there is none.
    rank
        By score within the tree; 1 is the greatest.
    p_adjusted
        By Benjamini and Hochberg over the slices of the tree.
    found
        Whether the adjusted p-value is below 0.05 and the slice is no false discovery.
    """

    tree: int
    condition: Condition
    sums: NodeSums
    score: float
    n_train: int
    mean_train: float | None
    n_honest: int
    mean_honest: float | None
    p_train_honest: float | None
    false_discovery: bool | None
    p_value: float | None
    loss_share: float | None
    rank: int = 0
    p_adjusted: float | None = None
    found: bool = False


def judge_slices(tree: int, slices: Iterable[tuple[Condition, NodeSums]], whole: NodeSums) -> list[FoundSlice]:
    """Return what the slices of one tree show, the greatest score first.

    Parameters
    ----------
    slices : iterable of (Condition, NodeSums)
        Of equal scores the order is kept. What is no worse than all rows is left out.
    whole : NodeSums
        Of all rows of the tree.

    Notes
    -----
    A p-value is None where a sample has fewer than two rows. A slice without one is not found. Honest rows choose no
    slice, so p-values are adjusted for the slices beside each other and not for the search.
    """
    judged = [_judge(tree, condition, sums, whole) for condition, sums in slices]
    ranked = sorted((found for found in judged if found.score > 0), key=lambda found: -found.score)
    adjusted = adjust([found.p_value for found in ranked])
    return [
        replace(
            found,
            rank=rank,
            p_adjusted=p_adjusted,
            found=p_adjusted is not None and p_adjusted < SIGNIFICANT and not found.false_discovery,
        )
        for rank, (found, p_adjusted) in enumerate(zip(ranked, adjusted, strict=True), start=1)
    ]


def _judge(tree: int, condition: Condition, sums: NodeSums, whole: NodeSums) -> FoundSlice:
    p_train_honest = welch_p_value(sums.train, sums.honest)
    return FoundSlice(
        tree=tree,
        condition=condition,
        sums=sums,
        score=_score_of(sums.train, whole.train),
        n_train=sums.train.n,
        mean_train=sums.train.mean,
        n_honest=sums.honest.n,
        mean_honest=sums.honest.mean,
        p_train_honest=p_train_honest,
        false_discovery=None if p_train_honest is None else p_train_honest < SIGNIFICANT,
        p_value=welch_p_value(sums.honest, whole.honest - sums.honest),
        loss_share=sums.loss_doubled / whole.loss_doubled if whole.loss_doubled else None,
    )


def _score_of(inside: Moments, all_rows: Moments) -> float:
    """Return n·(mean of all rows - mean inside), rounded once."""
    return float(Fraction(all_rows.total) * inside.n / all_rows.n - Fraction(inside.total))
