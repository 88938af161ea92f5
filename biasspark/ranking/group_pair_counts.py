"""AUC by group pair: row blocks -> the sums of every two groups, positives of one and negatives of the other.

See `kernels.group_pairs` for the counting.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Any

import numpy as np

from biasspark.corpus.encoding import Encoding
from biasspark.ranking.kernels.group_pairs import count_group_pairs
from biasspark.ranking.kernels.pair_sums import PairSums
from biasspark.ranking.kernels.row_block import RowBlock
from biasspark.ranking.row_blocks import Query, Search
from biasspark.ranking.task_rows import Key


def count_pairs_of_groups(
    encoding: Encoding, groupings: Mapping[str, tuple[str, ...]], first: int = 0, *, every: bool = False
) -> Search[list[dict[str, Any]]]:
    """Count the correctly ordered pairs of every two groups, for every model, slice and grouping.

    `groupings` has, by grouping, the names of its groups by number, in the order of the cells' group columns from the
    `first` on. There is a row for all pairs of groups that have rows in the slice, or for `every` pair.
    ``ordered_doubled`` adds up to the value of the whole slice; the square sums are of the doubled placements of the
    negatives, and of the positives.

    One query. Cost: for each grouping and each of its groups one pass over the rows of the rarer label, neither one for
    each pair of rows nor one for each pair of groups.
    """
    names = list(groupings.items())

    def measure(_: int, _range: int, block: RowBlock) -> Iterator[tuple[int, int, PairSums]]:
        for slice_number in range(len(encoding.slices)):
            rows = block.rows_of(slice_number)
            for number, (_name, groups) in enumerate(names if len(rows) else ()):
                group = block.cells.groups(first + number)[block.cell[rows]]
                sums = count_group_pairs(block.score_index[rows], block.label[rows], group, len(groups))
                yield slice_number, number, sums

    def combine(_key: Key, ranges: Iterator[PairSums]) -> PairSums:
        return reduce(PairSums.merge, ranges)

    combined = yield Query(measure, combine)
    counted: list[dict[str, Any]] = []
    for (model, slice_number, number), sums in sorted(combined.items()):
        grouping, groups = names[number]
        n_negative, n_positive = sums.n_low[0], sums.n_high[:, 0]
        present = range(len(groups)) if every else np.flatnonzero(n_positive + n_negative)
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
