"""Which bins the features have, and in which bin a row is."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql.types import StringType, StructType

from biasspark.config import Attribution
from biasspark.corpus.ordered import count_up_to
from biasspark.corpus.values import category, number, write_category
from biasspark.errors import InputError
from biasspark.expressions.sql import write_name
from biasspark.features import NULL_BIN, Feature, bin_name

MOST_CATEGORIES = 1000
"""A feature of more values splits nothing that a person could read."""

_BUCKETS, _ACCURACY = 64, 1000


def survey_features(corpus: DataFrame, attribution: Attribution) -> tuple[Feature, ...]:
    """Cut every feature into bins: numeric ones first, in the order of the configuration.

    A numeric feature has a bin for each of its values, or where there are more than ``tree.max_bins`` of them, one from
    each exact quantile to the next: the value of row ``floor(k N / max_bins)`` of the N rows in order, for every k,
    begins a bin. A categorical feature has a bin for each value, in the order of code points.

    Raises
    ------
    InputError
        If a categorical feature has more than 1,000 values.

    Notes
    -----
    Runs up to three Spark jobs when called, each a narrow scan: one for rough quantiles and NULLs, one that shuffles
    the distinct numbers, one that shuffles the distinct texts. No result depends on partitions. The driver receives no
    more than the bins.
    """
    schema = corpus.schema
    values = {name: number(name, schema[name].dataType) + F.lit(0.0) for name in attribution.numeric}
    texts = {name: category(name, schema[name].dataType) for name in attribution.categorical}
    if not (values or texts):
        return ()
    columns = [column.alias(bin_name(place)) for place, column in enumerate([*values.values(), *texts.values()])]
    narrow = corpus.select(*columns)
    asked = [_quantiles(bin_name(place)) for place in range(len(values))]
    nulls = [F.count_if(F.col(bin_name(place)).isNull()).alias(f"nulls_{place}") for place in range(len(columns))]
    found = narrow.agg(*asked, *nulls).collect()[0]
    buckets = [found[bin_name(place)] or [] for place in range(len(values))]
    edges = _find_edges(narrow, buckets, attribution.split.max_bins) if values else []
    kinds: list[tuple[str, tuple[str, ...] | tuple[float, ...]]] = list(zip(values, edges, strict=True))
    kinds += zip(texts, _list_categories(narrow, list(texts), len(values)), strict=True)
    return tuple(
        Feature(
            name=name,
            sql=_write_value(name, numeric=place < len(values), schema=schema),
            numeric=place < len(values),
            values=own,
            nullable=found[f"nulls_{place}"] > 0,
        )
        for place, (name, own) in enumerate(kinds)
    )


def bin_columns(features: Sequence[Feature], schema: StructType) -> list[Column]:
    """Return the bin of every feature on a row of the corpus, as INT."""
    found = []
    for place, feature in enumerate(features):
        read = number if feature.numeric else category
        value = read(feature.name, schema[feature.name].dataType)
        place_of = F.when(value.isNull(), F.lit(NULL_BIN)).otherwise(count_up_to(value, feature.values))
        found.append(place_of.cast("int").alias(bin_name(place)))
    return found


def _quantiles(name: str) -> Column:
    """Cut a feature roughly: that only spreads the work of the second job."""
    shares = [share / _BUCKETS for share in range(1, _BUCKETS)]
    return F.percentile_approx(name, shares, _ACCURACY).alias(name)


def _list_categories(narrow: DataFrame, names: Sequence[str], first: int) -> list[tuple[str, ...]]:
    """Return the values of every categorical feature; no more than a thousand and one of each reach the driver."""
    if not names:
        return []
    entries = [
        F.struct(F.lit(place).alias("feature"), F.col(bin_name(first + place)).alias("value"))
        for place in range(len(names))
    ]
    values = narrow.select(F.explode(F.array(*entries)).alias("entry")).select("entry.*").distinct()
    place = F.row_number().over(Window.partitionBy("feature").orderBy("value"))
    known = values.where(F.col("value").isNotNull()).withColumn("place", place)
    found: list[list[str]] = [[] for _ in names]
    for row in known.where(F.col("place") <= MOST_CATEGORIES + 1).select("feature", "value").collect():
        found[row["feature"]].append(row["value"])
    return [_in_order(own, name) for own, name in zip(found, names, strict=True)]


def _find_edges(narrow: DataFrame, buckets: Sequence[Sequence[float]], max_bins: int) -> list[tuple[float, ...]]:
    """Return where the bins of every numeric feature begin."""
    entries = [
        F.struct(
            F.lit(place).alias("feature"),
            count_up_to(F.col(bin_name(place)), sorted(set(cuts))).alias("bucket"),
            F.col(bin_name(place)).alias("value"),
        )
        for place, cuts in enumerate(buckets)
    ]
    values = narrow.select(F.explode(F.array(*entries)).alias("entry")).select("entry.*")
    counts = (
        values.where(F.col("value").isNotNull())
        .groupBy("feature", "bucket", "value")
        .agg(F.count(F.lit(1)).alias("n_rows"))
    )
    ranked = _before(counts, ("feature", "bucket"), "value").join(
        F.broadcast(_totals(counts)), on=["feature", "bucket"], how="inner"
    )
    before, cuts = F.col("n_lower") + F.col("n_before"), F.lit(max_bins).cast("bigint")
    cut = F.ceil(before * cuts / F.col("n_all"))
    begins = (cut >= 1) & (cut < cuts) & (cut * F.col("n_all") < (before + F.col("n_rows")) * cuts)
    chosen = ranked.where((F.col("n_distinct") <= cuts) | (before == 0) | begins)
    found: dict[int, list[float]] = {place: [] for place in range(len(buckets))}
    for row in chosen.select("feature", "value").collect():
        found[row["feature"]].append(row["value"])
    return [tuple(sorted(edges, key=lambda edge: (math.isnan(edge), edge))) for edges in found.values()]


def _totals(counts: DataFrame) -> DataFrame:
    """Return for each feature and bucket the rows in lower buckets, and the rows and values of the feature."""
    totals = counts.groupBy("feature", "bucket").agg(
        F.sum("n_rows").alias("n_rows"), F.count(F.lit(1)).alias("n_values")
    )
    every = Window.partitionBy("feature").rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    return _before(totals, ("feature",), "bucket").select(
        *("feature", "bucket", F.col("n_before").alias("n_lower")),
        F.sum("n_rows").over(every).alias("n_all"),
        F.sum("n_values").over(every).alias("n_distinct"),
    )


def _before(counts: DataFrame, within: tuple[str, ...], order: str) -> DataFrame:
    """Add the rows before each entry."""
    lower = Window.partitionBy(*within).orderBy(order).rowsBetween(Window.unboundedPreceding, -1)
    return counts.withColumn("n_before", F.coalesce(F.sum("n_rows").over(lower), F.lit(0).cast("bigint")))


def _in_order(values: Sequence[str], name: str) -> tuple[str, ...]:
    if len(values) > MOST_CATEGORIES:
        raise InputError(
            f"[attribution] categorical: '{name}' has more than {MOST_CATEGORIES:,} distinct values. A segment of so "
            "many tells a person nothing. Name another column, or cut it into groups by a view."
        )
    return tuple(sorted(values))


def _write_value(name: str, numeric: bool, schema: StructType) -> str:
    """Return a feature's value as SQL."""
    kind, written = schema[name].dataType, write_name(name)
    if not numeric:
        return write_category(name, kind)
    return f"try_cast(trim({written}) AS DOUBLE)" if isinstance(kind, StringType) else written
