"""The rows of a frame of any library, or of files, as Arrow record batches with types of Spark."""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset

from biasspark.arrow_types import replace_types, simple_type
from biasspark.errors import ABSENT, Fault, InputError
from biasspark.text import describe_type, list_first

Frame: TypeAlias = Any
"""A DataFrame of Spark, pandas or Polars, an Arrow table, a relation of DuckDB or anything else that has
``__arrow_c_stream__``, or the path of Parquet or CSV. Results are of the same kind; for the last three, Arrow."""

_CSV = (".csv", ".csv.gz", ".csv.bz2", ".csv.zst")
_BATCH = 100_000  # rows
_MAX_LISTED = 6
_REFUSALS = (pa.ArrowException, TypeError, ValueError, OverflowError)
"""Errors of Arrow for values that it cannot convert. Their messages quote the values."""

_ONLY_OF_POLARS = ("Object", "Int128", "UInt128")
"""Types of Polars that Arrow does not have."""


class Rows(NamedTuple):
    """The rows of a frame without the columns for which Spark has no type, and the faults of these columns by name.

    `hints` explain, by name, columns without a value, and levels of an index.
    """

    batches: pa.RecordBatchReader
    unreadable: dict[str, Fault]
    hints: Mapping[str, Fault] = MappingProxyType({})

    def checked(self, columns: Collection[str] | None = None) -> pa.RecordBatchReader:
        """Return the batches. Raises `InputError` if one of the columns, by default of all, is unreadable."""
        if faults := [fault for name, fault in self.unreadable.items() if columns is None or name in columns]:
            raise InputError(*faults)
        return self.batches


def read_rows(df: Frame, name: str = "df") -> Rows:
    """Return the rows of a frame of another library than Spark, with the types by which Spark reads them from Parquet.

    Raises `TypeError` if it is not a frame, and `InputError` for faulty columns or files. Faults call it ``name``.
    """
    batches, unreadable, _ = open_frame(df, name)
    _check_names(batches.schema.names, name)
    kinds = {field.name: _as_in_parquet(field.type) for field in batches.schema}
    for field in batches.schema:
        if not _is_readable(field.type, kinds[field.name]):
            unreadable[field.name] = _column_fault(name, field.name, f"Spark reads no {field.type}")
    schema = pa.schema([(column, kind) for column, kind in kinds.items() if column not in unreadable])
    if not schema.names:
        no_column = Fault((name,), ABSENT, "it has no column.", "Give one with columns.")
        raise InputError(*(unreadable.values() or [no_column]))
    empty = ABSENT, "all its values are missing.", "Fill it, or name another column."
    hints = {field.name: Fault((name, field.name), *empty) for field in batches.schema if pa.types.is_null(field.type)}
    level = ABSENT, "it is a level of the index, not a column.", f"Call {name}.reset_index()."
    levels = {str(each) for each in df.index.names if each is not None} - {*kinds} if is_of(df, "pandas") else ()
    hints |= {each: Fault((name, each), *level) for each in levels}
    tables = (_cast(pa.Table.from_batches([batch]), schema) for batch in batches)
    readable = pa.RecordBatchReader.from_batches(schema, (batch for table in tables for batch in table.to_batches()))
    return Rows(readable, unreadable, hints)


def open_frame(df: Frame, name: str) -> Rows:
    """Return the rows of a frame of another library than Spark, in its own types. Raises as `read_rows`."""
    if isinstance(df, str | Path):
        return Rows(_open_path(path_of(df, name), name), {})
    if is_of(df, "pandas"):
        return _open_pandas(df, name)
    unreadable = {}
    if is_of(df, "polars"):
        kinds = {column: kind for column, kind in df.schema.items() if str(kind) in _ONLY_OF_POLARS}
        unreadable = {column: _no_type(name, column, kind, kind.is_numeric()) for column, kind in kinds.items()}
        df = df.drop(list(kinds))
    try:
        return Rows(pa.RecordBatchReader.from_stream(df), unreadable)
    except _REFUSALS:  # not an Arrow stream, or not one of rows
        pass
    conversion = next((method for method in ("to_spark", "collect", "bias_metrics") if hasattr(df, method)), "")
    fix = f"Convert it: call its {conversion}()." if conversion else "Give one of these."
    if isinstance(df, Mapping | list):
        fix = "Convert it, as by pandas.DataFrame()."
    raise TypeError(
        f"{name}: it must be a DataFrame of Spark, pandas or Polars, an Arrow table, a relation of DuckDB, or the path "
        f"of Parquet or CSV, not {'a dict' if isinstance(df, Mapping) else describe_type(df)}. {fix}"
    )


