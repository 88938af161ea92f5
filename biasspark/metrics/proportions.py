"""Intervals of shares and of their differences: Wilson's and Newcombe's. numpy only."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from biasspark.arrays import Floats, divide


class Share(NamedTuple):
    """Shares of rows: numerators and denominators, as doubles."""

    counted: Floats
    among: Floats

    @property
    def value(self) -> Floats:
        """In [0, 1]; NaN without rows."""
        return divide(self.counted, self.among)


def wilson_interval(share: Share, z: float) -> tuple[Floats, Floats]:
    """Return the ends of Wilson's interval of shares p = x/n; NaN where n is 0.

    It contains every θ with |p - θ| <= z·sqrt(θ(1 - θ)/n), which is between

        (2x + z² ± z·sqrt(z² + 4x(1 - x/n))) / (2n + 2z²)

    (Wilson, JASA 1927, 22:209), within [0, 1].
    """
    counted, among = share
    half = z * np.sqrt(z * z + 4 * counted * (1 - share.value))
    low, high = ((2 * counted + z * z + sign * half) / (2 * among + 2 * z * z) for sign in (-1, 1))
    return np.maximum(low, 0.0), np.minimum(high, 1.0)


def newcombe_difference(p: Share, q: Share, z: float) -> tuple[Floats, Floats]:
    """Return the ends of the interval of p - q of independent shares; NaN if either has no rows.

    Newcombe's hybrid score interval (Statistics in Medicine 1998, 17:873, method 10): with the Wilson intervals (l, u)
    of p and (m, v) of q, p - q - sqrt((p - l)² + (v - q)²) to p - q + sqrt((u - p)² + (q - m)²). It stays within [-1,
    1], and is valid for shares of 0 and 1.
    """
    (p_low, p_high), (q_low, q_high) = wilson_interval(p, z), wilson_interval(q, z)
    difference = p.value - q.value
    return (
        difference - _length(p.value - p_low, q_high - q.value),
        difference + _length(p_high - p.value, q.value - q_low),
    )


def _length(x: Floats, y: Floats) -> Floats:
    """Return sqrt(x² + y²): how far an end of a difference lies from it, given the same of two independent estimates.

    `numpy.hypot` is avoided: its last bits differ between platforms.
    """
    square_root: Floats = np.sqrt(x * x + y * y)
    return square_root
