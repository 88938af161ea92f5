"""Arrays of numpy by what they hold."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
BigInts = NDArray[np.object_]
"""Python integers, where 64 bits may not be enough."""
