"""The pictures of every identity, drawn by matplotlib: intervals and pinned AUC; and what all pictures share."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from biasspark.columns import ALL_ROWS, IDENTITY, MODEL, SUMMARISED_AUCS, SUMMARISED_GAPS
from biasspark.config import cut_to_width, measure_width
from biasspark.report.cells import MINUS, is_weak, show_name
from biasspark.report.facts import NightFacts, Row
from biasspark.report.overview import list_worst
from biasspark.report.pinned import tabulate_pinned
from biasspark.report.side_by_side_metrics import COMPARED, SUITE_TITLES
from biasspark.report.svg import INK, LINE, MARKERS, MODELS, SOFT, drawing, write_figure

MOST_IN_CHARTS = 60
WIDEST_NAME = 26
WIDTH, PIXELS = 1116, 72
"""Pixels of a figure across, and of its inch."""

LETTER = 6.6
"""Pixels across of a letter, generously: the reader's browser chooses the font."""

_SLOPE = 60
"""Degrees by which the names of columns rise."""


def model_colour(place: int) -> str:
    """Return the colour of a model by its place among them."""
    return MODELS[place % len(MODELS)]


def model_marker(place: int) -> str:
    """Return the marker of a model by its place among them."""
    return MARKERS[place % len(MARKERS)]


def short_name(name: str, widest: int = WIDEST_NAME) -> str:
    """Write a name as a figure shows it: cut where it is long."""
    return cut_to_width(show_name(name), widest)


def pixels_across(text: str) -> float:
    """Return how wide a text of a figure is at most."""
    return LETTER * measure_width(text)


def choose_identities(facts: NightFacts, most: int) -> list[str]:
    """Return the identities that pictures show: of each model in turn those with the lowest AUC."""
    lists = [[worst.identity for worst in list_worst(facts, model, most)] for model in facts.models()]
    in_turn = [name for names in zip(*lists, strict=False) for name in names]
    return list(dict.fromkeys([*in_turn, *(name for names in lists for name in names)]))[:most]


def draw_intervals(facts: NightFacts) -> Markup:
    """Draw every identity with the intervals of all models, a panel per metric; the lowest AUC is at the top."""
    names = facts.identities()[:MOST_IN_CHARTS]
    places = {name: place for place, name in enumerate(names)}
    rows = [row for row in facts.rows("bias_metrics", slice=ALL_ROWS) if row[IDENTITY] in places]
    height = max(18, 8 * len(facts.models())) * len(names) + 72
    labels = [short_name(name) for name in names]
    left = (14 + max(map(pixels_across, labels), default=0)) / WIDTH
    with drawing("intervals"):
        figure = Figure(figsize=(WIDTH / PIXELS, height / PIXELS))
        panels = figure.subplots(1, len(COMPARED), sharey=True)
        figure.subplots_adjust(left=left, right=0.995, top=1 - 46 / height, bottom=24 / height, wspace=0.14)
        for axes, name in zip(panels, COMPARED, strict=True):
            _draw_panel(axes, name, rows, places, facts.models())
        _draw_stripes(panels, len(names))
        _align_scales(panels, rows)
        panels[0].set_yticks(range(len(names)), labels, color=INK)
        panels[0].set_ylim(len(names) - 0.4, -0.6)
        return write_figure(figure, "Intervals of the five metrics for every identity and model")


def _draw_stripes(panels: Sequence[Axes], n: int) -> None:
    """Draw a stripe behind every other line, from the first panel through the last."""
    first, *_, last = (axes.get_position() for axes in panels)
    style: dict[str, Any] = {"color": LINE, "alpha": 0.35, "linewidth": 0, "zorder": 0, "clip_on": False}
    for place in range(0, n, 2):
        panels[0].axhspan(place - 0.5, place + 0.5, xmax=(last.x1 - first.x0) / first.width, **style)


def _draw_panel(axes: Axes, name: str, rows: Sequence[Row], places: Mapping[str, int], models: Sequence[str]) -> None:
    axes.set_title(SUITE_TITLES[name], pad=10)
    best = 0.0 if name in SUMMARISED_GAPS else 1.0
    axes.axvline(best, color=SOFT, linewidth=1)
    for number, model in enumerate(models):
        shift = (number - (len(models) - 1) / 2) * 0.68 / len(models)
        there = [row for row in rows if row[MODEL] == model and row[name] is not None]
        for weak, alpha in ((True, 0.4), (False, 1)):
            own = [row for row in there if is_weak(row[f"{name}_low"], row[f"{name}_high"]) == weak]
            lines = [(places[row[IDENTITY]] + shift, row) for row in own]
            _draw_lines(axes, name, lines, color=model_colour(number), alpha=alpha, marker=model_marker(number))
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="x", labeltop=True)


