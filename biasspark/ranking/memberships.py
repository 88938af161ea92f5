"""Who is in which identity, as sparse entries (row, identity, in or unknown). numpy and pyarrow only."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from biasspark.arrays import Ints
from biasspark.corpus.codebook import Codebook, Source
from biasspark.errors import corpus_changed
from biasspark.ranking.fields import Words, known_sources


class Entries(NamedTuple):
    """Rows that are not simply out of an identity, in the base of its source.

    Attributes
    ----------
    row, identity : int64 arrays, shape (e,)
        Ascending by (row, identity), each pair once.
    unknown : int64 array, shape (e,)
        1 where it is not known whether the row is in, 0 where it is.
    """

    row: Ints
    identity: Ints
    unknown: Ints


def find_entries(words: Words, values: Mapping[int, pa.Array], codebook: Codebook) -> Entries:
    """Return the memberships of a batch of rows, crossed pairs included.

    Parameters
    ----------
    words : mapping of int to int64 array
        The packed words.
    values : mapping of int to pyarrow.Array
        The strings of the sources that have them, by place of the source; NULL where the source is unknown.

    Raises
    ------
    InputError
        If a value occurs that the survey of the corpus did not see.
    """
    found = [_flagged(words, codebook)]
    for place, column in values.items():
        source = codebook.sources[place]
        found.append(
            _found_spellings(column, source, codebook) if source.patterns else _known_values(column, source, codebook)
        )
    entries = _in_order(Entries(*map(np.concatenate, zip(*found, strict=True))), codebook)
    if not codebook.pairs:
        return entries
    crossed = _crossed(entries, known_sources(words, codebook), codebook)
    return Entries(*map(np.concatenate, zip(entries, crossed, strict=True)))


def find_unseen(entries: Entries, pattern: Ints, codebook: Codebook) -> Entries:
    """Return where a pair with a value that nobody has tonight would be unknown, for nights that have it.

    Such a pair is out on rows on which the source of the value is known, and unknown where that source is unknown and
    the other side is not out. Of rows that have such a side, `identity` is that side's number times the number of
    sources, plus the place of the source.
    """
    found = []
    single = entries.identity < codebook.first_pair
    for bit, place in enumerate(codebook.nullable_sources):
        if place in codebook.open_sources:
            beside = np.flatnonzero(single & (pattern[entries.row] >> bit & 1 == 0))
            found.append((entries.row[beside], entries.identity[beside] * len(codebook.sources) + place))
    rows, sides = ([part[side] for part in found] for side in (0, 1))
    return _entries(rows, sides, [np.ones(len(part), np.int64) for part in rows])


def _flagged(words: Words, codebook: Codebook) -> Entries:
    """Read memberships from bits, on the few rows that have any."""
    pattern = known_sources(words, codebook)
    rows, identities, unknowns = [], [], []
    for state, what in enumerate(("member", "unknown")):
        places = [(number, place) for (kind, number), place in codebook.fields.items() if kind == what]
        for word in {place.word for _, place in places}:
            here = [(number, place.shift) for number, place in places if place.word == word]
            bits = words[word] & sum(1 << shift for _, shift in here)
            if what == "unknown":  # all are set where their source, of flags, is unknown: that is no entry
                bits = np.where(pattern & _flags_bit(codebook), bits, 0)
            some = np.flatnonzero(bits)
            bits = bits[some]
            for number, shift in here:
                hit = some[(bits >> shift) & 1 == 1]
                rows.append(hit)
                identities.append(np.full(len(hit), number))
                unknowns.append(np.full(len(hit), state))
    return _entries(rows, identities, unknowns)


def _flags_bit(codebook: Codebook) -> int:
    """Return the bit that says in a row's pattern that its annotated columns are known, the one such source."""
    flags = (bit for bit, place in enumerate(codebook.nullable_sources) if codebook.sources[place].kind == "flags")
    return 1 << next(flags)


def _known_values(column: pa.Array, source: Source, codebook: Codebook) -> Entries:
    """Look values up: the one of a category, or those of an array, whose null elements say nothing."""
    rows, strings = _flatten(column)
    numbers = np.array([codebook.number[name] for name in source.values.values()], np.int64)
    place = pc.index_in(strings, value_set=pa.array(list(source.values), pa.string()))
    if place.null_count:
        raise corpus_changed(f"'{source.name}' has a value that was not there when the corpus was surveyed")
    found = numbers[place.to_numpy(zero_copy_only=False).astype(np.int64)]
    return Entries(rows, found, np.zeros(len(rows), np.int64))


