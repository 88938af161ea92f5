"""The skeleton of every ranking job: cut rows into parts, measure the parts of each range, combine the counts.

    cut_examples    rows --cut--> parts
    count_ranges    --one shuffle by (model, slice, range)--> ranges --measure--> counts of ranges
    combine_counts  --small shuffle by (model, slice, chunk)--> groups --combine--> counts of the score line --> driver

Every job takes EXAMPLES, as their `Encoding` describes them, and the *boundaries* of each model: ascending scores that
cut its score line into *ranges*, in each slice. Range r holds the scores in ``[boundaries[r - 1], boundaries[r])``.
They balance the work: no result depends on boundaries, partitions or the order of rows. A *chunk* is a part of the
counts, such as those of some identities, so that the counts of all ranges fit a worker. `cut`, `measure` and `combine`
are functions without Spark, and only `cut` uses Arrow: see ``biasspark.ranking.kernels``. Parts and counts are objects
of any type, sent between processes as the bytes of `codec.dump`; bytes are sent unchanged. docs/how-it-works.md says
what a worker holds in memory.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from operator import itemgetter
from typing import Any, TypeAlias
from zipimport import zipimporter

import pyarrow as pa
from pyspark.sql import DataFrame

from biasspark.corpus.encoding import Encoding
from biasspark.ddl import arrow_schema, to_batch
from biasspark.ranking.kernels.codec import dump, load
from biasspark.ranking.task_rows import Batches, Key, Part, Parts, TaskRows, hold_rows
from biasspark.session import is_embedded

GROUPS_A_TASK = 6
"""A Python task costs at least about 0.2 s, so several groups share one."""

_BATCH_BYTES = 16 << 20
_RANGE_KEY, _CHUNK_KEY = ("model", "slice", "score_range"), ("model", "slice", "chunk")
_PARTS = "model INT, slice INT, score_range INT, kind INT, data BINARY"
_COUNTS = "model INT, slice INT, score_range INT, chunk INT, data BINARY"
_COMBINED = "model INT, slice INT, chunk INT, data BINARY"

CountsRow: TypeAlias = tuple[int, int, int, int, Any]
"""The counts of one range: model, slice, range, chunk, data."""

Cut: TypeAlias = Callable[[TaskRows], Iterable[Part]]
"""Cuts some rows of a task into parts."""
Measure: TypeAlias = Callable[[Key, Parts], Iterable[tuple[int, Any]]]
"""Maps the (model, slice, range) and the parts of a range to chunks of counts; negative chunks are not combined."""
Combine: TypeAlias = Callable[[Key, Iterator[Any]], Any]
"""Maps a (model, slice, chunk) and its counts by range, by ascending score, to counts of the whole score line."""


def cut_examples(examples: DataFrame, encoding: Encoding, cut: Cut, *more_columns: str) -> DataFrame:
    """Return the parts of EXAMPLES, from which additional columns may be read. Lazy; no shuffle."""
    return cut_batches(
        examples.select(*encoding.read_columns, *more_columns),
        lambda batches: (part for rows in hold_rows(batches, encoding) for part in cut(rows)),
    )


def cut_batches(rows: DataFrame, cut: Callable[[Batches], Iterable[Part]]) -> DataFrame:
    """Cut the batches of each task into parts. Lazy; no shuffle."""
    return rows.mapInArrow(lambda batches: _to_batches(cut(batches), _PARTS), _PARTS)


def count_ranges(
    parts: DataFrame,
    boundaries: Sequence[Sized],
    n_slices: int,
    measure: Measure,
    groups_a_task: int = GROUPS_A_TASK,
) -> DataFrame:
    """Return the counts of every range, ``model, slice, score_range, chunk, data``. Lazy; one shuffle.

    `measure` is stateless, and everything it refers to is sent to the workers. For the others see `gather_ranges`.
    """

    def rows(batches: Batches) -> Iterator[CountsRow]:
        return ((*key, *chunk) for key, parts in read_ranges(batches) for chunk in measure(key, parts))

    return map_to_counts(gather_ranges(parts, boundaries, n_slices, groups_a_task), rows)


def map_to_counts(rows: DataFrame, measure: Callable[[Batches], Iterator[CountsRow]]) -> DataFrame:
    """Measure the batches of each task: return ``model, slice, score_range, chunk, data``. Lazy."""
    return rows.mapInArrow(lambda batches: _to_batches(measure(batches), _COUNTS), _COUNTS)


def gather_ranges(
    parts: DataFrame, boundaries: Sequence[Sized], n_slices: int, groups_a_task: int = GROUPS_A_TASK
) -> DataFrame:
    """Bring the parts of every range together in one task: one shuffle. `boundaries` are of the models in `parts`.

    If the models have equally many ranges, every task of Spark gets as many as any other, and `groups_a_task` at most;
    by the hash of their keys one may get twice as many. Models with fewer ranges leave gaps in the numbers by which
    ranges are distributed, so tasks may differ.
    """
    n_ranges = [len(edges) + 1 for edges in boundaries]
    n_tasks = _count_tasks(parts, n_slices * sum(n_ranges), groups_a_task)
    if is_embedded(parts.sparkSession):
        return parts.repartition(n_tasks, *_RANGE_KEY)
    keys = ",".join(str(unhash(task)) for task in range(n_tasks))
    number = f"(model * {n_slices} + slice) * {max(n_ranges)} + score_range"
    task = f"element_at(cast(split('{keys}', ',') AS ARRAY<INT>), pmod({number}, {n_tasks}) + 1) AS task"
    return parts.selectExpr("*", task).repartition(n_tasks, "task").drop("task")


def unhash(number: int) -> int:
    """Return the INT that Spark hashes to a number below 2^31: by it rows are shuffled to the task of that number.

    The hash is 32-bit Murmur3 with the seed 42, of which each step is undone here: multiplications modulo 2^32,
    rotations, and x ^= x >> n. The task is the hash modulo the number of tasks.
    """
    value = _divide(number ^ number >> 16, 0xC2B2AE35)
    value = _divide(value ^ value >> 13 ^ value >> 26, 0x85EBCA6B)
    value = _divide((value ^ value >> 16 ^ 4) - 0xE6546B64, 5)
    value = _divide(_rotate(value, 19) ^ 42, 0x1B873593)
    value = _divide(_rotate(value, 17), 0xCC9E2D51)
    return value - (value >> 31 << 32)


def _divide(value: int, factor: int) -> int:
    return value * pow(factor, -1, 1 << 32) % (1 << 32)


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) % (1 << 32)


def read_ranges(batches: Batches) -> Iterator[tuple[Key, Parts]]:
    """Yield the key and the parts of each gathered range of a task."""
    for key, rows in _read_groups(batches, (0, 1, 2)):
        parts: dict[int, list[Any]] = {}
        for *_, kind, data in rows:
            parts.setdefault(kind, []).append(load(data))
        yield key, parts


def combine_counts(counts: DataFrame, combine: Combine, n_groups: int) -> dict[Key, Any]:
    """Return the combined counts by (model, slice, chunk), about `n_groups` of them; negative chunks are left out.

    Runs one Spark action, with a shuffle of the counts.
    """
    return {key: load(data) for key, data in collect_combined(counts, combine, n_groups).items()}


def collect_combined(counts: DataFrame, combine: Combine, n_groups: int) -> dict[Key, bytes]:
    """Like `combine_counts`, as bytes: of very many counts, the driver loads one chunk at a time."""

    def rows(batches: Batches) -> Iterator[tuple[Any, ...]]:
        for key, group in _read_groups(batches, (0, 1, 3)):
            ranges = sorted(group, key=itemgetter(2))
            yield *key, combine(key, (load(data) for *_, data in ranges))

    gathered = counts.where("chunk >= 0").repartition(_count_tasks(counts, n_groups), *_CHUNK_KEY)
    combined = gathered.mapInArrow(lambda batches: _to_batches(rows(batches), _COMBINED), _COMBINED)
    return {(row["model"], row["slice"], row["chunk"]): bytes(row["data"]) for row in combined.collect()}


def sum_arrays(_: Key, ranges: Iterator[Any]) -> Any:
    """Return the sum of the arrays of all ranges: a `Combine`."""
    return sum(ranges)


def list_chunks(n_identities: int, size: int) -> list[range]:
    """Split identities, numbered from 0, into chunks. A worker combines the counts of one chunk in memory."""
    return [range(n_identities)[start : start + size] for start in range(0, n_identities, size)]


def _count_tasks(rows: DataFrame, n_groups: int, groups_a_task: int = GROUPS_A_TASK) -> int:
    """Return the number of tasks that gather groups of rows.

    It is explicit, so that neither a default nor adaptive execution decides how much a worker holds. An embedded engine
    runs all of its tasks at once, so it gets at most one per processor.
    """
    n_tasks = -(-n_groups // groups_a_task)
    return min(n_tasks, os.cpu_count() or 1) if is_embedded(rows.sparkSession) else n_tasks


def _read_groups(batches: Batches, key: tuple[int, int, int]) -> Iterator[tuple[Key, list[tuple[Any, ...]]]]:
    """Yield the rows of each group of a task, by the columns of its key.

    Rows may come in any order: not every engine preserves a sort order into a Python function.
    """
    groups: dict[Key, list[tuple[Any, ...]]] = {}
    for row in read_rows(batches):
        groups.setdefault((row[key[0]], row[key[1]], row[key[2]]), []).append(row)
    for group in sorted(groups):
        yield group, groups.pop(group)


def read_rows(batches: Batches) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a task; the bytes of the last column are not copied."""
    for batch in batches:
        *columns, data = batch.columns
        for index, row in enumerate(zip(*(column.to_pylist() for column in columns), strict=True)):
            yield *row, memoryview(data[index].as_buffer())


def _to_batches(rows: Iterable[Sequence[Any]], declared: str) -> Iterator[pa.RecordBatch]:
    """Return rows as batches of bounded size: one row at a time is slow, and Arrow refuses batches of 2 GiB.

    An object is dumped as soon as it is yielded, so what is computed from it later does not travel.
    """
    _forget_zip_files()
    schema = arrow_schema(declared)
    held: list[Sequence[Any]] = []
    size = 0
    for *numbers, value in rows:
        data = value if isinstance(value, bytes) else dump(value)
        held.append((*numbers, data))
        size += len(data)
        if size >= _BATCH_BYTES:
            yield to_batch(held, schema)
            held, size = [], 0
    if held:
        yield to_batch(held, schema)


def _forget_zip_files() -> None:
    """Keep the next task of this worker from rereading the directories of the zip files that modules come from.

    A task begins with ``importlib.invalidate_caches()``, which makes Python 3.11 reread the directory of every zip file
    once for each package imported from it. For Spark's own ``pyspark.zip`` alone that takes 0.1 s, most of the time of
    a short task. An import that needs a zip file again reopens it.
    """
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            sys.path_importer_cache.pop(path, None)
