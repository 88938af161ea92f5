"""What must hold whatever the corpus: of U statistics of any identity, of rows at or above edges, and of bins."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from biasspark.arrays import Floats, Ints
from biasspark.columns import FOUR_CELLS, SCORE_REASONS
from biasspark.config import divide
from biasspark.corpus.encoding import Encoding
from biasspark.corpus.survey import Cutpoints
from biasspark.metrics.thresholds import score_histograms
from biasspark.ranking.counts import Counts
from biasspark.ranking.engine import rank
from biasspark.report.report_data import merge_bins
from tests.harness.ranking_without_spark import (
    category,
    count_by_name,
    encoding_of,
    flags,
    frame_of,
    membership_fields,
    pack,
    pairs_by_name,
    rank_batches,
)
from tests.oracle.pairs import CELLS, PAIRS, Example, State, Sums, cross_all

ENCODING = encoding_of(flags("a", "b"), category("c", "x"), flags("p", nullable=False, name="predicates"), crossed=True)
PLACE = {pair: place for place, pair in enumerate(PAIRS)}
Statistics = dict[str, tuple[Sums, ...]]
"""The six pairs of every identity by its name."""


@dataclass(frozen=True)
class Row:
    """A row of a corpus: in or out of two annotated identities, a category and a predicate, or unknown."""

    score: float
    positive: bool
    a: State = None
    b: State = None
    category: str | None = None
    p: bool = False
    score_reason: int = 0

    @property
    def states(self) -> tuple[State, ...]:
        """State of each identity by its number, pairs included."""
        return (False, *cross_all((self.a, self.b, None if self.category is None else self.category == "x", self.p)))


tied_scores = st.integers(-2, 2).map(lambda level: level / 2)
all_scores = st.one_of(tied_scores, st.floats(allow_nan=False, allow_infinity=False))
states = st.sampled_from([True, False, None])


def rows_of(scores: st.SearchStrategy[float] = all_scores) -> Any:
    annotated = st.builds(Row, scores, st.booleans(), states, states, st.sampled_from(["x", None]), st.booleans())
    return st.lists(annotated, min_size=1, max_size=24)


def cuts() -> st.SearchStrategy[list[float]]:
    return st.lists(all_scores, max_size=5).map(lambda found: sorted({score + 0.0 for score in found}))


def batch_of(rows: Sequence[Row], encoding: Encoding = ENCODING) -> Any:
    columns = {name: [getattr(row, name) for row in rows] for name in "abp"}
    values = {1: [row.category for row in rows]}
    fields = membership_fields(encoding, columns, values) | {("label", 0): [row.positive for row in rows]}
    fields |= {("score_reason", 0): [row.score_reason for row in rows]}
    return pack(encoding, fields, [[row.score for row in rows]], values)


def measure(rows: Sequence[Row], boundaries: Sequence[float] = ()) -> Statistics:
    return pairs_by_name(rank_batches([batch_of(rows)], ENCODING, [boundaries]), ENCODING)


def map_pairs(statistics: Statistics, change: Callable[[Sums], Sums]) -> Statistics:
    return {name: tuple(map(change, pairs)) for name, pairs in statistics.items()}


def exchange(sums: Sums) -> Sums:
    """Give the sums of (high, low) from those of (low, high): each doubled placement d among n rows becomes 2n - d."""
    n, m, u = sums[:3]
    return Sums(
        m, n, 2 * n * m - u, 4 * n * n * m - 4 * n * u + sums.high_squares, 4 * m * m * n - 4 * m * u + sums.low_squares
    )


@given(rows_of(), cuts())
def test_brute_force_whatever_the_pattern_of_unknown_annotations(rows: list[Row], boundaries: list[float]) -> None:
    examples = [Example(row.score, row.positive, row.states) for row in rows]
    assert measure(rows, boundaries) == count_by_name(examples, ENCODING)


@given(rows_of(), cuts(), st.randoms(use_true_random=False))
def test_order_of_the_rows(rows: list[Row], boundaries: list[float], random: Any) -> None:
    shuffled = random.sample(rows, len(rows))
    assert measure(shuffled, boundaries) == measure(rows, boundaries)


@given(rows_of(), cuts(), st.lists(st.integers(0, 24), max_size=4))
def test_boundaries_and_partitions(rows: list[Row], boundaries: list[float], splits: list[int]) -> None:
    edges = [0, *sorted(splits), len(rows)]
    tasks = [rows[start:end] for start, end in pairwise(edges) if start < end]
    counts = rank(frame_of(*([batch_of(task)] for task in tasks)), ENCODING, [np.array(boundaries)])
    assert pairs_by_name(counts, ENCODING) == measure(rows)


@given(rows_of(), st.data())
def test_strictly_increasing_transforms(rows: list[Row], data: st.DataObject) -> None:
    scores = sorted({row.score for row in rows})
    finite = st.floats(allow_nan=False, allow_infinity=False)
    drawn = data.draw(st.lists(finite, min_size=len(scores), max_size=len(scores), unique=True))
    moved = dict(zip(scores, sorted(drawn), strict=True))
    assert measure([replace(row, score=moved[row.score]) for row in rows]) == measure(rows)


@given(rows_of())
def test_decreasing_transforms_exchange_the_cells(rows: list[Row]) -> None:
    def turn(sums: Sums) -> Sums:
        exchanged = exchange(sums)
        return Sums(*sums[:2], exchanged.u_doubled, exchanged.high_squares, exchanged.low_squares)

    assert measure([replace(row, score=-row.score) for row in rows]) == map_pairs(measure(rows), turn)


@given(rows_of(), st.integers(2, 3))
def test_duplication_of_all_rows(rows: list[Row], k: int) -> None:
    def scale(sums: Sums) -> Sums:
        n, m, u, low_squares, high_squares = sums
        return Sums(k * n, k * m, k**2 * u, k**3 * low_squares, k**3 * high_squares)

    assert measure(rows * k) == map_pairs(measure(rows), scale)


@given(rows_of())
def test_label_swap(rows: list[Row]) -> None:
    before, after = measure(rows), measure([replace(row, positive=not row.positive) for row in rows])
    other_label = dict(zip(CELLS, (CELLS[1], CELLS[0], CELLS[3], CELLS[2]), strict=True))
    for name, pairs in after.items():
        for pair, sums in zip(PAIRS, pairs, strict=True):
            low, high = (other_label[cell] for cell in pair)
            is_kept = (low, high) in PLACE  # of an AUC the cells change places
            was = before[name][PLACE[(low, high) if is_kept else (high, low)]]
            assert sums == (was if is_kept else exchange(was))


@given(rows_of(st.sampled_from([0.0, -0.0, 0.0])), st.floats(allow_nan=False, allow_infinity=False))
def test_equal_scores_give_exactly_one_half(rows: list[Row], score: float) -> None:
    same = [replace(row, score=row.score if score == 0 else score) for row in rows]
    for pairs in measure(same, [-1.0, 0.0, 1.0]).values():
        for n, m, u, low_squares, high_squares in pairs:
            assert (u, low_squares, high_squares) == (n * m, n * m * m, n * n * m)


@given(rows_of(), states)
def test_an_identity_of_everybody_nobody_or_all_unknown(rows: list[Row], state: State) -> None:
    statistics = measure([replace(row, a=state) for row in rows])
    overall = statistics["(overall)"][3]
    sizes = [(sums.n_low, sums.n_high) for sums in statistics["a"]]
    if state:
        assert statistics["a"][0] == overall
        assert sizes[3] == (0, 0)
    elif state is False:
        assert statistics["a"][3] == overall
        assert sizes[0] == (0, 0)
    else:
        assert statistics["a"] == (Sums(0, 0, 0, 0, 0),) * 6


@given(rows_of(), rows_of(), st.sampled_from([math.nan, math.inf, -math.inf, 0.0]), st.integers(1, len(SCORE_REASONS)))
def test_rejected_rows_count_for_nothing(kept: list[Row], rejected: list[Row], score: float, reason: int) -> None:
    lost = [replace(row, score=score, score_reason=reason) for row in rejected]
    mixed = [row for pair in zip(kept, lost, strict=False) for row in pair]
    mixed += kept[len(lost) :] + lost[len(kept) :]
    ranked = rank_batches([batch_of(mixed)], ENCODING)
    assert pairs_by_name(ranked, ENCODING) == measure(kept)
    assert ranked.row_counts.rejects == {SCORE_REASONS[reason - 1]: len(rejected)}
    assert ranked.row_counts.n_eligible == {"model 0": len(kept)}


@given(rows_of())
def test_sums_stay_within_their_bounds(rows: list[Row]) -> None:
    for pairs in measure(rows).values():
        for n, m, u, low_squares, high_squares in pairs:
            assert 0 <= u <= 2 * n * m
            # Cauchy-Schwarz from below, the largest placement from above.
            assert u * u <= n * low_squares <= 2 * m * u * n
            assert u * u <= m * high_squares <= 2 * n * u * m


# ---- rows at or above edges of scores, and bins


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
def test_other_edges_change_no_count(rows: list[Row], at: Floats, added: Floats) -> None:
    more = np.union1d(at, added)
    chosen = [0, *(1 + np.searchsorted(more, at))]
    assert np.array_equal(reached(rows, more)[:, :, chosen], reached(rows, at))


@given(all_scores, all_scores, st.integers(0, 4), st.integers(1, 400))
def test_equal_parts_ascend_from_one_end_to_the_other(one: float, other: float, steps: int, parts: int) -> None:
    """Also where there are fewer numbers between the ends than parts."""
    low, high = sorted((one, other))
    near = low
    for _ in range(steps):
        near = math.nextafter(near, sys.float_info.max)
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
