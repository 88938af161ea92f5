"""What the comparison of models rests on, in words: rows in common, clusters, and rows without one."""

from __future__ import annotations

from biasspark.config import Compare
from biasspark.metrics.comparisons.scope import Scope, scope_warnings, unclustered_warnings

ASKED = Compare(baseline="old", models=("a", "b", "c"), method="jackknife", groups=50, cluster="author")


def test_few_clusters_are_said_once_for_all_models_that_have_as_many() -> None:
    found = [Scope("a", 400, 7), Scope("b", 300, 7), Scope("c", 200, 10)]
    assert list(scope_warnings(ASKED, found)) == [
        "compare: a, b with old: 'author' has so few values that only 7 of 50 groups have rows, and a verdict takes "
        "10. Name another column, or take more `groups` if it has more values."
    ]


def test_a_model_without_a_row_in_common_is_apart() -> None:
    """Of its groups nothing is said besides."""
    assert list(scope_warnings(ASKED, [Scope("a", 0, 0), Scope("b", 300, 40), Scope("c", 0, 0)])) == [
        "compare: a, c with old: no row with a label is scored by both, so nothing is compared."
    ]


def test_rows_in_common_that_all_have_one_label_are_said() -> None:
    texts = list(
        scope_warnings(ASKED, [Scope("a", 9, n_positive=0), Scope("b", 9, n_positive=4), Scope("c", 0, n_positive=0)])
    )
    assert [("a with old" in text, "no row that both score is positive" in text) for text in texts[1:]] == [
        (True, True)
    ]
    (text,) = scope_warnings(ASKED, [Scope("a", 9, n_positive=9)])
    assert "negative" in text


def test_rows_without_a_cluster_are_counted() -> None:
    assert list(unclustered_warnings("author", 20_123, 100_000)) == [
        "compare: 'author' has no value on 20% of the rows (20,123 of 100,000). Each of them stands for itself."
    ]
    assert next(unclustered_warnings("author", 3, 100_000)).startswith(
        "compare: 'author' has no value on less than 1% of"
    )
    assert not list(unclustered_warnings("author", 0, 100_000))
    assert not list(unclustered_warnings(None, 0, 100_000))