def _draw_lines(axes: Axes, name: str, lines: Sequence[tuple[float, Row]], *, marker: str, **style: Any) -> None:
    ends = [(height, row) for height, row in lines if row[f"{name}_low"] is not None]
    # One line with gaps: an element for each interval would be most of the picture.
    across = [end for _, row in ends for end in (row[f"{name}_low"], row[f"{name}_high"], math.nan)]
    axes.plot(across, [height for height, _ in ends for _ in range(3)], linewidth=1.6, solid_capstyle="butt", **style)
    values, heights = [row[name] for _, row in lines], [height for height, _ in lines]
    axes.plot(values, heights, marker, markersize=4, markeredgewidth=0, **style)


def _align_scales(panels: Sequence[Axes], rows: Sequence[Row]) -> None:
    """Give the AUCs one scale, and the gaps one that has 0 in the middle."""
    lowest = min((end for name in SUMMARISED_AUCS for end in _list_ends(rows, name)), default=0.5)
    widest = max((abs(end) for name in SUMMARISED_GAPS for end in _list_ends(rows, name)), default=0.5)
    for axes, name in zip(panels, COMPARED, strict=True):
        axes.set_xlim((-widest - 0.02, widest + 0.02) if name in SUMMARISED_GAPS else (lowest - 0.02, 1.012))
        axes.xaxis.set_major_locator(MaxNLocator(nbins=4, steps=[1, 2, 2.5, 5, 10]))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:z.3g}".replace("-", MINUS))


def _list_ends(rows: Sequence[Row], name: str) -> Iterator[float]:
    """Return what a scale has to reach: all values, and the ends of intervals but for those of too few rows."""
    for row in rows:
        value, low, high = row[name], row[f"{name}_low"], row[f"{name}_high"]
        if value is not None:
            yield from (value,) if is_weak(low, high) else (value, low, high)


def draw_pinned(facts: NightFacts) -> Markup | None:
    """Draw the pinned AUC of every identity, a column per identity as in the slides; None without the table."""
    rows = [row for row in facts.rows("pinned_auc", slice=ALL_ROWS) if row["pinned_auc"] is not None]
    weak = {(row.identity, row.model) for row in tabulate_pinned(facts) if row.cell.weak}
    names = [name for name in facts.identities() if any(row[IDENTITY] == name for row in rows)][:MOST_IN_CHARTS]
    if not names:
        return None
    places = {name: place for place, name in enumerate(names)}
    labels = [short_name(name) for name in names]
    left, below = _leave_room(labels)
    height = 190 + below
    with drawing("pinned"):
        figure = Figure(figsize=(WIDTH / PIXELS, height / PIXELS))
        axes = figure.subplots()
        figure.subplots_adjust(left=left / WIDTH, right=0.995, top=1 - 10 / height, bottom=below / height)
        for number, model in enumerate(facts.models()):
            own = [row for row in rows if row[MODEL] == model and row[IDENTITY] in places]
            colour = model_colour(number)
            if own:
                axes.axhline(own[0]["overall_auc"], color=colour, linewidth=1.2, dashes=(4, 3))
            for is_weak_part, alpha in ((True, 0.4), (False, 1)):
                there = [row for row in own if ((row[IDENTITY], model) in weak) == is_weak_part]
                axes.plot(
                    [places[row[IDENTITY]] for row in there],
                    [row["pinned_auc"] for row in there],
                    model_marker(number),
                    color=colour,
                    alpha=alpha,
                    markersize=5,
                    markeredgewidth=0,
                )
        axes.set_xticks(range(len(names)), labels, rotation=_SLOPE, ha="right", color=INK, rotation_mode="anchor")
        axes.set_xlim(-0.7, len(names) - 0.3)
        axes.xaxis.grid(True)
        axes.set_axisbelow(True)
        return write_figure(figure, "Pinned AUC of every identity, dashed lines: the AUC of all rows")


def _leave_room(labels: Sequence[str]) -> tuple[float, float]:
    """Return how many pixels the sloping labels of columns need at the left and below."""
    step = (WIDTH - 60) / len(labels)
    across = [math.cos(math.radians(_SLOPE)) * pixels_across(label) for label in labels]
    left = max(reach - (place + 0.7) * step for place, reach in enumerate(across))
    return max(50, left + 8), 22 + math.sin(math.radians(_SLOPE)) * max(map(pixels_across, labels))
