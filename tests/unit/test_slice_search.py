"""Slices found and judged without Spark: against trying every conjunction, and where there is nothing to find."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import chain, combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from biasspark.attribution import slice_search
from biasspark.attribution.block_sums import SummedValue, Target, sum_blocks
from biasspark.attribution.measured_sets import MeasuredSet
from biasspark.attribution.moments import Moments
from biasspark.attribution.slice_search import BestSlices, cut_feature, make_counter, search_slices
from biasspark.config.attribution_settings import SliceSearch
from biasspark.features import Condition, Feature
from biasspark.ranking import row_blocks
from biasspark.ranking.row_blocks import Blocks, run_searches
from tests.fixtures.ranked_rows import N_ROWS, Ranked, blocks_of, draw_examples
from tests.harness.grown_trees import UNIT, Sample, feature_of, find_slices, judge_slices, search_sample
from tests.oracle.attribution import Example, round_to_units, target_values
from tests.oracle.slices import search_by_force
from tests.oracle.trees import GrowingRow

AGE = Feature("age", "age", True, (0.0, 10.0, 20.0, 30.0, 40.0, 50.0), True)
JOB = Feature("job", "job", False, ("a", "b", "c", "d"), True)


@given(n_train=st.lists(st.integers(0, 50), min_size=60, max_size=60), max_bins=st.integers(2, 16))
@settings(max_examples=200)
def test_intervals_hold_about_equally_many_rows(n_train: list[int], max_bins: int) -> None:
    feature = feature_of("x", 59, numeric=True)
    _, *intervals = cut_feature(feature, np.array(n_train), max_bins)
    assert sorted(chain(*intervals)) == list(range(1, 60))
    assert all(max(bins) - min(bins) + 1 == len(bins) for bins in intervals)
    assert 1 <= len(intervals) <= max_bins
    share = sum(n_train[1:]) / max_bins
    for bins in intervals:
        rows = sum(n_train[place] for place in bins)
        # Between the middles of its first and last bins there is at most one share.
        assert rows <= share + max(n_train[place] for place in bins) or len(bins) == 1


# ---- the best of all conjunctions


@st.composite
def samples(draw: st.DrawFn) -> tuple[Sample, tuple[Feature, ...]]:
    """Few values, so that scores tie, and features that repeat each other, so that slices have the same rows."""
    n_rows, n_features = draw(st.integers(1, 60)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    features = tuple(
        feature_of(f"f{place}", draw(st.integers(1, 6)), draw(st.booleans())) for place in range(n_features)
    )
    bins = np.stack([rng.integers(0, feature.n_bins, n_rows) for feature in features], axis=1)
    if draw(st.booleans()) and n_features > 1:
        bins[:, 0] = np.minimum(bins[:, 1], features[0].n_bins - 1)
    values = rng.integers(0, draw(st.sampled_from([1, 2, 5, 2**40])), n_rows) - 1
    return Sample(bins, values, rng.random(n_rows) < 0.5), features


@settings(max_examples=200)
@given(
    drawn=samples(),
    wanted=st.builds(
        SliceSearch,
        max_predicates=st.integers(1, 3),
        most=st.integers(1, 8),
        min_rows=st.integers(1, 4),
        max_bins=st.integers(2, 4),
    ),
)
def test_pruning_loses_nothing(drawn: tuple[Sample, tuple[Feature, ...]], wanted: SliceSearch) -> None:
    sample, features = drawn
    expected = search_by_force(sample.growing_rows(), features, wanted)
    searched, _ = search_sample(sample, features, wanted)
    assert searched.conditions() == [one.condition for one in expected]
    assert not searched.missed
    found = find_slices(sample, features, wanted)
    assert [one.score for one in found] == [pytest.approx(float(one.score) * UNIT, rel=1e-15) for one in expected]
    assert [(one.n_train, one.n_honest) for one in found] == [(len(one.train), len(one.honest)) for one in expected]


def draw_sample(
    seed: int, n_rows: int, features: Sequence[Feature], lack: Sequence[tuple[Condition, float]] = ()
) -> Sample:
    """Values about 2^30 · 0.4, less what the rows of some conditions lack."""
    rng = np.random.default_rng(seed)
    bins = np.stack([rng.integers(1, feature.n_bins, n_rows) for feature in features], axis=1)
    values = rng.normal(0.4, 0.05, n_rows)
    sample = Sample(bins, np.zeros(n_rows, np.int64), rng.random(n_rows) < 0.5)
    for condition, much in lack:
        values -= much * sample.inside(condition)
    return sample._replace(values=np.rint(values / UNIT).astype(np.int64))


FIVE = tuple(feature_of(name, 4) for name in "vwxyz")
PLANTED: list[Condition] = [{0: frozenset({1}), 1: frozenset({2})}, {2: frozenset({3}), 3: frozenset({4})}]


def test_few_conjunctions_are_counted() -> None:
    sample = draw_sample(1, 1500, FIVE, [(condition, 0.2) for condition in PLANTED])
    searched, asked = search_sample(sample, FIVE, SliceSearch(most=10, min_rows=10))
    assert all(condition in PLANTED for condition in searched.conditions()[:2])
    n_pairs, n_triples = asked
    assert n_pairs == 10 * 4**2
    assert n_triples < 10 * 4**3 / 10


AGED = (feature_of("age", 6, numeric=True), feature_of("hours", 3, numeric=True), feature_of("job", 3))


def test_what_is_joined_to_the_rows_of_another_slice_is_listed_once() -> None:
    sample = draw_sample(43, 6000, AGED, [({0: frozenset({3, 4})}, 0.3)])
    sample.bins[:, 2] = 1 + np.isin(sample.bins[:, 0], (3, 4))
    searched, _ = search_sample(sample, AGED, SliceSearch(most=3, max_predicates=1))
    assert searched.conditions() == [{0: frozenset({3, 4})}]


@given(drawn=samples(), most=st.integers(1, 30))
def test_joined_slices_lack_a_quarter_more_than_what_their_pieces_share(
    drawn: tuple[Sample, tuple[Feature, ...]], most: int
) -> None:
    """Than each conjunction of predicates that no feature's joined intervals are in."""
    sample, features = drawn
    searched, _ = search_sample(sample, features, SliceSearch(most=most, min_rows=1, max_bins=3))
    values, training = sample.values, ~sample.honest
    intervals = [
        cut_feature(feature, np.bincount(sample.bins[training, place], minlength=feature.n_bins), 3)
        for place, feature in enumerate(features)
    ]

    def lacks(condition: Condition) -> Fraction:
        rows = training & sample.inside(condition)
        total, n_rows = int(values[rows].sum()), int(rows.sum())
        return Fraction(int(values[training].sum()), int(training.sum())) - Fraction(total, n_rows)

    for condition in searched.conditions():
        single = {place: bins for place, bins in condition.items() if bins in intervals[place]}
        longest = len(single) - (len(single) == len(condition))
        for size in range(1, longest + 1):
            for part in combinations(single.items(), size):
                assert lacks(condition) * 4 >= lacks(dict(part)) * 5


