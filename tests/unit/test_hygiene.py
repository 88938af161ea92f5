"""What is said of scores that are probably not what somebody thinks they are."""

from __future__ import annotations

import pytest

from biasspark.metrics.hygiene import ScoreProfile, score_warnings


@pytest.mark.parametrize(
    ("profile", "warnings"),
    [
        (ScoreProfile("s", 1000, 900, 3, 0.0, 1.0, 0.8), ()),
        (
            ScoreProfile("s", 1000, 1, 1000, 0.5, 0.5, 0.5),
            ("model s: 100% of its scores are one and the same value. Is that a default for what was not scored?",),
        ),
        (
            ScoreProfile("s", 1000, 12, 200, 0.1, 0.9, 0.8),
            ("model s: its 1,000 scores have 12 distinct values. Were they rounded?",),
        ),
        (
            ScoreProfile("s", 1000, 900, 3, 0.0, 1.0, reason="no_positives"),
            ("model s: no row with a score is positive, so no AUC has a value. Check [label].",),
        ),
    ],
)
def test_a_sentence_for_each_peculiarity(profile: ScoreProfile, warnings: tuple[str, ...]) -> None:
    assert score_warnings([profile]) == warnings
