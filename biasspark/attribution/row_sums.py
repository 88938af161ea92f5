"""The exact sums over rows of which segments and slices are judged: what Spark adds up, and how it is read back."""

from __future__ import annotations

import pyspark.sql.functions as F
from pyspark.sql import Column, Row

from biasspark.attribution.evidence import LossSums, NodeSums
from biasspark.attribution.moments import read_moments, read_whole, sum_moments, sum_whole

KIND = ("honest", "label")
"""Group by these, and by what is judged."""


def row_sums() -> list[Column]:
    """Return what to aggregate of ROWS of one kind: their number, their values and their losses."""
    loss = F.col("loss_doubled").cast("bigint")
    return [
        F.count(F.lit(1)).alias("n"),
        *sum_moments(F.col("value"), "value"),
        *sum_whole(loss, "loss"),
        *sum_whole(loss * loss, "loss_square"),
    ]


def read_row_sums(row: Row) -> NodeSums:
    """Return the sums of one kind of rows."""
    losses = LossSums(row["n"], read_whole(row, "loss"), read_whole(row, "loss_square"))
    return NodeSums.of(read_moments(row, "value", row["n"]), losses, honest=row["honest"], label=row["label"])
