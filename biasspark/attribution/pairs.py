"""Pair segments on Spark: which positives a model fails to tell from which negatives (Attributing, section 6.4).

    RANKED --hash buckets, counted--> how many buckets are enough --+
    RANKED ---------------------------------------------------------+--lowest hashes--> samples --grouped map--> tree

The samples go to one task for each model and slice. There nothing is paired: see `biasspark.attribution.pair_kernel`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql import DataFrame, Window
from pyspark.sql.pandas.types import from_arrow_schema

from biasspark.attribution.pair_kernel import Examples, PairSegment, Sample, Samples, segment_pairs, sort_examples
from biasspark.columns import MODEL, NEGATIVE, POSITIVE, ROW_ID, SLICE
from biasspark.config.attribution_settings import Pairs
from biasspark.features import Feature, bin_names, describe_condition, write_predicate
from biasspark.metrics.intervals import auc_interval
from biasspark.tables.arrow import to_table
from biasspark.tables.frames import to_arrow
from biasspark.tables.schemas import PAIR_SEGMENTS

_GROUP = (MODEL, SLICE)
_SIDE = (*_GROUP, "label")
_BUCKET_BITS = 10
_TREE = pa.schema(
    [field for field in PAIR_SEGMENTS.arrow_schema if field.name not in ("mean_honest_low", "mean_honest_high")]
    + [pa.field("variance_honest", pa.float64())]
)
"""The table before the ends of the intervals are known."""


def pair_segments(ranked: DataFrame, features: Sequence[Feature], settings: Pairs, level: float = 0.95) -> pa.Table:
    """Return the table ``pair_segments``, less the run's columns: for each (model, slice) a tree over pairs.

    Parameters
    ----------
    ranked : DataFrame
        ``model STRING, slice STRING, row_id STRING, label BOOLEAN, score DOUBLE``, none NULL, scores finite, and
        ``bin_0 .. INT``, the bins of the features. Other columns are ignored.
    features : sequence of Feature
        What trees may split on, of either side of a pair.
    settings : Pairs
        Sizes of the samples, depth, and the fewest pairs and rows of a leaf.
    level : float
        Of the intervals, in (0, 1).

    Returns
    -------
    pyarrow.Table
        One row per node. Its pairs are all positives that meet ``positive_predicate`` with all negatives that meet
        ``negative_predicate``; the rules say the same in words. ``mean_train`` and ``mean_honest`` are AUCs: in [0, 1],
        ties one half, low where the model fails. ``mean_honest_low`` and ``_high`` are the interval of
        `biasspark.metrics.intervals.auc_interval`; the tests are those of `pair_kernel.segment_pairs`. The root has no
        parent and no ``p_value``; nodes that are no leaves have no ``p_adjusted`` and no ``found``.

        If a label is missing, the root alone, with counts and NULLs. If no label has two rows, no row. One row on a
        side has no variance, and so neither interval nor tests; a leaf without them is not found. Where nothing varies,
        p is 1 if there is no difference, else 0.

    Notes
    -----
    Of each label the rows with the lowest hashes of (seed, row_id as text) are drawn, equal ones by id: the first
    `positives` (`negatives`) grow the tree, as many others estimate. Fewer than twice as many are halved; an odd one is
    left out. So the draw depends on the rows alone, and models and slices draw the same rows where they have them.

    Runs a Spark action. Two scans of `ranked`, which is best persisted; 1,024 counts per (model, slice, label) are
    shuffled, then the samples and at most one bucket more, a thousandth of the rows. A task holds four samples.
    """
    sampled = sample_examples(ranked, len(features), settings)
    trees = sampled.groupBy(*_GROUP).applyInPandas(_grow(features, settings), from_arrow_schema(_TREE))
    rows = to_arrow(trees, _TREE)
    auc, variance = (rows[name].to_numpy(zero_copy_only=False) for name in ("mean_honest", "variance_honest"))
    n_low, n_high = (rows[f"n_{side}s_honest"].to_numpy().astype(np.int64) for side in (NEGATIVE, POSITIVE))
    interval = auc_interval(auc.astype(np.float64), variance.astype(np.float64), n_low, n_high, level)
    columns = {name: rows[name].combine_chunks() for name in rows.column_names if name != "variance_honest"}
    ends = {"mean_honest_low": interval.low, "mean_honest_high": interval.high}
    return to_table(PAIR_SEGMENTS, **{name: column.to_pylist() for name, column in columns.items()}, **ends)


def sample_examples(ranked: DataFrame, n_features: int, settings: Pairs) -> DataFrame:
    """Return the drawn rows: ``model, slice, label, honest BOOLEAN, score, bin_0 ..``, by model and slice together."""
    bins = bin_names(n_features)
    row_id = F.col(ROW_ID).cast("string")
    draw = F.xxhash64(F.lit(settings.seed).cast("bigint"), row_id)
    drawn = ranked.select(*_SIDE, row_id.alias(ROW_ID), "score", *bins, draw.alias("draw"))
    drawn = drawn.withColumn("bucket", F.shiftright("draw", 64 - _BUCKET_BITS))
    near = drawn.join(F.broadcast(_find_last_buckets(drawn, settings)), on=list(_SIDE))
    near = near.where(F.col("bucket") <= F.col("last_bucket")).repartition(*_GROUP)
    # Rows that repeat an id are told apart by what is used of them.
    place = F.row_number().over(Window.partitionBy(*_SIDE).orderBy("draw", ROW_ID, "score", *bins))
    placed = near.withColumn("place", place).where(F.col("place") <= 2 * F.col("size"))
    return placed.select(*_SIDE, (F.col("place") > F.col("size")).alias("honest"), "score", *bins)


def _find_last_buckets(drawn: DataFrame, settings: Pairs) -> DataFrame:
    """Return for each side the size of a sample, and the bucket of hashes with which two samples are full."""
    counted = drawn.groupBy(*_SIDE, "bucket").agg(F.count(F.lit(1)).alias("n_rows"))
    side = Window.partitionBy(*_SIDE)
    every = side.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    up_to = side.orderBy("bucket").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    most = F.when(F.col("label"), settings.positives).otherwise(settings.negatives)
    half = F.shiftright(F.sum("n_rows").over(every), 1)
    filled = counted.select(
        *_SIDE,
        "bucket",
        F.least(most.cast("bigint"), half).alias("size"),
        F.sum("n_rows").over(up_to).alias("n_reached"),
    )
    full = filled.where(F.col("n_reached") >= 2 * F.col("size"))
    return full.groupBy(*_SIDE).agg(F.max("size").alias("size"), F.min("bucket").alias("last_bucket"))


def _grow(features: Sequence[Feature], settings: Pairs) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def run(sampled: pd.DataFrame) -> pd.DataFrame:
        model, name = sampled[MODEL].iloc[0], sampled[SLICE].iloc[0]
        train, honest = (_read_sample(sampled[sampled["honest"] == part], len(features)) for part in (False, True))
        segments = segment_pairs(Samples(train, honest), features, settings)
        rows = [{MODEL: model, SLICE: name, **_write_segment(segment, features)} for segment in segments]
        return pd.DataFrame(rows, columns=_TREE.names, dtype=object)

    return run


def _read_sample(rows: pd.DataFrame, n_features: int) -> Sample:
    negatives, positives = (_read_examples(rows[rows["label"] == label], n_features) for label in (False, True))
    return negatives, positives


def _read_examples(rows: pd.DataFrame, n_features: int) -> Examples:
    bins = rows[bin_names(n_features)].to_numpy(np.int64).T
    return sort_examples(rows["score"].to_numpy(np.float64), bins)


def _write_segment(segment: PairSegment, features: Sequence[Feature]) -> dict[str, Any]:
    """Return what is said about a node, its conditions as words and as predicates."""
    said = segment._asdict()
    for side, condition in zip((NEGATIVE, POSITIVE), segment.conditions, strict=True):
        said[f"{side}_rule"] = describe_condition(condition, features)
        said[f"{side}_predicate"] = write_predicate(condition, features)
    return said
