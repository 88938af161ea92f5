"""Two AUCs that are not independent, and their variances by DeLong and by the jackknife, against brute force."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from biasspark.comparison.differences import (
    PairCounts,
    PairedMetric,
    Replicates,
    delong_aucs,
    estimate_difference,
    jackknife_aucs,
    noninferiority_test,
)
from biasspark.ranking.kernels.paired_products import Products
from tests.oracle.differences import combined_variance
from tests.oracle.suite import auc_by_pairs, delong_variance, ordered_doubled

Array = np.ndarray


def draw(seed: int, n_low: int = 12, n_high: int = 9) -> tuple[Array, Array]:
    """Rows of both cells as columns, their scores by two models as rows, with many ties."""
    rng = np.random.default_rng(seed)
    return np.round(rng.normal(size=(2, n_low)), 0), np.round(rng.normal(1, 1, (2, n_high)), 0)


# ---- paired DeLong


def place(rows: Array, among: Array) -> Products:
    x, y = (ordered_doubled(other, placed).sum(axis=0) for placed, other in zip(rows, among, strict=True))
    return Products(*map(int, (len(x), x.sum(), y.sum(), x @ x, y @ y, x @ y)))


def by_delong(low: Array, high: Array) -> PairedMetric:
    """Low rows are rightly ordered below high ones: negated, above them."""
    return delong_aucs(place(-low, -high), place(high, low))


@pytest.mark.parametrize("seed", range(3))
def test_delong_is_that_of_the_placements(seed: int) -> None:
    low, high = draw(seed)
    found = by_delong(low, high)
    expected = [auc_by_pairs(*cells) for cells in zip(low, high, strict=True)]
    expected += [delong_variance(*cells) for cells in zip(low, high, strict=True)]
    expected += [combined_variance((low[0], low[1]), (high[0], high[1]), sign) for sign in (-1, 1)]
    assert found[:2] == (12, 9)
    assert list(found[2:8]) == pytest.approx(expected, abs=1e-12)


def test_a_model_and_itself_differ_by_nothing_with_variance_0() -> None:
    low, high = draw(9)
    low[1], high[1] = low[0], high[0]
    found = by_delong(low, high)
    assert (found.value, found.difference_variance) == (found.baseline_value, 0.0)
    assert found.sum_variance == pytest.approx(4 * delong_variance(low[0], high[0]), abs=1e-12)


@pytest.mark.parametrize(("n_low", "n_high"), [(0, 5), (5, 0), (1, 5), (5, 1)])
def test_small_cells_have_no_variance(n_low: int, n_high: int) -> None:
    found = by_delong(*draw(3, n_low, n_high))
    assert (found.value is None) == (0 in (n_low, n_high))
    assert found[4:] == (None,) * 6


# ---- the jackknife

Groups = tuple[Array, Array]
"""Of the rows of the low cell, and of the high one."""


def count(low: Array, high: Array) -> PairCounts:
    return PairCounts(len(low), len(high), int(ordered_doubled(low, high).sum()))


def leave_out(low: Array, high: Array, groups: Groups, n_groups: int) -> Replicates:
    """The pairs of one side, and those that are left without each group."""
    left = [count(low[groups[0] != k], high[groups[1] != k]) for k in range(n_groups)]
    return Replicates(count(low, high), left)


def row_of(run: Replicates) -> dict[str, Any]:
    """Give the counts as they are published."""
    row = dict(zip(("n_low", "n_high", "u_doubled"), run.whole, strict=True))
    left = zip(*run.without, strict=True)
    return row | dict(zip(("n_low_left", "n_high_left", "u_doubled_left"), left, strict=True))


def by_jackknife(low: Array, high: Array, groups: Groups, n_groups: int) -> PairedMetric:
    return jackknife_aucs(*(leave_out(a, b, groups, n_groups) for a, b in zip(low, high, strict=True)))


def test_the_variance_is_that_of_the_definition_over_groups_that_have_rows() -> None:
    low, high = draw(5)
    groups = np.arange(12) % 6, np.arange(9) % 6
    aucs = [
        [auc_by_pairs(a[groups[0] != k], b[groups[1] != k]) for a, b in zip(low, high, strict=True)] for k in range(6)
    ]
    found = by_jackknife(low, high, groups, 50)
    for variance, (x, y) in zip(found[4:8], ((1, 0), (0, 1), (1, -1), (1, 1)), strict=True):
        replicates = np.array(aucs) @ [x, y]
        assert variance == pytest.approx(5 / 6 * ((replicates - replicates.mean()) ** 2).sum(), abs=1e-12)
    assert found.n_groups == 6


@pytest.mark.parametrize(("of_high", "n_groups"), [(4, 20), (5, 20), (25, 25)])
def test_groups_are_counted_in_both_cells_and_must_be_five_in_either(of_high: int, n_groups: int) -> None:
    low, high = draw(6, 60, 50)
    found = by_jackknife(low, high, (np.arange(60) % 20, np.arange(50) % of_high), 30)
    assert (found.n_groups, found.difference_variance is None) == (n_groups, of_high < 5)
    none = by_jackknife(low, high[:, :0], (np.arange(60) % 20, np.arange(0)), 30)
    assert (none.value, none.difference_variance, none.n_groups) == (None, None, 20)


@pytest.mark.parametrize("n_groups", [10, 37, 50])
def test_what_every_group_leaves_alike_has_variance_0(n_groups: int) -> None:
    """Two rows of either label in a group, above those of all groups before: in each the baseline loses one pair."""
    ordered = np.random.default_rng(1).integers(1, 5, n_groups).tolist()

    def side(ordered: list[int]) -> Replicates:
        u, n = 4 * n_groups * (n_groups - 1) // 2 + sum(ordered), 2 * n_groups
        left = [PairCounts(n - 2, n - 2, 2 * (u - n_ordered - 4 * (n_groups - 1))) for n_ordered in ordered]
        return Replicates(PairCounts(n, n, 2 * u), left)

    found = jackknife_aucs(side(ordered), side([n_ordered - 1 for n_ordered in ordered]))
    assert found.variance
    assert found.baseline_variance
    assert found.difference_variance == 0.0
    difference, *unknown = estimate_difference(found, 0.95)
    assert difference == pytest.approx(1 / (4 * n_groups), abs=1e-15)
    assert unknown == [None, None, None, True]


def test_two_runs_are_paired_by_the_groups_of_their_ids() -> None:
    """Of other rows, as their table has them; the smaller cells count."""
    runs = [
        leave_out(low[0], high[0], (np.arange(low.shape[1]) % 6, np.arange(high.shape[1]) % 6), 6)
        for low, high in (draw(5), draw(7, 10, 20))
    ]
    found = jackknife_aucs(*(Replicates.read(row_of(run)) for run in runs))
    assert found == jackknife_aucs(*runs)
    assert found[:2] == (10, 9)
    left = np.array([[one.two_u / one.doubled_pairs for one in run.without] for run in runs])
    for variance, replicates in (
        (found.difference_variance, left[0] - left[1]),
        (found.sum_variance, left.sum(axis=0)),
    ):
        assert variance == pytest.approx(5 / 6 * ((replicates - replicates.mean()) ** 2).sum(), abs=1e-12)


def test_runs_that_are_alike_row_by_row_differ_by_nothing_and_other_groups_are_not_paired() -> None:
    (low, _), (high, _) = draw(8, 60, 50)
    twelve, seven = (leave_out(low, high, (np.arange(60) % g, np.arange(50) % g), g) for g in (12, 7))
    found = jackknife_aucs(twelve, twelve)
    assert found.difference_variance == 0.0
    assert noninferiority_test(found, "max_drop", 0.1) == pytest.approx((1.0, 0.9**50), abs=1e-15)
    apart = jackknife_aucs(twelve, seven)
    assert (apart.value, apart.difference_variance, apart.n_groups) == (apart.baseline_value, None, None)
