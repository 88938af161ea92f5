"""What the state of a night says of itself: the rules it was made by, the values it met, how its scores were cut.

It stands beside the blocks of each model, so that a window is planned by reading headers alone. numpy only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from biasspark.arrays import Floats

FORMAT = 2
"""Of blocks and headers; another one does not merge."""

LOPSIDED = 4
"""A range with more than so many times the rows of the mean range, and scores are cut anew."""

_PARTS = 1024


@dataclass(frozen=True, kw_only=True)
class Header:
    """The state of one model on one night, its blocks left out.

    Attributes
    ----------
    rules
        What must agree for nights to merge: `config.merge_rules`.
    types
        Of the columns whose values are identities, as Spark names them: they decide how values are written and sorted.
    values
        The values of these columns that the night has, in order.
    members
        (low, high, rows) of the crossed pairs that have rows, of all rows read, by the night's numbers.
    n_rows, fullest
        Rows that count for the model, and those of its fullest range.
    extremes
        The least and the greatest score, where there is any.
    quantiles
        Scores that cut a sample of the night into equal parts.
    is_single
        Whether scores are float32.
    ranges, lopsided
        Into how many ranges scores were to be cut when the boundaries were found, and whether one of them had too many
        rows even so, since scores tie.
    """

    rules: Mapping[str, Any]
    types: Mapping[str, str]
    values: Mapping[str, Sequence[str]]
    members: Sequence[Sequence[int]]
    n_rows: int
    fullest: int
    extremes: Sequence[float] | None
    quantiles: Sequence[float]
    is_single: bool
    ranges: int
    lopsided: bool

    def encode(self) -> bytes:
        """Return the header as JSON."""
        return json.dumps(asdict(self), separators=(",", ":"), allow_nan=False).encode()

    @staticmethod
    def decode(data: bytes) -> Header:
        """Return the header that `encode` wrote."""
        return Header(**json.loads(data))

    @property
    def agreement(self) -> dict[str, Any]:
        """The rules, and the types on which they depend."""
        return {**self.rules, "types": self.types}


@dataclass(frozen=True)
class State:
    """What is known of the state of one model on one night before any block is read.

    Attributes
    ----------
    key
        Hash of what must agree to merge: see `name_state`.
    boundaries : float64 array
        Where the ranges of its blocks meet, ascending.
    """

    key: str
    boundaries: Floats
    header: Header


@dataclass(frozen=True)
class Cut:
    """Where the score line of a model is cut.

    Attributes
    ----------
    boundaries : float64 array
        Where its ranges meet, ascending.
    ranges
        Into how many ranges it was to be cut; ties leave fewer.
    lopsided
        Whether a range had too many rows when it was cut; None if it was cut just now.
    """

    boundaries: Floats
    ranges: int
    lopsided: bool | None = None


def is_lopsided(fullest: int, n_rows: int, boundaries: Floats) -> bool:
    """Say whether the fullest range has more than four times the rows of the mean one."""
    return fullest * (len(boundaries) + 1) > LOPSIDED * n_rows


def reuse_cut(state: State, ranges: int) -> Cut | None:
    """Return how an earlier night was cut, or None where its boundaries no longer balance the work.

    They do not where a range has outgrown the others since they were found, or where a night of today would be cut into
    four times as many ranges. A range that had too many rows from the start holds ties, which no boundary parts.

    Parameters
    ----------
    ranges
        Into how many ranges the present night would be cut.
    """
    header, boundaries = state.header, state.boundaries
    outgrown = is_lopsided(header.fullest, header.n_rows, boundaries) and not header.lopsided
    if outgrown or ranges > LOPSIDED * header.ranges:
        return None
    return Cut(boundaries, header.ranges, header.lopsided)


def name_state(header: Header, boundaries: Floats) -> str:
    """Return the state's key: a hash of all that must agree for blocks to merge."""
    agreed = [FORMAT, header.agreement, [edge.hex() for edge in boundaries.tolist()]]
    return hashlib.sha256(json.dumps(agreed, separators=(",", ":")).encode()).hexdigest()


def join_quantiles(headers: Sequence[Header]) -> Floats:
    """Return scores that cut the nights together into 1,024 about equal parts, each night weighing as its rows do."""
    scores = np.concatenate([np.asarray(header.quantiles, np.float64) for header in headers])
    weights = [np.full(len(own), header.n_rows / (len(own) + 1)) for header in headers if (own := header.quantiles)]
    if not len(scores):
        return scores
    order = np.argsort(scores, kind="stable")
    running = np.cumsum(np.concatenate(weights)[order])
    places = np.searchsorted(running, np.arange(1, _PARTS) / _PARTS * running[-1])
    joined: Floats = scores[order][places]
    return joined


def join_extremes(headers: Sequence[Header]) -> tuple[float, float] | None:
    """Return the least and the greatest score of all nights; None where no night has any."""
    found = [header.extremes for header in headers if header.extremes]
    return (min(low for low, _ in found), max(high for _, high in found)) if found else None
