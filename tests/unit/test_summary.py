"""The summary over identities against brute force."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import pmean

from biasspark.metrics.summary import POWER, model_summary, power_mean
from biasspark.metrics.u_statistics import u_statistics
from biasspark.tables.schemas import MODEL_SUMMARY
from tests.fixtures.local_corpus import Scored, draw_corpus
from tests.oracle.counts import Corpus, count_corpora
from tests.oracle.optional_metrics import pinned_auc
from tests.oracle.run_tables import Tables, compare_cells, measure_suite, sum_up
from tests.oracle.suite import PAIRS, cut_cells

AUCS = ("subgroup_auc", "bpsn_auc", "bnsp_auc")
GAPS = ("negative_aeg", "positive_aeg")


def expect(score: np.ndarray, label: np.ndarray, identities: dict[str, np.ndarray]) -> dict[str, Any]:
    def compare_labels(rows: Any) -> dict[str, Any]:
        return compare_cells(np.sort(score[rows & ~label]), np.sort(score[rows & label]))

    tables: Tables = {"bias_metrics": {}, "pinned_auc": {}}
    for name in (name for name in identities if " & " not in name):
        cells = {cell: np.sort(scores) for cell, scores in cut_cells(score, label, identities[name]).items()}
        pairs = {metric: compare_cells(cells[low], cells[high]) for metric, (low, high) in PAIRS.items()}
        tables["bias_metrics"][name,] = measure_suite(pairs)
        known_auc = compare_labels(~np.isnan(identities[name]))["auc"]
        tables["pinned_auc"][name,] = pinned_auc(cells) | {"known_auc": known_auc}
    return sum_up(compare_labels(True), tables)


def cases() -> dict[str, Corpus]:
    """Corpora by the name of the slice as which each is summarized."""
    score, label, identities = draw_corpus()
    halves, one_sided = np.array([1.0, 1.0, 0.0, 0.0]), np.array([1.0, 1, 0, 0, 0, 0, 0, 0])
    lacking = {"no negatives": [True, True], "no positives": [False, False], "no rows": []}
    return {
        "drawn": (score, label, identities | {"common & rare": 1 - identities["common"]}),  # far from all others
        "no identities": (score, label, {}),
        "a zero": ([3.0, 1.0, 2.0, 4.0], [False, True, False, True], {"worst": halves, "best": 1 - halves}),
        "twins": (score, label, dict.fromkeys(("zoe", "amy", "Zoe"), identities["common"])),
        "below": (np.arange(8.0), np.zeros(8, bool), {"below": one_sided, "inner": np.eye(8)[4]}),
        **{name: (np.arange(len(labels)), labels, {"i": np.ones(len(labels))}) for name, labels in lacking.items()},
    }


@pytest.fixture(scope="module")
def rows() -> dict[str, dict[str, Any]]:
    corpora = {("m", name): corpus for name, corpus in cases().items()} | {("n", "all"): draw_corpus(seed=2)}
    table = model_summary(u_statistics(count_corpora(corpora)), 0.95)
    assert tuple(table.column_names) == MODEL_SUMMARY.value_columns
    found = {row["model"] + " " + row["slice"]: row for row in table.to_pylist()}
    assert list(found) == [" ".join(key) for key in corpora]
    return found


@pytest.mark.parametrize(("key", "corpus"), [("m drawn", cases()["drawn"]), ("n all", draw_corpus(seed=2))])
def test_every_aggregate_agrees_with_brute_force(rows: dict[str, dict[str, Any]], key: str, corpus: Scored) -> None:
    row = rows[key]
    for column, value in expect(*corpus).items():
        if isinstance(value, frozenset):
            assert row[column] in value, column
        else:
            assert row[column] == (pytest.approx(value, abs=1e-12) if isinstance(value, float) else value), column
    assert row["auc_reason"] is None


def test_a_slice_without_identities_has_its_overall_auc_and_nothing_else(rows: dict[str, dict[str, Any]]) -> None:
    row = rows["m no identities"]
    assert (row["auc"], row["n_identities_undefined"]) == (rows["m drawn"]["auc"], 0)
    assert {row[name] for name in row if name.startswith((*AUCS, *GAPS, "competition", "pinned"))} == {None}


@pytest.mark.parametrize(
    ("name", "reason"),
    [("no negatives", "no_negatives"), ("no positives", "no_positives"), ("no rows", "no_negatives")],
)
def test_a_slice_that_lacks_a_class_says_so(rows: dict[str, dict[str, Any]], name: str, reason: str) -> None:
    row = rows[f"m {name}"]
    assert (row["auc"], row["auc_low"], row["auc_method"], row["auc_reason"]) == (None, None, "none", reason)
    lacking = ("competition_score", "pinned_auc_equality_difference", "subgroup_auc_min", "subgroup_auc_min_identity")
    assert [row[name] for name in lacking] == [None] * 4
    assert row["n_identities_undefined"] == 1


def test_the_order_of_identities_changes_no_bit(rows: dict[str, dict[str, Any]]) -> None:
    score, label, identities = cases()["drawn"]
    turned = dict(list(identities.items())[::-1])
    (row,) = model_summary(u_statistics(count_corpora({("m", "drawn"): (score, label, turned)})), 0.95).to_pylist()
    assert row == rows["m drawn"]


def test_of_equal_identities_the_first_name_is_the_worst(rows: dict[str, dict[str, Any]]) -> None:
    row = rows["m twins"]
    named = [f"{metric}_min_identity" for metric in AUCS] + [f"{metric}_max_abs_identity" for metric in GAPS]
    assert {row[name] for name in named} == {"Zoe"}


@pytest.mark.parametrize("seed", range(9))
def test_of_two_identities_that_are_all_rows_the_first_name_has_the_largest_gap(seed: int) -> None:
    """Their gaps are opposite, whatever the rounding of either."""
    score, label, identities = draw_corpus(seed)
    halves = {"b": identities["common"], "a": 1 - identities["common"]}
    row = model_summary(u_statistics(count_corpora({("m", "all"): (score, label, halves)})), 0.95).to_pylist()[0]
    assert [row[f"{metric}_max_abs_identity"] for metric in GAPS] == ["a", "a"]


def test_a_gap_counts_by_its_size_and_a_zero_makes_the_mean_zero(rows: dict[str, dict[str, Any]]) -> None:
    below, zero = rows["m below"], rows["m a zero"]
    assert (below["negative_aeg_max_abs"], below["negative_aeg_max_abs_identity"]) == (0.5, "below")
    assert (below["positive_aeg_max_abs"], below["positive_aeg_max_abs_identity"]) == (None, None)
    lowest = (zero["subgroup_auc_min"], zero["subgroup_auc_min_identity"], zero["subgroup_auc_max"])
    assert lowest == (0.0, "worst", 1.0)
    assert zero["subgroup_auc_power_mean"] == 0.0
    assert math.copysign(1, zero["subgroup_auc_min"]) == 1


@given(st.lists(st.floats(2.0**-125, 1), min_size=1, max_size=9))
def test_the_power_mean_is_scipys_and_between_the_least_and_the_mean(values: list[float]) -> None:
    """Down to the least AUC that there can be, of 2^62 rows in either cell."""
    mean = power_mean(np.array(values))
    assert mean == pytest.approx(pmean(values, POWER), rel=1e-12)
    assert min(values) * (1 - 1e-12) <= mean <= np.mean(values) * (1 + 1e-12)
    assert math.isnan(power_mean(np.array([])))