def test_no_slice_where_no_row_searches_or_estimates() -> None:
    sample = draw_sample(3, 200, FIVE)
    none, every = np.zeros(200, bool), np.ones(200, bool)
    parts = [sample._replace(honest=honest) for honest in (none, every)]
    parts.append(Sample(sample.bins[:0], sample.values[:0], none[:0]))
    for part in parts:
        searched, asked = search_sample(part, FIVE, SliceSearch(min_rows=2))
        assert (searched.conditions(), searched.missed, asked) == ([], False, [])


# ---- more candidates than there is room for


def test_what_was_left_out_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = draw_sample(4, 600, FIVE, [(condition, 0.05) for condition in PLANTED])
    wanted = SliceSearch(most=12, min_rows=5)
    every = search_by_force(sample.growing_rows(), FIVE, wanted)
    n_missing = 0
    for room in (5, 20, 80):
        monkeypatch.setattr(slice_search, "MAX_CANDIDATES", room)
        searched, asked = search_sample(sample, FIVE, wanted)
        n_missing += sum(one.condition not in searched.conditions() for one in every)
        assert max(asked) <= room
        assert searched.missed
    assert n_missing > 0


def test_what_could_not_be_the_best_is_not_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = draw_sample(1, 4000, FIVE, [(PLANTED[0], 0.1)])
    wanted = SliceSearch(most=1, min_rows=20, max_predicates=2)
    _, [n_pairs] = search_sample(sample, FIVE, wanted)
    assert n_pairs > 2
    for room in (n_pairs, n_pairs - 1):
        monkeypatch.setattr(slice_search, "MAX_CANDIDATES", room)
        searched, _ = search_sample(sample, FIVE, wanted)
        assert (searched.conditions(), searched.missed) == ([PLANTED[0]], False)


