"""Coverage and width of the nominal 95% interval of an AUC, by several rules that choose between its two methods.

    .venv/bin/python -m scripts.simulations.interval_coverage [--quick] [--runs N] [--seed S] [--out FILE]

Needs numpy alone; about a minute on one core. A setting is a distribution of scores, a true AUC and the rows of the
smaller and of the larger cell. The smaller cell is the one that should score higher. That is no restriction: negating
the scores turns (A, low, high) into (1 - A, high, low), and every interval with it. A gap is an AUC less one half, so
its interval covers when that of the AUC does.

The larger cell is never drawn row by row: given the m scores of the smaller one, only the counts of its rows in the
m + 1 intervals between them matter, and those are multinomial.

Supports docs/metrics.md#the-suite: the rule that chooses the method of an interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from statistics import NormalDist

import numpy as np

from biasspark.arrays import Flags, Floats, Ints, apply
from biasspark.distributions import normal_quantile
from biasspark.metrics.intervals import MIN_FOR_LOGIT, auc_interval, delong_variance, logit_delong, newcombe
from scripts.simulations.kept_results import parse_options, write_results

Ends = tuple[Floats, Floats]

NORMAL = NormalDist()
LEVEL = 0.95
Z = normal_quantile(LEVEL)
AUCS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999)
SMALL = (2, 3, 5, 10, 20, 30, 50, 100, 300)
TOLERANCE = 1e-12


@dataclass(frozen=True)
class Sample:
    """Runs of both cells as counts of rows at ordered levels of the score, shape (runs, levels)."""

    small: Ints
    large: Ints
    true_auc: float


Draw = Callable[[float, int, int, int, np.random.Generator], Sample]
"""Draws a sample, given the true AUC, the rows m of the smaller and n of the larger cell, and the number of runs."""


def normal_cdf(x: Floats) -> Floats:
    """Return the distribution function of the standard normal distribution."""
    return 0.5 * (1 + apply(math.erf, x / math.sqrt(2)))


def sample_large(shares_below: Floats, n_large: int, auc: float, rng: np.random.Generator) -> Sample:
    """Draw the larger cell between rows of the smaller one, given as the share of the larger population below each."""
    runs, m = shares_below.shape
    edges = np.zeros((runs, m + 2))
    edges[:, 1:-1] = np.sort(np.clip(shares_below, 0, 1), axis=1)
    edges[:, -1] = 1
    small = np.zeros((runs, 2 * m + 1), dtype=np.int64)
    large = np.zeros_like(small)
    small[:, 1::2] = 1
    large[:, ::2] = rng.multinomial(n_large, np.diff(edges, axis=1))
    return Sample(small, large, auc)


def normal(spread: float) -> Draw:
    """Two normals; the standard deviation of the smaller cell is ``spread`` times that of the larger one."""

    def draw(auc: float, m: int, n: int, runs: int, rng: np.random.Generator) -> Sample:
        mean = NORMAL.inv_cdf(auc) * math.hypot(1, spread)
        return sample_large(normal_cdf(rng.normal(mean, spread, (runs, m))), n, auc, rng)

    return draw


def levels(k: int) -> Draw:
    """Two unit normals cut into ``k`` levels, so that many pairs tie; 2 levels are decisions with equal error rates."""

    def shares(mean: float) -> tuple[Floats, Floats]:
        edges = np.linspace(-1, 1 + mean, k + 1)[1:-1]
        small, large = (normal_cdf(edges - shift) for shift in (mean, 0.0))
        return np.diff(small, prepend=0.0, append=1.0), np.diff(large, prepend=0.0, append=1.0)

    def true_auc(mean: float) -> float:
        small, large = shares(mean)
        return float(small @ (np.cumsum(large) - large / 2))

    def draw(auc: float, m: int, n: int, runs: int, rng: np.random.Generator) -> Sample:
        below, above = 0.0, 12.0
        for _ in range(60):
            middle = (below + above) / 2
            below, above = (middle, above) if true_auc(middle) < auc else (below, middle)
        small, large = shares(below)
        return Sample(rng.multinomial(m, small, runs), rng.multinomial(n, large, runs), true_auc(below))

    return draw


def draw_lost_small(auc: float, m: int, n: int, runs: int, rng: np.random.Generator) -> Sample:
    """A share of the smaller cell scores like the larger one, the rest above all of it."""
    lost = rng.random((runs, m)) < 2 * (1 - auc)
    return sample_large(np.where(lost, rng.random((runs, m)), 1.0), n, auc, rng)


def draw_lost_large(auc: float, m: int, n: int, runs: int, rng: np.random.Generator) -> Sample:
    """A share of the larger cell scores like the smaller one, the rest below all of it."""
    share = 2 * (1 - auc)
    return sample_large(1 - share + share * rng.random((runs, m)), n, auc, rng)


def draw_decisions(auc: float, m: int, n: int, runs: int, rng: np.random.Generator) -> Sample:
    """Scores 0 and 1: the larger cell is all 0, the smaller one 1 with probability 2·AUC - 1."""
    share = 2 * auc - 1
    small = rng.multinomial(m, [1 - share, share], runs)
    return Sample(small, np.tile(np.array([n, 0]), (runs, 1)), auc)


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
"""Harsher distributions, for comparison."""


@dataclass(frozen=True)
class Estimate:
    """The AUC of each run, and its intervals by several methods."""

    auc: Floats
    smaller: Ints
    """Rows of the smaller cell."""
    variance: Floats
    """DeLong's."""
    logit: Ends
    """The method ``logit_delong``; a point where the variance is 0."""
    newcombe: Ends
    """The method ``newcombe``."""
    product: Ends
    """The intervals that biasspark publishes."""

    @classmethod
    def of(cls, sample: Sample) -> Estimate:
        """Estimate the AUC of each run of a sample."""
        m, n = sample.small.sum(axis=1), sample.large.sum(axis=1)
        below = 2 * np.cumsum(sample.large, axis=1) - sample.large
        above = 2 * (m[:, None] - np.cumsum(sample.small, axis=1)) + sample.small
        two_u = (sample.small * below).sum(axis=1)
        squares = (
            (cell * placements**2).sum(axis=1) for cell, placements in ((sample.large, above), (sample.small, below))
        )
        auc, variance = two_u / (2.0 * m * n), delong_variance(n, m, two_u, *squares)
        with np.errstate(invalid="ignore"):
            logit = [np.where(variance == 0, auc, end) for end in logit_delong(auc, variance, Z)]
        return cls(
            auc=auc,
            smaller=np.minimum(m, n),
            variance=variance,
            logit=(logit[0], logit[1]),
            newcombe=newcombe(auc, m.astype(float), n.astype(float), Z),
            product=auc_interval(auc, variance, m, n, LEVEL)[:2],
        )

    @property
    def information(self) -> Floats:
        """min(m, n)·A·(1 - A)."""
        return self.smaller * self.auc * (1 - self.auc)

    @property
    def is_logit_wider(self) -> Flags:
        """Whether ``logit_delong`` is wider than ``newcombe``."""
        return np.asarray(self.logit[1] - self.logit[0] > self.newcombe[1] - self.newcombe[0])


