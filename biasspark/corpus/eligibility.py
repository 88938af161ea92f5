"""Which rows count, and why the others do not: labels, scores, and the reasons of rejects."""

from __future__ import annotations

from collections.abc import Sequence

import pyspark.sql.functions as F
from pyspark.sql import Column
from pyspark.sql.types import DataType, DoubleType, FloatType, IntegralType, NumericType, StringType, StructType

from biasspark.columns import MALFORMED, ROW_REASONS, SCORE_REASONS
from biasspark.config import Label
from biasspark.corpus.values import as_held, at_least, boolean, column, known_number, number, outside

DUPLICATE = "_biasspark_duplicate"
"""BOOLEAN column that marks rows of a repeated id, where the configuration rejects them."""


def label_of(label: Label, schema: StructType) -> Column:
    """Return whether a row is positive: BOOLEAN, NULL where the label is unknown."""
    kind = schema[label.column].dataType
    if label.positive is not None:
        return _is_one_of(label.positive, label.column, kind)
    if label.threshold is not None:
        return at_least(label.column, kind, label.threshold)
    if isinstance(kind, IntegralType):
        return F.when(column(label.column).isin(0, 1), column(label.column) == 1)
    return boolean(label.column, kind)


def row_reason(label: Label, schema: StructType, id_column: str | None) -> Column:
    """Return why a row is rejected for every model: 0, or the first of `ROW_REASONS` that applies, counted from 1."""
    kind = schema[label.column].dataType
    bounds = label.range if isinstance(kind, NumericType | StringType) else None
    applies = {
        "malformed_row": F.col(MALFORMED) if MALFORMED in schema.names else F.lit(False),
        "null_id": column(id_column).isNull() if id_column else F.lit(False),
        "duplicate_id": F.coalesce(F.col(DUPLICATE), F.lit(False)) if DUPLICATE in schema.names else F.lit(False),
        "null_label": label_of(label, schema).isNull(),
        "label_out_of_range": outside(label.column, kind, bounds) if bounds else F.lit(False),
    }
    return _first_that_applies([applies[reason] for reason in ROW_REASONS])


def score_reason(name: str, schema: StructType) -> Column:
    """Return why a row's score is rejected: 0, or the first of `SCORE_REASONS` that applies, counted from 1."""
    value = number(name, schema[name].dataType)
    applies = {
        "null_score": column(name).isNull(),
        "score_not_numeric": value.isNull(),
        "nan_score": F.isnan(value),
        "infinite_score": F.abs(value) == F.lit(float("inf")),
    }
    return _first_that_applies([applies[reason] for reason in SCORE_REASONS])


def known_score(name: str, schema: StructType) -> Column:
    """Return a score as DOUBLE, NULL where it is rejected."""
    return F.when(score_reason(name, schema) == 0, number(name, schema[name].dataType))


def _first_that_applies(conditions: Sequence[Column]) -> Column:
    chosen = F.lit(0)
    for code, condition in reversed(list(enumerate(conditions, 1))):
        chosen = F.when(condition, F.lit(code)).otherwise(chosen)
    return chosen


def _is_one_of(values: Sequence[str | bool | int | float], name: str, kind: DataType) -> Column:
    """Return whether a column holds one of the values, all of one kind; NULL where it is NULL.

    A number among them counts as the column holds it: the float32 that is written 0.1 is more than 0.1.
    Among booleans or numbers a text counts as what it reads as, ``TRUE`` or ``1.0``, and otherwise as none of them.
    """
    if isinstance(kind, FloatType | DoubleType):
        return known_number(name, kind).isin(*(as_held(float(value), kind) for value in values))
    if not isinstance(kind, StringType) or isinstance(values[0], str):
        return column(name).isin(*values)
    read = boolean(name, kind) if isinstance(values[0], bool) else number(name, kind)
    return F.when(column(name).isNotNull(), F.coalesce(read.isin(*values), F.lit(False)))
