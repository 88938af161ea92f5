"""Blocks of rows, each made by whichever executor has its number."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from biasspark.arrays import Ints

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BLOCK_ROWS = 20_000
"""Rows of a block: an Arrow batch of some megabytes."""

ROWS_PER_PARTITION = 500_000
"""Two seconds of work: long beside the start of a Python task, short beside a night."""


def number_blocks(spark: SparkSession, n_blocks: int, rows: int) -> DataFrame:
    """Return the numbers from 0 to `n_blocks - 1` in a column `id`, in as many partitions as the rows are worth."""
    return spark.range(0, n_blocks, 1, -(-rows // ROWS_PER_PARTITION))


def ids_of_block(block: int, rows: int) -> Ints:
    """Return the ids of a block of a corpus whose ids run from 0 to `rows - 1`; the last block may be a shorter one."""
    return np.arange(block * BLOCK_ROWS, min((block + 1) * BLOCK_ROWS, rows))


def map_ids(spark: SparkSession, rows: int, make_block: Callable[[int], pa.RecordBatch], columns: str) -> DataFrame:
    """Make a corpus whose ids run from 0 to `rows - 1`, as `map_blocks` does."""
    return map_blocks(number_blocks(spark, -(-rows // BLOCK_ROWS), rows), make_block, columns)


def map_blocks(numbers: DataFrame, make_block: Callable[[int], pa.RecordBatch], columns: str) -> DataFrame:
    """Turn block numbers, in the first column, into rows: a lazy plan without shuffle.

    Parameters
    ----------
    make_block
        Gives the rows of one block, from its number alone. It runs on the executors.
    columns
        The columns of its batches, as Spark SQL declares them.
    """

    def make_blocks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from map(make_block, batch.column(0).to_pylist())

    return numbers.mapInArrow(make_blocks, columns)
