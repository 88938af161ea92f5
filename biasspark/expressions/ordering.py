"""Values in an order of their own, which is not that of the alphabet."""

from __future__ import annotations

from collections.abc import Iterable

import pyspark.sql.functions as F
from pyspark.sql import Column


def place_among(values: Iterable[str], column: Column) -> Column:
    """Return at which place in a list the value of a column stands, from 1 on; 0 where it does not, NULL for NULL.

    It is called by its name in SQL, since the function of PySpark 3.5 finds literals alone.
    """
    return F.call_function("array_position", F.array(*map(F.lit, values)), column)
