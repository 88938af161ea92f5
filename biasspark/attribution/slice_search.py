"""Slices over row blocks, which overlap as segments of a tree cannot: one query for each level.

blocks --> counts by bin --> counts by conjunction, of two predicates, then of three
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from biasspark.arrays import Ints
from biasspark.attribution.block_sums import N_COUNTS, count_for_slices
from biasspark.attribution.moments import LARGEST_BITS
from biasspark.attribution.slice_counter import SliceCounter
from biasspark.attribution.slice_kernel import MOST_CANDIDATES, Batch, Counts, Searched, Slice, search
from biasspark.attribution.trees import SUM_BITS, Target
from biasspark.config.attribution_settings import SliceSearch
from biasspark.features import Condition
from biasspark.ranking.kernels.row_block import RowBlock
from biasspark.ranking.row_blocks import Answer, Blocks, Query, Search

ByCell: TypeAlias = Callable[[int, RowBlock], Ints | None]
"""From the number of a target and a block to the five counts of each cell; None where no row counts."""


class SearchedSlices(NamedTuple):
    """What a search gives.

    Attributes
    ----------
    conditions
        Of the best slices by target, the greatest score first.
    warnings
        By target, where more conjunctions might have been among the best than could be counted.
    """

    conditions: list[Sequence[Condition]]
    warnings: dict[int, str]


def search_slices(
    blocks: Blocks,
    targets: Sequence[Target],
    means: Sequence[float],
    settings: SliceSearch,
) -> Search[SearchedSlices]:
    """Find for each target the slices that lack most attribution.

    Parameters
    ----------
    means : sequence of float
        For each target, the mean of its train rows.
    settings : SliceSearch
        How long conjunctions may be, how many slices are wanted, the fewest rows of one, and how finely numbers are
        cut.

    Returns
    -------
    SearchedSlices
        The same under any partitioning and order of the rows: values are rounded to whole units of 2^-s, with s as
        large as sums of so many rows allow (34 for two million), and added up in int64.

    Notes
    -----
    One query for each predicate. The rows of a block are added up by cell, and a cell is counted in the candidates that
    it is in: at most 100,000 per target, and 100,000 of all targets at a time, beyond which targets take turns. The
    driver collects five integers for each bin and each candidate at most, and no row of the corpus.
    """
    if not (blocks.features and targets):
        return SearchedSlices([()] * len(targets), {})
    bits = SUM_BITS - max(blocks.n_rows, 1).bit_length()
    shift = bits - LARGEST_BITS - 1
    # Rounding to units may move a mean by half a unit.
    ceilings = [int(np.ceil(mean * 2.0**shift)) + 1 for mean in means]

    def by_cell(number: int, block: RowBlock) -> Ints | None:
        rows, units = targets[number].read(block, shift)
        return count_for_slices(block, rows, units, ceilings[number], bits) if len(rows) else None

    nothing = [np.zeros((feature.n_bins, N_COUNTS), np.int64) for feature in blocks.features]
    summed = yield _ask_bins(targets, nothing, by_cell)
    by_bin = [summed.get((target.model, target.slice, number), nothing) for number, target in enumerate(targets)]
    searching = search(by_bin, blocks.features, settings)
    try:
        batch = next(searching)
        while True:
            counted = yield _ask_slices(targets, batch, by_cell)
            batch = searching.send(_read_slices(batch, counted, settings.min_rows))
    except StopIteration as end:
        searched: list[Searched] = end.value
        warnings = {number: _warn(one.missed / 2**shift) for number, one in enumerate(searched) if one.missed}
        return SearchedSlices([one.conditions for one in searched], warnings)


def _ask_bins(targets: Sequence[Target], nothing: Sequence[Ints], by_cell: ByCell) -> Query:
    """Ask for the counts of each bin, shape (bins, 5), by feature."""

    def measure(model: int, _: int, block: RowBlock) -> Iterator[tuple[int, int, list[Ints]]]:
        for number, target in _targets_of(model, targets):
            if (counts := by_cell(number, block)) is not None:
                totals = [zeros.copy() for zeros in nothing]
                for total, bins in zip(totals, block.cells.bins, strict=True):
                    np.add.at(total, bins, counts.T)
                yield target.slice, number, totals

    return Query(measure)


def _ask_slices(targets: Sequence[Target], batch: Batch, by_cell: ByCell) -> Query:
    """Ask for the counts of candidates, shape (5, candidates)."""
    counters = {number: SliceCounter.of(candidates) for number, candidates in batch.items()}

    def measure(model: int, _: int, block: RowBlock) -> Iterator[tuple[int, int, list[Ints]]]:
        for number, target in _targets_of(model, targets):
            if number in counters and (counts := by_cell(number, block)) is not None:
                yield target.slice, number, [counters[number].count([*block.cells.bins], [*counts])]

    return Query(measure)


def _read_slices(batch: Batch, counted: Answer, min_rows: int) -> dict[int, dict[Slice, Counts]]:
    """Return the counts of the candidates that have enough rows."""
    slices: dict[int, dict[Slice, Counts]] = {}
    for (_, _, number), [sums] in counted.items():
        enough = np.flatnonzero((sums[:2] >= min_rows).all(axis=0))
        conjunctions = batch[number].slices
        slices[number] = {conjunctions[k]: Counts(*sums[:, k].tolist()) for k in enough.tolist()}
    return slices


def _targets_of(model: int, targets: Sequence[Target]) -> Iterator[tuple[int, Target]]:
    return ((number, target) for number, target in enumerate(targets) if target.model == model)


def _warn(missed: float) -> str:
    return (
        f"`slice_search`: more than {MOST_CANDIDATES:,} conjunctions might be among those that lack most. "
        f"Those with the highest bounds were counted. One that was not may have a score of up to {missed:.6g}. Raise "
        "min_rows, or lower max_predicates or max_bins, to search them all."
    )
