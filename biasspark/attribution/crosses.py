"""AUC and headroom of every cross of groups, and of named pairs (Attributing, sections 6.1 to 6.4).

row blocks --> sums of every two groups, positives of one and negatives of the other --> table rows
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from biasspark.arrays import divide
from biasspark.columns import MODEL, ORDERED_DOUBLED, SLICE
from biasspark.config.attribution_settings import NamedPair
from biasspark.corpus.encoding import Encoding
from biasspark.metrics.intervals import auc_interval, delong_variance
from biasspark.metrics.u_statistics import aucs_of_counts
from biasspark.ranking.kernels.group_pairs import count_group_pairs
from biasspark.ranking.kernels.pair_sums import PairSums
from biasspark.ranking.kernels.row_block import RowBlock
from biasspark.ranking.row_blocks import Query, Search
from biasspark.tables.schemas import Masked, Table, table_of_rows

_SUMS = ("n_positive", "n_negative", ORDERED_DOUBLED, "low_square_sum", "high_square_sum")


def count_pairs_of_groups(
    encoding: Encoding, groupings: Mapping[str, tuple[str, ...]], first: int = 0, *, only_last: bool = False
) -> Search[list[dict[str, Any]]]:
    """Count the correctly ordered pairs of every two groups, for every model, slice and grouping.

    `groupings` has, by grouping, the names of its groups by number, in the order of the cells' group columns from the
    `first` on. There is a row for all pairs of groups that have rows in the slice, or for the last group alone.
    ``ordered_doubled`` adds up to the value of the whole slice; the square sums are of the doubled placements of the
    negatives, and of the positives.

    One query. Cost: for each grouping and each of its groups one pass over the rows of the rarer label, neither one for
    each pair of rows nor one for each pair of groups.
    """

    def measure(_: int, _range: int, block: RowBlock) -> Iterator[tuple[int, int, PairSums]]:
        for slice_number in range(len(encoding.slices)):
            rows = block.rows_of(slice_number)
            for number, groups in enumerate(groupings.values() if len(rows) else ()):
                group = block.cells.groups(first + number)[block.cell[rows]]
                sums = count_group_pairs(block.score_index[rows], block.label[rows], group, len(groups))
                yield slice_number, number, sums

    combined = yield Query(measure, lambda _, ranges: reduce(PairSums.merge, ranges))
    counted: list[dict[str, Any]] = []
    for (model, slice_number, number), sums in sorted(combined.items()):
        grouping, groups = list(groupings.items())[number]
        n_negative, n_positive = sums.n_low[0], sums.n_high[:, 0]
        present = [-1] if only_last else np.flatnonzero(n_positive + n_negative)
        counted += (
            {
                MODEL: encoding.models[model],
                SLICE: encoding.slices[slice_number],
                "grouping": grouping,
                "positive_group": groups[high],
                "negative_group": groups[low],
                "n_positive": n_positive[high],
                "n_negative": n_negative[low],
                ORDERED_DOUBLED: sums.two_u[high, low],
                "low_square_sum": sums.low_squares[high, low],
                "high_square_sum": sums.high_squares[high, low],
            }
            for high in present
            for low in present
        )
    return counted


def list_named_pairs(pairs: Mapping[str, NamedPair], counted: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of named pairs for `measure_crosses`, given their counts."""
    rows = []
    for row in sorted(counted, key=itemgetter(MODEL, SLICE)):
        name = row["grouping"]
        predicates = {"negative_predicate": pairs[name].negatives, "positive_predicate": pairs[name].positives}
        rows.append({**row, "pair": name, **predicates})
    return rows


def measure_crosses(
    table: Table, rows: Sequence[Mapping[str, Any]], all_wrong: Mapping[tuple[str, str], int], level: float
) -> pa.Table:
    """Return the table ``auc_crosses``, or ``named_pairs``: some positives against some negatives in each row.

    For positives of group i and negatives of group j: AUC = U/(n_i m_j), the share of correctly ordered pairs, ties
    half, and headroom = n_i m_j - U, the wrongly ordered pairs. The headroom of all crosses over all pairs is 1 - AUC.
    `rows` are the result of `count_pairs_of_groups`, or of `list_named_pairs`. `all_wrong` is twice the wrongly ordered
    pairs of all rows, by model and slice.
    """
    sums = (np.array([int(row[name]) for row in rows], object) for name in _SUMS)
    n_positive, n_negative, ordered, *square_sums = sums
    n_pairs = n_positive * n_negative
    wrong = (2 * n_pairs - ordered).astype(np.float64)
    wrong_of_slice = np.array([all_wrong[row[MODEL], row[SLICE]] for row in rows], np.float64)
    auc = aucs_of_counts(ordered, n_negative, n_positive)
    variance = delong_variance(n_negative, n_positive, ordered, *square_sums)
    interval = auc_interval(auc, variance, n_negative.astype(np.int64), n_positive.astype(np.int64), level)
    measured = {
        "n_pairs": n_pairs,
        "auc": auc,
        "auc_low": interval.low,
        "auc_high": interval.high,
        "auc_variance": variance,
        "auc_method": Masked(interval.method, np.isnan(auc)),
        "headroom_pairs": wrong / 2,
        "headroom_share": divide(wrong, wrong_of_slice),
    }
    return table_of_rows(table, rows, **measured)
