"""The rows that a report is drawn from, read from published tables; the corpus is not read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from functools import reduce
from typing import Any

import pyspark.sql.functions as F
from pyspark.sql import DataFrame, SparkSession

from biasspark.columns import ALL_ROWS, CROSSED, IDENTITY, OVERALL, SLICE
from biasspark.errors import BiasSparkError, InputError, find_error_condition
from biasspark.report.facts import NightFacts, PastNight, Row, Rows, order_worst_first
from biasspark.session import describe
from biasspark.tables.published import find_published, read_published
from biasspark.tables.runs import Run
from biasspark.tables.schemas import BIAS_METRICS, MODEL_SUMMARY, RUN_DATE, TABLES, Table
from biasspark.tables.store import Store

MOST_IDENTITIES = 100
MOST_NIGHTS = 30
MOST_DAYS = 400

_OF_IDENTITIES = ("pinned_auc", "threshold_rates", "score_histograms", "label_balance")
_WHOLE = (
    *("bias_alerts", "threshold_summary"),
    *("attribution_segments", "attribution_slices", "pair_segments", "auc_crosses", "loss_by_segment"),
)
_ABSENT = {"PATH_NOT_FOUND", "TABLE_OR_VIEW_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA"}


def read_night(
    spark: SparkSession, store: Store, run_date: date, corpus: str, n_nights: int = MOST_NIGHTS
) -> NightFacts:
    """Read what a report says of one night: the latest published run of each job, and the nights before it.

    Parameters
    ----------
    spark, store
        Where the tables are.
    run_date, corpus
        Which night.
    n_nights
        How many nights before it are read at most, for trends and for what changed.

    Returns
    -------
    NightFacts
        Of the tables that grow with identities, the 100 identities with the lowest AUC.

    Raises
    ------
    InputError
        If no run of the main job is published, naming the nights and corpora that there are.

    Notes
    -----
    A small job for each table, and one for the ledger. The rows grow with identities, models and slices alone.
    """
    run = find_published(spark, store, BIAS_METRICS.job, run_date, corpus)
    with describe(spark, "report: ledger"):
        ledger = _read_ledger(spark, store, run)
    latest = _latest_runs(ledger, run_date, corpus) | {run.job: run}
    reader = _Reader(spark, store, latest)
    metrics = reader.rows(BIAS_METRICS, lambda frame: frame.where(~F.col(CROSSED)))
    worst = order_worst_first([row for row in metrics if row[SLICE] == ALL_ROWS])
    shown = [*worst[:MOST_IDENTITIES], OVERALL]
    tables = {BIAS_METRICS.name: [row for row in metrics if row[IDENTITY] in set(shown)]}
    tables[MODEL_SUMMARY.name] = reader.rows(MODEL_SUMMARY)
    tables |= {name: reader.rows(TABLES[name], lambda f: _keep_shown(f, shown)) for name in _OF_IDENTITIES}
    tables |= {name: reader.rows(TABLES[name]) for name in _WHOLE if name in TABLES}
    overrides = list_overrides(ledger)
    return NightFacts(
        corpus=corpus,
        run_date=run_date,
        run=next(row for row in ledger if row["run_id"] == run.run_id),
        tables={name: rows for name, rows in tables.items() if rows},
        runs={job: found.run_id for job, found in latest.items()},
        history=_read_history(reader, _earlier_runs(ledger, run, n_nights), shown, overrides),
        overrides=overrides,
        n_identities=len(worst),
    )


class _Reader:
    """Reads rows of the runs of one night; a table that a run lacks, being older than the table, has none."""

    def __init__(self, spark: SparkSession, store: Store, runs: Mapping[str, Run]) -> None:
        self._spark, self._store, self._runs = spark, store, runs

    def rows(self, table: Table, narrow: Callable[[DataFrame], DataFrame] = lambda frame: frame) -> list[Row]:
        """Return the rows of a table of this night."""
        run = self._runs.get(table.job)
        return [] if run is None else self.rows_of(table, [run], narrow)

    def rows_of(self, table: Table, runs: Sequence[Run], narrow: Callable[[DataFrame], DataFrame]) -> list[Row]:
        """Return the rows of a table of several runs, in the order of its key. One job."""
        frames = [frame for run in runs if (frame := self._find(table, run)) is not None]
        if not frames:
            return []
        # Plain files, one a run: as one partition they need no shuffle, and no task a file.
        rows = narrow(reduce(DataFrame.unionByName, frames)).coalesce(1)
        with describe(self._spark, f"report: {table.name}"):
            found = [row.asDict() for row in rows.collect()]
        order = (RUN_DATE.name, *table.key_columns)
        return sorted(found, key=lambda row: tuple((row[name] is not None, row[name]) for name in order))

    def _find(self, table: Table, run: Run) -> DataFrame | None:
        try:
            return read_published(self._spark, self._store, table, run)
        except InputError:
            return None
        except Exception as error:
            if isinstance(error, BiasSparkError) or find_error_condition(error) not in _ABSENT:
                raise
            return None


def _keep_shown(frame: DataFrame, shown: Sequence[str]) -> DataFrame:
    kept = frame.where(F.col(IDENTITY).isin(*shown))
    return kept.where(F.col(SLICE) == F.lit(ALL_ROWS)) if SLICE in frame.columns else kept


def _read_ledger(spark: SparkSession, store: Store, run: Run) -> list[dict[str, Any]]:
    """Return the ledger's rows of the corpus up to the night; of the configurations only those that say something."""
    earliest = run.run_date - timedelta(days=MOST_DAYS)
    rows = store.read_ledger(spark, None).where(
        (F.col("corpus") == F.lit(run.corpus)) & F.col(RUN_DATE.name).between(F.lit(earliest), F.lit(run.run_date))
    )
    told = (F.col("run_id") == F.lit(run.run_id)) | (F.col("status") == F.lit("accepted"))
    return [row.asDict() for row in rows.withColumn("config", F.when(told, F.col("config"))).collect()]


