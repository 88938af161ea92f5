"""Counts of rows with rounded scores, which show whether exact ones would give warnings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from biasspark.arrays import Floats, Ints
from biasspark.corpus.data_quality import FEW_DISTINCT, GIANT_TIE
from biasspark.corpus.encoding import Encoding
from biasspark.ranking.counts import Counts
from biasspark.ranking.engine import collect_counts, cut_task_rows, rank_ranges
from biasspark.ranking.kernels.pair_sums import BACKGROUND_PAIR
from biasspark.ranking.range_job import cut_examples
from biasspark.ranking.task_rows import Part, TaskRows

_ROUNDED_BITS = 40
"""The bits of a score that rounding drops: of the 52 bits of its fraction, 12 stay."""


def count_rounded(examples: DataFrame, encoding: Encoding, boundaries: Sequence[Floats]) -> Counts:
    """Return COUNTS of the rows with their scores rounded down by less than 1/4096 of their size.

    Rows and labels are exact; about U and the score profiles see `is_settled`. Runs one Spark action: a scan, and a
    small shuffle of the distinct rounded scores.
    """

    def cut(rows: TaskRows) -> Iterable[Part]:
        table = rows.table
        for name, scores in zip(encoding.score_columns, rows.scores, strict=True):
            table = table.set_column(table.schema.get_field_index(name), name, pa.array(_round_down(scores)))
        return cut_task_rows(TaskRows(table, encoding), boundaries)

    return collect_counts(rank_ranges(cut_examples(examples, encoding, cut), encoding, boundaries), encoding)


def _round_down(scores: Floats) -> Floats:
    bits = _flip_negative(scores.view(np.int64)) >> _ROUNDED_BITS << _ROUNDED_BITS
    return _flip_negative(bits).view(np.float64)


def _flip_negative(bits: Ints) -> Ints:
    """Map the bits of doubles to integers of the same order, and back."""
    return bits ^ (bits >> 63 & 0x7FFF_FFFF_FFFF_FFFF)


def is_settled(counts: Counts, encoding: Encoding) -> bool:
    """Return whether exact scores would give the same warnings as rounded ones: none about the values of scores.

    Pairs of rows whose scores are equal once rounded count one half. There are at most as many as rows with the most
    frequent rounded score, times rows of the rarer label, and each is wrong by one half at most.
    """
    labels = counts.cells[2:].reshape(2, len(encoding.models), -1)[:, :, 0].astype(object)
    two_u = counts.sums[BACKGROUND_PAIR, 0].reshape(len(encoding.models), -1)[:, 0]
    for model, (n_negative, n_positive), doubled in zip(encoding.models, labels.T, two_u, strict=True):
        profile, n_pairs = counts.profiles.get(model), n_negative * n_positive
        if profile is None or profile.n_distinct < FEW_DISTINCT or profile.largest_tie >= GIANT_TIE * profile.n_rows:
            return False
        error = profile.largest_tie * min(n_negative, n_positive)
        may_hold_a_mark = profile.lowest < 0 and profile.highest <= 1
        if may_hold_a_mark or not n_pairs <= doubled - error <= doubled + error < 2 * n_pairs:
            return False
    return True
