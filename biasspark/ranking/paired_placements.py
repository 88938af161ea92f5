"""Two models' placements of the same rows: EXAMPLES of two models -> sums of products of every cell.

    EXAMPLES --cut--> ranges of the first model --shuffle--> placed, recut --shuffle--> ranges of the second --> sums

A row carries its placements by the first model to the task that places it by the second: see `kernels.paired_products`.
For the memory of a worker see docs/how-it-works.md; here a range has single rows, with 4 bytes for each reference set.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from pyspark.sql import DataFrame

from biasspark.arrays import BigInts, Floats
from biasspark.corpus.encoding import Encoding
from biasspark.ranking import range_job
from biasspark.ranking.kernels.blocks import find_ranges, split_by_range
from biasspark.ranking.kernels.pair_sums import N_CELLS
from biasspark.ranking.kernels.paired_products import PairedRows, Products, place_by_first, sum_products
from biasspark.ranking.kernels.reference_sets import RankOffsets, ReferenceSets, count_by_range
from biasspark.ranking.row_blocks import refuse_large_range
from biasspark.ranking.task_rows import Batches, Key, Kind, Part, Parts, TaskRows, list_offsets


def sum_paired_placements(
    examples: DataFrame, encoding: Encoding, boundaries: Sequence[Floats], identities: Sequence[int]
) -> BigInts:
    """Add up the products of both models' placements of every row, for two models that both score every row.

    `identities` are numbers in the encoding, ascending; 0 is ``(overall)``, whose rows are all in the background.
    Return `Products` by slice, identity, cell and another cell, in the order of `columns.FOUR_CELLS`, as Python
    integers, shape (slices, identities, 4, 4, 6): the sums, over the rows of the first cell, of both models' doubled
    placements (twice the rows below, plus ties) among the second.

    Runs one Spark action. Cost: one scan and two shuffles of rows, the second of 4 bytes per row and reference set;
    arithmetic on every row and identity; one shuffle of the sums of every range.
    """
    sets = ReferenceSets.of(encoding.known_masks, identities)

    def read_rows(parts: Parts) -> tuple[list[PairedRows], ReferenceSets, RankOffsets]:
        rows = [part.widen() for part in parts[Kind.ROWS]]
        refuse_large_range(sum(len(part.scores) for part in rows))
        return rows, sets, RankOffsets.add_up(parts[Kind.OFFSETS])

    def cut(rows: TaskRows) -> Iterator[Part]:
        for slice_number, paired in pair_scores(rows, sets).items():
            yield from _cut_rows(slice_number, paired, boundaries[0], sets)

    def place(batches: Batches) -> Iterator[Part]:
        for (_, slice_number, _), parts in range_job.read_ranges(batches):
            if parts.get(Kind.ROWS):
                yield from _cut_rows(slice_number, place_by_first(*read_rows(parts)), boundaries[1], sets)

    def measure(_: Key, parts: Parts) -> Iterator[tuple[int, BigInts]]:
        if parts.get(Kind.ROWS):
            yield 0, sum_products(*read_rows(parts))

    n_slices = len(encoding.slices)
    by_first = range_job.cut_examples(examples, encoding, cut)
    by_second = range_job.cut_batches(range_job.gather_ranges(by_first, boundaries[:1], n_slices), place)
    counts = range_job.count_ranges(by_second, boundaries[1:], n_slices, measure)
    combined = range_job.combine_counts(counts, range_job.sum_arrays, n_slices)
    sums = np.zeros((n_slices, len(identities), N_CELLS, N_CELLS, len(Products._fields)), object)
    for (_, slice_number, _), of_slice in combined.items():
        sums[slice_number] = of_slice
    return sums


def pair_scores(rows: TaskRows, sets: ReferenceSets) -> dict[int, list[PairedRows]]:
    """Return the rows of each slice in a known population, by their known sources, to be placed by the first model."""
    entry_rows, entries = rows.entries_of(sets)
    first, second = rows.scores
    whole = PairedRows(np.array(0), first, second, rows.label, entry_rows, entries, np.empty((0, len(rows)), np.int64))
    placed, paired = sets.covers(rows.known), {}
    for model, slice_number, usable in rows.groups():
        if model == 0:
            paired[slice_number] = [
                whole.take(np.flatnonzero(usable & placed & (rows.known == known)))._replace(known=np.array(known))
                for known in np.unique(rows.known[usable & placed])
            ]
    return paired


def _cut_rows(slice_number: int, rows: Iterable[PairedRows], boundaries: Floats, sets: ReferenceSets) -> Iterator[Part]:
    """Cut the rows of a slice at the boundaries of the model that places them, and count the offsets of each range.

    A shuffle has the ranges of one model only, so parts name none.
    """
    counts = np.zeros((len(boundaries) + 1, sets.size), np.int64)
    for part in rows:
        known = np.full(len(part.scores), part.known)
        ranges = find_ranges(part.scores, boundaries)
        counts += count_by_range(sets.members(known, part.label, part.rows, part.entries), ranges, len(counts))
        for score_range, chosen in split_by_range(ranges):
            yield Part(0, slice_number, score_range, Kind.ROWS, part.take(chosen).narrow())
    yield from list_offsets(0, slice_number, counts)
