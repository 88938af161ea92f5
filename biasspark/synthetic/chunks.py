"""Corpora generated in chunks of rows: any executor can make any chunk, in any order."""

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

CHUNK_ROWS = 20_000
"""Rows of a chunk: an Arrow batch of some megabytes."""

ROWS_PER_PARTITION = 500_000
"""About two seconds of work: much more than the start of a Python task, much less than a run of the main job."""


class Request(Protocol):
    """A corpus to generate. Each row depends on the request alone, not on where or with which others it is made."""

    @property
    def rows(self) -> int:
        """Rows of the corpus."""

    @property
    def seed(self) -> int:
        """The seed of all random bits, a whole number from 0."""

    @property
    def n_chunks(self) -> int:
        """Chunks of the corpus."""

    @property
    def columns(self) -> str:
        """Columns of the corpus, as Spark SQL declares them."""

    def list_faults(self) -> list[str]:
        """Return a message for each argument that is out of range or cannot be used."""

    def make_chunk(self, chunk: int) -> pa.RecordBatch:
        """Make the rows of one chunk, numbered from 0. Runs on the executors."""


@dataclass(frozen=True)
class RowsRequest:
    """The arguments of requests for a number of rows, with ids from 0 to `rows - 1`.

    The same seed, a whole number from 0, gives the same rows at any partitioning and on any machine, and a shorter
    corpus is the beginning of a longer one.
    """

    rows: int
    seed: int

    @property
    def n_chunks(self) -> int:
        """Chunks of consecutive ids. The last may be shorter."""
        return count_chunks(self.rows)

    def ids_of(self, chunk: int) -> Ints:
        """Return the ids of a chunk."""
        return np.arange(chunk * CHUNK_ROWS, min((chunk + 1) * CHUNK_ROWS, self.rows))


def count_chunks(rows: int) -> int:
    """Return the number of chunks of a number of rows."""
    return -(-rows // CHUNK_ROWS)


def check_request(request: Request) -> None:
    """Raise ConfigError with all faults of a request, if it has any."""
    if faults := request.list_faults():
        raise ConfigError(*faults)


def generate(spark: SparkSession, request: Request) -> DataFrame:
    """Generate a corpus on the executors, in any session, classic or Connect.

    A lazy plan of one stage without shuffle. A worker holds one chunk of 20,000 rows at a time, however many rows are
    asked for. Raises ConfigError with all faults of the request.
    """
    check_request(request)
    n_partitions = -(-request.rows // ROWS_PER_PARTITION)
    return map_chunks(spark.range(0, request.n_chunks, 1, n_partitions), request)


def map_chunks(numbers: DataFrame, request: Request) -> DataFrame:
    """Return the rows of the chunks whose numbers are in the first column."""

    def make_chunks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from map(request.make_chunk, batch.column(0).to_pylist())

    return numbers.mapInArrow(make_chunks, request.columns)


def make_table(request: Request) -> pa.Table:
    """Generate a whole corpus in this process, without Spark."""
    return pa.Table.from_batches(map(request.make_chunk, range(request.n_chunks)))
