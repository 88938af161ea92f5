"""Columns as numbers, booleans and text. Text that cannot be cast becomes NULL: an error message would quote it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import TypeVar

import pyspark.sql.functions as F
from pyspark.sql import Column
from pyspark.sql import types as T
from pyspark.sql.utils import is_remote

from biasspark.expressions.embedded_sql import without_suffix
from biasspark.expressions.sql import quote_name, write_name

V = TypeVar("V")
_TRUE, _FALSE = ("t", "true", "y", "yes"), ("f", "false", "n", "no")


def column(name: str) -> Column:
    """Return the top-level column of that name, even if the name contains dots."""
    return F.col(quote_name(name))


def try_cast(name: str, kind: str) -> Column:
    """Cast a column of text to a type; NULL if it cannot be cast."""
    text = f"trim({quote_name(name)})"
    if kind == "DOUBLE" and is_remote():  # an embedded engine parses 1.5d differently from Spark
        text = without_suffix(text)
    return F.expr(f"try_cast({text} AS {kind})")


def number(name: str, kind: T.DataType) -> Column:
    """Return a column as DOUBLE: NaN stays NaN, text that is not a number is NULL."""
    if isinstance(kind, T.StringType):
        return try_cast(name, "DOUBLE")
    # An embedded engine rounds decimals of more than 15 digits twice, but their texts once.
    is_long = isinstance(kind, T.DecimalType) and kind.precision > 15 and is_remote()
    return (column(name).cast("string") if is_long else column(name)).cast("double")


def known_number(name: str, kind: T.DataType) -> Column:
    """Return a column as DOUBLE, with NULL for NaN, which is not a valid label or annotation."""
    value = number(name, kind)
    return F.nanvl(value, F.lit(None).cast("double")) if isinstance(kind, T.FractionalType | T.StringType) else value


def boolean(name: str, kind: T.DataType) -> Column:
    """Return a column as BOOLEAN; NULL for text that Spark's cast does not accept."""
    return _parse_words(name, (*_TRUE, "1"), (*_FALSE, "0")) if isinstance(kind, T.StringType) else column(name)


def at_least(name: str, kind: T.DataType, threshold: float) -> Column:
    """Return whether a boolean is true, or a number reaches the threshold; NULL for other values."""
    if isinstance(kind, T.BooleanType):
        return column(name)
    reaches = known_number(name, kind) >= cast_like(threshold, kind)
    if not isinstance(kind, T.StringType):
        return reaches
    # Letters sort after digits and signs. Words are not parsed as numbers first: each would throw an exception.
    return F.coalesce(F.when(column(name) < "A", reaches), _parse_words(name, _TRUE, _FALSE), reaches)


def is_no_number(name: str) -> Column:
    """Return whether a string is neither a number nor blank; not true for NULL."""
    return (F.trim(column(name)) != "") & number(name, T.StringType()).isNull()


def is_unreadable(name: str, threshold: float) -> Column:
    """Return whether a string is neither a number nor a boolean nor blank; not true for NULL."""
    return at_least(name, T.StringType(), threshold).isNull() & is_no_number(name)


def outside(name: str, kind: T.DataType, bounds: Sequence[float]) -> Column:
    """Return whether a number lies outside a closed interval; false for NULL, and for a type without numbers."""
    if not isinstance(kind, T.NumericType | T.StringType):
        return F.lit(False)
    value = known_number(name, kind)
    low, high = (cast_like(bound, kind) for bound in bounds)
    return F.coalesce((value < low) | (value > high), F.lit(False))


def category(value: Column, kind: T.DataType) -> Column:
    """Return a value of that type as STRING: -0.0 is 0.0, and NaN is NULL."""
    if isinstance(kind, T.FloatType | T.DoubleType):
        known = F.nanvl(value.cast("double"), F.lit(None).cast("double"))
        return (known + F.lit(0.0)).cast(kind).cast("string")
    return value.cast("string")


def write_category(name: str, kind: T.DataType) -> str:
    """Return `category` as SQL, for Spark and for DuckDB."""
    written = write_name(name)
    if isinstance(kind, T.FloatType | T.DoubleType):
        return (
            f"CAST(CASE WHEN {written} = 0 THEN abs({written}) WHEN NOT isnan({written}) THEN {written} END AS STRING)"
        )
    return written if isinstance(kind, T.StringType) else f"CAST({written} AS STRING)"


def write_number(name: str, kind: T.DataType) -> str:
    """Return `number` as SQL, for Spark and for DuckDB; numbers stay as they are."""
    written = write_name(name)
    return f"try_cast(trim({written}) AS DOUBLE)" if isinstance(kind, T.StringType) else written


def cast_like(value: float, kind: T.DataType) -> Column:
    """Return a number rounded to the type of a column: the float32 0.7 is less than 0.7."""
    literal = F.lit(float(value))
    return literal.cast("float").cast("double") if isinstance(kind, T.FloatType) else literal


def first_true(cases: Sequence[tuple[Column, int]], otherwise: int) -> Column:
    """Return as BIGINT the number of the first true condition: one CASE keeps the generated code small."""
    first, *more = ((condition, F.lit(value).cast("bigint")) for condition, value in cases)
    chosen = F.when(*first)
    for case in more:
        chosen = chosen.when(*case)
    return chosen.otherwise(F.lit(otherwise).cast("bigint"))


def combine(operator: Callable[[V, V], V], parts: Sequence[V]) -> V:
    """Combine columns or frames as a balanced tree: a chain of hundreds would be hundreds of levels deep."""
    while len(parts) > 1:
        parts = [reduce(operator, parts[n : n + 2]) for n in range(0, len(parts), 2)]
    return parts[0]


def _parse_words(name: str, true: Sequence[str], false: Sequence[str]) -> Column:
    """Return a string as BOOLEAN by these words. Spark's cast is slow: it throws for each string that it refuses."""
    word = F.lower(F.btrim(column(name), F.lit(" \t\r\n")))
    return F.when(word.isin(*true), F.lit(True)).when(word.isin(*false), F.lit(False))
