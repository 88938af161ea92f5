"""Corpora made block by block, each by whichever executor has its number."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from biasspark.arrays import Ints
from biasspark.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BLOCK_ROWS = 20_000
"""Rows of a block: an Arrow batch of some megabytes."""

ROWS_PER_PARTITION = 500_000
"""Two seconds of work: long beside the start of a Python task, short beside a night."""


class Request(Protocol):
    """What is asked of a generator: every row follows from it alone, wherever and together with whatever it is made."""

    @property
    def rows(self) -> int:
        """Rows of the corpus."""

    @property
    def n_blocks(self) -> int:
        """Blocks that it is made in."""

    @property
    def columns(self) -> str:
        """Its columns, as Spark SQL declares them."""

    def find_faults(self) -> list[str]:
        """Name each argument that is out of range, and whatever else cannot be generated."""

    def make_block(self, block: int) -> pa.RecordBatch:
        """Make the rows of one block, given its number from 0. It runs on the executors."""


@dataclass(frozen=True)
class RowsRequest:
    """What requests for a number of rows share.

    Attributes
    ----------
    rows
        Number of rows. Ids run from 0 to `rows - 1`.
    seed
        A whole number from 0. The same seed gives the same rows, at any partitioning and on any machine, and a shorter
        corpus is the beginning of a longer one.
    """

    rows: int
    seed: int

    @property
    def n_blocks(self) -> int:
        """Blocks of consecutive ids, the last of which may be a shorter one."""
        return count_blocks(self.rows)

    def ids_of(self, block: int) -> Ints:
        """Return the ids of a block."""
        return np.arange(block * BLOCK_ROWS, min((block + 1) * BLOCK_ROWS, self.rows))


def count_blocks(rows: int) -> int:
    """Return how many blocks so many rows take up."""
    return -(-rows // BLOCK_ROWS)


def check_request(request: Request) -> None:
    """Refuse what cannot be generated.

    Raises
    ------
    ConfigError
        With all its faults.
    """
    if faults := request.find_faults():
        raise ConfigError(*faults)


def generate(spark: SparkSession, request: Request) -> DataFrame:
    """Make a corpus on the executors, once its request is checked.

    Parameters
    ----------
    spark
        Any session, classic or Connect.
    request
        Which corpus. Its class says what the columns hold.

    Returns
    -------
    DataFrame
        Of `request.columns`: a lazy plan of one stage without shuffle. A worker holds one block of 20,000 rows at a
        time, however many rows are asked for.

    Raises
    ------
    ConfigError
        Naming each argument that is out of range, and whatever else cannot be generated.
    """
    check_request(request)
    n_partitions = -(-request.rows // ROWS_PER_PARTITION)
    return map_blocks(spark.range(0, request.n_blocks, 1, n_partitions), request)


def map_blocks(numbers: DataFrame, request: Request) -> DataFrame:
    """Turn the numbers of blocks, in the first column, into their rows."""

    def make_blocks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from map(request.make_block, batch.column(0).to_pylist())

    return numbers.mapInArrow(make_blocks, request.columns)


def make_table(request: Request) -> pa.Table:
    """Make a whole corpus here and now, without Spark."""
    return pa.Table.from_batches(map(request.make_block, range(request.n_blocks)))
