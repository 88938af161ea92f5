r"""Row-level ranks from blocks: EXAMPLES -> one row a (model, slice, row) with its placement.

    EXAMPLES --mapInArrow--> parts --one shuffle--> counts of every range --broadcast--+
                                         \----------------------------------------------+--mapInArrow--> RANKED rows

Both branches read the same shuffle, so the corpus is scanned and moved once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

import numpy as np
import pandas as pd
import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import ArrayType, BooleanType, DoubleType, IntegerType, LongType, StructField, StructType

from biasspark.columns import (
    IN_CROWDS,
    LABEL,
    MODEL,
    N_OPPOSITE,
    ORDERED_DOUBLED,
    ORDERED_IN_CROWDS,
    SCORE,
    SLICE,
)
from biasspark.corpus.codebook import Codebook
from biasspark.corpus.states import name_of
from biasspark.corpus.values import combine
from biasspark.ranking.block_engine import GROUPS_A_TASK, RANGE_KEY, column_names
from biasspark.ranking.blocks import Floats
from biasspark.ranking.row_blocks import RowPart, Surroundings, cut_rows, place_rows

_COUNTS = "model INT, slice INT, score_range INT, negatives ARRAY<BIGINT>, positives ARRAY<BIGINT>"
_PARTS = f"{_COUNTS}, data BINARY"
_AROUND = "of_model INT, of_slice INT, of_score_range INT, " + ", ".join(
    f"{name} ARRAY<BIGINT>" for name in Surroundings._fields
)


def rank_rows(
    examples: DataFrame,
    codebook: Codebook,
    boundaries: Sequence[Floats],
    carried: Sequence[str] = (),
    n_crowds: int = 0,
) -> DataFrame:
    """Return the placement of every row that counts, for every model and slice.

    A positive is rightly ordered with the negatives whose score is below its own, a negative with the positives whose
    score is above; a tie counts half.

    Parameters
    ----------
    examples : DataFrame
        EXAMPLES, as the codebook describes it, and the columns `carried`.
    boundaries : sequence of float64 arrays
        For each model, where its score ranges meet; no result depends on them.
    carried : sequence of str
        What goes along with each row.
    n_crowds : int
        So many sets of rows, up to 63, among which each row is placed as well. EXAMPLES has BIGINT ``in_crowds``, of
        which bit k says that a row is in the k-th.

    Returns
    -------
    DataFrame
        ``model, slice, label, score, n_opposite, ordered_doubled``, with crowds ``ordered_in_crowds``, and `carried`.
        ``n_opposite`` is how many rows of the slice have the other label; ``ordered_doubled`` is twice those the row is
        rightly ordered with, plus ties, 0 to 2 n_opposite; ``ordered_in_crowds`` the same of those of each crowd.

    Notes
    -----
    Lazy. Cost: one scan and one shuffle, of 9 bytes a score and what goes along; each range is sorted once. Crowds cost
    a pass over the rows each.
    """
    carried = [*carried, IN_CROWDS] if n_crowds else list(carried)
    parts = cut_into_ranges(examples, codebook, boundaries, carried, n_crowds)
    # Both sides read all columns of the parts, and compare them null-safe: a filter or a projection that Spark moved to
    # before the shuffle would make another one of it.
    counts = [F.collect_list(name).alias(name) for name in ("negatives", "positives")]
    by_range = parts.groupBy(*RANGE_KEY).agg(*counts, F.sum(F.length("data")).alias("n_bytes"))
    around = by_range.groupBy(MODEL, SLICE).applyInPandas(_look_around, _AROUND)
    same_range = combine(Column.__and__, [parts[name].eqNullSafe(around[f"of_{name}"]) for name in RANGE_KEY])
    placed = (
        parts.join(F.broadcast(around), same_range)
        .sortWithinPartitions(*RANGE_KEY)
        .mapInArrow(_place, _schema_of_rows(examples, carried, n_crowds))
    )
    return placed.withColumns(
        {MODEL: name_of(F.col(MODEL), codebook.models), SLICE: name_of(F.col(SLICE), codebook.slices)}
    )


def cut_into_ranges(
    examples: DataFrame, codebook: Codebook, boundaries: Sequence[Floats], carried: Sequence[str], n_crowds: int = 0
) -> DataFrame:
    """Bring the rows of each (model, slice, range) together, as blocks: see `RowPart`. One scan and one shuffle."""
    rows = examples.select(*codebook.word_columns, *codebook.score_columns, *carried)
    parts = rows.mapInArrow(_cut(codebook, boundaries, tuple(carried), n_crowds), _PARTS)
    groups = len(codebook.slices) * sum(len(edges) + 1 for edges in boundaries)
    return parts.repartition(-(-groups // GROUPS_A_TASK), *RANGE_KEY)


def _schema_of_rows(examples: DataFrame, carried: Sequence[str], n_crowds: int) -> StructType:
    own = [StructField(MODEL, IntegerType()), StructField(SLICE, IntegerType())]
    own += [StructField(LABEL, BooleanType()), StructField(SCORE, DoubleType())]
    own += [StructField(name, LongType()) for name in (N_OPPOSITE, ORDERED_DOUBLED)]
    own += [StructField(ORDERED_IN_CROWDS, ArrayType(LongType()))] if n_crowds else []
    return StructType([*own, *(examples.schema[name] for name in carried)])


def _cut(
    codebook: Codebook, boundaries: Sequence[Floats], carried: tuple[str, ...], n_crowds: int
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    counts = pa.list_(pa.int64())
    kinds = (pa.int32(), pa.int32(), pa.int32(), counts, counts, pa.binary())

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part in cut_rows(batches, codebook, boundaries, carried, n_crowds):
            columns = [pa.array([value], kind) for value, kind in zip(part, kinds, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, names=list(RowPart._fields))

    return run


def _look_around(ranges: pd.DataFrame) -> pd.DataFrame:
    """Return the surroundings of every range of a (model, slice)."""
    ranges = ranges.sort_values("score_range")
    negatives, positives = (
        np.stack([np.stack(list(parts)).sum(0) for parts in ranges[name]]) for name in ("negatives", "positives")
    )
    every = (np.broadcast_to(counts.sum(0), counts.shape) for counts in (negatives, positives))
    around = Surroundings(negatives.cumsum(0) - negatives, positives.sum(0) - positives.cumsum(0), *every)
    columns = [*(ranges[name] for name in RANGE_KEY), *map(list, around)]
    return pd.DataFrame(dict(zip(column_names(_AROUND), columns, strict=True)))


def _place(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rank range after range: the parts of one come one after another."""
    parts = (row for batch in batches for row in batch.to_pylist())
    for (model, number, _), own in groupby(parts, key=lambda part: tuple(part[name] for name in RANGE_KEY)):
        blocks = list(own)
        around = Surroundings(*(np.array(blocks[0][name], np.int64) for name in Surroundings._fields))
        for batch in place_rows([block["data"] for block in blocks], around):
            keys = [pa.array(np.full(len(batch), key, np.int32)) for key in (model, number)]
            yield pa.RecordBatch.from_arrays([*keys, *batch.columns], names=[MODEL, SLICE, *batch.schema.names])
