"""EXAMPLES as a task gets them: rows held until they are worth sorting, and their fields. numpy and pyarrow only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from biasspark.arrays import Flags, Floats, Ints
from biasspark.corpus.codebook import Codebook, Field

FLUSH_ROWS = 500_000
"""Rows sorted at a time: as fast as 2 M, in half the memory."""

Words = Mapping[int, Ints]
"""The packed words of some rows, by number."""


@dataclass(frozen=True)
class Fields:
    """What the words of some rows say.

    Attributes
    ----------
    label
        1 where a row is positive.
    known
        Which nullable sources are known, as bits.
    usable, slices
        By model, which rows count for it. By slice, which are in it: in the first all.
    """

    words: Words
    label: Ints
    known: Ints
    usable: list[Flags]
    slices: list[Flags]

    @staticmethod
    def of(table: pa.Table, codebook: Codebook) -> Fields:
        """Read the words of a table of EXAMPLES."""
        words = {number: table.column(name).to_numpy() for number, name in enumerate(codebook.word_columns)}

        def read(what: str, number: int = 0) -> Ints:
            return read_field(words, codebook.fields[what, number])

        stays = read("row_reason") == 0
        usable = [stays & (read("score_reason", model) == 0) for model in range(len(codebook.models))]
        slices = [np.ones(len(stays), bool), *(read("slice", n) == 1 for n in range(1, len(codebook.slices)))]
        return Fields(words, read("label"), known_sources(words, codebook), usable, slices)


def read_field(words: Words, place: Field) -> Ints:
    """Return the values of one bit field."""
    return (words[place.word] >> place.shift) & ((1 << place.width) - 1)


def known_sources(words: Words, codebook: Codebook) -> Ints:
    """Return for each row which nullable sources are known, as bits."""
    pattern = np.zeros(len(words[0]), np.int64)
    for bit in range(len(codebook.nullable_sources)):
        pattern |= read_field(words, codebook.fields["known", bit]) << bit
    return pattern


def read_scores(table: pa.Table, codebook: Codebook) -> Iterator[Floats]:
    """Give the scores of each model, 0.0 for -0.0."""
    return (table.column(name).to_numpy() + 0.0 for name in codebook.score_columns)


def hold_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Give the rows of one task, `FLUSH_ROWS` or one batch more at a time."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(len(one) for one in held) >= FLUSH_ROWS:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """Return a column in one piece."""
    chunks = column.combine_chunks()
    return chunks.combine_chunks() if isinstance(chunks, pa.ChunkedArray) else chunks
