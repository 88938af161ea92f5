#!/usr/bin/env python3
"""Choose the rule between the two intervals of an AUC by simulation: coverage and width of the nominal 95 % interval.

    scripts/simulate_intervals.py [--quick] [--replicates N] [--seed S] [--out FILE]

Needs numpy alone; some minutes on one core. A setting is a distribution of scores, a true AUC and the rows of the
smaller and of the larger cell. The smaller cell is the one that should score higher, which loses nothing: negating the
scores turns (A, low, high) into (1 - A, high, low), and every interval here turns with it. A gap is an AUC less one
half, so its interval covers when that of the AUC does.

Replicates are cheap because the larger cell is never drawn row by row: given the m scores of the smaller one, only the
counts of its rows in the m + 1 gaps between them matter, and those are multinomial.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Ends = tuple[Floats, Floats]

NORMAL = NormalDist()
LEVEL = 0.95
Z = NORMAL.inv_cdf(0.5 + LEVEL / 2)
AUCS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999)
SMALL = (2, 3, 5, 10, 20, 30, 50, 100, 300)
TOLERANCE = 1e-12

_erf = np.frompyfunc(math.erf, 1, 1)


@dataclass(frozen=True)
class Sample:
    """Replicates of both cells as counts of rows at ordered levels of the score, shape (replicates, levels)."""

    small: Counts
    large: Counts
    true_auc: float


Draw = Callable[[float, int, int, int, np.random.Generator], Sample]


def normal_cdf(x: Floats) -> Floats:
    return 0.5 * (1 + np.asarray(_erf(x / math.sqrt(2)), dtype=np.float64))


def place(shares_below: Floats, n_large: int, auc: float, rng: np.random.Generator) -> Sample:
    """Draw the larger cell around the rows of the smaller one, given as the share of the larger's population below."""
    replicates, m = shares_below.shape
    edges = np.zeros((replicates, m + 2))
    edges[:, 1:-1] = np.sort(np.clip(shares_below, 0, 1), axis=1)
    edges[:, -1] = 1
    small = np.zeros((replicates, 2 * m + 1), dtype=np.int64)
    large = np.zeros_like(small)
    small[:, 1::2] = 1
    large[:, ::2] = rng.multinomial(n_large, np.diff(edges, axis=1))
    return Sample(small, large, auc)


def normal(spread: float) -> Draw:
    """Two normals; the smaller cell's standard deviation is ``spread`` times the larger one's."""

    def draw(auc: float, m: int, n: int, replicates: int, rng: np.random.Generator) -> Sample:
        mean = NORMAL.inv_cdf(auc) * math.hypot(1, spread)
        return place(normal_cdf(rng.normal(mean, spread, (replicates, m))), n, auc, rng)

    return draw


def levels(k: int) -> Draw:
    """Two unit normals cut into ``k`` levels, so that many pairs tie; 2 are decisions with equal error rates."""

    def shares(mean: float) -> tuple[Floats, Floats]:
        cuts = np.linspace(-1, 1 + mean, k + 1)[1:-1]
        small, large = (normal_cdf(cuts - shift) for shift in (mean, 0.0))
        return np.diff(small, prepend=0.0, append=1.0), np.diff(large, prepend=0.0, append=1.0)

    def true_auc(mean: float) -> float:
        small, large = shares(mean)
        return float(small @ (np.cumsum(large) - large / 2))

    def draw(auc: float, m: int, n: int, replicates: int, rng: np.random.Generator) -> Sample:
        below, above = 0.0, 12.0
        for _ in range(60):
            middle = (below + above) / 2
            below, above = (middle, above) if true_auc(middle) < auc else (below, middle)
        small, large = shares(below)
        return Sample(rng.multinomial(m, small, replicates), rng.multinomial(n, large, replicates), true_auc(below))

    return draw


def draw_lost_small(auc: float, m: int, n: int, replicates: int, rng: np.random.Generator) -> Sample:
    """A share of the smaller cell scores like the larger one, the rest above all of it."""
    lost = rng.random((replicates, m)) < 2 * (1 - auc)
    return place(np.where(lost, rng.random((replicates, m)), 1.0), n, auc, rng)


def draw_lost_large(auc: float, m: int, n: int, replicates: int, rng: np.random.Generator) -> Sample:
    """A share of the larger cell scores like the smaller one, the rest below all of it."""
    share = 2 * (1 - auc)
    return place(1 - share + share * rng.random((replicates, m)), n, auc, rng)


def draw_decisions(auc: float, m: int, n: int, replicates: int, rng: np.random.Generator) -> Sample:
    """Scores 0 and 1: the larger cell is all 0, the smaller one 1 with probability 2·AUC - 1."""
    share = 2 * auc - 1
    small = rng.multinomial(m, [1 - share, share], replicates)
    return Sample(small, np.tile(np.array([n, 0]), (replicates, 1)), auc)


