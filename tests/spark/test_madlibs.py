"""Templated sentences on Spark: their columns, and the terms that the job finds in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import biasspark
from biasspark.synthetic.blocks import generate
from biasspark.synthetic.madlibs import MadlibsRequest
from biasspark.synthetic.madlibs_wording import IDENTITY_TERMS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
    import pyspark.sql.functions as F

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
