"""How often the interval of two models' difference covers it, and how often its test is wrong: by simulation.

    .venv/bin/python -m scripts.simulate_comparisons [--quick] [--replicates N] [--seed S] [--out FILE]

Needs numpy alone; about a minute on one core. Scores of both models are normal in either cell and correlated row by
row. A setting is a kind of metric, both true values and the rows of both cells. What is simulated is the product's own
arithmetic: `delong_aucs`, `jackknife_aucs` and `weigh`.

In the settings of clusters, ten rows of a cell share a part of their scores, as comments of an author do: there the
jackknife, which keeps clusters together, stands beside DeLong, which takes all rows for independent. Of few clusters
each has ten rows in either cell, or one cell has more clusters than the other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from biasspark.metrics.comparisons.differences import Ends, Paired, weigh
from biasspark.metrics.comparisons.paired import LeftOut, PairedAucs, delong_aucs, jackknife_aucs
from biasspark.ranking.paired_blocks import Products
from scripts.simulate_intervals import CHOSEN, RULES, Estimate
from scripts.simulations import ask_for_replicates, keep_results

Floats = NDArray[np.float64]
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
    """What is simulated: both true values, and the rows of the low and of the high cell."""

    kind: str
    values: tuple[float, float]
    sizes: tuple[int, int]
    correlation: float
    clusters: str | None = None
    method: str = "delong"

    @property
    def truth(self) -> float:
        """The difference that intervals are to cover."""
        value, baseline = self.values
        return abs(value) - abs(baseline) if self.kind == "gap" else value - baseline


def draw(setting: Setting, rng: np.random.Generator) -> Cells:
    """Draw both cells; the difference of means is that of a normal variable with the AUC, gap + 1/2."""
    aucs = [value + (0.5 if setting.kind == "gap" else 0.0) for value in setting.values]
    means = np.array([[math.sqrt(2) * NormalDist().inv_cdf(auc)] for auc in aucs])
    low, high = (draw_cell(setting, rows, rng) for rows in setting.sizes)
    return low, high + means


def draw_cell(setting: Setting, n_rows: int, rng: np.random.Generator) -> Floats:
    def correlated(n: int) -> Floats:
        first, own = rng.normal(size=(2, n))
        return np.stack([first, setting.correlation * first + math.sqrt(1 - setting.correlation**2) * own])

    if not setting.clusters:
        return correlated(n_rows)
    shared = np.repeat(correlated(-(-n_rows // CLUSTER_ROWS)), CLUSTER_ROWS, axis=1)[:, :n_rows]
    return (shared + correlated(n_rows)) / math.sqrt(2)


def place(rows: Floats, among: Floats) -> NDArray[np.int64]:
    """Doubled placements of rows among others, by one model."""
    others = np.sort(among)
    return np.searchsorted(others, rows, "left") + np.searchsorted(others, rows, "right")


def by_delong(low: Floats, high: Floats) -> PairedAucs:
    sides = []
    for rows, among in ((low, high), (high, low)):
        x, y = (place(own, other) for own, other in zip(rows, among, strict=True))
        sides.append(Products(len(x), *map(int, (x.sum(), y.sum(), x @ x, y @ y, x @ y))))
    return delong_aucs(*sides)


def by_jackknife(low: Floats, high: Floats, clusters: str | None) -> PairedAucs:
    """Leave out one group of whole clusters after another."""
    groups = [np.arange(cell.shape[1]) // CLUSTER_ROWS for cell in (low, high)]
    first = 0 if clusters == ACROSS else groups[0][-1] + 1
    groups = [groups[0] % GROUPS, (first + groups[1]) % GROUPS]
    own, baseline = (leave_out(a, b, groups) for a, b in zip(low, high, strict=True))
    return jackknife_aucs(own, baseline)


def leave_out(low: Floats, high: Floats, groups: list[NDArray[np.int64]]) -> LeftOut:
    """One side's scores, and what is left of its pairs without those that a group has a row of."""
    touched = np.bincount(groups[0], 2 * len(high) - place(low, high), GROUPS)
    touched += np.bincount(groups[1], place(high, low), GROUPS)
    touched -= [place(high[groups[1] == group], low[groups[0] == group]).sum() for group in range(GROUPS)]
    totals = (len(low), len(high), int(place(high, low).sum()))
    parts = (*(np.bincount(own, minlength=GROUPS) for own in groups), touched)
    low_left, high_left, u_left = ((n - own).astype(int).tolist() for n, own in zip(totals, parts, strict=True))
    return LeftOut(*totals, low_left, high_left, u_left)


