"""On what a comparison rests: how many rows both models score, and in how many groups they are; what to look at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pyspark.sql.functions as F
from pyspark.sql import DataFrame

from biasspark.columns import ALL_ROWS, IDENTITY, MODEL, OVERALL, SLICE
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
        The groups that these rows are in; None where rows are not grouped.
    """

    model: str
    n_rows: int
    n_groups: int | None = None


def scopes(compared: DataFrame) -> DataFrame:
    """Return the fields of `Scope`, one row per model, of what `name_models` returns. Lazy and narrow."""
    whole = compared.where((F.col(SLICE) == F.lit(ALL_ROWS)) & (F.col(IDENTITY) == F.lit(OVERALL)))
    return whole.select(MODEL, (F.col("n_low") + F.col("n_high")).alias("n_rows"), "n_groups")


def scope_warnings(asked: Compare, found: Sequence[Scope]) -> Iterator[str]:
    """Give a sentence on the models that share no row with the baseline, and one wherever clusters are too few.

    Parameters
    ----------
    asked : Compare
        Which models are compared, and by which clusters.
    found : sequence of Scope
        What there is of them. A model that is not among them shares nothing.
    """
    by_model = {own.model: own for own in found}
    apart = [name for name in asked.models if name not in by_model or not by_model[name].n_rows]
    if apart:
        yield f"compare: {_pair(asked, apart)}: no row with a label is scored by both, so nothing is compared."
    if asked.cluster is None:
        return
    few: dict[int, list[str]] = {}
    for name in asked.models:
        n_groups = None if name in apart else by_model[name].n_groups
        if n_groups is not None and n_groups < LEAST_GROUPS:
            few.setdefault(n_groups, []).append(name)
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
