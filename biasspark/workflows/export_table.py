"""Write any table of a published run as CSV that spreadsheets open safely. The corpus is not read."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from biasspark.cli import Command, Outcome, Progress, flag, on_date, parse_out, write_stderr
from biasspark.config import load_config
from biasspark.errors import InputError
from biasspark.report.text_formats import open_out, write_csv
from biasspark.session import describe
from biasspark.tables.ledger import list_shown
from biasspark.tables.publish import describe_absence, read_frame, read_run
from biasspark.tables.runs import Run
from biasspark.tables.schemas import BIAS_RUNS, TABLES, Table, sort_rows
from biasspark.tables.storage_errors import storage_errors
from biasspark.tables.store import Store, open_tables
from biasspark.text import show_visibly

JOB = "export"
EXPORTED = tuple(sorted(name for name, table in TABLES.items() if table is not BIAS_RUNS))
"""The tables with rows of a run."""


def read_table(spark: SparkSession, store: Store, table: Table, runs: Sequence[Run]) -> Iterable[Iterable[object]]:
    """Return the rows of runs in a table, in the order of its key.

    A table with a row per example comes a partition at a time, and of one run: its job has no windows.
    """
    with describe(spark, "export"):
        if table.per_row:
            (run,) = runs
            return _iterate(read_frame(spark, store, table, run), table, store.location(table, run))
        rows = pa.concat_tables([read_run(spark, store, table, run) for run in runs])
        batches = sort_rows(table, rows).to_batches()
    return (values for batch in batches for values in zip(*(c.to_pylist() for c in batch.columns), strict=True))


def _iterate(frame: DataFrame, table: Table, location: str) -> Iterator[Iterable[object]]:
    with describe(frame.sparkSession, "export"), storage_errors(location, "read"):
        yield from frame.select(*table.names).orderBy(*table.key_columns).toLocalIterator()


# ---- the command line

EXAMPLES = """\
examples:
  %(prog)s --config conf/demo.toml --run-date 2026-03-31 --table bias_metrics --out metrics.csv
"""


def main(arguments: argparse.Namespace) -> Outcome:
    """Write a table of the latest published run of its job, or of those of all windows that end on the date."""
    config = load_config(arguments.config, arguments.overrides)
    table, run_date, progress = TABLES[arguments.table], arguments.run_date, Progress()
    with open_tables(JOB, config, progress) as (spark, store):
        progress.stage(f"reading {table.name} of {run_date}")
        runs = list_shown(spark, store, table.job, run_date, config.corpus.name)
        written = [run for run in runs if run.wrote(table)]
        warnings = [describe_absence(store, table, run) for run in runs if run not in written]
        if not written:
            raise InputError(*warnings)
        rows = read_table(spark, store, table, written)
        with open_out(arguments.out) as file:
            n_rows = write_csv(file, table.names, rows)
    for warning in warnings:
        write_stderr(f"warning: {show_visibly(warning)}\n")
    summary = {"job": JOB, "table": table.name, "run_date": run_date, "rows": n_rows, "out": arguments.out}
    if windows := [run.window_start for run in written if run.window_start]:
        summary["window_starts"] = windows
    return progress.end(Outcome(summary={**summary, "warnings": warnings}))


FLAGS = (
    *on_date("the run date to export"),
    flag("--table", required=True, choices=EXPORTED, metavar="NAME", help=f"one of {', '.join(EXPORTED)}"),
    flag("--out", required=True, type=parse_out, metavar="FILE", help="the file to write, replaced if it exists"),
)
COMMAND = Command(__doc__, EXAMPLES, FLAGS, main)
