"""Ranked rows, kept as blocks: EXAMPLES -> one block for each (model, range) -> counts over all blocks.

    EXAMPLES --cut--> rows of ranges --one shuffle--> blocks
        of two models: --cut at the ranges of the second--> --one more shuffle--> blocks with both placements
    blocks --measure--> counts of ranges --small shuffle--> counts

A block has the placement of each row in every slice; slices share everything else. Two models are compared on the rows
that both score: rows are placed among the baseline's scores first, then among the model's.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from itertools import accumulate, compress, count
from math import isqrt
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import pyspark.sql.functions as F
from numpy.typing import NDArray
from pyspark.sql import DataFrame

from biasspark.arrays import Floats, Ints
from biasspark.corpus.encoding import Encoding
from biasspark.corpus.survey import MAX_ROWS_A_RANGE
from biasspark.errors import InputError
from biasspark.ranking import range_job
from biasspark.ranking.counts import Counts, make_counts
from biasspark.ranking.engine import CORPUS, ROW_COUNTS, count_rows
from biasspark.ranking.feature_columns import RowDescription
from biasspark.ranking.kernels.blocks import find_ranges, split_by_range
from biasspark.ranking.kernels.codec import load, narrow
from biasspark.ranking.kernels.range_counts import RangeCounts, combine, count_range
from biasspark.ranking.kernels.reference_sets import RankOffsets, count_by_range, place_rows
from biasspark.ranking.kernels.row_block import (
    Baseline,
    CellColumns,
    Cells,
    RowBlock,
    SmallInts,
    join_cells,
    keep_cells,
)
from biasspark.ranking.kernels.sorted_runs import collapse
from biasspark.ranking.task_rows import Batches, Key, Kind, Part, Parts, TaskRows, list_offsets
from biasspark.session import kept

BLOCK = -1
"""The chunk of a block. Counts have chunks from 0 on, and rows to be cut again have chunks below this one."""

BLOCKS_A_TASK = 2
"""A block has some 20 MB."""
MAX_BLOCK_BYTES = (1 << 31) - (1 << 25)
"""Arrow holds 2 GiB in the binary values of a batch, and up to 16 MiB of others may come before."""

MAX_OPPOSITE = isqrt(2**63 - 1) // 2
"""With more rows of a label the square of a doubled placement exceeds 63 bits."""

MAX_RESULTS = 100_000
"""The most results that searches ask for at a time, unless one query asks for more."""

N_GROUPS = 12
"""Approximate number of (model, slice, chunk), which two tasks combine."""

Result = TypeVar("Result")


class Query(NamedTuple):
    """A computation over all blocks.

    `measure` maps the numbers of a model and a range, and its block, to (slice, chunk, result). `combine` maps a
    (model, slice, chunk) and the results of its ranges, by ascending score, to that of the whole score line. Without
    it, results are lists of int64 arrays, and these are added up. `size` is the number of results, if it may be large.
    """

    measure: Callable[[int, int, Any], Iterable[tuple[int, int, Any]]]
    combine: range_job.Combine | None = None
    size: int = 0


Answer: TypeAlias = Mapping[Key, Any]
"""The result of a query by (model, slice, chunk)."""
Search: TypeAlias = Generator[Query, Answer, Result]
"""A generator that yields queries, is sent their answers, and returns its result."""


class _Rows(NamedTuple):
    """Some rows: scores, cells and draws, and other arrays whose last axis is the rows."""

    scores: Floats
    cell: SmallInts
    values: SmallInts
    draws: Ints
    payload: Sequence[NDArray[Any]] = ()

    def take(self, indices: Ints) -> _Rows:
        """Return some rows, without the cells that none of them is in."""
        cell, values = keep_cells(self.cell[indices], self.values)
        draws = self.draws[indices] if len(self.draws) else self.draws
        return _Rows(self.scores[indices], cell, values, draws, [array[..., indices] for array in self.payload])


@dataclass(frozen=True)
class RowRanking:
    """How rows are ranked.

    `comparisons` are the numbers of a model and its baseline; the k-th has the number ``len(models) + k``, like a
    further model. `keeps_blocks` says whether queries are run on the blocks after they are made.
    """

    encoding: Encoding
    boundaries: Sequence[Floats]
    description: RowDescription
    comparisons: Sequence[tuple[int, int]] = ()
    keeps_blocks: bool = True

    @contextmanager
    def rank(self, examples: DataFrame, searches: Mapping[str, Search[Any]]) -> Iterator[RankedBlocks]:
        """Rank rows, and keep their blocks for a `with` block if that is wanted.

        Raises `InputError` if one label or one range has too many rows.

        EXAMPLES have the columns from which rows are described. The searches, by name, have one query each, about
        single models, which is answered while blocks are made.

        Runs one Spark action, of one scan and one shuffle. The blocks of comparisons are lazy: one more shuffle, when
        they are read first.
        """
        queries = [_count_all(), *map(next, searches.values())]
        with ExitStack() as stack:
            placed = self.place(examples, queries)
            if self.keeps_blocks:
                placed = stack.enter_context(kept(placed, large_rows=True))
            n_groups = len(self.encoding.models) * len(self.encoding.slices) * len(searches)
            (ranges, *answers), row_counts = read_answers(placed, queries, max(n_groups, N_GROUPS))
            frame, compared = placed.where(F.col("chunk") == BLOCK), None
            if self.comparisons:
                compared = stack.enter_context(kept(self.compare(placed), large_rows=True))
                frame = frame.union(compared)
            counts = make_counts(self.encoding, row_counts, sorted(ranges.items()), (), None)
            if counts.cells.max(initial=0) > MAX_OPPOSITE:
                raise InputError(
                    f"corpus: more than {MAX_OPPOSITE:,} rows of one label. Attributions are summed up with the "
                    "squares of placements among them, which pass the integers that hold them. Attribute a sample of "
                    "the rows, by a `filter`."
                )
            results = {name: send(searches[name], answer)[1] for name, answer in zip(searches, answers, strict=True)}
            yield RankedBlocks(Blocks(frame, self.description.columns, compared), counts, results)

    def place(self, examples: DataFrame, queries: Sequence[Query]) -> DataFrame:
        """Return the blocks of single models, and the rows of comparisons, placed among the scores of baselines.

        The examples have the columns from which rows are described. The queries are run on the blocks of single models
        while these are made: see `read_answers`. Lazy: one scan and one shuffle, of 12 bytes per score, 16 for each row
        and comparison, and the cells.
        """

        def rows(batches: Batches) -> Iterator[range_job.CountsRow]:
            measuring = _Measuring(queries)
            for key, parts in range_job.read_ranges(batches):
                if key[0] == CORPUS:
                    yield *key, 0, sum(parts[Kind.COUNTS])
                elif Kind.ROWS in parts and key[0] < len(self.encoding.models):
                    block, _ = self._place(parts)
                    if self.keeps_blocks:
                        yield *key, BLOCK, _keep(block)
                    yield from measuring.add(key[0], key[2], block)
                elif Kind.ROWS in parts:
                    yield from self._cut_again(key[0], parts)
            yield from measuring.finish()

        parts = range_job.cut_examples(examples, self.encoding, self._cut, *self.description.names)
        edges = [*self.boundaries, *(self.boundaries[baseline] for _, baseline in self.comparisons)]
        return range_job.map_to_counts(range_job.gather_ranges(parts, edges, 1, BLOCKS_A_TASK), rows)

    def compare(self, placed: DataFrame) -> DataFrame:
        """Return the blocks of comparisons, given the result of `place`. Lazy: one more shuffle of their rows."""

        def measure(_: Key, parts: Parts) -> Iterator[tuple[int, RowBlock]]:
            if Kind.ROWS in parts:
                block, baseline = self._place(parts)
                yield BLOCK, _keep(replace(block, baseline=Baseline(*baseline)))

        kind = (F.lit(BLOCK - 1) - F.col("chunk")).alias("kind")
        parts = placed.where(F.col("chunk") < BLOCK).select("model", "slice", "score_range", kind, "data")
        edges = [self.boundaries[model] for model, _ in self.comparisons]
        return range_job.count_ranges(parts, edges, 1, measure, BLOCKS_A_TASK)

    def _cut(self, rows: TaskRows) -> Iterator[Part]:
        yield Part(CORPUS, ROW_COUNTS, 0, Kind.COUNTS, count_rows(rows))
        cell, values, draws = self.description.describe(rows)
        usable = [rows.usable(model) for model in range(len(self.encoding.models))]
        for model, scores in enumerate(rows.scores):
            usable_rows = _Rows(scores, cell, values, draws).take(np.flatnonzero(usable[model]))
            yield from self._cut_rows(model, usable_rows, self.boundaries[model])
        for number, (model, baseline) in enumerate(self.comparisons, len(self.encoding.models)):
            both = _Rows(rows.scores[baseline], cell, values, draws[:0], [rows.scores[model]])
            chosen = np.flatnonzero(usable[model] & usable[baseline])
            yield from self._cut_rows(number, both.take(chosen), self.boundaries[baseline])

    def _cut_rows(self, number: int, rows: _Rows, edges: Floats) -> Iterator[Part]:
        """Cut rows into ranges, and count the rows of each label and slice in every range."""
        ranges = find_ranges(rows.scores, edges)
        for score_range, indices in split_by_range(ranges):
            yield Part(number, 0, score_range, Kind.ROWS, rows.take(indices))
        cells = Cells(self.description.columns, rows.values)
        slices = [cells.in_slice(number) for number in range(len(self.encoding.slices))]
        sets = ((cells.label == label) & inside for label in (False, True) for inside in slices)
        members = (np.flatnonzero(in_set[rows.cell]) for in_set in sets)
        yield from list_offsets(number, 0, count_by_range(members, ranges, len(edges) + 1))

    def _place(self, parts: Parts) -> tuple[RowBlock, list[NDArray[Any]]]:
        """Return the block of a range, and the other arrays of its rows, in the same order."""
        pieces: Sequence[_Rows] = parts[Kind.ROWS]
        refuse_large_range(sum(len(rows.scores) for rows in pieces))
        cell, values = join_cells([(rows.cell, rows.values) for rows in pieces])
        scores, draws, *payload = (
            np.concatenate(arrays, axis=-1)
            for arrays in zip(*((rows.scores, rows.draws, *rows.payload) for rows in pieces), strict=True)
        )
        order = np.argsort(scores)
        scores, cell, cells = scores[order], cell[order], Cells(self.description.columns, values)
        offsets = RankOffsets.add_up(parts[Kind.OFFSETS])
        slices = [cells.in_slice(number)[cell] for number in range(len(self.encoding.slices))]
        placements = narrow(place_rows(scores, cells.label[cell], slices, offsets))
        draws = draws[order] if len(draws) else draws
        block = RowBlock(scores, cell, cells, placements, offsets.total.reshape(2, -1), draws)
        return block, [array[..., order] for array in payload]

    def _cut_again(self, number: int, parts: Parts) -> Iterator[range_job.CountsRow]:
        """Place the rows of a comparison among the scores of the baseline, and cut them into ranges of the model."""
        model, _ = self.comparisons[number - len(self.encoding.models)]
        placed, [scores] = self._place(parts)
        known: list[NDArray[Any]] = [placed.scores, placed.placements]
        rows = _Rows(scores, placed.cell, placed.cells.values, placed.draws, known)
        for part in self._cut_rows(number, rows, self.boundaries[model]):
            yield number, 0, part.score_range, BLOCK - 1 - part.kind, part.data


@dataclass(frozen=True)
class Blocks:
    """Blocks, the columns of their cells, and the blocks of comparisons alone, if there are any."""

    frame: DataFrame
    columns: CellColumns
    compared: DataFrame | None = None


@dataclass(frozen=True)
class RankedBlocks:
    """Ranked rows: their blocks, their counts without identities, and the results of searches meanwhile, by name."""

    blocks: Blocks
    counts: Counts
    results: Mapping[str, Any]


def _count_all() -> Query:
    """Count all rows of every model and slice, without identities, as `RangeCounts`."""

    def measure(_: int, _range: int, block: RowBlock) -> Iterator[tuple[int, int, RangeCounts]]:
        for slice_number in range(block.cells.columns.n_slices):
            if len(rows := block.rows_of(slice_number)):
                scores, label = block.scores[rows], block.label[rows]
                runs = {key: collapse(scores[label == key]) for key in (0, 1) if (label == key).any()}
                yield slice_number, 0, count_range(runs, [], [0], None)

    return Query(measure, lambda _, ranges: combine(ranges, 0))


class _Measuring:
    """The measurements of one task. The chunks of the k-th of n queries are k, k + n, k + 2n, ..."""

    def __init__(self, queries: Sequence[Query]) -> None:
        self.queries = queries
        self.totals: dict[Key, Sequence[Ints]] = {}

    def add(self, model: int, score_range: int, block: Any) -> Iterator[range_job.CountsRow]:
        """Yield the results of a block that are combined, and add up the others."""
        for number, query in enumerate(self.queries):
            for slice_, chunk, measured in query.measure(model, score_range, block):
                key = model, slice_, chunk * len(self.queries) + number
                if query.combine:
                    yield model, slice_, score_range, key[2], measured
                else:
                    parts = [self.totals[key], measured] if key in self.totals else [measured]
                    self.totals[key] = _add_arrays(parts)

    def finish(self) -> Iterator[range_job.CountsRow]:
        """Yield the sums of arrays."""
        for (model, slice_, chunk), arrays in self.totals.items():
            yield model, slice_, 0, chunk, arrays


def read_answers(counts: DataFrame, queries: Sequence[Query], n_groups: int = N_GROUPS) -> tuple[list[Answer], Ints]:
    """Return the answers of queries, and the row counts by `Encoding.count_keys`, which are empty except while ranking.

    Runs one Spark action, with a shuffle of the measurements, of about `n_groups` (model, slice, chunk).
    """
    n_queries = len(queries)

    def combine(key: Key, ranges: Iterator[Any]) -> Any:
        if key[0] == CORPUS:
            return sum(ranges)
        chunk, number = divmod(key[2], n_queries)
        combine_ranges = queries[number].combine
        return combine_ranges((key[0], key[1], chunk), ranges) if combine_ranges else _add_arrays(ranges)

    combined = range_job.combine_counts(counts, combine, n_groups)
    row_counts = combined.pop((CORPUS, ROW_COUNTS, 0), np.zeros(0, np.int64))
    answers: list[dict[Key, Any]] = [{} for _ in queries]
    for (model, slice_, chunk), result in combined.items():
        answers[chunk % n_queries][model, slice_, chunk // n_queries] = result
    return [*answers], row_counts


def query_blocks(blocks: Blocks, queries: Sequence[Query]) -> list[Answer]:
    """Answer some queries. Runs one Spark action, which reads the blocks."""

    def rows(batches: Batches) -> Iterator[range_job.CountsRow]:
        measuring = _Measuring(queries)
        for model, score_range, block in read_blocks(batches):
            yield from measuring.add(model, score_range, block)
        yield from measuring.finish()

    return read_answers(range_job.map_to_counts(blocks.frame, rows), queries)[0]


def _add_arrays(parts: Iterable[Sequence[Ints]]) -> Sequence[Ints]:
    return reduce(lambda total, arrays: [a + b for a, b in zip(total, arrays, strict=True)], parts)


def run_searches(
    blocks: Blocks, searches: Sequence[Search[Any]], step: Callable[[int], None] = lambda _: None
) -> list[Any]:
    """Run searches together and return their results: the next queries of all searches are one Spark job.

    If they ask for very many results, they take turns, and the driver holds what waits. ``step`` is called with the
    number of each job before it runs.
    """
    results: list[Any] = [None] * len(searches)
    answers: dict[int, Answer | None] = dict.fromkeys(range(len(searches)))
    waiting: dict[int, Query] = {}
    for n_jobs in count(1):
        for number, answer in answers.items():
            query, results[number] = send(searches[number], answer)
            if query:
                waiting[number] = query
        if not waiting:
            break
        step(n_jobs)
        sizes = [query.size for query in waiting.values()]
        fits = [
            not size or total <= max(MAX_RESULTS, size) for size, total in zip(sizes, accumulate(sizes), strict=True)
        ]
        queries = {number: waiting.pop(number) for number in [*compress(waiting, fits)]}
        answers = dict(zip(queries, query_blocks(blocks, list(queries.values())), strict=True))
    return results


def send(search: Search[Result], answer: Answer | None) -> tuple[Query | None, Result | None]:
    """Send an answer to a search, or None to start it. Return its next query, or None and its result."""
    try:
        return search.send(answer), None  # type: ignore[arg-type]  # a generator is started by None
    except StopIteration as end:
        return None, end.value


def _keep(block: RowBlock) -> RowBlock:
    """Return what is kept of a block. Raises `InputError` if Arrow cannot hold it."""
    arrays = block.scores, block.cell, block.cells.values, block.placements, *(block.baseline or ())
    refuse_large_range(len(block.scores), sum(array.nbytes for array in arrays))
    return replace(block, draws=block.draws[:0])


def refuse_large_range(n_rows: int, n_bytes: int = 0) -> None:
    """Raise `InputError` if a range has more rows, or its block more bytes, than a worker holds."""
    if n_rows > MAX_ROWS_A_RANGE or n_bytes > MAX_BLOCK_BYTES:
        raise InputError(
            f"corpus: {n_rows:,} rows share one score or one narrow range. A worker cannot hold them. Is that score a "
            "default for rows that were not scored? Filter them. If `ranges` is set, leave it out."
        )


def read_blocks(batches: Batches) -> Iterator[tuple[int, int, Any]]:
    """Yield the model, the range and the block of each row of a task."""
    for model, _, score_range, _, data in range_job.read_rows(batches):
        yield model, score_range, load(data)
