"""When a corpus has too little that can be used: labels, models, identities, and more rejects than are allowed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from biasspark.columns import ROW_REASONS
from biasspark.config import Identities, LabelBalance, Rejects, parse_measures
from biasspark.corpus.encoding import RowCounts
from biasspark.corpus.usable import check_identities, check_lengths, check_usable, list_missing_models
from biasspark.errors import Fault, InputError
from biasspark.text import NUMBER_IN_TEXT
from tests.harness.least_configuration import raised_fault

MODELS = {"a": "score_a", "b": "score_b"}
ALLOWED = Rejects(allow_missing_models=True)


def counts_of(
    n_rows: int = 1000,
    null_label: int = 0,
    n_rejected: int | None = None,
    positives: dict[str, int] | None = None,
    **of_scores: Any,
) -> RowCounts:
    """Rows, those without a label, by model its positives, and how many scores are rejected for which reason.

    Half of the rows that a model scores are positive, if nothing else is said.
    """
    scores = {model: of_scores.get(model, {}) for model in MODELS}
    reasons = dict.fromkeys(reason for counts in scores.values() for reason in counts)
    rejects = {reason: sum(counts.get(reason, 0) for counts in scores.values()) for reason in reasons}
    eligible = {model: n_rows - null_label - sum(counts.values()) for model, counts in scores.items()}
    return RowCounts(
        n_rows,
        null_label if n_rejected is None else n_rejected,
        ({"null_label": null_label} if null_label else {}) | rejects,
        eligible,
        scores,
        n_positive=(n_rows - null_label) // 2,
        eligible_positives={model: n // 2 for model, n in eligible.items()} | (positives or {}),
    )


def check(counts: RowCounts, rejects: Rejects | None = None, **label: Any) -> None:
    measures = parse_measures({"label": {"column": "y"} | label, "models": MODELS, "identities": ["u"]})
    check_usable(counts, measures, "id", rejects)


def faults_of(counts: RowCounts, rejects: Rejects | None = None, **label: Any) -> tuple[Fault | str, ...]:
    with pytest.raises(InputError) as caught:
        check(counts, rejects, **label)
    assert caught.value.exit_code == 3
    return caught.value.faults


def holds(fault: Fault | str, *parts: str) -> bool:
    return all(part in str(fault) for part in parts)


def test_what_has_scores_is_usable() -> None:
    counts = counts_of(null_label=400, positives={"a": 1}, a={"null_score": 598}, b={"nan_score": 1})
    for rejects in (None, Rejects(), ALLOWED):
        check(counts, rejects)
    assert list_missing_models(counts) == ()


# ---- labels


@pytest.mark.parametrize(
    ("reason", "path", "value"),
    [
        ("malformed_row", ("corpus", "options"), None),
        ("null_id", ("corpus", "id"), "id"),
        ("duplicate_id", ("corpus", "id"), "id"),
        ("null_label", ("label", "column"), "y"),
        ("label_out_of_range", ("label", "range"), (0.0, 1.0)),
    ],
)
def test_without_a_usable_row_the_most_frequent_reason_says_what_to_look_at(
    reason: str, path: tuple[str, ...], value: object
) -> None:
    rejects = dict.fromkeys(ROW_REASONS, 10) | {reason: 960}
    label: Any = {"threshold": 0.5, "range": [0, 1]} if reason == "label_out_of_range" else {}
    (fault,) = faults_of(RowCounts(1000, 1000, rejects), ALLOWED, **label)
    assert isinstance(fault, Fault)
    assert fault.path == path
    assert value is None or fault.value == value
    assert holds(fault, "1,000", f"{reason} 960")
    assert holds(fault, "threshold = 0.5", "positive", NUMBER_IN_TEXT) == (reason == "null_label")


def test_what_is_configured_or_read_is_not_advised() -> None:
    unread, alike = RowCounts(1000, 1000, {"null_label": 1000}), RowCounts(1000, 0, {}, dict.fromkeys(MODELS, 1000))
    by_label: tuple[dict[str, Any], ...] = ({"threshold": 0.5}, {"positive": ["toxic"]}, {})
    faults = [faults_of(unread, ALLOWED, **label)[0] for label in by_label] + list(faults_of(alike, ALLOWED))
    assert [holds(fault, "threshold = 0.5") for fault in faults] == [False, False, True, False]
    assert [holds(fault, "label] positive") or holds(fault, "in positive") for fault in faults][1::2] == [False, False]
    assert [holds(fault, NUMBER_IN_TEXT) for fault in faults] == [True, False, True, False]


@pytest.mark.parametrize(
    ("label", "path"),
    [
        ({}, ("label", "column")),
        ({"threshold": 0.5}, ("label", "threshold")),
        ({"positive": ["toxic"]}, ("label", "positive")),
    ],
)
@pytest.mark.parametrize(("n_positive", "missing"), [(0, "positive"), (600, "negative")])
def test_labels_that_are_all_alike_are_a_fault_of_what_reads_them(
    label: dict[str, Any], path: tuple[str, ...], n_positive: int, missing: str
) -> None:
    counts = RowCounts(1000, 400, {"null_label": 400}, dict.fromkeys(MODELS, 600), n_positive=n_positive)
    (fault,) = faults_of(counts, ALLOWED, **label)
    assert isinstance(fault, Fault)
    assert (fault.path, fault.value) == (path, {"column": "y", "threshold": 0.5, "positive": ("toxic",)}[path[1]])
    assert holds(fault, "600", missing, "400")


# ---- models


def test_every_model_without_a_score_is_named_with_its_column_and_the_reasons() -> None:
    lost: Any = {"a": {"null_score": 950, "nan_score": 10}, "b": {"score_not_numeric": 960}}
    counts = counts_of(null_label=40, n_rejected=1000, **lost)
    first, second = faults_of(counts, Rejects())
    assert holds(first, "model a", "'score_a'", "null_score 950", "nan_score 10", "[models]", "allow_missing_models")
    assert holds(second, "model b", "'score_b'", "score_not_numeric 960", NUMBER_IN_TEXT)
    assert not holds(first, NUMBER_IN_TEXT)
    assert not holds(first, "positive")  # no row has a score
    assert list_missing_models(counts) == ("a", "b")


@pytest.mark.parametrize(("positives", "label"), [(0, "positive"), (40, "negative")])
def test_a_model_whose_rows_all_have_one_label_is_missing(positives: int, label: str) -> None:
    counts = counts_of(positives={"a": positives}, a={"null_score": 960})
    (fault,) = faults_of(counts, Rejects())
    assert holds(fault, "model a", "'score_a'", "40", label, "null_score 960", "allow_missing_models")
    assert list_missing_models(counts) == ("a",)
    check(counts, ALLOWED)


def test_a_notebook_cannot_allow_it() -> None:
    (fault,) = faults_of(counts_of(a={"null_score": 1000}))
    assert holds(fault, "model a", "null_score 1,000", "[models]")
    assert not holds(fault, "allow_missing_models")


def test_a_missing_model_may_be_allowed_but_not_all_of_them() -> None:
    check(counts_of(a={"null_score": 1000}), ALLOWED)
    assert len(faults_of(counts_of(a={"null_score": 1000}, b={"null_score": 1000}, n_rejected=1000), ALLOWED)) == 2


@pytest.mark.parametrize(
    ("counts", "max_share"),
    [
        (counts_of(null_label=290), 0.29),  # in doubles, 0.29 of 1,000 is less than 290
        (counts_of(null_label=0), 0.0),
        (counts_of(null_label=998), 1.0),
        (counts_of(null_label=500, a={"score_not_numeric": 260}), 0.52),
    ],
)
def test_a_share_that_is_just_allowed_passes(counts: RowCounts, max_share: float) -> None:
    check(counts, Rejects(max_share=max_share))


@pytest.mark.parametrize(
    ("counts", "max_share", "parts"),
    [
        (counts_of(null_label=291), 0.29, [("corpus", "291", "1,000", "null_label 291", "0.291", "max_share = 0.29")]),
        # Of the 500 rows with a label, 260 of its scores cannot be read: 26% of all rows, but 52% of what is scored.
        (
            counts_of(null_label=500, a={"score_not_numeric": 260}),
            0.5,
            [("model a", "'score_a'", "260", "500", "score_not_numeric 260", "0.52", "max_share = 0.5")],
        ),
        # Rows that no model scores count as rejected.
        (
            counts_of(null_label=300, a={"null_score": 300}, b={"null_score": 300}, n_rejected=600),
            0.5,
            [("corpus", "600", "null_label 300", "no usable score 300")],
        ),
        # Scores that only one model rejects are not listed.
        (counts_of(null_label=300, a={"nan_score": 20}), 0.2, [("corpus", "300 of", "(null_label 300)")]),
        (
            counts_of(a={"null_score": 900}, b={"null_score": 900}, n_rejected=900),
            0.5,
            [("corpus", "no usable score 900"), ("model a", "null_score 900"), ("model b", "null_score 900")],
        ),
        (counts_of(null_label=600, a={"null_score": 300}), 0.5, [("corpus", "600"), ("model a", "300")]),
    ],
)
def test_more_rejects_than_are_allowed_end_the_run(
    counts: RowCounts, max_share: float, parts: list[tuple[str, ...]]
) -> None:
    faults = faults_of(counts, Rejects(max_share=max_share))
    assert [holds(fault, *words) for fault, words in zip(faults, parts, strict=True)] == [True] * len(parts)


def test_a_model_that_may_be_missing_rejects_no_share() -> None:
    rejects = Rejects(max_share=0.1, allow_missing_models=True)
    check(counts_of(a={"null_score": 1000}), rejects)
    (_, fault) = faults_of(counts_of(a={"null_score": 1000}, b={"nan_score": 101}, n_rejected=101), rejects)
    assert holds(fault, "model b", "nan_score 101")


# ---- identities


def check_names(names: list[str], unknown: set[str], unreadable: dict[str, int], **identities: Any) -> None:
    measures = parse_measures({"label": {"column": "y"}, "models": MODELS, "identities": identities})
    check_identities(measures.identities, names, unknown, unreadable)


def test_one_identity_that_is_known_is_enough() -> None:
    check_names(["u", "v"], {"u"}, {}, columns=["u", "v"])
    check_identities(Identities(), [], set(), {})


@pytest.mark.parametrize(
    ("names", "unreadable", "identities", "words"),
    [
        (["u", "v"], {}, {"columns": ["u", "v"]}, ('"u"', '"v"')),
        (["u"], {"u": 1234}, {"columns": ["u"]}, ("1,234", "'u'", "categorical")),
        ([], {}, {"categorical": ["race"]}, ("race",)),
    ],
)
def test_identities_that_are_all_unknown_end_the_run(
    names: list[str], unreadable: dict[str, int], identities: dict[str, Any], words: tuple[str, ...]
) -> None:
    fault = raised_fault(InputError, check_names, names, set(names), unreadable, **identities)
    assert fault.path == ("identities",)
    assert holds(fault, *words)


@pytest.mark.parametrize("key", ["text", "length"])
def test_labels_by_length_need_a_length(key: str) -> None:
    labels = np.zeros((2, 3, 2), np.int64)
    balance = LabelBalance(
        text="c" if key == "text" else None, length="c" if key == "length" else None, buckets=(1, 5, 9)
    )
    labels[0, 0] = 7, 3
    fault = raised_fault(InputError, check_lengths, labels, balance)
    assert (fault.path, fault.value) == (("label_balance", key), "c")
    assert holds(fault, "10 rows", "from 1 to 8")
    check_lengths(labels[:, :1], LabelBalance())
    labels[0, 2, 0] = 1
    check_lengths(labels, balance)
