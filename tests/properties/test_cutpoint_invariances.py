"""What must hold of rows at or above edges of scores, and of bins, whatever the corpus; kernels without an engine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from biasspark.arrays import Floats, Ints
from biasspark.columns import FOUR_CELLS
from biasspark.config import divide
from biasspark.corpus.survey import Cutpoints
from biasspark.metrics.thresholds import score_histograms
from biasspark.ranking.counts import Counts
from biasspark.report.report_data import merge_bins
from tests.harness.ranking_without_spark import rank_batches
from tests.properties.test_invariances import ENCODING, Row, all_scores, batch_of, cuts, rows_of


def count(rows: Sequence[Row], edges: Floats, boundaries: Sequence[float] = ()) -> Counts:
    return rank_batches([batch_of(rows)], ENCODING, [boundaries], [edges])


def reached(rows: Sequence[Row], edges: Floats, boundaries: Sequence[float] = ()) -> Ints:
    """Rows at or above each edge, of every cell of every identity; all of them first."""
    return count(rows, edges, boundaries).at_or_above["model 0"]


edges = st.lists(all_scores, min_size=1, max_size=6).map(lambda scores: np.unique(np.array(scores) + 0.0))


@given(rows_of(), edges, cuts())
def test_rows_at_every_edge_are_those_of_a_loop(rows: list[Row], at: Floats, boundaries: list[float]) -> None:
    counts = count(rows, at, boundaries)
    assert np.array_equal(counts.at_or_above["model 0"][:, :, 0], counts.cells)
    for group, number in enumerate(counts.numbers.tolist()):
        for cell, name in enumerate(FOUR_CELLS):
            inside, positive = name.startswith("subgroup"), name.endswith("positive")
            scores = [row.score for row in rows if row.states[number] is inside and row.positive is positive]
            wanted = [len(scores), *(sum(score >= edge for score in scores) for edge in at)]
            assert counts.at_or_above["model 0"][cell, group].tolist() == wanted


@given(rows_of(), edges)
def test_fewer_rows_reach_a_higher_edge(rows: list[Row], at: Floats) -> None:
    """All of them the lowest score, and none an infinite one."""
    lowest = min(row.score for row in rows) + 0.0
    counts = reached(rows, np.unique([lowest, *at[at > lowest], math.inf]))
    assert np.all(np.diff(counts, axis=2) <= 0)
    assert np.array_equal(counts[:, :, 1], counts[:, :, 0])
    assert not counts[:, :, -1].any()


@given(rows_of(), edges, edges)
def test_other_edges_change_no_count(rows: list[Row], at: Floats, others: Floats) -> None:
    more = np.union1d(at, others)
    chosen = [0, *(1 + np.searchsorted(more, at))]
    assert np.array_equal(reached(rows, more)[:, :, chosen], reached(rows, at))


# ---- bins


@given(all_scores, all_scores, st.integers(0, 4), st.integers(1, 400))
def test_equal_parts_ascend_from_one_end_to_the_other(one: float, other: float, steps: int, parts: int) -> None:
    """Also where there are fewer numbers between the ends than parts."""
    low, high = sorted((one, other))
    near = low
    for _ in range(steps):
        near = math.nextafter(near, math.inf)
    for last in (high, near):
        ends = divide(low, last, parts)
        assert (ends[0], ends[-1]) == (low, last)
        assert len(ends) <= parts + 1
        assert len(ends) == 2 if low == last else all(first < second for first, second in pairwise(ends))


CLOSE = st.builds(lambda steps: 4.999999999999999 + steps * math.ulp(5.0), st.integers(0, 3))
"""Scores that hardly differ, none or some of them alike."""


@given(st.one_of(rows_of(st.just(5.0)), rows_of(CLOSE), rows_of(st.floats(0, 1))), st.sampled_from([1, 7, 30]))
def test_bins_add_up_to_the_rows_however_they_are_merged(rows: list[Row], n_bins: int) -> None:
    scores = [row.score for row in rows]
    cutpoints = Cutpoints((), tuple(divide(min(scores), max(scores), n_bins)))
    counts = count(rows, cutpoints.scores)
    bins = {"model 0": (cutpoints.bin_edges, cutpoints.index_of(cutpoints.bin_edges))}
    table = score_histograms(counts, bins, np.zeros(counts.cells.shape[1], bool))
    overall = table.filter(np.equal(table["identity"].to_pylist(), "(overall)"))
    wanted = {cell: sum(row.positive is (cell == "positive") for row in rows) for cell in ("negative", "positive")}
    for n_merged in (1, 2, 5):
        totals = dict.fromkeys(wanted, 0)
        for row in merge_bins(overall, n_merged).to_pylist():
            totals[row["cell"]] += row["n_rows"]
        assert totals == wanted
