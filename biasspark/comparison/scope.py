"""The rows and groups on which a comparison rests, and warnings about them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from biasspark.comparison.differences import LEAST_GROUPS
from biasspark.config import GROUPS, Compare
from biasspark.text import list_first

MOST_NAMED = 10


class Scope(NamedTuple):
    """What a model shares with the baseline: rows with a label that both score, and their groups and positives.

    Groups are None without clusters, and positives if they were not counted.
    """

    model: str
    n_rows: int
    n_groups: int | None = None
    n_positive: int | None = None


def scope_warnings(compare: Compare, scopes: Sequence[Scope]) -> Iterator[str]:
    """Yield a sentence on models that share no row, or only one label, with the baseline, and on too few clusters."""
    shared = [scope for scope in scopes if scope.n_rows]
    if apart := [scope.model for scope in scopes if not scope.n_rows]:
        yield f"compare: {_pair(compare, apart)}: no row with a label is scored by both, so nothing is compared."
    for label, share in (("positive", 0), ("negative", 1)):
        if alike := [scope.model for scope in shared if scope.n_positive == share * scope.n_rows]:
            yield (
                f"compare: {_pair(compare, alike)}: no row that both score is {label}, so no AUC has a value. "
                "Check the label."
            )
    few: dict[int, list[str]] = {}
    for scope in shared:
        if scope.n_groups is not None and scope.n_groups < LEAST_GROUPS:
            few.setdefault(scope.n_groups, []).append(scope.model)
    for n_groups, names in few.items():
        yield (
            f"compare: {_pair(compare, names)}: '{compare.cluster}' has so few values that only {n_groups} of "
            f"{compare.groups or GROUPS} groups have rows, and a verdict takes {LEAST_GROUPS}. Name another column, or "
            "take more `groups` if it has more values."
        )


def unclustered_warnings(cluster: str | None, n_unclustered: int, n_rows: int) -> Iterator[str]:
    """Yield a sentence on the rows without a cluster, if there are any."""
    if cluster is not None and n_unclustered:
        share = n_unclustered / n_rows
        share_text = "less than 1%" if share < 0.01 else f"{share:.0%}"
        yield (
            f"compare: '{cluster}' has no value on {share_text} of the rows ({n_unclustered:,} of {n_rows:,}). "
            "Each of them stands for itself."
        )


def _pair(compare: Compare, names: Sequence[str]) -> str:
    return f"{list_first(names, MOST_NAMED)} with {compare.baseline}"
