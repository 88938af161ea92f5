"""What one task makes of its rows: blocks of sorted scores, and tallies. numpy and pyarrow only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from biasspark.arrays import Floats, Ints
from biasspark.columns import ROW_REASONS, SCORE_REASONS
from biasspark.corpus.codebook import Codebook
from biasspark.ranking.blocks import Block, sort_cells, sort_memberships
from biasspark.ranking.fields import Fields, Words, hold_rows, one_array, read_field, read_scores
from biasspark.ranking.memberships import Entries, find_entries, find_unseen
from biasspark.ranking.placements import cell_key, membership_key

CELLS, MEMBERSHIPS, TALLIES, UNSEEN = 0, 1, 2, 3
"""What a part holds: blocks of base cells and of memberships, counts, and a block of what `find_unseen` finds."""

TALLIES_RANGE, BALANCE_RANGE = -1, -2
"""In place of a range: counts of rows for each model and slice, and counts of labels, once."""


Gather = Callable[[int, int, Ints, Floats], Iterable[tuple[int, Block]]]
"""Makes blocks of the rows of a kind and a model, by range, of their keys and scores."""


class Part(NamedTuple):
    """One row that goes to the reducers."""

    model: int
    slice: int
    score_range: int
    kind: int
    data: bytes


def sort_rows(batches: Iterable[pa.RecordBatch], codebook: Codebook, boundaries: list[Floats]) -> Iterator[Part]:
    """Turn the rows of one task into parts.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        EXAMPLES: the columns that the codebook names.
    boundaries : list of float64 arrays
        For each model, where its ranges meet.

    Notes
    -----
    Memory is bounded by `fields.FLUSH_ROWS` and one batch, whatever the corpus. Tallies leave with the blocks they
    count, so a task that is run again counts once.
    """

    def sort(kind: int, model: int, keys: Ints, scores: Floats) -> Iterator[tuple[int, Block]]:
        return (sort_cells if kind == CELLS else sort_memberships)(keys, scores, boundaries[model])

    yield from gather_rows(batches, codebook, sort)


def gather_rows(batches: Iterable[pa.RecordBatch], codebook: Codebook, gather: Gather) -> Iterator[Part]:
    """Do what `sort_rows` does, with blocks that are made in another way."""
    for table in hold_rows(batches):
        yield from _gather_table(table, codebook, gather)


def _gather_table(table: pa.Table, codebook: Codebook, gather: Gather) -> Iterator[Part]:
    fields = Fields.of(table, codebook)
    words, label = fields.words, fields.label
    values = {place: one_array(table.column(name)) for place, name in codebook.value_columns.items()}
    entries = find_entries(words, values, codebook)
    cells = cell_key(fields.known, label)
    sparse = [(MEMBERSHIPS, entries)]
    if codebook.keeps_state and codebook.crossed:
        sparse.append((UNSEEN, find_unseen(entries, fields.known, codebook)))
    keyed = [(kind, own.row, membership_key(own.identity, own.unknown, label[own.row])) for kind, own in sparse]
    if codebook.n_buckets is not None:
        yield Part(0, 0, BALANCE_RANGE, TALLIES, count_labels(words, label, entries, codebook).tobytes())
    tallies = _tally(words, entries, codebook).tobytes()
    for model, scores in enumerate(read_scores(table, codebook)):
        for number, inside in enumerate(fields.slices):
            chosen = fields.usable[model] & inside
            yield Part(model, number, TALLIES_RANGE, TALLIES, tallies)
            for score_range, block in gather(CELLS, model, cells[chosen], scores[chosen]):
                yield Part(model, number, score_range, CELLS, block.encode())
            for kind, row, keys in keyed:
                hit = chosen[row]
                for score_range, block in gather(kind, model, keys[hit], scores[row[hit]]):
                    yield Part(model, number, score_range, kind, block.encode())


def count_labels(words: Words, label: Ints, entries: Entries, codebook: Codebook) -> Ints:
    """Count the labelled rows of every identity, crossed pairs left out: (overall) first, and it counts them all.

    Returns
    -------
    int64 array, shape (identities x buckets x 2,)
        By identity, by bucket (the first is outside all), negatives before positives.
    """
    n_buckets = codebook.n_buckets or 0
    stays = read_field(words, codebook.fields["row_reason", 0]) == 0
    bucket = read_field(words, codebook.fields["bucket", 0]) if n_buckets else np.zeros(len(label), np.int64)
    width = 2 * (n_buckets + 1)
    cell = 2 * bucket + label
    members = (entries.unknown == 0) & (entries.identity < codebook.first_pair) & stays[entries.row]
    places = entries.identity[members] * width + cell[entries.row[members]]
    counts = np.bincount(places, minlength=codebook.first_pair * width)
    counts[:width] = np.bincount(cell[stays], minlength=width)
    return counts.astype(np.int64)


def _tally(words: Words, entries: Entries, codebook: Codebook) -> Ints:
    """Count rows, rejects by reason and rows of each pair, in the order of `Codebook.tallies`."""
    row_reason = read_field(words, codebook.fields["row_reason", 0])
    stays = row_reason == 0
    reasons = [read_field(words, codebook.fields["score_reason", n]) * stays for n in range(len(codebook.models))]
    rejected = ~stays | np.logical_and.reduce([reason > 0 for reason in reasons])
    annotation = read_field(words, codebook.fields["annotation", 0]) * stays
    unreadable = [
        (read_field(words, codebook.fields["unreadable", n]) * stays).sum() for n in range(len(codebook.texts))
    ]
    pairs = entries.identity[(entries.unknown == 0) & (entries.identity >= codebook.first_pair)]
    return np.concatenate(
        [
            [len(row_reason), rejected.sum(), annotation.sum()],
            np.bincount(row_reason, minlength=len(ROW_REASONS) + 1)[1:],
            *(np.bincount(reason, minlength=len(SCORE_REASONS) + 1)[1:] for reason in reasons),
            unreadable,
            np.bincount(pairs - codebook.first_pair, minlength=len(codebook.pairs)),
        ]
    ).astype(np.int64)
