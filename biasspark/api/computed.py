"""What public functions share: frames of the kind that was given, and warnings."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterable

import pyarrow as pa
from pyspark.sql import DataFrame

from biasspark.api.frame_kinds import is_spark, like
from biasspark.api.record_batches import Frame
from biasspark.errors import InputWarning
from biasspark.session import describe
from biasspark.tables.frames import to_arrow
from biasspark.tables.schemas import Table
from biasspark.tables.spark_schemas import value_schema


def hold(df: Frame, table: Table, rows: pa.Table) -> Frame:
    """Return the rows of a table as a frame that holds them, of the kind of another one."""
    return like(df)(rows, value_schema(table))


def give(df: Frame, table: Table, rows: DataFrame) -> Frame:
    """Return the rows of a table as a frame of the kind of another one: lazy if that is Spark's, else computed."""
    if is_spark(df):
        return rows
    schema, is_new = table.arrow_schema, hasattr(rows, "toArrow")
    with describe(rows.sparkSession, f"compute {table.name}"):
        return hold(df, table, rows.toArrow().cast(schema) if is_new else to_arrow(rows, schema))


def warn(texts: Iterable[str]) -> None:
    """Give warnings by Python's ``warnings``, at the line outside of this package from which it was called."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("biasspark."):
        level, frame = level + 1, frame.f_back
    for text in texts:
        warnings.warn(text, InputWarning, stacklevel=level)
