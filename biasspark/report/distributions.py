"""Score distributions as small pictures, and the curves of equal rates, both from the published histograms.

The pictures are SVG paths written here: with many small ones, a chart library's axes would be most of the page.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from operator import itemgetter

from biasspark.columns import (
    ALL_ROWS,
    BACKGROUND_NEGATIVE,
    BACKGROUND_POSITIVE,
    IDENTITY,
    MODEL,
    SUBGROUP_NEGATIVE,
    SUBGROUP_POSITIVE,
)
from biasspark.report.cells import MINUS
from biasspark.report.facts import NightFacts, Row

MOST_BARS = 25
WIDTH, HEIGHT, GAP = 200, 100, 12
"""Of a picture: how wide it is, how high either half, and what is between them, in whole units of its own."""

Counts = Sequence[int]
Cells = Mapping[str, Counts]
"""By cell the rows in each bin, from the lowest scores to the highest."""


@dataclass(frozen=True)
class Scale:
    """The bins of a model's histograms: where they begin and end, and how many they are."""

    low: float
    high: float
    n_bins: int

    @property
    def ticks(self) -> Sequence[str]:
        """The scores at the left end, in the middle, and at the right end."""
        return [f"{at:.3g}".replace("-", MINUS) for at in (self.low, (self.low + self.high) / 2, self.high)]


@dataclass(frozen=True)
class Picture:
    """The four cells of one identity and model: paths by cell, and the rows in the identity."""

    paths: Mapping[str, str]
    n_subgroup: int
    scale: Scale


@dataclass(frozen=True)
class RateCurve:
    """The share of a subgroup's cell at or above each score against that of the background's cell."""

    background: Sequence[float]
    subgroup: Sequence[float]


def read_histograms(facts: NightFacts) -> tuple[dict[str, Scale], dict[tuple[str, str], Cells]]:
    """Return the scale of each model, and for each (model, identity) the rows of its cells by bin."""
    rows = facts.rows("score_histograms", slice=ALL_ROWS)
    by_model: dict[str, list[Row]] = {}
    for row in rows:
        by_model.setdefault(row[MODEL], []).append(row)
    scales = {model: _find_scale(own) for model, own in by_model.items()}
    found: dict[tuple[str, str], dict[str, list[int]]] = {}
    for row in rows:
        cells = found.setdefault((row[MODEL], row[IDENTITY]), {})
        counts = cells.setdefault(row["cell"], [0] * scales[row[MODEL]].n_bins)
        counts[row["bin"]] += row["n_rows"]
    return scales, dict(found)


def _find_scale(rows: Sequence[Row]) -> Scale:
    """Return the bins of a model: over 0 to 1, or over all its scores, of which the last has the highest."""
    last = max(rows, key=lambda row: row["bin"])
    width = last["bin_high"] - last["bin_low"]
    low = last["bin_low"] - last["bin"] * width
    of_probabilities = abs(low) < width / 2 and last["bin_high"] <= 1 + width / 2
    if of_probabilities and width:
        # Of merged bins the last may be a part of one.
        return Scale(0.0, 1.0, max(math.ceil(1 / width - 1e-9), last["bin"] + 1))
    return Scale(low, last["bin_high"], last["bin"] + 1)


def draw_distribution(cells: Cells, scale: Scale) -> Picture:
    """Draw the background above the subgroup, negatives and positives of each, every cell to its own peak."""
    halves = {BACKGROUND_NEGATIVE: 0, BACKGROUND_POSITIVE: 0, SUBGROUP_NEGATIVE: 1, SUBGROUP_POSITIVE: 1}
    baselines = {cell: (half + 1) * HEIGHT + half * GAP for cell, half in halves.items()}
    paths = {cell: draw_steps(merge_bins(cells.get(cell, ())), baseline) for cell, baseline in baselines.items()}
    return Picture(paths, sum(sum(cells.get(cell, ())) for cell in (SUBGROUP_NEGATIVE, SUBGROUP_POSITIVE)), scale)


def merge_bins(counts: Counts, most: int = MOST_BARS) -> list[int]:
    """Add up neighbouring bins until so many are left at most."""
    together = -(-len(counts) // most) or 1
    return [sum(counts[start : start + together]) for start in range(0, len(counts), together)]


def draw_steps(counts: Counts, baseline: int) -> str:
    """Return the outline of bars on a baseline, the highest as high as a half; empty without rows."""
    peak = max(counts, default=0)
    if not peak:
        return ""
    edges = [round(WIDTH * place / len(counts)) for place in range(1, len(counts) + 1)]
    tops = [round(HEIGHT * count / peak) for count in counts]
    path, at, left = f"M0 {baseline}", 0, 0
    for top, bars in groupby(zip(tops, edges, strict=True), key=itemgetter(0)):
        *_, (_, right) = bars
        path += f"v{at - top}h{right - left}"
        at, left = top, right
    return f"{path}V{baseline}z"


def trace_rates(cells: Cells, background: str, subgroup: str) -> RateCurve | None:
    """Return the curve of two cells over all thresholds at the edges of bins, None where either has no rows."""
    rates = [_shares_at_or_above(cells.get(cell, ())) for cell in (background, subgroup)]
    return RateCurve(*rates) if all(rates) else None


def _shares_at_or_above(counts: Counts) -> list[float]:
    total = sum(counts)
    if not total:
        return []
    return [0.0, *(reached / total for reached in accumulate(reversed(counts)))]
