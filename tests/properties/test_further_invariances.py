"""What must hold of counts at edges, rates, histograms, pinned AUC and the plan for a balance, whatever the corpus."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyspark.sql.functions as F
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from biasspark.arrays import Floats, Ints
from biasspark.columns import FOUR_CELLS
from biasspark.config import Intervals, PinnedAuc, divide
from biasspark.corpus.marks import Marks
from biasspark.metrics.balance import label_balance
from biasspark.metrics.histograms import Bins, score_histograms
from biasspark.metrics.pinned import PINNED_TERMS, pinned_aucs
from biasspark.metrics.statistics import with_auc
from biasspark.metrics.thresholds import At, threshold_rates
from biasspark.ranking.blocks import Block
from biasspark.ranking.edge_counts import add_reached, count_places
from biasspark.ranking.sorting import CELLS, MEMBERSHIPS, TALLIES_RANGE
from biasspark.report.narrowing import merge_bins
from tests.oracle.suite import STATISTICS_SCHEMA, auc_by_pairs, statistics_rows
from tests.properties.test_invariances import CODEBOOK, Row, all_scores, batch_of, cuts, measure, rows_of, tied_scores
from tests.ranking_without_spark import sort_batches

LABELS = "identity STRING, bucket INT, n_negative BIGINT, n_positive BIGINT"
REACHED = "model STRING, slice STRING, identity STRING, crossed BOOLEAN, " + ", ".join(
    f"{cell} ARRAY<BIGINT>" for cell in FOUR_CELLS
)
PLACES_OF_PAIRS = {cell: (place // 2 * 3, place % 2) for place, cell in enumerate(FOUR_CELLS)}
"""Which of the six pairs of an identity tells the size of a cell, and on which side of it."""

kernels = settings(deadline=None, max_examples=60)
on_spark = settings(deadline=None, max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])


def count_reached(rows: Sequence[Row], edges: Floats, boundaries: Sequence[float] = ()) -> Ints:
    """Count rows at or above each edge, of every cell of every identity, as a job does range by range."""
    held: dict[int, dict[int, list[Block]]] = defaultdict(lambda: {CELLS: [], MEMBERSHIPS: []})
    for part in sort_batches([batch_of(rows)], CODEBOOK, [boundaries]):
        if part.score_range != TALLIES_RANGE:
            held[part.score_range][part.kind].append(Block.decode(part.data))
    ranges = [
        count_places(held[number][CELLS], held[number][MEMBERSHIPS], CODEBOOK.base_masks, edges)
        for number in sorted(held)
    ]
    return add_reached(ranges, len(CODEBOOK.names), len(edges))


def edges_of(found: Sequence[float]) -> Floats:
    return np.unique(np.array([edge + 0.0 for edge in found], np.float64))


def state_of(row: Row, identity: int) -> bool | None:
    return row.states[identity]


edges = st.lists(all_scores, min_size=1, max_size=6).map(edges_of)


# ---- rows that reach an edge


@kernels
@given(rows_of(), edges, cuts())
def test_brute_force_at_every_edge_of_every_cell(rows: list[Row], found: Floats, boundaries: list[float]) -> None:
    reached = count_reached(rows, found, boundaries)
    for identity in range(len(CODEBOOK.names)):
        for place, cell in enumerate(FOUR_CELLS):
            inside, positive = cell.startswith("subgroup"), cell.endswith("positive")
            scores = [row.score for row in rows if row.states[identity] is inside and row.positive is positive]
            wanted = [len(scores), *(sum(score >= edge for score in scores) for edge in found)]
            assert reached[place, identity].tolist() == wanted


@kernels
@given(rows_of(), edges, cuts())
def test_cells_are_those_of_the_suite(rows: list[Row], found: Floats, boundaries: list[float]) -> None:
    reached, statistics = count_reached(rows, found, boundaries), measure(rows)
    for identity, name in enumerate(CODEBOOK.names):
        for place, cell in enumerate(FOUR_CELLS):
            pair, side = PLACES_OF_PAIRS[cell]
            assert reached[place, identity, 0] == statistics[name][pair][side]


@kernels
@given(rows_of(), edges)
def test_fewer_rows_reach_a_higher_edge(rows: list[Row], found: Floats) -> None:
    reached = count_reached(rows, found)
    assert np.all(np.diff(reached, axis=2) <= 0)
    assert np.all(reached >= 0)


@kernels
@given(rows_of(), edges)
def test_every_row_reaches_the_lowest_edge_and_none_one_above_all(rows: list[Row], found: Floats) -> None:
    lowest = min(row.score for row in rows) + 0.0
    around = np.unique([lowest, *found[found > lowest], math.inf])
    reached = count_reached(rows, around)
    assert np.array_equal(reached[:, :, 1], reached[:, :, 0])
    assert not reached[:, :, -1].any()


@kernels
@given(rows_of(), edges, st.lists(all_scores, max_size=4))
def test_other_edges_change_no_count(rows: list[Row], found: Floats, others: list[float]) -> None:
    more = np.union1d(found, edges_of(others)) if others else found
    chosen = [0, *(1 + int(place) for place in np.searchsorted(more, found))]
    assert np.array_equal(count_reached(rows, more)[:, :, chosen], count_reached(rows, found))


# ---- rates and histograms


def reached_frame(spark: SparkSession, rows: Sequence[Row], found: Floats) -> Any:
    counts = count_reached(rows, found)
    table = [
        ("m", "all", name, " & " in name, *counts[:, identity].tolist()) for identity, name in enumerate(CODEBOOK.names)
    ]
    return spark.createDataFrame(table, REACHED)


@on_spark
@given(rows=rows_of(tied_scores), thresholds=st.lists(tied_scores, min_size=1, max_size=3))
@pytest.mark.slow
def test_rates_of_a_class_add_up_to_1_and_counts_to_its_cell(
    spark_session: SparkSession, rows: list[Row], thresholds: list[float]
) -> None:
    below = -1e300
    found = edges_of([below, *thresholds])
    at = At(found.tolist(), {"m": list(range(len(found)))})
    sizes = measure(rows)
    rates = threshold_rates(reached_frame(spark_session, rows, found), at, Intervals()).collect()
    assert len(rates) == len(found) * (len(CODEBOOK.names) - 1)
    for row in rates:
        for side, cells in (("", FOUR_CELLS[:2]), ("background_", FOUR_CELLS[2:])):
            n_negative, n_positive = (
                sizes[row.identity][PLACES_OF_PAIRS[cell][0]][PLACES_OF_PAIRS[cell][1]] for cell in cells
            )
            assert row[f"{side}n_true_positive"] + row[f"{side}n_false_negative"] == n_positive
            assert row[f"{side}n_true_negative"] + row[f"{side}n_false_positive"] == n_negative
            for one, other, n in (("tpr", "fnr", n_positive), ("fpr", "tnr", n_negative)):
                parts = [row[f"{side}{rate}"] for rate in (one, other)]
                assert parts == [None, None] if n == 0 else sum(parts) == pytest.approx(1.0, abs=1e-15)
            if row.threshold == below:
                assert row[f"{side}tpr"] == (1.0 if n_positive else None)
                assert row[f"{side}fnr"] == (0.0 if n_positive else None)
                assert row[f"{side}selection_rate"] == (1.0 if n_negative + n_positive else None)
        for rate in ("tpr", "fpr", "tnr", "fnr", "precision", "selection_rate"):
            gap = row[f"{rate}_gap"]
            if gap is not None:
                assert -1 - 1e-12 <= row[f"{rate}_gap_low"] <= gap <= row[f"{rate}_gap_high"] <= 1 + 1e-12


@on_spark
@given(rows=rows_of(st.floats(0, 1)), bins=st.integers(1, 40))
def test_bins_of_a_cell_add_up_to_the_cell(spark_session: SparkSession, rows: list[Row], bins: int) -> None:
    ends = [place / bins for place in range(bins + 1)]
    frame = reached_frame(spark_session, rows, edges_of(ends))
    histograms = score_histograms(frame, {"m": Bins(ends, range(len(ends)))}).collect()
    found: dict[tuple[str, str], int] = defaultdict(int)
    for row in histograms:
        assert row.n_rows > 0
        assert (row.bin_low, row.bin_high) == (ends[row.bin], ends[row.bin + 1])
        found[row.identity, row.cell] += row.n_rows
    wanted = {}
    for name, statistics in measure(rows).items():
        for cell, (pair, side) in PLACES_OF_PAIRS.items():
            if name != "(overall)":
                wanted[name, cell] = statistics[pair][side]
            elif cell.startswith("background"):
                wanted[name, cell.removeprefix("background_")] = statistics[pair][side]
    assert found == {key: n_rows for key, n_rows in wanted.items() if n_rows}


@kernels
@given(st.lists(all_scores, min_size=2, max_size=2), st.integers(0, 4), st.integers(1, 400))
def test_equal_parts_ascend_from_one_end_to_the_other(pair: list[float], steps: int, parts: int) -> None:
    """Also where there are fewer numbers between the ends than parts."""
    low, high = sorted(pair)
    near = low
    for _ in range(steps):
        near = math.nextafter(near, math.inf)
    for last in (high, near):
        ends = divide(low, last, parts)
        assert (ends[0], ends[-1]) == (low, last)
        assert len(ends) <= parts + 1
        assert len(ends) == 2 if low == last else all(one < other for one, other in pairwise(ends))


close = st.builds(lambda score, steps: score + steps * math.ulp(score), st.just(4.999999999999999), st.integers(0, 3))
"""Scores that hardly differ, none or some of them alike."""


@on_spark
@given(rows=st.one_of(rows_of(st.just(5.0)), rows_of(st.just(1.7)), rows_of(close)), bins=st.sampled_from([1, 7, 30]))
def test_bins_add_up_where_scores_hardly_differ(spark_session: SparkSession, rows: list[Row], bins: int) -> None:
    scores = [row.score for row in rows]
    marks = Marks((), divide(min(scores), max(scores), bins))
    frame = reached_frame(spark_session, rows, marks.edges)
    histograms = score_histograms(frame, {"m": Bins(marks.ends, marks.of_ends)}).withColumn("run_date", F.lit(None))
    wanted = {cell: sum(row.positive is (cell == "positive") for row in rows) for cell in ("negative", "positive")}
    for together in (1, 2, 5):
        found = dict.fromkeys(wanted, 0)
        for row in merge_bins(histograms.where("identity = '(overall)'"), together).collect():
            found[row.cell] += row.n_rows
        assert found == wanted


# ---- pinned AUC


members = st.sampled_from([0.0, 1.0, math.nan])
corpora = st.lists(st.tuples(tied_scores, st.booleans(), st.tuples(*[members] * 12)), min_size=1, max_size=40)


@pytest.mark.slow
@on_spark
@given(rows=corpora, include=st.booleans())
def test_pinned_auc_is_a_mean_of_its_terms(
    spark_session: SparkSession, rows: list[tuple[float, bool, tuple[float, ...]]], include: bool
) -> None:
    score, label, states = zip(*rows, strict=True)
    identities = {f"i{place}": column for place, column in enumerate(zip(*states, strict=True))}
    table = spark_session.createDataFrame(statistics_rows(score, label, identities), STATISTICS_SCHEMA)
    pinned = pinned_aucs(with_auc(table), PinnedAuc(include_subgroup_in_background=include)).collect()
    assert {row.identity for row in pinned} == set(identities)
    for row in pinned:
        weights = [row[name.replace("_auc", "_weight")] for name in PINNED_TERMS]
        if row.pinned_auc is None:
            assert weights == [None] * 4
            assert row.reason is not None
            continue
        terms = {row[name]: weight for name, weight in zip(PINNED_TERMS, weights, strict=True) if weight}
        assert row.reason is None
        assert sum(weights) == pytest.approx(1.0, abs=1e-12)
        assert all(weight >= 0 for weight in weights)
        assert None not in terms
        assert min(terms) - 1e-12 <= row.pinned_auc <= max(terms) + 1e-12


@pytest.mark.slow
@on_spark
@given(
    rows=st.lists(st.tuples(tied_scores, st.booleans()), min_size=1, max_size=12),
    copies=st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), min_size=1, max_size=4),
    include=st.booleans(),
)
def test_pinned_auc_is_the_auc_where_subgroup_and_background_are_alike(
    spark_session: SparkSession, rows: list[tuple[float, bool]], copies: list[tuple[int, int]], include: bool
) -> None:
    table = []
    for place, (inside, outside) in enumerate(copies):
        everyone = rows * (inside + outside)
        states = [1.0] * len(rows) * inside + [0.0] * len(rows) * outside
        score, label = zip(*everyone, strict=True)
        table += statistics_rows(score, label, {"alike": states}, (f"m{place}", "all"))
    frame = with_auc(spark_session.createDataFrame(table, STATISTICS_SCHEMA))
    auc = auc_by_pairs(
        [score for score, positive in rows if not positive], [score for score, positive in rows if positive]
    )
    pinned = pinned_aucs(frame, PinnedAuc(include_subgroup_in_background=include)).collect()
    assert len(pinned) == len(copies)
    for row in pinned:
        if math.isnan(auc):
            assert (row.pinned_auc, row.overall_auc) == (None, None)
        else:
            assert row.pinned_auc == pytest.approx(auc, abs=1e-12)
            assert row.overall_auc == pytest.approx(auc, abs=1e-12)


# ---- the plan of a balance


cell_sizes = st.integers(0, 10**9)
cells = st.tuples(cell_sizes, cell_sizes)


@on_spark
@given(st.data())
@pytest.mark.slow
def test_plan_reaches_the_goal_and_one_fewer_would_not(spark_session: SparkSession, data: st.DataObject) -> None:
    """In whole numbers: positives·all rows against all positives·rows."""
    buckets = [(20, 59), (60, 179)]
    counts = data.draw(st.lists(st.tuples(cells, cells, cells), min_size=1, max_size=30))
    outside, short, long = (tuple(map(sum, zip(*column, strict=True))) for column in zip(*counts, strict=True))
    identities = {"(overall)": (outside, short, long)} | {f"i{place}": row for place, row in enumerate(counts)}
    labels = [(name, bucket, *cell) for name, row in identities.items() for bucket, cell in enumerate(row)]
    rows = label_balance(spark_session.createDataFrame(labels, LABELS), buckets).collect()
    assert len(rows) == len(identities) * 3
    added: dict[str, int] = defaultdict(int)
    for row in rows:
        if row.bucket == "(all)":
            continue
        negative, positive = identities["(overall)"][1 + buckets.index((row.length_low, row.length_high))]
        n_all, to_add = negative + positive, row.n_negatives_to_add
        if positive == 0:
            assert to_add is None
            continue
        added[row.identity] += to_add
        assert to_add >= 0
        assert row.n_positive * n_all <= positive * (row.n_rows + to_add)
        assert to_add == 0 or row.n_positive * n_all > positive * (row.n_rows + to_add - 1)
    everywhere = {row.identity: row for row in rows if row.bucket == "(all)"}
    for name, row in everywhere.items():
        assert row.n_rows == sum(map(sum, identities[name]))
        if name in added:
            assert row.n_negatives_to_add == added[name]
