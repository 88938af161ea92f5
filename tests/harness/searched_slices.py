"""Slices searched in samples: what Spark does, in one process."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np

from biasspark.attribution.measured_sets import MeasuredSet
from biasspark.attribution.segments import list_slices
from biasspark.attribution.slice_search import BestSlices, search_slices
from biasspark.config.attribution_settings import SliceSearch
from biasspark.features import Condition, Feature, write_predicate
from tests.harness.grown_trees import VALUE, Sample, run

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
    return judge(conditions, sums, sums_of(sample, np.ones(len(sample.values), bool)), features)


def judge(
    conditions: Sequence[Condition], sums: Sequence[MeasuredSet], whole: MeasuredSet, features: Sequence[Feature]
) -> list[SimpleNamespace]:
    """Return what each slice shows, and its condition."""
    features = [replace(feature, nullable=True) for feature in features]  # as some samples have NULL nevertheless
    by_predicate = {write_predicate(condition, features): condition for condition in conditions}
    rows = list_slices(conditions, sums, whole, features, 0.95)
    return [SimpleNamespace(condition=by_predicate[row["predicate"]], **row) for row in rows]
