"""Blocks of rows that are placed among crowds: what a task hands over, and the placements. numpy and pyarrow only.

A block holds rows of one (model, slice) and one range of the score line, in any order: score, label, which sources are
known, the entries of the row, and what goes along with it. In each range the rows are sorted once; from there on the
placements among a crowd are one running count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from biasspark.arrays import Floats, Ints
from biasspark.columns import LABEL, SCORE
from biasspark.corpus.codebook import Codebook
from biasspark.ranking.blocks import double_below, number_runs, split_by_range
from biasspark.ranking.crowds import ENTRIES, KNOWN, Crowds, find_crowds, in_base
from biasspark.ranking.fields import Fields, Words, hold_rows, one_array, read_scores
from biasspark.ranking.memberships import find_entries
from biasspark.ranking.row_blocks import encode_rows

OTHER = "other_score"


class CrowdPart(NamedTuple):
    """Some rows of a range, and how many of them are in every crowd."""

    model: int
    slice: int
    score_range: int
    counts: list[int]
    data: bytes


CROWD_PARTS = "model INT, slice INT, score_range INT, counts ARRAY<BIGINT>, data BINARY"
"""The fields of `CrowdPart`."""


class Around(NamedTuple):
    """What a range does not know of itself, by crowd: rows below it, and all."""

    below: Ints
    totals: Ints


def cut_examples(
    batches: Iterable[pa.RecordBatch],
    codebook: Codebook,
    crowds: Crowds,
    boundaries: Sequence[Floats],
    carried: Sequence[str] = (),
) -> Iterator[CrowdPart]:
    """Cut the rows of one task at the boundaries of the models that have some: for each those that it scores.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        EXAMPLES, and the columns `carried`.
    boundaries : sequence of float64 arrays
        Where the ranges of the first model meet, and of those after it for which rows are cut, too.
    carried : sequence of str
        What goes along with a row. ``other_score`` is that by the other of two models, which both score the row.

    Notes
    -----
    Rows that are in no base are left out.
    """
    for table in hold_rows(batches):
        yield from _cut_rows(table.combine_chunks(), codebook, crowds, boundaries, carried)


def _cut_rows(
    table: pa.Table, codebook: Codebook, crowds: Crowds, boundaries: Sequence[Floats], carried: Sequence[str]
) -> Iterator[CrowdPart]:
    fields = Fields.of(table, codebook)
    placed = np.logical_or.reduce([in_base(fields.known, mask) for mask in crowds.masks])
    along = {
        LABEL: pa.array(fields.label == 1),
        KNOWN: pa.array(fields.known),
        ENTRIES: _list_entries(table, fields.words, codebook, crowds),
        **{name: table.column(name) for name in carried if name != OTHER},
    }
    scores = list(read_scores(table, codebook))
    for model, edges in enumerate(boundaries):
        other = {OTHER: scores[1 - model]} if OTHER in carried else {}
        rows = pa.table({SCORE: scores[model], **other, **along})
        usable = placed & fields.usable[model]
        for number, inside in enumerate(fields.slices):
            yield from cut_table(rows.filter(pa.array(usable & inside)), edges, crowds, (model, number))


def cut_table(table: pa.Table, edges: Floats, crowds: Crowds, key: tuple[int, int]) -> Iterator[CrowdPart]:
    """Cut rows of one (model, slice), whose score is that of the model, at its boundaries."""
    for score_range, rows in split_by_range(table.column(SCORE).to_numpy(), edges):
        own = table.take(pa.array(rows))
        counts = [len(crowd) for crowd in find_crowds(own, crowds)]
        yield CrowdPart(*key, score_range, counts, encode_rows(own))


def _list_entries(table: pa.Table, words: Words, codebook: Codebook, crowds: Crowds) -> pa.ListArray:
    """Return for each row its entries: twice the place of the identity, plus one where it is unknown."""
    values = {place: one_array(table.column(name)) for place, name in codebook.value_columns.items()}
    entries = find_entries(words, values, codebook)
    place_of = np.full(len(codebook.names), -1)
    place_of[list(crowds.identities)] = np.arange(len(crowds.identities))
    place = place_of[entries.identity]
    rows, codes = entries.row[place >= 0], (2 * place + entries.unknown)[place >= 0]
    offsets = np.r_[0, np.cumsum(np.bincount(rows, minlength=len(table)))]
    order = np.argsort(rows, kind="stable")  # crossed pairs come after all others
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(codes[order].astype(np.int32)))


class ScoreLine:
    """The rows of one range, ascending by score, and where they stand among every crowd."""

    def __init__(self, table: pa.Table, crowds: Crowds, below: Ints) -> None:
        scores = table.column(SCORE).to_numpy()
        self.run = number_runs(scores)
        self.members = find_crowds(table, crowds)
        self._below = below

    def placements(self, crowd: int) -> Ints:
        """Return for each row twice the rows of a crowd whose score is below its own, plus its ties."""
        at = np.bincount(self.run[self.members[crowd]], minlength=self.run[-1] + 1)
        placed: Ints = (2 * self._below[crowd] + double_below(at))[self.run]
        return placed
