"""Counts by bin against loops over all pairs: what is sure, and that the scores' own sums lie between the bounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from biasspark.arrays import Floats
from biasspark.ranking import placements
from biasspark.ranking.bins import bins_of, count_bins, count_cells, count_memberships, profile_bins
from biasspark.ranking.blocks import Block
from biasspark.ranking.combine import combine_ranges
from biasspark.ranking.edge_counts import count_places
from biasspark.ranking.placements import RIGHT, TIED, WRONG, Profile, RangeSums, measure_range
from biasspark.ranking.sorting import CELLS, MEMBERSHIPS, TALLIES
from tests.oracle.pairs import PAIRS, Example, Sums, count_pairs, cut_cells
from tests.ranking_without_spark import codebook_of, flags, membership_fields, pack, six_pairs
from tests.unit.test_placements import Corpus, block_of, random_corpus

CUTS = np.array([0.0, 0.25, 0.5])
ORDERS = (TIED, WRONG, RIGHT)


def bin_of(score: float, cuts: Sequence[float]) -> int:
    """Count the cuts below the score twice, and the one that it is once."""
    return sum(2 * (cut < score) + (cut == score) for cut in cuts)


def order(cell: Sequence[Example], cuts: Floats, shift: float) -> list[Example]:
    """Give rows the numbers of their bins as scores, and move those in open bins."""
    places = [bin_of(example.score, cuts.tolist()) for example in cell]
    return [
        example._replace(score=place + (shift if place % 2 == 0 else 0))
        for example, place in zip(cell, places, strict=True)
    ]


def count_pairs_of_bins(corpus: Corpus, identity: int, cuts: Floats, unordered: int) -> tuple[Sums, ...]:
    """Count all pairs of an identity, with those of open bins in the order that is asked for."""
    shift = {TIED: 0.0, WRONG: -0.25, RIGHT: 0.25}[unordered]
    cells = cut_cells(corpus.known(), identity)
    return tuple(count_pairs(order(cells[low], cuts, 0), order(cells[high], cuts, shift)) for low, high in PAIRS)


def blocks_of(corpus: Corpus, cuts: Floats) -> tuple[list[Block], list[Block]]:
    """Give what tasks count of a corpus: of cells and of memberships."""
    counted = []
    for [block] in corpus.blocks():
        keys = np.repeat(np.repeat(block.keys, block.lengths), block.counts)
        counted.append((keys, np.repeat(block.scores, block.counts)))
    return [count_cells(*counted[0], cuts)], [count_memberships(*counted[1], cuts)]


def measure_bins(corpus: Corpus, cuts: Floats, unordered: int) -> RangeSums:
    return measure_range(*blocks_of(corpus, cuts), corpus.masks, unordered)[0]


@pytest.mark.parametrize("wide", [False, True], ids=["narrow", "wide"])
@pytest.mark.parametrize("levels", [0, 1, 3, 8], ids=lambda levels: f"{levels or 'all'} scores")
@pytest.mark.parametrize("seed", range(8))
def test_sums_of_bins_are_those_of_all_pairs_in_each_order(
    seed: int, levels: int, wide: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if wide:
        monkeypatch.setattr(placements, "NARROW_ROWS", 0)
    corpus = random_corpus(seed, levels)
    cuts = np.unique(np.random.default_rng(seed).choice([example.score for example in corpus.examples], 3))
    cuts = cuts if seed % 2 else np.r_[cuts[0] - 1, cuts + 0.0625]
    for unordered in ORDERS:
        sums = measure_bins(corpus, cuts, unordered)
        for identity in range(len(corpus.masks)):
            assert six_pairs(sums, identity) == count_pairs_of_bins(corpus, identity, cuts, unordered)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), levels=st.integers(0, 40), n_cuts=st.integers(0, 12))
def test_the_sums_of_the_scores_lie_between_the_bounds(seed: int, levels: int, n_cuts: int) -> None:
    corpus = random_corpus(seed, levels)
    cuts = np.unique(np.random.default_rng(seed).normal(1 if levels else 0, 2, n_cuts).round(seed % 3))
    tied, least, most = (measure_bins(corpus, cuts, unordered) for unordered in ORDERS)
    for identity in range(len(corpus.masks)):
        for exact, *of_bins in zip(
            corpus.oracle(identity), *(six_pairs(sums, identity) for sums in (least, tied, most)), strict=True
        ):
            assert all(one[:2] == exact[:2] for one in of_bins)
            for number, low, middle, high in zip(exact[2:], *(one[2:] for one in of_bins), strict=True):
                assert low <= number <= high
                assert low <= middle <= high


def test_points_are_exact() -> None:
    corpus = random_corpus(5, 6)
    cuts = np.unique([example.score for example in corpus.examples])
    found = [measure_bins(corpus, cuts, unordered) for unordered in ORDERS]
    for identity in range(len(corpus.masks)):
        assert {six_pairs(sums, identity) for sums in found} == {corpus.oracle(identity)}


@pytest.mark.parametrize("unordered", ORDERS)
def test_a_bin_of_a_billion_rows(unordered: int) -> None:
    most = 2**30 - 1
    cells = block_of({(0, 0.0): most, (1, 0.0): most - 1})
    memberships = block_of({(4, 0.0): most - 5, (5, 0.0): 7})
    sums, _ = measure_range([cells], [memberships], [0, 0], unordered)
    subgroup, background = (most - 5, 7), (5, most - 8)
    sizes = {"subgroup": subgroup, "background": background}
    for found, (low, high) in zip(six_pairs(sums, 1), PAIRS, strict=True):
        n, m = (sizes[side][label == "positive"] for side, label in (cell.split("_") for cell in (low, high)))
        assert found == Sums(n, m, unordered * n * m, n * (unordered * m) ** 2, m * (unordered * n) ** 2)


def test_ranges_that_meet_at_cuts_change_nothing() -> None:
    corpus, cuts = random_corpus(11, 9, rows=60), np.array([0.125, 0.25, 0.5, 0.625, 0.875])
    whole = [blocks[0] for blocks in blocks_of(corpus, cuts)]
    for unordered in ORDERS:
        ranges = []
        for start, stop in pairwise((-1.0, *bins_of(cuts[[1, 3]], cuts), 99.0)):
            parts = [cut_out(block, start, stop) for block in whole]
            ranges.append(measure_range([parts[0]], [parts[1]], corpus.masks, unordered)[0])
        together, alone = combine_ranges(ranges), measure_bins(corpus, cuts, unordered)
        for identity in range(len(corpus.masks)):
            assert six_pairs(together, identity) == six_pairs(alone, identity)


def cut_out(block: Block, start: float, stop: float) -> Block:
    keys = np.repeat(block.keys, block.lengths)
    inside = (block.scores >= start) & (block.scores < stop)
    distinct, lengths = np.unique(keys[inside], return_counts=True)
    counts = block.counts[inside] if len(block.counts) else block.counts
    return Block(distinct, lengths, block.scores[inside], counts)


def test_bins_of_scores() -> None:
    scores = np.array([-1.0, 0.0, 0.1, 0.25, 0.5, 0.7])
    assert bins_of(scores, CUTS).tolist() == [0, 1, 2, 3, 5, 6]
    assert bins_of(scores, CUTS).tolist() == [bin_of(score, CUTS.tolist()) for score in scores]
    assert bins_of(scores, np.empty(0)).tolist() == [0] * 6


@pytest.mark.parametrize(("n_rows", "n_keys"), [(0, 1), (1, 1), (40, 3), (90, 500)])
def test_counts(n_rows: int, n_keys: int) -> None:
    rng = np.random.default_rng(n_rows)
    keys, scores = rng.integers(0, n_keys, n_rows), rng.normal(0.2, 0.3, n_rows).round(1) + 0.0
    bins = [bin_of(score, CUTS.tolist()) for score in scores]
    wanted = [(*pair, n) for pair, n in sorted(Counter(zip(keys.tolist(), bins, strict=True)).items())]
    for block in (count_cells(keys, scores, CUTS), count_memberships(keys, scores, CUTS)):
        counts = block.full_counts
        found = zip(np.repeat(block.keys, block.lengths).tolist(), block.scores.tolist(), counts.tolist(), strict=True)
        assert list(found) == wanted


def test_a_score_reaches_an_edge_where_its_bin_does() -> None:
    corpus, edges = random_corpus(3, 7, rows=50), CUTS[1:]
    cuts = np.array([0.0, 0.125, 0.25, 0.5, 0.75])
    exact = count_places(*corpus.blocks(), corpus.masks, edges)
    found = count_places(*blocks_of(corpus, cuts), corpus.masks, bins_of(edges, cuts))
    assert found.first == exact.first
    assert found.counts.tolist() == exact.counts.tolist()


@pytest.mark.parametrize(
    ("bins", "expected"),
    [
        ({1: 3, 3: 5}, Profile(8, 2, 5, 0.0, 0.25)),
        ({0: 1, 3: 2}, Profile(3, 2, 2, -np.inf, 0.25)),
        ({2: 2, 5: 2}, Profile(4, 4, 2, 0.0, 0.5)),
        ({4: 1, 6: 1}, Profile(2, 2, 1, 0.25, np.inf)),
    ],
    ids=["points", "one row in an open bin", "two rows in an open bin", "no point"],
)
def test_profile(bins: dict[int, int], expected: Profile) -> None:
    blocks = [block_of({(key, float(place)): rows for place, rows in bins.items()}) for key in (0, 1)]
    doubled = expected._replace(n_rows=2 * expected.n_rows, largest_tie=max(2 * expected.largest_tie, 1))
    assert profile_bins(blocks[:1], CUTS) == expected
    if all(place % 2 for place in bins):
        assert profile_bins(blocks, CUTS) == doubled


def test_a_task_hands_on_one_part_of_each_range_and_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("biasspark.ranking.fields.FLUSH_ROWS", 10)
    codebook = codebook_of(flags("a", nullable=False), models=2)
    rng = np.random.default_rng(1)
    fields = membership_fields(codebook, {"a": (rng.random(300) < 0.3).tolist()}) | {
        ("label", 0): rng.random(300) < 0.5
    }
    whole = pack(codebook, fields, [rng.normal(0.2, 0.4, 300).round(2) + 0.0 for _ in codebook.models])
    batches = [whole.slice(start, 7) for start in range(0, 300, 7)]
    cutting = [CUTS[1:2], CUTS[:0]], [CUTS, CUTS]
    flushed = [part for part in count_bins(batches, codebook, *cutting) if part.kind != TALLIES]
    keys = [(0, 0, 0), (0, 0, 1), (1, 0, 0)]
    assert sorted(part[:4] for part in flushed) == [(*key, kind) for key in keys for kind in (CELLS, MEMBERSHIPS)]
    assert sorted(flushed) == sorted(p for p in count_bins([whole], codebook, *cutting) if p.kind != TALLIES)
