"""Score distributions from the published histograms: small charts as SVG paths, and rate curves.

The paths are written directly: with many small charts, the axes of a chart library would be most of the page.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate, groupby
from operator import itemgetter
from typing import NamedTuple

from biasspark.report.cells import MINUS, Row
from biasspark.report.report_data import Rows, group_rows

MAX_BARS = 25
WIDTH, HEIGHT, GAP = 200, 100, 12
"""The width of a chart, the height of each half, and the gap between the halves, in units of the viewBox."""

Bins = Sequence[int]
Cells = Mapping[str, Bins]
"""The rows in each bin by cell, from the lowest scores to the highest."""


class Scale(NamedTuple):
    """The bins of the histograms of a model: the lowest and highest edge, and the number of bins."""

    low: float
    high: float
    n_bins: int

    @property
    def ticks(self) -> Sequence[str]:
        """The scores at the left end, in the middle, and at the right end."""
        return [f"{score:.3g}".replace("-", MINUS) for score in (self.low, (self.low + self.high) / 2, self.high)]


class PanelKey(NamedTuple):
    """The subject of one of several small charts."""

    slice: str
    identity: str
    model: str


class RateCurve(NamedTuple):
    """The shares of a background cell and of a subgroup cell at or above each bin edge, from the highest edge down."""

    background: Sequence[float]
    subgroup: Sequence[float]


def read_histograms(rows: Rows) -> tuple[dict[str, Scale], dict[PanelKey, Cells]]:
    """Return the scale of each model, and the rows by bin of each (slice, identity, model)."""
    scales = {model: _scale(of_model) for (model,), of_model in group_rows(rows, "model").items()}
    histograms: dict[PanelKey, dict[str, list[int]]] = {}
    for row in rows:
        cells = histograms.setdefault(PanelKey(row["slice"], row["identity"], row["model"]), {})
        cells.setdefault(row["cell"], [0] * scales[row["model"]].n_bins)[row["bin"]] += row["n_rows"]
    return scales, dict(histograms)


def by_panel(metrics: Rows) -> dict[PanelKey, Row]:
    """Return rows of ``bias_metrics`` by (slice, identity, model)."""
    return {PanelKey(row["slice"], row["identity"], row["model"]): row for row in metrics}


def _scale(rows: Rows) -> Scale:
    """Return the bins of a model, which span 0 to 1, or all its scores, the highest in the last bin."""
    last = max(rows, key=lambda row: row["bin"])
    width = last["bin_high"] - last["bin_low"]
    low = last["bin_low"] - last["bin"] * width
    is_probability = abs(low) < width / 2 and last["bin_high"] <= 1 + width / 2
    if is_probability and width:
        # The last merged bin may extend beyond 1.
        return Scale(0.0, 1.0, max(math.ceil(1 / width - 1e-9), last["bin"] + 1))
    return Scale(low, last["bin_high"], last["bin"] + 1)


def draw_cell(cells: Cells, side: str, label: str) -> str:
    """Return the outline of a cell, scaled to its peak: the background in the upper half, the subgroup in the lower."""
    baseline = HEIGHT if side == "background" else 2 * HEIGHT + GAP
    return draw_steps(sum_bins(cells.get(f"{side}_{label}", ())), baseline)


def sum_bins(counts: Bins, n: int = MAX_BARS) -> list[int]:
    """Merge adjacent bins until at most n are left."""
    step = -(-len(counts) // n) or 1
    return [sum(counts[start : start + step]) for start in range(0, len(counts), step)]


def draw_steps(counts: Bins, baseline: int) -> str:
    """Return the outline of bars on a baseline, the highest filling a half; empty without rows."""
    peak = max(counts, default=0)
    if not peak:
        return ""
    edges = [round(WIDTH * number / len(counts)) for number in range(1, len(counts) + 1)]
    tops = [round(HEIGHT * count / peak) for count in counts]
    path, height, left = f"M0 {baseline}", 0, 0
    for top, bars in groupby(zip(tops, edges, strict=True), key=itemgetter(0)):
        *_, (_, right) = bars
        path += f"v{height - top}h{right - left}"
        height, left = top, right
    return f"{path}V{baseline}z"


def trace_rates(cells: Cells, label: str) -> RateCurve | None:
    """Return the curve of the rows of a label over thresholds at all bin edges; None if either side has no rows."""
    sides = [cells.get(f"{side}_{label}", ()) for side in ("background", "subgroup")]
    if not all(map(sum, sides)):
        return None
    return RateCurve(*([0.0, *(n / sum(counts) for n in accumulate(reversed(counts)))] for counts in sides))
