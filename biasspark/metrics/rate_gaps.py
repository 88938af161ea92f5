"""Gaps of two rates, and how far bounds lie from them: the inverse of Newcombe's interval. Numpy alone.

A gap is p - q, of the share p that is counted in a subgroup and the share q in its background. With the Wilson
intervals (l, u) of p and (m, v) of q, each z standard errors wide, Newcombe's interval of the gap is

    p - q - sqrt((p - l)² + (v - q)²)   to   p - q + sqrt((u - p)² + (q - m)²)

(Statistics in Medicine 1998, 17:873, method 10). It grows with z, so a bound is as many standard errors away as make
the interval end there; that z takes the place of an AUC's in `biasspark.metrics.evidence`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from biasspark.arrays import Flags, Floats

_FURTHEST = 40.0
"""Standard errors beyond which a p-value is 0 to any double."""
_HALVINGS = 60


@dataclass(frozen=True)
class RateGaps:
    """Gaps with the counts that they come of, one an entry; NaN where there is none.

    Attributes
    ----------
    counted, among
        In the subgroup, how many rows are counted, of how many.
    background_counted, background_among
        In the background likewise.
    """

    counted: Floats
    among: Floats
    background_counted: Floats
    background_among: Floats

    @property
    def value(self) -> Floats:
        """The gap + 1/2, as of gaps of AUCs: in [-1/2, 3/2], NaN where a rate is over no rows."""
        with np.errstate(all="ignore"):
            return self.counted / self.among - self.background_counted / self.background_among + 0.5

    @property
    def mirrored(self) -> RateGaps:
        """1 - value: subgroup and background exchanged."""
        return self._exchanged(np.ones(len(self.counted), bool))

    @property
    def folded(self) -> RateGaps:
        """The lesser of value and 1 - value: where the gap is above 0, subgroup and background exchanged."""
        return self._exchanged(self.value > 0.5)

    def standard_errors(self, theta: Floats | float) -> Floats:
        """Return how many standard errors each value lies above θ; infinite where no interval reaches θ."""
        distance = self.value - theta
        below, target = distance > 0, np.abs(distance)
        low, high = np.zeros_like(target), np.full_like(target, _FURTHEST)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            short = self._reach(middle, below) < target
            low, high = np.where(short, middle, low), np.where(short, high, middle)
        z = np.where(self._reach(high, below) < target, np.inf, high)
        return np.where(np.isnan(distance), np.nan, np.where(distance == 0, 0.0, np.copysign(z, distance)))

    def _reach(self, z: Floats, below: Flags) -> Floats:
        """Return how far the interval goes from the gap at z, down where `below`, else up."""
        own_down, own_up = _wilson_arms(self.counted, self.among, z)
        other_down, other_up = _wilson_arms(self.background_counted, self.background_among, z)
        return np.where(below, np.hypot(own_down, other_up), np.hypot(own_up, other_down))

    def _exchanged(self, chosen: Flags) -> RateGaps:
        """Return the gaps, some of them seen from the background."""
        pairs = (self.counted, self.background_counted), (self.among, self.background_among)
        (counted, other_counted), (among, other_among) = (
            (np.where(chosen, other, own), np.where(chosen, own, other)) for own, other in pairs
        )
        return RateGaps(counted, among, other_counted, other_among)


def _wilson_arms(counted: Floats, among: Floats, z: Floats) -> tuple[Floats, Floats]:
    """Return how far Wilson's interval of a share goes down and up, as in `biasspark.metrics.thresholds`."""
    with np.errstate(all="ignore"):
        share = counted / among
        half = z * np.sqrt(z * z + 4 * counted * (1 - share))
        low, high = ((2 * counted + z * z + sign * half) / (2 * among + 2 * z * z) for sign in (-1, 1))
        return share - np.maximum(low, 0.0), np.minimum(high, 1.0) - share
