"""Frames of any kind: the rows of a call as a DataFrame of Spark, and its results as a frame of the original kind.

Rows of other libraries reach the engine as Parquet in a temporary folder, which is several times as fast as sending
them, and gives each column the type that it has in a file. On a cluster or a server, the driver sends them.
"""

from __future__ import annotations

import inspect
import re
import signal
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.dataset
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from biasspark.api.record_batches import Frame, format_of, is_of, is_spark, path_of, read_rows
from biasspark.config import Corpus, Measures
from biasspark.config.declaration import guess
from biasspark.corpus.read import read_corpus
from biasspark.errors import BiasSparkError, ConfigError, Fault, InputWarning, Key
from biasspark.interrupts import guard_interrupts, interrupted_by
from biasspark.session import build_session, describe, find_session, is_connect, is_embedded
from biasspark.tables.schemas import Table
from biasspark.tables.spark_schemas import to_arrow, to_frame, value_schema
from biasspark.text import list_choices, show_value

_COLUMN_IN_RULE = re.compile(r"^(?:the corpus has no )?column '(.*?)'|Column: `(.*?)`")


@contextmanager
def spark_rows(df: Frame, measures: Measures, id_column: str | None = None) -> Iterator[DataFrame]:
    """Yield the rows of a frame as a DataFrame of Spark. Ctrl-C waits where it would break the session.

    Rows of other libraries are read in the active session, and files as the jobs read them for the same measures.
    Without a session, the embedded engine is started if it is installed, else local Spark. Raises as `read_rows` and
    `read_corpus`, and `ConfigError` without a session and any engine.
    """
    with ExitStack() as after, interrupted_by(signal.SIGINT), ExitStack() as stack:
        if is_spark(df):
            yield df
            return
        path = path_of(df, "df") if isinstance(df, str | Path) else ""
        rows = None if path else read_rows(df)
        spark = find_session() or build_session("biasspark")
        if is_embedded(spark):
            after.callback(guard_interrupts)  # until the next call
        if rows is None:
            corpus = Corpus(name="df", path=path, format=format_of(path), id=id_column)
            yield read_corpus(spark, corpus, date.min, measures if corpus.is_untyped else None)
            return
        stack.enter_context(_explain_columns({**rows.hints, **rows.unreadable}))
        schema = from_arrow_schema(rows.batches.schema, prefer_timestamp_ntz=True)
        is_local = not is_connect(spark) and (spark.conf.get("spark.master") or "").startswith("local")
        if not (is_embedded(spark) or is_local):  # workers do not see the folders of this process
            yield to_frame(spark, rows.batches.read_all(), schema)
            return
        folder = stack.enter_context(TemporaryDirectory(prefix="biasspark-"))
        # The schema of Arrow is left out, since the embedded engine would read other types by it than Spark.
        options = pa.dataset.ParquetFileFormat().make_write_options(store_schema=False)
        groups = {"min_rows_per_group": 100_000, "max_rows_per_group": 1_000_000}
        pa.dataset.write_dataset(rows.batches, folder, format="parquet", file_options=options, **groups)
        # Without a scheme, a path of Spark may be on another file system.
        yield spark.read.schema(schema).parquet(folder if is_embedded(spark) else f"file:{folder}")


@contextmanager
def _explain_columns(reasons: Mapping[str, Fault]) -> Iterator[None]:
    """Replace faults that a column is missing or mistyped by the reason that is given for it, and the first key."""
    try:
        yield
    except BiasSparkError as error:
        by_lower = {name.lower(): reason for name, reason in reasons.items()}
        shown: dict[str, Fault | str] = {}
        for fault in error.faults:
            match = _COLUMN_IN_RULE.search(str(fault.rule)) if isinstance(fault, Fault) else None
            reason = by_lower.get((match[1] or match[2]).lower()) if match else None
            named = fault
            if reason and isinstance(fault, Fault):
                named = replace(reason, rule=(reason.rule, " ", Key(fault.path), " names it."))
            shown.setdefault(str(reason or fault), named)
        error.faults = tuple(shown.values())
        raise


def collect_first(df: Frame, n_rows: int, name: str) -> list[dict[str, Any]]:
    """Return the first rows of a frame, with all its columns."""
    if not is_spark(df):
        rows: list[dict[str, Any]] = read_rows(df, name).checked().read_all().slice(0, n_rows).to_pylist()
        return rows
    with describe(df.sparkSession, f"collect the first {n_rows:,} rows"):
        return [row.asDict() for row in df.limit(n_rows).collect()]


def like(df: Frame) -> Callable[[pa.Table, StructType], Frame]:
    """Return a function that converts rows, given their schema in Spark, to a frame of the same kind as ``df``."""
    if is_spark(df):
        return lambda rows, schema: to_frame(df.sparkSession, rows, schema).coalesce(1)
    if is_of(df, "pandas"):
        return lambda rows, _: _to_pandas(rows)
    if is_of(df, "polars"):
        return lambda rows, _: sys.modules["polars"].from_arrow(rows)
    return lambda rows, _: rows


def _to_pandas(rows: pa.Table) -> Frame:
    """Convert rows to pandas, with nullable integers and booleans. Columns beyond 64 bits stay decimal."""
    pd = sys.modules["pandas"]
    for number, field in enumerate(rows.schema):
        if pa.types.is_decimal(field.type) and field.type.scale == 0:
            with suppress(pa.ArrowInvalid):
                rows = rows.set_column(number, field.name, rows[number].cast(pa.int64()))
    nullable = {pa.int32(): pd.Int32Dtype(), pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    return rows.to_pandas(types_mapper=nullable.get)


def hold(df: Frame, table: Table, rows: pa.Table) -> Frame:
    """Return the rows of a table as a frame of the same kind as ``df`` that holds them."""
    return like(df)(rows, value_schema(table))


def give(df: Frame, table: Table, rows: DataFrame) -> Frame:
    """Return the rows of a table as a frame of the same kind as ``df``; lazy if it is a DataFrame of Spark."""
    if is_spark(df):
        return rows
    schema, is_new = table.arrow_schema, hasattr(rows, "toArrow")
    with describe(rows.sparkSession, f"compute {table.name}"):
        return hold(df, table, rows.toArrow().cast(schema) if is_new else to_arrow(rows, schema))


def find_table(
    table: Table | str, tables: Collection[Table], turned_on_by: Mapping[Table, str], function: str
) -> Table:
    """Return one of the tables that a function has computed, given it or its name.

    Raises `ConfigError` if the function has no such table, or with the keyword if it was not requested.
    """
    name = table if isinstance(table, str) else table.name
    known = {each.name: each for each in (*tables, *turned_on_by)}
    if name not in known:
        advice = guess(name, known, f"Name one of {list_choices(list(known))}.")
        raise ConfigError(f"table = {show_value(name)}. biasspark.{function} has no such table. {advice}")
    if known[name] not in tables:
        fix = f"Add, for example, {turned_on_by[known[name]]} to the call of biasspark.{function}."
        raise ConfigError(f"{name}: it was not requested when the rows were ranked. {fix}")
    return known[name]


def warn(texts: Iterable[str]) -> None:
    """Issue warnings that point to the line outside of this package from which it was called."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("biasspark."):
        level, frame = level + 1, frame.f_back
    for text in texts:
        warnings.warn(text, InputWarning, stacklevel=level)