def test_slices_have_ranks_sizes_means_scores_and_loss_shares() -> None:
    sample = draw_sample(6, 800, FIVE, [(PLANTED[0], 0.1)])
    found: list[Any] = find_slices(sample, FIVE, SliceSearch(min_rows=20))
    assert [one.rank for one in found] == list(range(1, 11))
    values, honest = sample.values * UNIT, sample.honest
    for one in found:
        rows = sample.inside(one.condition)
        train, estimate = values[rows & ~honest], values[rows & honest]
        assert (one.n_train, one.n_honest) == (len(train), len(estimate))
        assert one.mean_train == pytest.approx(train.mean(), rel=1e-12)
        assert one.mean_honest == pytest.approx(estimate.mean(), rel=1e-12)
        assert one.score == pytest.approx(len(train) * (values[~honest].mean() - train.mean()), rel=1e-9)
        assert one.loss_share == pytest.approx(rows.mean(), rel=1e-12)
    assert found[0].confirmed
    assert found[0].condition == PLANTED[0]


def test_what_is_no_worse_is_left_out() -> None:
    def moments(*values: int) -> Moments:
        return Moments(len(values), Fraction(sum(values)), Fraction(sum(value * value for value in values)))

    whole = MeasuredSet(moments(1, 2, 3), moments(1, 2, 3, 4))
    conditions: list[Condition] = [{0: frozenset({place})} for place in range(4)]
    trains = [moments(2), moments(1, 2), moments(1), moments(3)]
    honests = [moments(1, 2), moments(1), Moments(), moments(1, 2)]
    sums = [MeasuredSet(train, honest) for train, honest in zip(trains, honests, strict=True)]
    found = judge_slices(conditions, sums, whole, [AGE])
    assert [(one.rank, one.condition, one.score) for one in found] == [(1, conditions[1], 1.0), (2, conditions[2], 1.0)]
    for one in found:
        assert (one.p_value, one.p_adjusted, one.found, one.loss_share) == (None, None, False, None)
    assert found[1].mean_honest is None


def test_candidates_are_counted_exactly() -> None:
    """Past the 53 bits of floats, of intervals, of several sets of features and of candidates without rows."""
    features = (AGE, JOB, feature_of("z", 2))
    rng = np.random.default_rng(9)
    bins = [rng.integers(0, feature.n_bins, 300) for feature in features]
    each = [rng.integers(-(2**54), 2**54, 300) for _ in range(5)]
    intervals = [frozenset({0}), frozenset({1, 2, 3}), frozenset({4, 5, 6})]
    predicates = [slice_search.Predicate(0, interval) for interval in intervals]
    predicates += [slice_search.Predicate(1, frozenset({number})) for number in range(5)]
    predicates += [slice_search.Predicate(2, frozenset({number})) for number in range(3)]
    bins[1][bins[1] == 3] = 2
    slices = [*product((1, 2), (3, 4, 6)), *product((4,), (8, 9)), (0, 10)]
    [counted] = make_counter(predicates, slices)(np.array(bins), np.array(each))
    for place, conjunction in enumerate(slices):
        rows = np.logical_and.reduce(
            [np.isin(bins[predicates[p].feature], list(predicates[p].bins)) for p in conjunction]
        )
        expected = [sum(column[rows].tolist()) for column in each]
        assert counted[:, place].tolist() == expected
    assert not counted[:, slices.index((1, 6))].any()


