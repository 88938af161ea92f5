r"""Two models' placements of the same rows on Spark: EXAMPLES of two models -> sums of products of every cell.

    EXAMPLES --mapInArrow--> parts of the first model --shuffle--> placed --shuffle--> placed twice --> sums

A row takes along its placements by one model to where it is placed by the other: see `paired_blocks`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from biasspark.arrays import Floats, Ints
from biasspark.columns import BACKGROUND_NEGATIVE, CROSSED, FOUR_CELLS, IDENTITY, OVERALL, SLICE
from biasspark.corpus.codebook import Codebook
from biasspark.corpus.states import name_of
from biasspark.ddl import arrow_schema, to_batch
from biasspark.ranking.crowd_blocks import CROWD_PARTS, OTHER, Around, cut_examples
from biasspark.ranking.crowds import Crowds
from biasspark.ranking.paired_blocks import Products, place_by_first, sum_products
from biasspark.ranking.ranges import Batches, OnBatches, gather_ranges, hand_over, read_ranges, surround_ranges

_SUMS = "slice INT, identity INT, cell INT, among INT, n BIGINT, " + ", ".join(
    f"{name} DECIMAL(38,0)" for name in Products._fields[1:]
)
_KEY = ("slice", "identity", "cell", "among")


def sum_paired_placements(
    examples: DataFrame, codebook: Codebook, boundaries: Sequence[Floats], identities: Sequence[int]
) -> DataFrame:
    """Add up the products of both models' placements of every row.

    Parameters
    ----------
    examples : DataFrame
        EXAMPLES of two models that both score every row, as the codebook describes it.
    boundaries : sequence of float64 arrays
        For either model, where its score ranges meet; no result depends on them.
    identities : sequence of int
        Numbers in the codebook, ascending; 0 is ``(overall)``.

    Returns
    -------
    DataFrame
        ``slice, identity, crossed, cell, among``: every two cells of every identity, of ``(overall)`` its two; ``n``
        BIGINT, rows of the cell; and as DECIMAL(38,0) sums over them of both models' doubled placements among the other
        cell, twice the rows below plus ties: ``first, second, first_squares, second_squares, products``.

    Notes
    -----
    Lazy. Cost: one scan and two shuffles of rows, the second of 8 bytes per row and identity; rows times identities of
    arithmetic. One shuffle of the sums of every range.
    """
    crowds = Crowds.of(codebook, identities)
    scored = examples.select(*codebook.word_columns, *codebook.score_columns, *codebook.value_columns.values())
    first = scored.mapInArrow(_cut(codebook, crowds, boundaries), CROWD_PARTS)
    second = _surround(first, boundaries[:1], codebook).mapInArrow(_place(crowds, boundaries[1]), CROWD_PARTS)
    sums = _surround(second, boundaries[1:], codebook).mapInArrow(_sum(crowds), _SUMS)
    return _name_cells(_add_up(sums, len(codebook.slices), len(identities)), codebook, identities)


def _surround(parts: DataFrame, boundaries: Sequence[Floats], codebook: Codebook) -> DataFrame:
    """Bring the parts of every range of these models together, each with what lies around it."""
    return surround_ranges(gather_ranges(parts, boundaries, codebook), ("counts",), _look_around, Around._fields)


def _look_around(counts: Ints) -> Around:
    """Return what lies around every range of a (model, slice)."""
    return Around(counts.cumsum(0) - counts, np.broadcast_to(counts.sum(0), counts.shape))


def _read_surrounded(batches: Batches) -> Iterator[tuple[int, list[bytes], Around]]:
    """Read of every range its slice, its blocks, and what lies around it."""
    for (_, number, _), parts in read_ranges(batches):
        yield number, [part["data"] for part in parts], Around(*(np.array(parts[0][name]) for name in Around._fields))


def _add_up(sums: DataFrame, n_slices: int, n_identities: int) -> DataFrame:
    """Add up the sums of all ranges, for every two cells of every identity, also those without rows."""
    digits = {"slice": 16 * n_identities, "identity": 16, "cell": 4, "among": 1}
    bases = {"slice": n_slices, "identity": n_identities, "cell": 4, "among": 4}
    every = sums.sparkSession.range(0, 16 * n_slices * n_identities, 1, 1)
    keys = [(F.floor(F.col("id") / digits[name]) % bases[name]).cast("int").alias(name) for name in _KEY]
    zeros = [F.lit(0).cast(sums.schema[name].dataType).alias(name) for name in Products._fields]
    all_sums = sums.unionByName(every.select(*keys, *zeros).where("cell <> among"))
    totals = (F.sum(name).cast(sums.schema[name].dataType).alias(name) for name in Products._fields)
    return all_sums.groupBy(*_KEY).agg(*totals)


def _name_cells(sums: DataFrame, codebook: Codebook, identities: Sequence[int]) -> DataFrame:
    """Name slices, identities and cells; ``(overall)`` has the cells of a background alone, which are the slice's."""
    names = tuple(codebook.names[number] for number in identities)
    is_overall = name_of(F.col(IDENTITY), names) == OVERALL
    of_background = F.least("cell", "among") >= FOUR_CELLS.index(BACKGROUND_NEGATIVE)

    def cell(name: str) -> Column:
        own = name_of(F.col(name), FOUR_CELLS)
        return F.when(is_overall, F.replace(own, F.lit("background_"), F.lit(""))).otherwise(own).alias(name)

    return sums.where(~is_overall | of_background).select(
        name_of(F.col(SLICE), codebook.slices).alias(SLICE),
        name_of(F.col(IDENTITY), names).alias(IDENTITY),
        (F.col(IDENTITY) >= sum(number < codebook.first_pair for number in identities)).alias(CROSSED),
        *(cell("cell"), cell("among")),
        *Products._fields,
    )


def _cut(codebook: Codebook, crowds: Crowds, boundaries: Sequence[Floats]) -> OnBatches:
    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        return hand_over(cut_examples(batches, codebook, crowds, boundaries[:1], (OTHER,)), CROWD_PARTS)

    return run


def _place(crowds: Crowds, edges: Floats) -> OnBatches:
    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        for number, blocks, around in _read_surrounded(batches):
            yield from hand_over(place_by_first(blocks, around, crowds, edges, number), CROWD_PARTS)

    return run


def _sum(crowds: Crowds) -> OnBatches:
    places = {number: place for place, number in enumerate(crowds.identities)}

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        schema = arrow_schema(_SUMS)
        for number, blocks, around in _read_surrounded(batches):
            cells: list[tuple[Any, ...]] = [
                (
                    number,
                    places[found.identity],
                    FOUR_CELLS.index(found.cell),
                    FOUR_CELLS.index(found.among),
                    *found.sums,
                )
                for found in sum_products(blocks, around, crowds)
            ]
            yield to_batch(cells, schema)

    return run
