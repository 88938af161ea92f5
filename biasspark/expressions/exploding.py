"""Rows that become several: one for each of the values that they have."""

from __future__ import annotations

from collections.abc import Sequence

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame


def each_present(rows: DataFrame, name: str, values: Sequence[Column]) -> DataFrame:
    """Return each row once for every value that is not NULL, with that value in a new column.

    Where the elements of an array are left out before it is exploded, Spark infers that some are left, and computes
    them once more to filter by it, from the columns of the corpus; and what leaves them out is not compiled.
    """
    return rows.select("*", F.explode(F.array(*values)).alias(name)).where(F.col(name).isNotNull())
