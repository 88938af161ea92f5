"""The placement of every row within a range, and the crosses of groups, against loops over all pairs."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from biasspark.corpus.codebook import Codebook
from biasspark.ranking.crosses import CrossCounts, combine_crosses, count_crosses
from biasspark.ranking.row_blocks import AroundByLabel, cut_rows, place_rows, read_rows

LABELLED = st.lists(
    st.tuples(st.sampled_from([-1.5, -0.0, 0.0, 0.25, 0.5, 2.0]), st.booleans(), st.integers(0, 3)), min_size=1
)


def doubled(score: float, positive: bool, others: list[float]) -> int:
    """Twice the others it is rightly ordered with, plus ties, one pair after another."""
    return sum(1 if other == score else 2 * ((score > other) == positive) for other in others)


def square(values: Iterable[int]) -> int:
    return sum(value**2 for value in values)


def examples_of(rows: list[tuple[float, bool, int]], book: Codebook) -> pa.Table:
    """EXAMPLES of one word: only labels, every row stays and is scored."""
    shift = book.fields["label", 0].shift
    return pa.table(
        {
            "word_0": pa.array([label << shift for _, label, _ in rows], pa.int64()),
            "score_0": pa.array([score for score, _, _ in rows], pa.float64()),
            "in_crowds": pa.array([crowds for _, _, crowds in rows], pa.int64()),
            "row_id": pa.array([f"row {number}" for number in range(len(rows))]),
        }
    )


@settings(deadline=None)
@given(rows=LABELLED, boundaries=st.lists(st.sampled_from([-2.0, 0.0, 0.25, 0.3]), unique=True).map(sorted))
def test_every_row_gets_its_placement_among_everybody_and_in_each_crowd(
    rows: list[tuple[float, bool, int]], boundaries: list[float]
) -> None:
    book = Codebook(models=("m",), slices=("all",), sources=())
    batches = examples_of(rows, book).to_batches(max_chunksize=2)
    parts = list(cut_rows(batches, book, [np.array(boundaries)], ["row_id", "in_crowds"], 2))
    found = {}
    negatives = np.array([part.negatives for part in parts])
    positives = np.array([part.positives for part in parts])
    ranges = np.array([part.score_range for part in parts])
    for score_range in set(ranges.tolist()):
        around = AroundByLabel(
            negatives[ranges < score_range].sum(axis=0),
            positives[ranges > score_range].sum(axis=0),
            negatives.sum(axis=0),
            positives.sum(axis=0),
        )
        for batch in place_rows([part.data for part in parts if part.score_range == score_range], around):
            found |= {row["row_id"]: row for row in batch.to_pylist()}
    assert len(found) == len(rows)
    for number, (score, label, _) in enumerate(rows):
        row = found[f"row {number}"]
        opposite = [(other, crowds) for other, positive, crowds in rows if positive != label]
        assert (row["label"], row["score"], row["n_opposite"]) == (label, score, len(opposite))
        assert row["ordered_doubled"] == doubled(score, label, [other for other, _ in opposite])
        assert row["ordered_in_crowds"] == [
            doubled(score, label, [other for other, crowds in opposite if crowds >> crowd & 1]) for crowd in range(2)
        ]


def test_rows_of_no_slice_and_rejected_ones_are_left_out() -> None:
    book = Codebook(models=("m", "n"), slices=("all", "some"), sources=())
    label, reason, some = (book.fields[what, n].shift for what, n in (("label", 0), ("row_reason", 0), ("slice", 1)))
    unscored = book.fields["score_reason", 1].shift
    words = [1 << label, 1 << reason, 1 << some, (1 << label) | (1 << unscored)]
    table = pa.table({"word_0": words, "score_0": [0.1, 0.2, 0.3, 0.4], "score_1": [0.5, 0.6, 0.7, 0.8]})
    table = table.append_column("row", pa.array([0, 1, 2, 3]))
    parts = list(cut_rows(table.to_batches(), book, [np.empty(0), np.empty(0)], ["row"]))
    found = {(part.model, part.slice): read_rows([part.data]).column("row").to_pylist() for part in parts}
    assert found == {(0, 0): [0, 2, 3], (0, 1): [2], (1, 0): [0, 2], (1, 1): [2]}
    assert [(part.negatives, part.positives) for part in parts] == [
        ([1], [2]),
        ([1], [0]),
        ([1], [1]),
        ([1], [0]),
    ]


@settings(deadline=None)
@given(rows=LABELLED, cut=st.sampled_from([-2.0, 0.0, 0.25, 3.0]))
def test_crosses_count_the_pairs_of_every_two_groups(rows: list[tuple[float, bool, int]], cut: float) -> None:
    parts = [sorted(row for row in rows if (row[0] < cut) == low) for low in (True, False)]
    counts = [
        count_crosses(*(np.array(column) for column in zip(*part, strict=True)), n_groups=4) for part in parts if part
    ]
    counts = [CrossCounts.decode(one.encode(), 4) for one in counts]
    found = combine_crosses(counts)
    for high in range(4):
        own = [score for score, label, group in rows if label and group == high]
        assert found.n_positive[high] == len(own)
        for low in range(4):
            others = [score for score, label, group in rows if not label and group == low]
            assert found.n_negative[low] == len(others)
            placed = [doubled(score, True, others) for score in own]
            assert (found.ordered_doubled[high, low], found.high_square_sum[high, low]) == (sum(placed), square(placed))
            assert found.low_square_sum[high, low] == square(doubled(score, False, own) for score in others)


def test_squares_of_many_rows_of_one_score_pass_64_bits() -> None:
    n = 3 * 2**20
    positive = np.arange(n) % 3 == 0
    found = count_crosses(np.zeros(n), positive, np.zeros(n, np.int64), 1)
    assert found.high_square_sum[0, 0] == 2**20 * 2**42
    assert found.low_square_sum[0, 0] == 2**21 * 2**40
    assert CrossCounts.decode(found.encode(), 1) == found


def test_crosses_pass_64_bits() -> None:
    size = 3 * 10**9
    half = CrossCounts(np.array([size]), np.array([size]), *[np.array([[0]])] * 3)
    total = combine_crosses([half, half])
    assert total.ordered_doubled[0, 0] == 2 * size**2 > 2**63
    assert (total.n_positive[0], total.n_negative[0]) == (2 * size, 2 * size)
    assert total.low_square_sum[0, 0] == total.high_square_sum[0, 0] == 4 * size**3


@pytest.mark.parametrize("label", [False, True])
def test_a_range_of_one_label_is_placed_by_what_surrounds_it(label: bool) -> None:
    book = Codebook(models=("m",), slices=("all",), sources=())
    (part,) = cut_rows(examples_of([(0.5, label, 0)] * 3, book).to_batches(), book, [np.empty(0)], ["row_id"])
    around = AroundByLabel(*(np.array([size]) for size in (5, 7, 11, 13)))
    (batch,) = place_rows([part.data], around)
    assert batch.column("ordered_doubled").to_pylist() == [10 if label else 14] * 3
    assert batch.column("n_opposite").to_pylist() == [11 if label else 13] * 3
