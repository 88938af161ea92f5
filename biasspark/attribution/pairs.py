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
import pyspark.sql.functions as F
from pyspark.sql import DataFrame, Window

from biasspark.attribution.pair_kernel import Examples, Sample, Samples, Segment, segment_pairs, sort_examples
from biasspark.columns import MODEL, ROW_ID, SLICE
from biasspark.config.attribution import Pairs
from biasspark.features import Feature, say_condition, write_predicate
from biasspark.metrics.intervals import auc_interval

_GROUP = (MODEL, SLICE)
_SIDE = (*_GROUP, "label")
_BUCKET_BITS = 10
_TREE = (
    "model STRING, slice STRING, node_id INT, parent_id INT, depth INT, is_leaf BOOLEAN, negative_rule STRING, "
    "positive_rule STRING, negative_predicate STRING, positive_predicate STRING, n_pairs_train BIGINT, "
    "mean_train DOUBLE, n_negatives_honest BIGINT, n_positives_honest BIGINT, mean_honest DOUBLE, "
    "variance_honest DOUBLE, p_value DOUBLE, p_train_honest DOUBLE, false_discovery BOOLEAN, p_adjusted DOUBLE, "
    "found BOOLEAN"
)
_COLUMNS = [column.split()[0] for column in _TREE.split(", ")]


def pair_segments(ranked: DataFrame, features: Sequence[Feature], settings: Pairs, level: float = 0.95) -> DataFrame:
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
    DataFrame
        A row a node. Its pairs are all positives that meet ``positive_predicate`` with all negatives that meet
        ``negative_predicate``; the rules say the same in words. ``mean_train`` and ``mean_honest`` are AUCs: in [0, 1],
        ties one half, low where the model fails. ``mean_honest_low`` and ``_high`` are the interval of
        `biasspark.metrics.intervals.auc_interval`; the tests are those of `pair_kernel.segment_pairs`. The root has no
        parent and no ``p_value``; nodes that are no leaves have no ``p_adjusted`` and no ``found``.

        If a label is missing, the root alone, with counts and NULLs. If no label has two rows, no row. One row on a
        side has no variance, and so neither interval nor tests; a leaf without them is not found. Where nothing varies,
        p is 1 if there is no difference, else 0.

    Notes
    -----
    Of each label the rows with the lowest hashes of (seed, row_id) are drawn, equal ones by id: the first `positives`
    (`negatives`) grow the tree, as many others estimate. Fewer than twice as many are halved; an odd one is left out.
    So the draw depends on the rows alone, and models and slices draw the same rows where they have them.

    Lazy. Two scans of `ranked`, which is best persisted; 1,024 counts a (model, slice, label) are shuffled, then the
    samples and at most one bucket more, a thousandth of the rows. A task holds four samples.
    """
    sampled = sample_examples(ranked, len(features), settings)
    trees = sampled.groupBy(*_GROUP).applyInPandas(_grow(features, settings), _TREE)
    auc = F.struct(
        F.col("mean_honest").alias("auc"),
        F.col("variance_honest").alias("auc_variance"),
        F.col("n_negatives_honest").alias("n_low"),
        F.col("n_positives_honest").alias("n_high"),
    )
    return trees.withColumn("ends", auc_interval(auc, level)).select(
        *_COLUMNS[: _COLUMNS.index("variance_honest")],
        F.col("ends")["low"].alias("mean_honest_low"),
        F.col("ends")["high"].alias("mean_honest_high"),
        *("p_value", "p_adjusted", "p_train_honest", "false_discovery", "found"),
    )


def sample_examples(ranked: DataFrame, n_features: int, settings: Pairs) -> DataFrame:
    """Return the drawn rows: ``model, slice, label, honest BOOLEAN, score, bin_0 ..``, by model and slice together."""
    bins = _bin_columns(n_features)
    draw = F.xxhash64(F.lit(settings.seed).cast("bigint"), ROW_ID)
    drawn = ranked.select(*_SIDE, ROW_ID, "score", *bins, draw.alias("draw"))
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
        rows = [(model, name, *_write_segment(segment, features)) for segment in segments]
        return pd.DataFrame(rows, columns=_COLUMNS, dtype=object)

    return run


def _read_sample(rows: pd.DataFrame, n_features: int) -> Sample:
    negatives, positives = (_read_examples(rows[rows["label"] == label], n_features) for label in (False, True))
    return negatives, positives


def _read_examples(rows: pd.DataFrame, n_features: int) -> Examples:
    bins = rows[_bin_columns(n_features)].to_numpy(np.int64).T
    return sort_examples(rows["score"].to_numpy(np.float64), bins)


def _write_segment(segment: Segment, features: Sequence[Feature]) -> tuple[Any, ...]:
    """Return the columns of a node from ``node_id`` on: its conditions as words, then as predicates."""
    before, conditions, after = segment[:4], segment.conditions, segment[5:]
    rules = (say_condition(condition, features) for condition in conditions)
    predicates = (write_predicate(condition, features) for condition in conditions)
    return (*before, *rules, *predicates, *after)


def _bin_columns(n_features: int) -> list[str]:
    return [f"bin_{place}" for place in range(n_features)]
