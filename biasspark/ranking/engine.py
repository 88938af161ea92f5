"""EXAMPLES -> COUNTS: by sorted score blocks in numpy or by rank windows in SQL, with the same integers.

    EXAMPLES --cut--> blocks --one shuffle--> RANKED, counts of ranges --small shuffle--> COUNTS

EXAMPLES: one encoded row for each row of the corpus. RANKED: counts by range. COUNTS: their combination. RANKED and
COUNTS do not grow with the corpus. The terms, the skeleton, and what a worker holds in memory are in
`range_job`, the placements in `kernels.placements`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql import DataFrame, SparkSession

from biasspark.arrays import Floats, Ints
from biasspark.columns import ROW_REASONS, SCORE_REASONS
from biasspark.corpus.encoding import Encoding
from biasspark.ranking import window_engine
from biasspark.ranking.counts import Counts, make_counts
from biasspark.ranking.kernels.blocks import membership_key, merge_blocks, merge_cells, write_pieces
from biasspark.ranking.kernels.codec import dump, load
from biasspark.ranking.kernels.range_counts import combine, count_range
from biasspark.ranking.memberships import find_unseen
from biasspark.ranking.range_job import collect_combined, count_ranges, cut_examples, list_chunks
from biasspark.ranking.task_rows import Key, Keys, Kind, Part, Parts, TaskRows, identity_keys, read_blocks, sort_rows

RANKING_PASS = "rank every score (shuffles 8 bytes per score and 24 per row of an identity)"
CORPUS = -1
"""Stands in place of a model for counts of the whole corpus."""
ROW_COUNTS, LABEL_COUNTS = 0, 1
"""Stand in place of a slice for the kinds of counts of the whole corpus."""

_IDENTITIES_A_CHUNK = 512
"""The counts of a range take 400 bytes for each identity, and 32 more for each bin between edges."""


def rank(
    examples: DataFrame,
    encoding: Encoding,
    boundaries: Sequence[Floats],
    edges: Sequence[Floats] = (),
    ranking_engine: str = "blocks",
) -> Counts:
    """Rank every score of every model and slice, and return COUNTS.

    `edges` are, for each model, the ascending scores at which rows are counted; empty for no such counts.
    `ranking_engine` is "blocks", sorted score blocks in numpy, or "windows", rank windows in pure Spark SQL for
    clusters without Python workers. Raises `InputError` if a range has too many rows of one label. Runs one Spark
    action with "blocks": one scan of the corpus and one shuffle.
    """
    if ranking_engine == "windows":
        return window_engine.count_windows(examples, encoding, boundaries, edges)
    parts = sort_examples(examples, encoding, boundaries)
    return collect_counts(rank_ranges(parts, encoding, boundaries, edges), encoding, edges)


def sort_examples(examples: DataFrame, encoding: Encoding, boundaries: Sequence[Floats]) -> DataFrame:
    """Return the parts of EXAMPLES: sorted blocks cut at the boundaries, and counts of rows.

    Lazy. Cost: one scan. Parts take 8 bytes per score and 24 per membership.
    """
    return cut_examples(examples, encoding, lambda rows: cut_task_rows(rows, boundaries))


def rank_ranges(
    parts: DataFrame, encoding: Encoding, boundaries: Sequence[Floats], edges: Sequence[Floats] = ()
) -> DataFrame:
    """Return RANKED: the counts of every range, and its sketch if the encoding keeps sketches. Lazy; one shuffle."""

    def measure(key: Key, parts: Parts) -> Iterable[tuple[int, Any]]:
        if key[0] == CORPUS:
            return [(0, sum(parts[Kind.COUNTS]))]
        return measure_parts(parts, encoding, edges[key[0]] if edges else None)

    return count_ranges(parts, boundaries, len(encoding.slices), measure)


def collect_counts(ranked: DataFrame, encoding: Encoding, edges: Sequence[Floats] = ()) -> Counts:
    """Combine RANKED into COUNTS. Runs one Spark action."""

    def combine_chunk(key: Key, ranges: Iterator[Any]) -> Any:
        if key[0] == CORPUS:
            return sum(ranges)
        return combine(ranges, len(edges[key[0]]) if edges else 0)

    n_groups = len(encoding.models) * len(encoding.slices) * len(_chunks(encoding))
    combined = collect_combined(ranked, combine_chunk, n_groups)
    row_counts, by_length = (combined.pop((CORPUS, kind, 0), None) for kind in (ROW_COUNTS, LABEL_COUNTS))
    return make_counts(
        encoding,
        load(row_counts) if row_counts else (),
        ((key, load(combined.pop(key))) for key in sorted(combined)),
        edges,
        load(by_length) if by_length else None,
    )


def cut_task_rows(rows: TaskRows, boundaries: Sequence[Floats]) -> Iterator[Part]:
    """Cut some rows of one task into parts."""
    encoding, members = rows.encoding, rows.memberships
    keyed = identity_keys(rows)
    if encoding.keeps_sketches and encoding.crossed:
        unseen = find_unseen(members, rows.known, encoding)
        keys = membership_key(unseen.identity, unseen.unknown, rows.label[unseen.row])
        keyed.append(Keys(Kind.UNSEEN, keys, unseen.row))
    yield Part(CORPUS, ROW_COUNTS, 0, Kind.COUNTS, count_rows(rows))
    if encoding.n_length_bins is not None:
        yield Part(CORPUS, LABEL_COUNTS, 0, Kind.COUNTS, count_labels(rows))
    yield from sort_rows(rows, keyed, boundaries)


def count_corpus(spark: SparkSession, counts: Ints) -> DataFrame:
    """Return known row counts, in the order of `Encoding.count_keys`, as a part. Lazy."""
    return spark.range(1).select(*map(F.lit, Part(CORPUS, ROW_COUNTS, 0, Kind.COUNTS, dump(counts))))


def measure_parts(parts: Parts, encoding: Encoding, edges: Floats | None) -> Iterator[tuple[int, Any]]:
    """Yield the counts of a range by chunk of identities, and the pieces of its sketch as chunks -1, -2, ..."""
    blocks = {kind: read_blocks(parts, kind) for kind in (Kind.CELLS, Kind.MEMBERSHIPS, Kind.UNSEEN)}
    if encoding.keeps_sketches:
        blocks = {kind: [merge_blocks(kind_blocks)] for kind, kind_blocks in blocks.items()}
        pieces = (piece for kind, [block] in blocks.items() for piece in write_pieces(kind, block))
        yield from ((-1 - number, piece) for number, piece in enumerate(pieces))
    counts = count_range(merge_cells(blocks[Kind.CELLS]), blocks[Kind.MEMBERSHIPS], encoding.known_masks, edges)
    for chunk in _chunks(encoding):
        yield chunk.start, counts.of_identities(chunk)


def count_rows(rows: TaskRows) -> Ints:
    """Count rows, rejects by reason and rows of each crossed pair, in the order of `Encoding.count_keys`."""
    encoding, members = rows.encoding, rows.memberships
    masks = encoding.masks("row_reason", "score_reason", "annotation", "unreadable", "off_scale")
    faulty = np.flatnonzero(np.logical_or.reduce([rows.words[word] & mask != 0 for word, mask in masks.items()]))
    few = TaskRows(rows.table.select(encoding.packed_columns).take(pa.array(faulty)), encoding)  # all else counts fully
    reasons = [few.read("score_reason", model) * few.stays for model in range(len(encoding.models))]
    rejected = ~few.stays | np.logical_and.reduce([reason > 0 for reason in reasons])
    positive, n_positive = few.label * few.stays, rows.label.sum() - few.label.sum()
    pairs = members.identity[(members.unknown == 0) & (members.identity >= encoding.first_pair)]
    annotated = rows.annotations.by_identity if rows.annotations else {}
    return np.concatenate(
        [
            [len(rows), rejected.sum(), (few.read("annotation") * few.stays).sum(), n_positive + positive.sum()],
            [n_positive + (positive * (reason == 0)).sum() for reason in reasons],
            np.bincount(few.read("row_reason"), minlength=len(ROW_REASONS) + 1)[1:],
            *(np.bincount(reason, minlength=len(SCORE_REASONS) + 1)[1:] for reason in reasons),
            [(few.read("unreadable", text) * few.stays).sum() for text in range(len(encoding.text_columns))],
            [
                rows.stays[annotated[number].off_scale].sum()
                if number in annotated
                else (few.read("off_scale", number) * few.stays).sum()
                for number in encoding.fraction_numbers.values()
            ],
            np.bincount(pairs - encoding.first_pair, minlength=len(encoding.pairs)),
        ]
    ).astype(np.int64)


def count_labels(rows: TaskRows) -> Ints:
    """Count the labeled rows of every identity: see `Counts.labels`."""
    encoding, members = rows.encoding, rows.memberships
    n_bins = encoding.n_length_bins or 0
    width = 2 * (n_bins + 1)
    cell = 2 * (rows.read("length_bin") if n_bins else 0) + rows.label
    counted = (members.unknown == 0) & (members.identity < encoding.first_pair) & rows.stays[members.row]
    bins = members.identity[counted] * width + cell[members.row[counted]]
    counts = np.bincount(bins, minlength=encoding.first_pair * width)
    counts[:width] = np.bincount(cell[rows.stays], minlength=width)  # (overall) counts every row
    return counts.reshape(encoding.first_pair, -1, 2).astype(np.int64)


def _chunks(encoding: Encoding) -> list[range]:
    return list_chunks(len(encoding.names), _IDENTITIES_A_CHUNK)
