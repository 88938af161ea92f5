"""The sorted-block engine: EXAMPLES -> RANKED, one row per (model, slice, range) -> U statistics.

    EXAMPLES --mapInArrow--> parts --one shuffle--> RANKED --small shuffle--> integers of every identity

RANKED is what a job keeps while it writes its tables: all of them come of it, and it grows with ranges and identities,
not with rows. In the approximate mode parts hold counts of rows by bin (``bins``), and RANKED the least and the most of
every sum, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql import DataFrame, GroupedData

from biasspark.arrays import Floats
from biasspark.columns import FOUR_CELLS
from biasspark.corpus.codebook import Codebook
from biasspark.ddl import arrow_schema, column_names, to_batch
from biasspark.errors import corpus_changed
from biasspark.ranking.bins import count_bins, profile_bins
from biasspark.ranking.blocks import Block
from biasspark.ranking.combine import combine_ranges, decode_sums, encode_sums
from biasspark.ranking.edge_counts import add_reached, count_places, decode_places, encode_places
from biasspark.ranking.placements import (
    CELLS_OF_PAIRS,
    RIGHT,
    WRONG,
    Profile,
    RangeSums,
    list_pairs,
    measure_range,
    no_sums,
)
from biasspark.ranking.ranges import RANGE_KEY, Batches, OnBatches, gather, gather_ranges
from biasspark.ranking.sorting import BALANCE_RANGE, CELLS, MEMBERSHIPS, TALLIES_RANGE, UNSEEN, Part, sort_rows
from biasspark.ranking.state_blocks import merge_blocks, write_pieces
from biasspark.ranking.worker import forget_zip_files

PARTS = "model INT, slice INT, score_range INT, kind INT, data BINARY"
_RANKED = (
    "model INT, slice INT, score_range INT, first_identity INT, n_rows BIGINT, n_distinct BIGINT, largest_tie BIGINT, "
    "lowest DOUBLE, highest DOUBLE, counts ARRAY<BIGINT>, data BINARY, places BINARY, state ARRAY<BINARY>"
)
_INTEGERS = (
    "model STRING, slice STRING, identity STRING, low_cell STRING, high_cell STRING, crossed BOOLEAN, "
    "n_low BIGINT, n_high BIGINT, u_doubled DECIMAL(38,0), low_square_sum DECIMAL(38,0), high_square_sum DECIMAL(38,0)"
)
_BOUNDED = _INTEGERS + "".join(
    f", {name}_{bound} DECIMAL(38,0)"
    for bound in ("at_least", "at_most")
    for name in ("u_doubled", "low_square_sum", "high_square_sum")
)
_REACHED = "model STRING, slice STRING, identity STRING, crossed BOOLEAN, " + ", ".join(
    f"{cell} ARRAY<BIGINT>" for cell in FOUR_CELLS
)
_LABELS = "identity STRING, bucket INT, n_negative BIGINT, n_positive BIGINT"
_BUNDLE_BYTES = 16 << 20
_CHUNK = 512


Beside = Callable[[tuple[int, int, int], list[Block], list[Block], pd.DataFrame], Iterable[tuple[Any, ...]]]
"""From the key of a range, its base cells, its memberships and what was counted of it, the rows of a kernel."""


def sort_into_parts(
    examples: DataFrame, codebook: Codebook, boundaries: list[Floats], cuts: Sequence[Floats] = ()
) -> DataFrame:
    """Sort every score of every model and slice into blocks, the parts of one range all in one task.

    Parameters
    ----------
    examples : DataFrame
        EXAMPLES, as the codebook describes it.
    boundaries : list of float64 arrays
        For each model, where its ranges meet; no result depends on them.
    cuts : sequence of float64 arrays
        For each model the cut points of its bins, the boundaries among them; none where scores are ranked exactly.

    Notes
    -----
    Cost: one scan and one shuffle, of 8 bytes per score and 24 per membership, or of bins 16 bytes for each that a task
    has of an identity.
    """
    columns = [*codebook.word_columns, *codebook.score_columns, *codebook.value_columns.values()]
    parts = examples.select(*columns).mapInArrow(_sort(codebook, boundaries, cuts), PARTS)
    return gather_ranges(parts, boundaries, codebook, n_others=1)  # the tallies


def rank_blocks(
    parts: DataFrame, codebook: Codebook, edges: Sequence[Floats] = (), cuts: Sequence[Floats] = ()
) -> DataFrame:
    """Place every score of every range, and return RANKED. No shuffle more than that of the parts.

    Parameters
    ----------
    edges : sequence of float64 arrays
        For each model, the edges at which rows are counted (`reached`), or the bins of these; none where they are not.
    cuts : sequence of float64 arrays
        As in `sort_into_parts`.
    """
    return parts.groupBy(*RANGE_KEY).applyInPandas(_place(codebook, edges, cuts), _RANKED)


def integer_statistics(ranked: DataFrame, codebook: Codebook) -> DataFrame:
    """Return the integers of the U statistics: six rows per identity and one for the whole slice.

    Crossed pairs with fewer than `Codebook.min_rows` rows, of all that were read, are left out. Of bins each sum has
    the least and the most that it may be beside it.
    """
    schema = _BOUNDED if codebook.n_bins else _INTEGERS
    return group_by_identities(ranked, codebook).applyInPandas(_combine(codebook, schema), schema)


def reached(ranked: DataFrame, codebook: Codebook, edges: Sequence[Floats]) -> DataFrame:
    """Return for every cell of every identity how many rows reach each edge: see `Ranking.reached`."""
    return group_by_identities(ranked, codebook).applyInPandas(_add_reached(codebook, edges), _REACHED)


def overview(ranked: DataFrame) -> DataFrame:
    """Return the scores of each model by range, and what was counted: see `Ranking.overview`."""
    everyone = ranked.where((F.col("slice") == 0) & (F.col("first_identity") == 0))
    return everyone.where(F.col("score_range") != BALANCE_RANGE).select("model", *Profile._fields, "counts")


def label_counts(ranked: DataFrame, codebook: Codebook) -> DataFrame:
    """Return the labels of every identity by bucket: see `Ranking.labels`."""
    counted = ranked.where(F.col("score_range") == BALANCE_RANGE).select("counts")
    return counted.mapInPandas(_list_labels(codebook), _LABELS)


def group_by_identities(ranked: DataFrame, codebook: Codebook) -> GroupedData:
    """Bring together what all ranges of a model and slice say of a chunk of identities."""
    keys = ("model", "slice", "first_identity")
    n_groups = len(codebook.models) * len(codebook.slices) * len(_chunks(codebook))
    return gather(ranked.where(F.col("score_range") != BALANCE_RANGE), n_groups, *keys).groupBy(*keys)


def measure_beside(parts: DataFrame, counted: DataFrame, measure: Beside, declared: str) -> DataFrame:
    """Measure the sorted blocks of every range beside what was counted of it, rows of `RANGE_KEY`, when it was ranked.

    Raises
    ------
    InputError
        When it is computed, if the corpus is not as it was when it was ranked.
    """

    def run(key: tuple[Any, ...], parts: pd.DataFrame, counted: pd.DataFrame) -> pd.DataFrame:
        if parts.empty or counted.empty:
            raise corpus_changed("a range of scores has rows now and had none when it was ranked, or the reverse")
        model, number, score_range = map(int, key)
        blocks = _blocks_of(parts, CELLS), _blocks_of(parts, MEMBERSHIPS)
        rows = measure((model, number, score_range), *blocks, counted)
        return pd.DataFrame(list(rows), columns=column_names(declared))

    ranges = parts.where(F.col("score_range") >= 0).groupBy(*RANGE_KEY)
    return ranges.cogroup(counted.groupBy(*RANGE_KEY)).applyInPandas(run, declared)


def _blocks_of(parts: pd.DataFrame, kind: int) -> list[Block]:
    return [Block.decode(data) for data in parts.loc[parts["kind"] == kind, "data"]]


def _sort(codebook: Codebook, boundaries: list[Floats], cuts: Sequence[Floats]) -> OnBatches:
    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        if cuts:
            return send_parts(count_bins(batches, codebook, boundaries, cuts))
        return send_parts(sort_rows(batches, codebook, boundaries))

    return run


def send_parts(parts: Iterator[Part]) -> Iterator[pa.RecordBatch]:
    """Hand parts over to Spark."""
    forget_zip_files()
    schema = arrow_schema(PARTS)
    return (to_batch(held, schema) for held in _bundle(parts))


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


def _place(
    codebook: Codebook, edges: Sequence[Floats], cuts: Sequence[Floats]
) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def run(parts: pd.DataFrame) -> pd.DataFrame:
        key = [int(parts[name].iloc[0]) for name in Part._fields[:3]]
        if key[2] < 0:
            total = np.asarray(sum(np.frombuffer(data, np.int64) for data in parts["data"]))
            chunks = _chunks(codebook) if key[2] == TALLIES_RANGE else [range(1)]
            counted = [(*key, chunk.start, 0, 0, 0, None, None, total, *(None,) * 3) for chunk in chunks]
            return pd.DataFrame(counted, columns=column_names(_RANKED))
        blocks = {kind: _blocks_of(parts, kind) for kind in (CELLS, MEMBERSHIPS, UNSEEN)}
        pieces = None
        if codebook.keeps_state:
            blocks = {kind: [merge_blocks(kind, own)] for kind, own in blocks.items()}
            pieces = [piece for kind, [block] in blocks.items() for piece in write_pieces(kind, block)]
        sorted_ones = blocks[CELLS], blocks[MEMBERSHIPS]
        sums, profile = measure_range(*sorted_ones, codebook.base_masks)
        ordered = [sums]
        if cuts:
            ordered += [measure_range(*sorted_ones, codebook.base_masks, order)[0] for order in (WRONG, RIGHT)]
            profile = profile_bins(blocks[CELLS], cuts[key[0]])
        places = count_places(*sorted_ones, codebook.base_masks, edges[key[0]]) if edges else None
        rows = []
        for chunk in _chunks(codebook):
            data = b"".join(encode_sums(own, chunk) for own in ordered)
            encoded = data, places and encode_places(places, chunk)
            rows.append((*key, chunk.start, *profile, None, *encoded, None if chunk.start else pieces))
        return pd.DataFrame(rows, columns=column_names(_RANKED))

    return run


def _combine(codebook: Codebook, schema: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def run(ranked: pd.DataFrame) -> pd.DataFrame:
        group = read_group(ranked, codebook)
        orders = 3 if codebook.n_bins else 1
        ranges = [[decode_sums(part) for part in _split(data, orders)] for data in group.ranges["data"]]
        sums = [combine_ranges(own) for own in zip(*ranges, strict=True)] or [no_sums(len(group.identities))] * orders
        rows = [(group.model, group.slice, *row) for row in _rows(sums, group.identities, group.listed, codebook)]
        return pd.DataFrame(rows, columns=column_names(schema))

    return run


def _add_reached(codebook: Codebook, edges: Sequence[Floats]) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def run(ranked: pd.DataFrame) -> pd.DataFrame:
        group = read_group(ranked, codebook)
        ranges = [decode_places(data) for data in group.ranges["places"]]
        counts = add_reached(ranges, len(group.identities), len(edges[int(ranked["model"].iloc[0])]))
        rows = [
            (group.model, group.slice, codebook.names[number], number >= codebook.first_pair, *counts[:, place])
            for place, number in enumerate(group.identities)
            if number in group.listed
        ]
        return pd.DataFrame(rows, columns=column_names(_REACHED))

    return run


def _list_labels(codebook: Codebook) -> Callable[[Iterable[pd.DataFrame]], Iterable[pd.DataFrame]]:
    def run(frames: Iterable[pd.DataFrame]) -> Iterable[pd.DataFrame]:
        for counts in (counts for frame in frames for counts in frame["counts"]):
            table = np.asarray(counts).reshape(codebook.first_pair, -1, 2)
            names, buckets = codebook.names[: codebook.first_pair], range(table.shape[1])
            rows = [(name, bucket, *table[n, bucket]) for n, name in enumerate(names) for bucket in buckets]
            yield pd.DataFrame(rows, columns=column_names(_LABELS))

    return run


class Group(NamedTuple):
    """What all ranges of a model and slice say of some identities."""

    model: str
    slice: str
    identities: range
    listed: set[int]
    ranges: pd.DataFrame


def read_group(ranked: pd.DataFrame, codebook: Codebook) -> Group:
    """Read what `group_by_identities` brought together."""
    ranked = ranked.sort_values("score_range")
    tally, *_ = ranked["counts"]  # of TALLIES_RANGE, which every group has, and which comes before all others
    model, number = codebook.models[ranked["model"].iloc[0]], codebook.slices[ranked["slice"].iloc[0]]
    first = int(ranked["first_identity"].iloc[0])
    identities = range(len(codebook.names))[first : first + _CHUNK]
    return Group(model, number, identities, set(codebook.list_identities(tally)), ranked.iloc[1:])


def _split(data: bytes, parts: int) -> list[bytes]:
    """Cut what `encode_sums` wrote of several orders."""
    size = len(data) // parts
    return [data[start : start + size] for start in range(0, len(data), size)]


def _rows(sums: Sequence[RangeSums], chunk: range, listed: set[int], codebook: Codebook) -> Iterator[tuple[Any, ...]]:
    for place, number in enumerate(chunk):
        if number not in listed:
            continue
        name, crossed = codebook.names[number], number >= codebook.first_pair
        for pair, cells in list_pairs(number):
            sizes = (int(sums[0].cells[cell][place]) for cell in CELLS_OF_PAIRS[pair])
            of_orders = (Decimal(int(column[place])) for ordered in sums for column in ordered.pairs[pair])
            yield name, *cells, crossed, *sizes, *of_orders


def _chunks(codebook: Codebook) -> list[range]:
    """Cut the identities' numbers: what all ranges say of one chunk is combined in one worker's memory."""
    numbers = range(len(codebook.names))
    return [numbers[start : start + _CHUNK] for start in range(0, len(numbers), _CHUNK)]
