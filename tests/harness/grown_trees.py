"""Searches over sums by cell that numpy makes of a sample: what Spark does, in one process."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from types import SimpleNamespace
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from biasspark.attribution.block_sums import AUC, CellSums, SummedValue, Target
from biasspark.attribution.measured_sets import MeasuredSet
from biasspark.attribution.moments import Moments
from biasspark.attribution.segments import TreeKey, list_segments
from biasspark.attribution.trees import Tree, grow_trees
from biasspark.config.attribution_settings import TreeSettings
from biasspark.features import Condition, Feature
from biasspark.ranking.kernels.row_block import CellColumns, Cells
from biasspark.ranking.row_blocks import Search

Result = TypeVar("Result")


class Sample(NamedTuple):
    """Rows of one tree: bins [n, n_features], whole values [n], and which rows only estimate."""

    bins: npt.NDArray[np.int64]
    values: npt.NDArray[np.int64]
    honest: npt.NDArray[np.bool_]

    def inside(self, condition: Condition) -> npt.NDArray[np.bool_]:
        """Return which rows meet a condition."""
        inside = np.ones(len(self.values), bool)
        for index, bins in condition.items():
            inside &= np.isin(self.bins[:, index], list(bins))
        return inside

    def sum_rows(self, rows: npt.NDArray[np.bool_], unit: float) -> MeasuredSet:
        """Return the moments of some rows, of values in these units."""

        def moments(rows: npt.NDArray[np.bool_]) -> Moments:
            values, exact = self.values[rows].astype(object), Fraction(unit)
            return Moments(len(values), int(values.sum()) * exact, int((values**2).sum()) * exact**2)

        return MeasuredSet(moments(rows & ~self.honest), moments(rows & self.honest))


def name_values(samples: Sequence[Sample]) -> list[SummedValue]:
    """Return the values of samples, each that of a model, in units of 1."""
    return [SummedValue(Target(number, 0, AUC), 0) for number in range(len(samples))]


def run(search: Search[Result], samples: Sequence[Sample]) -> Result:
    """Answer all queries of a search about the values of samples; each row is a cell."""
    blocks = [
        CellSums(
            Cells(
                CellColumns(1, n_features=sample.bins.shape[1]),
                np.vstack([sample.honest, sample.honest, sample.bins.T]).astype(np.uint16),
            ),
            {value: np.stack([np.ones_like(sample.values), sample.values, np.zeros_like(sample.values)])},
        )
        for sample, value in zip(samples, name_values(samples), strict=True)
    ]
    try:
        query = next(search)
        while True:
            measured = [[*query.measure(model, 0, block)] for model, block in enumerate(blocks)]
            query = search.send(
                {
                    (model, part, chunk): arrays
                    for model, of_model in enumerate(measured)
                    for part, chunk, arrays in of_model
                }
            )
    except StopIteration as end:
        result: Result = end.value
        return result


def grow_samples(samples: Sequence[Sample], features: Sequence[Feature], settings: TreeSettings) -> list[Tree]:
    growing = [sample.values[~sample.honest] for sample in samples]
    square_sums = [float(values.var() * len(values)) if len(values) else 0.0 for values in growing]
    return run(grow_trees(features, name_values(samples), settings, square_sums), samples)


def judge(tree: Tree, sample: Sample, features: Sequence[Feature]) -> list[SimpleNamespace]:
    """Return what each node shows."""
    measured = [sample.sum_rows(sample.inside(node.condition), 1.0) for node in tree]
    rows = list_segments(TreeKey("m", "", "all", "auc"), tree, measured, features, 0.95)
    return [SimpleNamespace(**row) for row in rows]
