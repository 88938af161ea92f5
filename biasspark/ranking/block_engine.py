"""The sorted-block engine: EXAMPLES -> RANKED, one row a (model, slice, range) -> U statistics.

    EXAMPLES --mapInArrow--> parts --one shuffle--> RANKED --small shuffle--> integers of every identity

RANKED is what a job keeps while it writes its tables: all of them come of it, and it grows with ranges and identities,
not with rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql import DataFrame

from biasspark.columns import (
    BACKGROUND_NEGATIVE,
    BACKGROUND_POSITIVE,
    CELL_PAIRS,
    NEGATIVE,
    POSITIVE,
)
from biasspark.corpus.codebook import Codebook
from biasspark.ranking.blocks import Block, Floats, Ints
from biasspark.ranking.combine import CELLS_OF_PAIRS, combine_ranges, decode_sums, encode_sums, no_sums
from biasspark.ranking.placements import Profile, RangeSums, measure_range
from biasspark.ranking.sorting import CELLS, MEMBERSHIPS, TALLIES_RANGE, Part, sort_rows

_PARTS = "model INT, slice INT, score_range INT, kind INT, data BINARY"
_RANKED = (
    "model INT, slice INT, score_range INT, first_identity INT, n_rows BIGINT, n_distinct BIGINT, largest_tie BIGINT, "
    "lowest DOUBLE, highest DOUBLE, counts ARRAY<BIGINT>, data BINARY"
)
_INTEGERS = (
    "model STRING, slice STRING, identity STRING, low_cell STRING, high_cell STRING, crossed BOOLEAN, "
    "n_low BIGINT, n_high BIGINT, u_doubled DECIMAL(38,0), low_square_sum DECIMAL(38,0), high_square_sum DECIMAL(38,0)"
)
_BUNDLE_BYTES = 16 << 20
_CHUNK = 512
_GROUPS_A_TASK = 6
"""A Python task costs about 0.2 s however little it does, so several ranges share one."""


def rank_blocks(examples: DataFrame, codebook: Codebook, boundaries: list[Floats]) -> DataFrame:
    """Rank every score of every model and slice, and return RANKED.

    Parameters
    ----------
    examples : DataFrame
        EXAMPLES, as the codebook describes it.
    boundaries : list of float64 arrays
        For each model, where its ranges meet; no result depends on them.

    Notes
    -----
    Cost: one scan and one shuffle, of 8 bytes a score and 24 a membership. The number of reduce tasks is explicit,
    because a persisted grouped map would otherwise run one task for each of Spark's default partitions.
    """
    columns = [*codebook.word_columns, *codebook.score_columns, *codebook.value_columns.values()]
    parts = examples.select(*columns).mapInArrow(_sort(codebook, boundaries), _PARTS)
    groups = len(codebook.slices) * sum(len(edges) + 2 for edges in boundaries)
    tasks = -(-groups // _GROUPS_A_TASK)
    keys = ("model", "slice", "score_range")
    return parts.repartition(tasks, *keys).groupBy(*keys).applyInPandas(_place(codebook), _RANKED)


def integer_statistics(ranked: DataFrame, codebook: Codebook) -> DataFrame:
    """Return the integers of the U statistics: six rows an identity and one for the whole slice.

    Crossed pairs with fewer than `Codebook.min_rows` rows, of all that were read, are left out.
    """
    keys = ("model", "slice", "first_identity")
    tasks = -(-len(codebook.models) * len(codebook.slices) * len(_chunks(codebook)) // _GROUPS_A_TASK)
    return ranked.repartition(tasks, *keys).groupBy(*keys).applyInPandas(_combine(codebook), _INTEGERS)


def overview(ranked: DataFrame) -> DataFrame:
    """Return the scores of each model by range, and what was counted: see `Ranking.overview`."""
    everyone = ranked.where((F.col("slice") == 0) & (F.col("first_identity") == 0))
    return everyone.select("model", *Profile._fields, "counts")


def _sort(
    codebook: Codebook, boundaries: list[Floats]
) -> Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]:
    schema = pa.schema(
        [
            ("model", pa.int32()),
            ("slice", pa.int32()),
            ("score_range", pa.int32()),
            ("kind", pa.int32()),
            ("data", pa.binary()),
        ]
    )

    def run(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        for parts in _bundle(sort_rows(batches, codebook, boundaries)):
            columns = [
                pa.array(values, field.type) for values, field in zip(zip(*parts, strict=True), schema, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return run


def _bundle(parts: Iterator[Part]) -> Iterator[list[Part]]:
    """Send parts in bundles: one at a time is slow, and a batch of 2 GiB is more than Arrow takes."""
    held: list[Part] = []
    size = 0
    for part in parts:
        held.append(part)
        size += len(part.data)
        if size >= _BUNDLE_BYTES:
            yield held
            held, size = [], 0
    if held:
        yield held


def _place(codebook: Codebook) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def run(parts: pd.DataFrame) -> pd.DataFrame:
        key = [int(parts[name].iloc[0]) for name in Part._fields[:3]]
        if key[2] == TALLIES_RANGE:
            total = np.asarray(sum(np.frombuffer(data, np.int64) for data in parts["data"]))
            counted = [(*key, chunk.start, 0, 0, 0, None, None, total, None) for chunk in _chunks(codebook)]
            return pd.DataFrame(counted, columns=_names(_RANKED))
        cells, memberships = (
            [Block.decode(data) for data in parts.loc[parts["kind"] == kind, "data"]] for kind in (CELLS, MEMBERSHIPS)
        )
        sums, profile = measure_range(cells, memberships, codebook.base_masks)
        rows = [(*key, chunk.start, *profile, None, encode_sums(sums, chunk)) for chunk in _chunks(codebook)]
        return pd.DataFrame(rows, columns=_names(_RANKED))

    return run


def _combine(codebook: Codebook) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def run(ranked: pd.DataFrame) -> pd.DataFrame:
        ranked = ranked.sort_values("score_range")
        tally = np.asarray(ranked["counts"].iloc[0], np.int64)
        ranges = [decode_sums(data) for data in ranked["data"].iloc[1:]]
        model, number = codebook.models[ranked["model"].iloc[0]], codebook.slices[ranked["slice"].iloc[0]]
        first = int(ranked["first_identity"].iloc[0])
        chunk = range(len(codebook.names))[first : first + _CHUNK]
        sums = combine_ranges(ranges) if ranges else no_sums(len(chunk))
        rows = [(model, number, *row) for row in _rows(sums, chunk, _listed(tally, codebook), codebook)]
        return pd.DataFrame(rows, columns=_names(_INTEGERS))

    return run


def _rows(sums: RangeSums, chunk: range, listed: set[int], codebook: Codebook) -> Iterator[tuple[Any, ...]]:
    for place, number in enumerate(chunk):
        if number not in listed:
            continue
        name, crossed = codebook.names[number], number >= codebook.first_pair
        for (low, high), names, pair in zip(CELLS_OF_PAIRS, CELL_PAIRS, sums.pairs, strict=True):
            if number == 0 and names != (BACKGROUND_NEGATIVE, BACKGROUND_POSITIVE):
                continue
            cells = names if number else (NEGATIVE, POSITIVE)
            sizes = int(sums.cells[low][place]), int(sums.cells[high][place])
            yield name, *cells, crossed, *sizes, *(Decimal(int(column[place])) for column in pair)


def _listed(tally: Ints, codebook: Codebook) -> set[int]:
    pairs = tally[len(codebook.tallies) - len(codebook.pairs) :]
    enough = np.flatnonzero(pairs >= codebook.min_rows) + codebook.first_pair
    return {*range(codebook.first_pair), *enough.tolist()}


def _chunks(codebook: Codebook) -> list[range]:
    """Cut the identities' numbers: what all ranges say of one chunk is combined in one worker's memory."""
    numbers = range(len(codebook.names))
    return [numbers[start : start + _CHUNK] for start in range(0, len(numbers), _CHUNK)]


def _names(schema: str) -> list[str]:
    return [column.split()[0] for column in schema.split(", ")]
