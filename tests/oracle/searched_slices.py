"""Slices searched by the kernels alone, over rows that numpy counts: what Spark does, in one process."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import numpy.typing as npt

from biasspark.attribution.block_sums import NodeSums
from biasspark.attribution.segments import MeasuredSet, list_slices
from biasspark.attribution.significance import Moments
from biasspark.attribution.slice_kernel import Candidates, Counts, Searched, Slice, search
from biasspark.attribution.slice_search import SliceCounter
from biasspark.config.attribution_settings import SliceSearch
from biasspark.features import Condition, Feature, write_predicate
from tests.oracle.grown_trees import Sample, run

UNIT = 2.0**-30
"""What a value of 1 stands for."""


def each_row(sample: Sample) -> list[np.ndarray]:
    """What rows add to the counts; rows of equal bins have equal hashes."""
    training = (~sample.honest).astype(np.int64)
    n_train, total = int(training.sum()), int((training * sample.values).sum())
    ceiling = math.ceil(Fraction(total, n_train)) if n_train else 0
    _, kinds = np.unique(sample.bins, axis=0, return_inverse=True)
    hashes = np.random.default_rng(5).integers(0, 2**40, len(kinds) + 1)[kinds.ravel()]
    bound = training * np.maximum(ceiling - sample.values, 0)
    return [training, 1 - training, training * sample.values, bound, hashes]


def by_bin(sample: Sample, features: Sequence[Feature]) -> list[np.ndarray]:
    each = np.stack(each_row(sample), axis=1)
    found = [np.zeros((feature.n_bins, 5), np.int64) for feature in features]
    for place, counts in enumerate(found):
        np.add.at(counts, sample.bins[:, place], each)
    return found


class CountBatches:
    """Counts candidates in samples, and remembers what was asked."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self.samples = samples
        self.asked: list[Mapping[int, Candidates]] = []

    def __call__(self, batch: Mapping[int, Candidates]) -> dict[int, dict[Slice, Counts]]:
        """Count the candidates of each tree."""
        self.asked.append(batch)
        found = {}
        for tree, candidates in batch.items():
            sample = self.samples[tree]
            sums = SliceCounter.of(candidates).count(list(sample.bins.T), each_row(sample))
            found[tree] = {own: Counts(*counts) for own, counts in zip(candidates.slices, sums.T.tolist(), strict=True)}
        return found


def search_samples(
    samples: Sequence[Sample], features: Sequence[Feature], wanted: SliceSearch
) -> tuple[list[Searched], list[Mapping[int, Candidates]]]:
    count = CountBatches(samples)
    return run(search([by_bin(sample, features) for sample in samples], features, wanted), count), count.asked


def inside(sample: Sample, condition: Condition) -> npt.NDArray[np.bool_]:
    """Say which rows meet a condition."""
    inside = np.ones(len(sample.values), bool)
    for place, bins in condition.items():
        inside &= np.isin(sample.bins[:, place], list(bins))
    return inside


def sums_of(sample: Sample, rows: np.ndarray) -> NodeSums:
    """Values in units of 2^-30; every row has a loss of one."""

    def moments(values: np.ndarray) -> Moments:
        whole = values.astype(object)
        return Moments(len(whole), int(whole.sum()) * Fraction(UNIT), int((whole**2).sum()) * Fraction(UNIT) ** 2)

    return NodeSums(
        moments(sample.values[rows & ~sample.honest]),
        moments(sample.values[rows & sample.honest]),
        loss_doubled=int(rows.sum()),
    )


def find_slices(sample: Sample, features: Sequence[Feature], wanted: SliceSearch) -> list[SimpleNamespace]:
    (searched,), _ = search_samples([sample], features, wanted)
    sums = [sums_of(sample, inside(sample, condition)) for condition in searched.conditions]
    return judge(searched.conditions, sums, sums_of(sample, np.ones(len(sample.values), bool)), features)


def judge(
    conditions: Sequence[Condition], sums: Sequence[NodeSums], whole: NodeSums, features: Sequence[Feature]
) -> list[SimpleNamespace]:
    """Return what each slice shows, and its condition."""
    measured = [MeasuredSet(of_slice, None) for of_slice in sums]
    features = [replace(feature, nullable=True) for feature in features]  # as some samples have NULL nevertheless
    by_predicate = {write_predicate(condition, features): condition for condition in conditions}
    rows = list_slices(conditions, measured, MeasuredSet(whole, None), features, 0.95)
    return [SimpleNamespace(condition=by_predicate[row["predicate"]], **row) for row in rows]
