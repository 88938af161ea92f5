"""What is not told: values that rest on too few rows, and all numbers of groups that are too small.

Said once, on the few frames of which all tables are made. What is NULL there is NULL in whatever follows from it, and
left out of every sum, minimum and mean.

A group is the rows of an identity with a label and a score in a slice, those of its background, which are a group of
their own, or those of a slice. Where a group is smaller than the minimum, the counts of its identity are withheld with
its values: subtracted from those of the slice, they would tell it. An empty background gives nobody away. What other
tables, nights and overlapping identities tell when they are subtracted from each other is not looked for.
"""

from __future__ import annotations

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, Window

from biasspark.columns import (
    BACKGROUND_NEGATIVE,
    BACKGROUND_POSITIVE,
    BELOW_MINIMUM_ROWS,
    FOUR_CELLS,
    IDENTITY,
    MODEL,
    OVERALL,
    SLICE,
    SUBGROUP_NEGATIVE,
    SUBGROUP_POSITIVE,
    WITHHELD,
)
from biasspark.config import EvidenceSettings, Privacy
from biasspark.metrics.statistics import auc_columns
from biasspark.metrics.suite import BY_NAME, metric_of_pair
from biasspark.tables.schemas import U_STATISTICS, Table

_REASON = "reason"
_TOLD = ("crossed", "length_low", "length_high")
"""Columns that say nothing of the rows of a group."""


def require_rows(statistics: DataFrame, evidence: EvidenceSettings | None) -> DataFrame:
    """Return u_statistics without AUCs, and variances, over cells that have fewer rows than their metric needs.

    Counts and U stay: they are what they are, whatever the number. ``reason`` becomes ``below_minimum_rows``
    where there was a value. Lazy; no shuffle.
    """
    if evidence is None:
        return statistics
    needed = F.lit(evidence.min_rows)
    for metric in evidence.metrics:
        needed = F.when(metric_of_pair() == F.lit(metric), F.lit(evidence.least_rows(metric))).otherwise(needed)
    too_few = F.col(_REASON).isNull() & (F.least("n_low", "n_high") < needed)
    return _hide(statistics, too_few, auc_columns(statistics), BELOW_MINIMUM_ROWS)


def withhold_statistics(statistics: DataFrame, privacy: Privacy | None) -> DataFrame:
    """Return u_statistics without any number of identities and slices whose group, or background, is too small.

    Lazy; shuffles the statistics, which do not grow with the corpus.
    """
    if privacy is None:
        return statistics
    of_identity = Window.partitionBy(MODEL, SLICE, IDENTITY)

    n_rows = F.col("n_low") + F.col("n_high")
    within, outside = (
        F.max(F.when(BY_NAME[metric].is_of_row, n_rows)).over(of_identity)
        for metric in ("subgroup_auc", "background_auc")
    )
    group = F.coalesce(F.when(F.col(IDENTITY) == OVERALL, n_rows), within)
    background = F.coalesce(outside, F.lit(0))
    sized = statistics.withColumn("is_small", _is_small(group, background, privacy))
    return _hide(sized, F.col("is_small"), _numbers_of(U_STATISTICS), WITHHELD).drop("is_small")


def withhold_reached(reached: DataFrame, privacy: Privacy | None) -> DataFrame:
    """Return `Ranking.reached` without the counts of identities and slices whose group, or background, is too small.

    Lazy; no shuffle.
    """
    if privacy is None:
        return reached
    size = {cell: F.element_at(cell, 1) for cell in FOUR_CELLS}
    subgroup = size[SUBGROUP_NEGATIVE] + size[SUBGROUP_POSITIVE]
    background = size[BACKGROUND_NEGATIVE] + size[BACKGROUND_POSITIVE]
    # (overall) has its rows in the background.
    group = F.when(F.col(IDENTITY) == OVERALL, background).otherwise(subgroup)
    small = reached.withColumn("is_small", _is_small(group, background, privacy))
    told = {cell: F.when(~F.col("is_small"), F.col(cell)) for cell in FOUR_CELLS}
    return small.withColumns(told).drop("is_small")


def withhold_rows(rows: DataFrame, table: Table, privacy: Privacy | None) -> DataFrame:
    """Return the rows of a table, each of a group of ``n_rows``, without the numbers of those that are too small.

    What is left of ``(overall)`` without the group counts as its background. Adds the column ``reason``, NULL where
    nothing is withheld. Lazy; shuffles the rows where there is a minimum.
    """
    rows = rows.withColumn(_REASON, F.lit(None).cast("string"))
    if privacy is None:
        return rows
    siblings = Window.partitionBy(*(name for name in table.key_columns if name != IDENTITY))
    overall = F.max(F.when(F.col(IDENTITY) == OVERALL, F.col("n_rows"))).over(siblings)
    sized = rows.withColumn("is_small", _is_small(F.col("n_rows"), overall - F.col("n_rows"), privacy))
    return _hide(sized, F.col("is_small"), _numbers_of(table), WITHHELD).drop("is_small")


def _is_small(group: Column, background: Column, privacy: Privacy) -> Column:
    least = privacy.min_group_rows
    return (group < least) | ((background > 0) & (background < least))


def _numbers_of(table: Table) -> tuple[str, ...]:
    return tuple(column.name for column in table.values if column.name not in (*_TOLD, _REASON))


def _hide(rows: DataFrame, where: Column, names: tuple[str, ...], reason: str) -> DataFrame:
    """Return the rows with some columns NULL where a condition holds, and with the reason for it."""
    told = {name: F.when(~where, F.col(name)) for name in names if name in rows.columns}
    return rows.withColumns(told | {_REASON: F.when(where, F.lit(reason)).otherwise(F.col(_REASON))})
