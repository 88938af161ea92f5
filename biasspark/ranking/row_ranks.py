"""Row-level ranks: EXAMPLES -> one row per (model, slice, row) with its placement.

    EXAMPLES --cut--> rows and offsets of every range --one shuffle--> placed rows

What a worker holds in memory: the rows of the ranges of its task, with their payload columns, see `range_job`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, BooleanType, DoubleType, IntegerType, LongType, StructField, StructType

from biasspark.arrays import Flags, Floats
from biasspark.columns import IN_SETS, LABEL, MODEL, N_OPPOSITE, ORDERED_DOUBLED, ORDERED_IN_SETS, SCORE, SLICE
from biasspark.corpus.decode import name_of
from biasspark.corpus.encoding import Encoding
from biasspark.errors import InputError
from biasspark.ranking.kernels.blocks import split_by_range
from biasspark.ranking.kernels.reference_sets import RankOffsets, count_by_range
from biasspark.ranking.kernels.row_placements import place_rows
from biasspark.ranking.range_job import cut_examples, gather_ranges, read_ranges
from biasspark.ranking.task_rows import Batches, Kind, Part, Parts, TaskRows

MOST_ROWS_A_WORKER = 1 << 26
"""Of one range."""

_ROWS_A_BATCH = 1 << 17


def rank_rows(
    examples: DataFrame,
    encoding: Encoding,
    boundaries: Sequence[Floats],
    payload: Sequence[str] = (),
    n_sets: int = 0,
) -> DataFrame:
    """Return the placement of every row that counts, for every model and slice.

    A positive is rightly ordered with the negatives whose score is below its own, a negative with the positives whose
    score is above; a tie counts half.

    Parameters
    ----------
    examples : DataFrame
        EXAMPLES, as the encoding describes it, and the columns `payload`.
    boundaries : sequence of float64 arrays
        For each model, where its score ranges meet; no result depends on them.
    payload : sequence of str
        Columns that go with each row.
    n_sets : int
        So many sets of rows, up to 63, among which each row is placed as well. EXAMPLES has BIGINT ``in_sets``, of
        which bit k says that a row is in the k-th.

    Returns
    -------
    DataFrame
        ``model, slice, label, score, n_opposite, ordered_doubled``, with sets ``ordered_in_sets``, and `payload`.
        ``n_opposite`` is how many rows of the slice have the other label; ``ordered_doubled`` is twice those the row is
        rightly ordered with, plus ties, 0 to 2 n_opposite; ``ordered_in_sets`` the same of those of each set.

    Raises
    ------
    InputError
        When it is computed, if a range has more rows than a worker holds.

    Notes
    -----
    Lazy. Cost: one scan and one shuffle, of 9 bytes per score and of the payload; each range is sorted once. Sets cost
    a pass over the rows each.
    """
    payload = [*payload, IN_SETS] if n_sets else list(payload)
    parts = cut_examples(examples, encoding, lambda rows: cut_payload(rows, boundaries, payload, n_sets), *payload)
    ranges = gather_ranges(parts, boundaries, len(encoding.slices))
    placed = ranges.mapInArrow(partial(_place, n_sets=n_sets), _schema_of_rows(examples, payload, n_sets))
    return placed.withColumns(
        {MODEL: name_of(F.col(MODEL), encoding.models), SLICE: name_of(F.col(SLICE), encoding.slices)}
    )


def cut_payload(
    rows: TaskRows, boundaries: Sequence[Floats], payload: Sequence[str], n_sets: int = 0
) -> Iterator[Part]:
    """Cut some rows of one task at the boundaries, and count those of every set for every range."""
    positive = rows.label == 1
    table = rows.table.select(list(payload)).combine_chunks()
    sets = [inside & (positive == label) for label in (False, True) for inside in _list_sets(table, n_sets)]
    for model, slice_number, usable in rows.groups():
        scores, edges = rows.scores[model], boundaries[model]
        ranges = np.searchsorted(edges, scores, "right")
        counts = count_by_range((np.flatnonzero(inside & usable) for inside in sets), ranges, len(edges) + 1)
        for score_range, data in enumerate(RankOffsets.encode(counts)):
            yield Part(model, slice_number, score_range, Kind.OFFSETS, data)
        chosen = np.flatnonzero(usable)
        for score_range, indices in split_by_range(scores[chosen], edges):
            inside = chosen[indices]
            chosen_rows = _columns_of(table.take(pa.array(inside)))
            of_range = pa.table({SCORE: scores[inside], LABEL: positive[inside], **chosen_rows})
            yield Part(model, slice_number, score_range, Kind.ROWS, _encode_table(of_range))


def place_range(parts: Parts, n_sets: int) -> Iterator[pa.RecordBatch]:
    """Give the rows of a range with their placements, ascending by score; see `rank_rows` for the columns."""
    if not parts.get(Kind.ROWS):
        return
    table = pa.concat_tables(pa.ipc.open_stream(data).read_all() for data in parts[Kind.ROWS]).combine_chunks()
    if table.num_rows > MOST_ROWS_A_WORKER:
        raise InputError(
            f"corpus: more than {MOST_ROWS_A_WORKER:,} rows share one score or one narrow range. So many do not "
            "fit a worker. Is that score a default for what was not scored? Filter it."
        )
    table = table.take(pa.array(np.argsort(table.column(SCORE).to_numpy())))
    scores, positive = table.column(SCORE).to_numpy(), table.column(LABEL).to_numpy()
    sets, offsets = _list_sets(table, n_sets), RankOffsets.add_up(parts[Kind.OFFSETS])
    placed = place_rows(scores, positive, sets, offsets)
    columns = {LABEL: table.column(LABEL), SCORE: table.column(SCORE)}
    columns[N_OPPOSITE] = pa.array(np.where(positive, offsets.total[0], offsets.total[len(sets)]))
    columns[ORDERED_DOUBLED] = pa.array(placed[0])
    if n_sets:
        ends = pa.array(np.arange(len(scores) + 1, dtype=np.int32) * n_sets)
        columns[ORDERED_IN_SETS] = pa.ListArray.from_arrays(ends, placed[1:].T.ravel())
    columns |= _columns_of(table.drop_columns([SCORE, LABEL]))
    yield from pa.table(columns).to_batches(_ROWS_A_BATCH)


def _place(batches: Batches, n_sets: int) -> Iterator[pa.RecordBatch]:
    for (model, slice_number, _), parts in read_ranges(batches):
        for batch in place_range(parts, n_sets):
            keys = [pa.array(np.full(len(batch), key, np.int32)) for key in (model, slice_number)]
            yield pa.RecordBatch.from_arrays([*keys, *batch.columns], names=[MODEL, SLICE, *batch.schema.names])


def _schema_of_rows(examples: DataFrame, payload: Sequence[str], n_sets: int) -> StructType:
    fields = [StructField(MODEL, IntegerType()), StructField(SLICE, IntegerType())]
    fields += [StructField(LABEL, BooleanType()), StructField(SCORE, DoubleType())]
    fields += [StructField(name, LongType()) for name in (N_OPPOSITE, ORDERED_DOUBLED)]
    fields += [StructField(ORDERED_IN_SETS, ArrayType(LongType()))] if n_sets else []
    return StructType([*fields, *(examples.schema[name] for name in payload)])


def _list_sets(table: pa.Table, n_sets: int) -> list[Flags]:
    """Return which rows are in each set: all of them, then those of each bit."""
    words = table.column(IN_SETS).to_numpy() if n_sets else np.empty(0, np.int64)
    return [np.ones(table.num_rows, bool), *(np.asarray((words >> bit) & 1 == 1) for bit in range(n_sets))]


def _columns_of(table: pa.Table) -> dict[str, pa.ChunkedArray]:
    return dict(zip(table.column_names, table.columns, strict=True))


def _encode_table(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())
