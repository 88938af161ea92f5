"""Columns declared in Spark SQL, ``id BIGINT, score DOUBLE``, and their Arrow types. No Spark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

_BASIC_TYPES: dict[str, pa.DataType] = {
    "BIGINT": pa.int64(),
    "BINARY": pa.binary(),
    "BOOLEAN": pa.bool_(),
    "DATE": pa.date32(),
    "DECIMAL(38,0)": pa.decimal128(38, 0),
    "DOUBLE": pa.float64(),
    "INT": pa.int32(),
    "STRING": pa.string(),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
}
ARROW_TYPES: dict[str, pa.DataType] = {
    **_BASIC_TYPES,
    **{f"ARRAY<{name}>": pa.list_(kind) for name, kind in _BASIC_TYPES.items()},
    "MAP<STRING,BIGINT>": pa.map_(pa.string(), pa.int64()),
}
_SQL_NAMES = {kind: name for name, kind in _BASIC_TYPES.items()}


def arrow_schema(declared: str) -> pa.Schema:
    """Return declared columns as an Arrow schema."""
    return pa.schema([(name, ARROW_TYPES[kind]) for name, kind in map(str.split, declared.split(", "))])


def sql_type(kind: pa.DataType) -> str:
    """Return the Spark SQL name of an Arrow type; its Arrow name if no declared column has the type."""
    if pa.types.is_list(kind):
        return f"ARRAY<{sql_type(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"MAP<{sql_type(kind.key_type)},{sql_type(kind.item_type)}>"
    return _SQL_NAMES.get(kind) or str(kind).upper()


def to_batch(rows: Iterable[Sequence[Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Return one or more rows as a record batch."""
    columns = zip(zip(*rows, strict=True), schema.types, strict=True)
    return pa.RecordBatch.from_arrays([pa.array(values, kind) for values, kind in columns], schema=schema)


def to_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Return the rows of a table as dicts. Maps are dicts too; older versions of pyarrow return pairs."""
    rows: list[dict[str, Any]] = table.to_pylist()
    for name in (field.name for field in table.schema if pa.types.is_map(field.type)):
        for row in rows:
            row[name] = None if row[name] is None else dict(row[name])
    return rows
