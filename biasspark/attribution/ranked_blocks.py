"""Rank rows for attribution: keep their blocks, and sum up values while these are made, by one Spark job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import pyspark.sql.functions as F
from pyspark.sql import DataFrame

from biasspark.arrays import Ints
from biasspark.attribution.losses import Losses, OfLabels, read_losses, refuse_large_label, sum_losses
from biasspark.columns import OVERALL
from biasspark.ranking.counts import Counts, make_counts
from biasspark.ranking.kernels.range_counts import RangeCounts, combine, count_range
from biasspark.ranking.kernels.row_block import RowBlock
from biasspark.ranking.kernels.sorted_runs import collapse
from biasspark.ranking.row_blocks import BLOCK, N_GROUPS, Answer, Blocks, Query, RowRanking, Search, read_answers, send
from biasspark.session import kept


@dataclass(frozen=True)
class RankedBlocks:
    """Ranked rows: their blocks, and their counts, without identities.

    `losses` are empty unless they are summed up; `train` has the moments of the training rows, by numbers of model and
    slice; `results` are those of the searches that ran while rows were ranked, by name.
    """

    blocks: Blocks
    counts: Counts
    losses: Losses
    train: Mapping[tuple[int, int], OfLabels]
    results: Mapping[str, Any]


@contextmanager
def rank_blocks(
    examples: DataFrame, ranking: RowRanking, links: Sequence[str | None] | None, searches: Mapping[str, Search[Any]]
) -> Iterator[RankedBlocks]:
    """Rank rows, and keep their blocks for a `with` block, if the ranking keeps any.

    Raises `InputError` if one label or one range has too many rows.

    EXAMPLES have the columns from which rows are described. Without the `links` of models, no losses are summed up. The
    searches, by name, have one query each, about single models.

    Runs one Spark action, of one scan and one shuffle. The blocks of comparisons are lazy: one more shuffle, when they
    are read first.
    """

    def measure_losses(model: int, _: int, block: RowBlock) -> Iterator[tuple[int, int, list[Ints]]]:
        slices = sum_losses(block, links[model] if links else None, with_losses=bool(links))
        return ((slice_number, 0, [sums]) for slice_number, sums in enumerate(slices))

    sums_losses = links is not None or ranking.description.is_split
    queries = [_count_all(), *[Query(measure_losses)] * sums_losses, *map(next, searches.values())]
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
        losses, train = _read_losses(ranking, counts, answers.pop(0) if sums_losses else {})
        results = {name: send(searches[name], answer)[1] for name, answer in zip(searches, answers, strict=True)}
        blocks = Blocks(frame, ranking.description.columns)
        yield RankedBlocks(blocks, counts, losses if links else {}, train, results)


def _count_all() -> Query:
    """Count all rows of every model and slice, without identities, as `RangeCounts`."""

    def measure(_: int, _range: int, block: RowBlock) -> Iterator[tuple[int, int, RangeCounts]]:
        for slice_number in range(block.cells.columns.n_slices):
            if len(rows := block.rows_of(slice_number)):
                scores, label = block.scores[rows], block.label[rows]
                runs = {key: collapse(scores[label == key]) for key in (0, 1) if (label == key).any()}
                yield slice_number, 0, count_range(runs, [], [0], None)

    return Query(measure, lambda _, ranges: combine(ranges, 0))


def _read_losses(
    ranking: RowRanking, counts: Counts, answer: Answer
) -> tuple[Losses, Mapping[tuple[int, int], OfLabels]]:
    """Return the moments of all rows and of segments, by names, and those of training rows, by numbers."""
    losses: dict[tuple[str, str, str], OfLabels] = {}
    train: dict[tuple[int, int], OfLabels] = {}
    for model_name, slice_name, n_rows in zip(*counts.groups[:2], counts.cells.max(axis=0).tolist(), strict=True):
        refuse_large_label(model_name, slice_name, n_rows)
    for (model, slice_number, _), [sums] in sorted(answer.items(), key=itemgetter(0)):
        names = ranking.encoding.models[model], ranking.encoding.slices[slice_number]
        overall, train[model, slice_number], *segments = read_losses(sums)
        for segment, by_label in zip((OVERALL, *ranking.description.segments), (overall, *segments), strict=True):
            if by_label:
                losses[(*names, segment)] = by_label
    return losses, train
