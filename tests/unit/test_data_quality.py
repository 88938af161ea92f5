"""Which scores, labels, identities and slices are warned of, and what each warning names."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from biasspark.config import Label, parse_config
from biasspark.corpus.data_quality import (
    ScoreProfile,
    column_warnings,
    count_warnings,
    identity_warnings,
    label_warnings,
    name_warnings,
    positive_value_warnings,
    reject_warnings,
    score_warnings,
    slice_warnings,
    threshold_warnings,
)
from biasspark.corpus.encoding import RowCounts
from biasspark.text import NUMBER_IN_TEXT
from biasspark.workflows.corpus_steps import warn_of_lengths, warn_of_rows
from tests.harness.least_configuration import changed


def assert_says(warnings: Iterable[str], *words: list[str]) -> None:
    """Assert that there is a warning for each list, and that it has its words."""
    texts = list(warnings)
    assert len(texts) == len(words), texts
    for text, of_text in zip(texts, words, strict=True):
        assert [word for word in of_text if word not in text] == [], text


PROFILE = {"n_rows": 1000, "n_distinct": 900, "largest_tie": 3, "lowest": 0.0, "highest": 1.0, "subgroup_high": 0.8}


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
        ({"lowest": -1.0, "highest": 0.9}, [["-1", "missing"]]),
        ({"lowest": -1.5, "highest": 0.9}, []),
        ({"lowest": -7.0, "highest": 8.5}, []),
        ({"subgroup_high": 0.4}, [["below 0.5", "every identity"]]),
        ({"overall_auc": 0.4, "overall_high": 0.45}, []),
        ({"subgroup_high": 0.4, "n_rarer_label": 29}, []),
        ({"subgroup_high": 0.4, "n_rarer_label": 30}, [["below 0.5"]]),
        ({"overall_auc": 1.0}, [["AUC is 1"]]),
        ({"overall_auc": 1.0, "n_rarer_label": 29}, []),
        ({"overall_auc": 1.0, "n_rows": 29, "n_distinct": 29}, []),
        ({"subgroup_high": None, "overall_auc": 0.4, "overall_high": 0.45}, [["AUC is below 0.5"]]),
        ({"subgroup_high": None, "overall_auc": 0.49, "overall_high": 0.51}, []),
        ({"reason": "no_positives"}, [["is positive", "label"]]),
        ({"n_rows": 3, "n_distinct": 3, "reason": "no_negatives"}, [["is negative"]]),
        ({"n_rows": 30, "n_distinct": 3, "largest_tie": 15}, [["50%"]]),
        ({"n_rows": 29, "n_distinct": 1, "largest_tie": 29, "subgroup_high": 0.4}, []),
        (
            {"n_rows": 0, "n_distinct": 0, "largest_tie": 0, "lowest": None, "highest": None},
            [["no row", "rejected_rows"]],
        ),
    ],
)
def test_peculiar_scores(changes: dict[str, Any], words: list[list[str]]) -> None:
    assert_says(score_warnings([ScoreProfile("s", **PROFILE | changes)]), *(["model s: ", *one] for one in words))


def test_reasons_that_reject_more_than_one_in_a_hundred() -> None:
    def warn(n_all: int, **rejects: int) -> tuple[str, ...]:
        return tuple(reject_warnings("model s", "scores", n_all, rejects))

    texts = warn(2_000, null_score=20, score_not_numeric=300, nan_score=21)
    assert_says(texts, ["model s", "15%", "2,000 scores", "score_not_numeric", NUMBER_IN_TEXT], ["1%", "nan_score"])
    (hinted,) = reject_warnings("corpus", "rows", 200, {"null_label": 20}, {"null_label": "It is 0 or 1."})
    assert hinted.endswith("It is 0 or 1.")
    assert warn(99) == warn(200, null_score=2) == warn(29, null_score=10) == warn(0) == ()


def test_rejected_labels_are_explained_unless_the_label_has_a_threshold() -> None:
    counts = RowCounts(200, 20, {"null_label": 20}, n_positive=90)
    assert_says(warn_of_rows(counts, Label(column="y")), ["null_label", "threshold, such as 0.5"])
    (warning,) = warn_of_rows(counts, Label(column="y", threshold=0.5))
    assert "such as 0.5" not in warning


def test_rows_in_no_bucket_of_lengths_unless_privacy_may_withhold_how_many() -> None:
    labels = np.array([[[300, 301], [200, 199]]])  # of length none and of the bucket
    balance = {"length": "n", "buckets": [100, 500]}
    measures = parse_config(changed(label_balance=balance), Path())
    assert_says(warn_of_lengths(labels, measures), ["label_balance", "60%", "1,000 rows", "100 to 499"])
    assert not list(warn_of_lengths(labels // 300, measures))
    assert not list(warn_of_lengths(labels, parse_config(changed(label_balance=balance, privacy={}), Path())))


@pytest.mark.parametrize(
    ("kind", "counts", "words"),
    [
        ("unreadable annotation", {"asked": 1, "gender": 3000}, ["1 of 'asked'", "3,000 of 'gender'", NUMBER_IN_TEXT]),
        ("off scale", {"target": 9000, "male": 1}, ["9,000 of 'target'", "1 of 'male'"]),
        ("unreadable feature", {"a": 1200}, ["1,200 of 'a'"]),
    ],
)
def test_values_that_cannot_be_read_are_counted_by_column(kind: str, counts: dict[str, int], words: list[str]) -> None:
    assert_says(count_warnings(kind, counts), words)
    assert not [*count_warnings(kind, {})]


NAMES = ["a", "b", *(f"n{number}" for number in range(12))]


@pytest.mark.parametrize(
    ("sides", "words"),
    [
        ([(1, 8)] * 14, []),
        ([(0, 5), (3, 5)], [["1 of 2", "has no usable row", '"a"']]),
        ([(0, 5), (0, 0)], [["1 of 2", "is unknown", '"b"'], ["1 of 2", "has no usable row", '"a"']]),
        ([(9, 0), *[(0, 0)] * 13], [["13 of 14", "are unknown", '"n8" and 3 more'], ["1 of 14", "has no background"]]),
    ],
)
def test_identities_without_a_side(sides: list[tuple[int, int]], words: list[list[str]]) -> None:
    assert_says(identity_warnings(NAMES[: len(sides)], sides, 9), *words)


def test_identities_without_background_are_told_of_null_where_there_is_any() -> None:
    texts = [*identity_warnings(NAMES[:3], [(4, 0), (9, 0), (3, 6)], 9)]
    assert_says(texts, ['"b"'], ['"a"'])
    assert ['`unannotated = "background"`' in text for text in texts] == [False, True]


def test_labels_that_are_all_alike_or_rare() -> None:
    assert not [*label_warnings(60, 30)]
    assert_says(label_warnings(4, 0), ["none of the 4 rows", "is positive"])
    assert_says(label_warnings(4, 4), ["none of the 4 rows", "is negative"])
    assert_says(label_warnings(6000, 29), ["29 of the 6,000", "are positive"])
    assert_says(label_warnings(6000, 5999), ["1 of the 6,000", "is negative"])


def test_positive_values_that_no_row_has_or_that_are_spelled_otherwise() -> None:
    positives = {"toxik": (False, 0), 2: (False, 0), "toxic": (True, 1200), "bad": (True, 0)}
    assert_says(positive_value_warnings(positives), ['"toxik"'], ["value 2"], ["1,200", '"toxic"'])


def test_features_and_groupings_of_one_value() -> None:
    assert not [*name_warnings("feature constant", ["a"], []), *name_warnings("grouping single", ["a"], [])]
    assert_says(name_warnings("feature constant", ["a", "b"], ["b"]), ["1 of 2 has", '"b"'])
    assert_says(name_warnings("grouping single", ["a"], ["a"]), ["1 of 1 has", '"a"'])


def test_columns_that_are_used_twice() -> None:
    uses = [("y", "the label"), ("s", "the score of model a"), ("s", "the score of model b"), ("s", "an identity")]
    assert not [*column_warnings(uses[:2])]
    assert_says(column_warnings(uses), ['"s"', "model a", "model b and an identity"])


def test_slices_without_a_row_or_with_one_label_or_with_all_rows() -> None:
    assert not [*slice_warnings(["all", "short", "long"], [(2, 2), (1, 1), (2, 1)]), *slice_warnings(["all"], [(0, 0)])]
    labels = [(9, 9), (0, 0), (8, 8), (0, 0)]
    assert_says(slice_warnings(["all", "short", "long", "none"], labels), ["2 of 3", "no usable", '"short", "none"'])
    assert_says(slice_warnings(["all", "short"], [(9, 9), (0, 0)]), ["1 of 1 has", '"short"'])
    texts = slice_warnings(["all", "short", "toxic", "clean"], [(9, 9), (0, 0), (0, 9), (9, 0)])
    assert_says(texts, ["1 of 3", '"short"'], ["2 of 3", "one label", '"toxic", "clean"'])
    assert_says(slice_warnings(["all", "any", "long"], [(9, 9), (9, 9), (9, 8)]), ["1 of 2", "every usable", '"any"'])
    assert_says(name_warnings("segment empty", ["a", "b"], ["b", "a"]), ["2 of 2 have", '"a", "b"'])


@pytest.mark.parametrize(
    ("lowest", "highest", "thresholds", "words"),
    [
        (0.0, 1.0, (50.0, 80.0), [["below", "50"]]),
        (10.0, 90.0, (0.25, 0.5), [["above", "0.5"]]),
        (0.0, 1.0, (0.5, 50.0), []),
        (0.0, 97.5, (0.0, 0.5, 1.0), [["far above 1"]]),
        (-5.0, 4.0, (0.0,), []),
        (-0.1, 1.2, (0.5,), []),
        (0.0, 97.5, (0.5, 50.0), []),
        (0.5, 1.0, (0.5,), [["at or above", "0.5"]]),
        (0.4, 0.5, (0.5,), []),
        (0.0, 1.0, (), []),
    ],
)
def test_thresholds_beyond_all_scores(
    lowest: float, highest: float, thresholds: tuple[float, ...], words: list[list[str]]
) -> None:
    cuts = {"s": thresholds}
    assert_says(threshold_warnings([ScoreProfile("s", 30, 20, 3, lowest, highest)], cuts), *words)
    assert not [*threshold_warnings([ScoreProfile("s", 29, 20, 3, lowest, highest)], cuts)]
