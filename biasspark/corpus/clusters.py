"""Groups of rows for the jackknife: by a hash, so not by where a row lies."""

from __future__ import annotations

import pyspark.sql.functions as F
from pyspark.sql import Column

from biasspark.corpus.values import column


def group_of(id_column: str, cluster: str | None, groups: int) -> Column:
    """Return the number of a row's group, INT from 0 to groups - 1: by its cluster, by its id where that is NULL."""
    names = [column(name).cast("string") for name in (cluster, id_column) if name]
    return F.pmod(F.xxhash64(F.coalesce(*names)), F.lit(groups)).cast("int")
