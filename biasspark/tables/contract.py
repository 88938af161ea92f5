"""What a place must agree with before a run writes there: the declared columns; and how what stops it is told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from biasspark.config import redact
from biasspark.errors import BiasSparkError, find_condition_of_a_value
from biasspark.expressions.sql import quote_string
from biasspark.tables.schemas import RUN_DATE, RUN_ID, Column, Table

PARTITION = (RUN_DATE.name, RUN_ID.name)


def define_column(column: Column) -> str:
    """Return a column as a CREATE statement wants it, with its comment."""
    return f"{column.name} {column.type} COMMENT {quote_string(column.comment)}"


def list_types(schema: StructType) -> list[tuple[str, str]]:
    """Return (name, type as Spark SQL writes it) of every column."""
    return [(field.name, field.dataType.simpleString().upper()) for field in schema]


def list_columns(schema: StructType) -> str:
    """Return the columns of a schema as a message lists them."""
    return ", ".join(f"{name} {kind}" for name, kind in list_types(schema)) or "no columns"


def has_columns(found: StructType, table: Table) -> bool:
    """Say whether a schema has all columns of a table; a newer version may have added others."""
    return set(list_types(table.schema)) <= set(list_types(found))


def find_misfits(where: str, table: Table, found: StructType | None) -> list[str]:
    """Return a fault where a shared column has another type or the key is not there; new values may be missing."""
    if found is None:
        return []
    types = dict(list_types(found))
    wanted = [column for column in table.columns if column.name not in PARTITION]
    required = {"corpus", *table.key_columns}
    if all(types.get(c.name, None if c.name in required else c.type) == c.type for c in wanted):
        return []
    contract = StructType([column.field for column in wanted])
    return [
        f"{redact(where)}: its columns are not those of {table.name}. It has {list_columns(found)}. "
        f"The table has {list_columns(contract)}. Move it away, or choose another output."
    ]


def no_rows(spark: SparkSession, table: Table) -> DataFrame:
    """Return an empty table, without the Python worker that ``createDataFrame`` would start."""
    return spark.range(0).to(table.schema)


@contextmanager
def named_fault(place: str, act: str) -> Iterator[None]:
    """Turn whatever stops a block into one sentence that names the place and the cause."""
    try:
        yield
    except BiasSparkError:
        raise
    except Exception as error:
        raise BiasSparkError(
            f"{redact(place)}: could not be {act}, {redact(find_cause(error))}. Nothing was published. Mend the "
            "cause, then run again."
        ) from error


def find_cause(error: Exception) -> str:
    """Return the innermost cause that the JVM reports, in one line; its condition alone where it quotes a value."""
    if condition := find_condition_of_a_value(str(error)):
        return f"[{condition}]"
    lines = [
        line for line in str(error).splitlines() if line and not line.startswith("An error occurred while calling")
    ]
    causes = [line for line in lines if line.startswith("Caused by: ")] or lines[:1] or [type(error).__name__]
    return causes[-1].removeprefix("Caused by: ").removeprefix(": ").rstrip(".")
