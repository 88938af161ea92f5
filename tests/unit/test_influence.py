"""The variance of a segment's mean attribution, against every row's influence from every pair of rows."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, pvariance

import numpy as np
import pytest

from biasspark.attribution.influence import influence_variance
from tests.fixtures.ranked_rows import place_segment
from tests.oracle.attribution import Example, variance


def vary(rows: Sequence[Example], inside: Sequence[bool]) -> float | None:
    """The variance, from sums over the placements of the rows inside."""
    return influence_variance(*place_segment(rows, inside))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("levels", [1, 3, 1000])
@pytest.mark.parametrize("labels_inside", [(True, False), (True,), (False,)])
@pytest.mark.parametrize("share", [0.4, 1])
def test_sum_of_squared_influences(seed: int, levels: int, labels_inside: tuple[bool, ...], share: float) -> None:
    """Also of all rows: the mean is then that of all, and the AUC's share of it moves with both labels."""
    rng = np.random.default_rng(seed)
    rows = [Example(float(rng.integers(levels)), bool(rng.random() < 0.4)) for _ in range(60)]
    inside = [row.label in labels_inside and bool(rng.random() < share) for row in rows]
    result = vary(rows, inside)
    assert result is not None
    assert result == pytest.approx(variance(inside, rows), rel=1e-12, abs=1e-15)
    assert (result > 1e-6) == (levels > 1)


def test_it_is_how_the_mean_of_a_segment_varies() -> None:
    """Over 2,000 corpora the mean's own variance; that of rows taken as independent is less than half of it."""
    rng = np.random.default_rng(5)
    means: list[float] = []
    variances: list[float] = []
    naive: list[float] = []
    for _ in range(2000):
        positive = rng.random(60) < 0.3
        inside = (rng.random(60) < 0.5) & ~positive
        scores = rng.normal(positive * 1.0)
        n_above = (scores[positive][:, np.newaxis] > scores[~positive]).mean(axis=0) / 2
        attributions = n_above[inside[~positive]]
        if not positive.any() or len(attributions) < 2:
            continue
        means.append(float(attributions.mean()))
        naive.append(float(attributions.var(ddof=1)) / len(attributions))
        if len(variances) < 100:
            rows = list(map(Example, scores.tolist(), positive.tolist()))
            variances.append(vary(rows, inside.tolist()) or 0.0)
    assert 0.8 < fmean(variances) / pvariance(means) < 1.2
    assert fmean(naive) / pvariance(means) < 0.8
