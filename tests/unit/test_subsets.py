"""Subsets drawn in parts, against what simple random sampling promises."""

from __future__ import annotations

import math
from bisect import bisect
from collections import Counter
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare, hypergeom

from biasspark.ranking.kernels import subsets
from biasspark.ranking.kernels.subsets import Subset, draw_runs, stable_number
from tests.harness.ranking_without_spark import draw_positions


def whole(subset: Subset) -> list[int]:
    return [int(place) for place in draw_positions(subset, 0, subset.total)]


def assert_by_chance(found: Counter[int], expected: np.ndarray) -> None:
    """Chi-square at one in a thousand; bins that expect fewer than five are joined with their neighbours."""
    possible = np.flatnonzero(expected)
    assert found.keys() <= set(possible.tolist())
    observed, expected = np.array([found[value] for value in possible.tolist()]), expected[possible]
    _, group = np.unique(np.minimum(np.cumsum(expected) // 5, expected.sum() // 5 - 1), return_inverse=True)
    assert group.max() > 0
    assert chisquare(np.bincount(group, observed), np.bincount(group, expected)).pvalue > 0.001


# ---- the same subset, however it is asked for


@st.composite
def cut_subsets(draw: st.DrawFn) -> tuple[Subset, list[int]]:
    total = draw(st.integers(0, 5000))
    size = draw(st.integers(0, total))
    cuts = draw(st.lists(st.integers(0, total), max_size=8))
    return Subset(total, size, (draw(st.integers(0, 9)),)), sorted([0, *cuts, total])


@given(cut=cut_subsets(), few=st.sampled_from([1, 7, 100]))
def test_any_cut_gives_parts_of_the_same_subset(cut: tuple[Subset, list[int]], few: int) -> None:
    subset, cuts = cut
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subsets, "FEW", few)
        positions = whole(subset)
        parts = [draw_positions(subset, start, stop).tolist() for start, stop in pairwise(cuts)]
    assert [place for part in parts for place in part] == positions
    assert len(positions) == len(set(positions)) == subset.size
    assert positions == sorted(positions)
    assert all(0 <= place < subset.total for place in positions)


@given(cut=cut_subsets(), window=st.tuples(st.integers(0, 5000), st.integers(0, 5000)))
def test_places_that_are_alike_are_counted(cut: tuple[Subset, list[int]], window: tuple[int, int]) -> None:
    """The cuts are where places begin to differ: of each cell as many are counted as are drawn one by one."""
    subset, cuts = cut
    start, stop = sorted(window)
    ends = sorted({start, stop, *(cut for cut in cuts if start < cut < stop)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subsets, "FEW", 5)
        one_by_one = draw_positions(subset, start, stop)
        runs, counts = draw_runs(np.array(ends) - start, subset, start)
    cells = Counter(bisect(ends, place) - 1 for place in one_by_one.tolist())
    found: Counter[int] = Counter()
    for run, count in zip(runs.tolist(), counts.tolist(), strict=True):
        found[run] += count
    assert found == cells
    assert (np.diff(runs) >= 0).all()


def test_a_tie_of_thousand_millions_costs_a_few_steps() -> None:
    subset = Subset(10**9, 4 * 10**8, (1,))
    runs, counts = draw_runs(np.array([0, 3 * 10**8, 10**9]), subset, 0)
    assert counts.sum() == subset.size
    assert len(runs) < 5000


@pytest.mark.parametrize(("start", "stop"), [(0, 0), (50, 50), (100, 200), (-5, 0)])
def test_nowhere(start: int, stop: int) -> None:
    runs, counts = draw_runs(np.arange(stop - start + 1), Subset(100, 60, (3,)), start)
    assert runs.dtype == counts.dtype == np.int64
    assert len(runs) == len(counts) == 0


# ---- each subset equally likely


@pytest.mark.parametrize("few", [1, 2, 2048])
def test_every_subset_is_equally_likely(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """So every place is, and every pair of them."""
    monkeypatch.setattr(subsets, "FEW", few)
    number = {subset: place for place, subset in enumerate(combinations(range(7), 3))}
    drawn = (whole(Subset(7, 3, (11, trial))) for trial in range(50 * len(number)))
    found = Counter(number[a, b, c] for a, b, c in drawn)
    assert_by_chance(found, np.full(len(number), 50.0))


def test_the_rows_in_a_window_are_hypergeometric(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subsets, "FEW", 1)
    sizes = Counter(len(draw_positions(Subset(60, 25, (2, trial)), 13, 31)) for trial in range(2000))
    assert_by_chance(sizes, 2000 * hypergeom(60, 18, 25).pmf(np.arange(19)))


def test_other_keys_give_independent_subsets() -> None:
    keys = [(1, 2, 3), (1, 2, 4), (1, 3, 3), (2, 2, 3), (1, 23), (12, 3)]
    drawn = [whole(Subset(1000, 400, key)) for key in keys]
    assert drawn[0] == whole(Subset(1000, 400, keys[0]))
    overlaps = [len(set(one) & set(other)) for one, other in combinations(drawn, 2)]
    assert np.abs(np.array(overlaps) - 160).max() < 5 * hypergeom(1000, 400, 400).std()


# ---- more places than numpy's hypergeometric numbers reach


@pytest.mark.parametrize(("n_left", "n_right", "size"), [(30, 31, 20), (7, 7, 13), (40, 40, 1)])
def test_halves_of_too_many_places_are_hypergeometric_too(
    n_left: int, n_right: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subsets, "MAX_HALF", 0)
    monkeypatch.setattr(subsets, "TRIES", 5)
    generator = np.random.default_rng(4)
    found = Counter(subsets.draw_left(generator, n_left, n_right, size) for _ in range(1000))
    assert_by_chance(found, 1000 * hypergeom(n_left + n_right, n_left, size).pmf(np.arange(n_left + 1)))


def test_hundred_thousand_million_places() -> None:
    subset, middle = Subset(10**11, 10**9, (8,)), 3 * 10**10
    positions = draw_positions(subset, middle - 10**6, middle + 10**6)
    parts = [draw_positions(subset, *ends) for ends in pairwise([middle - 10**6, middle + 17, middle + 10**6])]
    assert np.concatenate(parts).tolist() == positions.tolist()
    assert abs(len(positions) - 20_000) < 5 * math.sqrt(20_000)
    assert len(draw_positions(Subset(10**10, 10**10, (8,)), 0, 3)) == 3


def test_the_largest_halves_that_numpy_draws() -> None:
    generator = np.random.default_rng(1)
    for n_right in (subsets.MAX_HALF, subsets.MAX_HALF + 1):
        left = subsets.draw_left(generator, subsets.MAX_HALF, n_right, 10**6)
        assert abs(left - 500_000) < 5 * 500


# ---- names in keys


def test_numbers_of_names_are_the_same_everywhere() -> None:
    assert stable_number("male") == 8766684980474722411
    assert len({stable_number(name) for name in ("", "male", "female", "a & b", "muslím")}) == 5
    assert all(0 <= stable_number(name) < 2**64 for name in ("", "male"))
