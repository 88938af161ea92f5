"""The labels of every identity by text length, counted in Spark SQL: for when nothing is ranked in numpy."""

from __future__ import annotations

import pyspark.sql.functions as F
from pyspark.sql import DataFrame

from biasspark.columns import IDENTITY
from biasspark.corpus.codebook import Codebook
from biasspark.corpus.states import field, name_of, single_states


def label_counts(examples: DataFrame, codebook: Codebook) -> DataFrame:
    """Return the labels of every identity by bucket: see `Ranking.labels`. Scans the corpus."""
    n_buckets = codebook.n_buckets or 0
    _, *members = single_states(codebook)
    bucket = field("bucket", 0, codebook) if n_buckets else F.lit(0)
    is_positive = field("label", 0, codebook) == 1
    counted = examples.where(field("row_reason", 0, codebook) == 0).groupBy(bucket.cast("int").alias("bucket"))
    in_buckets = counted.agg(
        *(
            F.array(*(F.count_if(label & state) for state in (F.lit(True), *members))).alias(name)
            for name, label in (("n_negative", ~is_positive), ("n_positive", is_positive))
        )
    )
    by_number = in_buckets.select("bucket", F.posexplode(F.arrays_zip("n_negative", "n_positive")).alias("number", "n"))
    names = codebook.names[: codebook.first_pair]
    every = examples.sparkSession.range((n_buckets + 1) * len(names)).select(
        F.floor(F.col("id") / len(names)).cast("int").alias("bucket"),
        (F.col("id") % len(names)).cast("int").alias("number"),
    )
    counts = every.join(by_number, on=["bucket", "number"], how="left")
    return counts.select(
        name_of(F.col("number"), names).alias(IDENTITY),
        "bucket",
        *(F.coalesce(F.col("n")[name], F.lit(0)).cast("bigint").alias(name) for name in ("n_negative", "n_positive")),
    )
