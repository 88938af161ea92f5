"""Pinned AUC against brute force over all pairs of weighted rows, and the prevalence experiment over given trials."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from biasspark.config import MinimumCellRows, PinnedSkew, Privacy
from biasspark.metrics.pinned import mean_and_sd, pinned_aucs, pinned_skew
from biasspark.metrics.suppression import require_rows, suppress_statistics
from biasspark.metrics.u_statistics import u_statistics
from biasspark.ranking.kernels.pinned_trials import KeptRows
from biasspark.tables.schemas import PINNED_AUC, PINNED_SKEW
from tests.fixtures.edge_case_corpus import EdgeCases, assert_rows, edge_cases, is_crossed
from tests.oracle import optional_metrics as oracle
from tests.oracle.counts import count_corpora, count_corpus
from tests.oracle.pairs import CELLS
from tests.oracle.suite import PAIRS, auc_by_pairs, cut_cells, ordered_doubled, weighted_auc

SUITE = ("subgroup_auc", "bpsn_auc", "bnsp_auc")
SAMPLED = {"trials", "sampled_mean", "sampled_sd"}


def pinned_rows(measured: EdgeCases, include_subgroup: bool = True, **sampled: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pinned_aucs(u_statistics(measured.counts), include_subgroup, **sampled).to_pylist()
    return rows


@pytest.mark.parametrize(("unannotated", "include_subgroup"), [("exclude", True), ("background", False)])
def test_value_weights_and_terms(unannotated: str, include_subgroup: bool) -> None:
    measured = edge_cases(unannotated)
    expected = []
    for case in measured.cases:
        for identity, inside in case.identities.items():
            known, cells = ~np.isnan(inside), cut_cells(case.score, case.label, inside)
            row = {"identity": identity, "crossed": is_crossed(identity)}
            row |= {"overall_auc": oracle.overall_auc(case.score, case.label)}
            row |= {"known_auc": oracle.overall_auc(case.score[known], case.label[known])}
            row |= {term: oracle.defined(auc_by_pairs(*(cells[cell] for cell in PAIRS[term]))) for term in oracle.TERMS}
            expected.append(case.key | row | oracle.pinned_auc(cells, include_subgroup))
    rows = pinned_rows(measured, include_subgroup)
    assert_rows(rows, expected, PINNED_AUC, SAMPLED)
    assert unannotated == "exclude" or all(row["known_auc"] == row["overall_auc"] for row in rows)  # bit by bit
    assert {"nobody", "big"} <= {row["identity"] for row in rows if row["pinned_auc"] is None}
    assert {(row["trials"], row["sampled_mean"], row["sampled_sd"]) for row in rows} == {(0, None, None)}


def test_trials_are_shown_where_there_is_a_value() -> None:
    measured = edge_cases()
    sampled = np.stack([np.arange(measured.counts.cells.shape[1]) / 1000] * 2)
    rows = pinned_rows(measured, trials=7, sampled=sampled)
    indices = np.flatnonzero(~measured.counts.groups.is_overall)
    for row, index in zip(rows, indices, strict=True):
        shown = None if row["pinned_auc"] is None else index / 1000
        assert (row["trials"], row["sampled_mean"], row["sampled_sd"]) == (7, shown, shown)


# ---- the prevalence experiment

Corpus = tuple[np.ndarray, np.ndarray, np.ndarray]


def make_corpus() -> Corpus:
    """Scores with many ties, labels, and an identity of another class balance, unknown on some rows."""
    rng = np.random.default_rng(41)
    inside = np.where(rng.random(160) < 0.1, np.nan, rng.random(160) < 0.4)
    label = rng.random(160) < np.where(inside == 1, 0.35, 0.55)
    return np.round(rng.normal(label + 0.7 * (inside == 1), 1), 1), label, inside


def rows_of_cell(corpus: Corpus, cell: str) -> np.ndarray:
    _, label, inside = corpus
    return np.flatnonzero((inside == float(cell.startswith("subgroup"))) & (label == cell.endswith("positive")))


def weighted_pinned_auc(corpus: Corpus, weight: np.ndarray, include_subgroup: bool) -> float:
    """AUC of the subgroup and as many rows drawn from all, or from the background, where rows count so much."""
    score, label, inside = corpus
    known = ~np.isnan(inside)
    member, counts = inside[known] == 1, weight[known]
    drawn_from = np.ones(len(member)) if include_subgroup else 1.0 - member
    times_drawn = drawn_from * (counts * member).sum() / (counts * drawn_from).sum()
    return weighted_auc(score[known], label[known], counts * (member + times_drawn))


def drop_rows(corpus: Corpus, cell: str, n_dropped: int, trials: int) -> tuple[KeptRows, list[np.ndarray]]:
    """Draw which rows each trial keeps: 1 or 0 for each row, and twice U of the kept rows of the cell on both sides."""
    score, label, inside = corpus
    rng, two_u, kept = np.random.default_rng(3), [], []
    for _ in range(trials):
        keeps = np.ones(len(score))
        keeps[rng.choice(rows_of_cell(corpus, cell), n_dropped, replace=False)] = 0
        of_cell = score[np.intersect1d(rows_of_cell(corpus, cell), np.flatnonzero(keeps))]
        sides = [score[(inside == side) & (label != cell.endswith("positive"))] for side in (1, 0)]
        pairs = [(side, of_cell) if cell.endswith("positive") else (of_cell, side) for side in sides]
        two_u.append((int(ordered_doubled(*pairs[0]).sum()), int(ordered_doubled(*pairs[1]).sum())))
        kept.append(keeps)
    return (n_dropped, two_u), kept


@pytest.mark.parametrize("include_subgroup", [True, False])
@pytest.mark.parametrize("cell", CELLS)
def test_every_trial_is_measured_on_the_rows_that_it_keeps(cell: str, include_subgroup: bool) -> None:
    """And other identities as if every row of the cell weighed less."""
    corpus, skew = make_corpus(), PinnedSkew(identity="g", cell=cell, fraction=0.3, trials=6)
    score, label, inside = corpus
    rng = np.random.default_rng(5)
    other = np.where(rng.random(len(score)) < 0.1, np.nan, rng.random(len(score)) < np.where(label, 0.6, 0.3))
    rest = ~np.isin(np.arange(len(score)), rows_of_cell(corpus, cell))
    n_rows = int((~rest).sum())
    kept, trials = drop_rows(corpus, cell, n_rows // 3, skew.trials)
    whole, without = (
        count_corpus(score[rows], label[rows], {"h": other[rows], "g": inside[rows]}) for rows in (rest | True, rest)
    )
    table = pinned_skew(u_statistics(whole), {("m", "all"): kept}, skew, include_subgroup, without)
    assert tuple(table.column_names) == PINNED_SKEW.value_columns
    row, of_other = table.to_pylist()
    assert [(one["identity"], one["skewed_identity"]) for one in (row, of_other)] == [("g", "g"), ("h", "g")]
    assert (row["trials"], row["fraction"]) == (6, 0.3)
    shares = np.where(rest, 1.0, 1 - (n_rows // 3) / n_rows)
    for one, state in ((row, inside), (of_other, other)):
        assert (one["n_rows"], one["n_dropped"]) == (n_rows, n_rows // 3)
        for name, weight in {"pinned_auc": np.ones(len(score)), "pinned_auc_skewed": shares}.items():
            expected = weighted_pinned_auc((score, label, state), weight, include_subgroup)
            assert one[name] == pytest.approx(expected, abs=1e-12)
    sampled = {"pinned_auc": [weighted_pinned_auc(corpus, keeps, include_subgroup) for keeps in trials]}
    for name in SUITE:
        cells = [cut_cells(score, label, np.where(keeps == 1, inside, np.nan)) for keeps in trials]
        sampled[name] = [auc_by_pairs(of_trial[PAIRS[name][0]], of_trial[PAIRS[name][1]]) for of_trial in cells]
    for name, values in sampled.items():
        found = row[f"{name}_sampled_mean"], row[f"{name}_sampled_sd"]
        assert found == pytest.approx((np.mean(values), np.std(values, ddof=1)), abs=1e-12)
        if name != "pinned_auc" and cell not in PAIRS[name]:
            assert found == (row[name], 0.0)
    assert of_other["pinned_auc_sampled_mean"] is of_other["bpsn_auc_sampled_sd"] is None
    assert of_other["bpsn_auc"] is not None


def test_a_withheld_skew_shows_nothing_of_what_other_identities_would_have() -> None:
    score, label, inside = make_corpus()
    rare = np.zeros(len(score))
    rare[:6] = 1
    whole = count_corpus(score, label, {"h": inside, "rare": rare})
    statistics = suppress_statistics(u_statistics(whole), Privacy(min_group_rows=10))
    skew = PinnedSkew(identity="rare", cell="subgroup_negative")
    rows = {row["identity"]: row for row in pinned_skew(statistics, {}, skew, without=whole).to_pylist()}
    assert rows["rare"]["pinned_auc"] is None
    assert rows["h"]["pinned_auc"] is not None
    assert rows["h"]["pinned_auc_skewed"] is rows["h"]["n_rows"] is rows["h"]["n_dropped"] is None


def test_a_cell_that_weighs_nothing_is_no_reason() -> None:
    """Without subgroup positives, the pinned AUC is missing since the background's has too few rows."""
    score, label, inside = np.arange(60.0), np.arange(60) % 2 == 1, (np.arange(60) % 4 == 0) * 1.0
    statistics = u_statistics(count_corpus(score, label, {"g": inside}))
    for least, reason in ((2, None), (31, "below_minimum_rows")):
        (row,) = pinned_aucs(require_rows(statistics, MinimumCellRows(min_rows=least))).to_pylist()
        assert row["reason"] == reason


