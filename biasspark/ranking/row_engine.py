r"""Row-level ranks from blocks: EXAMPLES -> one row per (model, slice, row) with its placement.

    EXAMPLES --mapInArrow--> parts --one shuffle--> counts of every range --broadcast--+
                                         \----------------------------------------------+--mapInArrow--> RANKED rows

Both branches read the same shuffle, so the corpus is scanned and moved once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, BooleanType, DoubleType, IntegerType, LongType, StructField, StructType

from biasspark.arrays import Floats, Ints
from biasspark.columns import IN_CROWDS, LABEL, MODEL, N_OPPOSITE, ORDERED_DOUBLED, ORDERED_IN_CROWDS, SCORE, SLICE
from biasspark.corpus.codebook import Codebook
from biasspark.corpus.states import name_of
from biasspark.ranking.ranges import Batches, OnBatches, gather_ranges, hand_over, read_ranges, surround_ranges
from biasspark.ranking.row_blocks import ROW_PARTS, AroundByLabel, cut_rows, place_rows


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
    Lazy. Cost: one scan and one shuffle, of 9 bytes per score and what goes along; each range is sorted once. Crowds
    cost a pass over the rows each.
    """
    carried = [*carried, IN_CROWDS] if n_crowds else list(carried)
    parts = cut_into_ranges(examples, codebook, boundaries, carried, n_crowds)
    surrounded = surround_ranges(parts, ("negatives", "positives"), _look_around, AroundByLabel._fields)
    placed = surrounded.mapInArrow(_place, _schema_of_rows(examples, carried, n_crowds))
    return placed.withColumns(
        {MODEL: name_of(F.col(MODEL), codebook.models), SLICE: name_of(F.col(SLICE), codebook.slices)}
    )


def cut_into_ranges(
    examples: DataFrame, codebook: Codebook, boundaries: Sequence[Floats], carried: Sequence[str], n_crowds: int = 0
) -> DataFrame:
    """Bring the rows of each (model, slice, range) together, as blocks: see `RowPart`. One scan and one shuffle."""
    rows = examples.select(*codebook.word_columns, *codebook.score_columns, *carried)
    parts = rows.mapInArrow(_cut(codebook, boundaries, tuple(carried), n_crowds), ROW_PARTS)
    return gather_ranges(parts, boundaries, codebook)


def _schema_of_rows(examples: DataFrame, carried: Sequence[str], n_crowds: int) -> StructType:
    own = [StructField(MODEL, IntegerType()), StructField(SLICE, IntegerType())]
    own += [StructField(LABEL, BooleanType()), StructField(SCORE, DoubleType())]
    own += [StructField(name, LongType()) for name in (N_OPPOSITE, ORDERED_DOUBLED)]
    own += [StructField(ORDERED_IN_CROWDS, ArrayType(LongType()))] if n_crowds else []
    return StructType([*own, *(examples.schema[name] for name in carried)])


def _cut(codebook: Codebook, boundaries: Sequence[Floats], carried: tuple[str, ...], n_crowds: int) -> OnBatches:
    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        return hand_over(cut_rows(batches, codebook, boundaries, carried, n_crowds), ROW_PARTS)

    return run


def _look_around(negatives: Ints, positives: Ints) -> AroundByLabel:
    """Return what lies around every range of a (model, slice)."""
    every = (np.broadcast_to(counts.sum(0), counts.shape) for counts in (negatives, positives))
    return AroundByLabel(negatives.cumsum(0) - negatives, positives.sum(0) - positives.cumsum(0), *every)


def _place(batches: Batches) -> Iterator[pa.RecordBatch]:
    for (model, number, _), parts in read_ranges(batches):
        around = AroundByLabel(*(np.array(parts[0][name], np.int64) for name in AroundByLabel._fields))
        for batch in place_rows([part["data"] for part in parts], around):
            keys = [pa.array(np.full(len(batch), key, np.int32)) for key in (model, number)]
            yield pa.RecordBatch.from_arrays([*keys, *batch.columns], names=[MODEL, SLICE, *batch.schema.names])
