"""Warnings of a comparison of models."""

from __future__ import annotations

from biasspark.comparison.model_comparisons import Scope, scope_warnings, unclustered_warnings
from biasspark.config import Compare

COMPARE = Compare(baseline="old", models=("a", "b", "c"), method="jackknife", groups=50, cluster="author")


def test_few_clusters_are_named_once_for_all_models() -> None:
    (text,) = scope_warnings(COMPARE, [Scope("a", 400, 7), Scope("b", 300, 6), Scope("c", 200, 10)])
    assert all(words in text for words in ("compare: a, b with old", "'author'", "only 7 of 50 groups", "needs 10"))


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
