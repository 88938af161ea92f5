"""Declared tables in Spark: their schemas, whether a table that is there fits, and small ones to and from Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructField, StructType

from biasspark.ddl import sql_type, to_rows
from biasspark.errors import redact
from biasspark.expressions.sql import quote_string
from biasspark.tables.schemas import CORPUS, RUN_DATE, RUN_ID, Column, Table


def spark_field(column: Column) -> StructField:
    """Return a column as a nullable Spark field with its comment."""
    return StructField(column.name, from_arrow_type(column.arrow_type), True, {"comment": column.comment})


def spark_schema(table: Table) -> StructType:
    """Return all columns of a table."""
    return _schema(table.columns)


def value_schema(table: Table) -> StructType:
    """Return the columns that a stage computes: all but run_date, corpus and run_id."""
    return _schema((*table.key, *table.values))


def _schema(columns: Iterable[Column]) -> StructType:
    return StructType(list(map(spark_field, columns)))


PARTITION = (RUN_DATE.name, RUN_ID.name)
NO_NAN = "no_nan_from_"
"""How the names of the checks for NaN begin."""


def define_column(column: Column) -> str:
    """Return a column as a CREATE statement wants it, with its comment."""
    return f"{column.name} {column.type} COMMENT {quote_string(column.comment)}"


def column_types(schema: StructType | pa.Schema) -> dict[str, str]:
    """Return the type of every column as Spark SQL writes it."""
    if isinstance(schema, StructType):
        return {field.name: field.dataType.simpleString().upper() for field in schema}
    return {field.name: sql_type(field.type) for field in schema}


def list_columns(types: Mapping[str, str]) -> str:
    """Return columns as a message lists them."""
    return ", ".join(f"{name} {kind}" for name, kind in types.items()) or "no columns"


def schema_faults(path: str, table: Table, types: Mapping[str, str] | None) -> list[str]:
    """Return a fault where a shared column has another type or a column of the key is missing.

    The table that is there, if any, has columns of these types. It may lack values that are new, and have columns of a
    newer version.
    """
    declared = {column.name: column.type for column in table.columns if column.name not in PARTITION}
    required = {CORPUS.name, *table.key_columns}
    if types is None or all(
        types.get(name, None if name in required else kind) == kind for name, kind in declared.items()
    ):
        return []
    return [
        f"{redact(path)}: its columns are not those of {table.name}. It has {list_columns(types)}. The table has "
        f"{list_columns(declared)}. Move it away, or choose another output."
    ]


def no_rows(spark: SparkSession, table: Table) -> DataFrame:
    """Return an empty table, without the Python worker that ``createDataFrame`` would start."""
    nulls = (F.lit(None).cast(field.dataType).alias(field.name) for field in spark_schema(table))
    return spark.range(0).select(*nulls)


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


def _exact(field: pa.Field) -> SparkColumn:
    """Return a column of which Python gets the value itself: a time would come in some time zone."""
    column = F.col(field.name)
    return F.unix_micros(column).alias(field.name) if pa.types.is_timestamp(field.type) else column


def _read(value: Any, kind: pa.DataType) -> Any:
    return list(value.items()) if pa.types.is_map(kind) and value is not None else value


def required_columns(table: Table) -> set[str]:
    """Return the columns that every row must have."""
    return {RUN_DATE.name, CORPUS.name, *(table.key_columns if table.unique else ()), RUN_ID.name}


def no_nan(columns: Sequence[Column]) -> dict[str, str]:
    """Return by its name the check that no DOUBLE of columns that came together is NaN; NULL passes with any engine."""
    doubles = [column.name for column in columns if column.type == "DOUBLE"]
    checks = " AND ".join(f"({name} IS NULL OR NOT isnan({name}))" for name in doubles)
    return {f"{NO_NAN}{doubles[0]}": checks} if doubles else {}
