"""The sketch of a run: a mergeable summary of the scores of one model. No Spark.

Its *blocks* are the sorted scores of the ranking, see `ranking.kernels.blocks`. Its *header* has the rules of
the run, the values that occur in it, and quantiles of its scores, so a window can be planned from headers alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

import numpy as np

from biasspark.arrays import Floats
from biasspark.config import list_differences
from biasspark.text import show_value

FORMAT = 2
"""The format of blocks and headers; sketches of different formats do not merge."""

MOST_SKEW = 4
"""New boundaries are chosen if a range has more than this many times the rows of the mean range."""

_PARTS = 1024
_STORED_NAMES = {"max_range_rows": "fullest", "skewed": "lopsided"}


@dataclass(frozen=True, kw_only=True)
class SketchHeader:
    """The sketch of one model in one run, without its blocks.

    Attributes
    ----------
    rules
        The settings that must agree for runs to merge: `config.merge_rules`.
    types, values
        For the columns whose values are identities: their Spark types, which decide how values are written and sorted,
        and the values in the run, in order.
    members
        (low, high, rows) of the crossed pairs that have rows, over all rows read, by the run's numbers.
    n_rows, max_range_rows
        The number of rows with a score of the model, and of those in its largest range.
    extremes, quantiles
        The lowest and the highest score, if any, and scores that cut a sample of the run into equal parts.
    is_single
        Whether scores are float32.
    ranges, skewed
        The number of ranges requested when the boundaries were chosen, and whether one had too many rows nevertheless,
        because of ties.
    """

    rules: Mapping[str, Any]
    types: Mapping[str, str]
    values: Mapping[str, Sequence[str]]
    members: Sequence[Sequence[int]]
    n_rows: int
    max_range_rows: int
    extremes: Sequence[float] | None
    quantiles: Sequence[float]
    is_single: bool
    ranges: int
    skewed: bool

    def encode(self) -> bytes:
        """Return the header as JSON, as the table ``score_blocks`` holds it."""
        stored = {_STORED_NAMES.get(name, name): value for name, value in asdict(self).items()}
        return json.dumps(stored, separators=(",", ":"), allow_nan=False).encode()

    @staticmethod
    def decode(data: bytes) -> SketchHeader:
        """Return the header that `encode` wrote."""
        names = {stored: name for name, stored in _STORED_NAMES.items()}
        return SketchHeader(**{names.get(name, name): value for name, value in json.loads(data).items()})

    @property
    def agreement(self) -> dict[str, Any]:
        """The rules, and the types on which they depend."""
        return {**self.rules, "types": self.types}


@dataclass(frozen=True)
class Sketch:
    """The sketch of one model in one run, as known before any block is read.

    Its key is that of `hash_agreement`. Its boundaries, ascending, are those of the ranges of its blocks.
    """

    key: str
    boundaries: Floats
    header: SketchHeader


@dataclass(frozen=True)
class RangeBoundaries:
    """The boundaries of a model's score ranges, ascending, and the number of ranges requested; ties may leave fewer.

    `skewed` is whether a range had too many rows when the boundaries were chosen; None if they are new.
    """

    boundaries: Floats
    ranges: int
    skewed: bool | None = None


def is_skewed(max_range_rows: int, n_rows: int, boundaries: Floats) -> bool:
    """Return whether the largest range has more than four times the rows of the mean one."""
    return max_range_rows * (len(boundaries) + 1) > MOST_SKEW * n_rows


def reuse_boundaries(sketch: Sketch, ranges: int) -> RangeBoundaries | None:
    """Return the boundaries of an earlier run, or None where they no longer balance the work.

    They do not if a range has outgrown the others since they were chosen, or if a run would now be cut into more than
    four times as many `ranges`. A range with too many rows from the start has ties, which no boundary can separate.
    """
    header, boundaries = sketch.header, sketch.boundaries
    outgrown = is_skewed(header.max_range_rows, header.n_rows, boundaries) and not header.skewed
    if outgrown or ranges > MOST_SKEW * header.ranges:
        return None
    return RangeBoundaries(boundaries, header.ranges, header.skewed)


def hash_agreement(header: SketchHeader, boundaries: Floats) -> str:
    """Return the key of a sketch: a hash of all that must agree for blocks to merge."""
    agreed = [FORMAT, header.agreement, [edge.hex() for edge in boundaries.tolist()]]
    return hashlib.sha256(json.dumps(agreed, separators=(",", ":")).encode()).hexdigest()


def merge_quantiles(headers: Sequence[SketchHeader]) -> Floats:
    """Return scores that cut the combined runs into 1,024 nearly equal parts; runs are weighted by their rows."""
    scores = np.concatenate([np.asarray(header.quantiles, np.float64) for header in headers])
    if not len(scores):
        return scores
    sizes = [len(header.quantiles) for header in headers]
    weights = np.repeat([header.n_rows / (size + 1) for header, size in zip(headers, sizes, strict=True)], sizes)
    order = np.argsort(scores, kind="stable")
    running = np.cumsum(weights[order])
    merged: Floats = scores[order][np.searchsorted(running, np.arange(1, _PARTS) / _PARTS * running[-1])]
    return merged


def merge_extremes(headers: Sequence[SketchHeader]) -> tuple[float, float] | None:
    """Return the lowest and the highest score of all runs; None if no run has any."""
    extremes = [header.extremes for header in headers if header.extremes]
    return (min(low for low, _ in extremes), max(high for _, high in extremes)) if extremes else None


Sketches = Mapping[date, Mapping[str, Sketch]]
"""The sketches of each date, in order, by model."""

# ---- which runs of a window do not merge, and why

_FIX = "Only runs with the same measures merge. Measure these dates again: jobs/bias_metrics.py --run-date FIRST..LAST."


def list_disagreements(sketches: Sketches, models: Sequence[str], rules: Mapping[str, Any]) -> list[str]:
    """Return all reasons why runs do not merge with the last one, or do not match the configuration.

    There is at least one run. Models and rules are those of the configuration, the latter as in `config.merge_rules`.
    """
    last = max(sketches)
    faults = [
        f"[models] {model}: not measured on {', '.join(lacking)}. A window needs all its models on every date. Measure "
        "these dates again, or leave the model out."
        for model in models
        if (lacking := [str(day) for day, by_model in sketches.items() if model not in by_model])
    ]
    if any(one.key != hash_agreement(one.header, one.boundaries) for one in sketches[last].values()):
        faults.append(f"state: {last} was written by another version of biasspark, in another format of blocks. {_FIX}")
    measured = next(iter(sketches[last].values())).header.rules
    if differences := list_differences(rules, measured, ("in the configuration", f"on {last}")):
        faults.append(f"configuration: {last} was measured with another one: {'; '.join(differences)}. {_FIX}")
    for model in models:
        of_model = {day: by_model[model] for day, by_model in sketches.items() if model in by_model}
        days_by_key: dict[str, list[date]] = {}
        for day, sketch in of_model.items():
            days_by_key.setdefault(sketch.key, []).append(day)
        days_by_key.pop(of_model[max(of_model)].key if of_model else "", None)
        faults += [_describe(model, days, of_model, max(of_model)) for days in days_by_key.values()]
    return list(dict.fromkeys(faults))


def _describe(model: str, days: Sequence[date], sketches: Mapping[date, Sketch], last: date) -> str:
    """Describe how runs with equal sketches differ from the last one."""
    earlier, latest = sketches[days[-1]], sketches[last]
    names = (f"on {days[-1]}", f"on {last}")
    differences = list_differences(earlier.header.agreement, latest.header.agreement, names)
    if earlier.boundaries.tolist() != latest.boundaries.tolist():
        differences.append(f"the boundaries of {show_value(model)} differ {names[0]} and {names[1]}")
    which = str(days[0]) if len(days) == 1 else f"{len(days)} runs from {days[0]} to {days[-1]}"
    return f"state: {which} and {last} do not merge: {'; '.join(differences) or 'their formats differ'}. {_FIX}"
