"""The variance of a segment's mean attribution, against every row's influence from every pair of rows."""

from __future__ import annotations

from itertools import product
from statistics import fmean, pvariance
from typing import NamedTuple

import numpy as np
import pytest

from biasspark.attribution.influence import CellPair, RankedSegment, influence_variance


class Example(NamedTuple):
    score: float
    positive: bool
    inside: bool


def right(positive: Example, negative: Example) -> float:
    """Give 1 for a pair in the right order, one half for a tie."""
    return (positive.score > negative.score) + (positive.score == negative.score) / 2


def share(row: Example, others: list[Example]) -> float:
    """Give half the share of some rows of the other label that a row is rightly ordered with; 0 of none."""
    pairs = [right(row, other) if row.positive else right(other, row) for other in others]
    return fmean(pairs) / 2 if pairs else 0.0


def loop_over_rows(rows: list[Example]) -> float:
    """Add up the squared influence of every row."""
    positives = [row for row in rows if row.positive]
    negatives = [row for row in rows if not row.positive]
    leaf = [row for row in rows if row.inside]
    attributions = {id(row): share(row, negatives if row.positive else positives) for row in rows}
    t = fmean(attributions[id(row)] for row in leaf)
    variance = 0.0
    for own, others in ((positives, negatives), (negatives, positives)):
        compared = [row for row in others if row.inside]
        t_others = fmean(attributions[id(row)] for row in compared) if compared else 0.0
        for row in own:
            influence = (attributions[id(row)] - t) / len(leaf) if row.inside else 0.0
            influence += len(compared) / len(leaf) * (share(row, compared) - t_others) / len(own)
            variance += influence**2
    return variance


def count_pairs(low: list[Example], high: list[Example]) -> CellPair:
    """Count as `u_statistics` does: the placements of both cells' rows, doubled."""
    doubled = [[int(2 * right(above, below)) for above in high] for below in low]
    low_placements = [sum(row) for row in doubled]
    high_placements = [sum(column) for column in zip(*doubled, strict=True)] if low else [0] * len(high)
    squares = [sum(placement**2 for placement in placements) for placements in (low_placements, high_placements)]
    return CellPair(len(low), len(high), sum(low_placements), *squares)


def rank(rows: list[Example]) -> RankedSegment:
    cells = {
        (inside, positive): [row for row in rows if (row.inside, row.positive) == (inside, positive)]
        for inside, positive in product((True, False), repeat=2)
    }
    positives, negatives = cells[True, True] + cells[False, True], cells[True, False] + cells[False, False]
    return RankedSegment(
        subgroup=count_pairs(cells[True, False], cells[True, True]),
        bpsn=count_pairs(cells[True, False], cells[False, True]),
        bnsp=count_pairs(cells[False, False], cells[True, True]),
        negative_square_sum=count_pairs(cells[True, False], positives).low_square_sum,
        positive_square_sum=count_pairs(negatives, cells[True, True]).high_square_sum,
    )


def draw_rows(seed: int, n: int, levels: int, labels_inside: tuple[bool, ...]) -> list[Example]:
    rng = np.random.default_rng(seed)
    rows = [Example(float(rng.integers(levels)), bool(rng.random() < 0.4), False) for _ in range(n)]
    return [row._replace(inside=row.positive in labels_inside and bool(rng.random() < 0.4)) for row in rows]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("levels", [1, 3, 1000])
@pytest.mark.parametrize("labels_inside", [(True, False), (True,), (False,)])
def test_sum_of_squared_influences(seed: int, levels: int, labels_inside: tuple[bool, ...]) -> None:
    rows = draw_rows(seed, 60, levels, labels_inside)
    found = influence_variance(rank(rows))
    assert found is not None
    assert found == pytest.approx(loop_over_rows(rows), rel=1e-12, abs=1e-15)
    assert (found > 1e-6) == (levels > 1)


def test_all_rows_inside() -> None:
    """The mean is then that of all rows, and the AUC's share of it moves with both labels."""
    rows = [row._replace(inside=True) for row in draw_rows(9, 40, 7, (True, False))]
    assert influence_variance(rank(rows)) == pytest.approx(loop_over_rows(rows), rel=1e-12)


def test_undefined_without_a_label_or_with_fewer_than_two_rows() -> None:
    some = [Example(1.0, True, True), Example(2.0, True, True), Example(0.0, False, True), Example(3.0, False, False)]
    assert influence_variance(rank(some)) is not None
    assert influence_variance(rank([row for row in some if row.positive])) is None
    assert influence_variance(rank([row for row in some if not row.positive])) is None
    assert influence_variance(rank([row._replace(inside=False) for row in some])) is None
    assert influence_variance(rank([row._replace(inside=row.score == 1.0) for row in some])) is None


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
        rows = [Example(*row) for row in zip(scores.tolist(), positive.tolist(), inside.tolist(), strict=True)]
        means.append(float(attributions.mean()))
        naive.append(float(attributions.var(ddof=1)) / len(attributions))
        if len(variances) < 100:
            variances.append(influence_variance(rank(rows)) or 0.0)
    assert 0.8 < fmean(variances) / pvariance(means) < 1.2
    assert fmean(naive) / pvariance(means) < 0.8
