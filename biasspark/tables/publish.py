"""Publish a run: all its rows in all tables become visible at once, or not at all.

A run only adds its own rows. They are written, read back and compared with the computed ones. Then one row in the
ledger publishes them. Views show the last published run of each run date and corpus, so a crash at any time leaves rows
that no view shows, and a rerun supersedes a run without changing its files.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyspark.sql.functions as F
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Observation, SparkSession

from biasspark.errors import BiasSparkError, Fault, InputError, redact
from biasspark.expressions.sql import quote_names
from biasspark.session import describe, is_embedded, kept, run_side_by_side
from biasspark.tables.ledger import append_to_ledger, refuse_conflict
from biasspark.tables.runs import Run, RunRecord
from biasspark.tables.schemas import RUN_ID, Table, sort_rows, tables_of
from biasspark.tables.spark_schemas import spark_schema
from biasspark.tables.storage_errors import storage_errors
from biasspark.tables.store import Store
from biasspark.text import format_count


def read_frame(spark: SparkSession, store: Store, table: Table, run: Run) -> DataFrame:
    """Return the rows of a published run in a table, which one job counts. Raises as `read_run`."""
    try:
        rows = store.read(spark, table, run)
    except FileNotFoundError:
        raise InputError(describe_absence(store, table, run)) from None
    with storage_errors(store.location(table, run), "read"):
        check_count(store, table, run, rows.count())
    return rows


def read_rows(spark: SparkSession, store: Store, table: Table, runs: Sequence[Run]) -> tuple[pa.Table, list[Run]]:
    """Return the rows of some published runs in a small table, and the runs that have files.

    One scan for all runs, and one for each run if files of a run are missing. Raises `InputError` if the number of rows
    of a run is not that of the ledger: what cannot be read is not absent.
    """
    if not runs:
        return table.full_arrow_schema.empty_table(), []
    try:
        rows = store.read_rows(spark, table, *runs)
        counts = Counter(rows[RUN_ID.name].to_pylist())
        for run in runs:
            is_empty = run.table_rows.get(table.name) == 0  # Delta and Iceberg do not list runs without rows
            if not (counts[run.run_id] or is_empty or (run.run_date, run.run_id) in store.list_runs(spark, table)):
                raise FileNotFoundError(store.location(table, run))
            check_count(store, table, run, counts[run.run_id])
    except FileNotFoundError:
        if len(runs) == 1:
            return read_rows(spark, store, table, [])
        tables, readable = zip(*(read_rows(spark, store, table, [run]) for run in runs), strict=True)
        return pa.concat_tables(tables), [run for listed in readable for run in listed]
    return rows, list(runs)


def read_run(spark: SparkSession, store: Store, table: Table, run: Run) -> pa.Table:
    """Return the rows of one run like `read_rows`. Raises `InputError` if they are gone or were not written."""
    rows, available = read_rows(spark, store, table, [run])
    if not available:
        raise InputError(describe_absence(store, table, run))
    return rows


def check_count(store: Store, table: Table, run: Run, n_rows: int) -> None:
    """Raise `InputError` unless a run has as many rows in a table as the ledger says."""
    expected = run.table_rows.get(table.name, n_rows)
    if n_rows != expected:
        raise InputError(
            f"{redact(store.location(table, run))}: {n_rows:,} of {format_count(expected, 'row')} could be read. "
            "Restore the files, or let the user of the job read them and enter the folders above."
        )


def check_tables(spark: SparkSession, store: Store, run: Run) -> None:
    """Raise `InputError` unless the small tables of a run have as many rows as the ledger says."""
    faults: list[Fault | str] = []
    for table in tables_of(run.job):
        if table.per_row or not run.table_rows.get(table.name):
            continue
        try:
            read_run(spark, store, table, run)
        except InputError as error:
            faults += error.faults
    if faults:
        raise InputError(*faults)


def describe_absence(store: Store, table: Table, run: Run) -> str:
    """Describe why a published run has no rows of a table: it did not write the table, or the files are missing."""
    if not run.wrote(table):
        return f"{table.name}: run {run.run_id} did not write it: not configured. docs/questions.md names the key."
    path = redact(store.location(table, run))
    return f"{path}: its files are gone. The ledger has the run. Restore them, or measure that date again."


Rows: TypeAlias = pa.Table | DataFrame
"""The rows of a table without run_date, corpus and run_id: a DataFrame if they grow with the corpus."""


_Fingerprint: TypeAlias = tuple[int, str]
"""The number of rows and their checksum, which must be equal for the rows written to files and the rows read back."""


def publish(spark: SparkSession, tables: Mapping[Table, Rows], run: Run, store: Store, record: RunRecord) -> Run:
    """Write the tables of a run, verify them, publish it by one row in the ledger, and return it with ``table_rows``.

    `tables` has the rows of each table, with its ``value_columns``. Arrow tables are compared value by value. A
    DataFrame is evaluated once: its rows are counted and hashed while they are written, for which the embedded engine
    stores them temporarily. Two runs that are published within a second may both succeed; readers then see the later
    one.

    Raises `PublishConflict` if another run of the same date, corpus and job was published since this one started, and
    `BiasSparkError` for rows that break the contract, cannot be written, or differ when they are read back. Nothing is
    published then.
    """
    rows = {table: _add_run(table, table_rows, run) for table, table_rows in tables.items()}
    small = {table: table_rows for table, table_rows in rows.items() if isinstance(table_rows, pa.Table)}
    large = {table: table_rows for table, table_rows in rows.items() if isinstance(table_rows, DataFrame)}
    if faults := [fault for table, table_rows in small.items() for fault in _value_faults(table, table_rows)]:
        raise BiasSparkError(*faults)
    refuse_conflict(spark, store, run)

    writes = [partial(_write, spark, store, run, table, table_rows) for table, table_rows in rows.items()]
    written = dict(zip(rows, run_side_by_side(spark, writes), strict=True))

    with describe(spark, "publish: read back and compare"), storage_errors(store.root, "read back"):
        checks = [partial(_compare_small, spark, store, run, small)]
        checks += [partial(_compare_large, spark, store, run, table, written[table]) for table in large]
        if faults := [fault for check_faults in run_side_by_side(spark, checks) for fault in check_faults]:
            raise BiasSparkError(*faults)

    published = replace(run, table_rows={table.name: n_rows for table, (n_rows, _) in written.items()})
    append_to_ledger(spark, store, published, record)
    return published


def _add_run(table: Table, rows: Rows, run: Run) -> Rows:
    run_columns = {"run_date": run.run_date, "corpus": run.corpus, "run_id": run.run_id}
    if isinstance(rows, DataFrame):
        return rows.withColumns({name: F.lit(value) for name, value in run_columns.items()}).to(spark_schema(table))
    rows = rows.select(table.value_columns).cast(table.arrow_schema)
    for name, value in run_columns.items():
        field = table.full_arrow_schema.field(name)
        rows = rows.append_column(field, pa.array([value] * len(rows), field.type))
    return sort_rows(table, rows).select(table.names)


def _value_faults(table: Table, rows: pa.Table) -> list[str]:
    n_keys = rows.group_by(list(table.key_columns), use_threads=False).aggregate([]).num_rows
    has_nan = [pc.fill_null(pc.is_nan(rows[name]), False).to_numpy() for name in _doubles(table)]
    n_nan = int(np.any(has_nan, axis=0).sum()) if has_nan else 0
    return list(_contract_faults(table, len(rows), n_keys, n_nan))


def _contract_faults(table: Table, n_rows: int, n_keys: int, n_nan: int) -> Iterator[str]:
    if table.unique and n_keys != n_rows:
        rule = f"Each row has its own {', '.join(table.key_columns)}."
        yield f"{table.name}: {n_rows} rows have {n_keys} keys. {rule} Nothing was published."
    if n_nan:
        yield f"{table.name}: {n_nan} rows hold NaN. An undefined value is NULL. Nothing was published."


def _write(spark: SparkSession, store: Store, run: Run, table: Table, rows: Rows) -> _Fingerprint:
    """Write rows, and return their fingerprint; for a small table only its length."""
    with describe(spark, f"publish: write {table.name}"):
        if isinstance(rows, pa.Table):
            store.write(spark, table, rows, run)
            return len(rows), ""
        aggregates = (F.count(F.lit(1)).alias("n_rows"), _checksum(table))
        with kept(rows) if is_embedded(spark) else nullcontext(rows) as computed:
            # Sorted, so that equal runs write equal files.
            ordered = (computed if table.per_row else computed.coalesce(1)).sortWithinPartitions(*table.key_columns)
            if is_embedded(spark):  # does not support Observation
                totals = computed.agg(*aggregates).collect()[0].asDict()
                store.write(spark, table, ordered, run)
            else:
                seen = Observation()
                store.write(spark, table, ordered.observe(seen, *aggregates), run)
                totals = seen.get
        return totals["n_rows"], totals["checksum"]


def _compare_small(spark: SparkSession, store: Store, run: Run, tables: Mapping[Table, pa.Table]) -> list[str]:
    with_rows = [table for table, rows in tables.items() if len(rows)]
    stored = store.read_back(spark, with_rows, run)
    return [
        f"{redact(store.location(table, run))}: {len(stored[table])} rows were read back. They are not the "
        f"{len(tables[table])} rows written. Nothing was published. Run again."
        for table in with_rows
        if not sort_rows(table, stored[table]).equals(tables[table])
    ]


def _compare_large(spark: SparkSession, store: Store, run: Run, table: Table, written: _Fingerprint) -> list[str]:
    if not written[0]:
        return []
    doubles = quote_names(_doubles(table))
    has_nan = F.array_contains(F.expr(f"array({doubles})"), math.nan) if doubles else F.lit(False)
    key = F.to_json(F.struct(*table.key_columns)) if table.unique else F.lit("")
    query = store.read(spark, table, run).agg(
        F.count(F.lit(1)), _checksum(table), F.count_distinct(key), F.count_if(has_nan)
    )
    ((n_rows, checksum, n_keys, n_nan),) = query.collect()
    faults = list(_contract_faults(table, n_rows, n_keys, n_nan))
    if (n_rows, checksum) != written:
        faults.append(
            f"{redact(store.location(table, run))}: {n_rows} rows with checksum {checksum} were read back. "
            f"{written[0]} rows with checksum {written[1]} were written. Nothing was published. Run again."
        )
    return faults


def _checksum(table: Table) -> SparkColumn:
    """Return the sum of the hashes of rows as text. The decimal holds that of 5e18 rows."""
    hashes = F.expr(f"xxhash64({quote_names(table.names)})").cast("decimal(38,0)")
    return F.coalesce(F.sum(hashes), F.lit(0)).cast("string").alias("checksum")


def _doubles(table: Table) -> list[str]:
    return [column.name for column in table.values if column.type == "DOUBLE"]