def estimate(setting: Setting, replicates: int, rng: np.random.Generator) -> list[Paired]:
    """Draw rows so often, and return what both models' metric is on them."""
    drawn = (draw(setting, rng) for _ in range(replicates))
    left_out = setting.method == "jackknife"
    found = [by_jackknife(*cells, setting.clusters) if left_out else by_delong(*cells) for cells in drawn]
    offset = 0.0
    gaps: list[tuple[Ends, Ends] | None] = [None for _ in found]
    if setting.kind == "gap":
        offset, gaps = 0.5, list(zip(own_intervals(found, 0), own_intervals(found, 1), strict=True))
    return [
        Paired(
            n_low=one.n_low,
            n_high=one.n_high,
            value=(one.auc or 0.0) - offset,
            baseline_value=(one.baseline_auc or 0.0) - offset,
            difference_variance=one.difference_variance,
            sum_variance=one.sum_variance,
            gaps=ends,
            n_groups=one.n_groups,
        )
        for one, ends in zip(found, gaps, strict=True)
    ]


def own_intervals(found: list[PairedAucs], side: int) -> list[Ends]:
    """Return the interval of the gap of one of the models, by the rule of the product."""
    aucs, variances = np.array([(one[2 + side], one[4 + side]) for one in found], float).T
    low, high = RULES[CHOSEN](Estimate(aucs, variances, found[0].n_low, found[0].n_high))
    return list(zip((low - 0.5).tolist(), (high - 0.5).tolist(), strict=True))


def simulate(setting: Setting, replicates: int, seed: list[int]) -> dict[str, object]:
    """Return how often the interval covers the difference, its mean width, and how often a difference is seen."""
    rng = np.random.default_rng(seed)
    found = [weigh(one, LEVEL) for one in estimate(setting, replicates, rng)]
    told = [(one.low, one.high, one.p_value) for one in found if one.p_value is not None]
    low, high, p_value = np.array(told, float).T
    return {
        "kind": setting.kind,
        "values": setting.values,
        "rows": setting.sizes,
        "correlation": setting.correlation,
        "clusters": setting.clusters,
        "method": setting.method,
        "coverage": round(float(((low <= setting.truth) & (setting.truth <= high)).mean()), 4),
        "width": round(float((high - low).mean()), 4),
        "seen": round(float((p_value < SIGNIFICANT).mean()), 4),
        "insufficient": round(1 - len(low) / replicates, 4),
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
    left_out = replace(clustered, method="jackknife")
    few = [
        replace(left_out, kind=kind, values=values, sizes=(n * CLUSTER_ROWS, n * CLUSTER_ROWS), clusters=ACROSS)
        for kind, values in (("auc", (0.8, 0.8)), ("auc", (0.85, 0.8)), ("gap", (0.2, 0.2)), ("gap", (0.1, 0.0)))
        for n in FEW_CLUSTERS
    ]
    fewer_in_a_cell = [
        replace(left_out, kind=kind, values=values, sizes=(n * CLUSTER_ROWS, 60 * CLUSTER_ROWS))
        for kind, values in (("auc", (0.8, 0.8)), ("gap", (0.2, 0.2)), ("gap", (0.2, -0.2)))
        for n in FEW_IN_A_CELL
    ]
    return [*settings, clustered, left_out, *few, *fewer_in_a_cell]


def report(results: list[dict[str, object]]) -> None:
    for one in results:
        shown = "  ".join(f"{name} {one[name]}" for name in ("values", "rows", "correlation", "clusters", "method"))
        print(f"{one['kind']}: {shown}: covers {one['coverage']}, seen {one['seen']}, width {one['width']}")


def main() -> None:
    arguments = ask_for_replicates(__doc__, "comparison_coverage.json", quick=20)
    replicates, seed, results = arguments.replicates, arguments.seed, []
    for number, setting in enumerate(list_settings()):
        results.append(simulate(setting, replicates, [seed, number]))
    report(results)
    keep_results(arguments.out, {"level": LEVEL, "replicates": replicates, "seed": seed}, results)


if __name__ == "__main__":
    main()
