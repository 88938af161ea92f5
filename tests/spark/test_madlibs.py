"""Templated sentences on Spark: their columns, the terms that the job finds in them, and the cost of their scores."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import redirect_stdout
from typing import TYPE_CHECKING

import pyspark.sql.functions as F
import pytest

import biasspark
from biasspark.config import parse_measures
from biasspark.corpus.examples import build_codebook
from biasspark.corpus.survey import Survey
from biasspark.corpus.templates import template_scores
from biasspark.expressions.sums import add_up
from biasspark.report.narrowing import mean_over_templates
from biasspark.synthetic.blocks import generate
from biasspark.synthetic.madlibs import MadlibsRequest
from biasspark.synthetic.madlibs_wording import IDENTITY_TERMS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TERMS = ("gay", "african", "african american", "american", "Middle Eastern", "d'or `odd`, b.c")


def test_corpus_has_a_column_for_each_term(spark: SparkSession) -> None:
    corpus = generate(spark, MadlibsRequest(100, 1))
    assert corpus.dtypes == [
        *(("id", "bigint"), ("comment_text", "string"), ("label", "boolean"), ("template", "string")),
        *((term, "int") for term in IDENTITY_TERMS),
    ]


@pytest.mark.slow
def test_job_finds_the_terms_where_their_columns_are_1(spark: SparkSession) -> None:
    """Also those with spaces, quotes and dots in their names, and terms within terms."""
    corpus = generate(spark, MadlibsRequest(1_200, 5, TERMS)).withColumn("score", F.length("comment_text"))
    by_column, by_term = (
        biasspark.bias_metrics(corpus, models=["score"], label="label", identities=identities)
        for identities in ({"columns": TERMS}, {"terms": {"column": "comment_text", "list": list(TERMS)}})
    )
    found = by_column.orderBy("identity").collect()
    assert found == by_term.orderBy("identity").collect()
    sizes = {row.identity: (row.n_subgroup_negative, row.n_subgroup_positive) for row in found}
    assert {name: sizes[name] for name in TERMS} == dict.fromkeys(TERMS, (100, 100)) | dict.fromkeys(
        ("african", "american"), (200, 200)
    )


def list_lambdas(frame: DataFrame) -> Iterator[str]:
    """Give the text of each lambda of the optimized plan: of inner ones, too."""
    text = io.StringIO()
    with redirect_stdout(text):
        frame.explain(extended=True)
    _, _, optimized = text.getvalue().partition("== Optimized Logical Plan ==")
    plan, _, _ = optimized.partition("== Physical Plan ==")
    _, *parts = plan.split("lambdafunction(")
    for place in range(len(parts)):
        rest, depth = "lambdafunction(".join(parts[place:]), 1
        for end, character in enumerate(rest):
            depth += {"(": 1, ")": -1}.get(character, 0)
            if depth == 0:
                yield rest[:end]
                break


def count_nested(frame: DataFrame) -> tuple[int, int]:
    """Count the lambdas of a plan, and those that add up an array for each of their entries."""
    lambdas = list(list_lambdas(frame))
    return len(lambdas), sum("aggregate(" in one for one in lambdas)


def test_a_sum_within_a_lambda_is_counted(spark: SparkSession) -> None:
    """Here is one: what Spark makes of a mean that the squares about it name."""
    means = spark.range(2).select(F.collect_list("id").alias("x")).withColumn("mean", add_up("x") / F.size("x"))
    squares = means.select(add_up("x", lambda value: (value - F.col("mean")) ** 2))
    assert count_nested(squares)[1] == 1


def test_deviations_add_up_no_mean_for_each_score(spark: SparkSession) -> None:
    """The time would be the square of the scores of a template: hours for the 72,000 sentences of one."""
    asked = {"models": ["score"], "label": {"column": "label"}, "identities": ["gay"]}
    measures = parse_measures({**asked, "templates": {"column": "template"}})
    corpus = spark.createDataFrame([(True, 0.5, 1, "a")], "label BOOLEAN, score DOUBLE, gay INT, template STRING")
    scores = template_scores(corpus, measures, build_codebook(measures, Survey(1, {}, ())), "template")
    n_lambdas, n_nested = count_nested(scores.select("sd_score"))
    assert n_lambdas >= 4
    assert n_nested == 0
    means = mean_over_templates(scores, ["gay"])
    for name in ("score_deviation", "departure_deviation"):
        n_lambdas, n_nested = count_nested(means.select(name))
        assert n_lambdas >= 4
        assert n_nested == 0
