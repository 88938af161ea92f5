"""EXAMPLES within a task: rows buffered for sorting, their decoded bit fields, and their blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from biasspark.arrays import Flags, Floats, Ints
from biasspark.corpus.encoding import Encoding
from biasspark.errors import InputError
from biasspark.ranking.kernels.blocks import (
    Block,
    cell_key,
    find_ranges,
    membership_key,
    sort_cells,
    sort_memberships,
)
from biasspark.ranking.kernels.codec import narrow
from biasspark.ranking.kernels.placements import MAX_ROWS_OF_A_LABEL
from biasspark.ranking.kernels.reference_sets import RankOffsets, ReferenceSets, count_by_range
from biasspark.ranking.memberships import Annotations, Memberships, find_memberships, read_annotations

Batches: TypeAlias = Iterable[pa.RecordBatch]
Key: TypeAlias = tuple[int, int, int]
"""Numbers of a model, a slice, and a range or a chunk."""
Parts: TypeAlias = Mapping[int, Sequence[Any]]
"""What all parts of a range hold, by kind."""

FLUSH_ROWS, FLUSH_BYTES = 500_000, 128 << 20
"""Limits of the rows that are sorted at a time. 2 M rows would be as fast, in twice the memory."""


class Kind:
    """The kind of a part. The table ``score_blocks`` stores these numbers, too."""

    CELLS, MEMBERSHIPS = 0, 1  # blocks by `cell_key` and by `membership_key`
    OFFSETS = 2  # rank offsets
    UNSEEN = 3  # a block of the entries of `find_unseen`
    COUNTS = 4  # counts of the whole corpus
    ROWS = 5  # rows with their payload


class Part(NamedTuple):
    """One task's part of a range: an object of some kind."""

    model: int
    slice: int
    score_range: int
    kind: int
    data: Any


@dataclass(frozen=True)
class TaskRows:
    """Some rows of EXAMPLES, with additional columns if there are any."""

    table: pa.Table
    encoding: Encoding

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def column(self, name: str) -> pa.Array:
        """Return a column as one array."""
        return self.table.column(name).combine_chunks()

    @cached_property
    def words(self) -> dict[int, Ints]:
        """The packed words by number, without the bits of `annotations`."""
        return {number: self.column(name).to_numpy() for number, name in enumerate(self.encoding.packed_columns)}

    @cached_property
    def annotations(self) -> Annotations | None:
        """The annotations that are read from numbers: see `Encoding.numbers`."""
        columns = self.encoding.numbers
        return read_annotations(self.table.to_batches(), columns, self._packed_unknown) if columns else None

    @cached_property
    def _packed_unknown(self) -> Flags:
        """True where all flags of the nullable source that the words hold are unknown."""
        unknown = [self.words[word] & mask == mask for word, mask in self.encoding.masks("unknown").items()]
        all_unknown: Flags = np.logical_and.reduce([np.ones(len(self), bool), *unknown])
        return all_unknown

    def read(self, what: str, number: int = 0) -> Ints:
        """Return the values of a bit field: see `Encoding.fields`."""
        field = self.encoding.fields[what, number]
        return (self.words[field.word] >> field.shift) & ((1 << field.width) - 1)

    @cached_property
    def label(self) -> Ints:
        """1 where a row is positive."""
        return self.read("label")

    @cached_property
    def known(self) -> Ints:
        """Which nullable sources are known, as bits."""
        known = np.zeros(len(self), np.int64)
        for bit, index in enumerate(self.encoding.nullable_sources):
            if self.encoding.sources[index].kind == "flags":
                unknown = self.annotations.unknown if self.annotations else self._packed_unknown
                known |= (~unknown).astype(np.int64) << bit
            else:
                known |= self.read("known", bit) << bit
        return known

    @cached_property
    def stays(self) -> Flags:
        """True for the rows that are not rejected as a whole."""
        return np.equal(self.read("row_reason"), 0)

    @cached_property
    def scores(self) -> list[Floats]:
        """The scores of each model, 0.0 for -0.0."""
        return [self.column(name).to_numpy() + 0.0 for name in self.encoding.score_columns]

    @cached_property
    def memberships(self) -> Memberships:
        """Which rows are in which identities, or may be."""
        values = {index: self.column(name) for index, name in self.encoding.value_columns.items()}
        return find_memberships(self.words, self.known, values, self.encoding, self.annotations)

    def usable(self, model: int) -> Flags:
        """Return the rows that count for a model."""
        usable: Flags = self.stays & (self.read("score_reason", model) == 0)
        return usable

    def groups(self) -> Iterator[tuple[int, int, Flags]]:
        """Yield the numbers of every model and slice, and the rows that count there."""
        for model in range(len(self.encoding.models)):
            usable = self.usable(model)
            for slice_number in range(len(self.encoding.slices)):
                in_slice = self.read("slice", slice_number) == 1 if slice_number else True
                yield model, slice_number, usable & in_slice

    def entries_of(self, sets: ReferenceSets) -> tuple[Ints, Ints]:
        """Return the row, ascending, and the code of each entry of some identities: see `ReferenceSets.members`."""
        chosen, identities = sets.select(self.memberships.identity)
        rows, entries = self.memberships.row[chosen], 2 * identities + self.memberships.unknown[chosen]
        order = np.argsort(rows, kind="stable")  # crossed pairs come after all other identities
        return rows[order], entries[order]


