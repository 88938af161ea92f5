"""Groups of rows for the jackknife: by a hash, so not by where a row lies."""

from __future__ import annotations

import pyspark.sql.functions as F
from pyspark.sql import Column

from biasspark.corpus.values import column


def group_of(id_column: str, cluster: str | None, groups: int) -> Column:
    """Return the number of a row's group, INT from 0 to groups - 1: by its cluster, by its id where that is NULL.

    A row without a cluster is in none, also where its id reads as the name of one.
    """
    row_id = column(id_column).cast("string")
    hashed = F.xxhash64(row_id)
    if cluster is not None:
        named = column(cluster).cast("string")
        hashed = F.when(named.isNull(), F.xxhash64(F.lit("row"), row_id)).otherwise(F.xxhash64(named))
    return F.pmod(hashed, F.lit(groups)).cast("int")
