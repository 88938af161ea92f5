"""The pictures with axes, drawn by matplotlib: intervals of all identities, equal rates, trends, pinned AUC."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from biasspark.columns import (
    ALL_ROWS,
    BACKGROUND_NEGATIVE,
    BACKGROUND_POSITIVE,
    IDENTITY,
    MODEL,
    SLICE,
    SUBGROUP_NEGATIVE,
    SUBGROUP_POSITIVE,
    SUMMARISED_AUCS,
    SUMMARISED_GAPS,
)
from biasspark.config import cut_to_width, measure_width
from biasspark.report.cells import DASH, MINUS, TableCell, drop_zeros, is_weak, metric_cell, show_name
from biasspark.report.distributions import Cells, RateCurve, trace_rates
from biasspark.report.facts import NightFacts, Row
from biasspark.report.overview import list_worst
from biasspark.report.pinned import tabulate_pinned
from biasspark.report.side_by_side_metrics import COMPARED, SUITE_TITLES
from biasspark.report.svg import INK, LINE, MARKERS, MODELS, SOFT, drawing, write_figure
from biasspark.report.verdict import describe_changes

MOST_IN_CHARTS = 60
MOST_CURVES = 8
MOST_TRENDS, MOST_MOVED = 7, 3
MOST_MARKERS = 8
WIDEST_NAME = 26
WIDTH, PIXELS = 1116, 72
"""Pixels of a figure across, and of its inch."""

_LETTER = 6.6
"""Pixels across of a letter, generously: the reader's browser chooses the font."""

_CURVES = (
    ("negative_aeg", "FPR", BACKGROUND_NEGATIVE, SUBGROUP_NEGATIVE),
    ("positive_aeg", "TPR", BACKGROUND_POSITIVE, SUBGROUP_POSITIVE),
)


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
    return _LETTER * measure_width(text)


# ---- intervals of all identities


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


# ---- curves of equal rates


@dataclass(frozen=True)
class _Panel:
    """What one panel shows: the curve of an identity and a model, with the gap of the table."""

    curve: RateCurve | None
    gap: TableCell
    colour: str


def draw_rate_curves(facts: NightFacts, histograms: Mapping[tuple[str, str], Cells]) -> Markup | None:
    """Draw the rates of an identity against those of its background over all thresholds; None without histograms.

    A panel per identity and model, negatives above positives. The area between a curve and the diagonal is the gap.
    """
    models, names = facts.models()[:MOST_CURVES], choose_curves(facts)
    if not histograms or not names:
        return None
    columns = [(name, model) for name in names for model in models]
    widest = int(WIDTH / MOST_CURVES / _LETTER) - 3
    suite = {(row[IDENTITY], row[MODEL]): row for row in facts.rows("bias_metrics", slice=ALL_ROWS)}
    with drawing("curves"):
        figure = Figure(figsize=(WIDTH / PIXELS, 390 / PIXELS))
        grid = figure.subplots(2, MOST_CURVES, squeeze=False)
        figure.subplots_adjust(left=0.045, right=0.995, top=0.87, bottom=0.07, wspace=0.2, hspace=0.28)
        for line, (metric, rate, background, subgroup) in enumerate(_CURVES):
            for axes, (name, model) in zip(grid[line], columns, strict=False):
                curve = trace_rates(histograms.get((model, name), {}), background, subgroup)
                gap = metric_cell(suite[name, model], metric) if (name, model) in suite else TableCell(text=DASH)
                _draw_curve(axes, _Panel(curve, gap, model_colour(models.index(model))))
            grid[line][0].set_ylabel(f"{rate} of the identity", labelpad=2)
            for axes in grid[line][len(columns) :]:
                axes.set_axis_off()
            grid[line][0].set_xlabel("of background", labelpad=-8)
        for axes, (name, model) in zip(grid[0], columns, strict=False):
            axes.text(
                0, 1.09, short_name(model, widest), color=model_colour(models.index(model)), transform=axes.transAxes
            )
            if model == models[0]:
                axes.text(
                    0,
                    1.25,
                    short_name(name, min(WIDEST_NAME, widest * len(models))),
                    fontsize=12,
                    transform=axes.transAxes,
                )
        return write_figure(figure, "False and true positive rates of the worst identities against their background")


def _draw_curve(axes: Axes, panel: _Panel) -> None:
    axes.plot([0, 1], [0, 1], color=SOFT, linewidth=1, dashes=(3, 3))
    if panel.curve is not None:
        across, up = panel.curve.background, panel.curve.subgroup
        axes.fill_between(across, across, up, color=panel.colour, alpha=0.22, linewidth=0)
        axes.plot(across, up, color=panel.colour, linewidth=1.8)
    below = panel.gap.value is not None and panel.gap.value < 0
    x, y, side = (0.05, 0.86, "left") if below else (0.96, 0.18, "right")
    axes.text(x, y, f"{'◦ ' if panel.gap.weak else ''}{panel.gap.text}", ha=side, fontsize=12)
    axes.text(x, y - 0.12, drop_zeros(panel.gap.interval), ha=side, fontsize=9, color=SOFT)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_xticks([0, 1], ["0", "1"])
    axes.set_yticks([0, 1], ["0", "1"])


