"""Rates and gaps of two rates, and their distance from bounds by Wilson's and Newcombe's intervals. numpy only.

**A rate** is the share p = x/n of n rows of which x are counted. Wilson's interval
(`biasspark.metrics.proportions`) at z has every θ with |p - θ| <= z·sqrt(θ(1 - θ)/n), the standard error being that of
θ. As z grows from 0, the interval's end reaches θ when both sides are equal, so θ lies

    z(θ) = (p - θ) / sqrt(θ(1 - θ)/n)

standard errors below p: the inverse of the interval is the score test. At θ = 0 no row is counted, at θ = 1 every row.
A single exception disproves such a bound, so it is infinitely far from every other rate. A rate over no rows has no
value.

Counts are discrete, so a rate of exactly θ seems to be above it at 0.05 with a probability of up to 7.5 % if nθ is ten
or more, 12 % if it is one, 20 % if it is a fifth; and below it with up to 7.5 %.

**A gap** is p - q, with the share p in a subgroup and q in its background, or in two runs. Newcombe's interval grows
with z, so the distance of a bound in standard errors is the z at which the interval ends there. That z takes the place
of an AUC's in `biasspark.gate.rule_tests`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from biasspark.arrays import Floats
from biasspark.gate.rule_tests import errors_of_difference, within_range
from biasspark.metrics.proportions import Share


class Rates(Share):
    """Rates with their counts, one per entry; NaN if there is none."""

    @property
    def complement(self) -> Rates:
        """1 - value: the rows that are not counted."""
        return Rates(self.among - self.counted, self.among)

    @property
    def absolute(self) -> Rates:
        """The smaller of value and 1 - value."""
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
        """The smaller of value and 1 - value: for gaps above 0, subgroup and background are exchanged."""
        above = self.value > 0.5
        return RateGaps(
            Rates(*np.where(above, self.background, self.subgroup)),
            Rates(*np.where(above, self.subgroup, self.background)),
        )

    def standard_errors(self, theta: Floats | float) -> Floats:
        """Return how many standard errors each value lies above θ; infinite if no interval reaches θ."""
        return errors_of_difference(self.subgroup, self.background, self.value - theta)
