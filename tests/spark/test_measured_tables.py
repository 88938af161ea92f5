"""Every table of a measurement through the public functions: the corpus is counted as brute force counts it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

import biasspark
from biasspark import ConfigError, MeasuredCorpus
from biasspark.tables.schemas import LABEL_BALANCE, PINNED_AUC, SCORE_HISTOGRAMS, TEMPLATE_SCORES, Table
from tests.fixtures.edge_case_corpus import (
    LENGTHS,
    TRIALS,
    EdgeCases,
    assert_rows,
    edge_cases,
    frame_of,
    is_crossed,
    make_rows,
    measure_on_spark,
    measures,
)
from tests.oracle import optional_metrics as oracle

SAMPLED = ("trials", "sampled_mean", "sampled_sd")
Rows = dict[tuple[Any, ...], dict[str, Any]]


def rows_of(measured: MeasuredCorpus, table: Table) -> Rows:
    rows = [row.asDict() for row in measured.table(table).collect()]
    return {tuple(row[name] for name in table.key_columns): row for row in rows}


def assert_counted(measured: MeasuredCorpus, unannotated: str) -> None:
    """Assert that every bit of every table is what follows from counting all pairs of rows."""
    for table, rows in edge_cases(unannotated).tables().items():
        expected = {tuple(row[name] for name in table.key_columns): row for row in rows.to_pylist()}
        found = rows_of(measured, table)
        for row in (*found.values(), *expected.values()) if table == PINNED_AUC else ():
            for name in SAMPLED:
                row.pop(name)
        if table == SCORE_HISTOGRAMS:  # the edges of bins are equal parts, to the last bits
            assert_rows(found.values(), expected.values(), table)
        else:
            assert found == expected, table.name


@pytest.fixture(scope="module")
def golden(spark_session: SparkSession) -> MeasuredCorpus:
    return measure_on_spark(spark_session, pinned_auc=TRIALS)


def test_every_table_follows_from_all_pairs_of_rows(golden: MeasuredCorpus) -> None:
    assert_counted(golden, "exclude")
    assert {row["trials"] for row in rows_of(golden, PINNED_AUC).values()} == {TRIALS}


@pytest.mark.parametrize(("engine", "ranges"), [("blocks", 1), ("windows", 3)])
def test_no_bit_depends_on_engine_ranges_or_partitions(spark: SparkSession, engine: str, ranges: int) -> None:
    """And with unknown annotations in the background."""
    assert_counted(measure_on_spark(spark, "background", 1, engine=engine, ranges=ranges), "background")


def test_a_table_is_named_by_its_name(golden: MeasuredCorpus) -> None:
    assert golden.table("bias_metrics").count() == golden.bias_metrics().count()
    assert golden.table("template_scores").count() == golden.template_scores().count()
    for name in ("bias_metric", "auc_crosses"):
        with pytest.raises(ConfigError, match="no such table"):
            golden.table(name)


# ---- label balance and templates


def expected_balance(
    meaning: EdgeCases, lengths: list[int | None] | None, edges: tuple[int, ...]
) -> list[dict[str, Any]]:
    singles = {name: inside for name, inside in meaning.identities.items() if not is_crossed(name)}
    return [
        {"identity": name, "bucket": bucket} | row
        for name, inside in ({"(overall)": np.ones(len(meaning.rows))} | singles).items()
        for bucket, row in oracle.label_balance(meaning.label, lengths, inside, edges).items()
    ]


def test_balance_by_the_length_of_a_text(golden: MeasuredCorpus) -> None:
    """A sign beyond the basic plane counts as one; texts that are null have no length and stand in (all) alone."""
    meaning = edge_cases()
    lengths = [None if text is None else len(text) for text in meaning.column("text")]
    expected = expected_balance(meaning, lengths, LENGTHS)
    assert_rows(rows_of(golden, LABEL_BALANCE).values(), expected, LABEL_BALANCE)
    plans = {(row["identity"], row["bucket"]): row["n_negatives_to_add"] for row in expected}
    assert any(plans.values())
    assert plans["gay", "200-209"] is None


@pytest.mark.parametrize("length", ["length", None])
def test_balance_without_models_by_published_bins_or_none(spark: SparkSession, length: str | None) -> None:
    """All labeled rows count, scored or not."""
    meaning, asked = edge_cases(), measures()
    kept = {name: asked[name] for name in ("label", "label_threshold", "identities")}
    kept |= {"length": length} if length else {}
    found = [row.asDict() for row in biasspark.label_balance(frame_of(spark, make_rows()), **kept).collect()]
    edges = (20, 60, 180, 540, 1620, 4860) if length else ()
    assert_rows(found, expected_balance(meaning, meaning.column("length") if length else None, edges), LABEL_BALANCE)


def test_template_scores(golden: MeasuredCorpus) -> None:
    """Of the rows that count for the model, whatever their slice; one row has no standard deviation."""
    expected = [
        {"model": case.model, "template": template, "identity": identity} | row
        for case in edge_cases().cases
        if case.slice == "all"
        for identity, inside in ({"(overall)": np.ones(len(case.score))} | case.singles).items()
        for template, row in oracle.template_scores(case.template, case.score, inside).items()
    ]
    assert None in {row["sd_score"] for row in expected}
    assert not {"unscored", None} & {row["template"] for row in expected}
    rows = [row.asDict() for row in golden.template_scores().collect()]
    assert_rows(rows, expected, TEMPLATE_SCORES)
    keys = [(row["model"], row["template"], row["identity"]) for row in rows]
    assert keys == sorted(keys)


@pytest.mark.parametrize(
    ("scores", "mean", "sd"),
    [
        pytest.param([-1.5e308, 1.5e308] * 2, 0, 1.5e308 * (4 / 3) ** 0.5, id="sums pass the largest double"),
        pytest.param([2.0**53, 2.0**53 + 2, 2.0**53 + 2], 2.0**53, (4 / 3) ** 0.5, id="no double is the mean"),
        pytest.param([0.1] * 3, 0.1, 0, id="equal"),
    ],
)
def test_template_scores_of_doubles_at_their_limits(
    spark: SparkSession, scores: list[float], mean: float, sd: float
) -> None:
    rows = [(score, number > 0, True, "t") for number, score in enumerate(scores)]
    corpus = spark.createDataFrame(rows, "score DOUBLE, label BOOLEAN, inside BOOLEAN, template STRING")
    asked: dict[str, Any] = {"models": ["score"], "label": "label", "identities": ["inside"], "template": "template"}
    for row in biasspark.template_scores(corpus, **asked).collect():
        assert row["mean_score"] == pytest.approx(mean, rel=1e-12)
        assert row["sd_score"] == pytest.approx(sd, rel=1e-12, abs=0)


def test_terms_ignore_case_as_python_does(spark: SparkSession) -> None:
    """Letters of which engines disagree: dotless i, sharp s, ligatures, signs that are letters, such as kelvin."""
    letters = list("aiI\u0130\u0131sS\u017fkK\u212aßẞΐ\u1fd3ΰ\u1fe3ﬅﬆσςΣ")
    rows = [(n % 2, n / 7, letter) for n, letter in enumerate(letters * 2)]
    identities = {"terms": {"column": "text", "list": letters}}
    corpus = spark.createDataFrame(rows, "label INT, score DOUBLE, text STRING")
    scores = biasspark.template_scores(corpus, models="score", label="label", identities=identities, template="text")
    pairs = {(row["identity"], row["template"]) for row in scores.collect()} - {("(overall)", text) for text in letters}
    assert pairs == {(term, text) for term in letters for text in letters if re.match(term, text, re.IGNORECASE)}


# ---- thresholds and bins


@pytest.mark.parametrize("engine", ["blocks", pytest.param("windows", marks=pytest.mark.slow)])
def test_every_row_is_in_one_bin_where_scores_hardly_differ(spark: SparkSession, engine: str) -> None:
    """Ten rows of one score outside of 0 to 1, or of scores that are neighbours among the numbers."""
    scores = {"five": "5.0D", "less": "-2.0D", "close": "4.999999999999999D + id % 3 * pow(2D, -50)"}
    written = (f"{score} AS {model}" for model, score in scores.items())
    rows = spark.range(10).selectExpr("id % 2 = 0 AS y", "id < 4 AS u", *written)
    asked: dict[str, Any] = {"models": list(scores), "label": "y", "identities": ["u"], "engine": engine}
    for bins in (1, 30):
        totals: dict[tuple[str, str, str], int] = {}
        for row in biasspark.score_histograms(rows, bins=bins, **asked).collect():
            totals[row.model, row.identity, row.cell] = totals.get((row.model, row.identity, row.cell), 0) + row.n_rows
        sizes = {"subgroup_negative": 2, "subgroup_positive": 2, "background_negative": 3, "background_positive": 3}
        expected = {(model, "u", cell): size for model in scores for cell, size in sizes.items()}
        expected |= {(model, "(overall)", cell): 5 for model in scores for cell in ("negative", "positive")}
        assert totals == expected
