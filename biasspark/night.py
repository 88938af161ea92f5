"""A night of the main job, from a corpus that was read to tables that are published; and how any night ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyspark.sql.functions as F
from pyspark.sql import DataFrame, Row, SparkSession

from biasspark.cli import Outcome, Progress, describe_unexpected, format_table
from biasspark.columns import CROSSED, IDENTITY, MODEL, SLICE, SUMMARISED_AUCS
from biasspark.config import Config
from biasspark.gating import judged, show_alerts
from biasspark.merging import (
    Window,
    describe_window,
    keep_state,
    merge_nights,
    merged_once,
    state_of,
    window_tables,
)
from biasspark.pipeline import describe_run, find_warnings, measure, ranked_once
from biasspark.tables.publish import PublishedRun, publish
from biasspark.tables.runs import Run, RunRecord
from biasspark.tables.schemas import (
    ATTRIBUTION_SEGMENTS,
    BIAS_ALERTS,
    BIAS_METRICS,
    LOSS_BY_SEGMENT,
    MODEL_COMPARISONS,
    SCORE_BLOCKS,
    WINDOW_TABLES,
)
from biasspark.tables.store import CatalogStore, PathStore
from biasspark.tables.views import refresh_views

WORST = (MODEL, SLICE, IDENTITY, "subgroup_auc", "bpsn_auc", "bnsp_auc", "negative_aeg", "positive_aeg")
MOVED = (MODEL, SLICE, "n_rows", "n_dropped", "metric", "before", "after", "sd", "moved")
_HONEST = ("rule", "n_honest", "mean_honest", "mean_honest_low", "mean_honest_high", "p_adjusted", "found")
_DIFFERENCE = ("difference_low", "difference_high", "p_adjusted")
LOST = (MODEL, SLICE, *_HONEST)
WON = (MODEL, "baseline_model", SLICE, *_HONEST)
CHANGED = (MODEL, SLICE, IDENTITY, "metric", "value", "baseline_value", "difference", *_DIFFERENCE)
LOSSES = (MODEL, SLICE, "segment", "n_rows", "cross_entropy", "gini_impurity", "auc", "mean_normalized_attribution")


def run_night(
    corpus: DataFrame, config: Config, store: PathStore | CatalogStore, run: Run, progress: Progress
) -> Outcome:
    """Survey, rank, judge, publish, and say what came of it."""
    spark = corpus.sparkSession
    progress.stage(f"survey of {config.corpus.name}")
    measurement = measure(corpus, config, config.corpus.id, config.corpus.duplicates)
    if config.state:
        measurement = keep_state(measurement, config, store)
    progress.stage(f"ranking {measurement.extent}")
    with ranked_once(measurement) as (tally, profiles):
        tables = measurement.tables(tally, config.rejects.max_rows)
        if config.state:
            tables[SCORE_BLOCKS] = state_of(measurement, config)
        if config.gate:
            progress.stage(f"gate of {len(config.gate.of_nights)} rules")
        with judged(measurement.statistics, config, store, run) as verdict:
            progress.stage(f"publishing {len(tables)} tables as {run.run_id}")
            warnings = (*find_warnings(measurement, profiles), *verdict.warnings)
            record = replace(describe_run(config, tally, warnings, spark.version), status=verdict.status)
            published = publish(tables | {BIAS_ALERTS: verdict.alerts}, run, store, record)

    def show() -> str:
        worst = format_table(worst_identities(store.read(spark, BIAS_METRICS, run)), WORST)
        return "\n\n".join(filter(None, [worst, show_alerts(store.read(spark, BIAS_ALERTS, run), verdict)]))

    done = conclude(spark, store, published, record, show)
    return progress.end(replace(done, summary={**done.summary, "gate": verdict.outcome}, exit_code=verdict.exit_code))


def run_window(
    window: Window, config: Config, store: PathStore | CatalogStore, run: Run, progress: Progress
) -> Outcome:
    """Merge the nights of a window, publish, and say what came of it."""
    spark = window.blocks.sparkSession
    measurement = merge_nights(window, config)
    progress.stage(f"merging {window.extent}")
    with merged_once(measurement):
        tables = window_tables(measurement, window)
        progress.stage(f"publishing {len(tables)} tables as {run.run_id}")
        record = describe_window(window, config, spark.version)
        published = publish(tables, run, store, record)

    def show_worst() -> str:
        return format_table(worst_identities(store.read(spark, WINDOW_TABLES[BIAS_METRICS], run)), WORST)

    outcome = conclude(spark, store, published, record, show_worst)
    own = {"from": window.first, "to": window.last, "nights": len(window.nights), "missing": list(window.missing)}
    return progress.end(replace(outcome, summary={**outcome.summary, **own}))


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
    summary = {"job": run.job, "status": record.status, "run_id": run.run_id, "run_date": run.run_date}
    summary |= {"n_rows": record.n_rows, "n_rejected": record.n_rejected, "rejects": record.rejects}
    summary |= {"warnings": warnings, "tables": published.n_rows, "output": store.root}
    return Outcome(summary=summary, table=table + "".join(f"\nwarning: {text}" for text in warnings))


def worst_identities(metrics: DataFrame, most: int = 10) -> list[dict[str, Any]]:
    """Return the identities with the lowest of their subgroup, BPSN and BNSP AUC, crossed pairs left out."""
    lowest = F.least("subgroup_auc", "bpsn_auc", "bnsp_auc")
    rows = (
        metrics.where(lowest.isNotNull() & ~F.col(CROSSED))
        .orderBy(lowest, *WORST[:3])
        .select(*WORST)
        .limit(most)
        .collect()
    )
    return [row.asDict() for row in rows]


def show_lost(spark: SparkSession, store: PathStore | CatalogStore, run: Run, most: int = 10) -> str:
    """Return tables of the leaves that lose most, and of those where a compared model wins; else of named segments."""
    leaves = store.read(spark, ATTRIBUTION_SEGMENTS, run).where("is_leaf AND target = 'auc'")
    lost = leaves.where("baseline_model = ''").orderBy("mean_honest", MODEL, SLICE, "node_id")
    won = leaves.where("mean_honest > 0 AND baseline_model <> ''").orderBy(
        F.col("mean_honest").desc(), MODEL, "baseline_model", SLICE, "node_id"
    )
    losses = store.read(spark, LOSS_BY_SEGMENT, run).orderBy("auc", MODEL, SLICE, "segment")
    shown = [_format_rows(lost, LOST, most), _format_rows(won, WON, most)]
    return "\n\n".join(filter(None, shown)) or _format_rows(losses, LOSSES, most)


def show_changes(spark: SparkSession, store: PathStore | CatalogStore, run: Run, most: int = 10) -> str:
    """Return tables of what got worse and of what got better, the surest first, and how often each verdict fell."""
    found = store.read(spark, MODEL_COMPARISONS, run)
    order = ("p_value", F.abs("difference").desc(), MODEL, SLICE, IDENTITY, "metric")  # many p-values round to 0
    changed = [
        (verdict, _format_rows(found.where(F.col("verdict") == verdict).orderBy(*order), CHANGED, most))
        for verdict in ("worse", "better")
    ]
    counts = found.groupBy(MODEL, "baseline_model", SLICE, "verdict").count()
    shown = [f"{verdict}:\n{table}" for verdict, table in changed if table]
    return "\n\n".join([*shown, _format_rows(counts.orderBy(MODEL, SLICE, "verdict"), tuple(counts.columns), 40)])


def _format_rows(rows: DataFrame, columns: Sequence[str], most: int) -> str:
    """Lay out the first rows; nothing if there are none."""
    found = [row.asDict() for row in rows.select(*columns).limit(most).collect()]
    return format_table(found, columns) if found else ""


def moved_most(skewed: DataFrame, most: int = 5) -> list[dict[str, Any]]:
    """Return where pinned AUC moves most, a metric a row: its value before rows are dropped, and after."""
    far = F.abs(F.col("pinned_auc_skewed") - F.col("pinned_auc"))
    found = skewed.orderBy(far.desc_nulls_last(), MODEL, SLICE).limit(most).collect()
    return [row for one in found for row in _list_moves(one)]


def _list_moves(skewed: Row) -> Iterator[dict[str, Any]]:
    key = {name: skewed[name] for name in (MODEL, SLICE, "n_rows", "n_dropped")}
    sampled = {name: (f"{name}_sampled_mean", f"{name}_sampled_sd") for name in ("pinned_auc", *SUMMARISED_AUCS)}
    for metric, name, after, sd in (
        ("pinned_auc, closed form", "pinned_auc", "pinned_auc_skewed", None),
        *((f"{name}, mean of trials", name, *columns) for name, columns in sampled.items()),
    ):
        before, now = skewed[name], skewed[after]
        moved = None if before is None or now is None else now - before
        yield {**key, "metric": metric, "before": before, "after": now, "sd": sd and skewed[sd], "moved": moved}
