"""Sketches in Spark: from RANKED to rows of ``score_blocks``, and from the rows of many runs to the parts of a window.

    RANKED of a run --> rows --a table--> rows of runs --> parts --one shuffle--> RANKED of the window

Neither reads the corpus: the blocks come from the ranking that a run does anyway, and a window reads only blocks. Runs
may differ in the values of a category or an array: a run's identity numbers are mapped to those of the window, and
`memberships.find_unseen` says where a pair with a value that a run lacks is unknown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyspark.sql.functions as F
from pyspark.sql import DataFrame

from biasspark.arrays import Floats, Ints
from biasspark.columns import ALL_ROWS, HEADER_RANGE, MODEL, SLICE
from biasspark.corpus.decode import name_of
from biasspark.corpus.encoding import Encoding
from biasspark.ranking.engine import count_corpus
from biasspark.ranking.kernels.blocks import MOST_BYTES, Block, cut_block, read_piece
from biasspark.ranking.memberships import pair_number
from biasspark.ranking.range_job import cut_batches
from biasspark.ranking.task_rows import Batches, Kind, Part
from biasspark.windows.sketch import RangeBoundaries, SketchHeader, hash_agreement

NIGHT = "night"
_SCORES_A_TASK = 4_000_000


def sketch_rows(
    ranked: DataFrame, encoding: Encoding, headers: Sequence[SketchHeader], boundaries: Sequence[RangeBoundaries]
) -> DataFrame:
    """Return the rows of the table ``score_blocks``, less the run's columns: one header per model, and all blocks.

    The encoding of RANKED must keep sketches (`engine.rank_ranges`); headers and boundaries are by model. Lazy. No
    shuffle: blocks are written where they were ranked.
    """
    edges = [of_model.boundaries for of_model in boundaries]
    keys = [hash_agreement(header, of_model) for header, of_model in zip(headers, edges, strict=True)]
    blocks = ranked.where("chunk < 0").select(
        MODEL,
        name_of(F.col(SLICE), encoding.slices).alias(SLICE),
        "score_range",
        (-1 - F.col("chunk")).alias("part"),
        F.col("data").alias("block"),
    )
    rows = reduce(DataFrame.unionAll, (_header_rows(ranked, n, header) for n, header in enumerate(headers)), blocks)
    return rows.select(
        name_of(F.col(MODEL), encoding.models).alias(MODEL),
        *(SLICE, "score_range", "part"),
        name_of(F.col(MODEL), tuple(keys)).alias("state_key"),
        # As text, since each literal of a Column is a call to the JVM; Java reads back the exact double.
        F.from_json(
            name_of(F.col(MODEL), tuple(json.dumps(of_model.tolist()) for of_model in edges)), "array<double>"
        ).alias("boundaries"),
        "block",
    )


def read_sketches(
    rows: DataFrame,
    headers: Sequence[Mapping[str, SketchHeader]],
    runs: Sequence[Encoding],
    window: Encoding,
    boundaries: Sequence[Floats],
) -> DataFrame:
    """Return the parts of a window: see `engine.sort_examples`.

    `rows` are ``score_blocks`` of the runs, with the index of each run as ``night``; `headers` are of each run, by
    model. `window` has the models of the window and the identities of all runs, and `boundaries` are the range
    boundaries of each of these models; no result depends on them. Lazy. Cost: the blocks are read once, 8 bytes per
    score and 16 per membership.
    """
    renumberings = [Renumbering.between(run, window) for run in runs]
    models, slices = ({name: n for n, name in enumerate(names)} for names in (window.models, window.slices))

    def cut(batches: Batches) -> Iterator[Part]:
        for run, model, part, piece in (row for batch in batches for row in zip(*batch.columns, strict=True)):
            key = models[model.as_py()], slices[part.as_py()]
            kind, block = read_piece(memoryview(piece.as_buffer()))
            for entered, renumbered in renumberings[run.as_py()].enter(kind, block):
                for score_range, of_range in cut_block(renumbered, boundaries[key[0]]):
                    yield Part(*key, score_range, entered, of_range.encode())

    n_scores = sum(by_model[model].n_rows for by_model in headers for model in window.models)
    blocks = rows.where((F.col("score_range") >= 0) & F.col(MODEL).isin(*window.models))
    narrow = blocks.select(NIGHT, MODEL, SLICE, "block").coalesce(max(-(-n_scores // _SCORES_A_TASK), 1))
    counts = np.zeros(len(window.count_keys), np.int64)  # in a window only the rows of crossed pairs are set
    for by_model, renumbering in zip(headers, renumberings, strict=True):
        for low, high, n_rows in by_model[window.models[0]].members:
            sides = renumbering.singles[[low, high]]
            counts[window.first_pair_count + renumbering.pair_number(*sides) - window.first_pair] += n_rows
    return cut_batches(narrow, cut).unionAll(count_corpus(rows.sparkSession, counts))


@dataclass(frozen=True)
class Renumbering:
    """The mapping of a run's identity numbers to those of a window.

    `singles` has the window's number for each of the run's numbers up to its first pair, ascending. `absent` has, by
    index of the source, the window's identities that the run lacks.
    """

    window: Encoding
    singles: Ints
    absent: dict[int, tuple[int, ...]]

    @staticmethod
    def between(run: Encoding, window: Encoding) -> Renumbering:
        """Compare two encodings of the same sources; the window has all identities of the run."""
        numbers = [0, *(window.number[name] for name in run.singles)]
        known = set(numbers)
        absent = {
            index: tuple(
                number for name in window.sources[index].identities if (number := window.number[name]) not in known
            )
            for index in window.open_sources
        }
        return Renumbering(window, np.array(numbers, np.int64), absent)

    def pair_number(self, low: Ints, high: Ints) -> Ints:
        """Return the numbers of pairs, from the window's numbers of their sides."""
        return pair_number(low, high, len(self.window.singles))

    def renumber(self, identity: Ints) -> Ints:
        """Return the window's numbers of the run's identities, including crossed pairs."""
        n_singles = len(self.singles) - 1
        numbers = self.singles[np.minimum(identity, n_singles)]
        crossed = np.flatnonzero(identity > n_singles)
        if len(crossed):
            # Pairs are numbered (1, 2), (1, 3), ..., (2, 3), ...: where those begin that have 1, 2, ... as low side
            firsts = np.cumsum(np.r_[0, np.arange(n_singles - 1, 0, -1)])
            pair = identity[crossed] - n_singles - 1
            low = np.searchsorted(firsts, pair, "right")
            high = pair - firsts[low - 1] + low + 1
            numbers[crossed] = self.pair_number(self.singles[low], self.singles[high])
        return numbers

    def enter(self, kind: int, block: Block) -> Iterator[tuple[int, Block]]:
        """Yield a run's block as the window's blocks of base cells and of memberships."""
        if kind == Kind.CELLS:
            yield Kind.CELLS, block
            return
        identity, state = block.keys >> 2, block.keys & 3
        if kind == Kind.MEMBERSHIPS:
            keys = self.renumber(identity) << 2 | state
            yield Kind.MEMBERSHIPS, Block(keys, block.lengths, block.scores, block.counts)
            return
        side, source = np.divmod(identity, len(self.window.sources))
        side = self.singles[side]
        source_of_scores = np.repeat(source, block.lengths)
        for index in np.unique(source).tolist():
            chosen, inside = source == index, source_of_scores == index
            counts = block.counts[inside] if len(block.counts) else block.counts
            for absent in self.absent[index]:
                pairs = self.pair_number(np.minimum(side[chosen], absent), np.maximum(side[chosen], absent))
                keys = pairs << 2 | state[chosen]
                yield Kind.MEMBERSHIPS, Block(keys, block.lengths[chosen], block.scores[inside], counts)


def _header_rows(ranked: DataFrame, model: int, header: SketchHeader) -> DataFrame:
    """Return a header as rows of pieces that fit a row."""
    data = header.encode()
    pieces = [F.lit(data[start : start + MOST_BYTES]) for start in range(0, len(data), MOST_BYTES)]
    return ranked.sparkSession.range(1).select(
        F.lit(model), F.lit(ALL_ROWS), F.lit(HEADER_RANGE), F.posexplode(F.array(*pieces))
    )
