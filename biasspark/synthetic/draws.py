"""Seeded random bits that any executor can draw for its part of a corpus, and what a request for a corpus must keep."""

from __future__ import annotations

import numpy as np


def bit_stream(seed: int, *key: int) -> np.random.Philox:
    """Return the stream of random bits that belongs to a key, independent of the streams of all other keys.

    Parameters
    ----------
    seed
        A whole number from 0.
    key
        Whole numbers from 0 that say what the bits are for, such as the number of a block.

    Notes
    -----
    Take its `random_raw`: the Philox counter's own 64-bit output, which numpy keeps stable over versions and machines.
    """
    return np.random.Philox(np.random.SeedSequence(seed, spawn_key=key))


def find_faults(rows: int, seed: int) -> list[str]:
    """Name what is wrong with a number of rows and a seed."""
    faults = []
    if rows < 1:
        faults.append(f"rows: {rows}. A corpus has at least one row. Ask for 1 or more.")
    if seed < 0:
        faults.append(f"seed: {seed}. A seed is a whole number from 0. Leave out the sign.")
    return faults
