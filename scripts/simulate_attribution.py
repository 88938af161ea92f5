"""How often attribution finds something where there is nothing to find: segments, comparisons, slices and pairs.

    .venv/bin/python -m scripts.simulate_attribution [--quick] [--runs N] [--seed S] [--out FILE]

Needs no Spark; some minutes on one core. In a run, rows have scores of a model, or of two models that agree as far as
models of the same task do, and features that have nothing to do with them. What searches, estimates and tests is the
product's, at the settings that a configuration has unless it says otherwise; only sums over rows are numpy's. A run
counts as one that finds something if any leaf or slice of it is `found`, as one that confirms something if any is
`confirmed`: 5 % of the runs may.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist

import numpy as np

from biasspark.arrays import Flags, Floats, Ints
from biasspark.attribution.evidence import Evidence, judge_nodes
from biasspark.attribution.pair_kernel import Examples, PairSegment, Samples, segment_pairs, sort_examples
from biasspark.config.attribution import Pairs, SliceSearch, TreeSettings
from biasspark.features import Feature
from scripts.simulations import RESULTS, keep_results
from scripts.slices_without_spark import UNIT, find_slices
from scripts.trees_without_spark import Sample, grow_samples, sum_nodes

ROWS = 4000
POSITIVE = 0.3
AGREEMENT = 0.8
"""The correlation of the scores of two models, within either label."""

AUCS = (0.76, 0.9, 0.99)
FEATURES = (
    Feature("amount", "amount", True, tuple(map(float, range(100))), False),
    Feature("age", "age", True, tuple(map(float, range(8))), True),
    Feature("job", "job", False, tuple("abcdefghij"), False),
    Feature("region", "region", False, tuple("abcd"), True),
)


@dataclass(frozen=True)
class Shown:
    """How many leaves or slices one run tests, finds and confirms, and of how many the samples disagree."""

    tested: int
    found: int
    confirmed: int
    doubted: int

    @classmethod
    def of(cls, tested: Sequence[Evidence | PairSegment]) -> Shown:
        """Count what was tested in one run."""
        counts = (sum(bool(getattr(one, name)) for one in tested) for name in ("found", "confirmed", "false_discovery"))
        return cls(len(tested), *counts)


Run = Callable[[np.random.Generator, float], Shown]


def draw_bins(rng: np.random.Generator, n_rows: int) -> Ints:
    columns = [rng.integers(min(feature.bins), feature.n_bins, n_rows) for feature in FEATURES]
    return np.stack(columns, axis=1)


def shift(auc: float) -> float:
    """Return how far apart two normal distributions of variance 1 lie that have this AUC."""
    return math.sqrt(2) * NormalDist().inv_cdf(auc)


def attribute(scores: Floats, positive: Flags) -> Floats:
    """Return normalised attributions: half of each row's share of rightly ordered opposite rows."""
    shares = np.empty(len(scores))
    shares[positive] = np.searchsorted(np.sort(scores[~positive]), scores[positive]) / (~positive).sum()
    shares[~positive] = 1 - np.searchsorted(np.sort(scores[positive]), scores[~positive]) / positive.sum()
    return shares / 2


def draw_rows(rng: np.random.Generator, aucs: Sequence[float]) -> Sample:
    """Draw rows and the attributions of a model of that AUC, or of a model less those of a baseline."""
    positive = rng.random(ROWS) < POSITIVE
    shared = rng.normal(0, 1, ROWS)
    own = [
        math.sqrt(AGREEMENT) * shared + math.sqrt(1 - AGREEMENT) * rng.normal(0, 1, ROWS) + shift(auc) * positive
        for auc in aucs
    ]
    values, *baseline = (attribute(scores, positive) for scores in own)
    whole = np.rint((values - sum(baseline, start=np.zeros(ROWS))) / UNIT).astype(np.int64)
    return Sample(draw_bins(rng, ROWS), whole, rng.random(ROWS) < TreeSettings.honest_fraction)


def search_tree(sample: Sample) -> Shown:
    (tree,) = grow_samples([sample], FEATURES, TreeSettings())
    return Shown.of([node for node in judge_nodes(tree, sum_nodes(tree, sample, UNIT), FEATURES) if node.is_leaf])


def search_segments(rng: np.random.Generator, auc: float) -> Shown:
    return search_tree(draw_rows(rng, [auc]))


def search_comparison(rng: np.random.Generator, auc: float) -> Shown:
    """The model has that AUC, its baseline a little less."""
    return search_tree(draw_rows(rng, [auc, auc - 0.02]))


def search_slices(rng: np.random.Generator, auc: float) -> Shown:
    return Shown.of(find_slices(draw_rows(rng, [auc]), FEATURES, SliceSearch()))


def search_pairs(rng: np.random.Generator, auc: float) -> Shown:
    def draw(n_rows: int, mean: float) -> Examples:
        return sort_examples(rng.normal(mean, 1, n_rows), draw_bins(rng, n_rows).T)

    settings, mean = Pairs(), shift(auc)
    train, honest = ((draw(settings.negatives, 0), draw(settings.positives, mean)) for _ in range(2))
    return Shown.of([one for one in segment_pairs(Samples(train, honest), FEATURES, settings) if one.is_leaf])


SEARCHES: dict[str, Run] = {
    "segments": search_segments,
    "comparison": search_comparison,
    "slices": search_slices,
    "pairs": search_pairs,
}


def simulate(kind: str, auc: float, runs: int, seed: Sequence[int]) -> dict[str, object]:
    """Return in which share of the runs anything is found, confirmed, doubted; and how much a run tests on average."""
    rng = np.random.default_rng(seed)
    shown = [SEARCHES[kind](rng, auc) for _ in range(runs)]
    return {
        "kind": kind,
        "auc": auc,
        "tested": sum(one.tested for one in shown) / runs,
        "found": sum(one.found > 0 for one in shown) / runs,
        "confirmed": sum(one.confirmed > 0 for one in shown) / runs,
        "doubted": sum(one.doubted > 0 for one in shown) / runs,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000, help="of each search and AUC (default %(default)s)")
    parser.add_argument("--seed", type=int, default=20220310)
    parser.add_argument("--out", type=Path, default=RESULTS / "attribution_of_nothing.json")
    parser.add_argument("--quick", action="store_true", help="a smoke test: 10 runs")
    arguments = parser.parse_args()
    runs = 10 if arguments.quick else arguments.runs
    results = []
    for number, (kind, auc) in enumerate((kind, auc) for kind in SEARCHES for auc in AUCS):
        results.append(simulate(kind, auc, runs, [arguments.seed, number]))
        print("  ".join(f"{name} {value}" for name, value in results[-1].items()), flush=True)
    keep_results(arguments.out, {"rows": ROWS, "runs": runs, "seed": arguments.seed}, results)


if __name__ == "__main__":
    main()
