"""Columns as Spark SQL declares them, ``id BIGINT, score DOUBLE``: their names, and the same in Arrow. No Spark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

_ARROW_TYPES = {
    "ARRAY<BIGINT>": pa.list_(pa.int64()),
    "BIGINT": pa.int64(),
    "BINARY": pa.binary(),
    "BOOLEAN": pa.bool_(),
    "DATE": pa.date32(),
    "DECIMAL(38,0)": pa.decimal128(38, 0),
    "DOUBLE": pa.float64(),
    "INT": pa.int32(),
    "STRING": pa.string(),
}


def column_names(declared: str) -> list[str]:
    """Return the names of declared columns."""
    return [column.split()[0] for column in declared.split(", ")]


def arrow_schema(declared: str) -> pa.Schema:
    """Return declared columns as Arrow has them."""
    return pa.schema([(name, _ARROW_TYPES[kind]) for name, kind in map(str.split, declared.split(", "))])


def to_batch(rows: Iterable[Sequence[Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Return rows, at least one, as a batch of these columns."""
    columns = zip(zip(*rows, strict=True), schema.types, strict=True)
    return pa.RecordBatch.from_arrays([pa.array(values, kind) for values, kind in columns], schema=schema)
