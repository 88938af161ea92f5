"""What is said of scores that are probably not what somebody thinks they are."""

from __future__ import annotations

import pytest

from biasspark.metrics.hygiene import (
    ScoreProfile,
    annotation_warnings,
    identity_warnings,
    label_warnings,
    reject_warnings,
    score_warnings,
    side_warnings,
    slice_warnings,
    threshold_warnings,
)


@pytest.mark.parametrize(
    ("profile", "warnings"),
    [
        (ScoreProfile("s", 1000, 900, 3, 0.0, 1.0, 0.8), ()),
        (
            ScoreProfile("s", 1000, 1, 1000, 0.5, 0.5, 0.5),
            ("model s: 100% of its scores are the same value. Is that a default for rows that were not scored?",),
        ),
        (
            ScoreProfile("s", 1000, 12, 200, 0.1, 0.9, 0.8),
            ("model s: its 1,000 scores have only 12 distinct values. Were they rounded?",),
        ),
        (
            ScoreProfile("s", 1000, 900, 3, 0.0, 1.0, reason="no_positives"),
            ("model s: no row with a score is positive, so no AUC has a value. Check [label].",),
        ),
        (ScoreProfile("s", 2, 2, 1, 0.0, 1.0, 0.0), ()),
        (ScoreProfile("s", 29, 1, 29, 0.5, 0.5, 0.4), ()),
        (
            ScoreProfile("s", 30, 2, 15, 0.1, 0.9, 0.8),
            ("model s: 50% of its scores are the same value. Is that a default for rows that were not scored?",),
        ),
        (
            ScoreProfile("s", 3, 3, 1, 0.0, 0.9, reason="no_negatives"),
            ("model s: no row with a score is negative, so no AUC has a value. Check [label].",),
        ),
    ],
)
def test_a_sentence_for_each_peculiarity(profile: ScoreProfile, warnings: tuple[str, ...]) -> None:
    assert score_warnings([profile]) == warnings


@pytest.mark.parametrize(
    ("n_all", "rejects", "warnings"),
    [
        (99, {}, ()),
        (200, {"null_score": 2}, ()),
        (
            2_000,
            {"null_score": 20, "score_not_numeric": 300, "nan_score": 21},
            (
                "model s: 15% of its 2,000 scores are counted as score_not_numeric. Is that meant?",
                "model s: 1% of its 2,000 scores are counted as nan_score. Is that meant?",
            ),
        ),
        (29, {"null_score": 10}, ()),
        (0, {}, ()),
    ],
)
def test_reasons_that_reject_many(n_all: int, rejects: dict[str, int], warnings: tuple[str, ...]) -> None:
    assert reject_warnings("model s", "scores", n_all, rejects) == warnings


def test_annotations_that_cannot_be_read() -> None:
    assert annotation_warnings({}) == ()
    assert annotation_warnings({"was asked": 1, "gender": 3000}) == (
        "identities: values that are neither numbers nor booleans count as missing: 1 of 'was asked', 3,000 of "
        "'gender'. If each value is an identity, name the column in `categorical`; if one is, write a predicate such "
        "as `was asked` = 'yes'.",
    )


NAMES = ["a", "b", *(f"n{number}" for number in range(12))]


@pytest.mark.parametrize(
    ("no_subgroup", "no_background", "warnings"),
    [
        ([], [], ()),
        (
            [],
            ["b", "a"],
            (
                'identities: 2 of 14 identities have no background, since no usable row is outside: "a", "b". Only '
                'Subgroup AUC has a value. Where NULL means "not mentioned", set `unannotated = "background"`.',
            ),
        ),
        (
            ["b"],
            [],
            (
                'identities: 1 of 14 identities has no usable row: "b". Is a name, a term or a predicate '
                "misspelt, or the threshold too high?",
            ),
        ),
        (
            ["b", "a"],
            ["a"],
            (
                'identities: 1 of 14 identities is unknown in every usable row: "a". Is a column empty, or '
                "the wrong one named?",
                'identities: 1 of 14 identities has no usable row: "b". Is a name, a term or a predicate '
                "misspelt, or the threshold too high?",
            ),
        ),
        (
            NAMES[1:],
            NAMES,
            (
                'identities: 13 of 14 identities are unknown in every usable row: "b", "n0", "n1", "n2", "n3", '
                '"n4", "n5", "n6", "n7", "n8" and 3 more. Is a column empty, or the wrong one named?',
                'identities: 1 of 14 identities has no background, since no usable row is outside: "a". Only Subgroup '
                'AUC has a value. Where NULL means "not mentioned", set `unannotated = "background"`.',
            ),
        ),
    ],
)
def test_identities_without_a_subgroup_or_a_background(
    no_subgroup: list[str], no_background: list[str], warnings: tuple[str, ...]
) -> None:
    assert identity_warnings(NAMES, no_subgroup, no_background) == warnings


def test_models_whose_rows_all_have_one_label_are_named() -> None:
    counts = {"mixed": (4, 1), "negative": (4, 0), "positive": (4, 4), "absent": (0, 0)}
    texts = label_warnings(counts)
    assert [text.split(":")[0] for text in texts] == ["model negative", "model positive"]
    assert ["is positive" in text for text in texts] == [True, False]


def test_identities_without_a_side_are_named() -> None:
    texts = side_warnings(["both", "nobody", "everybody", "unknown"], [(1, 1), (0, 2), (2, 0), (0, 0)])
    assert [name for text in texts for name in ("nobody", "everybody", "unknown") if f'"{name}"' in text] == [
        *("unknown", "nobody", "everybody")
    ]


def test_slices_without_a_row_are_named() -> None:
    assert slice_warnings(["short", "long"], []) == ()
    (text,) = slice_warnings(["short", "long", "none"], ["none", "short"])
    assert "2 of 3" in text
    assert '"short", "none"' in text


@pytest.mark.parametrize(
    ("lowest", "highest", "thresholds", "words"),
    [
        (0.0, 1.0, (50.0, 80.0), ["below", "50"]),
        (10.0, 90.0, (0.25, 0.5), ["above", "0.5"]),
        (0.0, 1.0, (0.5, 50.0), []),
        (0.5, 1.0, (0.5,), []),
        (0.0, 1.0, (), []),
    ],
)
def test_thresholds_beside_all_scores_are_said(
    lowest: float, highest: float, thresholds: tuple[float, ...], words: list[str]
) -> None:
    texts = threshold_warnings([ScoreProfile("s", 30, 20, 3, lowest, highest)], thresholds)
    assert len(texts) == bool(words)
    assert all(word in texts[0] for word in words)
    assert threshold_warnings([ScoreProfile("s", 29, 20, 3, lowest, highest)], thresholds) == ()
