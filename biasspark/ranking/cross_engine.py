"""Crosses on Spark: EXAMPLES with the group of every row -> rightly ordered pairs of every cross, in integers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame

from biasspark.arrays import Floats
from biasspark.columns import LABEL, MODEL, SCORE, SLICE
from biasspark.corpus.codebook import Codebook
from biasspark.corpus.groupings import group_name
from biasspark.ddl import column_names
from biasspark.ranking.crosses import CrossCounts, combine_crosses, count_crosses
from biasspark.ranking.ranges import RANGE_KEY, Batches, OnBatches, gather, hand_over, read_ranges
from biasspark.ranking.row_blocks import read_rows
from biasspark.ranking.row_engine import cut_into_ranges

_BY_RANGE = "model INT, slice INT, score_range INT, grouping INT, data BINARY"
_CROSSES = (
    "model STRING, slice STRING, grouping STRING, positive_group STRING, negative_group STRING, "
    "n_positive BIGINT, n_negative BIGINT, ordered_doubled DECIMAL(38,0), low_square_sum DECIMAL(38,0), "
    "high_square_sum DECIMAL(38,0)"
)


def cross_pairs(
    examples: DataFrame, codebook: Codebook, boundaries: Sequence[Floats], groupings: Mapping[str, tuple[str, ...]]
) -> DataFrame:
    """Count the rightly ordered pairs of every cross of groups, for every model, slice and grouping.

    Parameters
    ----------
    examples : DataFrame
        EXAMPLES, as the codebook describes it, and for each grouping in order an INT column ``group_0``, ``group_1``,
        ...: the number of the row's group.
    groupings : mapping of str to tuple of str
        By name of the grouping, the names of its groups by number.

    Returns
    -------
    DataFrame
        ``model, slice, grouping, positive_group, negative_group, n_positive, n_negative, ordered_doubled,
        low_square_sum, high_square_sum``: all crosses of groups that any row of the slice is in. The sum of
        ``ordered_doubled`` is that of the whole slice; squares are of the doubled placements of the negatives, and of
        the positives.

    Notes
    -----
    Lazy. Cost: one scan and one shuffle, of 9 bytes per score and 4 per grouping; then for each grouping two passes
    over the scores for each of its groups, neither one for each pair of rows nor one for each pair of groups.
    """
    columns = list(map(group_name, range(len(groupings))))
    parts = cut_into_ranges(examples, codebook, boundaries, columns)
    sizes = [len(groups) for groups in groupings.values()]
    counted = parts.sortWithinPartitions(*RANGE_KEY).mapInArrow(_count(columns, sizes), _BY_RANGE)
    keys = (MODEL, SLICE, "grouping")
    counted = gather(counted, len(codebook.models) * len(codebook.slices) * len(groupings), *keys)
    return counted.groupBy(*keys).applyInPandas(_combine(codebook, groupings), _CROSSES)


def _count(columns: Sequence[str], sizes: Sequence[int]) -> OnBatches:
    def count(batches: Batches) -> Iterator[tuple[Any, ...]]:
        for key, parts in read_ranges(batches):
            table = read_rows([part["data"] for part in parts])
            scores, positive = table.column(SCORE).to_numpy(), table.column(LABEL).to_numpy()
            for place, (name, size) in enumerate(zip(columns, sizes, strict=True)):
                yield *key, place, count_crosses(scores, positive, table.column(name).to_numpy(), size).encode()

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        return hand_over(count(batches), _BY_RANGE)

    return run


def _combine(codebook: Codebook, groupings: Mapping[str, tuple[str, ...]]) -> Callable[[pd.DataFrame], pd.DataFrame]:
    named = list(groupings.items())

    def run(counted: pd.DataFrame) -> pd.DataFrame:
        counted = counted.sort_values("score_range")
        model, number, place = (int(counted[name].iloc[0]) for name in (MODEL, SLICE, "grouping"))
        grouping, groups = named[place]
        total = combine_crosses([CrossCounts.decode(data, len(groups)) for data in counted["data"]])
        there = np.flatnonzero(total.n_positive + total.n_negative)
        rows = [
            (
                *(codebook.models[model], codebook.slices[number], grouping, groups[high], groups[low]),
                *(total.n_positive[high], total.n_negative[low]),
                *(Decimal(counts[high, low]) for counts in total[2:]),
            )
            for high in there
            for low in there
        ]
        return pd.DataFrame(rows, columns=column_names(_CROSSES))

    return run
