"""Two one-sided tests of a metric against a bound, one for violation and one for compliance. numpy only.

A low p-value of *violation* is evidence against the hypothesis that the bound holds. A low p-value of *compliance* is
evidence against the hypothesis that it is violated. Both may be high: then the data do not decide. No p-value here is
corrected for the number of tests; ``biasspark.gate.alerts`` does that.

Each test inverts the published interval (``biasspark.metrics.intervals``): with the method that the row names, the
two-sided interval at level 1 - 2p ends at the bound. With A the AUC, V its variance by DeLong and θ the bound, this
bound lies z standard errors below A:

``logit_delong``
    z(θ) = (logit A - logit θ)·A(1 - A) / sqrt(V).
``newcombe``
    z(θ) = (A - θ) / sqrt(V(θ)), a score test: Hanley and McNeil's variance at the bound, not at the value.

**At least θ.** Compliance has p = Φ(-z), the probability of A or a higher value if the true AUC is θ. Violation has
p = Φ(z), that of A or a lower value. **At most θ** exchanges the two. A gap is an AUC less 1/2, and so is its bound.
Rates and their gaps have their own z, given below; all else applies to them as well.

**Within ±b.** A gap g complies if it is below b *and* above -b. Compliance must reject both g >= b and g <= -b, so its
p-value is the larger of the two, without adjustment (an intersection-union test). Violation must reject every g within
±b. Among these, an observed size of |g| or more, of either sign, is most probable at b and -b, where its probability is
p = Φ(-z(b)) + Φ(-z(-b)), with |g| as the value (a union-intersection test). The second term matters only if b is
small. At b = 0 this is the two-sided test.

**Changes.** Runs are treated as independent, so the variance of a difference is the sum of both variances, on the plain
scale, that of the bound. But for an AUC near 1, or without a misordered pair, the variance at the value says little
about how low the true AUC may be; its interval does. So each variance is recovered from the end of the interval that
faces the bound (Zou and Donner, Statistics in Medicine 2008, 27:1693). Let D be the distance from the change to its
bound, positive if the change is within it. Then the bound lies z standard errors away if the lower end of the current
value and the upper end of the earlier one, both at z, are at distances r and r' with r² + r'² = D². If the change is
beyond its bound, z is negative, and the other two ends count.

The ends of the size of a gap are those of the gap, clipped at 0. If the earlier size may be 0, the rise may be as
large as the current gap. But a gap that seems small with one sign may be large with the other: if a subgroup has few
rows, and none of them is counted, there is more room above the background than below. So compliance must be shown for
both signs of the current gap, and violation for both signs of the earlier one: the p-value is the larger of two.

**Runs that share rows.** The variance of A - B is V_A + V_B - 2·C, where each row that both runs share adds to C the
product of its two centered placements (DeLong, DeLong and Clarke-Pearson). High scores stay high, so C is positive, and
treating the runs as independent is conservative; but if a gap changed its sign, the variance is too small by 2·C.
``biasspark.comparison.differences`` tests paired runs and models.

In 1,500 simulated runs of each of 32 settings (normal scores, AUCs of 0.6 to 0.97, 10 to 200 rows per cell), a true
change of exactly the bound is called a violation at 0.05 in at most 5.5% of the runs, and compliance in 5.5%; with
the variances at the values it would be 5.9 and 13.9%. For gaps it is 5.1 and 5.6%.

**A rate** is the share p = x/n of n rows of which x are counted. Wilson's interval ends at θ where θ lies

    z(θ) = (p - θ) / sqrt(θ(1 - θ)/n)

standard errors below p: the inverse of the interval is the score test. A true rate of 0 or 1 allows no exception, so
such a bound is infinitely far from any other rate. A rate over no rows has no value.

Counts are discrete, so a true rate of θ is called lower at 0.05 with a probability of up to 7.5%, and higher with more
if nθ is small (docs/gate.md).

**A gap of rates** is p - q, with the share p in a subgroup and q in its background. Newcombe's interval grows with z,
so the distance of a bound in standard errors is the z at which the interval ends there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, log, nan

import numpy as np

from biasspark.arrays import Flags, Floats, apply
from biasspark.distributions import normal_tail
from biasspark.metrics.intervals import Share

_HIGHER_THAN_ANY = 2.0
_STEPS = 70
"""The most steps to locate a point on a circle, down to adjacent doubles."""
_FEW = 256
"""Up to this number of points, cutting the arc into eight parts per step is faster than cutting it into two."""


@dataclass(frozen=True)
class Aucs:
    """AUCs with the data for their intervals, one per entry; NaN if missing.

    The values are U/(mn), the variances are DeLong's, NaN if a cell has fewer than two rows, and ``n_low`` and
    ``n_high`` are the sizes of both cells. Intervals are by ``logit_delong`` or else ``newcombe``. There is none if the
    variance is NaN.

    All estimates have ``value``, an AUC, a rate, or a gap + 1/2; ``complement``, whose bounds are 1 less those of the
    value; and ``standard_errors``. Gaps also have ``absolute``, which is 1/2 - |gap|: the lower, the worse.
    """

    value: Floats
    variance: Floats
    n_low: Floats
    n_high: Floats
    by_logit: Flags

    @property
    def complement(self) -> Aucs:
        """1 - A, with the same variance."""
        return replace(self, value=1 - self.value)

    @property
    def absolute(self) -> Aucs:
        """The smaller of A and 1 - A."""
        return replace(self, value=np.minimum(self.value, 1 - self.value))

    def standard_errors(self, theta: Floats | float) -> Floats:
        """Return how many standard errors each AUC lies above θ; infinite if no AUC can be beyond θ."""
        a, at = np.broadcast_arrays(self.value, np.asarray(theta, float))
        with np.errstate(all="ignore"):
            log_odds, log_odds_at = (apply(_log, value / (1 - value)) for value in (a, at))
            by_logit = (log_odds - log_odds_at) * a * (1 - a) / np.sqrt(self.variance)
            mean_rows = (self.n_low + self.n_high) / 2 - 1
            spread = 1 + mean_rows * (1 - at) / (2 - at) + mean_rows * at / (1 + at)
            by_score = (a - at) / np.sqrt(at * (1 - at) * spread / (self.n_low * self.n_high))
        z = np.where(self.by_logit, by_logit, by_score)
        return within_range(np.where(np.isnan(self.variance), np.nan, a), at, z)


class Rates(Share):
    """Rates with their counts, one per entry; NaN if missing."""

    @property
    def complement(self) -> Rates:
        """1 - value: the rows that are not counted."""
        return Rates(self.among - self.counted, self.among)

    def standard_errors(self, theta: Floats | float) -> Floats:
        """Return how many standard errors each rate lies above θ, with the standard error at θ."""
        p, at = np.broadcast_arrays(self.value, np.asarray(theta, float))
        with np.errstate(all="ignore"):
            z = (p - at) / np.sqrt(at * (1 - at) / self.among)
        return within_range(p, at, z)


@dataclass(frozen=True)
class RateGaps:
    """Gaps between the rates of disjoint groups of rows, one per entry."""

    subgroup: Rates
    background: Rates

    @property
    def value(self) -> Floats:
        """The gap + 1/2, as for gaps of scores: in [-1/2, 3/2], NaN if a rate is over no rows."""
        return self.subgroup.value - self.background.value + 0.5

    @property
    def complement(self) -> RateGaps:
        """1 - value: subgroup and background exchanged."""
        return RateGaps(self.background, self.subgroup)

    @property
    def absolute(self) -> RateGaps:
        """The smaller of value and 1 - value: subgroup and background exchanged for gaps above 0."""
        above = self.value > 0.5
        return RateGaps(
            Rates(*np.where(above, self.background, self.subgroup)),
            Rates(*np.where(above, self.subgroup, self.background)),
        )

    def standard_errors(self, theta: Floats | float) -> Floats:
        """Return how many standard errors each value lies above θ; infinite if no interval reaches θ."""
        return errors_of_difference(self.subgroup, self.background, self.value - theta)


Estimates = Aucs | Rates | RateGaps
"""Estimates, one per entry, with the data for their intervals; NaN if missing."""


def within_range(value: Floats, theta: Floats, z: Floats) -> Floats:
    """Return z if θ is in (0, 1), else infinity, as nothing can be beyond θ; 0 at the value, NaN without a value."""
    z = np.where((theta > 0) & (theta < 1), z, np.copysign(np.inf, value - theta))
    return np.where(np.isnan(value), np.nan, np.where(value == theta, 0.0, z))


def compare_with_bound(estimates: Estimates, bound_kind: str, bound: float) -> tuple[Floats, Floats]:
    """Return the p-values of violation and of compliance, in [0, 1]; low is strong evidence, NaN without an interval.

    The kind is ``min``, ``max`` or ``max_abs``, a bound on the distance from 1/2. For a gap, the estimates and the
    bounds of ``min`` and ``max`` are gap + 1/2.
    """
    if bound_kind == "max_abs":
        assert not isinstance(estimates, Rates)  # which are no gaps
        z, z_opposite = (estimates.absolute.standard_errors(0.5 + sign * bound) for sign in (-1, 1))
        violation = np.minimum(apply(normal_tail, -z) + apply(normal_tail, -z_opposite), 1.0)
        return violation, apply(normal_tail, np.minimum(z, -z_opposite))
    z = estimates.standard_errors(bound) if bound_kind == "min" else estimates.complement.standard_errors(1 - bound)
    return apply(normal_tail, -z), apply(normal_tail, z)


def compare_with_baseline(
    now: Estimates, before: Estimates, bound_kind: str, bound: float, *, is_size_change: bool = False
) -> tuple[Floats, Floats]:
    """Return the p-values of violation and of compliance of a change, like `compare_with_bound`.

    The bound, 0 or more, is the most by which a value may fall (``max_drop``) or rise (``max_rise``). For a change of
    size, it is the most by which a gap may move away from 0, whatever its sign.
    """

    def standard_errors(first: Estimates, second: Estimates, *highest: float) -> Floats:
        return errors_of_difference(first, second, first.value - second.value + bound, highest or (1.0, 1.0))

    if not is_size_change:
        if bound_kind == "max_rise":
            now, before = now.complement, before.complement
        z = standard_errors(now, before)
        return apply(normal_tail, -z), apply(normal_tail, z)
    assert not isinstance(now, Rates)  # which are no gaps
    assert not isinstance(before, Rates)
    now, before = now.absolute, before.absolute
    # Each p-value is the larger of two: of violation over signs of the earlier gap, of compliance of the current one.
    z = standard_errors(now, before, 0.5, 0.5)
    against = standard_errors(now, before.complement, 0.5, _HIGHER_THAN_ANY)
    in_favor = standard_errors(now.complement, before, _HIGHER_THAN_ANY, 0.5)
    return apply(normal_tail, -np.maximum(z, against)), apply(normal_tail, np.minimum(z, in_favor))


def errors_of_difference(
    first: Estimates, second: Estimates, margin: Floats, highest: Sequence[float] = (1.0, 1.0)
) -> Floats:
    """Return how many standard errors the difference of two independent estimates lies above a bound.

    `margin` is the distance from the bound. The result is the z at which the ends of both intervals that face the bound
    are at distances r and r' with r² + r'² = margin². They are located on that circle by the tangent t of half the
    angle: sine and cosine are 2t/(1 + t²) and (1 - t²)/(1 + t²), the same bits with every version of numpy. The result
    is infinite if no interval reaches the bound, NaN if a value is NaN. `highest` is the largest possible value of each
    estimate.
    """
    sign, length = np.where(margin < 0, -1.0, 1.0), np.abs(margin)
    highest_first, highest_second = highest

    def z_at(tangent: Floats) -> tuple[Floats, Floats]:
        """Return the distances of both ends in standard errors. The first decreases with the tangent."""
        sine, cosine = 2 * tangent / (1 + tangent**2), (1 - tangent**2) / (1 + tangent**2)
        return (
            _standard_errors_to(first, -sign * length * sine, highest_first),
            _standard_errors_to(second, sign * length * cosine, highest_second),
        )

    low, high = np.zeros_like(length), np.ones_like(length)
    n_parts = 8 if length.size <= _FEW else 2
    parts = np.arange(1, n_parts).reshape(-1, *[1] * length.ndim) / n_parts
    for _ in range(_STEPS):
        inner = low + (high - low) * parts
        if not ((low < inner) & (inner < high)).any():
            break
        z_first, z_second = z_at(inner)
        low = np.where(z_first >= z_second, low, inner).max(axis=0)
        high = np.where(z_first >= z_second, inner, high).min(axis=0)
    z_first, z_second = z_at(high)
    # At the end of the arc the second is at distance 0, since it cannot move: the first covers the whole margin.
    z = np.where(high < 1, np.minimum(z_first, z_second), np.maximum(z_first, z_second))
    # If the second reaches its highest possible value, the first covers the rest of the margin.
    room = highest_second - second.value
    at_most = np.maximum(
        _standard_errors_to(second, room, highest_second), _standard_errors_to(first, room - length, highest_first)
    )
    highest_reached = second.value + length * ((1 - low**2) / (1 + low**2))  # rounded as in z_at
    return sign * np.where((sign > 0) & (highest_reached > highest_second), at_most, z)


def _standard_errors_to(estimates: Estimates, step: Floats, highest: float) -> Floats:
    """Return the distance to each value plus a step in standard errors; infinite beyond the highest value."""
    theta = estimates.value + step
    return np.where(theta > highest, np.inf, np.abs(estimates.standard_errors(theta)))


def _log(value: float) -> float:
    return log(value) if value > 0 else -inf if value == 0 else nan
