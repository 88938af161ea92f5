"""Groups of rows for the jackknife: by a hash, independent of the physical order of rows."""

from __future__ import annotations

import pyspark.sql.functions as F
from pyspark.sql import Column
from pyspark.sql.types import StructType

from biasspark.corpus.values import category, column

UNCLUSTERED = "unclustered"
"""True on a row without a cluster."""


def cluster_of(name: str | None, schema: StructType) -> Column | None:
    """Return the cluster of a row as STRING: -0.0 is 0.0, NaN is NULL; None if there is no cluster column."""
    return None if name is None else category(name, schema[name].dataType)


def is_unclustered(cluster: Column | None) -> Column:
    """Return whether a row has no cluster; always false if there is no cluster column."""
    return F.lit(False) if cluster is None else cluster.isNull()


def group_of(id_column: str, cluster: Column | None, groups: int) -> Column:
    """Return the number of a row's group, INT from 0 to groups - 1: by its cluster, by its id where it has none.

    A row without a cluster joins none, even if its id is also the name of a cluster.
    """
    row_id = column(id_column).cast("string")
    hashed = F.xxhash64(row_id)
    if cluster is not None:
        hashed = F.when(cluster.isNull(), F.xxhash64(F.lit("row"), row_id)).otherwise(F.xxhash64(cluster))
    return F.pmod(hashed, F.lit(groups)).cast("int")
