"""Comments that a mitigation plan asks for, on Spark: the same rows however the work is cut up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from biasspark.synthetic.blocks import BLOCK_ROWS
from biasspark.synthetic.imbalanced import TermCell, cell_block, cell_comments

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def rows_of(frame: DataFrame, *order: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in frame.orderBy(*order).collect()]


def rows_in(blocks: list[pa.RecordBatch]) -> list[tuple[object, ...]]:
    return list(zip(*(column.to_pylist() for column in pa.Table.from_batches(blocks).columns), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("partitions", [1, 3])
def test_cells_are_made_whole_wherever_they_are(spark: SparkSession, partitions: int) -> None:
    cells = [TermCell("gay", 20, 59, BLOCK_ROWS + 1), TermCell("gay", 60, 179, 4), TermCell("old", 20, 59, 0)]
    frame = spark.createDataFrame(cells, "term STRING, length_low INT, length_high INT, n_rows BIGINT")
    found = cell_comments(frame.repartition(partitions), 3)
    assert found.count() == BLOCK_ROWS + 5
    parts = [cell_block(cells[0], 0, 3), cell_block(cells[0], BLOCK_ROWS, 3), cell_block(cells[1], 0, 3)]
    assert rows_of(found, "id", "comment_text") == sorted(rows_in(parts))
