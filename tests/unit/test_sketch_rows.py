"""The sketches of several runs, merged, against the ranking of their union; by the kernels alone."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from biasspark.corpus.encoding import Encoding
from biasspark.ranking.engine import CORPUS, collect_counts, cut_task_rows, measure_parts, rank_ranges
from biasspark.ranking.kernels.blocks import MAX_BYTES, Block, cut_block, merge_blocks, read_piece, write_pieces
from biasspark.ranking.range_job import cut_batches
from biasspark.ranking.task_rows import Kind, Part, TaskRows
from biasspark.windows.sketch import Renumbering
from tests.harness import ranking_without_spark as local
from tests.oracle.pairs import State

Row = tuple[float, bool, State, State, str | None, list[str] | None]
"""Score, label, two flags, a category and an array."""

SCORES = st.one_of(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.floats(-2, 2).map(lambda score: score + 0.0))
STATES = st.sampled_from([True, False, None])
ROWS = st.lists(
    st.tuples(
        SCORES,
        st.booleans(),
        STATES,
        STATES,
        st.sampled_from([None, "x", "y", "z"]),
        st.one_of(st.none(), st.lists(st.sampled_from("uvw"), max_size=3)),
    ),
    min_size=1,
    max_size=14,
)
EDGES = st.lists(SCORES, max_size=4).map(lambda edges: np.unique(np.array(edges, float)))


def encoding(rows: Sequence[Row], *, nullable: bool, crossed: bool) -> Encoding:
    """The encoding of rows: of the categories and arrays it has the values that occur."""
    categories = sorted({row[4] for row in rows if row[4] is not None})
    groups = sorted({value for row in rows for value in row[5] or []})
    return local.encoding_of(
        local.flags("a", "b", nullable=nullable),
        local.category("c", *categories, nullable=nullable),
        local.array("g", *groups, nullable=nullable),
        crossed=crossed,
    )


def batch(rows: Sequence[Row], encoding: Encoding) -> pa.RecordBatch:
    scores, labels, first, second, categories, groups = map(list, zip(*rows, strict=True))
    values = {1: categories, 2: groups}
    fields = local.membership_fields(encoding, {"a": first, "b": second}, values) | {("label", 0): labels}
    return local.pack(encoding, fields, [scores], values)


def keep(rows: Sequence[Row], encoding: Encoding, edges: np.ndarray) -> Iterator[tuple[int, bytes]]:
    """Give the pieces that a run keeps, of rows that two tasks have sorted."""
    keeping = replace(encoding, keeps_sketches=True)
    half = len(rows) // 2
    tasks = [batch(part, keeping) for part in (rows[:half], rows[half:]) if part]
    for (model, _, score_range), parts in local.gather_parts(
        tasks, keeping, lambda held: cut_task_rows(held, [edges])
    ).items():
        if model != CORPUS:
            yield from ((score_range, data) for chunk, data in measure_parts(parts, keeping, None) if chunk < 0)


def enter(pieces: Sequence[bytes], renumbering: Renumbering, edges: np.ndarray) -> Iterator[Part]:
    for kind, block in map(read_piece, pieces):
        for entered, renumbered in renumbering.enter(kind, block):
            for score_range, cut in cut_block(renumbered, edges):
                yield Part(0, 0, score_range, entered, cut)


@given(
    runs=st.lists(ROWS, min_size=2, max_size=3),
    of_runs=EDGES,
    of_window=EDGES,
    nullable=st.booleans(),
    crossed=st.booleans(),
)
def test_runs_merged_are_their_union(
    runs: list[list[Row]], of_runs: np.ndarray, of_window: np.ndarray, nullable: bool, crossed: bool
) -> None:
    """State(A) + state(B) = state(A u B), with values that only some runs have, and however both are cut."""
    union = [row for rows in runs for row in rows]
    window = encoding(union, nullable=nullable, crossed=crossed)
    parts: list[Part] = []
    for rows in runs:
        run = encoding(rows, nullable=nullable, crossed=crossed)
        pieces = [piece for _, piece in keep(rows, run, of_runs)]
        parts += enter(pieces, Renumbering.between(run, window), of_window)
    rows_of_union = TaskRows(pa.Table.from_batches([batch(union, window)]), window)
    parts += (part for part in cut_task_rows(rows_of_union, [of_window]) if part.model == CORPUS)
    whole = local.rank_batches([batch(union, window)], window)
    ranked = rank_ranges(cut_batches(local.frame_of([]), lambda _: parts), window, [of_window])
    assert local.pairs_by_name(collect_counts(ranked, window), window) == local.pairs_by_name(whole, window)


@settings(max_examples=40)
@given(rows=ROWS, edges=EDGES, seed=st.integers(0, 9))
def test_state_is_the_same_whatever_the_order_of_rows(rows: list[Row], edges: np.ndarray, seed: int) -> None:
    of_rows = encoding(rows, nullable=True, crossed=True)
    shuffled = [rows[place] for place in np.random.default_rng(seed).permutation(len(rows))]
    assert list(keep(rows, of_rows, edges)) == list(keep(shuffled, of_rows, edges))


def block_of(n_keys: int, n_each: int, most: int) -> Block:
    rng = np.random.default_rng(n_keys)
    counts = rng.integers(1, most + 1, n_keys * n_each) if most > 1 else np.empty(0, np.int64)
    scores = np.concatenate([np.unique(rng.random(2 * n_each))[:n_each] for _ in range(n_keys)])
    return Block(np.arange(n_keys) * 3, np.full(n_keys, n_each), scores, counts)


@pytest.mark.parametrize(("n_keys", "n_each", "most"), [(2, 300_000, 1), (2, 300_000, 9), (150_000, 1, 9)])
def test_a_piece_has_4_mib_at_most(n_keys: int, n_each: int, most: int) -> None:
    whole = block_of(n_keys, n_each, most)
    pieces = list(write_pieces(Kind.MEMBERSHIPS, whole))
    assert 1 < len(pieces) < 8
    assert max(map(len, pieces)) <= MAX_BYTES
    read = [read_piece(piece) for piece in pieces]
    assert {kind for kind, _ in read} == {Kind.MEMBERSHIPS}
    merged = merge_blocks([block for _, block in read])
    assert list(write_pieces(Kind.MEMBERSHIPS, merged)) == pieces


def test_a_block_without_scores_leaves_no_piece() -> None:
    nothing = merge_blocks([])
    assert list(write_pieces(Kind.MEMBERSHIPS, nothing)) == []
    assert list(cut_block(nothing, np.array([0.5]))) == []


def test_a_score_at_a_boundary_is_in_the_range_above() -> None:
    block = Block(np.array([4, 7]), np.array([3, 1]), np.array([0.1, 0.5, 0.9, 0.5]), np.array([1, 2, 3, 4]))
    found = dict(cut_block(block, np.array([0.0, 0.5, 0.7, 0.8, 2.0])))
    assert sorted(found) == [1, 2, 4]
    assert [(key, scores.tolist(), counts.tolist()) for key, scores, counts in found[2].cells()] == [
        (4, [0.5], [2]),
        (7, [0.5], [4]),
    ]


def entries_of(block: Block) -> list[tuple[int, float, int]]:
    """Keys, scores and counts, as they are in the block."""
    keys = np.repeat(block.keys, block.lengths)
    return list(zip(keys.tolist(), block.scores.tolist(), block.counts.tolist(), strict=True))


def test_a_block_of_many_keys_is_cut_in_order() -> None:
    whole, edges = block_of(100, 5, 9), [0.2, 0.7]
    wanted = [(n, [entry for entry in entries_of(whole) if bisect_right(edges, entry[1]) == n]) for n in range(3)]
    assert [(score_range, entries_of(part)) for score_range, part in cut_block(whole, np.array(edges))] == wanted
