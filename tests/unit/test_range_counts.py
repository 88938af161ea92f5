"""Counts of ranges: labels by length against loops, counts of some identities, and more than the driver holds."""

from __future__ import annotations

import numpy as np
import pytest

from biasspark.corpus.encoding import Encoding
from biasspark.errors import ConfigError
from biasspark.ranking.counts import check_size
from biasspark.ranking.engine import rank
from biasspark.ranking.kernels.pair_sums import N_CELLS, N_PAIRS, PairSums
from biasspark.ranking.kernels.placements import Profile
from biasspark.ranking.kernels.range_counts import RangeCounts
from tests.harness.ranking_without_spark import flags, frame_of, membership_fields, pack
from tests.oracle.pairs import State


@pytest.mark.parametrize("n_bins", [0, 1, 2])
def test_labels_are_counted_by_length_bin_for_rows_that_stay(n_bins: int) -> None:
    encoding = Encoding(("m",), ("all",), (flags("a", "b"),), crossed=True, n_length_bins=n_bins)
    bins = [0, 1, 1, n_bins, n_bins] if n_bins else [0] * 5
    a: list[State] = [True, True, False, None, True]
    fields = membership_fields(encoding, {"a": a, "b": [False] * 5}) | {
        ("label", 0): [1, 0, 1, 1, 1],
        ("row_reason", 0): [0, 0, 0, 0, 3],
        ("score_reason", 0): [1, 0, 0, 0, 0],
    }
    if n_bins:
        fields["length_bin", 0] = bins
    labels = rank(frame_of([pack(encoding, fields, [[0.0] * 5])]), encoding, [np.empty(0)]).labels
    expected = np.zeros((3, n_bins + 1, 2), int)
    for row in range(4):  # the last is rejected; the first lacks a score, and counts
        label = fields["label", 0][row]
        expected[0, bins[row], label] += 1
        if a[row]:
            expected[1, bins[row], label] += 1
    assert labels is not None
    assert labels.tolist() == expected.tolist()


def test_counts_of_some_identities() -> None:
    n_rows = np.arange(N_CELLS * 5).reshape(N_CELLS, 5)
    sums = np.arange(3 * N_PAIRS * 5).astype(object).reshape(3, N_PAIRS, 5)
    bins = np.arange(N_CELLS * 5 * 2).reshape(N_CELLS, 5, 2)
    counts = RangeCounts(PairSums.of_cells(n_rows, sums), 3, bins, Profile(7, 5, 2, -1.5, 0.1), 7)
    some = counts.of_identities(range(1, 4))
    assert [column.tolist() for column in some.pairs] == [column[:, 1:4].tolist() for column in counts.pairs]
    assert (some.n_rows.tolist(), some.bins.tolist()) == (n_rows[:, 1:4].tolist(), bins[:, 1:4].tolist())
    assert some[1:2] + some[3:] == counts[1:2] + counts[3:]


def test_counts_that_the_driver_would_not_hold_are_refused() -> None:
    for fits, exceeds in (((1, 1, 1000, 10_001), (4, 1, 1000, 10_001)), ((5, 20, 20_000, 0), (5, 20, 30_000, 0))):
        check_size(*fits)
        with pytest.raises(ConfigError, match="The driver holds"):
            check_size(*exceeds)
