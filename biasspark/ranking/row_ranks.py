"""Row-level ranks: EXAMPLES -> one row per (model, slice, row) with its placement and its attribution of the AUC.

    EXAMPLES --cut--> rows and offsets of every range --one shuffle--> placed rows

Memory of a worker: the rows of its task's ranges, with their ids (see docs/how-it-works.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from biasspark.arrays import Floats, Ints
from biasspark.columns import LABEL, MODEL, N_OPPOSITE, ORDERED_DOUBLED, ROW_ID, SCORE, SLICE
from biasspark.corpus.decode import name_of
from biasspark.corpus.encoding import Encoding
from biasspark.errors import corpus_changed
from biasspark.ranking.kernels.blocks import find_ranges, split_by_range
from biasspark.ranking.kernels.reference_sets import RankOffsets, count_by_range, place_rows
from biasspark.ranking.range_job import cut_examples, gather_ranges, read_ranges
from biasspark.ranking.row_blocks import refuse_large_range
from biasspark.ranking.task_rows import Batches, Kind, Part, Parts, TaskRows, list_offsets

EXAMPLES_PASS = "list the examples (shuffles 9 bytes per score and the id)"
_ROWS_A_BATCH = 1 << 17
_CODE = "code"
"""The model, the slice and the label of a row as one number: 2·(model·slices + slice) + label."""


def rank_rows(examples: DataFrame, encoding: Encoding, boundaries: Sequence[Floats], labels: Ints) -> DataFrame:
    """Return the table ``example_attributions``, less the run's columns: every row that counts, by model and slice.

    A positive is correctly ordered with the negatives that score below it, a negative with the positives that score
    above it; a tie counts half. ``n_opposite`` is the number of rows of the slice with the other label;
    ``ordered_doubled`` is twice the number of them with which the row is correctly ordered, plus ties, 0 to 2
    n_opposite.

    AUC is the share of correctly ordered (positive, negative) pairs, ties half. Half of the credit of each pair goes to
    its positive, half to its negative: a row that is correctly ordered with d/2 of its m opposite rows has the
    attribution d/4, and normalized d/(4m). The attributions of all rows add up to p·n·AUC; the normalized ones have the
    mean AUC/2 over the positives, and over the negatives (Attributing, sections 5.1 and 5.2).

    `examples` have a column ``row_id``. `labels`, shape (2, models, slices), are the negatives and the positives of
    each slice. Raises `InputError` when it is computed, if a range has more rows than a worker holds, or the corpus has
    other rows than were counted.

    Lazy. Cost: one scan and one shuffle, of 9 bytes per score and of the ids; each range is sorted once. A row leaves
    Python with one number in place of model, slice, label and opposite rows: more columns take as long as the ranking.
    """

    def place(batches: Batches) -> Iterator[pa.RecordBatch]:
        for (model, slice_number, _), parts in read_ranges(batches):
            if Kind.ROWS in parts:
                totals = RankOffsets.add_up(parts[Kind.OFFSETS]).total
                if (totals != labels[:, model, slice_number]).any():
                    raise corpus_changed("it has other rows than when they were counted")
                first_code = 2 * (model * len(encoding.slices) + slice_number)
                yield from place_range(parts, first_code).to_batches(_ROWS_A_BATCH)

    parts = cut_examples(examples, encoding, lambda rows: cut_with_ids(rows, boundaries), ROW_ID)
    fields = StructType().add(_CODE, "integer").add(SCORE, "double").add(ORDERED_DOUBLED, "long")
    schema = fields.add(examples.schema[ROW_ID])
    placed = gather_ranges(parts, boundaries, len(encoding.slices)).mapInArrow(place, schema)
    groups = list(product(encoding.models, encoding.slices))
    opposite = np.moveaxis(labels[::-1], 0, -1).ravel().tolist()
    group = F.shiftright(_CODE, 1)
    rows = placed.select(
        name_of(group, tuple(model for model, _ in groups)).alias(MODEL),
        name_of(group, tuple(name for _, name in groups)).alias(SLICE),
        F.col(ROW_ID).cast("string").alias(ROW_ID),
        (F.col(_CODE).bitwiseAND(1) == 1).alias(LABEL),
        SCORE,
        F.element_at(F.array(*map(F.lit, opposite)), F.col(_CODE) + 1).cast("bigint").alias(N_OPPOSITE),
        ORDERED_DOUBLED,
    )
    ordered, n_opposite = F.col(ORDERED_DOUBLED), F.col(N_OPPOSITE)
    # PySpark 3.5.0 has a function nullif that refuses columns.
    normalized = F.when(n_opposite > 0, ordered.cast("double") / (4 * n_opposite))
    return rows.select("*", (ordered / 4).alias("attribution"), normalized.alias("normalized_attribution"))


def cut_with_ids(rows: TaskRows, boundaries: Sequence[Floats]) -> Iterator[Part]:
    """Cut some rows of one task at the boundaries, and count the rows of each label in every range."""
    ids = rows.column(ROW_ID)
    for model, slice_number, usable in rows.groups():
        chosen = np.flatnonzero(usable)
        scores, positive = rows.scores[model][chosen], rows.label[chosen] == 1
        labels = (np.flatnonzero(positive == label) for label in (False, True))
        ranges = find_ranges(scores, boundaries[model])
        yield from list_offsets(model, slice_number, count_by_range(labels, ranges, len(boundaries[model]) + 1))
        for score_range, inside in split_by_range(ranges):
            columns = {SCORE: scores[inside], LABEL: positive[inside], ROW_ID: ids.take(pa.array(chosen[inside]))}
            yield Part(model, slice_number, score_range, Kind.ROWS, pa.table(columns))


def place_range(parts: Parts, first_code: int) -> pa.Table:
    """Return code, score, placement and id of the rows of a range, ascending by score, given the code of negatives."""
    table = pa.concat_tables(parts[Kind.ROWS]).combine_chunks()
    refuse_large_range(table.num_rows)
    table = table.take(pa.array(np.argsort(table.column(SCORE).to_numpy())))
    scores, positive = table.column(SCORE).to_numpy(), table.column(LABEL).to_numpy()
    [placed] = place_rows(scores, positive, [np.ones(len(scores), bool)], RankOffsets.add_up(parts[Kind.OFFSETS]))
    code = (first_code + positive).astype(np.int32)
    return pa.table({_CODE: code, SCORE: table[SCORE], ORDERED_DOUBLED: placed, ROW_ID: table[ROW_ID]})
