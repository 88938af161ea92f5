"""Small tables between Arrow and a session's DataFrames, exactly, on every version of Spark."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import StructType

from biasspark.ddl import to_rows


def to_arrow(frame: DataFrame, schema: pa.Schema) -> pa.Table:
    """Collect a small frame as Arrow, in the columns and types of a schema; columns that it lacks are NULL."""
    fields = [field for field in schema if field.name in set(frame.columns)]
    rows = frame.select(*map(_exact, fields)).collect()
    values = [{field.name: _read(row[field.name], field.type) for field in fields} for row in rows]
    return pa.Table.from_pylist(values, schema)


def to_frame(spark: SparkSession, rows: pa.Table, schema: StructType) -> DataFrame:
    """Return rows as a DataFrame of a schema, in one partition, with the comments of the schema."""
    if not len(rows):  # of which Connect would infer the types
        frame = spark.createDataFrame([], schema)
    elif hasattr(DataFrame, "toArrow"):
        frame = spark.createDataFrame(rows)
    else:  # Spark 3.5
        values = (row.values() for row in to_rows(rows))
        frame = spark.createDataFrame(list(map(tuple, values)), schema)
    return frame.coalesce(1).to(schema)


def _exact(field: pa.Field) -> Column:
    """Return a column of which Python gets the value itself: a time would come in some time zone."""
    column = F.col(field.name)
    return F.unix_micros(column).alias(field.name) if pa.types.is_timestamp(field.type) else column


def _read(value: Any, kind: pa.DataType) -> Any:
    return list(value.items()) if pa.types.is_map(kind) and value is not None else value
