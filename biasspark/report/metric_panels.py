"""Metrics of identities and models: intervals of the five metrics, and pinned AUC."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from biasspark.columns import SUMMARIZED_AUCS, SUMMARIZED_GAPS
from biasspark.report import panels
from biasspark.report.cells import MINUS, is_weak
from biasspark.report.definitions import SUITE, SUITE_TITLES
from biasspark.report.report_data import Rows

_ALPHAS = {True: 0.4, False: 1.0}
"""The opacity of points that rest on too few rows, and of all others."""

# ---- intervals of every identity


def draw_intervals(
    parts: Mapping[str, tuple[Sequence[str], Rows]], models: Sequence[str], notes: Sequence[str] | None = None
) -> Figure:
    """Draw identities with the intervals of all models, a panel per metric; slices are below each other.

    ``parts`` maps each heading to the names of its lines, from the top, and to their rows of ``bias_metrics``. A figure
    that stands alone, without a page that names the models, has a legend and ``notes`` below.
    """
    sizes = [(max(18, 8 * len(models)) * max(1, len(names)), len(SUITE)) for names, _ in parts.values()]
    labels = [panels.short_name(name) for names, _ in parts.values() for name in names]
    left = 14 + max(map(panels.text_width, labels), default=0)
    is_titled, key = any(parts), 0 if notes is None else panels.key_height(models)
    gap, right = 19.0, 6.0
    width = (panels.WIDTH - left - right - (len(SUITE) - 1) * gap) / len(SUITE)
    room = panels.Room(left=left, right=right, top=key + (64 if is_titled else 46), bottom=26, across=gap, down=88)
    figure, grid = panels.make_grid(sizes, width, room, notes or (), sharey="row")
    drawn = [row for _, rows in parts.values() for row in rows]
    for line, (heading, (names, rows)) in zip(grid, parts.items(), strict=True):
        lines = {name: number for number, name in enumerate(names)}
        for axes, name in zip(line, SUITE, strict=True):
            _draw_panel(axes, name, [row for row in rows if row[name] is not None], lines, models)
        # A stripe behind every other line, from the first panel through the last.
        first, *_, last = (axes.get_position() for axes in line)
        stripe: dict[str, Any] = {"color": panels.LINE, "alpha": 0.35, "linewidth": 0, "zorder": 0, "clip_on": False}
        for y in range(0, len(names), 2):
            line[0].axhspan(y - 0.5, y + 0.5, xmax=(last.x1 - first.x0) / first.width, **stripe)
        _align_scales(line, drawn)
        line[0].set_yticks(range(len(names)), [panels.short_name(name) for name in names], color=panels.INK)
        line[0].set_ylim(len(names) - 0.4, -0.6)
        panels.write_above(line[0], panels.short_name(heading), 44, fontsize=13)
    if notes is not None:
        panels.add_model_key(figure, models)
    return figure


def _draw_panel(axes: Axes, name: str, rows: Rows, lines: Mapping[str, int], models: Sequence[str]) -> None:
    axes.set_title(SUITE_TITLES[name], pad=10)
    axes.axvline(0.0 if name in SUMMARIZED_GAPS else 1.0, color=panels.SOFT, linewidth=1)
    for number, model in enumerate(models):
        shift = (number - (len(models) - 1) / 2) * 0.68 / len(models)
        color, marker = panels.model_style(number)
        points = [(lines[row["identity"]] + shift, row) for row in rows if row["model"] == model]
        for is_pale, alpha in _ALPHAS.items():
            some = [(y, row) for y, row in points if is_weak(row, name) == is_pale]
            bars = [(y, row) for y, row in some if row[f"{name}_low"] is not None]
            # One line with gaps: an element for each interval would be most of the picture.
            ends = [end for _, row in bars for end in (row[f"{name}_low"], row[f"{name}_high"], math.nan)]
            bar_style: dict[str, Any] = {"linewidth": 1.6, "solid_capstyle": "butt"}
            axes.plot(ends, [y for y, _ in bars for _ in range(3)], color=color, alpha=alpha, **bar_style)
            values, ys = [row[name] for _, row in some], [y for y, _ in some]
            axes.plot(values, ys, marker, markersize=4, markeredgewidth=0, color=color, alpha=alpha)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="x", labeltop=True)


def _align_scales(line: Sequence[Axes], rows: Rows) -> None:
    """Give the AUCs one scale, and the gaps one that is symmetric about 0."""
    lowest = min((0.9, *(end for name in SUMMARIZED_AUCS for end in _extents(rows, name))))
    widest = max((0.1, *(abs(end) for name in SUMMARIZED_GAPS for end in _extents(rows, name))))
    for axes, name in zip(line, SUITE, strict=True):
        is_gap = name in SUMMARIZED_GAPS
        low, high = (-widest, widest) if is_gap else (lowest - 0.02, 1.012)
        ticks = MaxNLocator(nbins=4, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
        axes.set_xticks([tick for tick in ticks if low <= tick <= high])
        margin = 1.2 if is_gap else 1.0  # a fifth beyond the widest gap: numbers of two panels do not touch
        axes.set_xlim(margin * low, margin * high)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:z.3g}".replace("-", MINUS))


def _extents(rows: Rows, name: str) -> Iterator[float]:
    """Yield the numbers that a scale must include: all values, and the ends of narrow intervals."""
    for row in rows:
        if row[name] is not None:
            yield row[name]
            yield from () if is_weak(row, name) else (row[f"{name}_low"], row[f"{name}_high"])


# ---- pinned AUC


def draw_pinned(
    rows: Rows,
    names: Sequence[str],
    models: Sequence[str],
    weak: Collection[tuple[str, str]],
    notes: Sequence[str] | None = None,
) -> Figure:
    """Draw rows of ``pinned_auc`` that have a value, one column per identity; the AUC of known rows is dashed.

    The ``weak`` (identity, model) pairs, which rest on too few rows, are pale. For ``notes`` see `draw_intervals`.
    """
    columns = {name: number for number, name in enumerate(names)}
    labels = [panels.short_name(name) for name in names]
    widths = list(map(panels.text_width, labels))
    step = min(120.0, (panels.WIDTH - 60) / len(labels))
    is_slanted = max(widths) > step
    # Slanted labels need room below, and at the left as far as one reaches beyond its column.
    slope = math.radians(60 * is_slanted)
    left = max(50, 8 + max(math.cos(slope) * width - (number + 0.7) * step for number, width in enumerate(widths)))
    top = 30 + (0 if notes is None else panels.key_height(models))
    room = panels.Room(left, right=6, top=top, bottom=22 + math.sin(slope) * max(widths))
    width = max(panels.WIDTH / 2, 60 + step * len(labels))
    figure, [[axes]] = panels.make_grid([(180, 1)], width - left - 6, room, notes or ())
    axes.set_title("Pinned AUC", pad=8)
    for number, model in enumerate(models):
        model_rows = [row for row in rows if row["model"] == model and row["identity"] in columns]
        color, marker = panels.model_style(number)
        known = {columns[row["identity"]]: row["known_auc"] for row in model_rows if row["known_auc"] is not None}
        dashed: dict[str, Any] = {"color": color, "linewidth": 1.2, "dashes": (4, 3)}
        if len(set(known.values())) == 1:
            axes.axhline(next(iter(known.values())), **dashed)
        else:
            ends = [end for column in known for end in (column - 0.5, column + 0.5, math.nan)]
            axes.plot(ends, [auc for value in known.values() for auc in (value, value, math.nan)], **dashed)
        for is_pale, alpha in _ALPHAS.items():
            points = [row for row in model_rows if ((row["identity"], model) in weak) == is_pale]
            across, values = [columns[row["identity"]] for row in points], [row["pinned_auc"] for row in points]
            style: dict[str, Any] = {"color": color, "alpha": alpha, "markersize": 5, "markeredgewidth": 0}
            axes.plot(across, values, marker, **style)
    slant: dict[str, Any] = {"rotation": 60, "ha": "right", "rotation_mode": "anchor"} if is_slanted else {}
    axes.set_xticks(range(len(names)), labels, color=panels.INK, **slant)
    axes.set_xlim(-0.7, len(names) - 0.3)
    axes.xaxis.grid(True)
    axes.set_axisbelow(True)
    if notes is not None:
        panels.add_model_key(figure, models)
    return figure
