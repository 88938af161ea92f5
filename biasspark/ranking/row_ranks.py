"""Row-level ranks: EXAMPLES -> one row per (model, slice, row) with its placement.

    EXAMPLES --cut--> rows and offsets of every range --one shuffle--> placed rows

Memory of a worker: the rows of its task's ranges, with their payload columns (see `range_job`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql import DataFrame
from pyspark.sql.types import BooleanType, DoubleType, IntegerType, LongType, StructField, StructType

from biasspark.arrays import Floats
from biasspark.columns import LABEL, MODEL, N_OPPOSITE, ORDERED_DOUBLED, SCORE, SLICE
from biasspark.corpus.decode import name_of
from biasspark.corpus.encoding import Encoding
from biasspark.ranking.kernels.blocks import split_by_range
from biasspark.ranking.kernels.reference_sets import RankOffsets, count_by_range
from biasspark.ranking.kernels.row_placements import place_rows
from biasspark.ranking.range_job import cut_examples, gather_ranges, read_ranges
from biasspark.ranking.row_blocks import refuse_large_range
from biasspark.ranking.task_rows import Batches, Kind, Part, Parts, TaskRows

_ROWS_A_BATCH = 1 << 17


def rank_rows(
    examples: DataFrame, encoding: Encoding, boundaries: Sequence[Floats], payload: Sequence[str] = ()
) -> DataFrame:
    """Return the placement of every row that counts, for every model and slice.

    A positive is correctly ordered with the negatives that score lower, a negative with the positives that score
    higher; a tie counts half. Raises `InputError` on computation if a range has more rows than a worker holds.

    Parameters
    ----------
    examples : DataFrame
        EXAMPLES, as the encoding describes it, and the columns `payload`.
    boundaries : sequence of float64 arrays
        For each model, the boundaries of its score ranges; no result depends on them.
    payload : sequence of str
        Columns to carry along with each row.

    Returns
    -------
    DataFrame
        ``model, slice, label, score, n_opposite, ordered_doubled`` and `payload`. ``n_opposite`` is the number of rows
        of the slice with the other label; ``ordered_doubled`` is twice the number of them with which the row is
        correctly ordered, plus ties, 0 to 2 n_opposite.

    Notes
    -----
    Lazy. Cost: one scan and one shuffle, of 9 bytes per score and of the payload; each range is sorted once.
    """
    parts = cut_examples(examples, encoding, lambda rows: cut_payload(rows, boundaries, payload), *payload)
    ranges = gather_ranges(parts, boundaries, len(encoding.slices))
    placed = ranges.mapInArrow(_place, _schema_of_rows(examples, payload))
    return placed.withColumns(
        {MODEL: name_of(F.col(MODEL), encoding.models), SLICE: name_of(F.col(SLICE), encoding.slices)}
    )


def cut_payload(rows: TaskRows, boundaries: Sequence[Floats], payload: Sequence[str]) -> Iterator[Part]:
    """Cut some rows of one task at the boundaries, and count the rows of each label in every range."""
    positive = rows.label == 1
    table = rows.table.select(list(payload)).combine_chunks()
    for model, slice_number, usable in rows.groups():
        scores, edges = rows.scores[model], boundaries[model]
        ranges = np.searchsorted(edges, scores, "right")
        of_labels = (np.flatnonzero(usable & (positive == label)) for label in (False, True))
        counts = count_by_range(of_labels, ranges, len(edges) + 1)
        for score_range, data in enumerate(RankOffsets.encode(counts)):
            yield Part(model, slice_number, score_range, Kind.OFFSETS, data)
        chosen = np.flatnonzero(usable)
        for score_range, indices in split_by_range(scores[chosen], edges):
            inside = chosen[indices]
            chosen_rows = _columns_of(table.take(pa.array(inside)))
            of_range = pa.table({SCORE: scores[inside], LABEL: positive[inside], **chosen_rows})
            yield Part(model, slice_number, score_range, Kind.ROWS, _encode_table(of_range))


def place_range(parts: Parts) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a range with their placements, ascending by score; see `rank_rows` for the columns."""
    if not parts.get(Kind.ROWS):
        return
    table = pa.concat_tables(pa.ipc.open_stream(data).read_all() for data in parts[Kind.ROWS]).combine_chunks()
    refuse_large_range(table.num_rows)
    table = table.take(pa.array(np.argsort(table.column(SCORE).to_numpy())))
    scores, positive = table.column(SCORE).to_numpy(), table.column(LABEL).to_numpy()
    offsets = RankOffsets.add_up(parts[Kind.OFFSETS])
    [placed] = place_rows(scores, positive, [np.ones(len(scores), bool)], offsets)
    columns = {LABEL: table.column(LABEL), SCORE: table.column(SCORE)}
    columns[N_OPPOSITE] = pa.array(np.where(positive, *offsets.total))
    columns[ORDERED_DOUBLED] = pa.array(placed)
    columns |= _columns_of(table.drop_columns([SCORE, LABEL]))
    yield from pa.table(columns).to_batches(_ROWS_A_BATCH)


def _place(batches: Batches) -> Iterator[pa.RecordBatch]:
    for (model, slice_number, _), parts in read_ranges(batches):
        for batch in place_range(parts):
            keys = [pa.array(np.full(len(batch), key, np.int32)) for key in (model, slice_number)]
            yield pa.RecordBatch.from_arrays([*keys, *batch.columns], names=[MODEL, SLICE, *batch.schema.names])


def _schema_of_rows(examples: DataFrame, payload: Sequence[str]) -> StructType:
    fields = [StructField(MODEL, IntegerType()), StructField(SLICE, IntegerType())]
    fields += [StructField(LABEL, BooleanType()), StructField(SCORE, DoubleType())]
    fields += [StructField(name, LongType()) for name in (N_OPPOSITE, ORDERED_DOUBLED)]
    return StructType([*fields, *(examples.schema[name] for name in payload)])


def _columns_of(table: pa.Table) -> dict[str, pa.ChunkedArray]:
    return dict(zip(table.column_names, table.columns, strict=True))


def _encode_table(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())
