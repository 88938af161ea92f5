"""Score distributions: histograms of the four cells, and an identity's rates against those of its background."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate, chain, groupby, pairwise
from operator import itemgetter
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from biasspark.columns import ALL_ROWS, NEGATIVE, POSITIVE, SUMMARIZED_GAPS
from biasspark.report import panels
from biasspark.report.cells import DASH, MINUS, Row, TableCell, drop_zeros, metric_cell, show_labels, show_number
from biasspark.report.report_data import Rows, group_rows

MAX_BARS = 25
WIDTH, HEIGHT, GAP = 200, 100, 12
"""The width of a chart, the height of each half, and the gap between the halves, in units of the viewBox."""

Bins = Sequence[int]
Cells = Mapping[str, Bins]
"""The rows in each bin by cell, from the lowest scores to the highest."""
RateCurve = Sequence[Sequence[float]]
"""The shares of a background cell and of a subgroup cell at or above each bin edge, from the highest edge down."""


class Scale(NamedTuple):
    """The bins of the histograms of a model: the lowest and highest edge, and the number of bins."""

    low: float
    high: float
    n_bins: int

    @property
    def ticks(self) -> Sequence[str]:
        """The scores at the left end, in the middle, and at the right end."""
        return [f"{score:.3g}".replace("-", MINUS) for score in (self.low, self.middle, self.high)]

    @property
    def middle(self) -> float:
        """The score halfway between both ends, whose sum may pass the largest double."""
        return self.low / 2 + self.high / 2


class PanelKey(NamedTuple):
    """The subject of one of several small charts."""

    slice: str
    identity: str
    model: str


def read_histograms(rows: Rows) -> tuple[dict[str, Scale], dict[PanelKey, Cells]]:
    """Return the scale of each model, and the rows by bin of each (slice, identity, model)."""
    scales = {model: _scale(model_rows) for (model,), model_rows in group_rows(rows, "model").items()}
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
    half = last["bin_high"] / 2 - last["bin_low"] / 2  # of a width that may pass the largest double
    low = 2 * (last["bin_low"] / 2 - last["bin"] * half)
    # The last of the bins that `merge_bins` merged may extend beyond 1, by less than 0.01.
    if abs(low) < 1e-6 * half and last["bin_high"] < 1.01:
        return Scale(0.0, 1.0, max(math.ceil(1 / (2 * half) - 1e-9), last["bin"] + 1))
    margin = 0.0 if half else 0.5  # around scores that are all equal
    return Scale(low - margin, last["bin_high"] + margin, last["bin"] + 1)


def trace_rates(cells: Cells, label: str) -> RateCurve | None:
    """Return the curve of the rows of a label over thresholds at all bin edges; None if either side has no rows."""
    rates = []
    for counts in (cells.get(f"{side}_{label}", ()) for side in ("background", "subgroup")):
        total = sum(counts)
        if not total:
            return None
        rates.append([0.0, *(n / total for n in accumulate(reversed(counts)))])
    return rates


# ---- small charts as SVG paths: with many of them, the axes of a chart library would be most of the page


def draw_cell(cells: Cells, side: str, label: str) -> str:
    """Return the outline of a cell, scaled to its peak, the background in the upper half; empty without rows."""
    counts, baseline = cells.get(f"{side}_{label}", ()), HEIGHT if side == "background" else 2 * HEIGHT + GAP
    bars = sum_bins(counts)
    peak = max(bars, default=0)
    if not peak:
        return ""
    edges = [round(WIDTH * edge) for edge in bar_edges(len(counts))[1:]]
    tops = [round(HEIGHT * count / peak) for count in bars]
    path, height, left = f"M0 {baseline}", 0, 0
    for top, ends in groupby(zip(tops, edges, strict=True), key=itemgetter(0)):
        *_, (_, right) = ends
        path += f"v{height - top}h{right - left}"
        height, left = top, right
    return f"{path}V{baseline}z"


def sum_bins(counts: Bins, n: int = MAX_BARS) -> list[int]:
    """Merge adjacent bins until at most n are left."""
    step = -(-len(counts) // n) or 1
    return [sum(counts[start : start + step]) for start in range(0, len(counts), step)]


def bar_edges(n_bins: int, n: int = MAX_BARS) -> list[float]:
    """Return the edges of the bars of `sum_bins`, from 0 to 1. The last bar may be narrower."""
    return [start / n_bins for start in (*range(0, n_bins, -(-n_bins // n)), n_bins)]


# ---- figures

MOST_BARS = 50
_NO_SCALE = Scale(0.0, 1.0, 1)
"""The scale of a model without any scores to draw."""

_CURVES = tuple(zip(SUMMARIZED_GAPS, ("FPR", "TPR"), (NEGATIVE, POSITIVE), strict=True))

Lines = Sequence[Sequence[PanelKey]]


def arrange(slices: Sequence[str], identities: Sequence[str], models: Sequence[str], n_columns: int) -> Lines:
    """Return lines of panels: slices below each other, identities and their models side by side, as many as fit.

    With one identity and one model, slices are side by side.
    """
    if len(identities) * len(models) == 1:
        keys = [PanelKey(name, identities[0], models[0]) for name in slices]
        return [keys[start : start + n_columns] for start in range(0, len(keys), n_columns)]
    step = max(1, n_columns // len(models))
    blocks = [identities[start : start + step] for start in range(0, len(identities), step)]
    return [
        [PanelKey(name, identity, model) for identity in block for model in models]
        for block in blocks
        for name in slices
    ]


def draw_histograms(
    lines: Lines,
    models: Sequence[str],
    scales: Mapping[str, Scale],
    cells_of: Mapping[PanelKey, Cells],
    notes: Sequence[str],
) -> Figure:
    """Draw the background above the identity, negatives and positives of each, every area scaled to its own peak."""
    width, heading = 236.0, _heading_room(models)
    room = panels.Room(left=82, right=14, top=36 + heading, bottom=40, across=24, down=56 + heading)
    figure, grid = panels.make_grid([(130, len(keys)) for keys in lines], width, room, notes)
    for line, keys in zip(grid, lines, strict=True):
        for axes, key in zip(line, keys, strict=True):
            _draw_histogram(axes, cells_of.get(key, {}), scales.get(key.model, _NO_SCALE))
        _write_headings(line, keys, models, width, lines)
        line[0].set_yticks([0.5, 1.6], ["identity", "background"])
    patches = [Patch(color=color, alpha=0.45, label=f"{label}s") for label, color in panels.LABEL_COLORS.items()]
    figure.legend(handles=patches, loc="upper left", ncols=2, frameon=False, fontsize=10, borderaxespad=0.2)
    return figure


def _draw_histogram(axes: Axes, cells: Cells, scale: Scale) -> None:
    for label, color in panels.LABEL_COLORS.items():
        for side, base in (("subgroup", 0.0), ("background", 1.1)):
            bins = cells.get(f"{side}_{label}", ())
            bars = sum_bins(bins, MOST_BARS)
            if any(bars):
                edges = [scale.low + (scale.high - scale.low) * edge for edge in bar_edges(len(bins), MOST_BARS)]
                tops = [base + count / max(bars) for count in bars]
                axes.stairs(tops, edges, baseline=base, fill=True, color=color, alpha=0.38, linewidth=0)
                axes.stairs(tops, edges, baseline=base, color=color, linewidth=1)
    axes.axhline(1.1, color=panels.LINE, linewidth=1)
    axes.set(xlim=(scale.low, scale.high), ylim=(0, 2.15), yticks=[])
    axes.spines["left"].set_visible(False)
    axes.set_xticks([scale.low, scale.middle, scale.high], scale.ticks)
    n = {label: sum(cells.get(f"subgroup_{label}", ())) for label in panels.LABEL_COLORS}
    text = show_labels(n[POSITIVE], n[NEGATIVE])
    panels.write_above(axes, text, -20, top=False, fontsize=9, color=panels.SOFT, va="top")


def draw_curves(
    lines: Lines,
    models: Sequence[str],
    cells_of: Mapping[PanelKey, Cells],
    suite: Mapping[PanelKey, Row],
    notes: Sequence[str] = (),
) -> Figure:
    """Draw the rates of an identity against those of its background over all thresholds, negatives above positives.

    The area between a curve and the diagonal is the gap. It is written into the panel with its interval, or as the area
    of the curve where ``suite`` lacks it.
    """
    width, heading = 113.0, _heading_room(models)
    room = panels.Room(left=50, right=8, top=14 + heading, bottom=26, across=22, down=36)
    # The third line is for the headings of the next two.
    sizes = [size for keys in lines for size in ((137.0, len(keys)), (137.0, len(keys)), (heading - 20.0, 0))]
    figure, grid = panels.make_grid(sizes[:-1], width, room, notes)
    for number, keys in enumerate(lines):
        pair = grid[3 * number : 3 * number + 2]
        for line, (metric, rate, label) in zip(pair, _CURVES, strict=True):
            for axes, key in zip(line, keys, strict=True):
                curve = trace_rates(cells_of.get(key, {}), label)
                row = suite.get(key)
                gap = metric_cell(row, metric) if row else _area_cell(curve)
                _draw_curve(axes, curve, gap, panels.model_style(models.index(key.model))[0])
            line[0].set_ylabel(f"{rate} of the identity", labelpad=2)
            line[0].set_xlabel("of background", labelpad=-8)
        _write_headings(pair[0], keys, models, width, lines)
    return figure


def _area_cell(curve: RateCurve | None) -> TableCell:
    """Return the area between a binned curve and the diagonal, as a cell without an interval."""
    if curve is None:
        return TableCell(text=DASH)
    steps = zip(*map(pairwise, curve), strict=True)
    area = sum((x1 - x0) * (y1 + y0) / 2 for (x0, x1), (y0, y1) in steps) - 0.5
    return TableCell(text=f"≈ {show_number(area, 2, signed=True)}", value=area)


def _draw_curve(axes: Axes, curve: RateCurve | None, gap: TableCell, color: str) -> None:
    axes.plot([0, 1], [0, 1], color=panels.SOFT, linewidth=1, dashes=(3, 3))
    if curve is not None:
        across, up = curve
        axes.fill_between(across, across, up, color=color, alpha=0.22, linewidth=0)
        axes.plot(across, up, color=color, linewidth=1.8)
    below = gap.value is not None and gap.value < 0
    x, y, side = (0.05, 0.93, "left") if below else (0.96, 0.18, "right")
    axes.text(x, y, f"{'◦ ' if gap.weak else ''}{gap.text}", ha=side, fontsize=12)
    axes.text(x, y - 0.12, drop_zeros(gap.interval), ha=side, fontsize=9, color=panels.SOFT)
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.set_xticks([0, 1], ["0", "1"])
    axes.set_yticks([0, 1], ["0", "1"])


def _heading_room(models: Sequence[str]) -> float:
    return 22.0 if len(models) == 1 else 36.0


def _write_headings(
    line: Sequence[Axes], keys: Sequence[PanelKey], models: Sequence[str], width: float, lines: Lines
) -> None:
    """Write above panels the identity and, if there are slices, the slice, once where they repeat, and the model."""
    has_slices = any(key.slice != ALL_ROWS for key in chain(*lines))
    for axes, key, before in zip(line, keys, [None, *keys], strict=False):
        if len(models) > 1:
            color, _ = panels.model_style(models.index(key.model))
            panels.write_above(axes, panels.short_name(key.model, int(width / panels.LETTER)), 8, color=color)
        if before is None or before[:2] != key[:2]:
            n_alike = sum(panel[:2] == key[:2] for panel in keys)
            letters = min(2 * panels.NAME_WIDTH, int(width * n_alike / panels.LETTER))
            after = f", {panels.short_name(key.slice, letters // 2)}" if has_slices else ""
            text = panels.short_name(key.identity, letters - len(after)) + after
            panels.write_above(axes, text, _heading_room(models) - 14, fontsize=12)
