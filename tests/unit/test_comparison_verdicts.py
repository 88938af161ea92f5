"""Differences of two models, their variances and their verdicts, against the definitions and brute force."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import sqrt

import numpy as np
import pytest
from scipy import stats
from scipy.stats import norm

from biasspark.metrics.comparisons.differences import Paired, WeighedDifference, weigh, weigh_margin
from biasspark.metrics.comparisons.paired import LeftOut, PairedAucs, delong_aucs, jackknife_aucs
from biasspark.metrics.comparisons.verdicts import judge_differences
from biasspark.ranking.paired_blocks import Products
from tests.oracle.suite import auc_by_pairs, delong_variance, ordered_doubled

Z = norm.ppf(0.975)


def draw(seed: int, n_low: int = 12, n_high: int = 9) -> tuple[np.ndarray, np.ndarray]:
    """Rows of both cells as columns, their scores by two models as rows, with many ties."""
    rng = np.random.default_rng(seed)
    return np.round(rng.normal(size=(2, n_low)), 0), np.round(rng.normal(1, 1, (2, n_high)), 0)


def placed(rows: np.ndarray, among: np.ndarray) -> Products:
    x, y = (ordered_doubled(other, own).sum(axis=0) for own, other in zip(rows, among, strict=True))
    return Products(*map(int, (len(x), x.sum(), y.sum(), x @ x, y @ y, x @ y)))


def paired_delong(low: np.ndarray, high: np.ndarray, sign: int) -> float:
    """Variance of AUC + sign·AUC of the baseline, by the sample covariances of placements."""
    pairs = [ordered_doubled(a, b) / 2 for a, b in zip(low, high, strict=True)]
    found = 0.0
    for axis in (0, 1):
        of_rows = np.cov([one.mean(axis=axis) for one in pairs])
        found += (of_rows[0, 0] + of_rows[1, 1] + 2 * sign * of_rows[0, 1]) / pairs[0].shape[1 - axis]
    return found


@pytest.mark.parametrize("seed", range(5))
def test_delong_is_that_of_the_placements(seed: int) -> None:
    low, high = draw(seed)
    found = delong_aucs(placed(low, high), placed(high, low))
    assert found[:2] == (12, 9)
    expected = [auc_by_pairs(*cells) for cells in zip(low, high, strict=True)]
    expected += [delong_variance(*cells) for cells in zip(low, high, strict=True)]
    expected += [paired_delong(low, high, sign) for sign in (-1, 1)]
    assert list(found[2:8]) == pytest.approx(expected, abs=1e-12)


def test_a_model_and_itself_differ_by_nothing_with_variance_0() -> None:
    low, high = draw(9)
    low[1], high[1] = low[0], high[0]
    found = delong_aucs(placed(low, high), placed(high, low))
    assert (found.auc, found.difference_variance) == (found.baseline_auc, 0.0)
    assert found.sum_variance == pytest.approx(4 * delong_variance(low[0], high[0]), abs=1e-12)


@pytest.mark.parametrize(("n_low", "n_high"), [(0, 5), (5, 0), (1, 5), (5, 1)])
def test_small_cells_have_no_variance(n_low: int, n_high: int) -> None:
    low, high = draw(3, n_low, n_high)
    found = delong_aucs(placed(low, high), placed(high, low))
    assert (found.auc is None) == (0 in (n_low, n_high))
    assert found[4:] == (None,) * 5


# ---- the jackknife


Groups = tuple[np.ndarray, np.ndarray]
"""Of the rows of the low cell, and of the high one."""


def without_groups(low: np.ndarray, high: np.ndarray, groups: Groups, g: int) -> LeftOut:
    """One side: twice U of all rows, and of those that are not in each group."""
    kept = [(low[groups[0] != k], high[groups[1] != k]) for k in range(g)]
    left = [(len(a), len(b), int(ordered_doubled(a, b).sum())) for a, b in kept]
    return LeftOut(len(low), len(high), int(ordered_doubled(low, high).sum()), *map(list, zip(*left, strict=True)))


def leave_out(low: np.ndarray, high: np.ndarray, groups: Groups, g: int) -> PairedAucs:
    return jackknife_aucs(*(without_groups(a, b, groups, g) for a, b in zip(low, high, strict=True)))


def test_the_jackknife_of_single_rows_is_nearly_delong() -> None:
    low, high = draw(4, 60, 50)
    rows = np.arange(60), 60 + np.arange(50)
    found = leave_out(low, high, rows, 110)
    by_delong = delong_aucs(placed(low, high), placed(high, low))
    assert found[:4] == by_delong[:4]
    assert found[4:8] == pytest.approx(by_delong[4:8], rel=0.03)
    assert (found.n_groups, by_delong.n_groups) == (110, None)


def test_the_jackknife_counts_the_groups_that_have_rows() -> None:
    low, high = draw(5)
    groups = np.arange(12) % 6, np.arange(9) % 6
    aucs = [
        [auc_by_pairs(a[groups[0] != k], b[groups[1] != k]) for a, b in zip(low, high, strict=True)] for k in range(6)
    ]
    differences = np.array([a - b for a, b in aucs])
    found = leave_out(low, high, groups, 50)
    assert found.difference_variance == pytest.approx(
        5 / 6 * ((differences - differences.mean()) ** 2).sum(), abs=1e-12
    )


def test_the_jackknife_needs_rows_without_each_group() -> None:
    low, high = draw(6)
    alone = leave_out(low, high, (np.zeros(12, int), np.arange(9)), 9)
    assert alone.auc is not None
    assert alone[4:] == (None, None, None, None, 9)


@pytest.mark.parametrize("n_groups", [10, 20, 37, 50])
def test_what_every_group_leaves_alike_has_variance_0(n_groups: int) -> None:
    """Two rows of either label in a group, above those of all groups before: in each the baseline loses one pair."""
    ordered = np.random.default_rng(1).integers(1, 5, n_groups).tolist()
    between = 4 * n_groups * (n_groups - 1) // 2

    def side(ordered: list[int]) -> LeftOut:
        u, cell = between + sum(ordered), 2 * n_groups
        left = [2 * (u - own - 4 * (n_groups - 1)) for own in ordered]
        return LeftOut(cell, cell, 2 * u, [cell - 2] * n_groups, [cell - 2] * n_groups, left)

    found = jackknife_aucs(side(ordered), side([own - 1 for own in ordered]))
    assert found.auc_variance
    assert found.baseline_variance
    assert found.difference_variance == 0.0
    weighed = weigh(Paired.of(found, ((None, None), (None, None)), is_gap=False), 0.95)
    assert weighed == (pytest.approx(1 / (4 * n_groups), abs=1e-15), None, None, None, True)


def test_two_nights_are_paired_by_the_groups_of_their_ids() -> None:
    """Half of the ids are in both nights, some with another label, all with other scores."""
    rng = np.random.default_rng(7)
    g, group = 12, rng.integers(0, 12, 150)
    ids = np.arange(100), np.arange(50, 150)
    label = rng.random(150) < 0.4
    labels = label, label ^ (rng.random(150) < 0.05)
    score = rng.normal(label, 1)
    scores = np.round(score, 1), np.round(score + rng.normal(0, 0.3, 150), 1)

    def cells(night: int, but: int) -> tuple[np.ndarray, np.ndarray]:
        own = ids[night][group[ids[night]] != but]
        return scores[night][own[~labels[night][own]]], scores[night][own[labels[night][own]]]

    nights = [
        without_groups(*cells(night, -1), (group[own[~labels[night][own]]], group[own[labels[night][own]]]), g)
        for night, own in enumerate(ids)
    ]
    found = jackknife_aucs(*nights)
    aucs = [auc_by_pairs(*cells(night, -1)) for night in range(2)]
    assert found[2:4] == pytest.approx(aucs, abs=1e-12)
    assert found[:2] == tuple(min(sizes) for sizes in zip(*(night[:2] for night in nights), strict=True))
    left = np.array([[auc_by_pairs(*cells(night, but)) for night in range(2)] for but in range(g)])
    for variance, sign in ((found.difference_variance, -1), (found.sum_variance, 1)):
        replicates = left[:, 0] + sign * left[:, 1]
        assert variance == pytest.approx((g - 1) / g * ((replicates - replicates.mean()) ** 2).sum(), abs=1e-12)
    assert found.difference_variance is not None
    assert found.auc_variance is not None
    assert found.baseline_variance is not None
    assert found.difference_variance < 0.9 * (found.auc_variance + found.baseline_variance)


def test_nights_that_are_alike_row_by_row_differ_by_nothing_with_variance_0() -> None:
    (low, _), (high, _) = draw(8, 60, 50)
    night = without_groups(low, high, (np.arange(60) % 12, np.arange(50) % 12), 12)
    found = jackknife_aucs(night, night)
    assert found.difference_variance == 0.0
    paired = Paired.of(found, ((None, None), (None, None)), is_gap=False)
    assert weigh_margin(paired, "max_drop", 0.1) == (1.0, pytest.approx(0.9**50, abs=1e-15))


def test_of_other_ids_the_variances_add_up() -> None:
    """But for what a hundred groups leave open, a seventh of the variance."""
    rng, ratios = np.random.default_rng(2), []
    for _ in range(60):
        cells = [(rng.normal(size=300), rng.normal(1, 1, 200)) for _ in range(2)]
        groups = [tuple(rng.integers(0, 100, len(cell)) for cell in own) for own in cells]
        found = jackknife_aucs(*(without_groups(*own, (g[0], g[1]), 100) for own, g in zip(cells, groups, strict=True)))
        assert found.difference_variance is not None
        ratios.append(found.difference_variance / sum(delong_variance(*own) for own in cells))
    assert np.mean(ratios) == pytest.approx(1, abs=3 * np.sqrt(2 / 99 / 60))
    assert np.std(ratios) == pytest.approx(np.sqrt(2 / 99), rel=0.4)


def test_nights_in_other_groups_are_not_paired() -> None:
    (low, _), (high, _) = draw(8, 60, 50)
    nights = (without_groups(low, high, (np.arange(60) % g, np.arange(50) % g), g) for g in (7, 8))
    found = jackknife_aucs(*nights)
    assert (found.auc, found.difference_variance) == (found.baseline_auc, None)


@pytest.mark.parametrize(("of_high", "n_groups"), [(4, 20), (5, 20), (25, 25)])
def test_groups_are_counted_in_both_cells_and_must_be_five_in_either(of_high: int, n_groups: int) -> None:
    low, high = draw(6, 60, 50)
    found = leave_out(low, high, (np.arange(60) % 20, np.arange(50) % of_high), 30)
    assert found.n_groups == n_groups
    assert (found.difference_variance is None) == (of_high < 5)
    none = leave_out(low, high[:, :0], (np.arange(60) % 20, np.arange(0)), 30)
    assert (none.auc, none.difference_variance, none.n_groups) == (None, None, 20)


# ---- verdicts


def metric(value: float | None, baseline: float | None, variances: tuple[float | None, ...] = (1e-4, 3e-4)) -> Paired:
    return Paired(
        n_low=50,
        n_high=10,
        value=value,
        baseline_value=baseline,
        difference_variance=variances[0],
        sum_variance=variances[1],
    )


def gap(value: float, baseline: float, half: float, variances: tuple[float, ...] = (1e-4, 3e-4)) -> Paired:
    both = tuple((own - half, own + half) for own in (value, baseline))
    return Paired(**{**metric(value, baseline, variances).__dict__, "gaps": both})


def test_an_auc_by_the_normal_distribution() -> None:
    found = weigh(metric(0.83, 0.8), 0.95)
    assert found[:4] == pytest.approx((0.03, 0.03 - Z * 0.01, 0.03 + Z * 0.01, 2 * norm.sf(3)), abs=1e-12)


@pytest.mark.parametrize("n_groups", [10, 31, 1000])
def test_of_few_groups_student_judges(n_groups: int) -> None:
    """By as many degrees of freedom as there are groups less one; and so of a margin."""
    paired = replace(metric(0.83, 0.8), n_groups=n_groups)
    found, law = weigh(paired, 0.95), stats.t(n_groups - 1)
    half = 0.01 * law.ppf(0.975)
    assert found[:4] == pytest.approx((0.03, 0.03 - half, 0.03 + half, 2 * law.sf(3)), abs=1e-11)
    assert weigh_margin(paired, "max_rise", 0.01) == pytest.approx((law.sf(2), law.cdf(2)), abs=1e-11)
    of_gaps = weigh(replace(gap(0.2, 0.02, 0.06), n_groups=n_groups), 0.9)
    sum_sd, quantile = sqrt(3e-4), law.ppf(0.95)
    assert of_gaps[1:3] == pytest.approx((0.18 - quantile * 0.01, 0.22 + quantile * sum_sd), abs=1e-11)
    assert of_gaps.p_value == pytest.approx(max(2 * law.sf(18), 2 * law.sf(0.22 / sum_sd)), rel=1e-9)


def test_a_gap_whose_signs_are_known() -> None:
    for s, t in product((1, -1), (1, -1)):
        sd = sqrt(1e-4 if s == t else 3e-4)
        found = weigh(gap(s * 0.2, t * 0.15, 0.05), 0.95)
        assert found[:4] == pytest.approx((0.05, 0.05 - Z * sd, 0.05 + Z * sd, 2 * norm.sf(0.05 / sd)), abs=1e-12)


def test_a_gap_whose_sign_is_not_known() -> None:
    found = weigh(gap(0.2, 0.02, 0.06), 0.95)
    sd, sum_sd = 0.01, sqrt(3e-4)
    low, high = 0.18 - Z * sd, 0.22 + Z * sum_sd
    p_value = max(2 * norm.sf(0.18 / sd), 2 * norm.sf(0.22 / sum_sd))
    assert found[:4] == pytest.approx((0.18, low, high, p_value), abs=1e-12)


def test_gaps_that_may_both_be_0_say_nothing() -> None:
    found = weigh(gap(0.02, -0.02, 0.05, (1e-6, 3e-4)), 0.95)
    assert (found.difference, found.p_value, found.one_way) == (0.0, 1.0, False)
    assert found.low == pytest.approx(-0.04 - Z * 1e-3)
    assert found.high == pytest.approx(0.04 + Z * 1e-3)
    seen = weigh(gap(0.03, -0.02, 0.05, (1e-6, 1e-6)), 0.95)
    assert seen.p_value is not None
    assert seen.p_value < 1e-9
    assert judge_differences([seen], [True])[0][1] == "no_evidence"


def test_intervals_stay_in_the_range_of_the_difference() -> None:
    unknown = replace(gap(0.4, 0.0, 0.1, (1.0, 1.0)), gaps=((None, None), (None, None)))
    assert weigh(unknown, 0.95)[1:3] == (-0.5, 0.5)
    assert weigh(metric(0.9, 0.1, (1.0, 1.0)), 0.95)[1:3] == (-1.0, 1.0)


@pytest.mark.parametrize(("value", "baseline"), [(0.4, 0.0), (-0.1, 0.3), (0.05, -0.2), (0.02, 0.01)])
def test_the_difference_of_gaps_is_no_more_than_their_own_intervals_allow(value: float, baseline: float) -> None:
    """By trying all sizes of both gaps that their intervals have in them."""
    paired = gap(value, baseline, 0.06, (1.0, 1.0))
    assert paired.gaps is not None
    sizes = [np.abs(np.linspace(low or 0, high or 0, 1001)) for low, high in paired.gaps]
    either = [np.r_[0, one.max()] for one in sizes]  # whatever the other is
    found = weigh(paired, 0.95)
    assert found[1:3] == pytest.approx((-either[1].max(), either[0].max()), abs=1e-12)
    differences = np.subtract.outer(*sizes)
    assert found.low is not None
    assert found.high is not None
    assert found.low <= differences.min() <= differences.max() <= found.high
    assert found.low <= found.difference <= found.high  # type: ignore[operator]  # both gaps are known


@pytest.mark.parametrize(
    "paired",
    [
        metric(None, None, (None, None)),
        metric(0.9, 0.8, (None, None)),
        metric(0.8, 0.8, (None, None)),
        metric(0.9, 0.8, (0.0, 0.1)),
        gap(0.2, 0.1, 0.05, (0.0, 1.0)),
        Paired(**{**metric(0.9, 0.8).__dict__, "n_high": 9}),
        Paired(**{**metric(0.8, 0.8, (0.0, 0.1)).__dict__, "n_low": 9}),
        replace(metric(0.9, 0.8), n_groups=9),
        replace(metric(0.8, 0.8, (0.0, 0.1)), n_groups=9),
    ],
)
def test_insufficient_data(paired: Paired) -> None:
    found = weigh(paired, 0.95)
    assert found[1:4] == (None, None, None)
    assert weigh_margin(paired, "max_drop", 0.02) is None
    assert judge_differences([found], [False]) == [(None, "insufficient_data")]


@pytest.mark.parametrize(
    "paired", [metric(0.8, 0.8, (0.0, 0.1)), gap(0.1, 0.1, 0.3, (0.0, 0.1)), gap(0.1, 0.7 - 0.8, 0.05, (0.1, 0.0))]
)
def test_models_that_score_alike_differ_by_nothing(paired: Paired) -> None:
    found = weigh(paired, 0.95)
    assert found[:4] == pytest.approx((0, 0, 0, 1), abs=1e-12)
    assert judge_differences([found], [False]) == [(1.0, "no_evidence")]


def test_verdicts_are_of_adjusted_p_values_and_gaps_are_the_better_the_less() -> None:
    p_values = (0.01, 0.02, 0.2, None, 0.02)
    signs = (1, -1, 1, 1, -1)
    evidence = [WeighedDifference(0.1 * sign, p_value=p) for sign, p in zip(signs, p_values, strict=True)]
    found = judge_differences(evidence, [False, False, True, False, True])
    assert [verdict for _, verdict in found] == ["better", "worse", "no_evidence", "insufficient_data", "better"]
    assert [p for p, _ in found] == pytest.approx([0.08 / 3, 0.08 / 3, 0.2, None, 0.08 / 3])
    assert [verdict for _, verdict in judge_differences(evidence, [True] * 5)][:2] == ["worse", "better"]
