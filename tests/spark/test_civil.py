"""The synthetic comment corpus on Spark: the same rows however the work is cut up."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from biasspark.errors import ConfigError
from biasspark.synthetic.blocks import BLOCK_ROWS, map_blocks
from biasspark.synthetic.civil import civil_corpus
from biasspark.synthetic.civil_rows import CivilShape, civil_block, civil_columns
from biasspark.synthetic.civil_shape import IDENTITY_NAMES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SHAPE = CivilShape(rows=2 * BLOCK_ROWS + 5, seed=11)
COMPARED = ["id", "created_date", "target", "female", "muslim", "comment_length", "toxicity_1", "toxicity_6"]


def ordered(corpus: DataFrame) -> list[tuple[object, ...]]:
    return [tuple(row) for row in corpus.select(COMPARED).orderBy("id").collect()]


def from_the_kernel(shape: CivilShape) -> list[tuple[object, ...]]:
    blocks = [civil_block(block, shape) for block in range(-(-shape.rows // BLOCK_ROWS))]
    table = pa.Table.from_batches(blocks).select(COMPARED)
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("partitions", [1, 3, 7])
def test_rows_do_not_depend_on_partitions(spark: SparkSession, partitions: int) -> None:
    # From the last block to the first, and some partitions without any.
    blocks = spark.range(2, -1, -1, partitions)
    found = map_blocks(blocks, partial(civil_block, shape=SHAPE), civil_columns(SHAPE.text))
    assert ordered(found) == from_the_kernel(SHAPE)


def test_corpus_is_that_of_the_kernel(spark: SparkSession) -> None:
    corpus = civil_corpus(spark, SHAPE.rows, SHAPE.seed)
    assert ordered(corpus) == from_the_kernel(SHAPE)
    assert corpus.select("id").distinct().count() == SHAPE.rows


def test_columns_and_types(spark: SparkSession) -> None:
    names = ["id", "created_date", "target", *IDENTITY_NAMES, "comment_length", "toxicity_1", "toxicity_6"]
    plain = civil_corpus(spark, 10, 1)
    assert plain.columns == names
    assert dict(plain.dtypes) == dict.fromkeys(names, "double") | {
        "id": "bigint",
        "created_date": "date",
        "comment_length": "int",
    }
    assert civil_corpus(spark, 10, 1, text=True).dtypes == [*plain.dtypes, ("comment_text", "string")]
    assert civil_columns(text=True) == f"{civil_columns(text=False)}, comment_text STRING"


def test_annotations_are_all_there_or_all_missing(spark: SparkSession) -> None:
    import pyspark.sql.functions as F

    def annotated(unannotated: float) -> list[int]:
        corpus = civil_corpus(spark, BLOCK_ROWS, 1, unannotated=unannotated)
        mentions = [F.count_if(F.col(name) >= 0.5) for name in IDENTITY_NAMES]
        known = [F.count(name) for name in IDENTITY_NAMES]
        row = corpus.agg(*known, *mentions).first()
        assert row is not None
        return list(row)

    every, quarter = annotated(0.0), annotated(0.75)
    identities = len(IDENTITY_NAMES)
    assert every[:identities] == [BLOCK_ROWS] * identities
    assert len(set(quarter[:identities])) == 1
    assert abs(quarter[0] / BLOCK_ROWS - 0.25) < 0.02
    assert quarter[identities:] == every[identities:]


def test_text(spark: SparkSession) -> None:
    import pyspark.sql.functions as F

    corpus = civil_corpus(spark, 2_000, 1, text=True)
    assert corpus.where(F.length("comment_text") != F.col("comment_length")).isEmpty()
    gay = F.col("comment_text").rlike(r"(?i)\b(gay|lesbian|homosexual)\b")
    assert corpus.where(gay != (F.coalesce("homosexual_gay_or_lesbian", F.lit(0.0)) >= 0.5)).isEmpty()


def test_wrong_arguments_are_refused_before_any_work(spark: SparkSession) -> None:
    with pytest.raises(ConfigError, match=r"^rows: 0\. .*\nunannotated: 1\.5\. "):
        civil_corpus(spark, 0, 1, unannotated=1.5)
