"""Sorted blocks, against a count of every (range, key, score)."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from biasspark.ranking.kernels.blocks import Block, merge_cells, sort_cells, sort_memberships
from biasspark.ranking.kernels.codec import dump

NO_CUT = np.empty(0)


def random_rows(seed: int, rows: int = 200) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Keys, scores with few or no ties, and boundaries some of which are scores and some lie outside of them."""
    rng = np.random.default_rng(seed)
    scores = rng.choice([rng.integers(-3, 4, rows) / 2, rng.normal(size=rows)])
    boundaries = np.unique(np.r_[rng.choice(scores, 3), rng.normal(size=seed % 4), -99, 99][: seed % 8])
    return rng.integers(0, 7, rows), scores, boundaries


def count_blocks(blocks: Iterator[tuple[int, Block]]) -> Counter[tuple[int, int, float]]:
    found: Counter[tuple[int, int, float]] = Counter()
    for score_range, block in blocks:
        for key, scores, counts in block.cells():
            for score, count in zip(scores.tolist(), counts.tolist(), strict=True):
                found[score_range, key, score] += count
    return found


@pytest.mark.parametrize("seed", range(12))
def test_every_row_is_in_its_range_under_its_key(seed: int) -> None:
    keys, scores, boundaries = random_rows(seed)
    edges = boundaries.tolist()
    wanted = Counter(
        (bisect_right(edges, score), key, score) for key, score in zip(keys.tolist(), scores.tolist(), strict=True)
    )
    assert count_blocks(sort_cells(keys, scores, boundaries)) == wanted


@pytest.mark.parametrize("seed", range(12))
def test_both_ways_of_sorting_make_the_same_bytes(seed: int) -> None:
    rows = random_rows(seed)
    by_key, at_once = (
        [(place, dump(block)) for place, block in sort(*rows)] for sort in (sort_cells, sort_memberships)
    )
    assert by_key == at_once


def test_no_rows_make_no_block() -> None:
    nothing = np.empty(0, np.int64), np.empty(0), np.array([0.5])
    assert [*sort_cells(*nothing), *sort_memberships(*nothing)] == []


def test_more_ranges_times_keys_than_sixteen_bits() -> None:
    rng = np.random.default_rng(5)
    keys, scores = rng.integers(0, 3000, 5000) << 40, rng.integers(0, 50, 5000).astype(float)
    boundaries = np.arange(0.5, 49)
    assert 3000 * len(boundaries) > 1 << 16
    wanted = Counter((int(score), key, score) for key, score in zip(keys.tolist(), scores.tolist(), strict=True))
    assert count_blocks(sort_memberships(keys, scores, boundaries)) == wanted


def test_a_block_costs_eight_bytes_a_score_and_a_count_as_many_as_it_needs() -> None:
    for largest, width in ((1, 0), (2, 1), (300, 2), (70_000, 4)):
        scores = np.r_[np.arange(1000.0), np.zeros(largest - 1)]
        [(_, block)] = sort_cells(np.zeros(len(scores), np.int64), scores, NO_CUT)
        assert 0 < len(dump(block)) - 8 * 1000 - 1000 * width < 350


@pytest.mark.parametrize("seed", range(6))
def test_merged_parts_are_the_whole(seed: int) -> None:
    keys, scores, _ = random_rows(seed)
    parts = np.array_split(np.random.default_rng(seed).permutation(len(keys)), 5)
    merged = merge_cells([block for part in parts for _, block in sort_cells(keys[part], scores[part], NO_CUT)])
    for key, (values, counts) in merged.items():
        wanted = Counter(scores[keys == key].tolist())
        assert values.tolist() == sorted(wanted)
        assert counts.tolist() == [wanted[value] for value in sorted(wanted)]
    assert sorted(merged) == np.unique(keys).tolist()
