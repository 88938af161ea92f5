"""The positions of a subset one by one."""

from __future__ import annotations

import numpy as np

from biasspark.arrays import Ints
from biasspark.ranking.kernels.subsets import Subset, draw_runs


def draw_positions(subset: Subset, start: int, stop: int) -> Ints:
    """Return the positions of a subset in [start, stop), each of which is a run of its own."""
    runs, counts = draw_runs(np.arange(stop - start + 1), subset, start)
    assert (counts == 1).all()
    return start + runs
