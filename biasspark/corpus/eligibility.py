"""Which rows count, and why other rows are rejected."""

from __future__ import annotations

from collections.abc import Sequence

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql.types import DataType, DecimalType, DoubleType, FloatType, IntegralType, StringType, StructType

from biasspark.columns import ANNOTATION_OUT_OF_RANGE, MALFORMED, MODEL, REASON, ROW_ID, ROW_REASONS, SCORE_REASONS
from biasspark.config import Label, Measures
from biasspark.corpus.identity_sources import annotation_out_of_range
from biasspark.corpus.values import at_least, boolean, cast_like, column, first_true, known_number, number, outside

DUPLICATE = "_biasspark_duplicate"
"""BOOLEAN column that marks rows with a repeated id, if the configuration rejects them."""

REJECTS_PASS = "write the rejected rows, if there are any"
_N_PARTS = 64
"""Partitions in which the rejected rows of a reason are limited before they are brought together."""


def label_of(label: Label, schema: StructType) -> Column:
    """Return whether a row is positive: BOOLEAN, NULL where the label is unknown."""
    kind = schema[label.column].dataType
    if label.positive is not None:
        return is_one_of(label.positive, label.column, kind)
    if label.threshold is not None:
        return at_least(label.column, kind, label.threshold)
    if isinstance(kind, IntegralType | DecimalType):
        return F.when(column(label.column).isin(0, 1), column(label.column) == 1)
    return boolean(label.column, kind)


def row_reason(label: Label, schema: StructType, id_column: str | None) -> Column:
    """Return why a row is rejected for every model: 0, or the first of `ROW_REASONS` that applies, counted from 1."""
    kind = schema[label.column].dataType
    applies = {
        "malformed_row": F.col(MALFORMED) if MALFORMED in schema.names else F.lit(False),
        "null_id": column(id_column).isNull() if id_column else F.lit(False),
        "duplicate_id": F.coalesce(F.col(DUPLICATE), F.lit(False)) if DUPLICATE in schema.names else F.lit(False),
        "null_label": label_of(label, schema).isNull(),
        "label_out_of_range": outside(label.column, kind, label.range) if label.range else F.lit(False),
    }
    return first_true([(applies[reason], code) for code, reason in enumerate(ROW_REASONS, 1)], 0)


def score_reason(name: str, schema: StructType) -> Column:
    """Return why a row's score is rejected: 0, or the first of `SCORE_REASONS` that applies, counted from 1."""
    value = number(name, schema[name].dataType)
    applies = {
        "null_score": column(name).isNull(),
        "score_not_numeric": value.isNull(),
        "nan_score": F.isnan(value),
        "infinite_score": F.abs(value) == F.lit(float("inf")),
    }
    return first_true([(applies[reason], code) for code, reason in enumerate(SCORE_REASONS, 1)], 0)


def known_score(name: str, schema: StructType) -> Column:
    """Return a score as DOUBLE, NULL if it is rejected."""
    return F.when(score_reason(name, schema) == 0, number(name, schema[name].dataType))


def is_one_of(values: Sequence[str | bool | int | float], name: str, kind: DataType) -> Column:
    """Return whether a column holds one of the values, all of one type; NULL where it is NULL.

    A number is compared as the type of the column holds it: the float32 0.1 is more than 0.1. If the values are
    booleans or numbers, text such as ``TRUE`` or ``1.0`` is parsed; text that cannot be parsed matches nothing.
    """
    if isinstance(kind, FloatType | DoubleType):
        # In Spark -0.0 equals 0.0; in an embedded engine it does not.
        known = known_number(name, kind) + F.lit(0.0)
        return known.isin(*(cast_like(float(value) + 0.0, kind) for value in values))
    if not isinstance(kind, StringType) or isinstance(values[0], str):
        return column(name).isin(*values)
    read = boolean(name, kind) if isinstance(values[0], bool) else number(name, kind) + F.lit(0.0)
    return F.when(column(name).isNotNull(), F.coalesce(read.isin(*values), F.lit(False)))


def rejected_rows(corpus: DataFrame, measures: Measures, id_column: str | None, max_rows: int) -> DataFrame:
    """Return rejected rows as (row_id, model, reason), up to `max_rows` for each reason.

    The rows with the smallest hashes of their ids are kept. Cost: one scan, a shuffle of the rejected rows, and one of
    a few times `max_rows` rows.
    """
    row_id = column(id_column) if id_column else F.lit(None)
    rejects = F.inline(_rejects(measures, corpus.schema, id_column))
    rows = corpus.select(row_id.cast("string").alias(ROW_ID), rejects)
    # Rows without an id share one hash, so they are spread at random.
    part = F.when(F.col(ROW_ID).isNull(), F.floor(F.rand(0) * _N_PARTS)).otherwise(F.pmod("_hash", F.lit(_N_PARTS)))
    rows = rows.withColumn("_hash", F.xxhash64(ROW_ID)).withColumn("_part", part)
    for group in ((REASON, "_part"), (REASON,)):
        by_hash = Window.partitionBy(*group).orderBy("_hash", ROW_ID, MODEL)
        rows = rows.withColumn("_rank", F.row_number().over(by_hash)).where(F.col("_rank") <= max_rows)
    return rows.select(ROW_ID, MODEL, REASON)


def _rejects(measures: Measures, schema: StructType, id_column: str | None) -> Column:
    """Return the rejects of a row: one for the whole row, or one for each model and one for its annotations."""

    def reject(model: str | None, reason: Column) -> Column:
        return F.struct(F.lit(model).cast("string").alias(MODEL), reason.alias(REASON))

    def name(code: Column, reasons: tuple[str, ...]) -> Column:
        return F.element_at(F.array(*map(F.lit, reasons)), F.greatest(code, F.lit(1)).cast("int"))

    whole = row_reason(measures.label, schema, id_column)
    codes = {model: score_reason(score, schema) for model, score in measures.models.items()}
    is_out = annotation_out_of_range(measures.identities, schema)
    rejects = [F.when(whole > 0, reject(None, name(whole, ROW_REASONS)))]
    for model, code in codes.items():
        rejects.append(F.when((whole == 0) & (code > 0), reject(model, name(code, SCORE_REASONS))))
    rejects.append(F.when((whole == 0) & is_out, reject(None, F.lit(ANNOTATION_OUT_OF_RANGE))))
    return F.array_compact(F.array(*rejects))
