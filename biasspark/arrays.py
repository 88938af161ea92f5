"""Types of numpy arrays, division without warnings, and elementwise functions of the standard library."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
BigInts = NDArray[np.object_]
"""Python integers, where 64 bits may not be enough."""
Strings = NDArray[np.object_]
"""Python strings, None where there is none."""
Number = TypeVar("Number", float, Floats)


ROUNDING = 1e-15
"""Above the error of a difference of two quotients between 0 and 1."""


def divide(numerator: Floats | Ints, denominator: Floats | Ints) -> Floats:
    """Return the quotients as doubles, NaN where the denominator is 0."""
    quotient: Floats = np.full(np.broadcast_shapes(np.shape(numerator), np.shape(denominator)), np.nan)
    np.divide(numerator, denominator, out=quotient, where=np.asarray(denominator) != 0)
    return quotient


def euclidean_norm(x: Number, y: Number) -> Number:
    """Return sqrt(x² + y²). The last bits of `math.hypot` and `numpy.hypot` differ between platforms."""
    norm: Number = np.sqrt(x * x + y * y)
    return norm


def apply(function: Callable[[float], float], values: Floats) -> Floats:
    """Apply a function of ``math`` to each value: those of numpy differ in the last bits between versions."""
    return np.fromiter(map(function, values.ravel().tolist()), np.float64, values.size).reshape(values.shape)
