"""AUC by group pair: EXAMPLES with the group of every row -> the sums of positives and negatives of every two groups.

EXAMPLES --cut--> blocks by (group, label) --one shuffle--> sums of ranges --small shuffle--> sums of every grouping

See `kernels.group_pairs` for the counting, and `range_job` for what a worker holds in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
from pyspark.sql import DataFrame

from biasspark.arrays import Floats
from biasspark.corpus.encoding import Encoding
from biasspark.corpus.feature_columns import group_name
from biasspark.ranking.kernels.codec import pack, unpack
from biasspark.ranking.kernels.group_pairs import count_group_pairs
from biasspark.ranking.kernels.pair_sums import PairSums
from biasspark.ranking.range_job import RangeJob
from biasspark.ranking.task_rows import Key, Keys, Part, Parts, TaskRows, read_blocks, sort_rows


def count_pairs_of_groups(
    examples: DataFrame, encoding: Encoding, boundaries: Sequence[Floats], groupings: Mapping[str, tuple[str, ...]]
) -> list[dict[str, Any]]:
    """Count the rightly ordered pairs of every two groups, for every model, slice and grouping.

    Parameters
    ----------
    examples : DataFrame
        EXAMPLES, as the encoding describes it, and for each grouping in order an INT column ``group_0``, ``group_1``,
        ...: the number of the row's group.
    groupings : mapping of str to tuple of str
        By name of the grouping, the names of its groups by number.

    Returns
    -------
    list of dict
        ``model, slice, grouping, positive_group, negative_group, n_positive, n_negative, ordered_doubled,
        low_square_sum, high_square_sum``: all pairs of groups that any row of the slice is in. The sum of
        ``ordered_doubled`` is that of the whole slice; squares are of the doubled placements of the negatives, and of
        the positives.

    Notes
    -----
    Runs one Spark action. Cost: one scan and one shuffle, of 9 bytes per score and grouping; then for each grouping two
    passes over the scores for each of its groups, neither one for each pair of rows nor one for each pair of groups.
    """
    names = [(grouping, groups) for grouping, groups in groupings.items()]
    columns = [group_name(number) for number in range(len(names))]

    def cut(rows: TaskRows) -> Iterator[Part]:
        groups = (rows.column(column).to_numpy().astype(np.int64) for column in columns)
        return sort_rows(rows, [Keys(n, group << 1 | rows.label) for n, group in enumerate(groups)], boundaries)

    def measure(_: Key, parts: Parts) -> Iterator[tuple[int, bytes]]:
        for kind in parts:
            yield kind, pack(count_group_pairs(read_blocks(parts, kind), len(names[kind][1])).pack())

    def combine(_: Key, ranges: Iterator[memoryview]) -> bytes:
        return pack(reduce(PairSums.merge, (PairSums.unpack(*unpack(data)) for data in ranges)).pack())

    job = RangeJob(encoding, boundaries, measure, combine, len(names))
    combined = job.run(examples, cut, *columns)
    counted: list[dict[str, Any]] = []
    for (model, slice_number, number), data in sorted(combined.items()):
        grouping, groups = names[number]
        sums = PairSums.unpack(*unpack(data))
        n_negative, n_positive = sums.n_low[0], sums.n_high[:, 0]
        present = np.flatnonzero(n_positive + n_negative)
        counted += (
            {
                "model": encoding.models[model],
                "slice": encoding.slices[slice_number],
                "grouping": grouping,
                "positive_group": groups[high],
                "negative_group": groups[low],
                "n_positive": n_positive[high],
                "n_negative": n_negative[low],
                "ordered_doubled": sums.two_u[high, low],
                "low_square_sum": sums.low_squares[high, low],
                "high_square_sum": sums.high_squares[high, low],
            }
            for high in present
            for low in present
        )
    return counted