Rule = Callable[[Estimate], Ends]


def join(e: Estimate) -> Ends:
    """Join both intervals: no choice between them covers more."""
    return np.minimum(e.logit[0], e.newcombe[0]), np.maximum(e.logit[1], e.newcombe[1])


def logit_if(condition: Callable[[Estimate], Flags]) -> Rule:
    """Return the rule: ``logit_delong`` where the condition holds and there is a variance, else ``newcombe``."""

    def rule(e: Estimate) -> Ends:
        by_logit = condition(e) & (e.variance > 0)
        low, high = (np.where(by_logit, *ends) for ends in zip(e.logit, e.newcombe, strict=True))
        return low, high

    return rule


CHOSEN = f"wider of both, logit from min(m,n)A(1-A) >= {MIN_FOR_LOGIT:g}"
RULES: dict[str, Rule] = {
    "wald_delong": lambda e: (e.auc - Z * np.sqrt(e.variance), e.auc + Z * np.sqrt(e.variance)),
    "logit_delong": lambda e: e.logit,
    "newcombe": lambda e: e.newcombe,
    "logit from min(m,n) >= 30": logit_if(lambda e: e.smaller >= 30),
    "logit from min(m,n) >= 100": logit_if(lambda e: e.smaller >= 100),
    "logit from min(m,n)min(A,1-A) >= 5": logit_if(lambda e: e.smaller * np.minimum(e.auc, 1 - e.auc) >= 5),
    "logit from min(m,n)A(1-A) >= 10": logit_if(lambda e: e.information >= 10),
    "wider of both": logit_if(lambda e: e.is_logit_wider),
    "wider of both, logit from min(m,n)A(1-A) >= 5": logit_if(lambda e: (e.information >= 5) | e.is_logit_wider),
    "both joined, the bound of every choice": join,
    CHOSEN: lambda e: e.product,
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


def simulate(name: str, draw: Draw, sizes: tuple[int, ...], runs: int, seed: list[int]) -> Iterator[Result]:
    """Yield the results of all settings of a distribution."""
    rng = np.random.default_rng(seed)
    for auc, m in product(AUCS, sizes):
        for n in sorted({m, 10 * m, max(1000, 100 * m)}):
            sample = draw(auc, m, n, runs, rng)
            estimate = Estimate.of(sample)
            coverage, width = {}, {}
            for rule, interval in RULES.items():
                low, high = interval(estimate)
                hit = (low <= sample.true_auc + TOLERANCE) & (sample.true_auc - TOLERANCE <= high)
                coverage[rule], width[rule] = float(hit.mean()), float((high - low).mean())
            yield Result(name, auc, m, n, coverage, width)


def summarize(results: list[Result], rule: str) -> dict[str, object]:
    """Return the distribution of the coverage of a rule over settings, and its width relative to other rules."""
    coverage = np.array([result.coverage[rule] for result in results])
    worst = results[int(coverage.argmin())]
    ratio = [result.width[rule] / result.width["newcombe"] for result in results]
    large = [result.width for result in results if result.small == 300 and result.width["wald_delong"] > 0]
    wald = [width[rule] / width["wald_delong"] for width in large]
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


def summarize_groups(results: list[Result]) -> dict[str, dict[str, dict[str, object]]]:
    assumed = [result for result in results if result.distribution in ASSUMED]
    groups = {
        "assumed": assumed,
        "assumed, small cell of 2 or 3": [result for result in assumed if result.small <= 3],
        "assumed, small cell of 5": [result for result in assumed if result.small == 5],
        "assumed, small cell of 10 and more": [result for result in assumed if result.small >= 10],
        "stress, small cell of 10 and more": [
            result for result in results if result.distribution in STRESS and result.small >= 10
        ],
    }
    return {name: {rule: summarize(part, rule) for rule in RULES} for name, part in groups.items() if part}


def main() -> None:
    options = parse_options(__doc__, "interval_coverage.json", runs=8000, quick=200)
    results: list[Result] = []
    for number, (name, draw) in enumerate((ASSUMED | STRESS).items()):
        sizes = (3, 30) if options.quick else SMALL
        results += simulate(name, draw, sizes, options.runs, [options.seed, number])
    summaries = summarize_groups(results)
    for name, rules in summaries.items():
        print(f"\n{name}: coverage")
        for rule, summary in rules.items():
            print(f"{rule:<48}", "  ".join(f"{key} {value}" for key, value in summary.items()))
    settings = {"level": LEVEL, "runs": options.runs, "seed": options.seed}
    columns = ["distribution", "auc", "rows_small", "rows_large", *SHOWN, "width of the chosen"]
    rows = [
        [r.distribution, r.auc, r.small, r.large, *(round(r.coverage[s], 4) for s in SHOWN), round(r.width[CHOSEN], 4)]
        for r in results
    ]
    write_results(options.out, {"settings": settings, "chosen": CHOSEN, "summary": summaries, "columns": columns}, rows)


if __name__ == "__main__":
    main()
