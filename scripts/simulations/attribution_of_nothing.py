"""False discoveries of attribution: segments, comparisons, slices and pairs of models that no feature affects.

    .venv/bin/python -m scripts.simulations.attribution_of_nothing [--quick] [--runs N] [--seed S] [--out FILE]

Needs no Spark; some minutes on one core. In a run, rows have scores of a model, or of two models that agree like models
of the same task, and features that are independent of them. Searches, estimates and tests are those of biasspark with
default settings; only the sums over rows are computed here. A run finds something if any of its leaves or slices is
`found`, and confirms something if any is `confirmed`. 5% of the runs may.

Supports docs/attribution.md#how-to-read-the-numbers: false discoveries of trees, slices and pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from biasspark.arrays import Flags, Floats, Ints
from biasspark.attribution.pairs import Examples, Samples, grow_and_measure, sort_examples
from biasspark.config.attribution_settings import Pairs, SliceSearch, TreeSettings
from biasspark.features import Feature
from scripts.simulations.comparison_coverage import distance_of
from scripts.simulations.kept_results import parse_options, run_simulation
from tests.harness.grown_trees import UNIT, Sample, find_slices, grow_sample, judge

ROWS = 4000
POSITIVE = 0.3
AGREEMENT = 0.8
"""The correlation of the scores of two models within either label."""

AUCS = (0.76, 0.9, 0.99)
FEATURES = (
    Feature("amount", "amount", True, tuple(map(float, range(100))), False),
    Feature("age", "age", True, tuple(map(float, range(8))), True),
    Feature("job", "job", False, tuple("abcdefghij"), False),
    Feature("region", "region", False, tuple("abcd"), True),
)

Found = Sequence[Mapping[str, Any]]
"""The leaves or slices that a search tests."""


def draw_bins(rng: np.random.Generator, n_rows: int) -> Ints:
    columns = [rng.integers(min(feature.bins), feature.n_bins, n_rows) for feature in FEATURES]
    return np.stack(columns, axis=1)


def attribute(scores: Floats, positive: Flags) -> Floats:
    """Return normalized attributions: half of the share of correctly ordered opposite rows of each row."""
    shares = np.empty(len(scores))
    shares[positive] = np.searchsorted(np.sort(scores[~positive]), scores[positive]) / (~positive).sum()
    shares[~positive] = 1 - np.searchsorted(np.sort(scores[positive]), scores[~positive]) / positive.sum()
    return shares / 2


def draw_rows(rng: np.random.Generator, aucs: Sequence[float]) -> Sample:
    """Draw rows and the attributions of a model with this AUC, or of a model less those of a baseline."""
    positive = rng.random(ROWS) < POSITIVE
    shared = rng.normal(0, 1, ROWS)
    scores = [
        math.sqrt(AGREEMENT) * shared + math.sqrt(1 - AGREEMENT) * rng.normal(0, 1, ROWS) + distance_of(auc) * positive
        for auc in aucs
    ]
    values, *baseline = (attribute(column, positive) for column in scores)
    whole = np.rint((values - sum(baseline, start=np.zeros(ROWS))) / UNIT).astype(np.int64)
    return Sample(draw_bins(rng, ROWS), whole, rng.random(ROWS) < TreeSettings.honest_fraction)


def search_tree(sample: Sample) -> Found:
    tree = grow_sample(sample, FEATURES, TreeSettings())
    return [vars(node) for node in judge(tree, sample, FEATURES) if node.is_leaf]


def search_slices(sample: Sample) -> Found:
    return list(map(vars, find_slices(sample, FEATURES, SliceSearch())))


def search_pairs(rng: np.random.Generator, auc: float) -> Found:
    def draw(n_rows: int, mean: float) -> Examples:
        return sort_examples(rng.normal(mean, 1, n_rows), draw_bins(rng, n_rows).T)

    settings, mean = Pairs(), distance_of(auc)
    train, honest = ((draw(settings.negatives, 0), draw(settings.positives, mean)) for _ in range(2))
    nodes = grow_and_measure(Samples(train, honest), (FEATURES, FEATURES), settings)
    return [node for node in nodes if node["is_leaf"]]


SEARCHES: dict[str, Callable[[np.random.Generator, float], Found]] = {
    "segments": lambda rng, auc: search_tree(draw_rows(rng, [auc])),
    "comparison": lambda rng, auc: search_tree(draw_rows(rng, [auc, auc - 0.02])),  # a baseline with a little less
    "slices": lambda rng, auc: search_slices(draw_rows(rng, [auc])),
    "pairs": search_pairs,
}


def simulate(kind: str, auc: float, runs: int, seed: Sequence[int]) -> dict[str, object]:
    """Return the share of runs with any found, confirmed and false discovery, and how much a run tests on average."""
    rng = np.random.default_rng(seed)
    searches = [SEARCHES[kind](rng, auc) for _ in range(runs)]
    flags = ("found", "confirmed", "false_discovery")
    shares = {flag: sum(any(part[flag] for part in found) for found in searches) / runs for flag in flags}
    return {"kind": kind, "auc": auc, "tested": sum(map(len, searches)) / runs, **shares}


def main() -> None:
    options = parse_options(__doc__, "attribution_of_nothing.json", quick=10, seed=20220310)
    run_simulation(options, simulate, product(SEARCHES, AUCS), rows=ROWS)


if __name__ == "__main__":
    main()
