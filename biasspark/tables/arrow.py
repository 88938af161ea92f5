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
    is_null: Flags | None = None


def to_table(table: Table, **columns: Any) -> pa.Table:
    """Return rows of a declared table, less the columns of the run, in the order of its columns.

    The values of each column are an array, a list, `Masked` values, or one value for all rows. None and NaN are NULL,
    and zeros have no sign. A column that is missing or not declared is a `ValueError`.
    """
    schema = table.arrow_schema
    if set(columns) != set(schema.names):
        raise ValueError(f"{table.name}: columns {sorted(set(columns) ^ set(schema.names))} do not fit.")
    given = {name: column if isinstance(column, Masked) else Masked(column) for name, column in columns.items()}
    n_rows = max((len(values) for values, _ in given.values() if isinstance(values, np.ndarray | list)), default=1)
    arrays = []
    for field in schema:
        values, is_null = given[field.name]
        if not isinstance(values, np.ndarray | list):
            values = [values] * n_rows
        if pa.types.is_floating(field.type):
            values = np.asarray(values, np.float64) + 0.0  # no -0.0
            is_null = np.isnan(values) if is_null is None else np.isnan(values) | is_null
        arrays.append(pa.array(values, field.type, mask=is_null))
    return pa.table(arrays, schema=schema)