def choose_curves(facts: NightFacts) -> list[str]:
    """Return the identities whose rates are drawn: so many that their panels of all models fit on a line."""
    return choose_identities(facts, MOST_CURVES // max(1, min(len(facts.models()), MOST_CURVES)))


def choose_identities(facts: NightFacts, most: int) -> list[str]:
    """Return the identities that pictures show: of each model in turn those with the lowest AUC."""
    lists = [[worst.identity for worst in list_worst(facts, model, most)] for model in facts.models()]
    in_turn = [name for names in zip(*lists, strict=False) for name in names]
    return list(dict.fromkeys([*in_turn, *(name for names in lists for name in names)]))[:most]


# ---- trends


def draw_trends(facts: NightFacts) -> Markup | None:
    """Draw overall AUC, and the worst metric of the worst identities, over nights with bands; None for one night."""
    if not facts.history:
        return None
    panels = [("Overall AUC", "auc", None), *_choose_trends(facts)]
    n_lines = -(-len(panels) // 4)
    with drawing("trends"):
        figure = Figure(figsize=(WIDTH / PIXELS, (205 * n_lines + 10) / PIXELS))
        grid = figure.subplots(n_lines, 4, squeeze=False)
        figure.subplots_adjust(
            left=0.045, right=0.985, top=1 - 26 / (205 * n_lines + 10), bottom=0.14 / n_lines, wspace=0.24, hspace=0.42
        )
        flat = list(grid.flat)
        for axes, (title, name, identity) in zip(flat, panels, strict=False):
            axes.set_title(title, pad=8)
            _draw_trend(axes, _gather_trend(facts, name, identity), facts.models())
        for axes in flat[len(panels) :]:
            axes.set_axis_off()
        return write_figure(figure, "Overall AUC and the worst metrics over nights, with their intervals")


def _choose_trends(facts: NightFacts) -> list[tuple[str, str, str]]:
    """Return the panels of identities: a title, the metric, and the identity.

    First what changed most since the last accepted run, then of the worst identities the metric that is lowest.
    """
    _, moves = describe_changes(facts)
    moved = list(dict.fromkeys((move.identity, move.metric) for move in moves))[:MOST_MOVED]
    found: dict[tuple[str, str], tuple[bool, float]] = {}
    for model in facts.models():
        for worst in list_worst(facts, model, MOST_TRENDS):
            found.setdefault((worst.identity, worst.metric), (worst.cell.weak, worst.value))
    lowest = sorted(found, key=lambda key: (found[key], key))
    chosen = list(dict.fromkeys([*moved, *lowest]))[:MOST_TRENDS]
    return [(f"{SUITE_TITLES[metric]}, {short_name(identity, 18)}", metric, identity) for identity, metric in chosen]


@dataclass(frozen=True)
class _Point:
    """A value of one night with the ends of its interval, which may be missing."""

    day: date
    value: float
    low: float | None
    high: float | None


Points = Mapping[str, Sequence[_Point]]


def _gather_trend(facts: NightFacts, name: str, identity: str | None) -> Points:
    """Return by model its values, oldest first; of the overall AUC where no identity is named."""
    nights = [(past.run_date, past.metrics, past.summaries) for past in facts.history]
    nights.append((facts.run_date, facts.rows("bias_metrics"), facts.rows("model_summary")))
    found: dict[str, list[_Point]] = {model: [] for model in facts.models()}
    for day, metrics, summaries in nights:
        for row in summaries if identity is None else [row for row in metrics if row[IDENTITY] == identity]:
            if row[SLICE] == ALL_ROWS and row[name] is not None and row[MODEL] in found:
                found[row[MODEL]].append(_Point(day, row[name], row[f"{name}_low"], row[f"{name}_high"]))
    return found


def _draw_trend(axes: Axes, points: Points, models: Sequence[str]) -> None:
    for number, model in enumerate(models):
        own = points[model]
        days = [point.day.toordinal() for point in own]
        lows = [math.nan if point.low is None else point.low for point in own]
        highs = [math.nan if point.high is None else point.high for point in own]
        colour, step = model_colour(number), max(1, math.ceil(len(own) / MOST_MARKERS))
        axes.fill_between(days, lows, highs, color=colour, alpha=0.14, linewidth=0)
        for edge in (lows, highs):  # where bands lie over each other their edges tell them apart
            axes.plot(days, edge, color=colour, linewidth=0.7, alpha=0.7)
        axes.plot(
            days,
            [point.value for point in own],
            color=colour,
            linewidth=1.6,
            marker=model_marker(number),
            markersize=3.5,
            markeredgewidth=0,
            markevery=[*range(len(own) - 1, -1, -step)],  # the last night always
        )
    axes.yaxis.grid(True)
    axes.spines["left"].set_visible(False)
    there = [point.day for own in points.values() for point in own]
    ends = sorted({min(there), max(there)}) if there else []
    axes.set_xticks([day.toordinal() for day in ends], [f"{day.day} {day:%b}" for day in ends])
    axes.locator_params(axis="y", nbins=4)
    axes.margins(x=0.04, y=0.15)


# ---- pinned AUC

_SLOPE = 60
"""Degrees by which the names of columns rise."""


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
