"""The rows of published runs: of a small table as Arrow, of one that grows with the corpus as a DataFrame."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from biasspark.errors import InputError, redact
from biasspark.tables.runs import Run
from biasspark.tables.schemas import RUN_ID, Table, tables_of
from biasspark.tables.store import Store
from biasspark.text import format_count


def read_frame(spark: SparkSession, store: Store, table: Table, run: Run) -> DataFrame:
    """Return the rows of a table that a published run has, with the columns of the contract. Lazy.

    Raises `InputError` if its files are gone, or the run has none of that table.
    """
    try:
        return store.read(spark, table, run)
    except FileNotFoundError:
        raise InputError(describe_absence(store, table, run)) from None


def read_rows(spark: SparkSession, store: Store, table: Table, runs: Sequence[Run]) -> tuple[pa.Table, list[Run]]:
    """Return the rows that some published runs have of a small table, and the runs of which there are files.

    One scan, however many runs. Only where files of a run are gone is every run looked up. Raises `InputError` if a run
    has other rows than its row of the ledger counts: what cannot be read is not absent.
    """
    try:
        if runs:
            rows = store.read_rows(spark, table, *runs)
            _check_counts(spark, store, table, rows, runs)
            return rows, list(runs)
    except FileNotFoundError:
        if len(runs) > 1:
            tables, of_runs = zip(*(read_rows(spark, store, table, [run]) for run in runs), strict=True)
            return pa.concat_tables(tables), [run for of_run in of_runs for run in of_run]
    return table.full_arrow_schema.empty_table(), []


def _check_counts(spark: SparkSession, store: Store, table: Table, rows: pa.Table, runs: Sequence[Run]) -> None:
    """Compare the rows that were read with those that the ledger counts.

    Raises `FileNotFoundError` if there is nothing of a run any more, `InputError` if its rows are too few or too many.
    """
    counts = Counter(rows[RUN_ID.name].to_pylist())
    for run in runs:
        if not counts[run.run_id] and (run.run_date, run.run_id) not in store.list_runs(spark, table):
            raise FileNotFoundError(store.location(table, run))
        check_count(store, table, run, counts[run.run_id])


def check_count(store: Store, table: Table, run: Run, n_rows: int) -> None:
    """Raise `InputError` if a table has other than the rows that the ledger counts of a run."""
    expected = (run.table_rows or {}).get(table.name, n_rows)
    if n_rows != expected:
        raise InputError(
            f"{redact(store.location(table, run))}: {n_rows:,} of {format_count(expected, 'row')} could be read. "
            "Restore the files, or let the user of the job read them and enter the folders above."
        )


def check_tables(spark: SparkSession, store: Store, run: Run) -> None:
    """Raise `InputError` unless the small tables of a run have all rows that the ledger counts."""
    faults = []
    for table in tables_of(run.job):
        if table.per_row or not (run.table_rows or {}).get(table.name):
            continue
        try:
            if not read_rows(spark, store, table, [run])[1]:
                faults.append(describe_absence(store, table, run))
        except InputError as error:
            faults += error.messages
    if faults:
        raise InputError(*faults)


def describe_absence(store: Store, table: Table, run: Run) -> str:
    """Return the fault of a run that the ledger has: it wrote no such table, or its files are gone."""
    if not run.wrote(table):
        return f"{table.name}: run {run.run_id} has none: its configuration does not ask for it."
    path = redact(store.location(table, run))
    return f"{path}: its files are gone. The ledger has the run. Restore them, or measure the night again."
