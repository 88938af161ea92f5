"""Evidence on gaps of rates: against the intervals that it inverts, an oracle of its own, and against chance."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from biasspark.metrics.evidence import compare_with_baseline, compare_with_bound
from biasspark.metrics.rate_gaps import RateGaps
from tests.oracle.further import newcombe_gap

Counts = tuple[int, int, int, int]  # counted, among, and of the background


def gaps_of(rows: Sequence[Counts]) -> RateGaps:
    return RateGaps(*(np.array(column, float) for column in zip(*rows, strict=True)))


@st.composite
def counts(draw: st.DrawFn) -> Counts:
    n, m = draw(st.integers(1, 500)), draw(st.integers(1, 5000))
    return draw(st.integers(0, n)), n, draw(st.integers(0, m)), m


BOUNDS = st.integers(-40, 40).map(lambda number: number / 100)


def gap(row: Counts) -> float:
    return row[0] / row[1] - row[2] / row[3]


@given(counts(), BOUNDS)
def test_the_interval_at_the_level_of_the_p_value_ends_at_the_bound(row: Counts, bound: float) -> None:
    (violation,), (compliance,) = compare_with_bound(gaps_of([row]), "min", 0.5 + bound)
    assert violation + compliance == pytest.approx(1, abs=1e-12)
    p_value = min(violation, compliance)
    if not 1e-9 < p_value < 0.5 - 1e-9:
        return
    ends = newcombe_gap(row[:2], row[2:], level=1 - 2 * p_value)
    facing = ends[0] if gap(row) > bound else ends[1]
    assert facing == pytest.approx(bound, abs=1e-6)
    assert (compliance < violation) == (gap(row) > bound)


@given(counts(), BOUNDS)
def test_a_most_is_a_least_of_subgroup_and_background_exchanged(row: Counts, bound: float) -> None:
    most = compare_with_bound(gaps_of([row]), "max", 0.5 + bound)
    least = compare_with_bound(gaps_of([(*row[2:], *row[:2])]), "min", 0.5 - bound)
    np.testing.assert_allclose(most, least, atol=1e-12)


@given(counts(), st.integers(1, 40).map(lambda number: number / 100))
def test_the_size_of_a_gap_does_not_know_its_sign(row: Counts, bound: float) -> None:
    one, other = (compare_with_bound(gaps_of([own]), "max_abs", bound) for own in (row, (*row[2:], *row[:2])))
    (violation, compliance), beyond = one, abs(gap(row)) > bound
    assert compliance == pytest.approx(other[1], abs=1e-12)
    assert (compliance if beyond else violation)[0] >= 0.5 - 1e-9
    if gap(row):  # with 0 on either side nothing speaks of a violation
        assert violation == pytest.approx(other[0], abs=1e-12)


def test_a_rate_over_no_rows_is_no_evidence() -> None:
    found = compare_with_bound(gaps_of([(0, 0, 3, 9), (1, 2, 0, 0)]), "max_abs", 0.1)
    assert np.isnan(found).all()


def test_bounds_that_no_interval_reaches_are_infinitely_far() -> None:
    """The longest interval of 0 of 1 less 0 of 1 reaches from -1 to 1, that of 1/2 less 1/2 not so far."""
    assert gaps_of([(1, 2, 1, 2)]).standard_errors(-0.45).tolist() == [math.inf]


def test_of_many_rows_it_is_the_test_of_two_proportions() -> None:
    """With a million rows each Newcombe's interval is Wald's, to three digits of z."""
    n = 1_000_000
    p, q, bound = 0.30, 0.28, 0.018
    z = (p - q - bound) / math.sqrt(p * (1 - p) / n + q * (1 - q) / n)
    found = gaps_of([(int(p * n), n, int(q * n), n)]).standard_errors(0.5 + bound)
    assert found[0] == pytest.approx(z, rel=1e-3)


@pytest.mark.parametrize(("p", "q"), [(0.08, 0.05), (0.5, 0.4), (0.97, 0.9)])
@pytest.mark.parametrize(("n", "m"), [(40, 2000), (300, 300)])
def test_a_gap_of_just_the_bound_is_seldom_found_to_break_it_or_to_keep_it(p: float, q: float, n: int, m: int) -> None:
    """At 0.05: in 7.5 % of 4,000 draws at the most, where the few counts of a rate of 8 % allow no better."""
    rng = np.random.default_rng(20261122)
    runs = 4000
    drawn = RateGaps(
        *(
            np.asarray(column, float)
            for column in (rng.binomial(n, p, runs), np.full(runs, n), rng.binomial(m, q, runs), np.full(runs, m))
        )
    )
    for kind, bound in (("min", 0.5 + p - q), ("max", 0.5 + p - q), ("max_abs", p - q)):
        violation, compliance = compare_with_bound(drawn, kind, bound)
        assert (violation < 0.05).mean() <= 0.075, kind
        assert (compliance < 0.05).mean() <= 0.075, kind


def test_a_rise_of_just_the_bound_is_seldom_found_to_break_it_or_to_keep_it() -> None:
    rng = np.random.default_rng(20261123)
    runs, n, m = 4000, 200, 3000
    now, before = (
        RateGaps(
            *(
                np.asarray(column, float)
                for column in (
                    rng.binomial(n, rate, runs),
                    np.full(runs, n),
                    rng.binomial(m, 0.1, runs),
                    np.full(runs, m),
                )
            )
        )
        for rate in (0.25, 0.20)
    )
    violation, compliance = compare_with_baseline(now, before, "max_rise", 0.05)
    assert (violation < 0.05).mean() <= 0.065
    assert (compliance < 0.05).mean() <= 0.065
