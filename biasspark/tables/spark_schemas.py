"""Declared tables in Spark: their schemas, checks of existing tables, and conversion to and from Arrow."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pyarrow as pa
import pyspark.sql.functions as F
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
    return StructType(list(map(spark_field, table.columns)))


def value_schema(table: Table) -> StructType:
    """Return the columns that a stage computes: all but run_date, corpus and run_id."""
    return StructType(list(map(spark_field, (*table.key, *table.values))))


PARTITION = (RUN_DATE.name, RUN_ID.name)


def define_column(column: Column, required: Collection[str] = ()) -> str:
    """Return a column for a CREATE statement, with its comment; NOT NULL if it is `required`."""
    not_null = " NOT NULL" if column.name in required else ""
    return f"{column.name} {column.type}{not_null} COMMENT {quote_string(column.comment)}"


def column_types(schema: StructType | pa.Schema) -> dict[str, str]:
    """Return the type of every column as Spark SQL writes it."""
    if isinstance(schema, StructType):
        return {field.name: field.dataType.simpleString().upper() for field in schema}
    return {field.name: sql_type(field.type) for field in schema}


def list_columns(types: Mapping[str, str]) -> str:
    """Format columns for a message."""
    return ", ".join(f"{name} {kind}" for name, kind in types.items()) or "no columns"


def schema_faults(path: str, table: Table, types: Mapping[str, str] | None) -> list[str]:
    """Return a fault if a table has a column of another type, or lacks one of the key. `types` is None without one."""
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
    """Return an empty table, without starting a Python worker as ``createDataFrame`` does."""
    nulls = (F.lit(None).cast(field.dataType).alias(field.name) for field in spark_schema(table))
    return spark.range(0).select(*nulls)


def to_arrow(frame: DataFrame, schema: pa.Schema) -> pa.Table:
    """Collect a small frame as Arrow, in the columns and types of a schema. Missing columns are NULL."""
    fields = [field for field in schema if field.name in set(frame.columns)]
    columns = [  # times as microseconds: Python would get them in some time zone
        F.unix_micros(field.name).alias(field.name) if pa.types.is_timestamp(field.type) else F.col(field.name)
        for field in fields
    ]
    rows = [row.asDict() for row in frame.select(*columns).collect()]
    for name in (field.name for field in fields if pa.types.is_map(field.type)):
        for row in rows:
            row[name] = None if row[name] is None else list(row[name].items())
    return pa.Table.from_pylist(rows, schema)


def to_frame(spark: SparkSession, rows: pa.Table, schema: StructType) -> DataFrame:
    """Return rows as a DataFrame with the types and comments of a schema."""
    if not len(rows):  # Connect would infer the types
        frame = spark.createDataFrame([], schema)
    elif hasattr(DataFrame, "toArrow"):
        frame = spark.createDataFrame(rows)
    else:  # Spark 3.5
        values = (row.values() for row in to_rows(rows))
        frame = spark.createDataFrame(list(map(tuple, values)), schema)
    return frame.to(schema)


def required_columns(table: Table) -> set[str]:
    """Return the columns that are never NULL."""
    return {RUN_DATE.name, CORPUS.name, *(table.key_columns if table.unique else ()), RUN_ID.name}