def _latest_runs(ledger: Iterable[Row], run_date: date, corpus: str) -> dict[str, Run]:
    """Return by job the run of a night that was published last."""
    own = sorted((row for row in ledger if row["run_date"] == run_date), key=_published)
    return {row["job"]: _to_run(row, corpus) for row in own if row["status"] == "published"}


def _earlier_runs(ledger: Iterable[Row], run: Run, most: int) -> list[Run]:
    """Return the latest run of the same job of each of the nights before, oldest first."""
    own = [row for row in ledger if row["job"] == run.job and row["run_date"] < run.run_date]
    by_night = {row["run_date"]: row for row in sorted(own, key=_published)}
    return [_to_run(by_night[night], run.corpus) for night in sorted(by_night)[-most:]] if most else []


def _published(row: Row) -> tuple[Any, str]:
    return row["published_at"], row["run_id"]


def _to_run(row: Row, corpus: str) -> Run:
    # Only its id and date are used; the session's time zone is not known here.
    started_at = row["started_at"].astimezone()
    return Run(row["run_date"], corpus, row["job"], row["run_id"], started_at)


def list_overrides(ledger: Iterable[Row]) -> list[Row]:
    """Return what people accepted by hand, from the ledger's rows of that status; the last of a run counts."""
    found = {}
    for row in sorted((row for row in ledger if row["status"] == "accepted"), key=_published):
        said = json.loads(row["config"] or "{}")
        told = {name: str(said.get(name, "")) for name in ("accepted_run_id", "reason", "by")}
        found[told["accepted_run_id"]] = {**told, "published_at": row["published_at"]}
    return list(found.values())


def _read_history(reader: _Reader, runs: Sequence[Run], shown: Sequence[str], overrides: Rows) -> list[PastNight]:
    metrics = reader.rows_of(BIAS_METRICS, runs, lambda frame: _keep_shown(frame, shown))
    summaries = reader.rows_of(MODEL_SUMMARY, runs, lambda frame: frame.where(F.col(SLICE) == F.lit(ALL_ROWS)))
    alerts = reader.rows_of(TABLES["bias_alerts"], runs, lambda frame: frame) if "bias_alerts" in TABLES else []
    accepted = {row["accepted_run_id"] for row in overrides}
    nights = [PastNight(run_date=run.run_date, run_id=run.run_id, metrics=()) for run in runs]
    return [
        replace(
            night,
            metrics=_of_run(metrics, night),
            summaries=_of_run(summaries, night),
            alerts=_of_run(alerts, night),
            accepted=night.run_id in accepted,
        )
        for night in nights
    ]


def _of_run(rows: Rows, night: PastNight) -> list[Row]:
    return [row for row in rows if row["run_id"] == night.run_id]
