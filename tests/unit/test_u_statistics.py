"""AUC and DeLong's variance of every pair of cells, from integers of any size, against all pairs of rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from biasspark.metrics.intervals import delong_part
from biasspark.metrics.u_statistics import u_statistics
from biasspark.tables.schemas import U_STATISTICS
from tests.fixtures.local_corpus import draw_corpus
from tests.oracle.counts import count_corpus, count_pair, counts_of
from tests.oracle.pairs import PAIRS, Sums
from tests.oracle.suite import auc_by_pairs, cut_cells, delong_variance

NO_ROWS = Sums(0, 0, 0, 0, 0)


def overall_of(*pairs: Sums) -> tuple[np.ndarray, np.ndarray]:
    """AUC and variance of whole slices whose two cells have these sums."""
    groups = {
        ("m", str(number), "(overall)"): [NO_ROWS] * 3 + [pair] + [NO_ROWS] * 2 for number, pair in enumerate(pairs)
    }
    statistics = u_statistics(counts_of(groups))
    return statistics.auc[3], statistics.variance[3]


@pytest.mark.parametrize(
    ("n_low", "n_high", "levels"), [(2, 2, 9), (5, 40, 4), (40, 5, 10**6), (60, 60, 2), (30, 30, 1)]
)
def test_auc_and_variance_are_those_of_all_pairs(n_low: int, n_high: int, levels: int) -> None:
    rng = np.random.default_rng(n_low)
    low, high = rng.integers(0, levels, n_low), rng.integers(0, levels, n_high) + 1
    (auc,), (variance,) = overall_of(count_pair(low, high))
    assert auc == auc_by_pairs(low, high) == mannwhitneyu(high, low).statistic / (n_low * n_high)
    assert variance == pytest.approx(delong_variance(low, high), rel=1e-13, abs=1e-17)


def test_the_variance_is_that_of_the_exact_fractions() -> None:
    """To the last bit where a double holds the denominator, 4·n²·m²·(m - 1)."""
    rng = np.random.default_rng(7)
    small = [
        count_pair(rng.integers(0, k, m), rng.integers(0, k, n)) for m, n, k in ((2, 2, 3), (7, 90, 5), (400, 300, 30))
    ]
    m, n, two_u = 10**8 + 7, 10**8 + 9, 10**16 + 1
    large = Sums(m, n, two_u, two_u**2 // m + 10**20, two_u**2 // n + 10**21)
    for pair, variance in zip([*small, large], overall_of(*small, large)[1], strict=True):
        low = delong_part(pair.n_low, pair.n_high, pair.u_doubled, pair.low_squares)
        high = delong_part(pair.n_high, pair.n_low, pair.u_doubled, pair.high_squares)
        if pair is large:
            assert variance == pytest.approx(float(low + high), rel=1e-15, abs=0)
        else:
            assert variance == float(low) + float(high)


def test_the_reason_names_the_empty_cell_the_subgroups_first() -> None:
    score, label, identities = draw_corpus()
    statistics = u_statistics(count_corpus(score, label, identities))
    assert statistics.reason[:, 0].tolist()[3] is None
    for reasons, inside in zip(statistics.reason.T[1:], identities.values(), strict=True):
        empty = [cell for cell, scores in cut_cells(score, label, inside).items() if not len(scores)]
        assert reasons.tolist() == [next((f"no_{cell}s" for cell in empty if cell in pair), None) for pair in PAIRS]
    for lacking, labels in (("negative", [True, True]), ("positive", [False, False]), ("negative", [])):
        overall = u_statistics(count_corpus(np.zeros(len(labels)), labels, {}))
        assert (overall.reason[3, 0], np.isnan(overall.auc[3, 0])) == (f"no_{lacking}s", True)


def test_the_table_has_six_rows_an_identity_and_one_a_slice() -> None:
    score, label, identities = draw_corpus()
    rows = u_statistics(count_corpus(score, label, identities)).table().to_pylist()
    assert len(rows) == 1 + 6 * len(identities)
    assert tuple(rows[0]) == U_STATISTICS.value_columns
    overall, *rows = rows
    assert (overall["identity"], overall["low_cell"], overall["high_cell"]) == ("(overall)", "negative", "positive")
    for row in rows:
        cells = cut_cells(score, label, identities[row["identity"]])
        sums = count_pair(cells[row["low_cell"]], cells[row["high_cell"]])
        assert [row[name] for name in ("n_low", "n_high", "u_doubled", "low_square_sum", "high_square_sum")] == [*sums]
        assert row["crossed"] == (row["identity"] == "common & rare")
        assert (row["auc"] is None) == (row["reason"] is not None) == (0 in sums[:2])
        assert (row["auc_variance"] is None) == (min(sums[:2]) < 2)
