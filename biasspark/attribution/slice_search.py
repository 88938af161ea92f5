"""Slices over the rows of a corpus, which overlap as segments of a tree cannot: counted by Spark, one job per level.

    ROWS --> mean of each tree --> counts by bin --> counts by conjunction, of two predicates, then of three
         --> exact sums of the slices that are chosen

ROWS are those of `biasspark.attribution.row_sums`, with the values of which slices lack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from itertools import chain
from operator import and_
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from biasspark.arrays import Ints
from biasspark.attribution.evidence import NodeSums
from biasspark.attribution.moments import LARGEST_BITS
from biasspark.attribution.row_sums import KIND, SUM_BITS, in_units, read_row_sums, row_sums
from biasspark.attribution.slice_counter import SliceCounter
from biasspark.attribution.slice_evidence import FoundSlice, judge_slices
from biasspark.attribution.slice_kernel import MOST_CANDIDATES, Candidates, Counts, Slice, search
from biasspark.config.attribution_settings import SliceSearch
from biasspark.features import Condition, Feature, bin_name, bin_names

_COUNTS = Counts._fields
_PARTS = "tree INT, slice INT, " + ", ".join(f"{name} BIGINT" for name in _COUNTS)


class FoundSlices(NamedTuple):
    """What a search gives.

    Attributes
    ----------
    slices
        By tree, then by rank.
    warnings
        By tree, where more conjunctions might have been among the best than could be counted.
    """

    slices: list[FoundSlice]
    warnings: dict[int, str]


class _Tree(NamedTuple):
    """All rows of one tree: their sums, and the mean of those that search in units, rounded up."""

    whole: NodeSums
    ceiling: int


def search_slices(
    rows: DataFrame, n_trees: int, features: Sequence[Feature], settings: SliceSearch, n_rows: int
) -> FoundSlices:
    """Find for each tree from 0 to `n_trees` - 1 the slices that lack most attribution, and test them on other rows.

    Parameters
    ----------
    rows : DataFrame
        ROWS, which are read once per job: of ranked rows that the caller persists they are a narrow projection. Rows of
        other trees are ignored.
    n_trees : int
        A tree without rows has no slice.
    features : sequence of Feature
        Of which the columns ``bin_k`` are the bins.
    settings : SliceSearch
        How long conjunctions may be, how many slices are wanted, the fewest rows of one, and how finely numbers are
        cut.
    n_rows : int
        At least the rows of any tree; fixes the units of the sums.

    Returns
    -------
    FoundSlices
        The same under any partitioning and order of the rows: values are rounded to whole units of 2^-s, with s as
        large as sums of so many rows allow (34 for two million), and added up as BIGINT. What is reported comes from
        exact sums.

    Notes
    -----
    Three jobs, and one for each predicate after the first. On a level every row is handed to Python, which counts it in
    the candidates that it is in, about 40 ns for each set of features that any is on: at most 100,000 candidates
    per tree, and 100,000 of all trees at a time, beyond which trees take turns. A task gives back one row for each
    candidate. The driver collects one for each bin, each candidate and each slice at most, and no row of the corpus.
    """
    if not (features and n_trees):
        return FoundSlices([], {})
    rows = rows.where(F.col("tree").between(0, n_trees - 1))
    room = SUM_BITS - max(n_rows, 1).bit_length()
    shift = room - LARGEST_BITS - 1
    trees = _sum_trees(rows, n_trees, shift)
    counted = _count_each_row(rows, [tree.ceiling for tree in trees], len(features), room)
    by_bin = _count_bins(counted, n_trees, features)
    searched = search(by_bin, features, settings, partial(_count_slices, counted, settings.min_rows))
    conditions = {tree: own.conditions for tree, own in enumerate(searched) if own.conditions}
    sums = _sum_slices(rows, conditions)
    found = (
        judge_slices(tree, zip(own, sums[tree], strict=True), trees[tree].whole) for tree, own in conditions.items()
    )
    warnings = {tree: _warn(own.missed / 2**shift) for tree, own in enumerate(searched) if own.missed}
    return FoundSlices(list(chain.from_iterable(found)), warnings)


def _sum_trees(rows: DataFrame, n_trees: int, shift: int) -> list[_Tree]:
    found = [_Tree(NodeSums(), 0)] * n_trees
    units = [0] * n_trees
    for row in rows.groupBy("tree", *KIND).agg(*row_sums(), F.sum(in_units(shift)).alias("units")).collect():
        tree = row["tree"]
        units[tree] += 0 if row["honest"] else row["units"]
        found[tree] = _Tree(found[tree].whole + read_row_sums(row), 0)
    return [
        tree._replace(ceiling=-(-total // max(tree.whole.train.n, 1))) for tree, total in zip(found, units, strict=True)
    ]


def _count_each_row(rows: DataFrame, ceilings: Sequence[int], n_features: int, room: int) -> DataFrame:
    """Return the tree of each row, its bins, and what it adds to the counts of slices: numbers of so many bits."""
    bins = bin_names(n_features)
    units = in_units(room - LARGEST_BITS - 1)
    mean = F.element_at(F.array(*(F.lit(ceiling).cast("bigint") for ceiling in ceilings)), F.col("tree") + 1)
    honest = F.col("honest").cast("bigint")
    training = 1 - honest
    each = {
        "n_train": training,
        "n_honest": honest,
        "total": training * units,
        "bound": training * F.greatest(mean - units, F.lit(0)),
        "fingerprint": F.xxhash64(*bins).bitwiseAND(F.lit((1 << room) - 1)),
    }
    return rows.select("tree", *(each[name].alias(name) for name in _COUNTS), *bins)


def _count_bins(counted: DataFrame, n_trees: int, features: Sequence[Feature]) -> list[list[Ints]]:
    """Return by tree and feature the counts of each bin."""
    bins = F.array(*bin_names(len(features)))
    exploded = counted.select("tree", *_COUNTS, F.posexplode(bins).alias("feature", "bin"))
    found = [[np.zeros((feature.n_bins, len(_COUNTS)), np.int64) for feature in features] for _ in range(n_trees)]
    for row in exploded.groupBy("tree", "feature", "bin").agg(*_added_up()).collect():
        found[row["tree"]][row["feature"]][row["bin"]] = [row[name] for name in _COUNTS]
    return found


def _count_slices(counted: DataFrame, min_rows: int, batch: Mapping[int, Candidates]) -> dict[int, dict[Slice, Counts]]:
    """Return the counts of the candidates that have enough rows."""
    counters = {tree: SliceCounter.of(candidates) for tree, candidates in batch.items()}
    parts = counted.where(F.col("tree").isin(list(batch))).mapInArrow(_count_in_python(counters), _PARTS)
    enough = (F.col("n_train") >= min_rows) & (F.col("n_honest") >= min_rows)
    found: dict[int, dict[Slice, Counts]] = {tree: {} for tree in batch}
    for row in parts.groupBy("tree", "slice").agg(*_added_up()).where(enough).collect():
        own = batch[row["tree"]].slices[row["slice"]]
        found[row["tree"]][own] = Counts(*(row[name] for name in _COUNTS))
    return found


def _count_in_python(
    counters: Mapping[int, SliceCounter],
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        totals = {tree: np.zeros((len(_COUNTS), counter.n_slices), np.int64) for tree, counter in counters.items()}
        for batch in batches:
            trees, *columns = (column.to_numpy() for column in batch.columns)
            for tree in np.unique(trees).tolist():
                own = [column[trees == tree] for column in columns]
                totals[tree] += counters[tree].count(own[len(_COUNTS) :], own[: len(_COUNTS)])
        for tree, sums in totals.items():
            slices = np.flatnonzero(sums[:2].any(axis=0))
            arrays = [np.full(len(slices), tree, np.int32), slices.astype(np.int32), *sums[:, slices]]
            yield pa.RecordBatch.from_arrays([pa.array(array) for array in arrays], names=["tree", "slice", *_COUNTS])

    return run


def _sum_slices(rows: DataFrame, conditions: Mapping[int, Sequence[Condition]]) -> dict[int, list[NodeSums]]:
    """Return by tree the sums of each slice, of rows that meet its condition."""
    found = {tree: [NodeSums()] * len(own) for tree, own in conditions.items()}
    if any(conditions.values()):
        slices = F.explode(_slices_of_row({tree: own for tree, own in conditions.items() if own})).alias("slice")
        inside = rows.select("tree", *KIND, "value", "loss_doubled", slices)
        for row in inside.groupBy("tree", "slice", *KIND).agg(*row_sums()).collect():
            found[row["tree"]][row["slice"]] += read_row_sums(row)
    return found


def _slices_of_row(conditions: Mapping[int, Sequence[Condition]]) -> Column:
    """Return the places of the slices in which a row is, as an array."""
    chosen = F.array().cast("array<int>")
    for tree, own in conditions.items():
        places = [F.when(_meets(condition), F.lit(place)).otherwise(F.lit(-1)) for place, condition in enumerate(own)]
        chosen = F.when(F.col("tree") == tree, F.array_remove(F.array(*places), -1)).otherwise(chosen)
    return chosen


def _meets(condition: Condition) -> Column:
    """Return whether a row meets a condition, of which the bins of each feature are consecutive."""
    return reduce(and_, (F.col(bin_name(place)).between(min(bins), max(bins)) for place, bins in condition.items()))


def _added_up() -> list[Column]:
    return [F.sum(name).alias(name) for name in _COUNTS]


def _warn(missed: float) -> str:
    return (
        f"[attribution.slice_search]: more than {MOST_CANDIDATES:,} conjunctions might be among those that lack most. "
        f"Those with the highest bounds were counted. One that was not may have a score of up to {missed:.6g}. Raise "
        "min_rows, or lower max_predicates or max_bins, to search them all."
    )
