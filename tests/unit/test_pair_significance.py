"""What chance draws from the pairs of a sample: its moments and its tails, against all draws and many of them."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from biasspark.attribution.pair_significance import Draws
from biasspark.attribution.pairs import Sample, measure_auc, sort_examples
from tests.oracle.pair_trees import write_out_pairs


def draws_from(sample: Sample) -> Draws:
    found = Draws.of(measure_auc(sample), *(side.scores for side in sample))
    assert found is not None
    return found


def draw_sample(seed: int, sizes: tuple[int, int], shift: float, digits: int = 6) -> Sample:
    rng = np.random.default_rng(seed)
    scores = (rng.normal(mean, 1, n_rows).round(digits) for mean, n_rows in zip((0.0, shift), sizes, strict=True))
    negatives, positives = (sort_examples(of_label, np.empty((0, len(of_label)), np.int64)) for of_label in scores)
    return negatives, positives


def test_moments_are_those_of_all_draws() -> None:
    """Every two of seven negatives with every four of six positives; ties among them."""
    sample, n_drawn = draw_sample(24, (7, 6), 0.5, digits=0), (2, 4)
    draws, labels = draws_from(sample), write_out_pairs(sample)
    a, b = labels.mean(axis=1) - labels.mean(), labels.mean(axis=0) - labels.mean()
    squares, cubes = [], []
    for negatives, positives in product(combinations(range(7), n_drawn[0]), combinations(range(6), n_drawn[1])):
        of_a, of_b = a[list(positives)].mean(), b[list(negatives)].mean()
        off = labels[np.ix_(positives, negatives)].mean() - labels.mean()
        squares.append(off**2)
        # Without what the docstring leaves out.
        cubes.append((of_a + of_b) ** 3 + 6 * of_a * of_b * (off - of_a - of_b))
    variance, third = draws.moments(n_drawn)
    assert draws.auc == pytest.approx(labels.mean(), abs=1e-15)
    assert variance == pytest.approx(np.mean(squares), rel=1e-12)
    assert third == pytest.approx(np.mean(cubes), rel=1e-12)
    assert abs(third) > 1e-4


@pytest.mark.parametrize(("shift", "n_drawn"), [(1.0, (40, 300)), (2.5, (350, 35)), (3.3, (100, 100))])
def test_so_many_draws_are_as_far(shift: float, n_drawn: tuple[int, int]) -> None:
    """Of 4,000, at an AUC of 0.76, 0.96 and 0.99, in the tail that is longer and in the one that is shorter."""
    sample, rng = draw_sample(25, (400, 400), shift), np.random.default_rng(26)
    draws, labels = draws_from(sample), write_out_pairs(sample)
    drawn = [
        labels[np.ix_(rng.permutation(400)[: n_drawn[1]], rng.permutation(400)[: n_drawn[0]])].mean()
        for _ in range(4000)
    ]
    for share in (0.005, 0.025, 0.1):
        for end in np.quantile(drawn, (share, 1 - share)):
            assert draws.p_value(float(end), n_drawn) == pytest.approx(2 * share, rel=0.3, abs=0.008)


def test_what_is_all_that_there_is_differs_from_nothing() -> None:
    sample = draw_sample(27, (50, 40), 1.0)
    draws = draws_from(sample)
    assert draws.p_value(draws.auc, (50, 40)) == 1
    separate = draws_from(draw_sample(27, (50, 40), 50.0))
    assert (separate.auc, separate.p_value(1.0, (30, 30)), separate.p_value(0.5, (30, 30))) == (1, 1, 0)
    few = draw_sample(27, (1, 40), 1.0)
    assert Draws.of(measure_auc(few), *(side.scores for side in few)) is None
