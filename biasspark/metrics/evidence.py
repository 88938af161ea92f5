"""How strong the evidence is that a metric keeps to a bound, or breaks it: p-values both ways. Numpy alone.

Each p-value is the inverse of the interval that stands beside the value (``biasspark.metrics.intervals``): with the
method that the row names, the interval at level 1 - 2p ends at the bound. With A the AUC, V its variance by DeLong and
θ a bound, the bound lies z standard errors below A:

``logit_delong``
    z(θ) = (logit A - logit θ)·A(1 - A) / sqrt(V).
``newcombe``
    z(θ) = (A - θ) / sqrt(V(θ)), a score test: Hanley and McNeil's variance at the bound, not at the value.

At least θ: compliance has p = Φ(-z), the chance of such an A or a higher one where the true AUC is θ; violation has
Φ(z). At most θ: the other way round. A gap is an AUC less 1/2, and so is its bound. Rates and their gaps have z of
their own (``biasspark.metrics.rates``), and all that follows holds of them as well.

**Within ±b.** A gap g keeps to it if it is below b *and* above -b. Compliance must reject both opposites, so its
p-value is the larger of the two (intersection-union, no adjustment). Violation must reject that g lies anywhere within;
of those, ±b make a gap as far out as the one seen most likely, and there it comes out so on either side: p = Φ(z(b)) +
Φ(z(-b)) for |g| (union-intersection). The second term counts only where b is small; at b = 0 it is the two-sided test.

**Changes.** Nights are taken as independent, so the variances of a difference add, on the plain scale, where the bound
is. But of an AUC near 1, or of one without a misordered pair, the variance at the value says little of how low the true
AUC may be; its interval does. So each variance is recovered from the end of the interval that faces the bound (Zou and
Donner 2008). Let the change keep to its bound by D: the bound lies z standard errors away if the lower end of now and
the upper end of before, both at z, are at distances r and r' with r² + r'² = D². Violation takes the other two ends.
The ends of the size of a gap are those of the gap, no further in than 0; where that of before is 0, the rise is
as large as the gap now, and its upper end that of now. But a gap that seems to be small to one side may be large to the
other: few rows of a subgroup, of which none is counted, leave more room above the background than below. So compliance
holds for either sign of the gap now, and violation for either of that before; its p-value is the larger.

**Nights that share rows.** The variance of A - B, the AUC now less that of before, is V_A + V_B - 2·C. To C each row
that both nights have adds the product of its two placements, each as it departs from its mean: the covariance S_AB of
DeLong, DeLong and Clarke-Pearson. Where a model, or its successor, scores the same rows again, high scores stay high
and placements with them; then C is above 0, and adding the variances is careful: it finds less than there is. The same
holds of gaps, unless a gap changed its sign: then the sizes move against each other, and the sum is too small by 2·C.
No night has two scores of a row side by side. But nights that keep what is left of U without each group of ids are
paired by these (``biasspark.metrics.comparisons.paired``), and where a corpus has the old score in a column, that is a
model to compare with: a rule with a ``baseline`` is judged on pairs.

In 1,500 runs of each of 32 settings (normal scores, AUCs of 0.6 to 0.97, 10 to 200 rows per cell) a change of just the
bound is found to break it at 0.05 in 5.5 % of them at the most, and to keep it in 5.5 %; with the variances at the
values it would be 5.9 and 13.9 %. Of gaps it is 5.1 and 5.6 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, log, nan
from typing import Protocol, TypeVar

import numpy as np

from biasspark.arrays import Flags, Floats
from biasspark.distributions import normal_tail

_NEXT_TO_0 = 1e-15
_HIGHER_THAN_ANY = 2.0
_HALVINGS = 70
"""Steps at most in which a point of a circle is found; each halves where it may be, down to neighbouring doubles."""


Own = TypeVar("Own", bound="Estimates")


class Estimates(Protocol):
    """Estimates, one per entry, with what their intervals come of; NaN where there is none."""

    @property
    def value(self) -> Floats:
        """An AUC or a rate, or 1/2 more than a gap."""

    @property
    def mirrored(self: Own) -> Own:
        """1 - value: the bounds of the one are 1 less those of the other."""

    @property
    def folded(self: Own) -> Own:
        """The lesser of value and 1 - value, which is 1/2 - |gap|: the further from 1/2, the worse."""

    def standard_errors(self, theta: Floats | float) -> Floats:
        """Return how many standard errors each lies above θ; infinite where none can be beyond θ, NaN without one."""


@dataclass(frozen=True)
class Bounds:
    """What is known of AUCs and their variances that are not known exactly, one per entry.

    Attributes
    ----------
    lowest, highest
        Of the AUC.
    most_variance
        Of the variance.
    in_doubt
        Whether the entry is not known exactly. The others are passed over.
    joined
        Whether the interval may be of either method.
    """

    lowest: Floats
    highest: Floats
    most_variance: Floats
    in_doubt: Flags
    joined: Flags


@dataclass(frozen=True)
class Aucs:
    """AUCs with what their intervals come of, one per entry; NaN where there is none.

    Attributes
    ----------
    auc, variance
        U/(mn), and its variance by DeLong, NaN where a cell has fewer than two rows.
    n_low, n_high
        Sizes of the two cells.
    by_logit
        Whether the interval is ``logit_delong``; otherwise it is ``newcombe``, or none where the variance is NaN.
    """

    auc: Floats
    variance: Floats
    n_low: Floats
    n_high: Floats
    by_logit: Flags

    @property
    def value(self) -> Floats:
        """The AUC."""
        return self.auc

    @property
    def mirrored(self) -> Aucs:
        """1 - A, of the same variance."""
        return replace(self, auc=1 - self.auc)

    @property
    def folded(self) -> Aucs:
        """The lesser of A and 1 - A."""
        return replace(self, auc=np.minimum(self.auc, 1 - self.auc))

    def standard_errors(self, theta: Floats | float) -> Floats:
        """Return how many standard errors each AUC lies above θ; infinite where no AUC can be beyond θ."""
        a = self.auc
        at = np.broadcast_to(np.asarray(theta, float), a.shape)
        with np.errstate(all="ignore"):
            by_logit = (_log(a / (1 - a)) - _log(at / (1 - at))) * a * (1 - a) / np.sqrt(self.variance)
            mean_rows = (self.n_low + self.n_high) / 2 - 1
            spread = 1 + mean_rows * (1 - at) / (2 - at) + mean_rows * at / (1 + at)
            by_score = (a - at) / np.sqrt(at * (1 - at) * spread / (self.n_low * self.n_high))
            inside, beyond = (at > 0) & (at < 1), np.copysign(np.inf, a - at)
            z = np.where(inside, np.where(self.by_logit, by_logit, by_score), beyond)
        return np.where(np.isnan(self.variance), np.nan, np.where(a == at, 0.0, z))


def list_cases(aucs: Aucs, bounds: Bounds) -> list[Aucs]:
    """Return AUCs of which one has as weak an evidence for any claim as the weakest that the bounds allow, or weaker.

    The further an AUC is on the right side of a bound, and the less its variance, the stronger the evidence. So an AUC
    is taken at either end, and where it is nearest to 1/2, where a gap is smallest; on the logit scale one standard
    error is at most h, and by score it does not depend on the variance (``biasspark.metrics.intervals``, in doubt,
    where h is z times that). Of a difference of two nights the reach of both ends is what counts: ends that are further
    in by a and b, and intervals that are no shorter from there on, bring their difference in by a + b at the least.
    """
    if not bounds.in_doubt.any():
        return [aucs]
    low, high, m, n = bounds.lowest, bounds.highest, aucs.n_low, aucs.n_high
    with np.errstate(all="ignore"):
        by_bounds = np.sqrt(bounds.most_variance) / np.minimum(low * (1 - low), high * (1 - high))
        step = np.fmin(by_bounds, np.sqrt(m / (m - 1) + n / (n - 1)) / np.maximum(np.maximum(low, 1 - high), 0.5))
    cases = []
    for end in (low, high, np.clip(0.5, low, high)):
        at = np.where(bounds.in_doubt, np.clip(end, _NEXT_TO_0, 1 - _NEXT_TO_0), aucs.auc)
        weakened = bounds.in_doubt & ~np.isnan(aucs.variance)
        variance = np.where(weakened, (at * (1 - at) * step) ** 2, aucs.variance)
        for by_logit in (True, False):
            method = np.where(bounds.joined, by_logit, aucs.by_logit)
            cases.append(replace(aucs, auc=at, variance=variance, by_logit=method))
    return cases


def weakest(p_values: Sequence[Floats], in_doubt: Flags) -> Floats:
    """Return the largest p-value of any case; 1 where it is in doubt on which side of its bound a value lies."""
    largest: Floats = np.max(p_values, axis=0)
    return np.where(in_doubt & (largest > 0.5), 1.0, largest)


def compare_with_bound(found: Estimates, kind: str, bound: float) -> tuple[Floats, Floats]:
    """Return the p-values of violation and of compliance.

    Parameters
    ----------
    found : Estimates
        AUCs or rates; of gaps, gap + 1/2.
    kind : {"min", "max", "max_abs"}
        How the bound is meant; ``max_abs`` is the distance from 1/2.
    bound : float
        For ``min`` and ``max`` of a gap, its bound + 1/2.

    Returns
    -------
    violation, compliance : float64 arrays
        In [0, 1]; low is strong evidence. NaN where there is no interval.
    """
    if kind == "max_abs":
        z = found.folded.standard_errors(0.5 - bound)
        other_side = found.folded.standard_errors(0.5 + bound)
        return np.minimum(upper_tail(-z) + upper_tail(-other_side), 1.0), upper_tail(np.minimum(z, -other_side))
    z = found.standard_errors(bound) if kind == "min" else found.mirrored.standard_errors(1 - bound)
    return upper_tail(-z), upper_tail(z)


def compare_with_baseline(
    now: Own, before: Own, kind: str, bound: float, *, of_size: bool = False
) -> tuple[Floats, Floats]:
    """Return the p-values of violation and of compliance of a change.

    Parameters
    ----------
    now, before : Estimates
        Of the same metrics in two nights, of the same kind; of gaps, gap + 1/2.
    kind : {"max_drop", "max_rise"}
        How far a value may fall, or rise.
    bound : float
        That far, 0 or more.
    of_size : bool
        Whether it is the size of a gap that may rise, whatever its sign.

    Returns
    -------
    violation, compliance : float64 arrays
        As of `compare_with_bound`.
    """
    if of_size:
        return _compare_sizes(now.folded, before.folded, bound)
    if kind == "max_rise":
        now, before = now.mirrored, before.mirrored
    z = errors_of_difference(now, before, now.value - before.value + bound)
    return upper_tail(-z), upper_tail(z)


def _compare_sizes(now: Own, before: Own, bound: float) -> tuple[Floats, Floats]:
    """Return the p-values of a rise of the size of gaps, which are given folded.

    Each is the larger of two: that of violation with either sign of the gap before, of compliance of the gap now.
    """

    def weigh(one: Own, other: Own, *highest: float) -> Floats:
        return errors_of_difference(one, other, one.value - other.value + bound, highest)

    against = weigh(now, before, 0.5, 0.5), weigh(now, before.mirrored, 0.5, _HIGHER_THAN_ANY)
    in_favour = against[0], weigh(now.mirrored, before, _HIGHER_THAN_ANY, 0.5)
    return upper_tail(-np.maximum(*against)), upper_tail(np.minimum(*in_favour))


def errors_of_difference(
    one: Estimates, other: Estimates, margin: Floats, highest: Sequence[float] = (1.0, 1.0)
) -> Floats:
    """Return how many standard errors a difference of independent estimates lies above a bound.

    Parameters
    ----------
    one, other : Estimates
        The difference is the value of one less that of the other.
    margin : array
        How far it lies above the bound.
    highest : sequence of two floats
        The most that the value of one may be, and that of the other.

    Returns
    -------
    float64 array
        The z at which one's end and the other's, each that far from its value and facing the bound, are at distances r
        and r' with r² + r'² = margin². Both are looked for on that circle, by the tangent t of half its angle: sine and
        cosine are 2t/(1 + t²) and (1 - t²)/(1 + t²), the same bits with every version of numpy. Infinite where no
        interval reaches the bound, NaN where a value is.
    """
    sign, length = np.where(margin < 0, -1.0, 1.0), np.abs(margin)
    highest_one, highest_other = highest

    def z_at(tangent: Floats) -> tuple[Floats, Floats]:
        """Return how many standard errors both ends are away, that of one less the smaller the tangent."""
        sine, cosine = 2 * tangent / (1 + tangent**2), (1 - tangent**2) / (1 + tangent**2)
        return (
            _standard_errors_to(one, -sign * length * sine, highest_one),
            _standard_errors_to(other, sign * length * cosine, highest_other),
        )

    low, high = np.zeros_like(length), np.ones_like(length)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if not ((low < middle) & (middle < high)).any():
            break
        of_one, of_other = z_at(middle)
        high, low = np.where(of_one >= of_other, middle, high), np.where(of_one >= of_other, low, middle)
    z = np.minimum(*z_at(high))
    # Where the other may be as high as can be, its end goes no further, and one has all that is left to itself.
    room = highest_other - other.value
    alone = np.maximum(
        _standard_errors_to(other, room, highest_other), _standard_errors_to(one, room - length, highest_one)
    )
    return sign * np.where((sign > 0) & (length * (1 - low**2) / (1 + low**2) > room), alone, z)


def _standard_errors_to(found: Estimates, step: Floats, highest: float) -> Floats:
    """Return how many standard errors it is to each value plus a step; infinite where an end never gets so high."""
    theta = found.value + step
    return np.where(theta > highest, np.inf, np.abs(found.standard_errors(theta)))


def _log(values: Floats) -> Floats:
    """Return natural logarithms, -inf of 0 and NaN below; numpy's differ in the last bits from version to version."""
    return np.array([log(one) if one > 0 else -inf if one == 0 else nan for one in values.tolist()])


def upper_tail(z: Floats) -> Floats:
    """Return how likely a standard normal variable is above z, right in the tail to the last digits."""
    return np.array([normal_tail(one) for one in z.tolist()])
