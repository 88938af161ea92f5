"""Sums that are the same to the last bit on every run."""

from __future__ import annotations

from collections.abc import Callable

import pyspark.sql.functions as F
from pyspark.sql import Column


def add_up(values: Column | str, term: Callable[[Column], Column] = lambda value: value) -> Column:
    """Return the sum of an array, or of a term of each of its entries, as a DOUBLE and in its order."""
    return F.aggregate(values, F.lit(0.0), lambda total, value: total + term(value))
