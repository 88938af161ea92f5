r"""Two models' placements of the same rows on Spark: EXAMPLES of two models -> sums of products of every cell.

    EXAMPLES --mapInArrow--> parts of the first model --shuffle--> placed --shuffle--> placed twice --> sums

At either shuffle the counts of every range are taken from the same exchange that is ranked, and broadcast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from biasspark.columns import BACKGROUND_NEGATIVE, CROSSED, FOUR_CELLS, IDENTITY, MODEL, OVERALL, SLICE
from biasspark.corpus.codebook import Codebook
from biasspark.corpus.states import name_of
from biasspark.corpus.values import combine
from biasspark.ranking.block_engine import GROUPS_A_TASK, RANGE_KEY, column_names
from biasspark.ranking.blocks import Floats
from biasspark.ranking.crowds import Around, CrowdPart, Crowds, cut_examples
from biasspark.ranking.paired_blocks import Products, place_by_first, sum_products

PARTS = "model INT, slice INT, score_range INT, counts ARRAY<BIGINT>, data BINARY"
"""The fields of `CrowdPart`."""

_AROUND = "of_model INT, of_slice INT, of_score_range INT, below ARRAY<BIGINT>, totals ARRAY<BIGINT>"
_SUMS = "slice INT, identity INT, cell INT, among INT, n BIGINT, " + ", ".join(
    f"{name} DECIMAL(38,0)" for name in Products._fields[1:]
)
_KEY = ("slice", "identity", "cell", "among")
_WHOLE = pa.decimal128(38, 0)

Parts = Iterable[pa.RecordBatch]


def sum_paired_placements(
    examples: DataFrame, codebook: Codebook, boundaries: Sequence[Floats], identities: Sequence[int]
) -> DataFrame:
    """Add up the products of both models' placements of every row that both score.

    Parameters
    ----------
    examples : DataFrame
        EXAMPLES of two models, as the codebook describes it.
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
    Lazy. Cost: one scan and two shuffles of rows, the second of 8 bytes a row and identity; rows times identities of
    arithmetic. One shuffle of the sums of every range.
    """
    crowds = Crowds.of(codebook, identities)
    scored = examples.select(*codebook.word_columns, *codebook.score_columns, *codebook.value_columns.values())
    first = scored.mapInArrow(_cut(codebook, crowds, boundaries), PARTS)
    second = surround_ranges(first, boundaries[:1], codebook).mapInArrow(_place(crowds, boundaries[1]), PARTS)
    sums = surround_ranges(second, boundaries[1:], codebook).mapInArrow(_sum(crowds), _SUMS)
    return _name_cells(_add_up(sums, len(codebook.slices), len(identities)), codebook, identities)


def surround_ranges(parts: DataFrame, boundaries: Sequence[Floats], codebook: Codebook) -> DataFrame:
    """Bring the parts of every range together, each with what lies around it.

    Parameters
    ----------
    parts : DataFrame
        Of the fields of `CrowdPart`.
    boundaries : sequence of float64 arrays
        Of the models whose parts they are.
    """
    parts = gather_ranges(parts, boundaries, codebook)
    # Both sides read all columns of the parts, and compare them null-safe: a filter or a projection that Spark moved to
    # before the shuffle would make another one of it.
    counts = F.collect_list("counts").alias("counts")
    by_range = parts.groupBy(*RANGE_KEY).agg(counts, F.sum(F.length("data")).alias("n_bytes"))
    around = by_range.groupBy(MODEL, SLICE).applyInPandas(_look_around, _AROUND)
    same_range = combine(Column.__and__, [parts[name].eqNullSafe(around[f"of_{name}"]) for name in RANGE_KEY])
    return parts.join(F.broadcast(around), same_range).sortWithinPartitions(*RANGE_KEY)


def gather_ranges(parts: DataFrame, boundaries: Sequence[Floats], codebook: Codebook) -> DataFrame:
    """Bring the parts of every range together in one task: one shuffle."""
    groups = len(codebook.slices) * sum(len(edges) + 1 for edges in boundaries)
    return parts.repartition(-(-groups // GROUPS_A_TASK), *RANGE_KEY)


def read_blocks(batches: Parts) -> Iterator[tuple[tuple[int, int, int], list[dict[str, Any]]]]:
    """Read the parts of one range after another, each with its key."""
    parts = (row for batch in batches for row in batch.to_pylist())
    for key, own in groupby(parts, key=lambda part: tuple(part[name] for name in RANGE_KEY)):
        yield key, list(own)


def read_ranges(batches: Parts) -> Iterator[tuple[int, list[bytes], Around]]:
    """Read what `surround_ranges` brought together: of every range its slice, its blocks, and what lies around it."""
    for (_, number, _), parts in read_blocks(batches):
        yield number, [part["data"] for part in parts], Around(*(np.array(parts[0][name]) for name in Around._fields))


def to_batches(parts: Iterable[CrowdPart]) -> Iterator[pa.RecordBatch]:
    """Hand parts over to Spark, each for itself."""
    kinds = (pa.int32(), pa.int32(), pa.int32(), pa.list_(pa.int64()), pa.binary())
    for part in parts:
        columns = [pa.array([value], kind) for value, kind in zip(part, kinds, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, names=list(CrowdPart._fields))


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


def _look_around(ranges: pd.DataFrame) -> pd.DataFrame:
    """Return what lies around every range of a (model, slice)."""
    ranges = ranges.sort_values("score_range")
    counts = np.stack([np.stack(list(parts)).sum(0) for parts in ranges["counts"]])
    around = Around(counts.cumsum(0) - counts, np.broadcast_to(counts.sum(0), counts.shape))
    columns = [*(ranges[name] for name in RANGE_KEY), *map(list, around)]
    return pd.DataFrame(dict(zip(column_names(_AROUND), columns, strict=True)))


def _cut(codebook: Codebook, crowds: Crowds, boundaries: Sequence[Floats]) -> Callable[[Parts], Parts]:
    def run(batches: Parts) -> Parts:
        return to_batches(cut_examples(batches, codebook, crowds, boundaries[:1]))

    return run


def _place(crowds: Crowds, edges: Floats) -> Callable[[Parts], Parts]:
    def run(batches: Parts) -> Parts:
        for number, blocks, around in read_ranges(batches):
            yield from to_batches(place_by_first(blocks, around, crowds, edges, number))

    return run


def _sum(crowds: Crowds) -> Callable[[Parts], Parts]:
    places = {number: place for place, number in enumerate(crowds.identities)}

    def run(batches: Parts) -> Parts:
        for number, blocks, around in read_ranges(batches):
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
            kinds = [*[pa.int32()] * len(_KEY), pa.int64(), *[_WHOLE] * (len(Products._fields) - 1)]
            columns = [pa.array(values, kind) for values, kind in zip(zip(*cells, strict=True), kinds, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, names=column_names(_SUMS))

    return run
