"""Slices searched by the kernels alone, over rows that numpy counts: what Spark does, in one process."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from biasspark.attribution.measured_sets import MeasuredSet
from biasspark.attribution.segments import list_slices
from biasspark.attribution.slice_kernel import BestSlices, Slice, SliceCounts, list_batches
from biasspark.attribution.slice_search import make_counter
from biasspark.config.attribution_settings import SliceSearch
from biasspark.features import Condition, Feature, write_predicate
from tests.harness.grown_trees import Sample

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
    sums = [np.zeros((feature.n_bins, 5), np.int64) for feature in features]
    for index, counts in enumerate(sums):
        np.add.at(counts, sample.bins[:, index], each)
    return sums


class Searched(NamedTuple):
    """The best slices of a sample, and the most that a slice which was not counted may score."""

    conditions: Sequence[Condition]
    missed: int


def search_samples(
    samples: Sequence[Sample], features: Sequence[Feature], wanted: SliceSearch
) -> tuple[list[Searched], list[Mapping[int, list[Slice]]]]:
    """Search the slices of each sample; return the candidates that were counted together, too."""
    searches, batches = [BestSlices(by_bin(sample, features), features, wanted) for sample in samples], []
    for batch in list_batches(searches, wanted.max_predicates):
        batches.append(batch)
        for number, slices in batch.items():
            sample = samples[number]
            [sums] = make_counter(searches[number].predicates, slices)(sample.bins.T, np.array(each_row(sample)))
            counted = zip(slices, sums.T.tolist(), strict=True)
            searches[number].take({one: SliceCounts(*counts) for one, counts in counted})
    return [Searched(one.conditions(), one.missed) for one in searches], batches


def sums_of(sample: Sample, rows: np.ndarray) -> MeasuredSet:
    """Values in units of 2^-30; every row has a loss of one."""
    return sample.sum_rows(rows, UNIT)._replace(loss_doubled=int(rows.sum()))


def find_slices(sample: Sample, features: Sequence[Feature], wanted: SliceSearch) -> list[SimpleNamespace]:
    (searched,), _ = search_samples([sample], features, wanted)
    sums = [sums_of(sample, sample.inside(condition)) for condition in searched.conditions]
    return judge(searched.conditions, sums, sums_of(sample, np.ones(len(sample.values), bool)), features)


def judge(
    conditions: Sequence[Condition], sums: Sequence[MeasuredSet], whole: MeasuredSet, features: Sequence[Feature]
) -> list[SimpleNamespace]:
    """Return what each slice shows, and its condition."""
    features = [replace(feature, nullable=True) for feature in features]  # as some samples have NULL nevertheless
    by_predicate = {write_predicate(condition, features): condition for condition in conditions}
    rows = list_slices(conditions, sums, whole, features, 0.95)
    return [SimpleNamespace(condition=by_predicate[row["predicate"]], **row) for row in rows]
