"""Which scores, labels, identities and slices are warned of, and what each warning names."""

from __future__ import annotations

from typing import Any

import pytest

from biasspark.metrics.data_quality import (
    ScoreProfile,
    annotation_warnings,
    column_warnings,
    identity_warnings,
    label_warnings,
    positive_value_warnings,
    reject_warnings,
    score_warnings,
    segment_warnings,
    side_warnings,
    slice_warnings,
    threshold_warnings,
)


def assert_says(texts: tuple[str, ...], *words: list[str]) -> None:
    """Assert that there is a warning for each list, and that it has its words."""
    assert len(texts) == len(words), texts
    for text, own in zip(texts, words, strict=True):
        assert [word for word in own if word not in text] == [], text


PROFILE = {"n_rows": 1000, "n_distinct": 900, "largest_tie": 3, "lowest": 0.0, "highest": 1.0, "best_subgroup_auc": 0.8}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, []),
        ({"n_distinct": 1, "largest_tie": 1000, "lowest": 0.5, "highest": 0.5}, [["1,000", "same value"]]),
        ({"n_distinct": None, "largest_tie": None, "lowest": 1.0, "highest": 1.0}, [["1,000", "same value"]]),
        ({"n_distinct": None, "largest_tie": None}, []),
        ({"n_distinct": 101, "largest_tie": 999}, [["> 99%"]]),
        ({"n_distinct": 12, "largest_tie": 200}, [["1,000", "12 distinct"]]),
        ({"n_distinct": 2, "largest_tie": 400}, [["only 0 and 1"]]),
        ({"n_distinct": 2, "largest_tie": 500}, [["only 0 and 1"], ["50%"]]),
        ({"best_subgroup_auc": 0.4}, [["below 0.5", "every identity"]]),
        ({"overall_auc": 0.4}, []),
        ({"best_subgroup_auc": None, "overall_auc": 0.4}, [["AUC is below 0.5"]]),
        ({"reason": "no_positives"}, [["is positive", "label"]]),
        ({"n_rows": 3, "n_distinct": 3, "reason": "no_negatives"}, [["is negative"]]),
        ({"n_rows": 30, "n_distinct": 3, "largest_tie": 15}, [["50%"]]),
        ({"n_rows": 29, "n_distinct": 1, "largest_tie": 29, "best_subgroup_auc": 0.4}, []),
        (
            {"n_rows": 0, "n_distinct": 0, "largest_tie": 0, "lowest": None, "highest": None},
            [["no row", "rejected_rows"]],
        ),
    ],
)
def test_peculiar_scores(changes: dict[str, Any], words: list[list[str]]) -> None:
    assert_says(score_warnings([ScoreProfile("s", **PROFILE | changes)]), *(["model s: ", *own] for own in words))


def test_reasons_that_reject_more_than_one_in_a_hundred() -> None:
    def warn(n_all: int, **rejects: int) -> tuple[str, ...]:
        return reject_warnings("model s", "scores", n_all, rejects)

    texts = warn(2_000, null_score=20, score_not_numeric=300, nan_score=21)
    assert_says(texts, ["model s", "15%", "2,000 scores", "score_not_numeric"], ["1%", "nan_score"])
    assert warn(99) == warn(200, null_score=2) == warn(29, null_score=10) == warn(0) == ()


def test_annotations_that_cannot_be_read() -> None:
    texts = annotation_warnings({"was asked": 1, "gender": 3000})
    assert_says(texts, ["1 of 'was asked'", "3,000 of 'gender'", "`was asked` = 'yes'", "categorical"])
    assert annotation_warnings({}) == ()


NAMES = ["a", "b", *(f"n{number}" for number in range(12))]


@pytest.mark.parametrize(
    ("no_subgroup", "no_background", "words"),
    [
        ([], [], []),
        ([], ["b", "a"], [["2 of 14 identities have no background", '"a", "b"', '`unannotated = "background"`']]),
        (["b"], [], [["1 of 14 identities has no usable row", '"b"']]),
        (["b", "a"], ["a"], [["1 of 14", "is unknown", '"a"'], ["1 of 14", "has no usable row", '"b"']]),
        (NAMES[1:], NAMES, [["13 of 14", "are unknown", '"n8" and 3 more'], ["1 of 14", "has no background", '"a"']]),
    ],
)
def test_identities_without_a_side(no_subgroup: list[str], no_background: list[str], words: list[list[str]]) -> None:
    texts = identity_warnings(NAMES, no_subgroup, no_background)
    assert_says(texts, *words)
    sides = [(int(name not in no_subgroup), int(name not in no_background)) for name in NAMES]
    assert side_warnings(NAMES, sides) == texts


def test_labels_that_are_all_alike() -> None:
    assert label_warnings(4, 1) == ()
    assert_says(label_warnings(4, 0), ["4 rows", "is positive"])
    assert_says(label_warnings(4, 4), ["4 rows", "is negative"])


def test_positive_values_that_no_row_has() -> None:
    assert positive_value_warnings([]) == ()
    assert_says(positive_value_warnings(["toxik", 2]), ['"toxik"'], ["value 2"])


def test_columns_that_are_used_twice() -> None:
    uses = [("y", "the label"), ("s", "the score of model a"), ("s", "the score of model b"), ("s", "an identity")]
    assert column_warnings(uses[:2]) == ()
    assert_says(column_warnings(uses), ['"s"', "model a", "model b and an identity"])


def test_slices_without_a_row() -> None:
    assert slice_warnings(["all", "short", "long"], []) == slice_warnings(["all"], ["all"]) == ()
    assert_says(slice_warnings(["all", "short", "long", "none"], ["none", "short"]), ["2 of 3", '"short", "none"'])
    assert_says(slice_warnings(["all", "short"], ["short"]), ["the only slice has", '"short"'])
    assert_says(segment_warnings(["a", "b"], ["b", "a"]), ["all 2 segments have", '"a", "b"'])


@pytest.mark.parametrize(
    ("lowest", "highest", "thresholds", "words"),
    [
        (0.0, 1.0, (50.0, 80.0), [["below", "50"]]),
        (10.0, 90.0, (0.25, 0.5), [["above", "0.5"]]),
        (0.0, 1.0, (0.5, 50.0), []),
        (0.5, 1.0, (0.5,), []),
        (0.0, 1.0, (), []),
    ],
)
def test_thresholds_beyond_all_scores(
    lowest: float, highest: float, thresholds: tuple[float, ...], words: list[list[str]]
) -> None:
    assert_says(threshold_warnings([ScoreProfile("s", 30, 20, 3, lowest, highest)], thresholds), *words)
    assert threshold_warnings([ScoreProfile("s", 29, 20, 3, lowest, highest)], thresholds) == ()
