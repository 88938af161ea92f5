"""The imbalanced corpus on Spark: the same rows however the work is cut up."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from biasspark.errors import ConfigError
from biasspark.synthetic.blocks import BLOCK_ROWS, map_blocks
from biasspark.synthetic.imbalanced import (
    COLUMNS,
    ImbalancedRequest,
    TermCell,
    cell_block,
    cell_comments,
    imbalanced_block,
    imbalanced_corpus,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

REQUEST = ImbalancedRequest(rows=BLOCK_ROWS + 5, seed=11)


def rows_of(frame: DataFrame, *order: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in frame.orderBy(*order).collect()]


def rows_in(blocks: list[pa.RecordBatch]) -> list[tuple[object, ...]]:
    return list(zip(*(column.to_pylist() for column in pa.Table.from_batches(blocks).columns), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("partitions", [1, 5])
def test_rows_do_not_depend_on_partitions(spark: SparkSession, partitions: int) -> None:
    # From the last block to the first, and some partitions without any.
    found = map_blocks(spark.range(1, -1, -1, partitions), partial(imbalanced_block, request=REQUEST), COLUMNS)
    assert rows_of(found, "id") == rows_in([imbalanced_block(block, REQUEST) for block in (0, 1)])


def test_columns_are_those_that_a_classifier_needs(spark: SparkSession) -> None:
    corpus = imbalanced_corpus(spark, 50, 11)
    assert corpus.dtypes == [("id", "bigint"), ("comment_text", "string"), ("label", "boolean"), ("term", "string")]
    assert rows_of(corpus, "id") == rows_in([imbalanced_block(0, REQUEST)])[:50]


@pytest.mark.slow
@pytest.mark.parametrize("partitions", [1, 3])
def test_cells_are_made_whole_wherever_they_are(spark: SparkSession, partitions: int) -> None:
    cells = [TermCell("gay", 20, 59, BLOCK_ROWS + 1), TermCell("gay", 60, 179, 4), TermCell("old", 20, 59, 0)]
    frame = spark.createDataFrame(cells, "term STRING, length_low INT, length_high INT, n_rows BIGINT")
    found = cell_comments(frame.repartition(partitions), 3)
    assert found.count() == BLOCK_ROWS + 5
    parts = [cell_block(cells[0], 0, 3), cell_block(cells[0], BLOCK_ROWS, 3), cell_block(cells[1], 0, 3)]
    assert rows_of(found, "id", "comment_text") == sorted(rows_in(parts))


def test_wrong_arguments_are_refused_before_any_work(spark: SparkSession) -> None:
    with pytest.raises(ConfigError, match=r'^rows: 0\. .*\nimbalanced: "tall"\. '):
        imbalanced_corpus(spark, 0, 1, imbalanced={"tall": 0.1})
