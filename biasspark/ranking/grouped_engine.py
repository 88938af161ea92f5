"""The jackknife's U statistics on Spark: EXAMPLES with groups -> U of every model, and U without each group."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import pandas as pd
import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql import DataFrame

from biasspark.arrays import Floats
from biasspark.columns import GROUP, MODEL, SLICE
from biasspark.corpus.codebook import Codebook
from biasspark.ddl import column_names
from biasspark.ranking.crowd_blocks import CROWD_PARTS, cut_examples
from biasspark.ranking.crowds import Crowds
from biasspark.ranking.grouped_blocks import GroupSums, combine_groups, sum_groups
from biasspark.ranking.placements import CELLS_OF_PAIRS, list_pairs
from biasspark.ranking.ranges import RANGE_KEY, Batches, OnBatches, gather_ranges, hand_over, read_ranges

_BY_RANGE = "model INT, slice INT, score_range INT, data BINARY"
_GROUPED = (
    "model STRING, slice STRING, identity STRING, crossed BOOLEAN, low_cell STRING, high_cell STRING, n_low BIGINT, "
    "n_high BIGINT, u_doubled DECIMAL(38,0), n_low_left ARRAY<BIGINT>, n_high_left ARRAY<BIGINT>, "
    "u_doubled_left ARRAY<DECIMAL(38,0)>"
)


def rank_without_groups(
    examples: DataFrame,
    codebook: Codebook,
    boundaries: Sequence[Floats],
    identities: Sequence[int],
    n_groups: int,
) -> DataFrame:
    """Return U of every model on the rows that it scores, and what is left of it without each group of rows.

    Parameters
    ----------
    examples : DataFrame
        EXAMPLES, as the codebook describes it, and INT ``jackknife_group``, below `n_groups`.
    boundaries : sequence of float64 arrays
        For each model, where its score ranges meet; no result depends on them.
    identities : sequence of int
        Numbers in the codebook, ascending; 0 is ``(overall)``.

    Returns
    -------
    DataFrame
        ``model, slice, identity, crossed, low_cell, high_cell, n_low, n_high, u_doubled``, and as arrays by group,
        without it, ``n_low_left, n_high_left, u_doubled_left``.

    Notes
    -----
    Lazy. Cost: one scan and one shuffle, of 9 bytes per score and 8 per entry; then rows times identities of
    arithmetic, and one shuffle of 80 bytes for each range, identity and group.
    """
    crowds = Crowds.of(codebook, identities)
    columns = (*codebook.word_columns, *codebook.score_columns, *codebook.value_columns.values(), GROUP)
    parts = examples.select(*columns).mapInArrow(_cut(codebook, crowds, boundaries), CROWD_PARTS)
    ranges = gather_ranges(parts, boundaries, codebook).sortWithinPartitions(*RANGE_KEY)
    by_range = ranges.mapInArrow(_sum(crowds, n_groups), _BY_RANGE)
    n_slices = len(codebook.slices)
    every = examples.sparkSession.range(0, len(codebook.models) * n_slices, 1, 1)
    place = {MODEL: F.floor(F.col("id") / n_slices), SLICE: F.col("id") % n_slices}
    absent = every.select(*(number.cast("int").alias(name) for name, number in place.items()))
    all_ranges = by_range.unionByName(absent, allowMissingColumns=True)
    return all_ranges.groupBy(MODEL, SLICE).applyInPandas(_combine(codebook, crowds, n_groups), _GROUPED)


def _cut(codebook: Codebook, crowds: Crowds, boundaries: Sequence[Floats]) -> OnBatches:
    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        return hand_over(cut_examples(batches, codebook, crowds, boundaries, (GROUP,)), CROWD_PARTS)

    return run


def _sum(crowds: Crowds, n_groups: int) -> OnBatches:
    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        rows = (
            (*key, sum_groups([part["data"] for part in parts], crowds, n_groups).encode())
            for key, parts in read_ranges(batches)
        )
        return hand_over(rows, _BY_RANGE)

    return run


def _combine(codebook: Codebook, crowds: Crowds, n_groups: int) -> Callable[[pd.DataFrame], pd.DataFrame]:
    names = [codebook.names[number] for number in crowds.identities]

    def run(ranges: pd.DataFrame) -> pd.DataFrame:
        size = (len(crowds.identities), n_groups)
        by_range = ranges.dropna(subset="data").sort_values("score_range")
        sums = combine_groups([GroupSums.decode(data, *size) for data in by_range["data"]], *size)
        model, number = codebook.models[int(ranges[MODEL].iloc[0])], codebook.slices[int(ranges[SLICE].iloc[0])]
        rows = [
            (model, number, name, crowds.identities[place] >= codebook.first_pair, *row)
            for place, name in enumerate(names)
            for row in _list_left(sums, place, crowds.identities[place])
        ]
        return pd.DataFrame(rows, columns=column_names(_GROUPED))

    return run


def _list_left(sums: GroupSums, place: int, identity: int) -> Iterator[tuple[Any, ...]]:
    """Give every pair of cells of an identity, with and without each group."""
    for pair, cells in list_pairs(identity):
        sides = [sums.n[place][cell] for cell in CELLS_OF_PAIRS[pair]]
        totals, u = [int(side.sum()) for side in sides], int(sums.u_doubled[place, pair])
        kept = [[total - int(part) for part in side] for total, side in zip(totals, sides, strict=True)]
        left = [Decimal(u - int(part)) for part in sums.touched[place, pair]]
        yield *cells, *totals, Decimal(u), *kept, left
