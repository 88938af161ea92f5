"""Buckets of text lengths, in which labels are counted."""

from __future__ import annotations

from itertools import pairwise

import pyspark.sql.functions as F
from pyspark.sql import Column
from pyspark.sql.types import StructType

from biasspark.config import LabelBalance
from biasspark.corpus.values import column, number


def bucket_ends(balance: LabelBalance) -> tuple[tuple[int, int], ...]:
    """Return the least and the greatest length of every bucket; none where no length is known."""
    if balance.text is None and balance.length is None:
        return ()
    return tuple((low, high - 1) for low, high in pairwise(balance.buckets))


def bucket_of(balance: LabelBalance, schema: StructType) -> Column:
    """Return the bucket of a row, counted from 1; 0 where its length is unknown or in no bucket.

    A text is as long as it has characters (Unicode code points).
    """
    if balance.text is not None:
        length = F.char_length(column(balance.text))
    else:
        assert balance.length is not None
        length = number(balance.length, schema[balance.length].dataType)
    first, *others = balance.buckets
    bucket = F.when(length < first, F.lit(0))
    for place, edge in enumerate(others, 1):
        bucket = bucket.when(length < edge, F.lit(place))
    return bucket.otherwise(F.lit(0))
