"""Groups of rows for the jackknife: by a hash, so not by where a row lies."""

from __future__ import annotations

import pyspark.sql.functions as F
from pyspark.sql import Column

from biasspark.corpus.values import column

UNCLUSTERED = "unclustered"
"""True on a row without a cluster."""


def is_unclustered(cluster: str | None) -> Column:
    """Return whether a row has no cluster: its value is NULL. Where nothing is clustered no row is said to lack one."""
    return F.lit(False) if cluster is None else column(cluster).isNull()


def group_of(id_column: str, cluster: str | None, groups: int) -> Column:
    """Return the number of a row's group, INT from 0 to groups - 1: by its cluster, by its id where that is NULL.

    A row without a cluster is in none, also where its id reads as the name of one.
    """
    row_id = column(id_column).cast("string")
    hashed = F.xxhash64(row_id)
    if cluster is not None:
        alone = F.xxhash64(F.lit("row"), row_id)
        hashed = F.when(is_unclustered(cluster), alone).otherwise(F.xxhash64(column(cluster).cast("string")))
    return F.pmod(hashed, F.lit(groups)).cast("int")
