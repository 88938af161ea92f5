"""Check that a table that is there already has the declared columns."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from biasspark.ddl import sql_type
from biasspark.errors import redact
from biasspark.expressions.sql import quote_string
from biasspark.tables.schemas import CORPUS, RUN_DATE, RUN_ID, Column, Table
from biasspark.tables.spark_schemas import spark_schema

PARTITION = (RUN_DATE.name, RUN_ID.name)


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
