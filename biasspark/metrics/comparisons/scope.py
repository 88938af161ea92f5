"""On what a comparison rests: how many rows both models score, and in how many groups they are; what to look at.

No Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from biasspark.config import GROUPS, Compare, list_first
from biasspark.metrics.comparisons.differences import LEAST_GROUPS

MOST_NAMED = 10


class Scope(NamedTuple):
    """What a model shares with the baseline.

    Attributes
    ----------
    model
        Which.
    n_rows
        Rows with a label that both score.
    n_groups
        The groups that these rows are in; None where there are no clusters.
    n_positive
        The positives among these rows; None where nobody counted them.
    """

    model: str
    n_rows: int
    n_groups: int | None = None
    n_positive: int | None = None


def scope_warnings(asked: Compare, found: Sequence[Scope]) -> Iterator[str]:
    """Give a sentence on the models that share no row with the baseline, or rows of one label, and on too few clusters.

    Parameters
    ----------
    asked : Compare
        Which models are compared, and by which clusters.
    found : sequence of Scope
        What each of them shares with the baseline, in their order.
    """
    apart = [own.model for own in found if not own.n_rows]
    if apart:
        yield f"compare: {_pair(asked, apart)}: no row with a label is scored by both, so nothing is compared."
    for label, lacking in (("positive", 0), ("negative", 1)):
        alike = [own.model for own in found if own.n_rows and own.n_positive == lacking * own.n_rows]
        if alike:
            yield (
                f"compare: {_pair(asked, alike)}: no row that both score is {label}, so no AUC has a value. "
                "Check [label]."
            )
    few: dict[int, list[str]] = {}
    for own in found:
        if own.n_rows and own.n_groups is not None and own.n_groups < LEAST_GROUPS:
            few.setdefault(own.n_groups, []).append(own.model)
    for n_groups, names in few.items():
        yield (
            f"compare: {_pair(asked, names)}: '{asked.cluster}' has so few values that only {n_groups} of "
            f"{asked.groups or GROUPS} groups have rows, and a verdict takes {LEAST_GROUPS}. Name another column, or "
            "take more `groups` if it has more values."
        )


def _pair(asked: Compare, names: Sequence[str]) -> str:
    return f"{list_first(names, MOST_NAMED)} with {asked.baseline}"


def unclustered_warnings(cluster: str | None, n_unclustered: int, n_rows: int) -> Iterator[str]:
    """Give a sentence on the rows without a cluster, if there are any."""
    if cluster is not None and n_unclustered:
        share = n_unclustered / n_rows
        said = "less than 1%" if share < 0.01 else f"{share:.0%}"
        yield (
            f"compare: '{cluster}' has no value on {said} of the rows ({n_unclustered:,} of {n_rows:,}). "
            "Each of them stands for itself."
        )
