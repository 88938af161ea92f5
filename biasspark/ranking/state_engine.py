"""The mergeable state in Spark: from RANKED to rows of blocks, and from the rows of many nights to the parts of one.

    RANKED of a night --> rows --a table--> rows of nights --mapInArrow--> parts --one shuffle--> RANKED of a window

The corpus is read by neither: the blocks come of the ranking that a night does anyway, and a window reads blocks alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce

import numpy as np
import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql import DataFrame

from biasspark.arrays import Floats, Ints
from biasspark.columns import ALL_ROWS, HEADER_RANGE, MODEL, SLICE
from biasspark.corpus.codebook import Codebook
from biasspark.corpus.states import name_of
from biasspark.ranking.block_engine import PARTS, send_parts
from biasspark.ranking.memberships import pair_number
from biasspark.ranking.ranges import Batches, OnBatches, gather_ranges
from biasspark.ranking.sorting import TALLIES, TALLIES_RANGE, Part
from biasspark.ranking.state_blocks import MOST_BYTES, Renumbering, cut_block, enter_window, read_piece
from biasspark.ranking.state_header import Cut, Header, name_state

NIGHT = "night"
_SCORES_A_TASK = 4_000_000


def state_rows(ranked: DataFrame, codebook: Codebook, headers: Sequence[Header], cuts: Sequence[Cut]) -> DataFrame:
    """Return the rows of the table ``score_blocks``, less the run's columns: one header per model, and all blocks.

    Parameters
    ----------
    ranked : DataFrame
        RANKED of a codebook that keeps state.
    headers, cuts : sequences of Header and Cut
        For each model.

    Notes
    -----
    Lazy. No shuffle: blocks leave where they were ranked.
    """
    keys = [name_state(header, cut.boundaries) for header, cut in zip(headers, cuts, strict=True)]
    edges = [json.dumps(cut.boundaries.tolist()) for cut in cuts]
    blocks = ranked.where(F.col("state").isNotNull()).select(
        MODEL, name_of(F.col(SLICE), codebook.slices).alias(SLICE), "score_range", F.posexplode("state")
    )
    own = [_header_rows(ranked, model, header.encode()) for model, header in enumerate(headers)]
    rows = reduce(DataFrame.unionAll, own, blocks.toDF(MODEL, SLICE, "score_range", "part", "block"))
    return rows.select(
        name_of(F.col(MODEL), codebook.models).alias(MODEL),
        *(SLICE, "score_range", "part"),
        name_of(F.col(MODEL), tuple(keys)).alias("state_key"),
        # As text, for each literal of a Column is a call to the JVM; Java reads back the double that Python wrote.
        F.from_json(name_of(F.col(MODEL), tuple(edges)), "array<double>").alias("boundaries"),
        "block",
    )


def _header_rows(ranked: DataFrame, model: int, header: bytes) -> DataFrame:
    """Return a header as rows of blocks that a row can hold."""
    pieces = [F.lit(header[start : start + MOST_BYTES]) for start in range(0, len(header), MOST_BYTES)]
    return ranked.sparkSession.range(1).select(
        F.lit(model), F.lit(ALL_ROWS), F.lit(HEADER_RANGE), F.posexplode(F.array(*pieces))
    )


def read_states(
    rows: DataFrame,
    headers: Sequence[Mapping[str, Header]],
    nights: Sequence[Codebook],
    window: Codebook,
    boundaries: Sequence[Floats],
) -> DataFrame:
    """Return the parts of a window, all parts of one range in one task: see `block_engine.sort_into_parts`.

    Parameters
    ----------
    rows : DataFrame
        ``score_blocks`` of the nights, with the place of each night as ``night``.
    headers : sequence of mapping of str to Header
        Of each night, by model.
    nights : sequence of Codebook
        Of each night.
    window : Codebook
        With the models of the window, and the identities of all nights.
    boundaries : sequence of float64 arrays
        For each of these models, where its ranges meet; no result depends on them.

    Notes
    -----
    Lazy. Cost: the blocks are read once and shuffled once, of 8 bytes per score and 16 per membership.
    """
    renumberings = [Renumbering.between(night, window) for night in nights]
    n_scores = sum(own[model].n_rows for own in headers for model in window.models)
    blocks = rows.where((F.col("score_range") >= 0) & F.col(MODEL).isin(*window.models))
    narrow = blocks.select(NIGHT, MODEL, SLICE, "block").coalesce(max(-(-n_scores // _SCORES_A_TASK), 1))
    parts = narrow.mapInArrow(_enter(renumberings, window, boundaries), PARTS)
    members = sum(
        _count_members(own[window.models[0]], by, window) for own, by in zip(headers, renumberings, strict=True)
    )
    parts = parts.unionAll(_tallies(rows, np.asarray(members), window))
    return gather_ranges(parts, boundaries, window, n_others=1)  # the tallies


def _enter(renumberings: Sequence[Renumbering], window: Codebook, boundaries: Sequence[Floats]) -> OnBatches:
    models, slices = ({name: n for n, name in enumerate(names)} for names in (window.models, window.slices))

    def parts_of(batches: Batches) -> Iterator[Part]:
        for night, model, own, piece in (row for batch in batches for row in zip(*batch.columns, strict=True)):
            key = models[model.as_py()], slices[own.as_py()]
            kind, block = read_piece(piece.as_buffer())
            for entered, renumbered in enter_window(kind, block, renumberings[night.as_py()], window):
                for score_range, cut in cut_block(renumbered, boundaries[key[0]]):
                    yield Part(*key, score_range, entered, cut.encode())

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        return send_parts(parts_of(batches))

    return run


def _count_members(header: Header, renumbering: Renumbering, window: Codebook) -> Ints:
    """Return the rows that a night has of each of the window's crossed pairs."""
    low, high, n_rows = np.array(header.members, np.int64).reshape(-1, 3).T
    counts = np.zeros(len(window.pairs), np.int64)
    counts[pair_number(renumbering.singles[low], renumbering.singles[high], window) - window.first_pair] = n_rows
    return counts


def _tallies(rows: DataFrame, members: Ints, window: Codebook) -> DataFrame:
    """Return the one tally of each model and slice; of a window it holds the rows of crossed pairs alone."""
    counts = np.zeros(len(window.tallies), np.int64)
    counts[window.first_pair_tally :] = members
    n_slices = len(window.slices)
    return rows.sparkSession.range(len(window.models) * n_slices).select(
        F.floor(F.col("id") / n_slices).cast("int"),
        (F.col("id") % n_slices).cast("int"),
        F.lit(TALLIES_RANGE),
        F.lit(TALLIES),
        F.lit(counts.tobytes()),
    )
