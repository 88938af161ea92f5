"""Ranking by the kernels alone, for tests that start no JVM: what the blocks engine does, in one process."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from biasspark.arrays import Floats, Ints
from biasspark.corpus.codebook import Codebook, Source, Tally
from biasspark.ranking.blocks import Block
from biasspark.ranking.combine import combine_ranges, decode_sums, encode_sums
from biasspark.ranking.fields import known_sources
from biasspark.ranking.memberships import find_entries
from biasspark.ranking.placements import CELLS_OF_PAIRS, Profile, RangeSums, measure_range
from biasspark.ranking.sorting import CELLS, MEMBERSHIPS, TALLIES_RANGE, Part, sort_rows
from tests.oracle.pairs import Example, State, Sums, count_identity

_LIST = pa.list_(pa.string())

Fields = dict[tuple[str, int], Any]
"""Values of bit fields, row by row, by what `Codebook.fields` knows them."""


class Ranked(NamedTuple):
    """Sums of the whole score line and profiles of its ranges by (model, slice), and what was counted on the way."""

    sums: dict[tuple[int, int], RangeSums]
    profiles: dict[tuple[int, int], list[Profile]]
    tally: Tally
    n_members: tuple[int, ...]
    """Rows of each crossed pair, of all that were read."""


def draw_rows(
    seed: int, rows: int, levels: int, shares: Mapping[str, Sequence[float]]
) -> tuple[list[float], list[bool], dict[str, list[State]]]:
    """Draw scores, labels, and the states of identities by name.

    There are `levels` scores, or no two alike if 0; `shares` are those of each identity's rows that are in it, not in
    it, and unknown.
    """
    rng = np.random.default_rng((seed, levels))
    scores = rng.integers(0, levels, rows) / 4 if levels else rng.random(rows)
    states: dict[str, list[State]] = {
        name: [(True, False, None)[state] for state in rng.choice(3, rows, p=share)] for name, share in shares.items()
    }
    return scores.tolist(), (rng.random(rows) < 0.4).tolist(), states


def flags(*names: str, nullable: bool = True, name: str = "columns") -> Source:
    return Source(name, "flags", nullable, names)


def category(name: str, *values: str, nullable: bool = True) -> Source:
    named = {value: f"{name}={value}" for value in values}
    return Source(name, "category", nullable, tuple(named.values()), named)


def array(name: str, *values: str, nullable: bool = True) -> Source:
    return Source(name, "array", nullable, values, {value: value for value in values})


def codebook_of(*sources: Source, models: int = 1, slices: int = 1, crossed: bool = False) -> Codebook:
    return Codebook(
        models=tuple(f"model {n}" for n in range(models)),
        slices=("all", *(f"slice {n}" for n in range(1, slices))),
        sources=sources,
        crossed=crossed,
    )


def membership_fields(
    codebook: Codebook,
    states: Mapping[str, Sequence[State]],
    values: Mapping[int, Sequence[Any]] | None = None,
) -> Fields:
    """Give the bit fields of states of flags by identity, and of values by place of their source."""
    return _state_fields(codebook, states) | _value_fields(codebook, values or {})


def _state_fields(codebook: Codebook, states: Mapping[str, Sequence[State]]) -> Fields:
    """Give the bit fields of sources of flags: a source is unknown on the rows on which all its identities are."""
    fields: Fields = {}
    for place, source in enumerate(codebook.sources):
        if source.kind != "flags":
            continue
        columns = {name: states[name] for name in source.identities}
        known = [any(state is not None for state in row) for row in zip(*columns.values(), strict=True)]
        for name, column in columns.items():
            number = codebook.number[name]
            fields["member", number] = [state is True for state in column]
            if source.nullable:
                fields["unknown", number] = [state is None for state in column]
        if source.nullable:
            fields["known", codebook.nullable_sources.index(place)] = known
    return fields


def _value_fields(codebook: Codebook, values: Mapping[int, Sequence[Any]]) -> Fields:
    """Give the bit fields that say where the sources of values are known."""
    return {
        ("known", codebook.nullable_sources.index(place)): [value is not None for value in column]
        for place, column in values.items()
        if codebook.sources[place].nullable
    }


def pack(
    codebook: Codebook,
    fields: Fields,
    scores: Sequence[ArrayLike],
    values: Mapping[int, Sequence[Any]] | None = None,
) -> pa.RecordBatch:
    """Make EXAMPLES of bit fields (0 unless given), of the scores of every model, and of values."""
    columns: dict[str, Any] = {name: np.zeros(len(np.asarray(scores[0])), np.int64) for name in codebook.word_columns}
    for key, column in fields.items():
        bits = codebook.fields[key]
        columns[codebook.word_columns[bits.word]] |= np.asarray(column).astype(np.int64) << bits.shift
    columns |= {
        name: np.asarray(column, np.float64) for name, column in zip(codebook.score_columns, scores, strict=True)
    }
    for place, name in codebook.value_columns.items():
        kind = pa.string() if codebook.sources[place].kind == "category" else _LIST
        columns[name] = pa.array((values or {})[place], kind)
    return pa.RecordBatch.from_pydict(columns)


def read_batch(codebook: Codebook, batch: pa.RecordBatch) -> tuple[dict[int, Ints], dict[int, pa.Array]]:
    """Give the words by number and the values by place of their source."""
    words = {place: batch[name].to_numpy() for place, name in enumerate(codebook.word_columns)}
    return words, {place: batch[name] for place, name in codebook.value_columns.items()}


def find_states(codebook: Codebook, batch: pa.RecordBatch) -> list[list[State]]:
    """Give for every row the state of every identity by number, as entries and bases say it together."""
    words, values = read_batch(codebook, batch)
    patterns = known_sources(words, codebook).tolist()
    found: list[list[State]] = [
        [False if not mask or pattern & mask else None for mask in codebook.base_masks] for pattern in patterns
    ]
    entries = find_entries(words, values, codebook)
    for row, number, unknown in zip(*(column.tolist() for column in entries), strict=True):
        assert found[row][number] is False, "an entry of a row outside of the base, or one that is there twice"
        found[row][number] = None if unknown else True
    return found


def rank_batches(
    batches: Iterable[pa.RecordBatch], codebook: Codebook, boundaries: Sequence[ArrayLike] | None = None
) -> Ranked:
    """Rank one task's rows."""
    return merge_parts(sort_batches(batches, codebook, boundaries), codebook)


