"""Corpora generated from random bits in chunks of rows: any executor can make any chunk, in any order."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from biasspark.arrays import Floats, Ints
from biasspark.errors import ConfigError
from biasspark.text import show_value

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CHUNK_ROWS = 20_000
"""The rows of a chunk, an Arrow batch of a few megabytes."""

ROWS_PER_PARTITION = 500_000
"""About two seconds of work: much longer than the start of a Python task, much shorter than the main job."""

WORD = re.compile(r"\w+")


class Request(Protocol):
    """A corpus to generate. Each row depends only on the request, not on the machine or the partitioning."""

    @property
    def rows(self) -> int:
        """The number of rows of the corpus."""

    @property
    def n_chunks(self) -> int:
        """The number of chunks of the corpus."""

    @property
    def columns(self) -> str:
        """The columns of the corpus as DDL of Spark SQL."""

    def list_faults(self) -> list[str]:
        """Return a message for each argument that is out of range or cannot be used."""

    def make_chunk(self, chunk: int) -> pa.RecordBatch:
        """Make the rows of one chunk, numbered from 0. Runs on the executors."""


@dataclass(frozen=True)
class RowsRequest:
    """A request for a number of rows, with ids from 0 to `rows - 1`.

    The same seed, an integer from 0, gives the same rows with any partitioning and on any machine, and a shorter corpus
    is the beginning of a longer one.
    """

    rows: int
    seed: int

    @property
    def n_chunks(self) -> int:
        """The number of chunks of consecutive ids. The last may be shorter."""
        return -(-self.rows // CHUNK_ROWS)

    def ids_of(self, chunk: int) -> Ints:
        """Return the ids of a chunk."""
        return np.arange(chunk * CHUNK_ROWS, min((chunk + 1) * CHUNK_ROWS, self.rows))


def check_request(request: Request) -> None:
    """Raise `ConfigError` with all faults of a request, if it has any."""
    if faults := request.list_faults():
        raise ConfigError(*faults)


def generate(spark: SparkSession, request: Request) -> DataFrame:
    """Generate a corpus on the executors, in any session, classic or Connect.

    Lazy, with one stage and no shuffle. A worker holds one chunk of 20,000 rows at a time. Raises `ConfigError` with
    all faults of the request.
    """
    check_request(request)

    def make_chunks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from map(request.make_chunk, batch.column(0).to_pylist())

    n_partitions = -(-request.rows // ROWS_PER_PARTITION)
    return spark.range(0, request.n_chunks, 1, n_partitions).mapInArrow(make_chunks, request.columns)


def make_table(request: Request) -> pa.Table:
    """Generate a whole corpus in this process, without Spark."""
    return pa.Table.from_batches(map(request.make_chunk, range(request.n_chunks)))


def bit_stream(seed: int, *key: int) -> np.random.Philox:
    """Return the stream of random bits of a key, independent of the streams of all other keys.

    The seed and the key, which identifies the purpose of the bits, are integers from 0. Use only `random_raw` of the
    stream: numpy keeps the 64-bit output of the Philox counter stable across versions and machines.
    """
    return np.random.Philox(np.random.SeedSequence(seed, spawn_key=key))


def to_units(bits: npt.NDArray[np.uint64]) -> Floats:
    """Return uniform numbers in [0, 1) of 53 random bits each."""
    units: Floats = (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return units


def list_number_faults(rows: int, seed: int) -> list[str]:
    """Return the faults of a number of rows and a seed."""
    faults = []
    if rows < 1:
        faults.append(f"rows: {rows}. A corpus has at least one row. Ask for 1 or more.")
    if seed < 0:
        faults.append(f"seed: {seed}. A seed is a whole number from 0. Leave out the sign.")
    return faults


def list_term_faults(terms: Sequence[str], columns: Collection[str], words: Collection[str]) -> list[str]:
    """Return the faults of identity terms, which must not be other columns or contain words of the generated texts.

    The given columns and words are in lower case.
    """
    faults = [] if terms else ["terms: none. A sentence is about an identity. Name at least one."]
    seen = set(columns)
    for term in terms:
        clash = set(words).intersection(WORD.findall(term.lower()))
        if term != " ".join(term.split()) or not term:
            faults.append(f"terms: {show_value(term)}. A term is words with single spaces between. Correct it.")
        if term.lower() in seen:
            faults.append(f"terms: {show_value(term)}. Columns must differ in more than case. Remove or rename it.")
        if clash:
            faults.append(
                f"terms: {show_value(term)}. The sentences use {show_value(min(clash))} themselves, so they would "
                "mention the term where they are about another. Leave the word out, or the term."
            )
        seen.add(term.lower())
    return faults
