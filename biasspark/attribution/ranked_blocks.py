"""Rows ranked for attribution: blocks that are kept, and what is summed up while they are made, by one Spark job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import numpy as np
from pyspark.sql import DataFrame

from biasspark.arrays import Ints
from biasspark.attribution.losses import LabelSums, Losses, read_losses, refuse_too_many, sum_losses
from biasspark.attribution.pairs import count_draws
from biasspark.columns import FOUR_CELLS, OVERALL
from biasspark.ranking.counts import Counts, make_counts
from biasspark.ranking.engine import CORPUS, ROW_COUNTS, add_up
from biasspark.ranking.kernels.blocks import block_of
from biasspark.ranking.kernels.codec import pack, unpack
from biasspark.ranking.kernels.range_counts import RangeCounts, combine, count_range
from biasspark.ranking.kernels.row_block import RowBlock
from biasspark.ranking.kernels.sorted_runs import collapse
from biasspark.ranking.range_job import combine_counts
from biasspark.ranking.row_blocks import BLOCK, Blocks, RowRanking, sum_arrays
from biasspark.ranking.task_rows import Key
from biasspark.session import kept

_ALL_ROWS, _LOSSES, _DRAWS = range(3)
"""The chunks of what is counted: of all rows of a slice, the losses of segments, and rows by the hash that draws."""

_Key = tuple[int, int]


@dataclass(frozen=True)
class RankedBlocks:
    """Ranked rows.

    Attributes
    ----------
    blocks : Blocks
    counts : Counts
        Of all rows: there are no identities.
    losses : mapping
        See `losses.Losses`.
    train : mapping of (int, int) to mapping
        By numbers of model and slice, the sums over the rows that search.
    draws : mapping of (int, int) to int64 array
        By numbers of model and slice, what `pairs.count_draws` yields; empty where no pairs are drawn.
    """

    blocks: Blocks
    counts: Counts
    losses: Losses
    train: Mapping[_Key, Mapping[bool, LabelSums]]
    draws: Mapping[_Key, Ints]


@contextmanager
def rank_blocks(
    examples: DataFrame, ranking: RowRanking, links: Sequence[str | None], n_rows: int
) -> Iterator[RankedBlocks]:
    """Rank rows, and keep their blocks for a `with` block.

    Parameters
    ----------
    examples : DataFrame
        EXAMPLES, and the columns from which rows are described.
    links : sequence of str or None
        How losses make probabilities of the scores of each model.
    n_rows : int
        At least the rows of any model.

    Raises
    ------
    InputError
        If one label has too many rows to be summed up, or one range too many rows.

    Notes
    -----
    Runs one Spark action, of one scan and one shuffle. The blocks of comparisons are lazy: one more shuffle, when they
    are read first.
    """

    def measure(model: int, _: int, block: RowBlock) -> Iterator[tuple[int, int, bytes]]:
        for slice_number, sums in enumerate(sum_losses(block, links[model])):
            if len(rows := block.rows_of(slice_number)):
                yield slice_number, _ALL_ROWS, _count_all(block, rows).encode()
            yield slice_number, _LOSSES, pack([sums])
        for slice_number, counts in enumerate(count_draws(block) if ranking.description.is_drawn else ()):
            yield slice_number, _DRAWS, pack([counts])

    def combine_chunk(key: Key, ranges: Iterator[memoryview]) -> bytes:
        if key[0] == CORPUS:
            return add_up(ranges)
        return combine(map(RangeCounts.decode, ranges), 0).encode() if key[2] == _ALL_ROWS else sum_arrays(key, ranges)

    encoding = ranking.encoding
    with ExitStack() as stack:
        placed = stack.enter_context(kept(ranking.place(examples, measure), large_rows=True))
        n_groups = 3 * len(encoding.models) * len(encoding.slices)
        combined = combine_counts(placed.where("chunk >= 0"), combine_chunk, n_groups)
        frame = placed.where(f"chunk = {BLOCK}")
        if ranking.comparisons:
            frame = frame.union(stack.enter_context(kept(ranking.compare(placed), large_rows=True)))
        row_counts = np.frombuffer(combined.pop((CORPUS, ROW_COUNTS, 0), b""), np.int64)
        whole = {(*key[:2], 0): RangeCounts.decode(data) for key, data in combined.items() if key[2] == _ALL_ROWS}
        counts = make_counts(encoding, row_counts, whole, (), None)
        losses, train = _read_losses(ranking, counts, combined)
        draws = {key[:2]: unpack(data)[0] for key, data in combined.items() if key[2] == _DRAWS}
        blocks = Blocks(frame, ranking.columns, ranking.description.features, n_rows)
        yield RankedBlocks(blocks, counts, losses, train, draws)


def _count_all(block: RowBlock, rows: Ints) -> RangeCounts:
    """Return what is counted of some rows of a range, without any identity but that of all rows."""
    scores, label = block.scores[rows], block.label[rows]
    runs = [(key, *collapse(scores[label == key])) for key in (0, 1) if (label == key).any()]
    return count_range([block_of(runs)], [], [0], None)


def _read_losses(
    ranking: RowRanking, counts: Counts, combined: Mapping[Key, bytes]
) -> tuple[Losses, dict[_Key, Mapping[bool, LabelSums]]]:
    """Return the sums of all rows and segments, by names, and those of rows that search, by numbers."""
    encoding = ranking.encoding
    losses: dict[tuple[str, str, str], Mapping[bool, LabelSums]] = {}
    train: dict[_Key, Mapping[bool, LabelSums]] = {}
    cells = counts.cells.reshape(len(FOUR_CELLS), len(encoding.models), len(encoding.slices))
    for model, slice_number, _ in sorted(key for key in combined if key[2] == _LOSSES):
        [sums] = unpack(combined[model, slice_number, _LOSSES])
        n_negative, n_positive = cells[2:, model, slice_number].tolist()
        names = encoding.models[model], encoding.slices[slice_number]
        refuse_too_many(*names, max(n_negative, n_positive))
        overall, of_train, *of_segments = read_losses(sums, (n_positive, n_negative))
        train[model, slice_number] = of_train
        for segment, of_labels in zip((OVERALL, *ranking.description.segments), (overall, *of_segments), strict=True):
            if of_labels:
                losses[(*names, segment)] = of_labels
    return losses, train