def sort_batches(
    batches: Iterable[pa.RecordBatch], codebook: Codebook, boundaries: Sequence[ArrayLike] | None = None
) -> list[Part]:
    edges: list[Floats] = [np.asarray(edge, np.float64) for edge in boundaries or [()] * len(codebook.models)]
    return list(sort_rows(batches, codebook, edges))


def merge_parts(parts: Iterable[Part], codebook: Codebook) -> Ranked:
    """Do what the reducers do with the parts of all tasks."""
    blocks: dict[tuple[int, int, int], dict[int, list[Block]]] = defaultdict(lambda: {CELLS: [], MEMBERSHIPS: []})
    counts = np.zeros(len(codebook.tallies), np.int64)
    for part in parts:
        if part.score_range != TALLIES_RANGE:
            blocks[part[:3]][part.kind].append(Block.decode(part.data))
        elif part[:2] == (0, 0):
            counts = counts + np.frombuffer(part.data, np.int64)
    sums: dict[tuple[int, int], list[RangeSums]] = defaultdict(list)
    profiles: dict[tuple[int, int], list[Profile]] = defaultdict(list)
    for model, number, score_range in sorted(blocks):
        held = blocks[model, number, score_range]
        measured, profile = measure_range(held[CELLS], held[MEMBERSHIPS], codebook.base_masks)
        sums[model, number].append(decode_sums(encode_sums(measured, range(len(codebook.names)))))
        profiles[model, number].append(profile)
    return Ranked(
        {key: combine_ranges(ranges) for key, ranges in sums.items()},
        dict(profiles),
        codebook.read_tally(counts.tolist()),
        tuple(counts[codebook.first_pair_tally :].tolist()),
    )


def six_pairs(sums: RangeSums, identity: int) -> tuple[Sums, ...]:
    """Give the six pairs of cells of an identity as the oracle gives them."""
    return tuple(
        Sums(
            int(sums.cells[low][identity]), int(sums.cells[high][identity]), *(int(column[identity]) for column in pair)
        )
        for (low, high), pair in zip(CELLS_OF_PAIRS, sums.pairs, strict=True)
    )


def pairs_by_name(sums: RangeSums, codebook: Codebook) -> dict[str, tuple[Sums, ...]]:
    """Give the six pairs of every identity by its name."""
    return {name: six_pairs(sums, number) for number, name in enumerate(codebook.names)}


def count_by_name(examples: Sequence[Example], codebook: Codebook) -> dict[str, tuple[Sums, ...]]:
    """Give what the oracle counts of every identity by its name."""
    return {name: count_identity(examples, number) for number, name in enumerate(codebook.names)}
