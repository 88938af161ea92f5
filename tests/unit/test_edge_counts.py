"""Rows of every cell at and above edges, against a loop over rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from biasspark.arrays import Floats, Ints
from biasspark.corpus.codebook import Codebook
from biasspark.ranking.blocks import Block
from biasspark.ranking.edge_counts import add_reached, count_places, decode_places, encode_places
from biasspark.ranking.sorting import BALANCE_RANGE, CELLS, MEMBERSHIPS
from tests.oracle.pairs import State
from tests.ranking_without_spark import codebook_of, flags, membership_fields, pack, sort_batches

SCORES = (-0.5, 0.0, 0.25, 0.5, 0.5, 0.75, 1.0)
CODEBOOK = codebook_of(flags("a", "b"), flags("always", nullable=False, name="predicates"), crossed=True)
Row = tuple[float, bool, State, State, bool]


def reach(rows: list[Row], edges: Floats, boundaries: list[float]) -> Ints:
    """Count by the kernels, cut at the boundaries, in two tasks."""
    held: dict[int, tuple[list[Block], list[Block]]] = {}
    for half in (rows[::2], rows[1::2]):
        if not half:
            continue
        scores, labels, a, b, always = zip(*half, strict=True)
        fields = membership_fields(CODEBOOK, {"a": a, "b": b, "always": always}) | {("label", 0): labels}
        for part in sort_batches([pack(CODEBOOK, fields, [scores])], CODEBOOK, [boundaries]):
            if part.kind in (CELLS, MEMBERSHIPS):
                held.setdefault(part.score_range, ([], []))[part.kind].append(Block.decode(part.data))
    everyone = range(len(CODEBOOK.names))
    places = [count_places(*blocks, CODEBOOK.base_masks, edges) for blocks in held.values()]
    there_and_back = [decode_places(encode_places(place, everyone)) for place in places]
    return add_reached(there_and_back, len(everyone), len(edges))


def count_rows(rows: list[Row], number: int, edges: Floats) -> list[list[int]]:
    """Count the four cells of an identity by a loop: all rows, then those at or above each edge."""
    cells = []
    for member, positive in ((True, False), (True, True), (False, False), (False, True)):
        scores = [row[0] for row in rows if state_of(row, number) is member and row[1] is positive]
        cells.append([len(scores), *(sum(score >= edge for score in scores) for edge in edges)])
    return cells


def state_of(row: Row, number: int) -> State:
    """Tell whether a row is in an identity; a crossed pair is out where one side is, else unknown where one is."""
    _, _, a, b, always = row
    if a is None and b is None:  # nothing is known of the columns
        sides: list[State] = [None, None, always]
    else:
        sides = [a, b, always]
    if number == 0:
        return False
    if number <= len(sides):
        return sides[number - 1]
    first, second = (sides[side - 1] for side in CODEBOOK.pairs[number - CODEBOOK.first_pair])
    if first is False or second is False:
        return False
    return None if None in (first, second) else True


states = st.sampled_from([True, False, None])
rows_of = st.lists(st.tuples(st.sampled_from(SCORES), st.booleans(), states, states, st.booleans()), min_size=1)


@given(rows_of, st.sets(st.sampled_from((-1.0, 0.0, 0.5, 0.6, 1.0, 2.0)), min_size=1), st.booleans())
@settings(max_examples=60, deadline=None)
def test_every_cell_is_that_of_a_loop_over_rows(rows: list[Row], marks: set[float], cut: bool) -> None:
    edges = np.array(sorted(marks))
    found = reach(rows, edges, [0.25, 0.6] if cut else [])
    for number in range(len(CODEBOOK.names)):
        assert found[:, number].tolist() == count_rows(rows, number, edges), CODEBOOK.names[number]


def test_a_score_equal_to_an_edge_reaches_it() -> None:
    rows: list[Row] = [(0.5, True, True, False, False), (np.nextafter(0.5, 0), True, True, False, False)]
    assert reach(rows, np.array([0.5]), [])[1, 1].tolist() == [2, 1]


@pytest.mark.parametrize("n_buckets", [0, 1, 2])
def test_labels_are_counted_by_bucket_for_rows_that_stay(n_buckets: int) -> None:
    codebook = Codebook(("m",), ("all",), (flags("a", "b"),), crossed=True, n_buckets=n_buckets)
    buckets = [0, 1, 1, n_buckets, n_buckets] if n_buckets else [0] * 5
    a: list[State] = [True, True, False, None, True]
    fields = membership_fields(codebook, {"a": a, "b": [False] * 5}) | {
        ("label", 0): [1, 0, 1, 1, 1],
        ("row_reason", 0): [0, 0, 0, 0, 3],
        ("score_reason", 0): [1, 0, 0, 0, 0],
    }
    if n_buckets:
        fields["bucket", 0] = buckets
    parts = sort_batches([pack(codebook, fields, [[0.0] * 5])], codebook)
    (part,) = (part for part in parts if part.score_range == BALANCE_RANGE)
    counts = np.frombuffer(part.data, np.int64).reshape(3, n_buckets + 1, 2)
    expected = np.zeros_like(counts)
    for row in range(4):  # the last is rejected; the first lacks a score, and counts
        label = fields["label", 0][row]
        expected[0, buckets[row], label] += 1
        if a[row]:
            expected[1, buckets[row], label] += 1
    assert counts.tolist() == expected.tolist()