def test_cells_of_which_nothing_is_left() -> None:
    score, label, inside = np.arange(8.0) / 8, np.arange(8) % 2 == 1, np.array([1, 1, 0, 1, 0, 0, 0, 0.0])
    corpora: dict[tuple[str, str], Any] = {
        ("nobody", "all"): ([], [], {"g": []}),
        ("none", "all"): (score, label, {"g": np.where(label, inside, 0.0)}),
        ("one", "all"): (score, label, {"g": inside}),
    }
    kept: dict[tuple[str, str], KeptRows] = {("none", "all"): (0, [(0, 0)] * 3), ("one", "all"): (1, [(0, 0)] * 3)}
    table = pinned_skew(u_statistics(count_corpora(corpora)), kept, PinnedSkew(identity="g", trials=3))
    nobody, none, one = table.to_pylist()
    assert (nobody["n_rows"], nobody["n_dropped"]) == (0, 0)
    assert {value for name, value in nobody.items() if "_auc" in name} == {None}
    assert [(row["n_rows"], row["n_dropped"]) for row in (none, one)] == [(0, 0), (1, 1)]
    for row in (none, one):
        for metric in ("subgroup_auc", "bpsn_auc"):
            assert (row[metric] is None) == (row is none)
            assert row[f"{metric}_sampled_mean"] is row[f"{metric}_sampled_sd"] is None
        assert (row["bnsp_auc_sampled_mean"], row["bnsp_auc_sampled_sd"]) == (row["bnsp_auc"], 0.0)
        assert (row["pinned_auc_sampled_mean"], row["pinned_auc_sampled_sd"]) == (row["pinned_auc_skewed"], 0.0)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9), st.floats(0, 1))
def test_mean_and_deviation_of_trials(values: list[float], expected: float) -> None:
    mean, sd = mean_and_sd(values, expected)
    assert mean == pytest.approx(np.mean(values), abs=1e-12)
    assert math.isnan(sd) if len(values) == 1 else sd == pytest.approx(np.std(values, ddof=1), abs=1e-7)
    assert mean_and_sd([expected] * 3, expected) == (expected, 0.0)
    assert np.isnan(mean_and_sd([], expected)).all()
