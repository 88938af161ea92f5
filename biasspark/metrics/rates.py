"""Rates and gaps of two rates, and how far bounds lie from them: by Wilson's interval and Newcombe's. Numpy alone.

**A rate** is the share p = x/n of n rows of which x are counted. Wilson's interval (JASA 1927, 22:209) at z has every
θ with |p - θ| <= z·sqrt(θ(1 - θ)/n), the standard error being that of θ. As z grows from 0, it comes to end at θ when
both sides are equal, so that θ lies

    z(θ) = (p - θ) / sqrt(θ(1 - θ)/n)

standard errors below p: the inverse of the interval is the score test. At θ = 0 and 1 no row is counted, or every one.
A single row that is otherwise disproves it, so that such a bound is infinitely far from every rate but itself. A rate
over no rows has no value.

Counts leap, so the chance that a rate of just θ seems to be above it at 0.05 is not quite that: 7.5 % at the most where
θ allows ten rows or more to be counted, nθ, 12 % where it allows one, 20 % where a fifth of one. That it seems to be
below has 7.5 % at the most.

**A gap** is p - q, of the share p in a subgroup and q in its background, or in two nights. With the Wilson intervals
(l, u) of p and (m, v) of q, each z standard errors wide, Newcombe's interval of the gap is

    p - q - sqrt((p - l)² + (v - q)²)   to   p - q + sqrt((u - p)² + (q - m)²)

(Statistics in Medicine 1998, 17:873, method 10). It grows with z, so a bound is as many standard errors away as make
the interval end there; that z takes the place of an AUC's in `biasspark.metrics.evidence`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from biasspark.arrays import Flags, Floats
from biasspark.metrics.evidence import errors_of_difference


@dataclass(frozen=True)
class Rates:
    """Rates with the counts that they come of, one per entry; NaN where there is none.

    Attributes
    ----------
    counted, among
        How many rows are counted, of how many.
    """

    counted: Floats
    among: Floats

    @cached_property
    def value(self) -> Floats:
        """The rate: in [0, 1], NaN over no rows."""
        with np.errstate(all="ignore"):
            return self.counted / self.among

    @property
    def mirrored(self) -> Rates:
        """1 - value: the rows that are not counted."""
        return Rates(self.among - self.counted, self.among)

    @property
    def folded(self) -> Rates:
        """The lesser of value and 1 - value."""
        return Rates(np.minimum(self.counted, self.among - self.counted), self.among)

    def standard_errors(self, theta: Floats | float) -> Floats:
        """Return how many standard errors each rate lies above θ, the error being that of θ."""
        p = self.value
        at = np.broadcast_to(np.asarray(theta, float), p.shape)
        with np.errstate(all="ignore"):
            z = (p - at) / np.sqrt(at * (1 - at) / self.among)
        z = np.where((at > 0) & (at < 1), z, np.copysign(np.inf, p - at))
        return np.where(np.isnan(p), np.nan, np.where(p == at, 0.0, z))


@dataclass(frozen=True)
class RateGaps:
    """Gaps of rates that are independent of each other, one per entry."""

    subgroup: Rates
    background: Rates

    @cached_property
    def value(self) -> Floats:
        """The gap + 1/2, as of gaps of AUCs: in [-1/2, 3/2], NaN where a rate is over no rows."""
        return self.subgroup.value - self.background.value + 0.5

    @property
    def mirrored(self) -> RateGaps:
        """1 - value: subgroup and background exchanged."""
        return RateGaps(self.background, self.subgroup)

    @property
    def folded(self) -> RateGaps:
        """The lesser of value and 1 - value: where the gap is above 0, subgroup and background exchanged."""
        above = self.value > 0.5
        return RateGaps(_choose(above, self.background, self.subgroup), _choose(above, self.subgroup, self.background))

    def standard_errors(self, theta: Floats | float) -> Floats:
        """Return how many standard errors each value lies above θ; infinite where no interval reaches θ."""
        return errors_of_difference(self.subgroup, self.background, self.value - theta)


def _choose(flags: Flags, one: Rates, other: Rates) -> Rates:
    """Return of each entry the one where its flag is set, else the other."""
    return Rates(np.where(flags, one.counted, other.counted), np.where(flags, one.among, other.among))
