"""The rows that a report is drawn from, read from published tables; the corpus is not read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from functools import reduce
from typing import Any

import pyspark.sql.functions as F
from pyspark.sql import DataFrame, SparkSession

from biasspark.columns import ALL_ROWS, IDENTITY, MODEL, OVERALL, SLICE
from biasspark.errors import BiasSparkError, InputError, has_condition
from biasspark.report.facts import (
    ALERTS,
    SUMMED_AUCS,
    SUMMED_RATES,
    WORST,
    NightFacts,
    PastNight,
    Row,
    Rows,
    choose_thresholds,
)
from biasspark.report.ledger import count_bins, earlier_nights, find_baseline, latest_runs, list_overrides
from biasspark.report.narrowing import (
    choose_worst,
    choose_worst_pairs,
    count_identities,
    count_kinds,
    count_summed,
    find_gone,
    find_sure_worst,
    keep_all_rows,
    keep_comparisons,
    keep_identities,
    keep_shown,
    keep_worst_alerts,
    mean_over_templates,
    merge_bins,
)
from biasspark.session import describe
from biasspark.tables.published import find_published, read_published, say_gone
from biasspark.tables.runs import ACCEPT_RUN, Run, from_micros
from biasspark.tables.schemas import (
    BIAS_ALERTS,
    BIAS_METRICS,
    COMPARISON_ALERTS,
    MODEL_COMPARISONS,
    MODEL_SUMMARY,
    RUN_DATE,
    SCORE_HISTOGRAMS,
    TABLES,
    TEMPLATE_SCORES,
    THRESHOLD_RATES,
    THRESHOLD_SUMMARY,
    Table,
)
from biasspark.tables.store import Store

MOST_IDENTITIES = 100
MOST_NIGHTS = 30
MOST_DAYS = 400

MOST_BINS = 100

_OF_IDENTITIES = ("pinned_auc", "label_balance")
_OF_ALL_ROWS = ("attribution_segments", "attribution_slices", "pair_segments", "auc_crosses", "loss_by_segment")
_COUNTED = {
    **dict.fromkeys(ALERTS, (MODEL, "outcome")),
    BIAS_ALERTS.name: (MODEL, "outcome", "baseline_run_id"),
    MODEL_COMPARISONS.name: (SLICE, MODEL, "baseline_model", "verdict"),
}
"""What tells the rows apart that are counted."""

_TIMES = ("started_at", "published_at")
Narrow = Callable[[DataFrame], DataFrame]

_PARTS = {
    BIAS_ALERTS.name: "gate",
    COMPARISON_ALERTS.name: "gate",
    "pinned_auc": "pinned_auc",
    THRESHOLD_RATES.name: "thresholds",
    THRESHOLD_SUMMARY.name: "thresholds",
    SCORE_HISTOGRAMS.name: "histograms",
    "label_balance": "label_balance",
    TEMPLATE_SCORES.name: "templates",
    **dict.fromkeys(_OF_ALL_ROWS, "attribution"),
}
"""Of a table the part of a run's configuration without which it is not computed; of others there is none."""
_NEEDED = {BIAS_METRICS.name, MODEL_SUMMARY.name, *ALERTS}
"""Without these a page would have no numbers, or say that there is no gate."""

