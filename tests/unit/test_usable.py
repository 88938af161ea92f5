"""When a corpus has too little that can be used: models without scores, and more rejects than are allowed."""

from __future__ import annotations

from typing import Any

import pytest

from biasspark.config import Rejects
from biasspark.corpus.codebook import Tally
from biasspark.corpus.usable import check_usable, list_missing_models
from biasspark.errors import InputError

MODELS = {"a": "score_a", "b": "score_b"}
ALLOWED = Rejects(allow_missing_models=True)


def tally_of(n_rows: int = 1000, null_label: int = 0, n_rejected: int | None = None, **of_scores: Any) -> Tally:
    """Rows, those without a label, and by model how many scores are rejected for which reason."""
    scores = {model: of_scores.get(model, {}) for model in MODELS}
    reasons = dict.fromkeys(reason for counts in scores.values() for reason in counts)
    rejects = {reason: sum(counts.get(reason, 0) for counts in scores.values()) for reason in reasons}
    eligible = {model: n_rows - null_label - sum(counts.values()) for model, counts in scores.items()}
    return Tally(
        n_rows,
        null_label if n_rejected is None else n_rejected,
        ({"null_label": null_label} if null_label else {}) | rejects,
        eligible,
        scores,
    )


def faults_of(tally: Tally, rejects: Rejects | None = None) -> tuple[str, ...]:
    with pytest.raises(InputError) as caught:
        check_usable(tally, MODELS, rejects)
    assert caught.value.exit_code == 3
    return caught.value.faults


def holds(text: str, *parts: str) -> bool:
    return all(part in text for part in parts)


def test_what_has_scores_is_usable() -> None:
    tally = tally_of(null_label=400, a={"null_score": 599}, b={"nan_score": 1})
    for rejects in (None, Rejects(), ALLOWED):
        check_usable(tally, MODELS, rejects)
    assert list_missing_models(tally) == ()


def test_every_model_without_a_score_is_named_with_its_column_and_the_reasons() -> None:
    tally = tally_of(
        null_label=40, a={"null_score": 950, "nan_score": 10}, b={"score_not_numeric": 960}, n_rejected=1000
    )
    first, second = faults_of(tally, Rejects())
    assert holds(
        first, "model a", "'score_a'", "null_score 950", "nan_score 10", "[models]", "allow_missing_models = true"
    )
    assert holds(second, "model b", "'score_b'", "score_not_numeric 960")
    assert list_missing_models(tally) == ("a", "b")


def test_a_notebook_has_no_table_that_allows_it() -> None:
    (fault,) = faults_of(tally_of(a={"null_score": 1000}))
    assert holds(fault, "model a", "null_score 1,000", "[models]")
    assert "allow_missing_models" not in fault


def test_a_missing_model_may_be_allowed_but_not_all_of_them() -> None:
    check_usable(tally_of(a={"null_score": 1000}), MODELS, ALLOWED)
    assert len(faults_of(tally_of(a={"null_score": 1000}, b={"null_score": 1000}, n_rejected=1000), ALLOWED)) == 2


def test_rows_without_a_label_are_no_fault_of_the_models() -> None:
    (fault,) = faults_of(tally_of(null_label=1000), ALLOWED)
    assert holds(fault, "corpus", "1,000", "null_label 1,000", "[label]")


@pytest.mark.parametrize(("null_label", "max_share"), [(290, 0.29), (0, 0.0), (1, 0.5), (999, 1.0)])
def test_a_share_that_is_just_allowed_passes(null_label: int, max_share: float) -> None:
    """0.29 of 1,000 in doubles is less than 290."""
    check_usable(tally_of(null_label=null_label), MODELS, Rejects(max_share=max_share))


def test_more_rejected_rows_than_are_allowed_end_the_run() -> None:
    (fault,) = faults_of(tally_of(null_label=291), Rejects(max_share=0.29))
    assert holds(fault, "corpus", "291", "1,000", "null_label 291", "0.291", "max_share = 0.29")


def test_more_rejected_scores_of_a_model_than_are_allowed_end_the_run() -> None:
    """Of the 500 rows with a label, 260 of its scores cannot be read: 26 % of all rows, but 52 % of what is scored."""
    tally = tally_of(null_label=500, a={"score_not_numeric": 260})
    (fault,) = faults_of(tally, Rejects(max_share=0.5))
    assert holds(fault, "model a", "'score_a'", "260", "500", "score_not_numeric 260", "0.52", "max_share = 0.5")
    check_usable(tally, MODELS, Rejects(max_share=0.52))


def test_rows_that_no_model_scores_count_as_rejected() -> None:
    tally = tally_of(null_label=300, a={"null_score": 300}, b={"null_score": 300}, n_rejected=600)
    (fault,) = faults_of(tally, Rejects(max_share=0.5))
    assert holds(fault, "corpus", "600", "null_label 300", "null_score 600")


def test_the_corpus_is_not_blamed_for_the_scores_of_the_models_that_are_named() -> None:
    both = {"null_score": 900}
    assert [fault[:7] for fault in faults_of(tally_of(a=both, b=both, n_rejected=900), Rejects(max_share=0.5))] == [
        "model a",
        "model b",
    ]
    found = faults_of(tally_of(null_label=600, a={"null_score": 300}), Rejects(max_share=0.5))
    assert [fault[:7] for fault in found] == ["corpus:", "model a"]


def test_a_model_that_may_be_missing_rejects_no_share() -> None:
    rejects = Rejects(max_share=0.1, allow_missing_models=True)
    check_usable(tally_of(a={"null_score": 1000}), MODELS, rejects)
    (fault,) = faults_of(tally_of(a={"null_score": 1000}, b={"nan_score": 101}, n_rejected=101), rejects)
    assert holds(fault, "model b", "nan_score 101")
