"""Coverage of the interval of the difference of two models, and error rates of its test.

    .venv/bin/python -m scripts.simulations.comparison_coverage [--quick] [--runs N] [--seed S] [--out FILE]

Needs numpy alone; about a minute on one core. The scores of both models are normal in either cell and correlated row by
row. A setting is a kind of metric, both true values, and the rows of both cells. It simulates the functions of
biasspark: `delong_aucs`, `jackknife_aucs` and `estimate_difference`.

In the settings with clusters, ten rows of a cell share a part of their scores, like the comments of an author. There
the jackknife, which leaves out whole clusters, is compared with DeLong, which treats all rows as independent. If there
are few clusters, each has ten rows in either cell, or one cell has more clusters than the other.

Supports docs/comparing.md#how-differences-are-tested: coverage and errors from 30 rows on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from statistics import NormalDist

import numpy as np

from biasspark.arrays import Floats, Ints
from biasspark.comparison.differences import (
    Ends,
    PairCounts,
    PairedMetric,
    Replicates,
    delong_aucs,
    estimate_difference,
    jackknife_aucs,
)
from biasspark.metrics.intervals import auc_interval
from biasspark.ranking.kernels.paired_products import Products
from biasspark.ranking.kernels.sorted_runs import place_among
from scripts.simulations.kept_results import parse_options, run_simulation

Cells = tuple[Floats, Floats]
"""Scores of the low and of the high cell, shape (2 models, rows)."""

LEVEL = 0.95
SIGNIFICANT = 0.05
SIZES = ((10, 1000), (30, 300), (100, 1000), (300, 300))
CORRELATIONS = (0.0, 0.8)
AUCS = ((0.6, 0.6), (0.8, 0.8), (0.95, 0.95), (0.99, 0.99), (0.85, 0.8), (0.97, 0.95))
GAPS = ((0.0, 0.0), (0.05, 0.05), (0.2, 0.2), (0.05, -0.05), (0.2, -0.2), (0.1, 0.0), (0.2, 0.15))
CLUSTER_ROWS = 10
GROUPS = 100
APART, ACROSS = "apart", "across"
"""Clusters of the two cells: none has rows in both, or each has."""
FEW_CLUSTERS, FEW_IN_A_CELL = (10, 15, 30), (5, 10, 15)


@dataclass(frozen=True)
class Setting:
    """Both true values, and the rows of the low and of the high cell."""

    kind: str
    values: tuple[float, float]
    rows: tuple[int, int]
    correlation: float
    clusters: str | None = None
    method: str = "delong"

    @property
    def offset(self) -> float:
        """The difference of AUC and metric."""
        return 0.5 if self.kind == "gap" else 0.0

    @property
    def truth(self) -> float:
        """The difference that intervals should cover."""
        value, baseline = self.values
        return abs(value) - abs(baseline) if self.kind == "gap" else value - baseline


def distance_of(auc: float) -> float:
    """Return the distance of the means of two normal cells of variance 1 with this AUC."""
    return math.sqrt(2) * NormalDist().inv_cdf(auc)


def draw(setting: Setting, rng: np.random.Generator) -> Cells:
    """Draw both cells: two normal distributions whose means differ so that they have the AUC."""
    aucs = [value + setting.offset for value in setting.values]
    means = np.array([[distance_of(auc)] for auc in aucs])
    low, high = (draw_cell(setting, rows, rng) for rows in setting.rows)
    return low, high + means


def draw_cell(setting: Setting, n_rows: int, rng: np.random.Generator) -> Floats:
    """Draw the scores of both models in a cell, with mean 0."""

    def correlated(n: int) -> Floats:
        first, independent = rng.normal(size=(2, n))
        second = setting.correlation * first + math.sqrt(1 - setting.correlation**2) * independent
        return np.stack([first, second])

    if not setting.clusters:
        return correlated(n_rows)
    shared = np.repeat(correlated(-(-n_rows // CLUSTER_ROWS)), CLUSTER_ROWS, axis=1)[:, :n_rows]
    return (shared + correlated(n_rows)) / math.sqrt(2)


def placements(rows: Floats, cell: Floats) -> Ints:
    """Return the doubled placements of rows among those of a cell, by one model."""
    return place_among(rows, np.sort(cell))


def pair_by_delong(low: Floats, high: Floats) -> PairedMetric:
    sides = []
    for rows, cell in ((low, high), (high, low)):
        x, y = (placements(*scores) for scores in zip(rows, cell, strict=True))
        sides.append(Products(len(x), *map(int, (x.sum(), y.sum(), x @ x, y @ y, x @ y))))
    return delong_aucs(*sides)


def pair_by_jackknife(low: Floats, high: Floats, clusters: str | None) -> PairedMetric:
    """Return both AUCs with variances by leaving out groups of whole clusters."""
    low_groups, high_groups = (np.arange(cell.shape[1]) // CLUSTER_ROWS for cell in (low, high))
    first = 0 if clusters == ACROSS else low_groups[-1] + 1
    groups = (low_groups % GROUPS, (first + high_groups) % GROUPS)
    model, baseline = (leave_out(*cells, groups) for cells in zip(low, high, strict=True))
    return jackknife_aucs(model, baseline)


def leave_out(low: Floats, high: Floats, groups: tuple[Ints, Ints]) -> Replicates:
    """Return the counts of two cells by one model, and those without the rows of each group."""
    # Pairs with a low row of the group, and with a high one, less those with both.
    touched = np.bincount(groups[0], 2 * len(high) - placements(low, high), GROUPS)
    touched += np.bincount(groups[1], placements(high, low), GROUPS)
    touched -= [placements(high[groups[1] == group], low[groups[0] == group]).sum() for group in range(GROUPS)]
    whole = PairCounts(len(low), len(high), int(placements(high, low).sum()))
    rows = (np.bincount(members, minlength=GROUPS) for members in groups)
    left = ((n - part).astype(int).tolist() for n, part in zip(whole, (*rows, touched), strict=True))
    return Replicates(whole, [PairCounts(*counts) for counts in zip(*left, strict=True)])


def estimate(setting: Setting, runs: int, rng: np.random.Generator) -> list[PairedMetric]:
    """Draw rows for each run, and return the metric of both models on them."""
    by_jackknife = partial(pair_by_jackknife, clusters=setting.clusters)
    pair = by_jackknife if setting.method == "jackknife" else pair_by_delong
    paired = [pair(*draw(setting, rng)) for _ in range(runs)]
    if setting.kind == "gap":
        return list(map(PairedMetric.as_gap, paired, list_intervals(paired, 0), list_intervals(paired, 1)))
    return paired


def list_intervals(paired: list[PairedMetric], side: int) -> list[Ends]:
    """Return the intervals of the gaps of the model (0) or of the baseline (1)."""
    n_low, n_high, aucs, variances = np.array(
        [(*metric[:2], metric[2 + side], metric[4 + side]) for metric in paired], float
    ).T
    low, high, _ = auc_interval(aucs, variances, n_low, n_high, LEVEL)
    return list(zip((low - 0.5).tolist(), (high - 0.5).tolist(), strict=True))


def simulate(setting: Setting, runs: int, seed: list[int]) -> dict[str, object]:
    """Return how often the interval covers the difference, its mean width, and how often the test is significant."""
    rng = np.random.default_rng(seed)
    differences = [estimate_difference(paired, LEVEL) for paired in estimate(setting, runs, rng)]
    tested = [(each.low, each.high, each.p_value) for each in differences if each.p_value is not None]
    low, high, p_value = np.array(tested, float).T
    return {
        **vars(setting),
        "coverage": round(float(((low <= setting.truth) & (setting.truth <= high)).mean()), 4),
        "width": round(float((high - low).mean()), 4),
        "seen": round(float((p_value < SIGNIFICANT).mean()), 4),
        "insufficient": round(1 - len(low) / runs, 4),
    }


def list_settings() -> list[Setting]:
    settings = [
        Setting(kind, values, sizes, correlation)
        for kind, metrics in (("auc", AUCS), ("gap", GAPS))
        for values in metrics
        for sizes in SIZES
        for correlation in CORRELATIONS
    ]
    clustered = Setting("auc", (0.8, 0.8), (500, 500), 0.5, clusters=APART)
    jackknife = replace(clustered, method="jackknife")
    few = [
        replace(jackknife, kind=kind, values=values, rows=(n * CLUSTER_ROWS, n * CLUSTER_ROWS), clusters=ACROSS)
        for kind, values in (("auc", (0.8, 0.8)), ("auc", (0.85, 0.8)), ("gap", (0.2, 0.2)), ("gap", (0.1, 0.0)))
        for n in FEW_CLUSTERS
    ]
    few_in_a_cell = [
        replace(jackknife, kind=kind, values=values, rows=(n * CLUSTER_ROWS, 60 * CLUSTER_ROWS))
        for kind, values in (("auc", (0.8, 0.8)), ("gap", (0.2, 0.2)), ("gap", (0.2, -0.2)))
        for n in FEW_IN_A_CELL
    ]
    return [*settings, clustered, jackknife, *few, *few_in_a_cell]


def main() -> None:
    options = parse_options(__doc__, "comparison_coverage.json", quick=20)
    run_simulation(options, simulate, ((setting,) for setting in list_settings()), level=LEVEL)


if __name__ == "__main__":
    main()
