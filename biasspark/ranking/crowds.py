"""Crowds: of every identity and either label its members, its unknowns and its base. numpy and pyarrow only.

A placement among the background of an identity is that among its base, less those among members and unknowns. So all
cells of all identities follow from the placements among crowds, and these from one running count each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from biasspark.arrays import Flags, Floats, Ints
from biasspark.columns import LABEL, SCORE
from biasspark.corpus.codebook import Codebook
from biasspark.ranking.blocks import double_below, number_runs, split_by_code, split_by_range
from biasspark.ranking.fields import Fields, Words, hold_rows, one_array, read_scores
from biasspark.ranking.memberships import find_entries
from biasspark.ranking.row_blocks import columns_of, encode_rows

KNOWN, ENTRIES, OTHER = "known_sources", "entries", "other_score"
MEMBER, UNKNOWN = 0, 1


@dataclass(frozen=True)
class Crowds:
    """Which crowds there are: negatives and positives of every base, then of every identity members, then unknowns.

    Attributes
    ----------
    identities
        Their numbers in the codebook, ascending.
    masks
        The sources one of which must be known for a row to be in a base, each set once; 0 stands for all rows.
    base_of
        For every identity the place of its base.
    """

    identities: tuple[int, ...]
    masks: tuple[int, ...]
    base_of: tuple[int, ...]

    @classmethod
    def of(cls, codebook: Codebook, identities: Sequence[int]) -> Crowds:
        """Return the crowds of some identities of a codebook."""
        masks = tuple(dict.fromkeys(codebook.base_masks[number] for number in identities))
        base_of = tuple(masks.index(codebook.base_masks[number]) for number in identities)
        return cls(tuple(identities), masks, base_of)

    @property
    def n_base_crowds(self) -> int:
        """How many of the crowds are bases."""
        return 2 * len(self.masks)

    @property
    def size(self) -> int:
        """How many crowds there are."""
        return self.n_base_crowds + 4 * len(self.identities)

    def base(self, place: int, label: int) -> int:
        """Return the number of the crowd that is the base of an identity, by its place."""
        return 2 * self.base_of[place] + label

    def entry(self, place: int, state: int, label: int) -> int:
        """Return the number of the crowd of the members of an identity, or of its unknowns."""
        return self.n_base_crowds + 4 * place + 2 * state + label

    @cached_property
    def _masks_of_crowds(self) -> Ints:
        of_identities = [self.masks[base] for base in self.base_of]
        return np.repeat(np.array([*self.masks, *of_identities]), [2] * len(self.masks) + [4] * len(of_identities))

    def asked(self, known: int, totals: Ints) -> list[int]:
        """Return the crowds that matter to rows on which these sources are known; empty ones do not."""
        masks = self._masks_of_crowds
        return [int(crowd) for crowd in np.flatnonzero(((masks == 0) | (masks & known > 0)) & (totals > 0))]


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
    in_base = np.logical_or.reduce([_in_base(fields.known, mask) for mask in crowds.masks])
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
        usable = in_base & fields.usable[model]
        for number, inside in enumerate(fields.slices):
            yield from cut_table(rows.filter(pa.array(usable & inside)), edges, crowds, (model, number))


def cut_table(table: pa.Table, edges: Floats, crowds: Crowds, key: tuple[int, int]) -> Iterator[CrowdPart]:
    """Cut rows of one (model, slice), whose score is that of the model, at its boundaries."""
    for score_range, rows in split_by_range(table.column(SCORE).to_numpy(), edges):
        own = table.take(pa.array(rows))
        counts = [len(crowd) for crowd in find_crowds(own, crowds)]
        yield CrowdPart(*key, score_range, counts, encode_rows(own))


def find_crowds(table: pa.Table, crowds: Crowds) -> list[Ints]:
    """Return for every crowd which of the rows are in it."""
    positive, known = table.column(LABEL).to_numpy(), table.column(KNOWN).to_numpy()
    bases = [_in_base(known, mask) for mask in crowds.masks]
    found = [np.flatnonzero(base & (positive == label)) for base in bases for label in (False, True)]
    lengths, codes = read_lists(table, ENTRIES)
    rows = np.repeat(np.arange(len(positive)), lengths)
    crowd = 2 * codes.astype(np.int64) + positive[rows]
    return found + [rows[entries] for entries in split_by_code(crowd, 4 * len(crowds.identities))]


def _in_base(known: Ints, mask: int) -> Flags:
    return known & mask > 0 if mask else np.ones(len(known), bool)


def read_lists(table: pa.Table, name: str) -> tuple[Ints, np.ndarray]:
    """Return the lengths of a column's lists, and their values one after another."""
    column = table.column(name)
    return pc.list_value_length(column).to_numpy().astype(np.int64), pc.list_flatten(column).to_numpy()


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


def with_columns(table: pa.Table, **columns: pa.Array) -> pa.Table:
    """Return a table with more columns, or others in their place."""
    return pa.table(columns_of(table) | columns)


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
