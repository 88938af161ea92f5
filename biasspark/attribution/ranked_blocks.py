"""Rank rows for attribution: keep their blocks, and sum up values while these are made, by one Spark job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from math import isqrt
from typing import Any

import pyspark.sql.functions as F
from pyspark.sql import DataFrame

from biasspark.errors import InputError
from biasspark.ranking.counts import Counts, make_counts
from biasspark.ranking.kernels.range_counts import RangeCounts, combine, count_range
from biasspark.ranking.kernels.row_block import RowBlock
from biasspark.ranking.kernels.sorted_runs import collapse
from biasspark.ranking.row_blocks import BLOCK, N_GROUPS, Blocks, Query, RowRanking, Search, read_answers, send
from biasspark.session import kept

MAX_OPPOSITE = isqrt(2**63 - 1) // 2
"""With more rows of a label the square of a doubled placement exceeds 63 bits."""


@dataclass(frozen=True)
class RankedBlocks:
    """Ranked rows: their blocks, and their counts, without identities.

    `results` are those of the searches that ran while rows were ranked, by name.
    """

    blocks: Blocks
    counts: Counts
    results: Mapping[str, Any]


@contextmanager
def rank_blocks(
    examples: DataFrame, ranking: RowRanking, searches: Mapping[str, Search[Any]]
) -> Iterator[RankedBlocks]:
    """Rank rows, and keep their blocks for a `with` block, if the ranking keeps any.

    Raises `InputError` if one label or one range has too many rows.

    EXAMPLES have the columns from which rows are described. The searches, by name, have one query each, about single
    models.

    Runs one Spark action, of one scan and one shuffle. The blocks of comparisons are lazy: one more shuffle, when they
    are read first.
    """
    queries = [_count_all(), *map(next, searches.values())]
    with ExitStack() as stack:
        placed = ranking.place(examples, queries)
        if ranking.keeps_blocks:
            placed = stack.enter_context(kept(placed, large_rows=True))
        n_groups = len(ranking.encoding.models) * len(ranking.encoding.slices) * len(searches)
        (ranges, *answers), row_counts = read_answers(placed, queries, max(n_groups, N_GROUPS))
        frame = placed.where(F.col("chunk") == BLOCK)
        if ranking.comparisons:
            frame = frame.union(stack.enter_context(kept(ranking.compare(placed), large_rows=True)))
        counts = make_counts(ranking.encoding, row_counts, sorted(ranges.items()), (), None)
        if counts.cells.max(initial=0) > MAX_OPPOSITE:
            raise InputError(
                f"corpus: more than {MAX_OPPOSITE:,} rows of one label. Attributions are summed up with the squares of "
                "placements among them, which pass the integers that hold them. Attribute a sample of the rows, by a "
                "`filter`."
            )
        results = {name: send(searches[name], answer)[1] for name, answer in zip(searches, answers, strict=True)}
        blocks = Blocks(frame, ranking.description.columns)
        yield RankedBlocks(blocks, counts, results)


def _count_all() -> Query:
    """Count all rows of every model and slice, without identities, as `RangeCounts`."""

    def measure(_: int, _range: int, block: RowBlock) -> Iterator[tuple[int, int, RangeCounts]]:
        for slice_number in range(block.cells.columns.n_slices):
            if len(rows := block.rows_of(slice_number)):
                scores, label = block.scores[rows], block.label[rows]
                runs = {key: collapse(scores[label == key]) for key in (0, 1) if (label == key).any()}
                yield slice_number, 0, count_range(runs, [], [0], None)

    return Query(measure, lambda _, ranges: combine(ranges, 0))