def collect_columns(df: Frame, schema: pa.Schema, name: str) -> pa.Table:
    """Return the columns of a schema, in its types, from a small frame. Missing columns are NULL."""
    if is_spark(df):
        from biasspark.session import describe  # noqa: PLC0415 - only frames of Spark need Spark
        from biasspark.tables.spark_schemas import to_arrow  # noqa: PLC0415 - only frames of Spark need Spark

        with describe(df.sparkSession, f"collect the {name}"):
            return to_arrow(df, schema)
    batches = open_frame(df, name).checked(schema.names)
    _check_names(batches.schema.names, name)
    rows = batches.read_all()
    for column in set(schema.names) - set(rows.column_names):
        rows = rows.append_column(column, pa.nulls(len(rows)))
    try:
        return _cast(rows, schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        rule = "a column has another type than in the tables of biasspark."
        raise InputError(Fault((name,), ABSENT, rule, "Give the table as it was returned.")) from None


def list_columns(df: Frame) -> list[str]:
    """Return the column names of a frame that `read_once` returned."""
    return list(map(str, df.column_names if isinstance(df, pa.Table) else df.columns))


def read_once(df: Frame, name: str) -> Frame:
    """Return a frame that is read once: an Arrow table of the rows of a stream or of files, any other frame itself."""
    if isinstance(df, pa.Table) or is_spark(df) or is_of(df, "pandas") or is_of(df, "polars"):
        return df
    return open_frame(df, name).batches.read_all()


def is_spark(df: Frame) -> bool:
    """Return whether a frame is a DataFrame of Spark, classic or Connect."""
    return hasattr(df, "sparkSession")


def format_of(path: str) -> str:
    """Return the format of a path: csv by its ending, else parquet."""
    return "csv" if path.lower().endswith(_CSV) else "parquet"


def path_of(df: str | Path, name: str) -> str:
    """Return a path as text, with the folder of the user for ``~``. Raises `InputError` if it is empty."""
    if not str(df).strip():
        raise InputError(Fault((name,), df, "It must not be empty.", "Name a file or a folder."))
    return os.path.expanduser(df)


def is_of(df: Frame, library: str) -> bool:
    """Return whether a frame is a DataFrame of a library, without importing it."""
    loaded = sys.modules.get(library)
    return loaded is not None and isinstance(df, loaded.DataFrame)


def _open_pandas(df: Any, name: str) -> Rows:
    how = "" if df.columns.is_unique else f", as by {name}.loc[:, ~{name}.columns.duplicated()]"
    _check_names(list(map(str, df.columns)), name, how)
    df = _simplify(df)
    columns, unreadable = {}, {}
    for column in df.columns:
        try:
            columns[str(column)] = pa.array(df[column], from_pandas=True)
        except _REFUSALS:
            is_number = sys.modules["pandas"].api.types.is_numeric_dtype(df[column])
            unreadable[str(column)] = _no_type(name, str(column), df[column].dtype, is_number)
    return Rows(pa.table(columns).to_reader(_BATCH), unreadable)


def _simplify(df: Any) -> Any:
    """Return a frame of pandas with intervals and periods as the text that pandas writes, without sparse columns."""
    pd, simple = sys.modules["pandas"], df.copy(deep=False)
    as_text = (pd.IntervalDtype, pd.PeriodDtype)
    for column, kind in df.dtypes.items():
        if isinstance(kind, pd.SparseDtype):
            simple[column] = df[column].sparse.to_dense()
        elif isinstance(getattr(getattr(kind, "categories", kind), "dtype", kind), as_text):
            simple[column] = df[column].astype("category").cat.rename_categories(str)
    return simple


def _open_path(path: str, name: str) -> pa.RecordBatchReader:
    """Open Parquet, or CSV (RFC 4180) with a header line, in which empty and NA cells are missing values."""
    is_parquet = format_of(path) == "parquet"
    kind = "Parquet" if is_parquet else "CSV with a header line and as many fields in each record"
    if Path(path, "_delta_log").exists():
        rule = "It is a Delta table, whose log lists the files that count."
        fix = f"Pass the Arrow table deltalake.DeltaTable({path!r}).to_pyarrow_table()."
        raise InputError(Fault((name,), path, rule, fix))
    try:
        if is_parquet:
            partitioning = "hive" if any(Path(path).glob("run_date=*/run_id=*")) else None  # of a published table
            return pa.dataset.dataset(path, format="parquet", partitioning=partitioning).to_table().to_reader(_BATCH)
        rows = pa.csv.read_csv(
            path,
            parse_options=pa.csv.ParseOptions(newlines_in_values=True),
            convert_options=pa.csv.ConvertOptions(
                null_values=["", "NA"], strings_can_be_null=True, quoted_strings_can_be_null=False
            ),
        )
    except FileNotFoundError:
        fix = "Read it with pandas and pass the frame." if "://" in path else "Check the path."
        raise InputError(Fault((name,), path, "There is nothing at this path.", fix)) from None
    except (pa.ArrowInvalid, OSError) as error:
        row, number = re.search(r"Row #(\d+)", str(error)), getattr(error, "errno", None)
        why = f" Line {row[1]} has more, or fewer." if row else f" {os.strerror(number)}." if number else ""
        fix = "Correct it, or read it with pandas and pass the frame."
        raise InputError(Fault((name,), path, f"It is not {kind}, or cannot be read.{why}", fix)) from None
    if any(map(pa.types.is_binary, rows.schema.types)):
        raise InputError(Fault((name,), path, "It is not UTF-8.", "Convert it."))
    return rows.to_reader(_BATCH)


def _cast(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the columns of a schema in its types."""
    # Arrow cannot decode a dictionary of views, so the values of dictionaries are cast first.
    kinds = [_as_in_parquet(rows.schema.field(column).type, keeps_dictionaries=True) for column in schema.names]
    values = pa.schema(zip(schema.names, kinds, strict=True))
    # Not safe, since nanoseconds are truncated to microseconds.
    return rows.select(schema.names).cast(values, safe=False).cast(schema)


def _as_in_parquet(kind: pa.DataType, *, keeps_dictionaries: bool = False) -> pa.DataType:
    """Return the type by which Spark reads a type from Parquet, or one with dictionaries of values of such types."""
    return replace_types(kind, _simple_in_parquet, keeps_dictionaries=keeps_dictionaries)


def _simple_in_parquet(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if pa.types.is_float16(kind):  # Spark does not read it
        return pa.float32()
    return simple_type(kind)


def _check_names(names: Sequence[str], name: str, how: str = "") -> None:
    """Raise `InputError` if columns have the same name, ignoring case as Spark does."""
    counts = Counter(map(str.lower, names))
    repeated = list(dict.fromkeys(column for column in names if counts[column.lower()] > 1))
    if repeated:
        rule = f"columns have the same name, in small or capital letters: {list_first(repeated, _MAX_LISTED)}."
        raise InputError(Fault((name,), ABSENT, rule, f"Rename them, or drop all but one{how}."))


def _no_type(name: str, column: str, kind: object, is_number: bool) -> Fault:
    what = f"type {kind}" if is_number else "single type for its values"
    values = f"{name}[{column!r}]"
    how = f", as by pandas.to_numeric({values}, errors='coerce') or {values}.astype(str)" * (str(kind) == "object")
    return _column_fault(name, column, f"Arrow has no {what}", how)


def _column_fault(name: str, column: str, rule: str, how: str = "") -> Fault:
    return Fault((name, column), ABSENT, f"{rule}, so the column is not read.", f"Convert it{how}, or drop it.")


def _is_readable(kind: pa.DataType, target: pa.DataType) -> bool:
    """Return whether Spark has the target type, and Arrow casts to it, whatever the values."""
    if pa.types.is_time(target) or pa.types.is_duration(target) or pa.types.is_decimal256(target):
        return False
    from pyspark.sql.pandas.types import from_arrow_type  # noqa: PLC0415 - charts are drawn without Spark

    try:
        from_arrow_type(target, prefer_timestamp_ntz=True)
        _cast(pa.table({"column": pa.nulls(0, kind)}), pa.schema([("column", target)]))
    except Exception:  # noqa: BLE001 - its type depends on the version of Spark
        return False
    return True
