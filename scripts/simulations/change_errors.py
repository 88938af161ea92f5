"""Error rates of a rule on a change whose true size is exactly the bound, and how often the rule decides.

    .venv/bin/python -m scripts.simulations.change_errors [--quick] [--runs N] [--seed S] [--out FILE]

Needs numpy alone; some minutes on one core. Two runs score rows of two cells, some or all of them with the same ids.
It simulates the functions of biasspark: `jackknife_aucs` and `noninferiority_test` for paired runs, compared with
`compare_with_baseline`, which adds their variances.

Runs change in one of three ways: every row is scored again, correlated with its earlier score, and the AUC falls; a few
low rows rise above all others, and the rest stay the same; or every row is scored again and nothing falls.

Supports docs/gate.md#changes-since-the-last-accepted-run: how often a change of exactly the bound breaks a rule.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from biasspark.arrays import Floats, Ints
from biasspark.comparison.differences import Replicates, jackknife_aucs, noninferiority_test
from biasspark.gate.rule_tests import Aucs, compare_with_baseline
from scripts.simulations.comparison_coverage import GROUPS, distance_of, leave_out, placements
from scripts.simulations.kept_results import parse_options, run_simulation

LEVEL = 0.05
AUC = 0.9
CORRELATION = 0.98
RESCORED, FEW_ROWS, NOTHING = "rescored", "few rows", "nothing"
NAMES = ("violation", "compliance", "compliance_by_jackknife_alone", "violation_added", "compliance_added")


@dataclass(frozen=True)
class Setting:
    """The bound, by which the AUC falls unless nothing does, and the share of rows that the runs have in common."""

    change: str
    bound: float
    rows: tuple[int, int]
    common: float = 1.0


@dataclass(frozen=True)
class Cell:
    """The rows of a cell in a run: their scores, and the groups of their ids."""

    scores: Floats
    groups: Ints


def draw(setting: Setting, rng: np.random.Generator) -> tuple[list[Cell], list[Cell]]:
    """Draw both cells, low before high, of this run and of the run before. The first rows are in both."""
    cells = [draw_cell(setting, rows, rng) for rows in setting.rows]
    after = AUC - setting.bound if setting.change == RESCORED else AUC
    now, before = ([cell[run] for cell in cells] for run in range(2))
    for run, auc in ((now, after), (before, AUC)):
        run[1] = Cell(run[1].scores + distance_of(auc), run[1].groups)
    if setting.change == FEW_ROWS:  # such a row loses its placement, which is the AUC on average
        above = rng.random(setting.rows[0]) < setting.bound / AUC
        now[0] = Cell(np.where(above, np.inf, now[0].scores), now[0].groups)
    return now, before


def draw_cell(setting: Setting, n_rows: int, rng: np.random.Generator) -> tuple[Cell, Cell]:
    n_common = round(setting.common * n_rows)
    before, again = rng.normal(size=(2, n_rows))
    if setting.change == FEW_ROWS:
        again = before.copy()
    else:
        again = CORRELATION * before + math.sqrt(1 - CORRELATION**2) * again
    groups, new_groups = rng.integers(0, GROUPS, (2, n_rows))
    again[n_common:] = rng.normal(size=n_rows - n_common)
    return Cell(again, np.r_[groups[:n_common], new_groups[n_common:]]), Cell(before, groups)


def paired_p_values(now: Replicates, before: Replicates, bound: float) -> tuple[float, float, float]:
    """Return both p-values of paired runs, and that of compliance by the standard error of the jackknife alone."""
    aucs = jackknife_aucs(now, before)
    p_values = noninferiority_test(aucs, "max_drop", bound)
    assert p_values is not None  # cells are large
    if not aucs.difference_variance:
        return *p_values, p_values[1]
    z = (before.auc - now.auc - bound) / math.sqrt(aucs.difference_variance)
    return *p_values, NormalDist().cdf(z)


def added_p_values(pair: list[tuple[Replicates, float]], bound: float) -> tuple[float, float]:
    """Return both p-values if the variances of the runs are added."""
    now, before = (
        Aucs(
            value=np.array([counts.auc]),
            variance=np.array([variance]),
            n_low=np.array([float(counts.whole.n_low)]),
            n_high=np.array([float(counts.whole.n_high)]),
            by_logit=np.array([True]),
        )
        for counts, variance in pair
    )
    violation, compliance = compare_with_baseline(now, before, "max_drop", bound)
    return float(violation[0]), float(compliance[0])


def delong(low: Floats, high: Floats) -> float:
    """Return DeLong's variance of an AUC by its definition."""
    shares = placements(low, high) / 2 / len(high), placements(high, low) / 2 / len(low)
    return float(sum(np.var(share, ddof=1) / len(share) for share in shares))


def simulate(setting: Setting, runs: int, seed: list[int]) -> dict[str, object]:
    """Return how often violation and compliance are significant at 0.05, paired and with variances added."""
    rng, p_values = np.random.default_rng(seed), []
    for _ in range(runs):
        pair = [
            (leave_out(low.scores, high.scores, (low.groups, high.groups)), delong(low.scores, high.scores))
            for low, high in draw(setting, rng)
        ]
        paired = paired_p_values(pair[0][0], pair[1][0], setting.bound)
        p_values.append((*paired, *added_p_values(pair, setting.bound)))
    shares = (np.array(p_values) < LEVEL).mean(axis=0)
    return vars(setting) | {name: round(float(share), 4) for name, share in zip(NAMES, shares, strict=True)}


def list_settings() -> list[Setting]:
    sizes = ((100, 1000), (300, 300), (1000, 1000))
    few = [Setting(FEW_ROWS, 0.01, rows) for rows in ((300, 600), (500, 500))]
    few += [Setting(FEW_ROWS, 0.05, rows) for rows in ((100, 1000), (300, 300))]
    rescored = [Setting(RESCORED, 0.02, rows, common) for rows in sizes for common in (1.0, 0.5, 0.0)]
    return [*rescored, *few, *(Setting(NOTHING, bound, rows) for rows in sizes for bound in (0.01, 0.02))]


def main() -> None:
    options = parse_options(__doc__, "change_errors.json", quick=4)
    run_simulation(options, simulate, ((setting,) for setting in list_settings()), level=LEVEL)


if __name__ == "__main__":
    main()
