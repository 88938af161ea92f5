"""Which rows count, and why the others do not: labels, scores, and the reasons of rejects."""

from __future__ import annotations

from collections.abc import Sequence

import pyspark.sql.functions as F
from pyspark.sql import Column
from pyspark.sql.types import DoubleType, FloatType, NumericType, StringType, StructType

from biasspark.columns import ROW_REASONS, SCORE_REASONS
from biasspark.config import Label
from biasspark.corpus.values import at_least, boolean, column, known_number, number, outside

DUPLICATE = "_biasspark_duplicate"
"""BOOLEAN column that marks rows of a repeated id, where the configuration rejects them."""


def label_of(label: Label, schema: StructType) -> Column:
    """Return whether a row is positive: BOOLEAN, NULL where the label is unknown."""
    kind = schema[label.column].dataType
    if label.positive is not None:
        value = known_number(label.column, kind) if isinstance(kind, FloatType | DoubleType) else column(label.column)
        return value.isin(_like_column(label.positive, is_text=isinstance(kind, StringType)))
    if label.threshold is not None:
        return at_least(label.column, kind, label.threshold)
    return boolean(label.column, kind)


def row_reason(label: Label, schema: StructType, id_column: str | None) -> Column:
    """Return why a row is rejected for every model: 0, or the first of `ROW_REASONS` that applies, counted from 1."""
    kind = schema[label.column].dataType
    ranged = label.range is not None and isinstance(kind, NumericType | StringType)
    applies = {
        "null_id": column(id_column).isNull() if id_column else F.lit(False),
        "duplicate_id": F.coalesce(F.col(DUPLICATE), F.lit(False)) if DUPLICATE in schema.names else F.lit(False),
        "null_label": label_of(label, schema).isNull(),
        "label_out_of_range": outside(known_number(label.column, kind), label.range) if ranged else F.lit(False),
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


def usable_score(name: str, schema: StructType) -> Column:
    """Return a score as DOUBLE, 0 where it is rejected, so that it is never NULL and crosses to Python as it is."""
    value = number(name, schema[name].dataType)
    return F.when(score_reason(name, schema) == 0, value).otherwise(F.lit(0.0))


def _first_that_applies(conditions: Sequence[Column]) -> Column:
    chosen = F.lit(0)
    for code, condition in reversed(list(enumerate(conditions, 1))):
        chosen = F.when(condition, F.lit(code)).otherwise(chosen)
    return chosen


def _like_column(values: Sequence[object], *, is_text: bool) -> list[object]:
    return [_as_text(value) for value in values] if is_text else list(values)


def _as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
