"""Templated sentences on Spark: the terms that the job finds in them, and the cost of their scores by template."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import redirect_stdout

import pyspark.sql.functions as F
import pytest
from pyspark.sql import DataFrame, SparkSession

import biasspark
from biasspark.config import parse_measures
from biasspark.corpus.encode import build_encoding
from biasspark.corpus.survey import Survey
from biasspark.corpus.template_scores import template_scores
from biasspark.synthetic.chunks import generate
from biasspark.synthetic.madlibs import MadlibsRequest

TERMS = ("gay", "african", "african american", "american", "Middle Eastern", "d'or `odd`, b.c")


def test_job_finds_the_terms_where_their_columns_are_1(spark: SparkSession) -> None:
    """Also those with spaces, quotes and dots in their names, and terms within terms."""
    corpus = generate(spark, MadlibsRequest(1_200, 5, TERMS)).withColumn("score", F.length("comment_text"))
    by_column, by_term = (
        biasspark.bias_metrics(corpus, models=["score"], label="label", identities=identities)
        for identities in ({"columns": TERMS}, {"terms": {"column": "comment_text", "list": list(TERMS)}})
    )
    rows = by_column.orderBy("identity").collect()
    assert rows == by_term.orderBy("identity").collect()
    sizes = {row.identity: (row.n_subgroup_negative, row.n_subgroup_positive) for row in rows}
    nested = dict.fromkeys(("african", "american"), (200, 200))
    assert {name: sizes[name] for name in TERMS} == dict.fromkeys(TERMS, (100, 100)) | nested


def list_lambdas(frame: DataFrame) -> Iterator[str]:
    """Yield the text of each lambda of the optimized plan, inner ones included."""
    text = io.StringIO()
    with redirect_stdout(text):
        frame.explain(extended=True)
    optimized = text.getvalue().partition("== Optimized Logical Plan ==")[2].partition("== Physical Plan ==")[0]
    _, *parts = optimized.split("lambdafunction(")
    for number in range(len(parts)):
        rest, depth = "lambdafunction(".join(parts[number:]), 1
        for end, character in enumerate(rest):
            depth += {"(": 1, ")": -1}.get(character, 0)
            if depth == 0:
                yield rest[:end]
                break


def count_nested(frame: DataFrame) -> tuple[int, int]:
    """Return the number of lambdas of a plan, and of those that aggregate an array for each entry of another."""
    lambdas = list(list_lambdas(frame))
    return len(lambdas), sum("aggregate(" in one for one in lambdas)


@pytest.mark.spark("reads a plan of Spark")
def test_deviations_compute_no_mean_for_each_score(spark: SparkSession) -> None:
    """The time would grow with the square of the scores of a template: hours for the 72,000 sentences of one."""
    total = F.aggregate("x", F.lit(0.0), lambda total, value: total + value)
    means = spark.range(2).select(F.collect_list("id").alias("x")).withColumn("mean", total / F.size("x"))
    squares = means.select(F.aggregate("x", F.lit(0.0), lambda total, value: total + (value - F.col("mean")) ** 2))
    assert count_nested(squares)[1] == 1  # which is what must not happen below
    asked = {"models": ["score"], "label": {"column": "label"}, "identities": ["gay"]}
    measures = parse_measures({**asked, "templates": {"column": "template"}})
    corpus = spark.createDataFrame([(True, 0.5, 1, "a")], "label BOOLEAN, score DOUBLE, gay INT, template STRING")
    scores = template_scores(corpus, measures, build_encoding(measures, Survey(1, {}, ())), "template")
    n_lambdas, n_nested = count_nested(scores.select("sd_score"))
    assert n_lambdas >= 4
    assert n_nested == 0
