"""What the jobs that publish tables share: the context of a run, its row in the ledger, and how it is published."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone

from pyspark.sql import SparkSession

from biasspark import __version__
from biasspark.cli import Outcome, Progress, describe_unexpected
from biasspark.config import Config
from biasspark.corpus.encoding import RowCounts
from biasspark.session import engine_version
from biasspark.tables.publish import Rows, publish
from biasspark.tables.runs import PUBLISHED, Run, RunRecord
from biasspark.tables.schemas import Table
from biasspark.tables.store import Store
from biasspark.tables.views import refresh_views

_EARLIEST = timezone(timedelta(hours=14))
"""Where a day begins first."""


@dataclass(frozen=True)
class RunContext:
    """What a job needs besides its input: the session, the configuration, where tables live, the run, the progress."""

    spark: SparkSession
    config: Config
    store: Store
    run: Run
    progress: Progress


def describe_run(
    context: RunContext, counts: RowCounts, warnings: tuple[str, ...], status: str = PUBLISHED
) -> RunRecord:
    """Return the row of a run in the ledger."""
    run, corpus = context.run, context.config.corpus
    of_date = () if run.window_start else warn_of_future(run.run_date, corpus.run_date_column)
    return RunRecord(
        n_rows=counts.n_rows,
        n_rejected=counts.n_rejected,
        rejects=counts.rejects,
        warnings=(*of_date, *warnings),
        config=context.config.json,
        config_hash=context.config.hash,
        code_version=__version__,
        spark_version=engine_version(context.spark),
        status=status,
    )


def warn_of_future(run_date: date, run_date_column: str | None) -> tuple[str, ...]:
    """Return a warning of a night that has begun nowhere on earth, if no column of the corpus says that it has rows."""
    if run_date_column is not None or run_date <= datetime.now(_EARLIEST).date():
        return ()
    return (
        f"--run-date {run_date}: it is in the future, and without [corpus] run_date_column every date has all rows. Is "
        "it the right date?",
    )


def publish_run(
    context: RunContext, tables: Mapping[Table, Rows], record: RunRecord, show: Callable[[], str]
) -> Outcome:
    """Publish the tables of a run, refresh the views, and return what the job prints.

    `show` returns the text for people. After the run is published a failure, also of the views, is a warning.
    """
    spark, run, store = context.spark, context.run, context.store
    published = publish(spark, tables, run, store, record)
    warnings, text = tuple(record.warnings), ""
    try:
        warnings += refresh_views(spark, store)
        text = show()
    except Exception as error:  # noqa: BLE001 - the run is published, whatever happens here
        warnings += (f"{run.run_id} is published, but a later step failed: {describe_unexpected(error)}",)
    summary = {"job": run.job, "status": record.status, "run_id": run.run_id, "run_date": run.run_date}
    summary |= {"n_rows": record.n_rows, "n_rejected": record.n_rejected, "rejects": record.rejects}
    summary |= {"warnings": warnings, "tables": published.n_rows, "output": store.root}
    return Outcome(summary=summary, table=text + "".join(f"\nwarning: {warning}" for warning in warnings))
