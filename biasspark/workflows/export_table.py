"""Write any table of a published night as CSV that spreadsheets open safely; the corpus is not read."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from datetime import date
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from biasspark.cli import Command, Outcome, Progress, flag, make_parser, on_date, parse_out
from biasspark.config import Config, load_config
from biasspark.errors import InputError
from biasspark.report.text_formats import open_out, write_csv
from biasspark.session import describe
from biasspark.tables.ledger import find_published
from biasspark.tables.publish import describe_absence, read_frame, read_rows
from biasspark.tables.schemas import BIAS_RUNS, TABLES, Table
from biasspark.tables.store import Store, open_tables

JOB = "export"
EXPORTED = tuple(sorted(name for name, table in TABLES.items() if table is not BIAS_RUNS))
"""The tables with rows of a night."""


def export_table(config: Config, table: Table, run_date: date, path: Path) -> Outcome:
    """Write a table of the latest published run of its job, and return what the job prints.

    Raises `InputError` if no run is published, with the nights and corpora that there are, or if the files of the table
    are gone; `ConfigError` if the file cannot be written.
    """
    progress = Progress()
    with open_tables(JOB, config, progress) as (spark, store):
        progress.stage(f"reading {table.name} of {run_date}")
        rows = read_table(spark, store, table, run_date, config.corpus.name)
        with open_out(path) as file:
            n_rows = write_csv(file, table.names, rows)
    summary = {"job": JOB, "table": table.name, "run_date": run_date, "rows": n_rows, "out": path}
    return progress.end(Outcome(summary=summary))


def read_table(
    spark: SparkSession, store: Store, table: Table, run_date: date, corpus: str
) -> Iterable[Iterable[object]]:
    """Return the rows of a table of a night, in the order of its key, with the columns of the contract.

    A table with rows for each row of the corpus passes through the driver one partition at a time. A run has no row of
    a table that it did not write.
    """
    run = find_published(spark, store, table.job, run_date, corpus)
    if not run.wrote(table):
        return ()
    with describe(spark, "export"):
        if table.per_row:
            return (
                read_frame(spark, store, table, run).select(*table.names).orderBy(*table.key_columns).toLocalIterator()
            )
        rows, available = read_rows(spark, store, table, [run])
    if not available:
        raise InputError(describe_absence(store, table, run))
    return _values(rows.sort_by([(name, "ascending") for name in table.key_columns]).to_batches())


def _values(batches: Iterable[pa.RecordBatch]) -> Iterator[Iterable[object]]:
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


# ---- the command line

EXAMPLES = """\
examples:
  %(prog)s --config conf/demo.toml --run-date 2026-03-31 --table bias_metrics --out metrics.csv
"""


def main(arguments: argparse.Namespace) -> Outcome:
    """Write the table."""
    config = load_config(arguments.config, arguments.overrides)
    return export_table(config, TABLES[arguments.table], arguments.run_date, arguments.out)


FLAGS = (
    *on_date("the published night to export"),
    flag("--table", required=True, choices=EXPORTED, metavar="NAME", help=f"one of {', '.join(EXPORTED)}"),
    flag("--out", required=True, type=parse_out, metavar="FILE", help="the file to write, replaced if it exists"),
)
COMMAND = Command(partial(make_parser, __doc__, EXAMPLES, FLAGS), main)
