"""The trends of metrics over nights, drawn by matplotlib."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from biasspark.columns import ALL_ROWS, IDENTITY, MODEL, SLICE
from biasspark.report.charts import PIXELS, WIDTH, model_colour, model_marker, short_name
from biasspark.report.facts import NightFacts
from biasspark.report.overview import list_worst
from biasspark.report.side_by_side_metrics import SUITE_TITLES
from biasspark.report.svg import drawing, write_figure
from biasspark.report.verdict import describe_changes

MOST_TRENDS, MOST_MOVED = 7, 3
MOST_MARKERS = 8


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
