"""How strong the evidence is that a metric keeps to a bound, or breaks it: p-values both ways. numpy only.

Each p-value is the inverse of the interval that stands beside the value (``biasspark.metrics.intervals``): with the
method that the row names, the interval at level 1 - 2p ends at the bound. With A the AUC, V its variance by DeLong and
θ a bound, the bound lies z standard errors below A:

``logit_delong``
    z(θ) = (logit A - logit θ)·A(1 - A) / sqrt(V).
``newcombe``
    z(θ) = (A - θ) / sqrt(V(θ)), a score test: Hanley and McNeil's variance at the bound, not at the value.

At least θ: compliance has p = Φ(-z), the chance of such an A or a higher one where the true AUC is θ; violation has
Φ(z). At most θ: the other way round. A gap is an AUC less 1/2, and so is its bound. Rates and their gaps have a z of
their own, below, and all that follows holds of them as well.

**Within ±b.** A gap g keeps to it if it is below b *and* above -b. Compliance must reject both opposites, so its
p-value is the larger of the two (intersection-union, no adjustment). Violation must reject that g lies anywhere within;
of those, ±b make a gap as far out as the one seen most likely, and there it comes out so on either side: p = Φ(z(b)) +
Φ(z(-b)) for |g| (union-intersection). The second term counts only where b is small; at b = 0 it is the two-sided test.

**Changes.** Runs are taken as independent, so the variances of a difference add, on the plain scale, where the bound
is. But of an AUC near 1, or of one without a misordered pair, the variance at the value says little of how low the true
AUC may be; its interval does. So each variance is recovered from the end of the interval that faces the bound (Zou and
Donner, Statistics in Medicine 2008, 27:1693). Let the change keep to its bound by D: the bound lies z standard errors
away if the lower end of now and the upper end of before, both at z, are at distances r and r' with r² + r'² = D².
Violation takes the other two ends. The ends of the size of a gap are those of the gap, no further in than 0; where that
of before is 0, the rise is as large as the gap now. But a gap that seems small to one side may be large to the other:
few rows of a subgroup, none of them counted, leave more room above the background than below. So compliance holds for
either sign of the gap now, and violation for either of that before; its p-value is the larger.

**Runs that share rows.** The variance of A - B is V_A + V_B - 2·C, where each row that both runs have adds to C the
product of its two placements, each as it departs from its mean (DeLong, DeLong and Clarke-Pearson). High scores stay
high, so C is above 0, and adding the variances finds less than there is; but where a gap changed its sign, the sum is
too small by 2·C. Runs that keep what is left of U without each group of ids are paired by these
(``biasspark.comparison.differences``), and a rule with a ``baseline`` is judged on pairs.

In 1,500 simulated runs of each of 32 settings (normal scores, AUCs of 0.6 to 0.97, 10 to 200 rows per cell) a change of
just the bound seems to break it at 0.05 in 5.5 % of them at the most, and to keep it in 5.5 %; with the variances at
the values it would be 5.9 and 13.9 %. Of gaps it is 5.1 and 5.6 %.

**A rate** is the share p = x/n of n rows of which x are counted. Wilson's interval
(`biasspark.metrics.proportions`) at z has every θ with |p - θ| <= z·sqrt(θ(1 - θ)/n), the standard error being that of
θ. As z grows from 0, it comes to end at θ when both sides are equal, so that θ lies

    z(θ) = (p - θ) / sqrt(θ(1 - θ)/n)

standard errors below p: the inverse of the interval is the score test. At θ = 0 and 1 no row is counted, or every one.
A single row that is otherwise disproves it, so that such a bound is infinitely far from every rate but itself. A rate
over no rows has no value.

Counts leap, so a rate of just θ seems to be above it at 0.05 with a chance of up to 7.5 % where nθ is ten or more, 12 %
where it is one, 20 % where it is a fifth; and below it with up to 7.5 %.

**A gap** is p - q, of the share p in a subgroup and q in its background, or in two runs. Newcombe's interval of it
grows with z, so a bound is as many standard errors away as make the interval end there; that z takes the place of an
AUC's above.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, log, nan
from typing import Protocol, Self, TypeVar

import numpy as np

from biasspark.arrays import Flags, Floats, apply
from biasspark.distributions import normal_tail
from biasspark.metrics.proportions import Share

_HIGHER_THAN_ANY = 2.0
_STEPS = 70
"""Steps at most in which a point of a circle is located, down to neighboring doubles."""
_FEW = 256
"""So many points take less time if each step cuts the arc where one may be into eight parts and not into two."""


class Estimates(Protocol):
    """Estimates, one per entry, with what their intervals come of; NaN where there is none."""

    @property
    def value(self) -> Floats:
        """An AUC or a rate, or 1/2 more than a gap."""

    @property
    def complement(self) -> Self:
        """1 - value: the bounds of the one are 1 less those of the other."""

    @property
    def absolute(self) -> Self:
        """The lesser of value and 1 - value, which is 1/2 - |gap|: the further from 1/2, the worse."""

    def standard_errors(self, theta: Floats | float) -> Floats:
        """Return how many standard errors each lies above θ; infinite where none can be beyond θ, NaN without one."""


E = TypeVar("E", bound=Estimates)


@dataclass(frozen=True)
class Aucs:
    """AUCs with what their intervals come of, one per entry; NaN where there is none.

    The values are U/(mn), with variances by DeLong, NaN where a cell has fewer than two rows, and the sizes of both
    cells. An interval is ``logit_delong`` or else ``newcombe``, or there is none where the variance is NaN.
    """

    value: Floats
    variance: Floats
    n_low: Floats
    n_high: Floats
    by_logit: Flags

    @property
    def complement(self) -> Aucs:
        """1 - A, of the same variance."""
        return replace(self, value=1 - self.value)

    @property
    def absolute(self) -> Aucs:
        """The lesser of A and 1 - A."""
        return replace(self, value=np.minimum(self.value, 1 - self.value))

    def standard_errors(self, theta: Floats | float) -> Floats:
        """Return how many standard errors each AUC lies above θ; infinite where no AUC can be beyond θ."""
        a, at = np.broadcast_arrays(self.value, np.asarray(theta, float))
        with np.errstate(all="ignore"):
            log_odds, log_odds_at = (apply(_log, value / (1 - value)) for value in (a, at))
            by_logit = (log_odds - log_odds_at) * a * (1 - a) / np.sqrt(self.variance)
            mean_rows = (self.n_low + self.n_high) / 2 - 1
            spread = 1 + mean_rows * (1 - at) / (2 - at) + mean_rows * at / (1 + at)
            by_score = (a - at) / np.sqrt(at * (1 - at) * spread / (self.n_low * self.n_high))
        z = np.where(self.by_logit, by_logit, by_score)
        return within_range(np.where(np.isnan(self.variance), np.nan, a), at, z)


def within_range(value: Floats, theta: Floats, z: Floats) -> Floats:
    """Return z where θ is in (0, 1), infinity where nothing can be beyond it; 0 at the value, NaN without one."""
    z = np.where((theta > 0) & (theta < 1), z, np.copysign(np.inf, value - theta))
    return np.where(np.isnan(value), np.nan, np.where(value == theta, 0.0, z))


def compare_with_bound(estimates: Estimates, bound_kind: str, bound: float) -> tuple[Floats, Floats]:
    """Return the p-values of violation and of compliance, in [0, 1]; low is strong evidence, NaN without an interval.

    The kind is ``min``, ``max`` or ``max_abs``, the distance from 1/2. Of a gap, estimates, and the bounds of ``min``
    and ``max``, are 1/2 more.
    """
    if bound_kind == "max_abs":
        z, z_opposite = (estimates.absolute.standard_errors(0.5 + sign * bound) for sign in (-1, 1))
        return np.minimum(apply(normal_tail, -z) + apply(normal_tail, -z_opposite), 1.0), apply(
            normal_tail, np.minimum(z, -z_opposite)
        )
    z = estimates.standard_errors(bound) if bound_kind == "min" else estimates.complement.standard_errors(1 - bound)
    return apply(normal_tail, -z), apply(normal_tail, z)


def compare_with_baseline(
    now: E, before: E, bound_kind: str, bound: float, *, is_size_change: bool = False
) -> tuple[Floats, Floats]:
    """Return the p-values of violation and of compliance of a change, as of `compare_with_bound`.

    The bound, 0 or more, is how far a value may fall (``max_drop``) or rise (``max_rise``), or the size of a gap,
    whatever its sign.
    """
    if is_size_change:
        return _compare_sizes(now.absolute, before.absolute, bound)
    if bound_kind == "max_rise":
        now, before = now.complement, before.complement
    z = errors_of_difference(now, before, now.value - before.value + bound)
    return apply(normal_tail, -z), apply(normal_tail, z)


def _compare_sizes(now: E, before: E, bound: float) -> tuple[Floats, Floats]:
    """Return the p-values of a rise of the size of gaps, which are given as the lesser of value and 1 - value.

    Each is the larger of two: that of violation with either sign of the gap before, of compliance of the gap now.
    """

    def standard_errors(first: E, second: E, *highest: float) -> Floats:
        return errors_of_difference(first, second, first.value - second.value + bound, highest)

    z = standard_errors(now, before, 0.5, 0.5)
    against = standard_errors(now, before.complement, 0.5, _HIGHER_THAN_ANY)
    in_favor = standard_errors(now.complement, before, _HIGHER_THAN_ANY, 0.5)
    return apply(normal_tail, -np.maximum(z, against)), apply(normal_tail, np.minimum(z, in_favor))


def errors_of_difference(
    first: Estimates, second: Estimates, margin: Floats, highest: Sequence[float] = (1.0, 1.0)
) -> Floats:
    """Return how many standard errors the first less the second, of independent estimates, lies above a bound.

    It is `margin` above. The result is the z at which an end of either, each that far from its value and facing the
    bound, are at distances r and r' with r² + r'² = margin². Both are looked for on that circle, by the tangent t of
    half its angle: sine and cosine are 2t/(1 + t²) and (1 - t²)/(1 + t²), the same bits with every version of numpy.
    Infinite where no interval reaches the bound, NaN where a value is. `highest` is the most that either may be.
    """
    sign, length = np.where(margin < 0, -1.0, 1.0), np.abs(margin)
    highest_first, highest_second = highest

    def z_at(tangent: Floats) -> tuple[Floats, Floats]:
        """Return how many standard errors both ends are away, that of the first less the smaller the tangent."""
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
    z = np.minimum(*z_at(high))
    # Where the second may be as high as can be, its end goes no further, and all that is left is the first's.
    room = highest_second - second.value
    at_most = np.maximum(
        _standard_errors_to(second, room, highest_second), _standard_errors_to(first, room - length, highest_first)
    )
    return sign * np.where((sign > 0) & (length * (1 - low**2) / (1 + low**2) > room), at_most, z)


def _standard_errors_to(estimates: Estimates, step: Floats, highest: float) -> Floats:
    """Return how many standard errors it is to each value plus a step; infinite where an end never gets so high."""
    theta = estimates.value + step
    return np.where(theta > highest, np.inf, np.abs(estimates.standard_errors(theta)))


def _log(value: float) -> float:
    return log(value) if value > 0 else -inf if value == 0 else nan


class Rates(Share):
    """Rates with the counts that they come of, one per entry; NaN where there is none."""

    @property
    def complement(self) -> Rates:
        """1 - value: the rows that are not counted."""
        return Rates(self.among - self.counted, self.among)

    @property
    def absolute(self) -> Rates:
        """The lesser of value and 1 - value."""
        return Rates(np.minimum(self.counted, self.among - self.counted), self.among)

    def standard_errors(self, theta: Floats | float) -> Floats:
        """Return how many standard errors each rate lies above θ, the error being that of θ."""
        p, at = np.broadcast_arrays(self.value, np.asarray(theta, float))
        with np.errstate(all="ignore"):
            z = (p - at) / np.sqrt(at * (1 - at) / self.among)
        return within_range(p, at, z)


@dataclass(frozen=True)
class RateGaps:
    """Gaps of rates that are independent of each other, one per entry."""

    subgroup: Rates
    background: Rates

    @property
    def value(self) -> Floats:
        """The gap + 1/2, as of gaps of AUCs: in [-1/2, 3/2], NaN where a rate is over no rows."""
        return self.subgroup.value - self.background.value + 0.5

    @property
    def complement(self) -> RateGaps:
        """1 - value: subgroup and background exchanged."""
        return RateGaps(self.background, self.subgroup)

    @property
    def absolute(self) -> RateGaps:
        """The lesser of value and 1 - value: where the gap is above 0, subgroup and background exchanged."""
        above = self.value > 0.5
        return RateGaps(
            Rates(*np.where(above, self.background, self.subgroup)),
            Rates(*np.where(above, self.subgroup, self.background)),
        )

    def standard_errors(self, theta: Floats | float) -> Floats:
        """Return how many standard errors each value lies above θ; infinite where no interval reaches θ."""
        return errors_of_difference(self.subgroup, self.background, self.value - theta)