def _found_spellings(column: pa.Array, source: Source, codebook: Codebook) -> Entries:
    """Say which identities a spelling found in the text stands for.

    The longest term at a place in the text is found; shorter ones that begin there, too, are whole words within it.
    """
    rows, strings = _flatten(column)
    spellings = strings.dictionary_encode()
    patterns = [
        (codebook.number[name], re.compile(rf"{pattern}(?!\w)", re.IGNORECASE)) for name, pattern in source.patterns
    ]
    named = [
        [number for number, pattern in patterns if pattern.match(text)] for text in spellings.dictionary.to_pylist()
    ]
    counts = np.array([len(numbers) for numbers in named], np.int64)
    flat = np.array([number for numbers in named for number in numbers], np.int64)
    which = spellings.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    each = counts[which]
    rows = np.repeat(rows, each)
    found = flat[np.repeat(np.cumsum(counts)[which] - each, each) + _positions(each)]
    return Entries(rows, found, np.zeros(len(rows), np.int64))


def _flatten(column: pa.Array) -> tuple[Ints, pa.Array]:
    """Return the strings of a column, those in lists too, and the row of each; nulls left out."""
    rows = np.arange(len(column), dtype=np.int64)
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        rows = pc.list_parent_indices(column).to_numpy(zero_copy_only=False).astype(np.int64)
        column = pc.list_flatten(column)
    valid = np.asarray(pc.is_valid(column).to_numpy(zero_copy_only=False), bool)
    return rows[valid], column.drop_null()


def _in_order(entries: Entries, codebook: Codebook) -> Entries:
    """Sort by (row, identity) and drop repetitions, as of a value that an array holds twice."""
    key = entries.row * len(codebook.names) + entries.identity
    _, first = np.unique(key, return_index=True)
    return Entries(*(column[first] for column in entries))


def _crossed(entries: Entries, pattern: Ints, codebook: Codebook) -> Entries:
    """Cross the entries of each row: in where both sides are in, unknown where one is unknown and none is out."""
    _, start, count = np.unique(entries.row, return_index=True, return_counts=True)
    later = np.repeat(count + start, count) - np.arange(len(entries.row)) - 1
    first = np.repeat(np.arange(len(entries.row)), later)
    second = first + 1 + _positions(later)
    both = entries.unknown[first] | entries.unknown[second]
    found = [(entries.row[first], entries.identity[first], entries.identity[second], both)]
    source_of = np.array(codebook.source_of)
    for bit, place in enumerate(codebook.nullable_sources):
        beside = np.flatnonzero(pattern[entries.row] >> bit & 1 == 0)
        others = np.flatnonzero(source_of == place)
        row, mine = np.repeat(entries.row[beside], len(others)), np.repeat(entries.identity[beside], len(others))
        theirs = np.tile(others, len(beside))
        found.append((row, np.minimum(mine, theirs), np.maximum(mine, theirs), np.ones(len(row), np.int64)))
    row, low, high, unknown = map(np.concatenate, zip(*found, strict=True))
    return Entries(row, pair_number(low, high, codebook), unknown)


def pair_number(low: Ints, high: Ints, codebook: Codebook) -> Ints:
    """Return the numbers of pairs of identities, which are numbered (1, 2), (1, 3), ..., (2, 3), ...

    With n identities, (low - 1)·n - low·(low - 1)/2 pairs have a side below `low`, and high - low - 1 pairs begin with
    `low` and come before the pair.

    Parameters
    ----------
    low, high : int64 arrays, shape (k,)
        Numbers of identities, 1 <= low < high <= ``len(codebook.singles)``.

    Returns
    -------
    int64 array, shape (k,)
        From `Codebook.first_pair` on.
    """
    size = len(codebook.singles)
    return codebook.first_pair + (low - 1) * size - low * (low - 1) // 2 + high - low - 1


def _positions(counts: Ints) -> Ints:
    """Return 0, 1, ... within each run of the given lengths."""
    return np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)


def _entries(rows: list[Ints], identities: list[Ints], unknowns: list[Ints]) -> Entries:
    nothing = np.empty(0, np.int64)
    return Entries(*(np.concatenate([nothing, *parts]) for parts in (rows, identities, unknowns)))
