"""Sums that are the same to the last bit on every run."""

from __future__ import annotations

from collections.abc import Callable

import pyspark.sql.functions as F
from pyspark.sql import Column


def add_up(values: Column | str, term: Callable[[Column], Column] = lambda value: value) -> Column:
    """Return the sum of an array, or of a term of each of its entries, as a DOUBLE and in its order."""
    return F.aggregate(values, F.lit(0.0), lambda total, value: total + term(value))


def add_up_about(values: Column | str, center: Column, term: Callable[[Column, Column], Column]) -> Column:
    """Return the sum of a term of each entry of an array and of a center, as a DOUBLE and in its order.

    Parameters
    ----------
    values : Column or str
        The array.
    center : Column
        What every entry is compared with, such as the mean of the array. It is computed once for the array.
    term : callable
        The term of (entry, center).

    Notes
    -----
    The center travels with the sum. If the term named it instead, the optimizer could replace its name by its
    expression, and a center that is a sum over the array would be added up again for each entry.
    """

    def step(state: Column, value: Column) -> Column:
        total = state["total"] + term(value, state["center"])
        return F.struct(total.alias("total"), state["center"].alias("center"))

    start = F.struct(F.lit(0.0).alias("total"), center.alias("center"))
    return F.aggregate(values, start, step, lambda state: state["total"])
