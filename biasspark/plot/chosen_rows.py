"""The rows of a table that a figure shows, from a frame of any kind or a measured corpus. No Spark is needed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import pyarrow as pa
import pyarrow.compute as pc

from biasspark.api.record_batches import Frame, cast_columns, is_spark, list_columns, open_frame
from biasspark.columns import ALL_ROWS, OVERALL
from biasspark.errors import InputError
from biasspark.report.report_data import ReportData
from biasspark.tables.schemas import Table
from biasspark.text import list_choices, list_first, show_value

Names = str | Sequence[str] | None
_MAX_LISTED = 6


def read_rows(given: Frame, table: Table, needed: Sequence[str], name: str) -> pa.Table:
    """Return the needed columns of a table of biasspark.

    Parameters
    ----------
    given : Frame, MeasuredCorpus, or AttributedCorpus
        The table, or an object with a method of its name that returns it.
    name : str
        Name of the calling function, for messages.

    Raises
    ------
    TypeError, InputError
        If it is not a frame, lacks columns, has no row, or has rows of several runs.
    """
    method = getattr(type(given), table.name, None)  # looked up on the type, as a frame may have a column of that name
    frame = method(given) if callable(method) else given
    known = list_columns(frame, name)
    missing = [column for column in needed if column not in known]
    if missing:
        raise InputError(
            f"{name}: the table lacks {list_first(missing, _MAX_LISTED)}. Give what biasspark.{table.name}() returns."
        )
    schema = pa.schema([table.arrow_schema.field(column) for column in needed])
    if is_spark(frame):
        from biasspark.api.frame_kinds import collect_columns  # noqa: PLC0415 - only frames of Spark need Spark

        rows = collect_columns(frame, schema, name)
    else:
        rows = cast_columns(open_frame(frame, name).read_all(), schema, name)
    if not len(rows):
        raise InputError(f"{name}: the table has no row. Give one that has.")
    key = [column for column in table.key_columns if column in needed]
    if len(rows.group_by(key).aggregate([])) < len(rows):
        raise InputError(f"{name}: the table has several rows of one key, as those of several runs. Keep one run.")
    return rows


def choose_names(rows: pa.Table, column: str, names: Names, name: str) -> list[str]:
    """Return the requested values of a column in order; by default all values, ``all`` first, then in row order.

    Raises
    ------
    InputError
        If a requested name does not occur.
    """
    known = list(dict.fromkeys(rows[column].to_pylist()))
    if names is None:
        return sorted(known, key=lambda value: column == "slice" and value != ALL_ROWS)
    asked = [names] if isinstance(names, str) else list(names)
    unknown = [value for value in asked if value not in known]
    if unknown or not asked:
        rule = f"{name}: {column} = {show_value(unknown[0]) if unknown else '[]'}."
        raise InputError(f"{rule} The table has {list_choices(known[:_MAX_LISTED])}. Name one that it has.")
    return list(dict.fromkeys(asked))


def choose_slice(rows: pa.Table, asked: str | None, name: str) -> tuple[str, pa.Table]:
    """Return the requested slice, by default ``all`` or the only slice, and its rows."""
    known = choose_names(rows, "slice", asked, name)
    if asked is None and known[0] != ALL_ROWS and len(known) > 1:
        raise InputError(f"{name}: the table has the slices {list_choices(known[:_MAX_LISTED])}. Name one.")
    return known[0], keep(rows, slice=known[:1])


def keep(rows: pa.Table, **names: Sequence[str]) -> pa.Table:
    """Return the rows in which each named column has one of the given values."""
    for column, values in names.items():
        rows = rows.filter(pc.is_in(rows[column], pa.array(values, pa.string())))
    return rows


def without_pairs(rows: pa.Table, identities: Names, name: str) -> pa.Table:
    """Return the rows of identities, without crossed pairs unless identities are requested.

    Raises
    ------
    InputError
        If there are no such rows.
    """
    of_identities = pc.field("identity") != OVERALL
    kept = rows.filter(of_identities if identities is not None else of_identities & ~pc.field("crossed"))
    if not len(kept):
        raise InputError(f"{name}: the table has no identity. Measure some.")
    return kept


def as_report(table: Table, rows: pa.Table, config: str = "{}") -> ReportData:
    """Wrap rows of one slice as the data of a report, as if of all rows, to reuse its functions."""
    tables = {table.name: [row | {"slice": ALL_ROWS} for row in rows.to_pylist()]}
    return ReportData(corpus="", run_date=date.min, run={"config": config}, tables=tables)  # not of a run
