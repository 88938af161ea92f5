"""A night of the main job, from a corpus that was read to tables that are published; and how any night ends."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession

from biasspark.cli import Outcome, Progress, describe_unexpected, format_table
from biasspark.config import Config
from biasspark.pipeline import WORST, describe_run, find_warnings, measure, ranked_once, worst_identities
from biasspark.tables.publish import PublishedRun, publish
from biasspark.tables.runs import Run, RunRecord
from biasspark.tables.schemas import BIAS_METRICS
from biasspark.tables.store import CatalogStore, PathStore
from biasspark.tables.views import refresh_views


def run_night(
    corpus: DataFrame, config: Config, store: PathStore | CatalogStore, run: Run, progress: Progress
) -> Outcome:
    """Survey, rank, publish, and say what came of it."""
    spark = corpus.sparkSession
    progress.stage(f"survey of {config.corpus.name}")
    measurement = measure(corpus, config, config.corpus.id, config.corpus.duplicates)
    progress.stage(f"ranking {measurement.extent}")
    with ranked_once(measurement) as (tally, profiles):
        tables = measurement.tables(tally, config.rejects.max_rows)
        progress.stage(f"publishing {len(tables)} tables as {run.run_id}")
        record = describe_run(config, tally, find_warnings(measurement, profiles), spark.version)
        published = publish(tables, run, store, record)

    def show_worst() -> str:
        return format_table(worst_identities(store.read(spark, BIAS_METRICS, run)), WORST)

    return progress.end(conclude(spark, store, published, record, show_worst))


def conclude(
    spark: SparkSession,
    store: PathStore | CatalogStore,
    published: PublishedRun,
    record: RunRecord,
    show: Callable[[], str],
) -> Outcome:
    """Refresh the views and say what came of a run that is published; whatever goes wrong now is a warning.

    Parameters
    ----------
    show
        Gives the table that people see.
    """
    run, warnings, table = published.run, tuple(record.warnings), ""
    try:
        warnings += refresh_views(spark, store)
        table = show()
    except Exception as error:  # noqa: BLE001 - the run is published, whatever happens here
        warnings += (f"{run.run_id} is published, but what follows failed: {describe_unexpected(error)}",)
    summary = {"job": run.job, "status": "published", "run_id": run.run_id, "run_date": run.run_date}
    summary |= {"n_rows": record.n_rows, "n_rejected": record.n_rejected, "rejects": record.rejects}
    summary |= {"warnings": warnings, "tables": published.n_rows, "output": store.root}
    return Outcome(summary=summary, table=table + "".join(f"\nwarning: {text}" for text in warnings))
