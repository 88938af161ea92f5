"""The best cut of a feature's bins, against trying every one."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from biasspark.attribution.trees import BinSums, Split, best_split
from biasspark.features import Feature
from tests.harness.grown_trees import feature_of


def cut(
    feature: Feature,
    counts: list[int],
    sums: list[int],
    bins: frozenset[int] | None = None,
    *,
    held: list[int] | None = None,
    least: int = 0,
) -> Split | None:
    node = BinSums(np.array(counts), np.array(sums), np.array(held or counts)[:, np.newaxis])
    return best_split([feature], [node], least, {} if bins is None else {0: bins})


def gain_of(left: set[int], right: set[int], counts: list[int], sums: list[int]) -> Fraction:
    """Say by how much a cut reduces the sum of squares: S_l²/n_l + S_r²/n_r - S²/n."""

    def part(bins: set[int]) -> Fraction:
        return Fraction(sum(sums[place] for place in bins)) ** 2 / sum(counts[place] for place in bins)

    return part(left) + part(right) - part(left | right)


def every_cut(feature: Feature, counts: list[int]) -> list[tuple[set[int], set[int]]]:
    """List all cuts that a feature allows of its bins with rows."""
    full = [place for place, count in enumerate(counts) if count]
    cuts = [(set(left), set(full) - set(left)) for size in range(1, len(full)) for left in combinations(full, size)]
    if not feature.numeric:
        return cuts
    known = [place for place in full if place]
    starts = [set(known[:size]) for size in range(len(known) + 1)]
    return [(left, right) for left, right in cuts if left - {0} in starts]


@st.composite
def histograms(draw: st.DrawFn) -> tuple[Feature, list[int], list[int]]:
    n_values = draw(st.integers(1, 6))
    feature = feature_of("x", n_values, numeric=draw(st.booleans()), nullable=draw(st.booleans()))
    counts = draw(st.lists(st.integers(0, 4), min_size=n_values + 1, max_size=n_values + 1))
    counts[0] *= feature.nullable
    size = draw(st.sampled_from([1, 3, 2**40]))
    return feature, counts, [draw(st.integers(-count * size, count * size)) for count in counts]


@settings(max_examples=400)
@given(histogram=histograms())
def test_no_cut_explains_more(histogram: tuple[Feature, list[int], list[int]]) -> None:
    """Of values, no set of them does: the order of means holds the best of all."""
    feature, counts, sums = histogram
    gains = [gain_of(left, right, counts, sums) for left, right in every_cut(feature, counts)]
    found = cut(feature, counts, sums)
    if not any(gains):
        assert found is None
        return
    assert found is not None
    assert found.gain == float(max(gains))
    assert found.left | found.right == feature.bins
    assert not found.left & found.right
    if feature.numeric:
        for side in (found.left - {0}, found.right - {0}):
            assert not side or max(side) - min(side) == len(side) - 1


@settings(max_examples=300)
@given(histogram=histograms(), rare=st.frozensets(st.integers(1, 6)))
def test_rare_values_are_on_the_side_of_more_values(
    histogram: tuple[Feature, list[int], list[int]], rare: frozenset[int]
) -> None:
    """All on one side, with their rows: of the cuts in the order of the means of the other values the best."""
    feature, counts, sums = histogram
    if feature.numeric:
        return
    feature = replace(feature, rare=frozenset(bin_ for bin_ in rare if bin_ < feature.n_bins))
    known = [bin_ for bin_ in range(feature.n_bins) if counts[bin_] and bin_ not in feature.rare]
    known.sort(key=lambda bin_: (Fraction(sums[bin_], counts[bin_]), bin_))
    rest = {bin_ for bin_ in feature.rare if counts[bin_]}
    gains = [Fraction(0)]
    for size in range(1, len(known)):
        left, right = set(known[:size]), set(known[size:])
        sides = [side for side in (left, right) if len(side) == max(len(left), len(right))]
        gains.append(max(gain_of(side | rest, {*known} - side, counts, sums) for side in sides))
    if len(known) == 1 and rest:
        gains.append(gain_of(set(known), rest, counts, sums))
    found = cut(feature, counts, sums)
    assert (found.gain if found else 0.0) == float(max(gains))
    if found:
        assert feature.rare <= found.left or feature.rare <= found.right
        assert found.left | found.right == feature.bins


def test_equal_gains_tie_however_large_they_are() -> None:
    """Of two cuts that mirror each other the lower wins, though in floats S_l²/n_l + S_r²/n_r is less for it."""
    end, middle = 378109672860628426, 410245917774045633
    found = cut(feature_of("age", 4, numeric=True, nullable=True), [0, 1, 2, 2, 1], [0, end, middle, middle, end])
    assert found is not None
    assert found.left == {1}


def test_only_what_is_allowed_is_chosen() -> None:
    many = feature_of("x", 300, numeric=True)
    sums = [0] + [index**2 for index in range(300)]
    found = cut(many, [0] + [1] * 300, sums, held=[0, 1, 1] + [0] * 298, least=1)
    assert found is not None
    assert found.left == {1}


def test_the_first_of_many_equal_cuts() -> None:
    many = feature_of("x", 300, numeric=True)
    found = cut(many, [0] + [1] * 300, [0, 1, *[0] * 298, 1])
    assert found is not None
    assert found.left == {1}
