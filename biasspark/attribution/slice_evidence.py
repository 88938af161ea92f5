"""What slices show, and which of them are found to be worse: tests on exact sums. No Spark."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

from biasspark.attribution.evidence import Evidence, NodeSums, compare_with_all, decide
from biasspark.attribution.significance import Moments
from biasspark.features import Condition


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
