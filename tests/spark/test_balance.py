"""Label balance by text length with its plan, and mean scores of templates, against loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pyspark.sql import Row, SparkSession

import biasspark
from biasspark.errors import ConfigError
from biasspark.tables.schemas import LABEL_BALANCE, TEMPLATE_SCORES
from tests.awkward_corpus import (
    IDENTITIES,
    Meaning,
    assert_rows,
    frame_of,
    in_order,
    is_crossed,
    make_rows,
    measures,
    shuffled,
)
from tests.oracle import further

ROWS = make_rows()
EDGES = (1, 3, 8, 30, 200, 210, 220)
"""The bucket from 200 on holds negatives alone, the one from 210 on nothing."""

PUBLISHED = (20, 60, 180, 540, 1620, 4860)


def asked(unannotated: str = "exclude", **changes: Any) -> dict[str, Any]:
    return {
        "label": "target",
        "label_threshold": 0.5,
        "identities": IDENTITIES | {"unannotated": unannotated},
    } | changes


def wanted_balance(meaning: Meaning, lengths: list[int | None] | None, edges: tuple[int, ...]) -> list[dict[str, Any]]:
    everyone = np.ones(len(meaning.rows))
    singles = {name: inside for name, inside in meaning.identities.items() if not is_crossed(name)}
    return [
        {"identity": name, "bucket": bucket} | row
        for name, inside in ({"(overall)": everyone} | singles).items()
        for bucket, row in further.label_balance(meaning.label, lengths, inside.tolist(), edges).items()
    ]


# ---- label balance


@pytest.fixture(scope="module")
def by_text(spark_session: SparkSession) -> list[Row]:
    frame = frame_of(spark_session, ROWS, 3)
    return biasspark.label_balance(frame, text="text", buckets=list(EDGES), **asked()).collect()


def lengths_of(meaning: Meaning) -> list[int | None]:
    return [None if text is None else len(text) for text in meaning.column("text")]


def test_balance_by_the_length_of_a_text(by_text: list[Row]) -> None:
    """A sign beyond the basic plane counts as one; texts that are null have no length and stand in (all) alone."""
    meaning = Meaning(ROWS)
    wanted = wanted_balance(meaning, lengths_of(meaning), EDGES)
    assert_rows(by_text, wanted, LABEL_BALANCE)
    by_key = {(row["identity"], row["bucket"]): row for row in wanted}
    assert by_key["gay", "200-209"]["n_negatives_to_add"] is None
    assert by_key["gay", "210-219"]["positive_rate"] is None
    assert any(row["n_negatives_to_add"] for row in wanted)


@pytest.mark.slow
def test_where_no_bucket_holds_a_positive_nothing_is_lacking(spark: SparkSession) -> None:
    rows = spark.createDataFrame(
        [("short", True, True), ("long enough for a bucket", False, True)], "t STRING, y BOOLEAN, g BOOLEAN"
    )
    found = biasspark.label_balance(rows, text="t", buckets=[20, 60], label="y", identities=["g"]).collect()
    lacking = {(row.identity, row.bucket): row.n_negatives_to_add for row in found}
    assert lacking == {
        (name, bucket): n for name in ("g", "(overall)") for bucket, n in (("20-59", None), ("(all)", 0))
    }


@pytest.mark.slow
def test_unknown_annotations_as_background_change_nobody_s_balance(spark: SparkSession, by_text: list[Row]) -> None:
    """Only members count."""
    frame = frame_of(spark, ROWS, 1)
    found = biasspark.label_balance(frame, text="text", buckets=list(EDGES), **asked("background"))
    assert in_order(found.collect()) == in_order(by_text)


@pytest.mark.slow
def test_models_slices_windows_and_order_change_nothing(spark: SparkSession, by_text: list[Row]) -> None:
    frame, options = frame_of(spark, shuffled(ROWS), 2), {"text": "text", "buckets": list(EDGES), "ranges": 7}
    for engine in ("blocks", "windows"):
        found = biasspark.label_balance(frame, engine=engine, **options, **measures(models={"tied": "s1"}))
        assert in_order(found.collect()) == in_order(by_text), engine


def test_balance_by_a_column_of_lengths_and_the_published_buckets(spark: SparkSession) -> None:
    meaning = Meaning(ROWS)
    found = biasspark.label_balance(frame_of(spark, ROWS, 1), length="length", **asked()).collect()
    assert_rows(found, wanted_balance(meaning, meaning.column("length"), PUBLISHED), LABEL_BALANCE)


def test_balance_without_lengths_and_without_models(spark: SparkSession) -> None:
    """All labelled rows count, scored or not; one bucket is its own sum."""
    found = biasspark.label_balance(frame_of(spark, ROWS), **asked()).collect()
    assert_rows(found, wanted_balance(Meaning(ROWS), None, ()), LABEL_BALANCE)


def test_plan_brings_every_bucket_to_the_goal(by_text: list[Row]) -> None:
    planned = [row for row in by_text if row.n_negatives_to_add and row.bucket != "(all)"]
    assert planned
    for row in planned:
        goal, to_add = row.overall_positive_rate, row.n_negatives_to_add
        assert row.n_positive / (row.n_rows + to_add) <= goal + 1e-12
        assert row.n_positive / (row.n_rows + to_add - 1) > goal
    assert {row.n_negatives_to_add for row in by_text if row.identity == "(overall)"} == {0, None}


def test_what_cannot_be_asked_of_a_balance(spark: SparkSession) -> None:
    corpus = frame_of(spark, ROWS[:9])
    with pytest.raises(ConfigError, match=r"^label_balance: text and length are both given"):
        biasspark.label_balance(corpus, text="text", length="length", **asked())
    with pytest.raises(ConfigError, match=r"^buckets = "):
        biasspark.label_balance(corpus, buckets=[10, 20], **asked())


# ---- templates


@pytest.fixture(scope="module")
def templates(spark_session: SparkSession) -> list[Row]:
    return biasspark.template_scores(frame_of(spark_session, ROWS, 3), template="template", **measures()).collect()


def wanted_templates(meaning: Meaning) -> list[dict[str, Any]]:
    wanted = []
    for case in meaning.cases():
        if case.slice == "all":
            states = {"(overall)": np.ones(len(case.score))} | case.singles
            wanted += [
                {"model": case.model, "template": template, "identity": identity} | row
                for identity, inside in states.items()
                for template, row in further.template_scores(case.template, case.score, inside).items()
            ]
    return wanted


def test_template_scores(templates: list[Row]) -> None:
    """Of the rows that count for the model, whatever their slice; one row has no standard deviation."""
    wanted = wanted_templates(Meaning(ROWS))
    assert None in {row["sd_score"] for row in wanted}
    assert not {"unscored", None} & {row["template"] for row in wanted}
    assert_rows(templates, wanted, TEMPLATE_SCORES)


@pytest.mark.slow
def test_order_and_engine_change_no_mean(spark: SparkSession, templates: list[Row]) -> None:
    """Nor does it matter what an unknown annotation means: only members count."""
    again = biasspark.template_scores(
        frame_of(spark, shuffled(ROWS), 1), template="template", engine="windows", **measures("background")
    )
    assert in_order(again.collect()) == in_order(templates)
