"""Blocks of rows: what a task hands over where every row is to get its placement back. numpy and pyarrow only.

A block holds rows of one (model, slice) and one range of the score line, in any order: score, label and what goes
along with the row. In each range the rows are sorted once; from there on every placement is a running count.

Rows are placed among *crowds*: the first is everybody, and others may be asked for, sets of rows that are marked by
the bits of a word that goes along with each row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from biasspark.arrays import Flags, Floats, Ints
from biasspark.columns import IN_CROWDS, LABEL, N_OPPOSITE, ORDERED_DOUBLED, ORDERED_IN_CROWDS, SCORE
from biasspark.corpus.codebook import Codebook
from biasspark.errors import InputError
from biasspark.ranking.blocks import double_below, find_starts, number_runs, split_by_range
from biasspark.ranking.fields import Fields, hold_rows, read_scores

_ROWS_A_BATCH = 1 << 17
MOST_ROWS_A_WORKER = 1 << 26
"""Of one range: sums of so many doubled placements stay below 2^53."""


class RowPart(NamedTuple):
    """Some rows of a range, and how many of each label there are in every crowd."""

    model: int
    slice: int
    score_range: int
    negatives: list[int]
    positives: list[int]
    data: bytes


ROW_PARTS = "model INT, slice INT, score_range INT, negatives ARRAY<BIGINT>, positives ARRAY<BIGINT>, data BINARY"
"""The fields of `RowPart`."""


class AroundByLabel(NamedTuple):
    """What a range does not know of itself, by crowd: rows beyond it that its own are rightly ordered with, and all."""

    negatives_below: Ints
    positives_above: Ints
    every_negative: Ints
    every_positive: Ints


def cut_rows(
    batches: Iterable[pa.RecordBatch],
    codebook: Codebook,
    boundaries: Sequence[Floats],
    carried: Sequence[str],
    n_crowds: int = 0,
) -> Iterator[RowPart]:
    """Cut the rows of one task at the boundaries, for every model and slice in which they count.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        EXAMPLES: words and scores, as the codebook names them, and the columns `carried`.
    boundaries : sequence of float64 arrays
        For each model, where its ranges meet.
    n_crowds : int
        How many crowds there are besides everybody; the column ``in_crowds`` goes along and says who is in them.
    """
    for table in hold_rows(batches):
        yield from _cut_table(table, codebook, boundaries, carried, n_crowds)


def _cut_table(
    table: pa.Table, codebook: Codebook, boundaries: Sequence[Floats], carried: Sequence[str], n_crowds: int
) -> Iterator[RowPart]:
    fields = Fields.of(table, codebook)
    positive = fields.label == 1
    along = table.select(list(carried)).combine_chunks()
    crowds = _find_crowds(along, n_crowds)
    for model, scores in enumerate(read_scores(table, codebook)):
        for number, inside in enumerate(fields.slices):
            rows = np.flatnonzero(fields.usable[model] & inside)
            for score_range, places in split_by_range(scores[rows], boundaries[model]):
                own = rows[places]
                negatives, positives = _count_labels(positive[own], [crowd[own] for crowd in crowds])
                labelled = {SCORE: scores[own], LABEL: positive[own]}
                data = encode_rows(pa.table(labelled | columns_of(along.take(pa.array(own)))))
                yield RowPart(model, number, score_range, negatives, positives, data)


def place_rows(blocks: Sequence[bytes], around: AroundByLabel) -> Iterator[pa.RecordBatch]:
    """Give every row of a range its placements, ascending by score.

    A positive is rightly ordered with the negatives below it, a negative with the positives above it; ties count half,
    so placements are doubled to stay whole.

    Parameters
    ----------
    blocks : sequence of bytes
        All rows of the range, as `cut_rows` made them.

    Yields
    ------
    pyarrow.RecordBatch
        ``label, score, n_opposite, ordered_doubled``, where there are crowds also ``ordered_in_crowds``, and what went
        along.
    """
    table = read_rows(blocks)
    scores, positive = table.column(SCORE).to_numpy(), table.column(LABEL).to_numpy()
    crowds = [np.ones(len(scores), bool), *_find_crowds(table, len(around.every_negative) - 1)]
    placed = [
        double_placements(scores, positive, crowd, AroundByLabel(*(counts[place] for counts in around)))
        for place, crowd in enumerate(crowds)
    ]
    opposite = np.where(positive, around.every_negative[0], around.every_positive[0])
    columns = {LABEL: table.column(LABEL), SCORE: table.column(SCORE)}
    columns |= {N_OPPOSITE: pa.array(opposite), ORDERED_DOUBLED: pa.array(placed[0])}
    if len(placed) > 1:
        offsets = pa.array(np.arange(len(scores) + 1, dtype=np.int32) * (len(placed) - 1))
        columns[ORDERED_IN_CROWDS] = pa.ListArray.from_arrays(offsets, np.stack(placed[1:], axis=1).ravel())
    columns |= {name: table.column(name) for name in table.column_names[2:]}
    yield from pa.table(columns).to_batches(_ROWS_A_BATCH)


def read_rows(blocks: Sequence[bytes]) -> pa.Table:
    """Return all rows of a range, ascending by score."""
    table = pa.concat_tables(pa.ipc.open_stream(data).read_all() for data in blocks).combine_chunks()
    if table.num_rows > MOST_ROWS_A_WORKER:
        raise InputError(
            f"corpus: more than {MOST_ROWS_A_WORKER:,} rows share one score or one narrow range. So many do not "
            "fit a worker. Is that score a default for what was not scored? Filter it."
        )
    return table.take(pa.array(np.argsort(table.column(SCORE).to_numpy())))


def double_placements(scores: Floats, positive: Flags, crowd: Flags, around: AroundByLabel) -> Ints:
    """Return for each of the sorted rows twice the opposite rows of a crowd it is rightly ordered with, plus its ties.

    Parameters
    ----------
    crowd : bool array
        Which of the rows are in it.
    around : AroundByLabel
        Of the crowd alone.
    """
    first, run = find_starts(scores), number_runs(scores)
    positives = np.add.reduceat((positive & crowd).astype(np.int64), first)
    negatives = np.add.reduceat((~positive & crowd).astype(np.int64), first)
    above = 2 * around.negatives_below + double_below(negatives)
    below = 2 * (around.positives_above + positives.sum()) - double_below(positives)
    placed: Ints = np.where(positive, above[run], below[run])
    return placed


def _find_crowds(table: pa.Table, n_crowds: int) -> list[Flags]:
    words: Ints = table.column(IN_CROWDS).to_numpy() if n_crowds else np.empty(0, np.int64)
    return [np.asarray((words >> place) & 1 == 1) for place in range(n_crowds)]


def _count_labels(positive: Flags, crowds: Sequence[Flags]) -> tuple[list[int], list[int]]:
    """Count the negatives and the positives of everybody and of each crowd."""
    everybody = np.ones(len(positive), bool)
    positives = [int((positive & crowd).sum()) for crowd in (everybody, *crowds)]
    return [int(crowd.sum()) - n for crowd, n in zip((everybody, *crowds), positives, strict=True)], positives


def columns_of(table: pa.Table) -> dict[str, pa.ChunkedArray]:
    """Return the columns of a table by name."""
    return dict(zip(table.column_names, table.columns, strict=True))


def encode_rows(table: pa.Table) -> bytes:
    """Return rows as bytes, for `read_rows`; they have a column ``score``."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())
