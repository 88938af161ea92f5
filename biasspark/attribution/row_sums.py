"""ROWS, of which trees are grown and slices searched, and exact sums over them: as Spark adds up, and as read back.

ROWS have a row for each tree in which an example counts: ``tree`` INT from 0; ``label`` and ``honest`` BOOLEAN, the
latter whether it estimates and does not search; ``value`` DOUBLE within ±64; ``loss_doubled`` BIGINT, four times the
AUC loss of the example; and ``bin_0``, ``bin_1``, ... INT, the bins of the features.
"""

from __future__ import annotations

import pyspark.sql.functions as F
from pyspark.sql import Column, Row

from biasspark.attribution.evidence import LossSums, NodeSums
from biasspark.attribution.moments import read_moments, read_whole, sum_moments, sum_whole

KIND = ("honest", "label")
"""Group by these, and by what is judged."""


SUM_BITS = 62
"""Of a sum of values in whole units, BIGINT."""


def in_units(shift: int) -> Column:
    """Return a row's value in whole units of 2^-shift."""
    return F.rint(F.col("value") * F.lit(2.0**shift)).cast("bigint")


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
