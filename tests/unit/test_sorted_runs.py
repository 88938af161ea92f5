"""Runs of equal entries, and exact sums over them, against Python's integers."""

from __future__ import annotations

import numpy as np
import pytest

from biasspark.ranking.kernels.sorted_runs import Segments, sort_runs


def cut(values: np.ndarray, lengths: list[int]) -> list[list[int]]:
    ends = np.cumsum(lengths)
    return [values[end - length : end].tolist() for end, length in zip(ends, lengths, strict=True)]


def segments_of(lengths: list[int], *, wide: bool = False) -> Segments:
    ends = np.cumsum(np.array(lengths))
    return Segments(ends - np.array(lengths), int(ends[-1]), wide=wide)


@pytest.mark.parametrize(
    ("ends", "wide"), [((0, 1 << 20), False), ((0, 1 << 20), True), (((1 << 62) - 1000, 1 << 62), True)]
)
@pytest.mark.parametrize("lengths", [[1], [5], [1, 1, 1], [3, 1, 4, 2], [7, 1]])
def test_products_are_exact_also_beyond_64_bits(lengths: list[int], ends: tuple[int, int], wide: bool) -> None:
    first, second = np.random.default_rng(3).integers(*ends, (2, sum(lengths)))
    wanted = [
        sum(a * b for a, b in zip(*run, strict=True))
        for run in zip(cut(first, lengths), cut(second, lengths), strict=True)
    ]
    found = segments_of(lengths, wide=wide).dot(first, second)
    assert found.tolist() == wanted
    assert {type(value) for value in found} == {int}


def test_edges_of_the_limbs() -> None:
    edges = [0, 1, (1 << 31) - 1, 1 << 31, (1 << 31) + 1, (1 << 62) - 1]
    first, second = (np.array(values, np.int64) for values in zip(*((a, b) for a in edges for b in edges), strict=True))
    each = segments_of([1] * len(first), wide=True).dot(first, second)
    assert each.tolist() == [a * b for a in edges for b in edges]


def test_a_wide_sum_over_many_entries() -> None:
    biggest = (1 << 62) - 1
    values = np.full(100_000, biggest)
    assert segments_of([len(values)], wide=True).dot(values, values).tolist() == [100_000 * biggest**2]


@pytest.mark.parametrize("low", [0.0, -3.0])
def test_runs_are_sorted_whatever_their_sign(low: float) -> None:
    rng = np.random.default_rng(8)
    runs = [np.sort(rng.uniform(low, 3.0, size)) for size in (0, 1, 40, 1000)]
    scores = np.concatenate([*runs, [low, 0.0, 5e-324, 1e308]])
    assert sort_runs(scores).tolist() == sorted(scores.tolist())
    assert sort_runs(scores[:0]).tolist() == []
