"""The attributes of rows other than scores, as cells: slices, segments, bins, groups. numpy and pyarrow only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from biasspark.arrays import Ints
from biasspark.columns import HONEST, NEGATIVE, POSITIVE
from biasspark.errors import corpus_changed
from biasspark.features import DRAW, Feature, column_name
from biasspark.ranking.kernels.row_block import CellColumns, SmallInts, number_cells
from biasspark.ranking.task_rows import TaskRows


@dataclass(frozen=True)
class RowDescription:
    """How rows are described: from EXAMPLES, and from additional columns named as in `biasspark.features`.

    These are, in order: features, DOUBLE if numeric; the groups of each grouping (see
    `feature_columns.Grouping`); segments; and for each named pair its negatives and its positives. Segments and
    pairs are BOOLEAN, never NULL. Groups and features that are not numeric are STRING, BOOLEAN or integers. If rows are
    split, a BOOLEAN column marks those of the estimation sample; if they are drawn, a BIGINT column holds the hashes by
    which they are sampled.
    """

    features: Sequence[Feature]
    groupings: Sequence[Sequence[str]]
    segments: Sequence[str]
    n_slices: int
    is_split: bool
    is_drawn: bool
    n_pairs: int = 0

    @property
    def columns(self) -> CellColumns:
        """The columns of the cells. A named pair has two groups, outside and inside, behind those of groupings."""
        n_groupings = len(self.groupings) + self.n_pairs
        return CellColumns(self.n_slices, len(self.segments), len(self.features), n_groupings)

    @property
    def names(self) -> list[str]:
        """The additional columns that are read."""
        kinds = (("feature", self.features), ("group", self.groupings), ("segment", self.segments))
        names = [column_name(kind, number) for kind, listed in kinds for number in range(len(listed))]
        names += [column_name(side, number) for number in range(self.n_pairs) for side in (NEGATIVE, POSITIVE)]
        return names + [HONEST] * self.is_split + [DRAW] * self.is_drawn

    def describe(self, rows: TaskRows) -> tuple[SmallInts, SmallInts, Ints]:
        """Return the cell of each row, the cells (`number_cells`), and the hashes by which rows are sampled, if any."""
        cell, values = number_cells(list(self._list_columns(rows)))
        draws = rows.column(DRAW).to_numpy() if self.is_drawn else np.zeros(0, np.int64)
        return cell, values, draws

    def _list_columns(self, rows: TaskRows) -> Iterator[Ints]:
        """Yield the columns of the cells in order."""
        yield rows.label
        yield _flags(rows.column(HONEST)) if self.is_split else np.zeros(len(rows), np.int64)
        yield from (rows.read("slice", number) for number in range(1, self.n_slices))
        yield from (_flags(rows.column(column_name("segment", number))) for number in range(len(self.segments)))
        for number, feature in enumerate(self.features):
            yield cut_into_bins(rows.column(column_name("feature", number)), feature)
        for number, groups in enumerate(self.groupings):
            yield find_groups(rows.column(column_name("group", number)), groups)
        for number in range(self.n_pairs):
            negatives, positives = (_flags(rows.column(column_name(side, number))) for side in (NEGATIVE, POSITIVE))
            yield np.where(rows.label == 1, positives, negatives)


def cut_into_bins(values: pa.Array, feature: Feature) -> Ints:
    """Return the bin of each value: see `Feature`. Raises `InputError` for a value that was not surveyed."""
    if feature.numeric:
        numbers = pc.fill_null(values, 0.0).to_numpy(zero_copy_only=False)
        # NaN sorts above all numbers, as in Spark.
        bins: Ints = np.searchsorted(np.array(feature.values, np.float64), numbers, "right")
    else:
        bins = _find(values, feature.values) + 1
    is_known = _flags(values.is_valid())
    if (bins < is_known).any():
        raise corpus_changed(f"'{feature.name}' has a value that was not there when the corpus was surveyed")
    return bins * is_known


def find_groups(values: pa.Array, groups: Sequence[str]) -> Ints:
    """Return the group number of each value: the first group is NULL, the last holds all values not listed."""
    indices = _find(values, groups[1:-1])
    return np.where(_flags(values.is_null()) == 1, 0, np.where(indices < 0, len(groups) - 1, indices + 1))


def _find(values: pa.Array, known: Sequence[object]) -> Ints:
    """Return the index of each string in the list of known ones, -1 if it is not there."""
    indices = pc.index_in(values, value_set=pa.array(known, pa.string()).cast(values.type))
    return np.asarray(pc.fill_null(indices, -1).to_numpy(zero_copy_only=False), np.int64)


def _flags(values: pa.Array) -> Ints:
    return np.asarray(values.to_numpy(zero_copy_only=False), np.int64)
