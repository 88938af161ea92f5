"""Partitions of the rows into named groups, for crosses: a column or an expression, its most frequent values."""

from __future__ import annotations

from collections.abc import Mapping

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, Window

from biasspark.columns import NULL_GROUP, OTHER_GROUP
from biasspark.corpus.ordered import count_up_to
from biasspark.corpus.values import as_category

MOST_GROUPS = 200
"""The most frequent values; what is past them is one group together."""

Grouping = tuple[str, ...]
"""The names of the groups by number: first `NULL_GROUP`, then the values by code points, and last `OTHER_GROUP`."""


def group_name(place: int) -> str:
    """Return the column that holds the group of a row."""
    return f"group_{place}"


def survey_groupings(corpus: DataFrame, groupings: Mapping[str, str]) -> tuple[Grouping, ...]:
    """List the groups of every grouping: its 200 most frequent values, of equally frequent ones the first in order.

    A value that is itself written ``(null)`` or ``(other)`` belongs to the group of that name, NaN to that of NULL, and
    -0.0 is 0.0.

    Notes
    -----
    Runs one Spark job when called, a narrow scan and a shuffle of distinct values.
    """
    if not groupings:
        return ()
    entries = [
        F.struct(F.lit(place).alias("grouping"), _value(corpus, text).alias("value"))
        for place, text in enumerate(groupings.values())
    ]
    values = corpus.select(F.explode(F.array(*entries)).alias("entry")).select("entry.*")
    counts = (
        values.where(F.col("value") != OTHER_GROUP).groupBy("grouping", "value").agg(F.count(F.lit(1)).alias("n_rows"))
    )
    by_size = Window.partitionBy("grouping").orderBy(F.col("n_rows").desc(), "value")
    chosen = counts.withColumn("place", F.row_number().over(by_size)).where(F.col("place") <= MOST_GROUPS)
    found: dict[int, list[str]] = {place: [] for place in range(len(groupings))}
    for row in chosen.select("grouping", "value").collect():
        found[row["grouping"]].append(row["value"])
    return tuple((NULL_GROUP, *sorted(own), OTHER_GROUP) for own in found.values())


def group_columns(corpus: DataFrame, groupings: Mapping[str, str], groups: tuple[Grouping, ...]) -> list[Column]:
    """Return the number of the group of a row in every grouping, as INT."""
    return [
        _group_of(_value(corpus, text), own).cast("int").alias(group_name(place))
        for place, (text, own) in enumerate(zip(groupings.values(), groups, strict=True))
    ]


def _group_of(value: Column, groups: Grouping) -> Column:
    known = groups[1:-1]
    place = count_up_to(value, known)
    same = F.element_at(F.array(*map(F.lit, ["", *known])), place + 1) == value
    return F.when(value.isNull(), F.lit(0)).when(same, place).otherwise(F.lit(len(groups) - 1))


def _value(corpus: DataFrame, text: str) -> Column:
    """Return the value as text; one that reads as the group of NULL is in it."""
    value = as_category(F.expr(text), corpus.select(F.expr(text)).schema[0].dataType)
    return F.when(value != NULL_GROUP, value)
