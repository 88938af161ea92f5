"""Trees and slices searched over sums by cell that numpy makes of a sample: what Spark does, in one process."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt

from biasspark.attribution.block_sums import AUC, CellSums, SummedValue, Target
from biasspark.attribution.measured_sets import MeasuredSet
from biasspark.attribution.moments import Moments
from biasspark.attribution.segments import TreeKey, list_segments, list_slices
from biasspark.attribution.slice_search import BestSlices, search_slices
from biasspark.attribution.trees import Tree, grow_tree
from biasspark.config.attribution_settings import SliceSearch, TreeSettings
from biasspark.features import Condition, Feature, write_predicate
from biasspark.ranking.kernels.row_block import CellColumns, Cells
from biasspark.ranking.row_blocks import Answer, Search, send
from tests.oracle.trees import GrowingRow

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

    def growing_rows(self) -> list[GrowingRow]:
        """Return the rows as the oracles of trees and slices take them."""
        columns = (self.bins.tolist(), self.honest.tolist(), self.values.tolist())
        return [GrowingRow(tuple(bins), honest, Fraction(value)) for bins, honest, value in zip(*columns, strict=True)]

    def sum_rows(self, rows: npt.NDArray[np.bool_], unit: float) -> MeasuredSet:
        """Return the moments of some rows, of values in these units."""

        def moments(rows: npt.NDArray[np.bool_]) -> Moments:
            values, exact = self.values[rows].astype(object), Fraction(unit)
            return Moments(len(values), int(values.sum()) * exact, int((values**2).sum()) * exact**2)

        return MeasuredSet(moments(rows & ~self.honest), moments(rows & self.honest))


def feature_of(name: str, n_values: int, numeric: bool = False, nullable: bool = False) -> Feature:
    """Return a feature of so many values, which are whole numbers from 0 on, or texts."""
    values: Any = tuple(float(number) if numeric else f"{name}{number}" for number in range(n_values))
    return Feature(name, name, numeric, values, nullable)


VALUE = SummedValue(Target(0, 0, AUC), 0)
"""The values of a sample, in units of 1."""


def run(search: Search[Result], sample: Sample, value: SummedValue = VALUE) -> tuple[Result, list[Answer]]:
    """Answer all queries of a search about the values of a sample, each of whose rows is a cell."""
    columns = CellColumns(1, n_features=sample.bins.shape[1])
    cells = Cells(columns, np.vstack([sample.honest, sample.honest, sample.bins.T]).astype(np.uint16))
    below = np.maximum(value.ceiling - sample.values, 0)
    block = CellSums(cells, {value: np.stack([np.ones_like(sample.values), sample.values, below])})
    answers: list[Answer] = []
    query, result = send(search, None)
    while query:
        answers.append({(0, part, chunk): arrays for part, chunk, arrays in query.measure(0, 0, block)})
        query, result = send(search, answers[-1])
    return cast("Result", result), answers


def grow_sample(sample: Sample, features: Sequence[Feature], settings: TreeSettings) -> Tree:
    growing = sample.values[~sample.honest]
    square_sum = float(growing.var() * len(growing)) if len(growing) else 0.0
    return run(grow_tree(features, VALUE, settings, square_sum), sample)[0]


def judge(tree: Tree, sample: Sample, features: Sequence[Feature]) -> list[SimpleNamespace]:
    """Return what each node shows."""
    measured = [sample.sum_rows(sample.inside(node.condition), 1.0) for node in tree]
    rows = list_segments(TreeKey("m", "", "all", "auc"), tree, measured, features, 0.95)
    return [SimpleNamespace(**row) for row in rows]


# ---- slices

UNIT = 2.0**-30
"""What a value of 1 stands for."""


def search_sample(sample: Sample, features: Sequence[Feature], wanted: SliceSearch) -> tuple[BestSlices, list[int]]:
    """Search the slices of a sample; return the number of candidates that were counted at a time, too."""
    training = sample.values[~sample.honest].tolist()
    ceiling = math.ceil(Fraction(sum(training), len(training))) if training else 0
    value = VALUE._replace(shift=40, ceiling=ceiling)  # a shift of many bits, as hashes have
    best, (_, *answers) = run(search_slices(features, value, wanted), sample, value)
    return best, [sums.shape[1] for answer in answers for [sums] in answer.values()]


def sums_of(sample: Sample, rows: np.ndarray) -> MeasuredSet:
    """Values in units of 2^-30; every row has a loss of one."""
    return sample.sum_rows(rows, UNIT)._replace(loss_doubled=int(rows.sum()))


def find_slices(sample: Sample, features: Sequence[Feature], wanted: SliceSearch) -> list[SimpleNamespace]:
    conditions = search_sample(sample, features, wanted)[0].conditions()
    sums = [sums_of(sample, sample.inside(condition)) for condition in conditions]
    return judge_slices(conditions, sums, sums_of(sample, np.ones(len(sample.values), bool)), features)


def judge_slices(
    conditions: Sequence[Condition], sums: Sequence[MeasuredSet], whole: MeasuredSet, features: Sequence[Feature]
) -> list[SimpleNamespace]:
    """Return what each slice shows, and its condition."""
    features = [replace(feature, nullable=True) for feature in features]  # as some samples have NULL nevertheless
    by_predicate = {write_predicate(condition, features): condition for condition in conditions}
    rows = list_slices(conditions, sums, whole, features, 0.95)
    return [SimpleNamespace(condition=by_predicate[row["predicate"]], **row) for row in rows]