# ---- over row blocks

BLOCK_FEATURES = (AGE, JOB, feature_of("size", 3), feature_of("same", 1, numeric=True))
WANTED = SliceSearch(max_predicates=3, most=9, min_rows=4, max_bins=3)


def values_of(rows: Sequence[Example], part: int) -> list[tuple[Example, float]]:
    """The rows of a slice with their attributions; none where it lacks a label."""
    members = [row for row in rows if row.in_slice(part)]
    return list(zip(members, target_values(members, "auc"), strict=False))


def search_rows(rows: Sequence[Example], part: int) -> list[Condition]:
    """Every conjunction tried, of attributions in units: sums of up to 511 of them, and of bounds, have 62 bits."""
    searched = [
        GrowingRow(row.bins, row.honest, round_to_units(value, 62 - 9 - 7)) for row, value in values_of(rows, part)
    ]
    return [one.condition for one in search_by_force(searched, BLOCK_FEATURES, WANTED)]


def search_blocks(
    blocks: Blocks, targets: Sequence[Target], means: Sequence[float], features: Sequence[Feature] = BLOCK_FEATURES
) -> list[BestSlices]:
    values = [SummedValue.of(target, N_ROWS, mean) for target, mean in zip(targets, means, strict=True)]
    return run_searches(sum_blocks(blocks, values, 1), [search_slices(features, value, WANTED) for value in values])


def train_mean(rows: Sequence[Example], part: int) -> float:
    train = [Fraction(value) for row, value in values_of(rows, part) if not row.honest]
    return float(sum(train) / len(train)) if train else 0.0


@pytest.mark.parametrize("room", [row_blocks.MAX_RESULTS, 50])
def test_slices_of_blocks_are_those_of_all_conjunctions(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the searches must take turns."""
    jobs: list[list[int]] = []
    query_blocks = row_blocks.query_blocks

    def record(blocks: Blocks, queries: Sequence[row_blocks.Query]) -> list[row_blocks.Answer]:
        jobs.append([query.size for query in queries])
        return query_blocks(blocks, queries)

    monkeypatch.setattr(row_blocks, "MAX_RESULTS", room)
    monkeypatch.setattr(row_blocks, "query_blocks", record)
    models = [Ranked(draw_examples(seed, 400, BLOCK_FEATURES), [0.4, 0.7]) for seed in (7, 8)]
    targets = [Target(model, part, "auc") for model in (0, 1) for part in (0, 1, 2)]
    means = [train_mean(models[target.model].rows, target.slice) for target in targets]
    blocks = blocks_of(models, 2)
    searched = search_blocks(blocks, targets, means)
    for target, best in zip(targets, searched, strict=True):
        assert (best.missed, best.has_too_few) == (False, False)
        assert best.conditions() == search_rows(models[target.model].rows, target.slice)
        assert (len(best.conditions()) > 2) == (target.slice < 2)  # of the third there are no positives
    assert all(sum(sizes) <= max(room, *sizes) for sizes in jobs)
    assert (len(jobs) > 3) == (room == 50)


def test_too_few_rows_for_any_slice_are_known() -> None:
    kind = feature_of("kind", 60)
    blocks = blocks_of([Ranked(draw_examples(7, 60, [kind]))])
    [best] = search_blocks(blocks, [Target(0, 0, "auc")], [0.4], [kind])
    assert (best.conditions(), best.has_too_few) == ([], True)
