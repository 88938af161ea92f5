"""What people look at first of a run that is published: a few rows of its tables, the worst or the surest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyspark.sql.functions as F
from pyspark.sql import DataFrame, Row, SparkSession

from biasspark.cli import format_table
from biasspark.columns import CROSSED, IDENTITY, MODEL, SLICE, SUMMARISED_AUCS
from biasspark.tables.runs import Run
from biasspark.tables.schemas import ATTRIBUTION_SEGMENTS, LOSS_BY_SEGMENT, MODEL_COMPARISONS
from biasspark.tables.store import Store

WORST = (MODEL, SLICE, IDENTITY, "subgroup_auc", "bpsn_auc", "bnsp_auc", "negative_aeg", "positive_aeg")
MOVED = (MODEL, SLICE, "n_rows", "n_dropped", "metric", "before", "after", "sd", "moved")
_HONEST = ("rule", "n_honest", "mean_honest", "mean_honest_low", "mean_honest_high", "p_adjusted", "found")
_DIFFERENCE = ("difference_low", "difference_high", "p_adjusted")
LOST = (MODEL, SLICE, *_HONEST)
DIFFERS = (MODEL, "baseline_model", SLICE, *_HONEST)
CHANGED = (MODEL, SLICE, IDENTITY, "metric", "value", "baseline_value", "difference", *_DIFFERENCE)
LOSSES = (MODEL, SLICE, "segment", "n_rows", "cross_entropy", "gini_impurity", "auc", "mean_normalized_attribution")


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


def show_lost(spark: SparkSession, store: Store, run: Run, most: int = 10) -> str:
    """Return tables of the leaves that lose most, and of those where models differ most; else of named segments."""
    leaves = store.read(spark, ATTRIBUTION_SEGMENTS, run).where("is_leaf AND target = 'auc'")
    lost = leaves.where("baseline_model = ''").orderBy("mean_honest", MODEL, SLICE, "node_id")
    differ = leaves.where("baseline_model <> ''").orderBy(
        F.abs("mean_honest").desc_nulls_last(), MODEL, "baseline_model", SLICE, "node_id"
    )
    titled = {
        "leaves by their mean attribution, the lowest first": _format_rows(lost, LOST, most),
        "model less baseline, the largest difference first": _format_rows(differ, DIFFERS, most),
    }
    shown = [f"{title}:\n{table}" for title, table in titled.items() if table]
    losses = store.read(spark, LOSS_BY_SEGMENT, run).orderBy("auc", MODEL, SLICE, "segment")
    return "\n\n".join(shown) or _format_rows(losses, LOSSES, most)


def show_changes(spark: SparkSession, store: Store, run: Run, most: int = 10) -> str:
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
