"""Parts of score ranges between Spark and the kernels: how they are handed over, brought together and read.

A part is a row: model, slice and range by number, and what one task has of the range as bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from biasspark.arrays import Floats, Ints
from biasspark.columns import MODEL, SLICE
from biasspark.corpus.codebook import Codebook
from biasspark.corpus.values import combine
from biasspark.ddl import arrow_schema, column_names, to_batch
from biasspark.ranking.worker import forget_zip_files

RANGE = "score_range"
RANGE_KEY = (MODEL, SLICE, RANGE)
GROUPS_A_TASK = 6
"""A Python task costs about 0.2 s however little it does, so several ranges share one."""

Batches = Iterable[pa.RecordBatch]
OnBatches = Callable[[Batches], Iterator[pa.RecordBatch]]
"""What `mapInArrow` takes."""


def hand_over(rows: Iterable[Sequence[Any]], declared: str) -> Iterator[pa.RecordBatch]:
    """Hand rows of declared columns over to Spark, each for itself: they hold much."""
    forget_zip_files()
    schema = arrow_schema(declared)
    return (to_batch([row], schema) for row in rows)


def gather(rows: DataFrame, n_groups: int, *key: str) -> DataFrame:
    """Bring the rows of each group together: one shuffle.

    The number of tasks is explicit: a persisted grouped map would otherwise run one for each of Spark's default
    partitions.
    """
    return rows.repartition(-(-n_groups // GROUPS_A_TASK), *key)


def gather_ranges(parts: DataFrame, boundaries: Sequence[Floats], codebook: Codebook, n_others: int = 0) -> DataFrame:
    """Bring the parts of every range together, and of what else each (model, slice) has; one shuffle.

    Parameters
    ----------
    boundaries : sequence of float64 arrays
        Of the models whose parts they are, where their ranges meet.
    """
    return gather(parts, len(codebook.slices) * sum(len(edges) + 1 + n_others for edges in boundaries), *RANGE_KEY)


def surround_ranges(
    parts: DataFrame, counted: Sequence[str], surround: Callable[..., tuple[Ints, ...]], surroundings: Sequence[str]
) -> DataFrame:
    """Give each of the gathered parts what lies around its range, and sort them by range.

    Parameters
    ----------
    counted : sequence of str
        Columns of counts, arrays that are equally long everywhere. They are taken from the same exchange as the parts.
    surround : callable
        From the counts of all ranges of a (model, slice), of each column a matrix with one row per range, ascending,
        gives such matrices of `surroundings`, the ARRAY<BIGINT> columns that are added.
    """
    declared = ", ".join(
        [*(f"of_{name} INT" for name in RANGE_KEY), *(f"{name} ARRAY<BIGINT>" for name in surroundings)]
    )

    def look_around(ranges: pd.DataFrame) -> pd.DataFrame:
        ranges = ranges.sort_values(RANGE)
        counts = (np.stack([np.stack(list(parts)).sum(0) for parts in ranges[name]]) for name in counted)
        columns = [*(ranges[name] for name in RANGE_KEY), *map(list, surround(*counts))]
        return pd.DataFrame(dict(zip(column_names(declared), columns, strict=True)))

    # Both sides read all columns of the parts, and compare them null-safe: a filter or a projection that Spark moved to
    # before the shuffle would make another one of it.
    counts = [F.collect_list(name).alias(name) for name in counted]
    by_range = parts.groupBy(*RANGE_KEY).agg(*counts, F.sum(F.length("data")).alias("n_bytes"))
    around = by_range.groupBy(MODEL, SLICE).applyInPandas(look_around, declared)
    same_range = combine(Column.__and__, [parts[name].eqNullSafe(around[f"of_{name}"]) for name in RANGE_KEY])
    return parts.join(F.broadcast(around), same_range).sortWithinPartitions(*RANGE_KEY)


def read_ranges(batches: Batches) -> Iterator[tuple[tuple[int, int, int], list[dict[str, Any]]]]:
    """Read the parts of one range after another, each range with its key."""
    parts = (row for batch in batches for row in batch.to_pylist())
    for key, own in groupby(parts, key=lambda part: tuple(part[name] for name in RANGE_KEY)):
        yield key, list(own)
