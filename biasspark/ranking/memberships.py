"""Which rows are in which identities, as sparse entries (row, identity, in or unknown). numpy and pyarrow only."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from biasspark.arrays import Flags, Ints
from biasspark.corpus.encoding import Encoding, Source
from biasspark.errors import corpus_changed


class Memberships(NamedTuple):
    """Entries of the rows that are in an identity, or may be, within the known population of its source.

    They ascend by (row, identity), each pair once; crossed pairs come after all other identities. `unknown` is 1 where
    it is unknown whether the row is in the identity, 0 where it is in.
    """

    row: Ints
    identity: Ints
    unknown: Ints


class Annotation(NamedTuple):
    """One identity's annotations, from a column of numbers: rows, ascending.

    `off_scale` are rows with a number outside of 0 to 1, `unknown` those on which this column is unknown, but another
    column of its source is known.
    """

    members: Ints
    off_scale: Ints
    unknown: Ints


class Annotations(NamedTuple):
    """The annotations from all columns of numbers, by number of the identity.

    `unknown` is True for rows on which all columns of the source are unknown.
    """

    unknown: Flags
    by_identity: Mapping[int, Annotation]


def find_memberships(
    words: Mapping[int, Ints],
    known: Ints,
    values: Mapping[int, pa.Array],
    encoding: Encoding,
    annotations: Annotations | None = None,
) -> Memberships:
    """Return the memberships of some rows, crossed pairs included.

    `words` are the packed words. `known` has the nullable sources known on each row, as bits. `values` has the strings
    of sources of values by index of the source, NULL where the source is unknown; and `annotations` the identities that
    are read from numbers (`Encoding.numbers`). Raises `InputError` if a value occurs that the survey did not see.
    """
    parts = _read_flags(words, known, encoding)
    for number, rows in annotations.by_identity.items() if annotations else ():
        parts.append(_entries(rows.members, number))
        if encoding.sources[encoding.source_of[number]].nullable:
            parts.append(_entries(rows.unknown, number, 1))
    for index, column in values.items():
        source = encoding.sources[index]
        look_up = _match_spellings if source.kind == "terms" else _look_up_values
        parts.append(look_up(column, source, encoding))
    singles = _join(parts)
    # In order, and without duplicates, such as a value that an array holds twice.
    _, first = np.unique(singles.row * len(encoding.names) + singles.identity, return_index=True)
    singles = Memberships(*(column[first] for column in singles))
    return _join([singles, _cross(singles, known, encoding)]) if encoding.pairs else singles


def find_unseen(members: Memberships, known: Ints, encoding: Encoding) -> Memberships:
    """Return the rows on which a pair would be unknown whose value this run lacks, but another run may have.

    Such a pair is out where the source of the value is known, and unknown where that source is unknown and the other
    side is not out. For these rows, `identity` is the number of the other side times the number of sources, plus the
    index of the source.
    """
    parts = [_entries([], [])]
    single = members.identity < encoding.first_pair
    for bit, index in enumerate(encoding.nullable_sources):
        if index in encoding.open_sources:
            sides = np.flatnonzero(single & (known[members.row] >> bit & 1 == 0))
            parts.append(_entries(members.row[sides], members.identity[sides] * len(encoding.sources) + index, 1))
    return _join(parts)


def read_annotations(
    batches: Iterable[pa.RecordBatch], columns: Mapping[int, tuple[str, float]], unknown: Flags
) -> Annotations:
    """Return the annotations from DOUBLE columns, in which NULL and NaN mean unknown.

    `columns` has, by number of the identity, its column and the lowest value of a member. `unknown` is True for rows on
    which all other columns of their source are unknown.
    """
    unknown = unknown.copy()
    entries: dict[int, list[Annotation]] = {number: [] for number in columns}
    start = 0
    for batch in batches:
        read = {number: _compare(batch.column(name), least) for number, (name, least) in columns.items()}
        all_unknown = unknown[start : start + len(batch)]
        np.logical_and.reduce([all_unknown, *(flags[-1] for flags in read.values())], out=all_unknown)
        for number, (members, off_scale, is_unknown) in read.items():
            chosen = (members, off_scale, is_unknown & ~all_unknown)
            entries[number].append(Annotation(*(np.flatnonzero(flags) + start for flags in chosen)))
        start += len(batch)
    joined = {number: map(np.concatenate, zip(*pieces, strict=True)) for number, pieces in entries.items()}
    return Annotations(unknown, {number: Annotation(*rows) for number, rows in joined.items()})


def _compare(column: pa.Array, least: float) -> tuple[Flags, Flags, Flags]:
    """Return the rows that are members, those with a number outside of 0 to 1, and those that are unknown.

    Filling NULLs or unpacking validity bits with Arrow takes longer than all comparisons. Columns without NULL, NaN and
    numbers outside of 0 to 1 take less than half of the time.
    """
    if not column.null_count:
        values = column.to_numpy()
        if values.min(initial=0) >= 0 and values.max(initial=1) <= 1:  # neither with NaN
            nowhere = np.zeros(len(values), bool)
            return values >= least, nowhere, nowhere
    valid = column.is_valid()
    bits = np.unpackbits(np.frombuffer(valid.buffers()[1], np.uint8), bitorder="little")
    known = bits[valid.offset : valid.offset + len(valid)].astype(bool)
    bare = pa.Array.from_buffers(column.type, len(column), [None, column.buffers()[1]], offset=column.offset)
    values = bare.to_numpy()
    return known & (values >= least), known & ((values < 0) | (values > 1)), ~known | np.isnan(values)


def pair_number(low: Ints, high: Ints, n_singles: int) -> Ints:
    """Return the numbers, from `Encoding.first_pair` on, of pairs of identities 1 <= low < high <= `n_singles`.

    Pairs are numbered (1, 2), (1, 3), ..., (2, 3), ... With n identities, (low - 1)·n - low·(low - 1)/2 pairs have a
    side below `low`, and high - low - 1 pairs that begin with `low` come before this one.
    """
    return n_singles + (low - 1) * n_singles - low * (low - 1) // 2 + high - low


def _entries(row: Ints | Sequence[int], identity: Ints | Sequence[int] | int, unknown: int = 0) -> Memberships:
    rows = np.asarray(row, np.int64)
    return Memberships(rows, np.broadcast_to(np.asarray(identity, np.int64), rows.shape), np.full(len(rows), unknown))


def _join(parts: Sequence[Memberships]) -> Memberships:
    return Memberships(*map(np.concatenate, zip(*parts, strict=True)))


def _read_flags(words: Mapping[int, Ints], known: Ints, encoding: Encoding) -> list[Memberships]:
    """Read memberships from bits, on the few rows that have any set."""
    parts = [_entries([], [])]
    for unknown, what in enumerate(("member", "unknown")):
        for word, mask in encoding.masks(what).items():
            bits = words[word] & mask
            if unknown:  # all are set where the whole source, the only nullable one of flags, is unknown: not an entry
                sources = enumerate(encoding.nullable_sources)
                flags_bit = next(bit for bit, index in sources if encoding.sources[index].kind == "flags")
                bits = np.where(known >> flags_bit & 1, bits, 0)
            some = np.flatnonzero(bits)
            bits = bits[some]
            for (kind, number), field in encoding.packed_fields.items():
                if kind == what and field.word == word:
                    parts.append(_entries(some[(bits >> field.shift) & 1 == 1], number, unknown))
    return parts


def _look_up_values(column: pa.Array, source: Source, encoding: Encoding) -> Memberships:
    """Look up the value of a category, or the values of an array, whose null elements are ignored."""
    rows, strings = _flatten(column)
    numbers = np.array([encoding.number[name] for name in source.identities], np.int64)
    index = pc.index_in(strings, value_set=pa.array(source.values, pa.string()))
    if index.null_count:
        raise corpus_changed(f"'{source.name}' has a value that was not there when the corpus was surveyed")
    return _entries(rows, numbers[index.to_numpy(zero_copy_only=False).astype(np.int64)])


def _match_spellings(column: pa.Array, source: Source, encoding: Encoding) -> Memberships:
    """Return the identities whose terms occur in the text.

    The corpus has the longest term at each position of the text; shorter terms that begin there are whole words in it.
    """
    rows, strings = _flatten(column)
    spellings = strings.dictionary_encode()
    patterns = [
        (encoding.number[name], re.compile(rf"{pattern}(?!\w)", re.IGNORECASE))
        for name, pattern in zip(source.identities, source.values, strict=True)
    ]
    named = [
        [number for number, pattern in patterns if pattern.match(text)] for text in spellings.dictionary.to_pylist()
    ]
    matches = pa.array(named, pa.list_(pa.int64())).take(spellings.indices)
    return _entries(rows[np.asarray(pc.list_parent_indices(matches))], pc.list_flatten(matches))


def _flatten(column: pa.Array) -> tuple[Ints, pa.Array]:
    """Return the strings of a column, also those in lists, and the row of each; without nulls."""
    rows = np.arange(len(column), dtype=np.int64)
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        rows = pc.list_parent_indices(column).to_numpy(zero_copy_only=False).astype(np.int64)
        column = pc.list_flatten(column)
    valid = np.asarray(pc.is_valid(column).to_numpy(zero_copy_only=False), bool)
    return rows[valid], column.drop_null()


def _cross(members: Memberships, known: Ints, encoding: Encoding) -> Memberships:
    """Cross the entries of each row: in if both sides are in, unknown if one is unknown and neither is out."""
    _, start, count = np.unique(members.row, return_index=True, return_counts=True)
    later = np.repeat(count + start, count) - np.arange(len(members.row)) - 1
    first = np.repeat(np.arange(len(members.row)), later)
    second = first + 1 + np.arange(len(first)) - np.repeat(np.cumsum(later) - later, later)
    n_singles = len(encoding.singles)
    pairs = pair_number(members.identity[first], members.identity[second], n_singles)
    parts = [Memberships(members.row[first], pairs, members.unknown[first] | members.unknown[second])]
    source_of = np.array(encoding.source_of)
    for bit, index in enumerate(encoding.nullable_sources):
        # Entries of other sources on rows where this source is unknown: every pair with its identities is unknown.
        sides = np.flatnonzero(known[members.row] >> bit & 1 == 0)
        partners = np.flatnonzero(source_of == index)
        row, side = (np.repeat(column[sides], len(partners)) for column in members[:2])
        opposite = np.tile(partners, len(sides))
        pairs = pair_number(np.minimum(side, opposite), np.maximum(side, opposite), n_singles)
        parts.append(_entries(row, pairs, 1))
    return _join(parts)
