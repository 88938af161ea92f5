"""Columns of the rows that are attributed: bins of features, groups of groupings, named segments, and the split.

The surveys list what the bins and the groups stand for; each runs Spark jobs when called.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql.types import StringType, StructType

from biasspark.columns import HONEST, NULL_GROUP, OTHER_GROUP, ROW_ID, SEGMENTS
from biasspark.config import Attribution, TreeSettings
from biasspark.corpus.survey import TASK_GROUP, merge_samples, quantiles_of, sample, sampling
from biasspark.corpus.values import as_category, category, column, number, write_category, write_number
from biasspark.errors import ABSENT, Fault, InputError, Key
from biasspark.expressions.conditions import MOST_BITS, meet
from biasspark.features import NULL_BIN, Condition, Feature, bin_name
from biasspark.session import expression
from biasspark.text import DECIMAL_POINT

MOST_CATEGORIES = 1000
"""A feature or a grouping of more values splits nothing that a person could read, and may be the text itself."""

MOST_GROUPS = 200
"""The most frequent values; all others are one group together."""

Grouping = tuple[str, ...]
"""The names of the groups by number: first `NULL_GROUP`, then the values by code points, and last `OTHER_GROUP`."""

_N_PARTS = 64
_HASHES = 1 << 30


def survey_features(corpus: DataFrame, attribution: Attribution) -> tuple[Feature, ...]:
    """Cut every feature into bins: numeric ones first, in the order of the configuration.

    A numeric feature has a bin for each of its values, or where there are more than ``tree.max_bins`` of them, one from
    each exact quantile to the next: the value of row ``floor(k N / max_bins)`` of the N rows in order, for every k,
    begins a bin. A categorical feature has a bin for each value, in the order of code points.

    Raises
    ------
    InputError
        If a categorical feature has more than 1,000 values, or a numeric one is text without a number.

    Notes
    -----
    Runs up to three Spark jobs, each a narrow scan: one for rough quantiles and NULLs, one that shuffles the distinct
    numbers, one that shuffles the distinct texts. No result depends on partitions. The driver receives the bins.
    """
    names, n_numeric = (*attribution.numeric, *attribution.categorical), len(attribution.numeric)
    if not names:
        return ()
    kinds = [corpus.schema[name].dataType for name in names]
    readers = [number] * n_numeric + [category] * (len(names) - n_numeric)
    values = [read(name, kind) for read, name, kind in zip(readers, names, kinds, strict=True)]
    values[:n_numeric] = [value + F.lit(0.0) for value in values[:n_numeric]]  # -0.0 becomes 0.0
    narrow = corpus.select(*(value.alias(bin_name(n)) for n, value in enumerate(values)))
    columns = [F.col(bin_name(n)) for n in range(len(names))]
    n_rows, n_known, cuts = _rough_quantiles(narrow, columns, n_numeric)
    if faults := [
        Fault(
            ("attribution", "numeric"),
            ABSENT,
            f"'{name}' is of type string, and no row has a number in it.",
            (
                *("Name it in ", Key(("attribution", "categorical"))),
                f" if its values are categories, or name another. {DECIMAL_POINT}",
            ),
        )
        for name, kind, n_values in zip(attribution.numeric, kinds, n_known, strict=False)
        if isinstance(kind, StringType) and not n_values
    ]:
        raise InputError(*faults)
    edges = _bin_edges(narrow, columns, cuts, attribution.split.max_bins)
    categories = _most_frequent(narrow, columns[n_numeric:], MOST_CATEGORIES + 1)
    if too_many := [
        name for name, texts in zip(attribution.categorical, categories, strict=True) if len(texts) > MOST_CATEGORIES
    ]:
        problem = f"'{too_many[0]}' has more than {MOST_CATEGORIES:,} distinct values. So many segments tell nothing."
        fix = "Name another column, or cut it into groups by a view."
        raise InputError(Fault(("attribution", "categorical"), ABSENT, problem, fix))
    writers = [write_number] * n_numeric + [write_category] * (len(names) - n_numeric)
    bins = zip(names, kinds, writers, [*edges, *map(sorted, categories)], n_known, strict=True)
    return tuple(
        Feature(name, write(name, kind), write is write_number, tuple(starts), n_values < n_rows)
        for name, kind, write, starts, n_values in bins
    )


def _rough_quantiles(
    narrow: DataFrame, columns: Sequence[Column], n_numeric: int
) -> tuple[int, list[int], list[list[float]]]:
    """Return the number of rows, of known values in each column, and rough quantiles of each numeric one."""
    counts = {"n_rows": F.count(F.lit(1))} | {f"n_{n}": F.count(value) for n, value in enumerate(columns)}
    samples = {f"sample_{n}": sample(value) for n, value in enumerate(columns[:n_numeric])}
    aggregates = [value.alias(name) for name, value in (counts | samples).items()]
    parts = narrow.withColumns(sampling()).groupBy(TASK_GROUP).agg(*aggregates)
    merged = [F.sum(name).alias(name) for name in counts] + [merge_samples(name).alias(name) for name in samples]
    (row,) = parts.agg(*merged).collect()
    values = (np.array(row[name], np.float64) for name in samples)
    cuts = [quantiles_of(of_column[~np.isnan(of_column)], _N_PARTS).tolist() for of_column in values]
    return row["n_rows"] or 0, [row[f"n_{n}"] or 0 for n in range(len(columns))], cuts


def bin_columns(features: Sequence[Feature], schema: StructType) -> list[Column]:
    """Return the bin of every feature on a row of the corpus, as INT."""
    bins = []
    for n, feature in enumerate(features):
        value = (number if feature.numeric else category)(feature.name, schema[feature.name].dataType)
        bin_ = F.when(value.isNull(), F.lit(NULL_BIN)).otherwise(count_up_to(value, feature.values))
        bins.append(bin_.cast("int").alias(bin_name(n)))
    return bins


def _bin_edges(
    narrow: DataFrame, columns: Sequence[Column], quantiles: Sequence[Sequence[float]], max_bins: int
) -> list[list[Any]]:
    """Return where the bins of every numeric feature begin.

    Its values are cut into parts at rough quantiles: they only spread the work, which is a running sum over values.
    """
    if not quantiles:
        return []
    parts = [count_up_to(value, sorted(set(cuts))) for value, cuts in zip(columns, quantiles, strict=False)]
    values = _stack([{"part": part, "value": value} for part, value in zip(parts, columns, strict=False)])
    by_value = narrow.select(values).where(F.col("value").isNotNull()).groupBy("number", "part", "value")
    counts = by_value.agg(F.count(F.lit(1)).alias("n_rows"))
    every = Window.partitionBy("number").rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    totals = counts.groupBy("number", "part").agg(F.sum("n_rows").alias("n_part"), F.count(F.lit(1)).alias("n_values"))
    totals = totals.select(
        "number",
        "part",
        _sum_before("n_part", "part", "number").alias("n_lower"),
        F.sum("n_part").over(every).alias("n_all"),
        F.sum("n_values").over(every).alias("n_distinct"),
    )
    ranked = counts.join(F.broadcast(totals), on=["number", "part"], how="inner").withColumn(
        "n_before", F.col("n_lower") + _sum_before("n_rows", "value", "number", "part")
    )
    # The rows of a value are n_before ... n_before + n_rows - 1. It begins a bin if row floor(k N / max_bins) is one.
    before, n_bins = F.col("n_before"), F.lit(max_bins).cast("bigint")
    k = F.ceil(before * n_bins / F.col("n_all"))
    begins = (k >= 1) & (k < n_bins) & (k * F.col("n_all") < (before + F.col("n_rows")) * n_bins)
    chosen = ranked.where((F.col("n_distinct") <= n_bins) | (before == 0) | begins)
    edges = _collect(chosen, len(quantiles))
    return [sorted(values, key=lambda value: (math.isnan(value), value)) for values in edges]


def _sum_before(name: str, order: str, *within: str) -> Column:
    """Return the sum of a column over the entries before each."""
    before = Window.partitionBy(*within).orderBy(order).rowsBetween(Window.unboundedPreceding, -1)
    return F.coalesce(F.sum(name).over(before), F.lit(0).cast("bigint"))


def group_name(number: int) -> str:
    """Return the column that holds the group of a row in a grouping."""
    return f"group_{number}"


def survey_groupings(corpus: DataFrame, groupings: Mapping[str, str]) -> tuple[Grouping, ...]:
    """List the groups of every grouping: its 200 most frequent values, of equally frequent ones the first in order.

    A value that is itself written ``(null)`` or ``(other)`` belongs to the group of that name, NaN to that of NULL, and
    -0.0 is 0.0.

    Raises
    ------
    InputError
        If a grouping has more than 1,000 values.

    Notes
    -----
    Runs one Spark job, a narrow scan and a shuffle of distinct values.
    """
    values = [_group_value(corpus, text) for text in groupings.values()]
    frequent = _most_frequent(corpus, [F.when(value != OTHER_GROUP, value) for value in values], MOST_CATEGORIES + 1)
    if faults := [
        Fault(
            ("attribution", "groupings", name),
            text,
            f"It has more than {MOST_CATEGORIES:,} distinct values. It is probably an id, a number or the text itself.",
            "Name another column, or cut its values into fewer groups.",
        )
        for (name, text), texts in zip(groupings.items(), frequent, strict=True)
        if len(texts) > MOST_CATEGORIES
    ]:
        raise InputError(*faults)
    return tuple((NULL_GROUP, *sorted(texts[:MOST_GROUPS]), OTHER_GROUP) for texts in frequent)


def group_columns(corpus: DataFrame, groupings: Mapping[str, str], groups: tuple[Grouping, ...]) -> list[Column]:
    """Return the number of the group of a row in every grouping, as INT."""
    return [
        _group_of(_group_value(corpus, text), names).cast("int").alias(group_name(n))
        for n, (text, names) in enumerate(zip(groupings.values(), groups, strict=True))
    ]


def _group_of(value: Column, groups: Grouping) -> Column:
    known = groups[1:-1]
    index = count_up_to(value, known)
    is_known = F.element_at(F.array(*map(F.lit, ["", *known])), index + 1) == value
    return F.when(value.isNull(), F.lit(0)).when(is_known, index).otherwise(F.lit(len(groups) - 1))


def _group_value(corpus: DataFrame, text: str) -> Column:
    """Return the value as text; NULL if it reads as the group of NULL."""
    grouping = expression(corpus, text)
    value = as_category(grouping, corpus.select(grouping).schema[0].dataType)
    return F.when(value != NULL_GROUP, value)


def payload_columns(
    attribution: Attribution, features: Sequence[Feature], corpus: DataFrame, id_column: str
) -> dict[str, Column]:
    """Return the columns that travel with each row, by name: only what a part needs, since all are shuffled."""
    payload = {bin_name(n): bin_ for n, bin_ in enumerate(bin_columns(features, corpus.schema))}
    if attribution.tree or attribution.slice_search:
        payload[HONEST] = only_estimates(id_column, attribution.split)
    if attribution.write_examples or attribution.pairs or attribution.compare:
        payload[ROW_ID] = column(id_column)
    if attribution.segments:
        payload[SEGMENTS] = _pack(expression(corpus, text) for text in attribution.segments.values())
    return {name: value.alias(name) for name, value in payload.items()}


def only_estimates(id_column: str, split: TreeSettings) -> Column:
    """Return whether a row estimates and does not grow trees: by a seeded hash of its id as text."""
    hashed = F.pmod(F.xxhash64(F.lit(split.seed).cast("bigint"), column(id_column).cast("string")), F.lit(_HASHES))
    return hashed < F.lit(round(split.honest_fraction * _HASHES))


def flag_rows(
    corpus: DataFrame, features: Sequence[Feature], id_column: str, split: TreeSettings, conditions: Sequence[Condition]
) -> tuple[DataFrame, list[Column]]:
    """Return the corpus with words of flags, and the columns that hold these.

    Bit k of the first word is set where a row only estimates and meets the k-th condition, up to the 63rd, and so on.
    The names of the new columns are not those of any lake.
    """
    bins = {f"biasspark {bin_name(n)}": bin_ for n, bin_ in enumerate(bin_columns(features, corpus.schema))}
    split_name = f"biasspark {HONEST}"
    marked = corpus.withColumns(bins | {split_name: only_estimates(id_column, split)})
    chunks = [conditions[start : start + MOST_BITS] for start in range(0, len(conditions), MOST_BITS)]
    met = (F.when(F.col(split_name), meet(chunk, features, list(map(F.col, bins)))) for chunk in chunks)
    words = {f"biasspark word {n}": F.coalesce(word, F.lit(0)) for n, word in enumerate(met)}
    return marked.select("*", *(word.alias(name) for name, word in words.items())), list(map(F.col, words))


def _pack(flags: Iterable[Column]) -> Column:
    """Return a word whose bit k is set where the k-th flag is; one that is NULL is false."""
    bits = (F.when(flag, F.lit(1 << k)).otherwise(F.lit(0)) for k, flag in enumerate(flags))
    return reduce(Column.bitwiseOR, bits, F.lit(0)).cast("bigint")


def count_up_to(value: Column, ordered: Sequence[str] | Sequence[float], start: int = 0) -> Column:
    """Return how many of the ascending values are not above a value, which is not NULL: a binary search written out.

    Texts are compared by code points, as Python orders them, and NaN is above all numbers. The count begins at `start`.
    """
    if not ordered:
        return F.lit(start)
    middle = len(ordered) // 2
    below = count_up_to(value, ordered[:middle], start)
    above = count_up_to(value, ordered[middle + 1 :], start + middle + 1)
    return F.when(value < F.lit(ordered[middle]), below).otherwise(above)


def _most_frequent(frame: DataFrame, columns: Sequence[Column], most: int) -> list[list[str]]:
    """Return the most frequent values of every column, the most frequent first, NULL left out.

    Of equally frequent ones the first in order comes first.
    """
    if not columns:
        return []
    values = frame.select(_stack([{"value": value} for value in columns])).where(F.col("value").isNotNull())
    counts = values.groupBy("number", "value").agg(F.count(F.lit(1)).alias("n_rows"))
    by_size = Window.partitionBy("number").orderBy(F.col("n_rows").desc(), "value")
    frequent = counts.withColumn("rank", F.row_number().over(by_size)).where(F.col("rank") <= most)
    return _collect(frequent.orderBy("rank"), len(columns))


def _stack(rows: Sequence[Mapping[str, Column]]) -> Column:
    """Turn a row into several, each with its number and some columns."""
    structs = [
        F.struct(F.lit(n).alias("number"), *(value.alias(name) for name, value in row.items()))
        for n, row in enumerate(rows)
    ]
    return F.inline(F.array(*structs))


def _collect(rows: DataFrame, n_columns: int) -> list[list[Any]]:
    """Return the values of each number."""
    values: list[list[Any]] = [[] for _ in range(n_columns)]
    for row in rows.select("number", "value").collect():
        values[row["number"]].append(row["value"])
    return values
