"""The wide row of the suite against brute force."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from biasspark.config import Privacy
from biasspark.metrics.pinned import pinned_aucs
from biasspark.metrics.suite import SUITE, bias_metrics
from biasspark.metrics.suppression import suppress_statistics
from biasspark.metrics.thresholds import Thresholds, threshold_rates
from biasspark.metrics.u_statistics import u_statistics
from biasspark.tables.schemas import BIAS_METRICS
from tests.fixtures.local_corpus import draw_corpus
from tests.oracle import intervals as oracle
from tests.oracle.counts import count_corpus, counts_of
from tests.oracle.pairs import CELLS, Sums
from tests.oracle.suite import PAIRS, auc_by_pairs, cut_cells, delong_variance


def test_every_number_agrees_with_brute_force() -> None:
    score, label, identities = draw_corpus()
    table = bias_metrics(u_statistics(count_corpus(score, label, identities)), 0.95).to_pylist()
    rows = {row["identity"]: row for row in table}
    assert list(rows) == list(identities)  # none for the whole slice
    for identity, row in rows.items():
        assert tuple(row) == BIAS_METRICS.value_columns
        cells = cut_cells(score, label, identities[identity])
        sizes = [len(cells[cell]) for cell in CELLS]
        assert [row[f"n_{cell}"] for cell in CELLS] == sizes
        assert row["subgroup_size"] == sum(sizes[:2])
        for side, (n_negative, n_positive) in {"subgroup": sizes[:2], "background": sizes[2:]}.items():
            n_rows = n_negative + n_positive
            assert row[f"{side}_positive_rate"] == (n_positive / n_rows if n_rows else None)
        for metric, (low, high) in PAIRS.items():
            offset = 0.5 if metric.endswith("aeg") else 0.0
            auc, variance = auc_by_pairs(cells[low], cells[high]), delong_variance(cells[low], cells[high])
            assert row[metric] == (None if math.isnan(auc) else auc - offset)
            if row[metric] is not None:
                labels = np.repeat([0, 1], [len(cells[low]), len(cells[high])])
                assert auc == pytest.approx(roc_auc_score(labels, np.r_[cells[low], cells[high]]), abs=1e-12)
            assert (row[f"{metric}_reason"] is None) == (not math.isnan(auc))
            known = None if math.isnan(variance) else variance
            method, ends = oracle.auc_interval(auc, known, len(cells[low]), len(cells[high]), 0.95)
            assert row[f"{metric}_method"] == method
            found = [row[f"{metric}_{end}"] for end in ("low", "high")]
            assert found == ([None] * 2 if ends is None else pytest.approx(np.array(ends) - offset, abs=1e-12))
    assert [name for name, row in rows.items() if row["crossed"]] == ["common & rare"]


def test_counts_of_2_to_the_60_overflow_nothing() -> None:
    """All scores tie, of as many rows in each cell as 62 bits hold together."""
    n = 2**60
    tie = Sums(n, n, n * n, n**3, n**3)
    counts = counts_of(
        {("m", "all", "(overall)"): [tie._replace(n_low=0, n_high=0)] * 3 + [tie] * 3, ("m", "all", "i"): [tie] * 6}
    )
    statistics = suppress_statistics(u_statistics(counts), Privacy(min_group_rows=n + n + 1))
    assert statistics.suppressed.tolist() == [True, True]  # 2^61 rows in the subgroup
    (row,) = bias_metrics(u_statistics(counts), 0.95).to_pylist()
    assert [row[metric.name] for metric in SUITE] == [0.5, 0.5, 0.5, 0.5, 0.0, 0.0]
    assert (row["n_subgroup_negative"], row["subgroup_positive_rate"], row["background_positive_rate"]) == (n, 0.5, 0.5)
    assert row["subgroup_auc_low"] == pytest.approx(0.5, abs=1e-8)
    (pinned,) = pinned_aucs(u_statistics(counts)).to_pylist()
    assert (pinned["pinned_auc"], pinned["subgroup_weight"]) == pytest.approx((0.5, 9 / 16), abs=1e-15)
    at = {"m": np.array([[[0, 0], [n, n // 2]], [[0, 0], [n, n // 4]], [[n, n // 2]] * 2, [[n, n // 2]] * 2], np.int64)}
    rates = threshold_rates(replace(counts, at_or_above=at), Thresholds([0.5], {"m": [0]}), np.zeros(2, bool), 0.95)
    (rate,) = rates.to_pylist()
    assert [rate[name] for name in ("tpr", "fpr", "selection_rate", "precision")] == [0.25, 0.5, 0.375, 1 / 3]
