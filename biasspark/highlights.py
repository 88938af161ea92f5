"""What people look at first of a run that is published: a few rows of its tables, the worst or the surest first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import pyspark.sql.functions as F
from pyspark.sql import DataFrame, Row, SparkSession, Window

from biasspark.cli import format_table
from biasspark.columns import (
    ALL_ROWS,
    BETTER,
    CROSSED,
    IDENTITY,
    MODEL,
    OVERALL,
    SLICE,
    SUMMARISED_AUCS,
    VERDICTS,
    WORSE,
)
from biasspark.config import say_count, show_visibly
from biasspark.tables.runs import Run
from biasspark.tables.schemas import (
    ATTRIBUTION_SEGMENTS,
    ATTRIBUTION_SLICES,
    AUC_CROSSES,
    LOSS_BY_SEGMENT,
    MODEL_COMPARISONS,
    PAIR_SEGMENTS,
    Table,
)
from biasspark.tables.store import Store

WORST = (MODEL, SLICE, IDENTITY, "n_rows", "metric", "value", "low", "high")
SCREEN_WIDTH = 120
FEWEST_ROWS = 30
CHANGED_BY_SKEW = (MODEL, SLICE, "n_rows", "n_dropped", "metric", "before", "after", "sd", "change")
_ENDS = ("mean_honest", "mean_honest_low", "mean_honest_high", "p_adjusted", "found", "confirmed")
_HONEST = ("rule", "n_honest", *_ENDS)
_DIFFERENCE = ("difference_low", "difference_high", "p_adjusted")
CHANGED = (SLICE, IDENTITY, "metric", "value", "baseline_value", "difference", *_DIFFERENCE)
_CHANGE = (MODEL, "baseline_model", "verdict")
_BACKGROUND_AUC = "background_auc"


class Highlight(NamedTuple):
    """Some rows of a table: a title, which rows, by what they are ordered, ascending, and how many of what is shown."""

    title: str
    table: Table
    where: str
    by: str
    columns: tuple[str, ...]
    most: int = 5

    def show(self, spark: SparkSession, store: Store, run: Run) -> str:
        """Lay them out below their title; nothing if there are none. Of equal ones the earlier keys come first."""
        key = (column.name for column in self.table.key)
        rows = store.read(spark, self.table, run).where(self.where).orderBy(F.expr(self.by).asc_nulls_last(), *key)
        shown = _format_rows(rows, self.columns, self.most)
        return f"{self.title}:\n{shown}" if shown else ""


LOST = (
    Highlight(
        "leaves by mean attribution, lowest first",
        ATTRIBUTION_SEGMENTS,
        "is_leaf AND target = 'auc' AND baseline_model = ''",
        "mean_honest",
        (MODEL, SLICE, *_HONEST),
        10,
    ),
    Highlight(
        "model minus baseline, largest difference first",
        ATTRIBUTION_SEGMENTS,
        "is_leaf AND target = 'auc' AND baseline_model <> ''",
        "-abs(mean_honest)",
        (MODEL, "baseline_model", SLICE, *_HONEST),
        10,
    ),
    Highlight(
        "slices by size times loss, worst of each model first",
        ATTRIBUTION_SLICES,
        "TRUE",
        "rank",
        (MODEL, SLICE, "rank", *_HONEST),
    ),
    Highlight(
        "leaves of pairs by AUC, lowest first",
        PAIR_SEGMENTS,
        "is_leaf",
        "mean_honest",
        (MODEL, SLICE, "negative_rule", "positive_rule", *_ENDS),
    ),
    Highlight(
        "pairs of groups by share of all wrongly ordered pairs, largest first",
        AUC_CROSSES,
        "headroom_share > 0",
        "-headroom_share",
        (MODEL, SLICE, "grouping", "positive_group", "negative_group", "n_pairs", "auc", "headroom_share"),
    ),
)
"""What attribution found."""

LOSSES = Highlight(
    "segments by AUC, lowest first",
    LOSS_BY_SEGMENT,
    "TRUE",
    "auc",
    (MODEL, SLICE, "segment", "n_rows", "cross_entropy", "gini_impurity", "auc", "mean_normalized_attribution"),
    10,
)
"""What there is where nothing was searched."""


def show_worst_identities(metrics: DataFrame, most: int = 10) -> str:
    """Return a table of the identities for which it is most certain that an AUC is low, crossed pairs left out.

    The rule is that of ``conf/sql/worst_identities.sql``: of the subgroup, BPSN and BNSP AUC of an identity the one
    whose interval ends lowest counts, and the lowest upper end comes first. Identities with fewer than `FEWEST_ROWS`
    rows or without an interval are left out, since the lowest of many such estimates is low by chance. A line below
    the table says how many they are.
    """
    lowest = _find_lowest_aucs(metrics)
    rows = lowest.where("NOT too_few").orderBy("high", *WORST[:3]).select(*WORST).limit(most).collect()
    lines = [_say_left_out(lowest)]
    if rows:
        lines[:0] = [
            "identities by the upper end of the interval of their lowest AUC, lowest first:",
            format_table([row.asDict() for row in rows], WORST, SCREEN_WIDTH),
        ]
    return "\n".join(filter(None, lines))


def _find_lowest_aucs(metrics: DataFrame) -> DataFrame:
    """Return of each single identity its rows, the AUC whose interval ends lowest, and whether the rows are too few."""
    # Structs are compared field by field: by the upper end, then by the name of the metric.
    aucs = [
        F.when(
            F.col(f"{name}_high").isNotNull(),
            F.struct(
                F.col(f"{name}_high").alias("high"),
                F.lit(name).alias("metric"),
                F.col(name).alias("value"),
                F.col(f"{name}_low").alias("low"),
            ),
        )
        for name in SUMMARISED_AUCS
    ]
    n_rows = (F.col("n_subgroup_negative") + F.col("n_subgroup_positive")).alias("n_rows")
    single = metrics.where(~F.col(CROSSED)).select(*WORST[:3], n_rows, F.least(*aucs).alias("lowest"))
    # The number of rows is NULL where it is withheld: that is too few.
    too_few = F.col("lowest.high").isNull() | ~F.coalesce(F.col("n_rows") >= FEWEST_ROWS, F.lit(False))
    return single.select(*WORST[:4], "lowest.*", too_few.alias("too_few"))


def _say_left_out(lowest: DataFrame) -> str:
    """Say how many identities have too few rows; nothing if all have enough."""
    by_identity = lowest.groupBy(IDENTITY).agg(F.count_if("too_few").alias("left_out"), F.count("*").alias("n"))
    [counts] = by_identity.agg(
        F.count("*").alias("n"),
        F.count_if(F.col("left_out") == F.col("n")).alias("n_everywhere"),
        F.count_if((F.col("left_out") > 0) & (F.col("left_out") < F.col("n"))).alias("n_elsewhere"),
    ).collect()
    of_all = f"of {say_count(counts.n, 'identity', 'identities')}"
    parts = [f"{counts.n_everywhere:,} {of_all}"] if counts.n_everywhere else []
    if counts.n_elsewhere:
        parts.append(f"{counts.n_elsewhere:,} {'more' if parts else of_all} for some models or slices")
    why = f"left out for too few rows, under {FEWEST_ROWS} or no interval"
    return f"{why}: {', '.join(parts)}" if parts else ""


def show_lost(spark: SparkSession, store: Store, run: Run) -> str:
    """Return tables of the leaves, slices, pairs and groups that lose most, and where models differ; else of losses."""
    shown = [highlight.show(spark, store, run) for highlight in LOST]
    return "\n\n".join(filter(None, shown)) or LOSSES.show(spark, store, run)


def show_changes(spark: SparkSession, store: Store, run: Run, most: int = 10) -> str:
    """Return the metrics in which each model is significantly worse or better, and how often each verdict fell."""
    found = store.read(spark, MODEL_COMPARISONS, run)
    surest = [row.asDict() for row in _list_surest(found, most).collect()]
    changes = [_show_changed(list(rows)) for _, rows in groupby(surest, itemgetter(*_CHANGE))]
    tally = _tally_verdicts(found)
    counts = format_table([row.asDict() for row in tally.collect()], tally.columns)
    everything = f"latest_{MODEL_COMPARISONS.name} has every comparison, those of {_BACKGROUND_AUC} too."
    return "\n\n".join([*changes, counts, everything])


def _list_surest(found: DataFrame, most: int) -> DataFrame:
    """Return the surest changes of each model for the worse and for the better, and as `n` how many there are.

    Single identities come before crossed pairs and all rows before slices. Background AUC is left out: that of a small
    identity is nearly the AUC of all rows.
    """
    key = (column.name for column in MODEL_COMPARISONS.key)
    alike = Window.partitionBy(*_CHANGE)
    size = F.abs("difference").desc()  # many p-values round to 0
    surest = alike.orderBy(CROSSED, F.col(SLICE) != ALL_ROWS, "p_adjusted", "p_value", size, *key)
    return (
        found.where(F.col("verdict").isin(WORSE, BETTER) & (F.col("metric") != _BACKGROUND_AUC))
        .withColumns({"n": F.count("*").over(alike), "place": F.row_number().over(surest)})
        .where(F.col("place") <= most)
        .orderBy(MODEL, "baseline_model", F.col("verdict") != WORSE, "place")
    )


def _show_changed(rows: Sequence[Mapping[str, Any]]) -> str:
    """Lay out the surest changes of a model for the worse or for the better, below their title."""
    title = show_visibly("{model} significantly {verdict} than {baseline_model}:".format_map(rows[0]))
    left = rows[0]["n"] - len(rows)
    return "\n".join([title, format_table(rows, CHANGED), *([f"and {left:,} more"] if left else [])])


def _tally_verdicts(found: DataFrame) -> DataFrame:
    """Return of each model and slice how many rows it and the baseline score, and how often each verdict fell."""
    whole = F.when(F.col(IDENTITY) == OVERALL, F.col("n_low") + F.col("n_high"))
    counts = [F.count_if(F.col("verdict") == verdict).alias(verdict) for verdict in VERDICTS]
    tally = found.groupBy(MODEL, "baseline_model", SLICE).agg(F.sum(whole).alias("n_rows"), *counts)
    return tally.orderBy(MODEL, F.col(SLICE) != ALL_ROWS, SLICE)


def _format_rows(rows: DataFrame, columns: Sequence[str], most: int) -> str:
    """Lay out the first rows; nothing if there are none."""
    found = [row.asDict() for row in rows.select(*columns).limit(most).collect()]
    return format_table(found, columns) if found else ""


def changed_by_skew(skewed: DataFrame, most: int = 5) -> list[dict[str, Any]]:
    """Return where pinned AUC changes most, one metric per row: its value before rows are dropped, and after."""
    far = F.abs(F.col("pinned_auc_skewed") - F.col("pinned_auc"))
    found = skewed.orderBy(far.desc_nulls_last(), MODEL, SLICE).limit(most).collect()
    return [row for one in found for row in _list_skew_changes(one)]


def _list_skew_changes(skewed: Row) -> Iterator[dict[str, Any]]:
    key = {name: skewed[name] for name in (MODEL, SLICE, "n_rows", "n_dropped")}
    sampled = {name: (f"{name}_sampled_mean", f"{name}_sampled_sd") for name in ("pinned_auc", *SUMMARISED_AUCS)}
    for metric, name, after, sd in (
        ("pinned_auc, closed form", "pinned_auc", "pinned_auc_skewed", None),
        *((f"{name}, mean of trials", name, *columns) for name, columns in sampled.items()),
    ):
        before, now = skewed[name], skewed[after]
        change = None if before is None or now is None else now - before
        yield {**key, "metric": metric, "before": before, "after": now, "sd": sd and skewed[sd], "change": change}
