"""Any published table as CSV, safe to open in a spreadsheet."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from datetime import date
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from biasspark.config import show_value
from biasspark.errors import ConfigError
from biasspark.report.side_by_side_files import write_csv_cell
from biasspark.session import describe
from biasspark.tables.published import find_published, read_published
from biasspark.tables.schemas import BIAS_RUNS, TABLES, Table
from biasspark.tables.store import Store

EXPORTED = tuple(sorted(name for name, table in TABLES.items() if table is not BIAS_RUNS))
"""The tables that have rows of a night."""


def read_table(spark: SparkSession, store: Store, name: str, run_date: date, corpus: str) -> DataFrame:
    """Return the rows of a table of the latest published run of its job for a night, in the order of the contract.

    Raises
    ------
    ConfigError
        If there is no such table, with those that there are.
    InputError
        If no run of its job is published, with the nights and corpora that there are.
    """
    if name not in EXPORTED:
        raise ConfigError(f"table: {show_value(name)}. It must be one of {', '.join(EXPORTED)}. Name one of these.")
    table: Table = TABLES[name]
    run = find_published(spark, store, table.job, run_date, corpus)
    return read_published(spark, store, table, run).select(*table.names).orderBy(*table.key_columns)


def export_csv(rows: DataFrame, path: Path) -> int:
    """Write rows to a file as CSV (RFC 4180), and return how many they are.

    NULL is empty, numbers have full precision. Text that a spreadsheet would take for a formula, because it begins
    with ``= + - @``, a tab or CR, gets an apostrophe before it.

    Raises
    ------
    ConfigError
        If the file cannot be written.

    Notes
    -----
    Rows pass through the driver one partition at a time, so that a table with a row for each row of the corpus
    does not have to fit.
    """
    try:
        with path.open("w", encoding="utf-8", newline="") as file, describe(rows.sparkSession, "export"):
            writer = csv.writer(file, lineterminator="\r\n")
            writer.writerow(rows.columns)
            n_rows = 0
            for cells in _list_cells(rows):
                writer.writerow(cells)
                n_rows += 1
            return n_rows
    except OSError as error:
        raise ConfigError(
            f"out: {show_value(str(path))}, {error.strerror or error}. It could not be written. Name another file."
        ) from None


def _list_cells(rows: DataFrame) -> Iterator[list[str]]:
    for row in rows.toLocalIterator():
        yield [write_csv_cell(value) for value in row]
