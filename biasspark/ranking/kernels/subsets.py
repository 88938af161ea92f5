"""Simple random subsets of numbered positions, of which every task draws its part independently. numpy only.

A subset of range(total) is drawn by halving: of the k drawn positions of an interval, its left half gets a
hypergeometric number. The random bits of an interval are fixed by the key of the subset and by the interval itself. So
a task that needs some of the positions follows only the intervals that hold them, and all tasks draw parts of the same
subset.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from biasspark.arrays import Ints

FEW = 2048
"""The most positions drawn without halving: halving an interval takes as long as drawing a hundred."""

MAX_HALF = 10**9 - 1
"""The largest half that numpy's hypergeometric generator accepts."""

TRIES = 1 << 14
"""Pairs of binomial numbers drawn at once for larger halves."""


@dataclass(frozen=True)
class Subset:
    """`size` of the positions 0, ..., `total` - 1, 0 <= size <= total < 2^63: each such set is equally likely.

    The key, integers, fixes it. Subsets with different keys are independent.
    """

    total: int
    size: int
    key: tuple[int, ...]


def stable_number(name: str) -> int:
    """Return a number below 2^64 for a name, as a part of a key: the same on all machines."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little")


def draw_runs(running: Ints, subset: Subset, below: int) -> tuple[Ints, Ints]:
    """Draw the part of a subset that lies in consecutive runs of like positions.

    Return the index of a run, ascending, and how many of its positions are drawn; a run may come more than once. Any
    cut of the positions gives parts of the same subset.

    `running` holds the cumulative number of positions before each run, 0 for the first, and last the total; `below` is
    the number of positions before the first run. Time and memory: the positions drawn, where those of an interval
    within one run are one, plus at most some thousands of the rest of the subset. Another numpy release may draw other
    subsets.
    """
    start, stop, longest = below, below + int(running[-1]), int(np.diff(running).max(initial=0))

    def runs_of(positions: Ints) -> Ints:
        return np.searchsorted(running, positions - below, "right") - 1

    bits = _Bits(subset.key)
    drawn: list[tuple[Ints, Ints]] = [(np.empty(0, np.int64), np.empty(0, np.int64))]
    stretches = [(0, subset.total, subset.size)]
    while stretches:
        a, b, size = stretches.pop()
        if size == 0 or b <= start or stop <= a:
            continue
        first, last = runs_of(np.array([a, b - 1])) if start <= a and b <= stop and b - a <= longest else (0, 1)
        if first == last:
            drawn.append((np.array([first]), np.array([size])))
        elif size <= FEW:
            positions = a + np.sort(bits.of(a, b).choice(b - a, size, replace=False, shuffle=False))
            positions = positions[slice(*np.searchsorted(positions, (start, stop)))]
            drawn.append((runs_of(positions), np.ones(len(positions), np.int64)))
        else:
            middle = (a + b) // 2
            left = draw_left(bits.of(a, b), middle - a, b - middle, size)
            stretches += [(middle, b, size - left), (a, middle, left)]
    runs, counts = map(np.concatenate, zip(*drawn, strict=True))
    return runs, counts


class _Bits:
    """Random bits for every interval of a subset: one Philox generator, with another counter start for each."""

    def __init__(self, key: tuple[int, ...]) -> None:
        self._philox = np.random.Philox(0)
        self._generator = np.random.Generator(self._philox)
        self._state = self._philox.state  # the initial state, without buffered bits of earlier draws
        digest = blake2b(" ".join(str(int(part)) for part in key).encode(), digest_size=16).digest()
        self._state["state"]["key"] = np.frombuffer(digest, "<u8").astype(np.uint64)

    def of(self, a: int, b: int) -> np.random.Generator:
        """Return the generator at the beginning of the bits of [a, b); it is the same object each time."""
        self._state["state"]["counter"] = np.array([0, 0, a, b], np.uint64)
        self._philox.state = self._state
        return self._generator


def draw_left(generator: np.random.Generator, n_left: int, n_right: int, size: int) -> int:
    """Draw how many of `size` positions chosen from both halves lie in the left one."""
    if n_right <= MAX_HALF:  # the right half is never the smaller one
        return int(generator.hypergeometric(n_left, n_right, size))
    # If each position were chosen independently, both halves would get binomial numbers of positions; given their sum,
    # the left one is hypergeometric. So pairs are drawn until one has that sum: thousands of tries, whatever the size.
    share = size / (n_left + n_right)
    while True:
        left = generator.binomial(n_left, share, TRIES)
        right = generator.binomial(n_right, share, TRIES)
        hits = np.flatnonzero(left + right == size)
        if len(hits):
            return int(left[hits[0]])
