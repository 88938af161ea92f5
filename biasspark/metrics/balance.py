"""Label balance: how often each identity is positive, by text length, and what would balance it (Mitigating)."""

from __future__ import annotations

from collections.abc import Sequence

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, Window

from biasspark.columns import EVERY_LENGTH, IDENTITY, OVERALL

_WHOLE = "decimal(38,0)"


def label_balance(labels: DataFrame, buckets: Sequence[tuple[int, int]]) -> DataFrame:
    """Return one row for each (identity, bucket of text lengths), and the mitigation plan.

    Parameters
    ----------
    labels : DataFrame
        `Ranking.labels`.
    buckets : sequence of (int, int)
        The least and the greatest length of every bucket.

    Returns
    -------
    DataFrame
        The table ``label_balance``, less the run's columns. The bucket ``(all)`` holds every labelled row, of whatever
        length; ``(overall)`` is every row.

    Notes
    -----
    To bring the share of positives of an identity (P of n rows) down to that of all rows in the bucket (P* of n*), the
    least number of negatives a with P / (n + a) <= P* / n* must be added: a = max(0, ceil(P·n* / P*) - n). It is
    computed in whole numbers, and is NULL where there is no positive at all in the bucket. For ``(all)`` it is the sum
    over the buckets; where there are none, that of all rows. Lazy; no shuffle.
    """
    counts = labels.coalesce(1).select(
        IDENTITY, "bucket", (F.col("n_negative") + F.col("n_positive")).alias("n_rows"), "n_positive"
    )
    sums = [F.sum(count).alias(count) for count in ("n_rows", "n_positive")]
    whole = counts.groupBy(IDENTITY).agg(F.lit(None).cast("int").alias("bucket"), *sums)
    rows = counts.where(F.col("bucket") > 0).unionByName(whole).coalesce(1)
    planned = _plan(rows)
    if buckets:
        in_buckets = F.sum(F.when(F.col("bucket").isNotNull(), F.col("n_negatives_to_add")))
        planned = planned.withColumn("in_buckets", in_buckets.over(Window.partitionBy(IDENTITY)))
        of_every_length = F.when(F.col("goal") > 0, F.coalesce("in_buckets", F.lit(0)))
        chosen = F.when(F.col("bucket").isNull(), of_every_length).otherwise(F.col("n_negatives_to_add"))
        planned = planned.withColumn("n_negatives_to_add", chosen)
    low, high = (_of_bucket([ends[side] for ends in buckets], "int") for side in (0, 1))
    name = F.coalesce(_of_bucket([f"{low}-{high}" for low, high in buckets], "string"), F.lit(EVERY_LENGTH))
    return planned.select(
        IDENTITY,
        name.alias("bucket"),
        low.alias("length_low"),
        high.alias("length_high"),
        "n_rows",
        "n_positive",
        _share(F.col("n_positive"), F.col("n_rows")).alias("positive_rate"),
        _share(F.col("all_positive"), F.col("all_rows")).alias("overall_positive_rate"),
        "n_negatives_to_add",
    )


def _plan(rows: DataFrame) -> DataFrame:
    of_all = Window.partitionBy("bucket")
    for name, count in (("all_rows", "n_rows"), ("all_positive", "n_positive")):
        rows = rows.withColumn(name, F.max(F.when(F.col(IDENTITY) == OVERALL, F.col(count))).over(of_all))
    positive, all_rows, all_positive = (F.col(name).cast(_WHOLE) for name in ("n_positive", "all_rows", "all_positive"))
    pairs = rows.withColumns({"pairs": positive * all_rows + all_positive - 1, "goal": all_positive})
    enough = F.expr("CASE WHEN goal > 0 THEN pairs div goal END")
    return pairs.withColumn("n_negatives_to_add", F.greatest(enough - F.col("n_rows"), F.when(enough >= 0, F.lit(0))))


def _of_bucket(values: Sequence[int | str], kind: str) -> Column:
    """Return what belongs to a row's bucket; NULL for the row of every length."""
    return F.element_at(F.array(F.lit(None).cast(kind), *map(F.lit, values)), F.coalesce(F.col("bucket"), F.lit(0)) + 1)


def _share(part: Column, whole: Column) -> Column:
    return F.try_divide(part.cast("double"), whole.cast("double"))