_ABSENT = ("PATH_NOT_FOUND", "TABLE_OR_VIEW_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA")


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
        Of the tables that grow with identities, 100 identities with the lowest AUC, first those with enough rows,
        and those of which the worst values of a model are.

    Raises
    ------
    InputError
        If no run of the main job is published, naming the nights and corpora that there are; or if files are gone
        without which there is no page: those of the suite, its summary and the alerts of a gate.

    Notes
    -----
    A small job for each table, and one for the ledger. What comes to the driver grows with models, slices and nights,
    not with identities, of which 100 are read.
    """
    run = find_published(spark, store, BIAS_METRICS.job, run_date, corpus)
    with describe(spark, "report: ledger"):
        ledger = _read_ledger(spark, store, run)
    runs = {job: _to_run(row) for job, row in latest_runs(ledger, run_date).items()} | {run.job: run}
    own = next(row for row in ledger if row["run_id"] == run.run_id)
    configs = {row["run_id"]: json.loads(row["config"]) for row in ledger if row["run_date"] == run_date}
    reader = _Reader(spark, store, runs, configs)
    tables, counts = _read_tables(reader, own), _count_rows(reader)
    measured = reader.rows(BIAS_METRICS, count_identities, ("n",))
    baseline = find_baseline(ledger, own, counts.get(BIAS_ALERTS.name, ()))
    nights = earlier_nights(ledger, own, n_nights)
    gone = _find_gone(reader, run, _to_run(baseline.row)) if baseline else []
    past = _read_past(reader, [*nights, *([baseline.row] if baseline else [])], _list_identities(tables))
    return NightFacts(
        corpus=corpus,
        run_date=run_date,
        run={**own, "warnings": [*(own["warnings"] or ()), *reader.gone]},
        tables=tables,
        counts=counts,
        runs={job: found.run_id for job, found in runs.items()},
        configs={job: configs[found.run_id] for job, found in runs.items() if found.run_id in configs},
        history=[past[row["run_id"]] for row in nights],
        baseline=past[baseline.row["run_id"]] if baseline else None,
        standing=baseline.standing if baseline else "",
        overrides=list_overrides(ledger),
        n_identities=measured[0]["n"] if measured else 0,
        gone=gone,
    )


def _read_tables(reader: _Reader, run: Row) -> dict[str, list[Row]]:
    """Return the rows of the night by table; identities are chosen first, and only theirs are read."""
    worst = reader.rows(BIAS_METRICS, lambda frame: choose_worst(frame, MOST_IDENTITIES), (IDENTITY,))
    tables = {MODEL_SUMMARY.name: reader.rows(MODEL_SUMMARY)}
    tables["summed_aucs"] = reader.rows(
        BIAS_METRICS, lambda frame: count_summed(frame, (MODEL,), SUMMED_AUCS, find_sure_worst(WORST)), (MODEL,)
    )
    shown = sorted({*(row[IDENTITY] for row in worst), *_list_named(tables), OVERALL})
    tables[BIAS_METRICS.name] = reader.rows(BIAS_METRICS, lambda frame: keep_identities(frame, shown))
    tables |= {name: reader.rows(TABLES[name], lambda frame: keep_shown(frame, shown)) for name in _OF_IDENTITIES}
    tables |= {name: reader.rows(TABLES[name], keep_worst_alerts) for name in ALERTS}
    tables[THRESHOLD_SUMMARY.name] = reader.rows(THRESHOLD_SUMMARY)
    tables |= {name: reader.rows(TABLES[name], keep_all_rows) for name in _OF_ALL_ROWS}
    tables["crossed_pairs"] = reader.rows(BIAS_METRICS, choose_worst_pairs)
    tables[MODEL_COMPARISONS.name] = reader.rows(MODEL_COMPARISONS, lambda frame: keep_comparisons(frame, shown))
    tables["template_means"] = reader.rows(
        TEMPLATE_SCORES, lambda frame: mean_over_templates(frame, shown), (MODEL, IDENTITY)
    )
    thresholds = choose_thresholds(tables[THRESHOLD_SUMMARY.name])
    tables[THRESHOLD_RATES.name] = reader.rows(
        THRESHOLD_RATES, lambda frame: keep_shown(frame, shown).where(F.col("threshold").isin(*thresholds))
    )
    by = (MODEL, "threshold")
    tables["summed_rates"] = reader.rows(
        THRESHOLD_RATES,
        lambda frame: count_summed(frame.where(F.col("threshold").isin(*thresholds)), by, SUMMED_RATES),
        by,
    )
    together = -(-count_bins(run) // MOST_BINS)
    tables[SCORE_HISTOGRAMS.name] = reader.rows(
        SCORE_HISTOGRAMS, lambda frame: merge_bins(keep_shown(frame, shown), together)
    )
    return {name: rows for name, rows in tables.items() if rows}


def _list_named(tables: Mapping[str, Rows]) -> set[str]:
    """Return the identities of which the worst values of all rows are, and the worst with enough rows."""
    of_all_rows = [row for row in tables[MODEL_SUMMARY.name] if row[SLICE] == ALL_ROWS]
    named = [row[f"{column}_identity"] for row in of_all_rows for column in WORST.values()]
    named += [row[f"{column}_sure_identity"] for row in tables["summed_aucs"] for column in WORST.values()]
    return {name for name in named if name is not None}


def _count_rows(reader: _Reader) -> dict[str, list[Row]]:
    """Return how many rows of each kind the tables have of which only some are read."""
    counts = {name: reader.count(TABLES[name], by) for name, by in _COUNTED.items()}
    return {name: rows for name, rows in counts.items() if rows}


def _find_gone(reader: _Reader, run: Run, baseline: Run) -> list[str]:
    """Return the identities that are no longer measured: what is left out must not go unseen."""
    rows = reader.rows_of(BIAS_METRICS, [baseline, run], lambda frame: find_gone(frame, run.run_id), (IDENTITY,))
    return [row[IDENTITY] for row in rows]


def _list_identities(tables: Mapping[str, Rows]) -> list[str]:
    return sorted({row[IDENTITY] for row in tables.get(BIAS_METRICS.name, ())})


class _Reader:
    """Reads rows of the runs of one night; a table that a run lacks, being older than the table, has none.

    Where the configuration of a run of the night asks for the table, its files are ``gone``: that is said on the page.
    """

    def __init__(
        self, spark: SparkSession, store: Store, runs: Mapping[str, Run], configs: Mapping[str, Mapping[str, Any]]
    ) -> None:
        self._spark, self._store, self._runs, self._configs = spark, store, runs, configs
        self.gone: dict[str, None] = {}

    def rows(self, table: Table, narrow: Narrow = lambda frame: frame, order: Sequence[str] = ()) -> list[Row]:
        """Return the rows of a table of this night."""
        run = self._runs.get(table.job)
        return [] if run is None else self.rows_of(table, [run], narrow, order)

    def count(self, table: Table, by: Sequence[str]) -> list[Row]:
        """Return how many rows of each kind a table of this night has."""
        return self.rows(table, lambda frame: count_kinds(frame, by), by)

    def rows_of(self, table: Table, runs: Sequence[Run], narrow: Narrow, order: Sequence[str] = ()) -> list[Row]:
        """Return the rows of a table of several runs, in the order of some columns, or of its key. One job."""
        frames = [frame for run in runs if (frame := self._find(table, run)) is not None]
        if not frames:
            return []
        # Plain files, one per run: as one partition they need no shuffle, and no task per file.
        rows = narrow(reduce(DataFrame.unionByName, frames)).coalesce(1)
        with describe(self._spark, f"report: {table.name}"):
            found = [row.asDict() for row in rows.collect()]
        names = order or (RUN_DATE.name, *table.key_columns)
        return sorted(found, key=lambda row: tuple((row[name] is not None, row[name]) for name in names))

    def _find(self, table: Table, run: Run) -> DataFrame | None:
        try:
            return read_published(self._spark, self._store, table, run)
        except InputError:
            pass
        except Exception as error:
            if isinstance(error, BiasSparkError) or not has_condition(error, *_ABSENT):
                raise
        self._note_absence(table, run)
        return None

    def _note_absence(self, table: Table, run: Run) -> None:
        """Tell what is gone from what was never there: an earlier night may be gone, and lacks what is newer."""
        config = self._configs.get(run.run_id)
        part = _PARTS.get(table.name)
        if config is None or (part and part not in config):
            return
        fault = say_gone(self._store, table, run)
        if table.name in _NEEDED:
            raise InputError(fault)
        self.gone[fault] = None


def _read_ledger(spark: SparkSession, store: Store, run: Run) -> list[Row]:
    """Return the ledger's rows of the corpus up to the night; of the configurations only those that say something."""
    earliest = run.run_date - timedelta(days=MOST_DAYS)
    rows = store.read_ledger(spark, None).where(
        (F.col("corpus") == F.lit(run.corpus)) & F.col(RUN_DATE.name).between(F.lit(earliest), F.lit(run.run_date))
    )
    told = (F.col(RUN_DATE.name) == F.lit(run.run_date)) | (F.col("job") == F.lit(ACCEPT_RUN))
    # Times as numbers, which no time zone of a session or a machine can shift.
    rows = rows.withColumns(
        {"config": F.when(told, F.col("config")), **{name: F.unix_micros(name) for name in _TIMES}},
    )
    return [_with_times(row.asDict()) for row in rows.collect()]


def _with_times(row: dict[str, Any]) -> dict[str, Any]:
    return row | {name: from_micros(row[name]) for name in _TIMES}


def _to_run(row: Row) -> Run:
    return Run(row["run_date"], row["corpus"], row["job"], row["run_id"], row["started_at"])


def _read_past(reader: _Reader, rows: Rows, shown: Sequence[str]) -> dict[str, PastNight]:
    """Return by run the suite of runs before."""
    runs = [_to_run(row) for row in {row["run_id"]: row for row in rows}.values()]
    metrics = reader.rows_of(BIAS_METRICS, runs, lambda frame: keep_shown(frame, shown))
    summaries = reader.rows_of(MODEL_SUMMARY, runs, keep_all_rows)
    return {
        run.run_id: PastNight(
            run_date=run.run_date,
            run_id=run.run_id,
            metrics=[row for row in metrics if row["run_id"] == run.run_id],
            summaries=[row for row in summaries if row["run_id"] == run.run_id],
        )
        for run in runs
    }
