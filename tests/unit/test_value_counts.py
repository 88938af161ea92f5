"""Where bins begin, against a sort of all rows; whatever the batches, and of how many values."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from biasspark.ranking import value_counts
from biasspark.ranking.value_counts import NumberCounts, choose_edges

NUMBERS = st.lists(st.sampled_from([-2.0, -0.0, 0.0, 1 / 3, 5.0, math.nan]) | st.floats(-9, 9), min_size=1, max_size=60)


def count(values: list[float]) -> NumberCounts:
    return NumberCounts.of(np.array(values), np.ones(len(values), np.int64))


@given(values=NUMBERS, n_bins=st.integers(2, 9), cut=st.floats(-9, 9))
def test_bins_begin_at_exact_quantiles(values: list[float], n_bins: int, cut: float) -> None:
    ordered = np.sort(np.array(values) + 0.0)
    wanted = {repr(float(ordered[k * len(ordered) // n_bins])) for k in range(n_bins)}
    counted = count(values)
    edges = choose_edges(counted.values, counted.counts, 0, len(values), n_bins)
    assert [repr(edge) for edge in edges.tolist()] == [
        repr(value) for value in counted.values.tolist() if repr(value) in wanted
    ]
    place = int(np.searchsorted(counted.values, cut))
    n_below = int(counted.counts[:place].sum())
    parts = [
        choose_edges(counted.values[part], counted.counts[part], below, len(values), n_bins)
        for part, below in ((slice(None, place), 0), (slice(place, None), n_below))
    ]
    assert np.array_equal(np.concatenate(parts), edges, equal_nan=True)


@given(values=NUMBERS, cut=st.integers(0, 60))
def test_counts_of_parts_are_those_of_all(values: list[float], cut: int) -> None:
    together, parts = count(values), count(values[:cut]).add(count(values[cut:]))
    np.testing.assert_equal(tuple(parts), tuple(together))
    assert together.is_exact
    expected = Counter(repr(value + 0.0) for value in values)
    assert dict(zip(map(repr, together.values.tolist()), together.counts.tolist(), strict=True)) == expected


def test_of_too_many_values_a_sample_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has as many rows, at even distances."""
    monkeypatch.setattr(value_counts, "MAX_NUMBERS", 160)
    sampled = count([]).add(count([float(n * 7 % 1000) for n in range(1000)]))
    assert not sampled.is_exact
    assert not sampled.add(count([1.0])).is_exact
    assert sampled.counts.sum() == 1000
    assert np.abs(np.diff(sampled.values) - 100).max() <= 1


def test_a_task_sends_no_more_texts_than_are_too_many() -> None:
    batch = pa.record_batch({"value_0": [str(n) for n in range(5000)]})
    (_, _, _, _, texts), _ = value_counts._count_task(iter([batch]), 0, 1)
    assert len(texts) == value_counts.MAX_CATEGORIES + 1
