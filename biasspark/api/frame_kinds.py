"""Frames of any kind: where the rows of a call come in, and where its results go out as the same kind, with warnings.

Rows that are not Spark's go to the engine as Parquet in a temporary folder, which is several times as fast as to send
them, and gives each column the type that it has in a file.
"""

from __future__ import annotations

import inspect
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import date
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.dataset
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from biasspark.api.record_batches import Frame, is_of, is_parquet, is_spark, read_batches, spark_schema_of
from biasspark.config import Corpus
from biasspark.corpus.read import read_corpus
from biasspark.errors import ABSENT, Fault, InputError, InputWarning
from biasspark.interrupts import interrupted_by
from biasspark.session import build_session, describe, is_connect, is_embedded, is_session_there
from biasspark.session.engines import find_session
from biasspark.tables.schemas import Table
from biasspark.tables.spark_schemas import to_arrow, to_frame, value_schema

_MIN_GROUP, _MAX_GROUP = 100_000, 1_000_000  # rows of a row group


@contextmanager
def spark_rows(df: Frame) -> Iterator[DataFrame]:
    """Give the rows of a frame as a DataFrame of Spark, for a block.

    Those of another kind are given in the session that is there. Without one, the embedded engine is started if it is
    installed, else local Spark. Raises as `read_batches`, and `ConfigError` if there is no session, and no engine is
    installed.
    """
    if is_spark(df):
        with interrupted_by(signal.SIGINT):
            yield df
        return
    batches = None if is_parquet(df) else read_batches(df)
    spark = find_session() if is_session_there() else build_session("biasspark")
    with interrupted_by(signal.SIGINT):
        if batches is None:
            yield read_corpus(spark, Corpus(name="df", path=str(df)), date.min)
            return
        schema = spark_schema_of(batches.schema)
        if not _sees_folders(spark):
            yield to_frame(spark, batches.read_all(), schema)
            return
        with TemporaryDirectory(prefix="biasspark-") as folder:
            _write_parquet(batches, folder)
            # Without a scheme, a path of Spark may be on another file system.
            yield spark.read.schema(schema).parquet(folder if is_embedded(spark) else f"file:{folder}")


def _sees_folders(spark: SparkSession) -> bool:
    """Return whether the workers of a session see the folders of this process."""
    return is_embedded(spark) or (not is_connect(spark) and (spark.conf.get("spark.master") or "").startswith("local"))


def _write_parquet(batches: pa.RecordBatchReader, folder: str) -> None:
    # Without the schema of Arrow, by which the embedded engine would read other types than Spark.
    options = pa.dataset.ParquetFileFormat().make_write_options(store_schema=False)
    groups = {"min_rows_per_group": _MIN_GROUP, "max_rows_per_group": _MAX_GROUP}
    pa.dataset.write_dataset(batches, folder, format="parquet", file_options=options, **groups)


def collect_columns(df: Frame, schema: pa.Schema, name: str) -> pa.Table:
    """Return the columns of a schema, in its types, from a small frame. Those that it lacks are NULL."""
    if is_spark(df):
        with describe(df.sparkSession, f"collect the {name}"):
            return to_arrow(df, schema)
    rows = read_batches(df, name).read_all()
    missing = pa.chunked_array([pa.nulls(len(rows))])
    columns = [rows[column] if column in rows.column_names else missing for column in schema.names]
    try:
        cast = [column.cast(kind) for column, kind in zip(columns, schema.types, strict=True)]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        rule = "a column has another type than in the tables of biasspark."
        raise InputError(Fault((name,), ABSENT, rule, "Give the table as it was returned.")) from None
    return pa.table(cast, schema=schema)


def collect_first(df: Frame, n_rows: int, name: str) -> list[dict[str, Any]]:
    """Return the first rows of a frame, with all its columns."""
    if not is_spark(df):
        rows: list[dict[str, Any]] = read_batches(df, name).read_all().slice(0, n_rows).to_pylist()
        return rows
    with describe(df.sparkSession, f"collect the first {n_rows:,} rows"):
        return [row.asDict() for row in df.limit(n_rows).collect()]


def like(df: Frame) -> Callable[[pa.Table, StructType], Frame]:
    """Return what makes a frame of the kind of another one, from rows and their schema in Spark."""
    if is_spark(df):
        return lambda rows, schema: to_frame(df.sparkSession, rows, schema)
    if is_of(df, "pandas"):
        return lambda rows, _: _to_pandas(rows)
    if is_of(df, "polars"):
        return lambda rows, _: sys.modules["polars"].from_arrow(rows)
    return lambda rows, _: rows


def _to_pandas(rows: pa.Table) -> Frame:
    """Return rows in pandas; whole numbers and booleans, some of which may be missing, in its nullable types.

    Whole numbers that are decimals in Arrow are Int64 where all fit, else Python integers.
    """
    pd = sys.modules["pandas"]
    nullable = {pa.int32(): pd.Int32Dtype(), pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    frame = rows.to_pandas(types_mapper=nullable.get)
    for name in [field.name for field in rows.schema if pa.types.is_decimal(field.type) and field.type.scale == 0]:
        whole = [None if value is None else int(value) for value in rows[name].to_pylist()]
        fits = all(value is None or abs(value) < 2**63 for value in whole)
        frame[name] = pd.Series(whole, frame.index, "Int64" if fits else object)
    return frame


def hold(df: Frame, table: Table, rows: pa.Table) -> Frame:
    """Return the rows of a table as a frame that holds them, of the kind of another one."""
    return like(df)(rows, value_schema(table))


def give(df: Frame, table: Table, rows: DataFrame) -> Frame:
    """Return the rows of a table as a frame of the kind of another one: lazy if that is Spark's, else computed."""
    if is_spark(df):
        return rows
    schema, is_new = table.arrow_schema, hasattr(rows, "toArrow")
    with describe(rows.sparkSession, f"compute {table.name}"):
        return hold(df, table, rows.toArrow().cast(schema) if is_new else to_arrow(rows, schema))


def warn(texts: Iterable[str]) -> None:
    """Give warnings by Python's ``warnings``, at the line outside of this package from which it was called."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("biasspark."):
        level, frame = level + 1, frame.f_back
    for text in texts:
        warnings.warn(text, InputWarning, stacklevel=level)
