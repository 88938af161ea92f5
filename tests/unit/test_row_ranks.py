"""The placement of every row, and the pairs of every two groups, against loops over all pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from biasspark.attribution.crosses import count_pairs_of_groups
from biasspark.corpus.encoding import Encoding
from biasspark.errors import InputError
from biasspark.ranking.kernels.codec import load
from biasspark.ranking.kernels.group_pairs import count_group_pairs
from biasspark.ranking.row_blocks import BLOCK, Query, RowRanking
from biasspark.ranking.row_ranks import cut_with_ids, place_range
from biasspark.ranking.task_rows import Kind
from tests.fixtures.ranked_rows import (
    DESCRIPTION,
    ENCODING,
    Ranked,
    blocks_of,
    cut_blocks,
    draw_two_models,
    find,
    list_rows,
)
from tests.harness.ranking_without_spark import frame_of, gather_parts, pack
from tests.oracle.attribution import Example
from tests.oracle.counts import count_pair
from tests.oracle.suite import ordered_doubled

BOOK = Encoding(models=("m",), slices=("all",), sources=())
LABELED = st.lists(
    st.tuples(st.sampled_from([-1.5, -0.0, 0.0, 0.25, 0.5, 2.0]), st.booleans(), st.integers(0, 3)), min_size=1
)
GROUPS = {"g": ("g0", "g1", "g2", "g3")}


@given(rows=LABELED, boundaries=st.lists(st.sampled_from([-2.0, 0.0, 0.25, 0.3]), unique=True).map(sorted))
def test_every_row_is_placed_among_all_rows(rows: list[tuple[float, bool, int]], boundaries: list[float]) -> None:
    cuts, (scores, labels, _) = [np.array(boundaries)], zip(*rows, strict=True)
    batch = pack(BOOK, {("label", 0): labels}, [scores])
    batch = batch.append_column("row_id", pa.array([f"row {number}" for number in range(len(rows))]))
    tasks = [batch.slice(start, 2) for start in range(0, len(rows), 2)]
    ranges = gather_parts(tasks, BOOK, lambda held: cut_with_ids(held, cuts))
    tables = [place_range(parts, 6) for parts in ranges.values() if Kind.ROWS in parts]
    placed = {row["row_id"]: row for table in tables for row in table.to_pylist()}
    assert len(placed) == len(rows)
    for number, (score, label, _) in enumerate(rows):
        row = placed[f"row {number}"]
        opposite = [other for other, positive, _ in rows if positive != label]
        assert (row["code"], row["score"]) == (6 + label, score)
        low, high = (opposite, [score]) if label else ([score], opposite)
        assert row["ordered_doubled"] == ordered_doubled(low, high).sum()


def test_rows_of_no_slice_and_rejected_ones_are_left_out() -> None:
    encoding = Encoding(models=("m", "n"), slices=("all", "some"), sources=())
    fields = {("label", 0): [1, 0, 0, 1], ("slice", 1): [0, 0, 1, 0]}
    fields |= {("row_reason", 0): [0, 1, 0, 0], ("score_reason", 1): [0, 0, 0, 1]}
    batch = pack(encoding, fields, [[0.1, 0.2, 0.3, 0.4], [0.5, 0.6, 0.7, 0.8]])
    batch, no_cuts = batch.append_column("row_id", pa.array([0, 1, 2, 3])), [np.empty(0)] * 2
    ranges = gather_parts([batch], encoding, lambda held: cut_with_ids(held, no_cuts))
    placed = {key: place_range(parts, 0)["row_id"].to_pylist() for key, parts in ranges.items()}
    assert placed == {(0, 0, 0): [0, 2, 3], (0, 1, 0): [2], (1, 0, 0): [0, 2], (1, 1, 0): [2]}


CUTS = st.lists(st.floats(-0.1, 1.1), max_size=4, unique=True).map(sorted)


@settings(max_examples=25)
@given(seed=st.integers(0, 99), n_rows=st.integers(1, 60), cuts=st.tuples(CUTS, CUTS), rows_a_task=st.integers(5, 60))
def test_rows_are_ranked_into_blocks(
    seed: int, n_rows: int, cuts: tuple[list[float], list[float]], rows_a_task: int
) -> None:
    """Of the rows that a model can use, each in its cell and with a placement in every slice that it is in."""
    models, batch = draw_two_models(seed, n_rows)
    ranking = RowRanking(ENCODING, [np.array(edges) for edges in cuts], DESCRIPTION)
    tasks = frame_of(*([batch.slice(start, rows_a_task)] for start in range(0, n_rows, rows_a_task)))
    query = Query(lambda model, score_range, block: [(0, 3, (model, len(block.scores)))], lambda _, results: None)
    measured = ranking.place(tasks, [query])
    blocks, chunks = {}, {}
    for row in measured.collect():
        if row["chunk"] == BLOCK:
            blocks[row["model"], row["score_range"]] = list_rows(load(row["data"]))
        elif row["chunk"] == 3:
            chunks[row["model"], row["score_range"]] = load(row["data"])
    expected = {
        (model, score_range): block
        for model, ranked in enumerate(models[:2])
        for score_range, block in (cut_blocks(ranked.rows, cuts[model]) if ranked.rows else {}).items()
    }
    assert blocks == {key: list_rows(block) for key, block in expected.items()}
    assert chunks == {key: (key[0], len(block.scores)) for key, block in expected.items()}


@pytest.mark.parametrize(("limit", "most"), [("MAX_ROWS_A_RANGE", 20), ("MAX_BLOCK_BYTES", 500)])
def test_more_rows_of_a_range_than_a_worker_holds_are_refused(
    monkeypatch: pytest.MonkeyPatch, limit: str, most: int
) -> None:
    monkeypatch.setattr(f"biasspark.ranking.row_blocks.{limit}", most)
    (ranked, *_), batch = draw_two_models(1, 60)
    assert len(ranked.rows) > 20
    with pytest.raises(InputError, match="share one score"):
        RowRanking(ENCODING, [np.empty(0)] * 2, DESCRIPTION).place(frame_of([batch]), []).collect()


@given(rows=LABELED, cut=st.sampled_from([-2.0, 0.0, 0.25, 3.0]))
def test_pairs_of_every_two_groups(rows: list[tuple[float, bool, int]], cut: float) -> None:
    blocks = blocks_of([Ranked([Example(score, label, groups=(group,)) for score, label, group in rows], [cut])])
    found: dict[tuple[str, str], dict[str, Any]] = {
        (row["positive_group"], row["negative_group"]): row for row in find(blocks, count_pairs_of_groups(BOOK, GROUPS))
    }
    assert {high for high, _ in found} == {GROUPS["g"][group] for _, _, group in rows}
    for (high, low), row in found.items():
        positives = [score for score, label, group in rows if label and GROUPS["g"][group] == high]
        negatives = [score for score, label, group in rows if not label and GROUPS["g"][group] == low]
        sums = ("n_negative", "n_positive", "ordered_doubled", "low_square_sum", "high_square_sum")
        assert [row[name] for name in sums] == [*count_pair(negatives, positives)]


def test_squares_of_many_rows_of_one_score_pass_64_bits() -> None:
    positive = np.repeat([False, True], [2**21, 2**20])
    nothing = np.zeros(len(positive), np.int64)
    sums = count_group_pairs(nothing, positive, nothing, 1)
    assert sums.high_squares[0, 0] == 2**20 * 2**42
    assert sums.low_squares[0, 0] == 2**21 * 2**40
