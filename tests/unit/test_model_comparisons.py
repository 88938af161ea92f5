"""The table of two models on the same rows, from the products of their placements, against all pairs of rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import false_discovery_control

from biasspark.columns import CELL_PAIRS
from biasspark.comparison.differences import PairedMetric, delong_aucs
from biasspark.comparison.model_comparisons import (
    PAIRED_DELONG,
    CellPair,
    Scope,
    model_comparisons,
    name_models,
    scope_warnings,
    unclustered_warnings,
)
from biasspark.config import Compare, parse_config
from biasspark.ranking.kernels.paired_products import Products
from biasspark.tables.schemas import MODEL_COMPARISONS
from biasspark.workflows.compare import IDENTITIES_AT_ONCE, plan_comparison
from tests.fixtures.score_corpus import draw_corpus
from tests.harness.least_configuration import changed
from tests.oracle.differences import Cell, compare_models
from tests.oracle.suite import PAIRS, cut_cells, ordered_doubled

NUMBERS = ("n_low", "n_high", "value", "baseline_value", "difference", "difference_low", "difference_high", "p_value")


def all_cells() -> dict[CellPair, tuple[Cell, Cell]]:
    """The cells of every identity of two slices; the models are alike on one, and the other has few rows."""
    cells: dict[CellPair, tuple[Cell, Cell]] = {}
    for part, rows in (("all", 400), ("few", 60)):
        score, label, identities = draw_corpus(rows=rows)
        better = np.round(
            score + 0.6 * label - 0.5 * (identities["common"] == 1) + np.random.default_rng(1).normal(0, 0.3, rows), 1
        )
        for name, inside in {"(overall)": np.zeros(rows), **identities}.items():
            new, old = (cut_cells(values, label, inside) for values in (better, score))
            for low, high in [("negative", "positive")] if name == "(overall)" else CELL_PAIRS:
                names = [cell if name != "(overall)" else f"background_{cell}" for cell in (low, high)]
                pair = CellPair(part, name, " & " in name, low, high)
                cells[pair] = (new[names[0]], old[names[0]]), (new[names[1]], old[names[1]])
    return cells


def pair_aucs(pairs: dict[CellPair, tuple[Cell, Cell]]) -> dict[CellPair, PairedMetric]:
    """Return the AUCs of each pair, from the sums of either cell among the other as the ranking gives them."""

    def products(rows: Cell, among: Cell, sign: int) -> Products:
        x, y = (ordered_doubled(sign * b, sign * a).sum(axis=0) for a, b in zip(rows, among, strict=True))
        return Products(*map(int, (len(x), x.sum(), y.sum(), x @ x, y @ y, x @ y)))

    return {pair: delong_aucs(products(low, high, -1), products(high, low, 1)) for pair, (low, high) in pairs.items()}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    compared = name_models(pair_aucs(all_cells()), ("new", "old"), 0.95, PAIRED_DELONG)
    found = model_comparisons(compared, 0.95)
    assert tuple(found.column_names) == MODEL_COMPARISONS.value_columns
    table: pd.DataFrame = found.to_pandas()
    return table


def test_every_number_is_that_of_all_pairs(table: pd.DataFrame) -> None:
    by_key: Any = table.set_index(["slice", "identity", "metric"])
    metrics = {cells: name for name, cells in PAIRS.items()} | {("negative", "positive"): "auc"}
    assert len(by_key) == len(all_cells())
    n_unknown_signs = 0
    for pair, (low, high) in all_cells().items():
        metric = metrics[pair.low_cell, pair.high_cell]
        row, expected = by_key.loc[(pair.slice, pair.identity, metric)], compare_models(metric, low, high)
        for name in NUMBERS:
            assert row[name] == pytest.approx(expected.get(name, np.nan), abs=1e-12, nan_ok=True), (pair, name)
        n_unknown_signs += expected.get("n_signs", 1) > 1
    assert n_unknown_signs


def test_verdicts_follow_from_p_values_adjusted_slice_by_slice(table: pd.DataFrame) -> None:
    assert set(table["crossed"]) == {True, False}
    for _, family in table[table["p_value"].notna()].groupby(["slice", "crossed"]):
        expected = false_discovery_control(family["p_value"].to_numpy())
        assert family["p_adjusted"].to_numpy() == pytest.approx(expected, abs=1e-12)
    gain = table["difference"].where(~table["metric"].str.endswith("aeg"), -table["difference"])
    verdict = np.where(table["p_adjusted"] < 0.05, np.where(gain > 0, "better", "worse"), "no_evidence")
    assert table["verdict"].tolist() == np.where(table["p_value"].isna(), "insufficient_data", verdict).tolist()
    assert set(table["verdict"]) == {"better", "worse", "no_evidence", "insufficient_data"}
    assert set(table["method"]) == {"paired_delong"}
    assert table["n_groups"].isna().all()


def test_models_are_judged_apart() -> None:
    """Each model has its own tests with the baseline, however many are compared."""
    pairs = {pair: cells for pair, cells in all_cells().items() if pair.slice == "few"}
    aucs = pair_aucs(pairs)
    both = [row for name in ("a", "b") for row in name_models(aucs, (name, "old"), 0.95, PAIRED_DELONG)]
    alone = model_comparisons(both[: len(pairs)], 0.95).to_pylist()
    rows = model_comparisons(both, 0.95).to_pylist()
    assert [row | {"model": "a"} for row in rows] == alone * 2


COMPARE = Compare(baseline="old", models=("a", "b", "c"), method="jackknife", groups=50, cluster="author")


def test_few_clusters_are_named_once_for_all_models_that_have_as_many() -> None:
    (text,) = scope_warnings(COMPARE, [Scope("a", 400, 7), Scope("b", 300, 7), Scope("c", 200, 10)])
    assert all(words in text for words in ("compare: a, b with old", "'author'", "only 7 of 50 groups", "takes 10"))


def test_models_without_a_row_in_common_are_named_and_nothing_else_of_them() -> None:
    (text,) = scope_warnings(COMPARE, [Scope("a", 0, 0), Scope("b", 300, 40), Scope("c", 0, 0, 0)])
    assert "compare: a, c with old: no row" in text


def test_rows_in_common_that_all_have_one_label_are_named() -> None:
    _, text = scope_warnings(COMPARE, [Scope("a", 9, n_positive=0), Scope("b", 9, n_positive=4), Scope("c", 0)])
    assert "a with old: " in text
    assert "is positive" in text
    (text,) = scope_warnings(COMPARE, [Scope("a", 9, n_positive=9)])
    assert "is negative" in text


def test_rows_without_a_cluster_are_counted() -> None:
    (text,) = unclustered_warnings("author", 20_123, 100_000)
    assert all(words in text for words in ("'author'", "20%", "20,123 of 100,000"))
    assert "< 1%" in next(unclustered_warnings("author", 3, 100_000))
    assert "> 99%" in next(unclustered_warnings("author", 9_999, 10_000))
    assert not [*unclustered_warnings("author", 0, 100_000), *unclustered_warnings(None, 3, 100_000)]


@pytest.mark.parametrize(("method", "is_repeated"), [("delong", True), ("jackknife", False)])
def test_only_delong_scans_the_rows_for_every_32_identities(method: str, is_repeated: bool) -> None:
    compare = {"baseline": "old", "method": method}
    config = changed(corpus={"id": "id"}, models={"old": "old", "new": "new"}, compare=compare)
    *_, scans = plan_comparison(parse_config(config, Path())).passes
    assert (str(IDENTITIES_AT_ONCE) in scans) is is_repeated