ASSUMED: dict[str, Draw] = {
    "normal": normal(1),
    "normal, small cell half as wide": normal(0.5),
    "normal, small cell twice as wide": normal(2),
    "2 levels": levels(2),
    "3 levels": levels(3),
    "5 levels": levels(5),
    "20 levels": levels(20),
}
"""The distributions by which the rule was chosen."""

STRESS: dict[str, Draw] = {
    "normal, small cell four times as wide": normal(4),
    "some small-cell rows lost": draw_lost_small,
    "some large-cell rows lost": draw_lost_large,
    "decisions without false alarms": draw_decisions,
}
"""Harsher ones, reported beside them."""


@dataclass(frozen=True)
class Estimate:
    """The AUC of each replicate and its DeLong variance; cells of m and n rows."""

    auc: Floats
    variance: Floats
    m: int
    n: int

    @property
    def information(self) -> Floats:
        """About how many rows of the smaller cell tell of the errors."""
        return min(self.m, self.n) * self.auc * (1 - self.auc)


Rule = Callable[[Estimate], Ends]


def measure(sample: Sample) -> Estimate:
    m, n = int(sample.small[0].sum()), int(sample.large[0].sum())
    below = 2 * np.cumsum(sample.large, axis=1) - sample.large
    above = 2 * (m - np.cumsum(sample.small, axis=1)) + sample.small
    u_doubled = (sample.small * below).sum(axis=1)

    def part(cell: Counts, placements: Counts, rows: int, others: int) -> Floats:
        numerator = rows * (cell * placements**2).sum(axis=1) - u_doubled**2
        return np.asarray(numerator / (4.0 * others**2 * rows**2 * (rows - 1)), dtype=np.float64)

    variance = part(sample.small, below, m, n) + part(sample.large, above, n, m)
    return Estimate(u_doubled / (2.0 * m * n), variance, m, n)


def wald_delong(e: Estimate) -> Ends:
    half = Z * np.sqrt(e.variance)
    return e.auc - half, e.auc + half


def logit_delong(e: Estimate) -> Ends:
    slope = np.where((e.auc > 0) & (e.auc < 1), e.auc * (1 - e.auc), 1.0)
    factor = np.exp(np.minimum(Z * np.sqrt(e.variance) / slope, 700.0))
    return e.auc / (e.auc + (1 - e.auc) * factor), e.auc / (e.auc + (1 - e.auc) / factor)


def newcombe(e: Estimate) -> Ends:
    def lower(a: Floats) -> Floats:
        theta = a
        for _ in range(18):
            bracket = 1 + ((e.m + e.n) / 2 - 1) * ((1 - theta) / (2 - theta) + theta / (1 + theta))
            k = Z * Z / (e.m * e.n) * bracket
            theta = 2 * a * a / (2 * a + k + np.sqrt(k * k + 4 * k * a * (1 - a)))
        return theta

    return lower(e.auc), 1 - lower(1 - e.auc)


def choose(use_logit: Callable[[Estimate], NDArray[np.bool_]]) -> Rule:
    """logit_delong where the condition holds and there is a variance, else newcombe."""

    def rule(e: Estimate) -> Ends:
        by_logit = use_logit(e) & (e.variance > 0)
        logit, score = logit_delong(e), newcombe(e)
        return np.where(by_logit, logit[0], score[0]), np.where(by_logit, logit[1], score[1])

    return rule


def is_wider(e: Estimate) -> NDArray[np.bool_]:
    logit, score = logit_delong(e), newcombe(e)
    return np.asarray(logit[1] - logit[0] > score[1] - score[0])


def join(e: Estimate) -> Ends:
    """Both intervals together: no choice between them covers more."""
    logit, score = logit_delong(e), newcombe(e)
    return np.minimum(logit[0], score[0]), np.maximum(logit[1], score[1])


SETTLED = 10
CHOSEN = f"wider of both, logit from min(m,n)A(1-A) >= {SETTLED}"
RULES: dict[str, Rule] = {
    "wald_delong": wald_delong,
    "logit_delong": logit_delong,
    "newcombe": newcombe,
    "logit from min(m,n) >= 30": choose(lambda e: np.full(len(e.auc), min(e.m, e.n) >= 30)),
    "logit from min(m,n) >= 100": choose(lambda e: np.full(len(e.auc), min(e.m, e.n) >= 100)),
    "logit from min(m,n)min(A,1-A) >= 5": choose(lambda e: min(e.m, e.n) * np.minimum(e.auc, 1 - e.auc) >= 5),
    "logit from min(m,n)A(1-A) >= 10": choose(lambda e: e.information >= 10),
    "wider of both": choose(is_wider),
    "wider of both, logit from min(m,n)A(1-A) >= 5": choose(lambda e: (e.information >= 5) | is_wider(e)),
    "both joined, the bound of every choice": join,
    CHOSEN: choose(lambda e: (e.information >= SETTLED) | is_wider(e)),
}
SHOWN = ("wald_delong", "logit_delong", "newcombe", CHOSEN)


@dataclass(frozen=True)
class Result:
    """Coverage and mean width of every rule in one setting."""

    distribution: str
    auc: float
    small: int
    large: int
    coverage: dict[str, float]
    width: dict[str, float]


