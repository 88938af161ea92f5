"""Rates at thresholds, their gaps and equality differences, and histograms, against loops."""

from __future__ import annotations

import numpy as np
import pytest

from biasspark.metrics.thresholds import score_histograms, threshold_rates, threshold_summary
from biasspark.tables.schemas import SCORE_HISTOGRAMS, THRESHOLD_RATES, THRESHOLD_SUMMARY
from tests.fixtures.edge_case_corpus import THRESHOLDS, EdgeCases, assert_rows, edge_cases, is_crossed
from tests.oracle import optional_metrics as oracle
from tests.oracle.suite import cut_cells

LEVEL = 0.9


@pytest.fixture(params=["exclude", "background"])
def measured(request: pytest.FixtureRequest) -> EdgeCases:
    return edge_cases(request.param)


def nothing_suppressed(measured: EdgeCases) -> np.ndarray:
    return np.zeros(measured.counts.cells.shape[1], bool)


def test_rates_counts_and_gaps(measured: EdgeCases) -> None:
    table = threshold_rates(measured.counts, measured.thresholds, nothing_suppressed(measured), LEVEL)
    expected = [
        case.key
        | {"identity": identity, "crossed": is_crossed(identity), "threshold": threshold}
        | oracle.threshold_rates(case.score, case.label, inside, threshold, LEVEL)
        for case in measured.cases
        for identity, inside in case.identities.items()
        for threshold in THRESHOLDS
    ]
    assert_rows(table.to_pylist(), expected, THRESHOLD_RATES)


def test_equality_differences(measured: EdgeCases) -> None:
    table = threshold_summary(measured.counts, measured.thresholds, nothing_suppressed(measured))
    expected = [
        case.key | {"threshold": threshold} | oracle.threshold_summary(case.score, case.label, case.singles, threshold)
        for case in measured.cases
        for threshold in THRESHOLDS
    ]
    assert_rows(table.to_pylist(), expected, THRESHOLD_SUMMARY)


def test_bins_of_every_cell(measured: EdgeCases) -> None:
    expected: list[oracle.Row] = []
    for case in measured.cases:
        cells = {("(overall)", "negative"): case.score[~case.label], ("(overall)", "positive"): case.score[case.label]}
        for identity, inside in case.identities.items():
            cells |= {(identity, cell): scores for cell, scores in cut_cells(case.score, case.label, inside).items()}
        for (identity, cell), scores in cells.items():
            key = case.key | {"identity": identity, "cell": cell, "crossed": is_crossed(identity)}
            bins = oracle.histogram(scores, measured.bin_edges[case.model])
            expected += [key | {"bin": index} | row for index, row in bins.items()]
    table = score_histograms(measured.counts, measured.bins, nothing_suppressed(measured))
    assert_rows(table.to_pylist(), expected, SCORE_HISTOGRAMS)


def test_suppressed_groups_have_keys_and_a_reason_alone() -> None:
    measured = edge_cases()
    groups = measured.counts.groups
    suppressed = (groups.slice == "odd") | (groups.identity == "c1")
    plain = threshold_rates(measured.counts, measured.thresholds, nothing_suppressed(measured), LEVEL).to_pylist()
    rates = threshold_rates(measured.counts, measured.thresholds, suppressed, LEVEL).to_pylist()
    for row, known in zip(rates, plain, strict=True):
        if row["slice"] == "odd" or row["identity"] == "c1":
            key = {name: known[name] for name in (*THRESHOLD_RATES.key_columns, "crossed")}
            assert row == dict.fromkeys(known) | key | {"reason": "withheld"}
        else:
            assert row == known
    for row in threshold_summary(measured.counts, measured.thresholds, suppressed).to_pylist():
        assert row["slice"] != "odd" or row["fpr"] is row["fnr"] is row["false_positive_equality_difference"] is None
    histograms = score_histograms(measured.counts, measured.bins, suppressed).to_pylist()
    assert not [row for row in histograms if row["slice"] == "odd" or row["identity"] == "c1"]
