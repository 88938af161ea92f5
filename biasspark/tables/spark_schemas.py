"""Declared tables as Spark schemas, comments included."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructField, StructType

from biasspark.tables.schemas import Column, Table


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
