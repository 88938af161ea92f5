"""Templated sentences on Spark: the same rows however the work is cut up, and the terms that the job finds in them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import biasspark
from biasspark.errors import ConfigError
from biasspark.synthetic.blocks import BLOCK_ROWS, map_blocks
from biasspark.synthetic.madlibs import MadlibsRequest, madlibs_block, madlibs_columns, madlibs_corpus
from biasspark.synthetic.madlibs_wording import IDENTITY_TERMS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TERMS = ("gay", "african", "african american", "american", "Middle Eastern", "d'or `odd`, b.c")
REQUEST = MadlibsRequest(rows=2 * BLOCK_ROWS + 5, seed=11, terms=TERMS[:4])


def ordered(corpus: DataFrame) -> list[tuple[object, ...]]:
    return [tuple(row) for row in corpus.orderBy("id").collect()]


def from_the_kernel(request: MadlibsRequest) -> list[tuple[object, ...]]:
    blocks = [madlibs_block(block, request) for block in range(-(-request.rows // BLOCK_ROWS))]
    table = pa.Table.from_batches(blocks)
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("partitions", [1, 5])
def test_rows_do_not_depend_on_partitions(spark: SparkSession, partitions: int) -> None:
    # From the last block to the first, and some partitions without any.
    blocks = spark.range(2, -1, -1, partitions)
    found = map_blocks(blocks, partial(madlibs_block, request=REQUEST), madlibs_columns(REQUEST.terms))
    assert ordered(found) == from_the_kernel(REQUEST)


def test_corpus_has_a_column_for_each_term(spark: SparkSession) -> None:
    corpus = madlibs_corpus(spark, 100, 1)
    assert corpus.dtypes == [
        *(("id", "bigint"), ("comment_text", "string"), ("label", "boolean"), ("template", "string")),
        *((term, "int") for term in IDENTITY_TERMS),
    ]
    assert ordered(corpus) == from_the_kernel(MadlibsRequest(100, 1))


@pytest.mark.slow
def test_job_finds_the_terms_where_their_columns_are_1(spark: SparkSession) -> None:
    """Also those with spaces, quotes and dots in their names, and terms within terms."""
    import pyspark.sql.functions as F

    corpus = madlibs_corpus(spark, 1_200, 5, terms=TERMS).withColumn("score", F.length("comment_text"))
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


def test_wrong_arguments_are_refused_before_any_work(spark: SparkSession) -> None:
    with pytest.raises(ConfigError, match=r'^rows: 0\. .*\nterms: "teacher"\. '):
        madlibs_corpus(spark, 0, 1, terms=["gay", "teacher"])
