"""Tables of a declared schema as Arrow: built from arrays, without Spark."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from biasspark.arrays import Flags
from biasspark.tables.schemas import Table


class Masked(NamedTuple):
    """Values of a column of which some are NULL."""

    values: Any
    is_null: Flags


def masked(values: Any, is_null: Flags) -> Masked:
    """Return values of a column of which some are NULL."""
    return Masked(values, is_null)


def to_table(table: Table, **columns: Any) -> pa.Table:
    """Return rows of a declared table, less the columns of the run, in the order of its columns.

    The values of each column are an array, a list, `masked` values, or one value for all rows. None and NaN are NULL,
    and zeros have no sign. A column that is missing or not declared is a `ValueError`.
    """
    n_rows = max((len(_values(column)) for column in columns.values() if _is_array(_values(column))), default=1)
    schema = table.arrow_schema
    if set(columns) != set(schema.names):
        raise ValueError(f"{table.name}: columns {sorted(set(columns) ^ set(schema.names))} do not fit.")
    return pa.table([_to_arrow(columns[field.name], field.type, n_rows) for field in schema], schema=schema)


def _values(column: Any) -> Any:
    return column.values if isinstance(column, Masked) else column


def _is_array(values: Any) -> bool:
    return isinstance(values, np.ndarray | list)


def _to_arrow(column: Any, kind: pa.DataType, n_rows: int) -> pa.Array:
    values, is_null = column if isinstance(column, Masked) else (column, None)
    if not _is_array(values):
        return pa.array([values] * n_rows, kind)
    if pa.types.is_floating(kind):
        values = np.asarray(values, np.float64) + 0.0  # no -0.0
        is_null = np.isnan(values) if is_null is None else np.isnan(values) | is_null
    return pa.array(values, kind, mask=is_null)
