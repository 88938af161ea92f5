"""How often a rule on a change errs where the true change is just its bound, and how often it decides: by simulation.

    .venv/bin/python -m scripts.simulate_changes [--quick] [--replicates N] [--seed S] [--out FILE]

Needs numpy alone; about four minutes on one core. Two nights score rows of two cells, some or all of them with the same
ids. What is simulated is the product's own arithmetic: `jackknife_aucs` and `weigh_margin` where the nights are
paired, and beside it `compare_with_baseline`, for which their variances are added.

Nights change in one of three ways: every row is scored anew, correlated with its score before, and the AUC falls; a few
low rows come to be above all others, and the rest stay as they are; or every row is scored anew and nothing falls.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from biasspark.metrics.comparisons.differences import Paired, weigh_margin
from biasspark.metrics.comparisons.paired import LeftOut, jackknife_aucs
from biasspark.metrics.evidence import Aucs, compare_with_baseline
from scripts.simulate_comparisons import GROUPS, leave_out, place
from scripts.simulations import ask_for_replicates, keep_results

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEVEL = 0.05
AUC = 0.9
CORRELATION = 0.98
RESCORED, FEW_ROWS, NOTHING = "rescored", "few rows", "nothing"


@dataclass(frozen=True)
class Setting:
    """What is simulated: the bound, which is how far the AUC falls unless nothing does, and what the nights share."""

    change: str
    bound: float
    sizes: tuple[int, int]
    common: float = 1.0


@dataclass(frozen=True)
class Cell:
    """The rows of a cell in a night: their scores, and the groups of their ids."""

    scores: Floats
    groups: Ints


def distance_of(auc: float) -> float:
    """How far apart the means of two standard normal cells are."""
    return math.sqrt(2) * NormalDist().inv_cdf(auc)


def draw(setting: Setting, rng: np.random.Generator) -> tuple[list[Cell], list[Cell]]:
    """Draw both cells, low before high, tonight and before; of those before the first rows come again."""
    cells = [draw_cell(setting, rows, rng) for rows in setting.sizes]
    after = AUC - setting.bound if setting.change == RESCORED else AUC
    now, before = ([own[night] for own in cells] for night in range(2))
    for night, auc in ((now, after), (before, AUC)):
        night[1] = Cell(night[1].scores + distance_of(auc), night[1].groups)
    if setting.change == FEW_ROWS:  # such a row loses its placement, which is the AUC on average
        above = rng.random(setting.sizes[0]) < setting.bound / AUC
        now[0] = Cell(np.where(above, np.inf, now[0].scores), now[0].groups)
    return now, before


def draw_cell(setting: Setting, n_rows: int, rng: np.random.Generator) -> tuple[Cell, Cell]:
    kept = round(setting.common * n_rows)
    before, again = rng.normal(size=(2, n_rows))
    if setting.change == FEW_ROWS:
        again = before.copy()
    else:
        again = CORRELATION * before + math.sqrt(1 - CORRELATION**2) * again
    groups, others = rng.integers(0, GROUPS, (2, n_rows))
    again[kept:] = rng.normal(size=n_rows - kept)
    return Cell(again, np.r_[groups[:kept], others[kept:]]), Cell(before, groups)


def weigh_paired(now: LeftOut, before: LeftOut, bound: float) -> tuple[float, float, float]:
    """Both p-values of the paired nights, and that of compliance by the standard error of the jackknife alone."""
    aucs = jackknife_aucs(now, before)
    found = weigh_margin(Paired.of(aucs, ((None, None), (None, None)), is_gap=False), "max_drop", bound)
    assert found is not None  # cells are large
    if not aucs.difference_variance:
        return *found, found[1]
    z = (before.auc - now.auc - bound) / math.sqrt(aucs.difference_variance)
    return *found, NormalDist().cdf(z)


def delong(low: Floats, high: Floats) -> float:
    """DeLong's variance of an AUC."""
    shares = place(low, high) / 2 / len(high), place(high, low) / 2 / len(low)
    return float(sum(np.var(own, ddof=1) / len(own) for own in shares))


def weigh_added(nights: list[tuple[LeftOut, float]], bound: float) -> tuple[float, float]:
    """Both p-values where the variances of the nights are added."""
    aucs = [
        Aucs(np.array([own.auc]), np.array([variance]), np.array([own.n_low]), np.array([own.n_high]), np.array([True]))
        for own, variance in nights
    ]
    violation, compliance = compare_with_baseline(aucs[0], aucs[1], "max_drop", bound)
    return float(violation[0]), float(compliance[0])


def simulate(setting: Setting, replicates: int, seed: list[int]) -> dict[str, object]:
    """Return how often violation and compliance are shown at 0.05, paired and with variances added."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(replicates):
        nights = []
        for low, high in draw(setting, rng):
            left = leave_out(low.scores, high.scores, [low.groups, high.groups])
            nights.append((left, delong(low.scores, high.scores)))
        found.append((*weigh_paired(nights[0][0], nights[1][0], setting.bound), *weigh_added(nights, setting.bound)))
    shown = (np.array(found) < LEVEL).mean(axis=0)
    names = ("violation", "compliance", "compliance_by_jackknife_alone", "violation_added", "compliance_added")
    return {
        "change": setting.change,
        "bound": setting.bound,
        "rows": setting.sizes,
        "common": setting.common,
        **{name: round(float(share), 4) for name, share in zip(names, shown, strict=True)},
    }


def list_settings() -> list[Setting]:
    sizes = ((100, 1000), (300, 300), (1000, 1000))
    few = [Setting(FEW_ROWS, bound, own) for bound, own in ((0.01, (300, 600)), (0.01, (500, 500)))]
    few += [Setting(FEW_ROWS, bound, own) for bound, own in ((0.05, (100, 1000)), (0.05, (300, 300)))]
    rescored = [Setting(RESCORED, 0.02, own, common) for own in sizes for common in (1.0, 0.5, 0.0)]
    return [*rescored, *few, *(Setting(NOTHING, bound, own) for own in sizes for bound in (0.01, 0.02))]


def report(results: list[dict[str, object]]) -> None:
    for one in results:
        print("  ".join(f"{name} {value}" for name, value in one.items()))


def main() -> None:
    arguments = ask_for_replicates(__doc__, "change_errors.json", quick=4)
    replicates, seed = arguments.replicates, arguments.seed
    results = [simulate(one, replicates, [seed, number]) for number, one in enumerate(list_settings())]
    report(results)
    keep_results(arguments.out, {"level": LEVEL, "replicates": replicates, "seed": seed}, results)


if __name__ == "__main__":
    main()
