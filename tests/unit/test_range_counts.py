"""Everything that is counted of a range: rows at or above edges and labels, against loops over rows, and its bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from biasspark.arrays import Floats, Ints
from biasspark.corpus.encoding import Encoding
from biasspark.ranking.engine import rank
from biasspark.ranking.kernels.pair_sums import N_CELLS, N_PAIRS, PairSums
from biasspark.ranking.kernels.placements import Profile
from biasspark.ranking.kernels.range_counts import RangeCounts
from tests.harness.ranking_without_spark import encoding_of, flags, frame_of, membership_fields, pack
from tests.oracle.pairs import State

SCORES = (-0.5, 0.0, 0.25, 0.5, 0.5, 0.75, 1.0)
ENCODING = encoding_of(flags("a", "b"), flags("always", nullable=False, name="predicates"), crossed=True)
Row = tuple[float, bool, State, State, bool]


def reach(rows: list[Row], edges: Floats, boundaries: list[float]) -> Ints:
    """Rank in two tasks, cut at the boundaries, and return the rows of each cell at or above each edge."""
    tasks = []
    for half in filter(None, (rows[::2], rows[1::2])):
        scores, labels, a, b, always = zip(*half, strict=True)
        fields = membership_fields(ENCODING, {"a": a, "b": b, "always": always}) | {("label", 0): labels}
        tasks.append([pack(ENCODING, fields, [scores])])
    return rank(frame_of(*tasks), ENCODING, [np.array(boundaries)], [edges]).at_or_above["model 0"]


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
    first, second = (sides[side - 1] for side in ENCODING.pairs[number - ENCODING.first_pair])
    if first is False or second is False:
        return False
    return None if None in (first, second) else True


states = st.sampled_from([True, False, None])
rows_of = st.lists(st.tuples(st.sampled_from(SCORES), st.booleans(), states, states, st.booleans()), min_size=1)


@given(rows_of, st.sets(st.sampled_from((-1.0, 0.0, 0.5, 0.6, 1.0, 2.0)), min_size=1), st.booleans())
def test_every_cell_is_that_of_a_loop_over_rows(rows: list[Row], marks: set[float], cut: bool) -> None:
    edges = np.array(sorted(marks))
    found = reach(rows, edges, [0.25, 0.6] if cut else [])
    for number in range(len(ENCODING.names)):
        assert found[:, number].tolist() == count_rows(rows, number, edges), ENCODING.names[number]


def test_a_score_equal_to_an_edge_reaches_it() -> None:
    rows: list[Row] = [(0.5, True, True, False, False), (np.nextafter(0.5, 0), True, True, False, False)]
    assert reach(rows, np.array([0.5]), [])[1, 1].tolist() == [2, 1]


@pytest.mark.parametrize("n_bins", [0, 1, 2])
def test_labels_are_counted_by_length_bin_for_rows_that_stay(n_bins: int) -> None:
    encoding = Encoding(("m",), ("all",), (flags("a", "b"),), crossed=True, n_length_bins=n_bins)
    bins = [0, 1, 1, n_bins, n_bins] if n_bins else [0] * 5
    a: list[State] = [True, True, False, None, True]
    fields = membership_fields(encoding, {"a": a, "b": [False] * 5}) | {
        ("label", 0): [1, 0, 1, 1, 1],
        ("row_reason", 0): [0, 0, 0, 0, 3],
        ("score_reason", 0): [1, 0, 0, 0, 0],
    }
    if n_bins:
        fields["length_bin", 0] = bins
    labels = rank(frame_of([pack(encoding, fields, [[0.0] * 5])]), encoding, [np.empty(0)]).labels
    expected = np.zeros((3, n_bins + 1, 2), int)
    for row in range(4):  # the last is rejected; the first lacks a score, and counts
        label = fields["label", 0][row]
        expected[0, bins[row], label] += 1
        if a[row]:
            expected[1, bins[row], label] += 1
    assert labels is not None
    assert labels.tolist() == expected.tolist()


@pytest.mark.parametrize("value", [0, 1, 2**31 - 5, 2**62 - 20, 2**63 - 20, 2**64, 2**100, 2**124])
def test_counts_of_some_identities_read_back(value: int) -> None:
    n_rows = np.arange(N_CELLS * 5).reshape(N_CELLS, 5)
    sums = np.array([value + place for place in range(3 * N_PAIRS * 5)], object).reshape(3, N_PAIRS, 5)
    bins = np.arange(N_CELLS * 5 * 2).reshape(N_CELLS, 5, 2)
    counts = RangeCounts(PairSums.of_cells(n_rows, sums), 3, bins, Profile(7, 5, 2, -1.5, 0.1), 7)
    found = RangeCounts.decode(counts.encode(range(1, 4)))
    assert [column.tolist() for column in found.pairs] == [column[:, 1:4].tolist() for column in counts.pairs]
    assert (found.n_rows.tolist(), found.bins.tolist()) == (n_rows[:, 1:4].tolist(), bins[:, 1:4].tolist())
    assert found[1:2] + found[3:] == counts[1:2] + counts[3:]