class Keys(NamedTuple):
    """Keys by which rows are sorted into blocks of one kind: one for each row, or for each of the given rows."""

    kind: int
    keys: Ints
    rows: Ints | None = None


def hold_rows(batches: Batches, encoding: Encoding) -> Iterator[TaskRows]:
    """Yield the rows of one task, `FLUSH_ROWS` or `FLUSH_BYTES`, or one batch more, at a time."""
    held: list[pa.RecordBatch] = []
    n_rows = n_bytes = 0
    for batch in batches:
        held.append(batch)
        n_rows, n_bytes = n_rows + len(batch), n_bytes + batch.nbytes
        if n_rows >= FLUSH_ROWS or n_bytes >= FLUSH_BYTES:
            yield TaskRows(pa.Table.from_batches(held), encoding)
            held, n_rows, n_bytes = [], 0, 0
    if n_rows:
        yield TaskRows(pa.Table.from_batches(held), encoding)


def identity_keys(rows: TaskRows, sets: ReferenceSets | None = None) -> list[Keys]:
    """Return the keys of base cells, and of memberships in all identities or in the identities of reference sets."""
    members = rows.memberships
    if sets is not None:
        chosen, _ = sets.select(members.identity)
        members = Memberships(*(column[chosen] for column in members))
    keys = membership_key(members.identity, members.unknown, rows.label[members.row])
    return [Keys(Kind.CELLS, cell_key(rows.known, rows.label)), Keys(Kind.MEMBERSHIPS, keys, members.row)]


def sort_rows(
    rows: TaskRows, keyed: Sequence[Keys], boundaries: Sequence[Floats], chosen: Flags | None = None
) -> Iterator[Part]:
    """Sort the scores of every model and slice into blocks, cut at the boundaries: all rows, or the chosen ones."""
    for model, slice_number, usable in rows.groups():
        scores, inside = rows.scores[model], usable if chosen is None else usable & chosen
        for kind, keys, numbers in keyed:
            if numbers is None:
                entries = (keys, scores) if inside.all() else (keys[inside], scores[inside])
                blocks = sort_cells(*entries, boundaries[model])
            else:
                hit = inside[numbers]
                blocks = sort_memberships(keys[hit], scores[numbers[hit]], boundaries[model])
            for score_range, block in blocks:
                yield Part(model, slice_number, score_range, kind, block)


def read_blocks(parts: Parts, kind: int, n_groups: int = 1) -> list[Block]:
    """Return the blocks of one kind among the parts of a range.

    Raises `InputError` if there are more rows of a label than the kernels can count. The label is the last bit of a
    key, or of the quotient where keys are multiplied by a number of groups.
    """
    blocks = list(parts.get(kind, ()))
    labels = (np.bincount(block.keys // n_groups & 1, block.rows_of_keys, 2) for block in blocks)
    if kind == Kind.CELLS and np.max(sum(labels)) > MAX_ROWS_OF_A_LABEL:
        raise InputError(
            f"corpus: more than {MAX_ROWS_OF_A_LABEL:,} rows of one label share one score or one narrow range. "
            "Placements among them exceed 64-bit integers. Is that score a default for rows that were not scored? "
            "Filter them."
        )
    return blocks


def sort_with_offsets(rows: TaskRows, boundaries: Sequence[Floats], sets: ReferenceSets) -> Iterator[Part]:
    """Sort the scores into blocks, with the memberships of some identities, and count the offsets of each range."""
    yield from sort_rows(rows, identity_keys(rows, sets), boundaries)
    members = sets.members(rows.known, rows.label, *rows.entries_of(sets))
    for model, slice_number, usable in rows.groups():
        usable_members = (rows_of_set[usable[rows_of_set]] for rows_of_set in members)
        ranges = find_ranges(rows.scores[model], boundaries[model])
        yield from list_offsets(model, slice_number, count_by_range(usable_members, ranges, len(boundaries[model]) + 1))


def list_offsets(model: int, slice_number: int, counts: Ints) -> Iterator[Part]:
    """Yield the offsets of each range, from a task's row counts, shape (ranges, sets): see `RankOffsets`."""
    total = narrow(counts.sum(axis=0))
    for score_range, below in enumerate(counts.cumsum(axis=0) - counts if total.any() else ()):
        yield Part(model, slice_number, score_range, Kind.OFFSETS, RankOffsets(narrow(below), total))
