"""The sketch of a run: a mergeable summary of the scores of one model, and its rows in ``score_blocks``.

Its *blocks* are the sorted scores of the ranking, see `ranking.kernels.blocks`. Its *header* has the rules of
the run, the values that occur in it, and quantiles of its scores, so a window can be planned from headers alone.

    RANKED of a run --> rows --a table--> rows of runs --> parts --one shuffle--> RANKED of the window

Neither reads the corpus: the blocks come from the ranking that a run does anyway, and a window reads only blocks. Runs
may differ in the values of a category or an array: a run's identity numbers are mapped to those of the window, and
`memberships.find_unseen` says where a pair with a value that a run lacks is unknown.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

import numpy as np
import pyspark.sql.functions as F
from pyspark.sql import DataFrame

from biasspark.arrays import Floats, Ints
from biasspark.columns import ALL_ROWS, HEADER_RANGE, MODEL, SLICE
from biasspark.command import name_command
from biasspark.config import list_differences
from biasspark.corpus.decode import name_of
from biasspark.corpus.encoding import Encoding
from biasspark.corpus.values import combine
from biasspark.ranking.engine import count_corpus
from biasspark.ranking.kernels.blocks import MAX_BYTES, Block, cut_block, read_piece
from biasspark.ranking.memberships import pair_number
from biasspark.ranking.range_job import cut_batches, read_rows
from biasspark.ranking.task_rows import Batches, Kind, Part
from biasspark.text import show_value

FORMAT = 3
"""The format of blocks and headers; sketches of different formats do not merge."""

MAX_SKEW = 4
"""New boundaries are chosen if a range has more than this many times the rows of the mean range."""

_PARTS = 1024
_SCORES_A_TASK = 4_000_000
RUN = "run"
_STORED_NAMES = {"max_range_rows": "fullest", "skewed": "lopsided"}


@dataclass(frozen=True, kw_only=True)
class SketchHeader:
    """The sketch of one model in one run, without its blocks.

    ``rules``, of `config.merge_rules`, must agree for runs to merge. ``types`` and ``values`` are of the columns whose
    values are identities: Spark types, which decide how values are written and sorted, and the values in the run, in
    order. ``members`` are (low, high, rows) of the crossed pairs that have rows, over all rows read, by the run's
    numbers. ``n_rows`` have a score of the model, ``max_range_rows`` of them are in its largest range, and
    ``quantiles`` cut a sample into equal parts. ``is_single`` is whether scores are float32. ``ranges`` were requested
    when the boundaries were chosen; ``skewed`` is whether one had too many rows nevertheless, because of ties.
    """

    rules: Mapping[str, Any]
    types: Mapping[str, str]
    values: Mapping[str, Sequence[str]]
    members: Sequence[Sequence[int]]
    n_rows: int
    max_range_rows: int
    extremes: Sequence[float] | None
    quantiles: Sequence[float]
    is_single: bool
    ranges: int
    skewed: bool

    def encode(self) -> bytes:
        """Return the header as JSON, as the table ``score_blocks`` holds it."""
        stored = {_STORED_NAMES.get(name, name): value for name, value in asdict(self).items()}
        return json.dumps(stored, separators=(",", ":"), allow_nan=False).encode()

    @staticmethod
    def decode(data: bytes) -> SketchHeader:
        """Return the header that `encode` wrote."""
        names = {stored: name for name, stored in _STORED_NAMES.items()}
        return SketchHeader(**{names.get(name, name): value for name, value in json.loads(data).items()})


@dataclass(frozen=True)
class Sketch:
    """The sketch of one model in one run: the key of `hash_agreement`, the boundaries of its blocks, its header."""

    key: str
    boundaries: Floats
    header: SketchHeader


@dataclass(frozen=True)
class RangeBoundaries:
    """The boundaries of a model's score ranges, ascending, and the number of ranges requested; ties may leave fewer.

    `skewed` is whether a range had too many rows when the boundaries were chosen; None if they are new.
    """

    boundaries: Floats
    ranges: int
    skewed: bool | None = None


def is_skewed(max_range_rows: int, n_rows: int, boundaries: Floats) -> bool:
    """Return whether the largest range has more than four times the rows of the mean one."""
    return max_range_rows * (len(boundaries) + 1) > MAX_SKEW * n_rows


def reuse_boundaries(sketch: Sketch, ranges: int) -> RangeBoundaries | None:
    """Return the boundaries of an earlier run, or None where they no longer balance the work.

    They do not if a range has outgrown the others since they were chosen, or if a run would now be cut into more than
    four times as many `ranges`. A range with too many rows from the start has ties, which no boundary can separate.
    """
    header, boundaries = sketch.header, sketch.boundaries
    outgrown = is_skewed(header.max_range_rows, header.n_rows, boundaries) and not header.skewed
    if outgrown or ranges > MAX_SKEW * header.ranges:
        return None
    return RangeBoundaries(boundaries, header.ranges, header.skewed)


def hash_agreement(header: SketchHeader, boundaries: Floats) -> str:
    """Return the key of a sketch: a hash of all that must agree for blocks to merge."""
    agreed = [FORMAT, {**header.rules, "types": header.types}, [edge.hex() for edge in boundaries.tolist()]]
    return hashlib.sha256(json.dumps(agreed, separators=(",", ":")).encode()).hexdigest()


def merge_quantiles(headers: Sequence[SketchHeader]) -> Floats:
    """Return scores that cut the combined runs into 1,024 nearly equal parts; runs are weighted by their rows."""
    scores = np.concatenate([np.asarray(header.quantiles, np.float64) for header in headers])
    if not len(scores):
        return scores
    sizes = [len(header.quantiles) for header in headers]
    weights = np.repeat([header.n_rows / (size + 1) for header, size in zip(headers, sizes, strict=True)], sizes)
    order = np.argsort(scores, kind="stable")
    running = np.cumsum(weights[order])
    merged: Floats = scores[order][np.searchsorted(running, np.arange(1, _PARTS) / _PARTS * running[-1])]
    return merged


def merge_extremes(headers: Sequence[SketchHeader]) -> tuple[float, float] | None:
    """Return the lowest and the highest score of all runs; None if no run has any."""
    extremes = [header.extremes for header in headers if header.extremes]
    return (min(low for low, _ in extremes), max(high for _, high in extremes)) if extremes else None


Sketches = Mapping[date, Mapping[str, Sketch]]
"""The sketches of each date, in order, by model."""

# ---- which runs of a window do not merge, and why


def list_disagreements(sketches: Sketches, models: Sequence[str], rules: Mapping[str, Any]) -> list[str]:
    """Return all reasons why runs do not match the configuration, or do not merge with the last one.

    Runs that differ in the same way are one fault.
    """
    faults = [
        f"[models] {model}: not measured on {', '.join(missing)}. A window needs all its models on every date. Measure "
        "these dates again, or leave the model out."
        for model in models
        if (missing := [str(day) for day, by_model in sketches.items() if model not in by_model])
    ]
    last = max(sketches)
    latest = {model: sketch for day in sorted(sketches) for model, sketch in sketches[day].items() if model in models}
    types = next(iter(sketches[last].values())).header.types
    days_by_differences: dict[tuple[str, ...], list[date]] = {}
    for day, by_model in sketches.items():
        header = next(iter(by_model.values())).header
        differences = list_differences(rules, header.rules, ("in the configuration", "in the run"))
        differences += list_differences(header.types, types, ("in the run", f"on {last}"), ("types",))
        differences += [
            f"the boundaries of {show_value(model)} are not those of the last run"
            for model in models
            if model in by_model and by_model[model].boundaries.tolist() != latest[model].boundaries.tolist()
        ]
        if any(one.key != hash_agreement(one.header, one.boundaries) for one in by_model.values()):
            differences.append("another version of biasspark wrote the blocks in another format")
        days_by_differences.setdefault(tuple(differences), []).append(day)
    days_by_differences.pop((), None)
    for phrases, days in days_by_differences.items():
        which = f"the run of {days[0]}" if len(days) == 1 else f"{len(days)} runs from {days[0]} to {days[-1]}"
        faults.append(
            f"state: {which} cannot be merged: {'; '.join(phrases)}. Only runs with the same measures merge. Measure "
            f"{'this date' if len(days) == 1 else 'these dates'} again with this configuration: "
            f"{name_command('bias_metrics')}."
        )
    return faults


# ---- rows of score_blocks


def sketch_rows(
    ranked: DataFrame, encoding: Encoding, headers: Sequence[SketchHeader], boundaries: Sequence[RangeBoundaries]
) -> DataFrame:
    """Return the rows of ``score_blocks``, less the run's columns: one header per model, and all blocks.

    The encoding of RANKED must keep sketches (`engine.rank_ranges`); headers and boundaries are by model. Lazy. No
    shuffle: blocks are written where they were ranked.
    """
    edges = [model_edges.boundaries for model_edges in boundaries]
    keys = [hash_agreement(header, model_edges) for header, model_edges in zip(headers, edges, strict=True)]
    texts = tuple(",".join(map(repr, model_edges.tolist())) for model_edges in edges)
    blocks = ranked.where("chunk < 0").select(
        MODEL,
        name_of(F.col(SLICE), encoding.slices).alias(SLICE),
        "score_range",
        (-1 - F.col("chunk")).alias("part"),
        F.col("data").alias("block"),
    )
    rows = combine(DataFrame.unionAll, [blocks, *(_header_rows(ranked, *entry) for entry in enumerate(headers))])
    return rows.select(
        name_of(F.col(MODEL), encoding.models).alias(MODEL),
        *(SLICE, "score_range", "part"),
        name_of(F.col(MODEL), tuple(keys)).alias("state_key"),
        # As text, since each literal of a Column is a call to the JVM. A cast reads back the exact double on every
        # engine; the embedded engine's `from_json` misses the last bit of one in nine.
        F.filter(F.split(name_of(F.col(MODEL), texts), ","), lambda edge: edge != "")
        .cast("array<double>")
        .alias("boundaries"),
        "block",
    )


def read_sketches(
    rows: DataFrame,
    headers: Sequence[Mapping[str, SketchHeader]],
    runs: Sequence[Encoding],
    window: Encoding,
    boundaries: Sequence[Floats],
) -> DataFrame:
    """Return the parts of a window: see `engine.sort_examples`. Lazy.

    `rows` are ``score_blocks`` with the index of each run as ``run``; `headers` are of each run, by model. `window` has
    the identities of all runs. `boundaries` are those of each of its models; no result depends on them. The blocks are
    read once, 8 bytes per score and 16 per membership.
    """
    renumberings = [Renumbering.between(run, window) for run in runs]
    models, slices = ({name: n for n, name in enumerate(names)} for names in (window.models, window.slices))

    def cut(batches: Batches) -> Iterator[Part]:
        for run, model, part, piece in read_rows(batches):
            key = models[model], slices[part]
            kind, block = read_piece(piece)
            for entered, renumbered in renumberings[run].enter(kind, block):
                for score_range, range_block in cut_block(renumbered, boundaries[key[0]]):
                    yield Part(*key, score_range, entered, range_block)

    n_scores = sum(by_model[model].n_rows for by_model in headers for model in window.models)
    blocks = rows.where((F.col("score_range") >= 0) & F.col(MODEL).isin(*window.models))
    narrow = blocks.select(RUN, MODEL, SLICE, "block").coalesce(max(-(-n_scores // _SCORES_A_TASK), 1))
    counts = np.zeros(len(window.count_keys), np.int64)  # in a window only the rows of crossed pairs are set
    for by_model, renumbering in zip(headers, renumberings, strict=True):
        for low, high, n_rows in by_model[window.models[0]].members:
            pair = renumbering.pair_number(*renumbering.numbers[[low, high]])
            counts[window.first_pair_index + pair - window.first_pair] += n_rows
    return cut_batches(narrow, cut).unionAll(count_corpus(rows.sparkSession, counts))


@dataclass(frozen=True)
class Renumbering:
    """The window's numbers of a run's identities, crossed pairs included, and by source those that the run lacks."""

    window: Encoding
    numbers: Ints
    absent: dict[int, tuple[int, ...]]

    @staticmethod
    def between(run: Encoding, window: Encoding) -> Renumbering:
        """Compare two encodings of the same sources; the window has all identities of the run."""
        singles = np.array([0, *(window.number[name] for name in run.singles)])
        known = set(singles.tolist())
        absent = {
            index: tuple(
                number for name in window.sources[index].identities if (number := window.number[name]) not in known
            )
            for index in window.open_sources
        }
        low, high = singles[np.array(run.pairs, np.int64).reshape(-1, 2).T]
        return Renumbering(window, np.append(singles, pair_number(low, high, len(window.singles))), absent)

    def pair_number(self, low: Ints, high: Ints) -> Ints:
        """Return the window's numbers of crossed pairs, given those of their two identities."""
        return pair_number(low, high, len(self.window.singles))

    def enter(self, kind: int, block: Block) -> Iterator[tuple[int, Block]]:
        """Yield a run's block as the window's blocks of base cells and of memberships."""
        if kind == Kind.CELLS:
            yield Kind.CELLS, block
            return
        identity, state = block.keys >> 2, block.keys & 3
        if kind == Kind.MEMBERSHIPS:
            keys = self.numbers[identity] << 2 | state
            yield Kind.MEMBERSHIPS, Block(keys, block.lengths, block.scores, block.counts)
            return
        side, source = np.divmod(identity, len(self.window.sources))
        side = self.numbers[side]
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
    pieces = [F.lit(data[start : start + MAX_BYTES]) for start in range(0, len(data), MAX_BYTES)]
    return ranked.sparkSession.range(1).select(
        F.lit(model), F.lit(ALL_ROWS), F.lit(HEADER_RANGE), F.posexplode(F.array(*pieces))
    )