def simulate(name: str, draw: Draw, sizes: tuple[int, ...], replicates: int, seed: list[int]) -> Iterator[Result]:
    rng = np.random.default_rng(seed)
    for auc, m in product(AUCS, sizes):
        for n in sorted({m, 10 * m, max(1000, 100 * m)}):
            sample = draw(auc, m, n, replicates, rng)
            estimate = measure(sample)
            coverage, width = {}, {}
            for rule, interval in RULES.items():
                low, high = interval(estimate)
                hit = (low <= sample.true_auc + TOLERANCE) & (sample.true_auc - TOLERANCE <= high)
                coverage[rule], width[rule] = float(hit.mean()), float((high - low).mean())
            yield Result(name, auc, m, n, coverage, width)


def summarise(results: list[Result], rule: str) -> dict[str, object]:
    coverage = np.array([r.coverage[rule] for r in results])
    worst = results[int(coverage.argmin())]
    ratio = np.array([r.width[rule] / r.width["newcombe"] for r in results])
    wald = [r.width[rule] / r.width["wald_delong"] for r in results if r.small == 300 and r.width["wald_delong"] > 0]
    return {
        "min": round(float(coverage.min()), 4),
        "p01": round(float(np.quantile(coverage, 0.01)), 4),
        "p05": round(float(np.quantile(coverage, 0.05)), 4),
        "median": round(float(np.median(coverage)), 4),
        "share_below_0.94": round(float((coverage < 0.94).mean()), 4),
        "share_below_0.925": round(float((coverage < 0.925).mean()), 4),
        "median_width_over_newcombe": round(float(np.median(ratio)), 3),
        "median_width_over_wald_from_300_rows": round(float(np.median(wald)), 3) if wald else None,
        "worst": [worst.distribution, worst.auc, worst.small, worst.large],
    }


def groups(results: list[Result]) -> dict[str, list[Result]]:
    assumed = [r for r in results if r.distribution in ASSUMED]
    parts = {
        "assumed": assumed,
        "assumed, small cell of 2 or 3": [r for r in assumed if r.small <= 3],
        "assumed, small cell of 5": [r for r in assumed if r.small == 5],
        "assumed, small cell of 10 and more": [r for r in assumed if r.small >= 10],
        "stress, small cell of 10 and more": [r for r in results if r.distribution in STRESS and r.small >= 10],
    }
    return {name: part for name, part in parts.items() if part}


def report(results: list[Result]) -> None:
    for name, part in groups(results).items():
        print(f"\n{name}: {len(part)} settings, coverage")
        print(
            f"{'rule':<48}{'min':>6}{'p1':>6}{'p5':>6}{'p50':>6}{'<.94':>7}{'<.925':>7}  width/newcombe, worst setting"
        )
        for rule in RULES:
            s = summarise(part, rule)
            print(
                f"{rule:<48}{s['min']:6.3f}{s['p01']:6.3f}{s['p05']:6.3f}{s['median']:6.3f}"
                f"{s['share_below_0.94']:7.1%}{s['share_below_0.925']:7.1%}  {s['median_width_over_newcombe']:.2f}  "
                f"{s['worst']}"
            )


def write(results: list[Result], settings: dict[str, object], out: Path) -> None:
    """Write the summary of each rule, and one line a setting with the coverage of the rules in ``shown``."""
    summary = {name: {rule: summarise(part, rule) for rule in RULES} for name, part in groups(results).items()}
    head = {"settings": settings, "chosen": CHOSEN, "summary": summary}
    head["columns"] = ["distribution", "auc", "rows_small", "rows_large", *SHOWN, "width of the chosen"]
    rows = [
        [r.distribution, r.auc, r.small, r.large, *(round(r.coverage[s], 4) for s in SHOWN), round(r.width[CHOSEN], 4)]
        for r in results
    ]
    lines = ",\n  ".join(json.dumps(row) for row in rows)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(head, indent=1)[:-2] + f',\n "coverage": [\n  {lines}\n ]\n}}\n', encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default_out = Path(__file__).parent / "results" / "interval_coverage.json"
    parser.add_argument("--replicates", type=int, default=8000, help="of each setting (default %(default)s)")
    parser.add_argument("--seed", type=int, default=20190513)
    parser.add_argument("--out", type=Path, default=default_out)
    parser.add_argument("--quick", action="store_true", help="a smoke test: 200 replicates of cells of 3 and 30")
    arguments = parser.parse_args()
    sizes, replicates = ((3, 30), 200) if arguments.quick else (SMALL, arguments.replicates)
    results: list[Result] = []
    for number, (name, draw) in enumerate((ASSUMED | STRESS).items()):
        results += simulate(name, draw, sizes, replicates, [arguments.seed, number])
        print(f"{name}: {len(results)} settings so far", flush=True)
    report(results)
    write(results, {"level": LEVEL, "replicates": replicates, "seed": arguments.seed}, arguments.out)


if __name__ == "__main__":
    main()
