"""What public functions share that compute when they are called: frames that hold their rows, and warnings."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterable

import pyarrow as pa
from pyspark.sql import DataFrame

from biasspark.errors import InputWarning
from biasspark.tables.frames import to_frame
from biasspark.tables.schemas import Table
from biasspark.tables.spark_schemas import value_schema


def hold(df: DataFrame, table: Table, rows: pa.Table) -> DataFrame:
    """Return the rows of a small table as a DataFrame that holds them, in the session of another one."""
    return to_frame(df.sparkSession, rows, value_schema(table))


def warn(texts: Iterable[str]) -> None:
    """Give warnings by Python's ``warnings``, at the line outside of this package from which it was called."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("biasspark."):
        level, frame = level + 1, frame.f_back
    for text in texts:
        warnings.warn(text, InputWarning, stacklevel=level)
