"""The charts that matplotlib draws: intervals, trends, curves of equal rates, and pinned AUC."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from biasspark.columns import ALL_ROWS, NEGATIVE, POSITIVE, SUMMARIZED_AUCS, SUMMARIZED_GAPS
from biasspark.report.cells import DASH, MINUS, Row, TableCell, drop_zeros, is_weak, metric_cell, show_name
from biasspark.report.definitions import SUITE, SUITE_TITLES
from biasspark.report.gate_summary import describe_changes
from biasspark.report.histogram_paths import Cells, RateCurve, trace_rates
from biasspark.report.metric_tables import list_worst
from biasspark.report.optional_tables import list_pinned
from biasspark.report.report_data import ReportData, Rows
from biasspark.report.svg import INK, LINE, MARKERS, MODEL_COLORS, SOFT, drawing, write_figure
from biasspark.text import cut_to_width, measure_width

MAX_IN_CHARTS = 60
MAX_CURVES = 8
MAX_TRENDS, MAX_CHANGED, MAX_MARKERS = 7, 3, 8
NAME_WIDTH = 26
WIDTH, PIXELS = 1116, 72
"""The width of a figure, and of its inch, in pixels."""

LETTER = 6.6
"""The width of a letter in pixels, generously: the reader's browser chooses the font."""

_ALPHAS = {True: 0.4, False: 1.0}
"""How pale points are, those that rest on too few rows and the others."""

_SLOPE = 60
"""The angle of the names of columns, in degrees."""


def model_style(number: int) -> tuple[str, str]:
    """Return the color and the marker of a model by its number."""
    return MODEL_COLORS[number % len(MODEL_COLORS)], MARKERS[number % len(MARKERS)]


def short_name(name: str, width: int = NAME_WIDTH) -> str:
    """Return a name as a figure shows it, cut where it is long."""
    return cut_to_width(show_name(name), width)


def text_width(text: str) -> float:
    """Return the most pixels that a text of a figure takes."""
    return LETTER * measure_width(text)


def choose_identities(report: ReportData, n: int) -> list[str]:
    """Return the identities with the lowest AUC, of each model in turn."""
    lists = [[worst.identity for worst in list_worst(report, model, n)] for model in report.models()]
    in_turn = [name for names in zip(*lists, strict=False) for name in names]
    return list(dict.fromkeys([*in_turn, *(name for names in lists for name in names)]))[:n]


# ---- intervals of every identity


def draw_intervals(report: ReportData) -> Markup:
    """Draw every identity with the intervals of all models, a panel per metric; the lowest AUC is at the top."""
    names, models = report.identities()[:MAX_IN_CHARTS], report.models()
    lines = {name: number for number, name in enumerate(names)}
    rows = [row for row in report.rows("bias_metrics", slice=ALL_ROWS) if row["identity"] in lines]
    height = max(18, 8 * len(models)) * len(names) + 72
    labels = [short_name(name) for name in names]
    left = (14 + max(map(text_width, labels), default=0)) / WIDTH
    with drawing("intervals"):
        figure = Figure(figsize=(WIDTH / PIXELS, height / PIXELS))
        panels = figure.subplots(1, len(SUITE), sharey=True)
        figure.subplots_adjust(left=left, right=0.995, top=1 - 46 / height, bottom=24 / height, wspace=0.14)
        for axes, name in zip(panels, SUITE, strict=True):
            _draw_panel(axes, name, [row for row in rows if row[name] is not None], lines, models)
        _draw_stripes(panels, len(names))
        _align_scales(panels, rows)
        panels[0].set_yticks(range(len(names)), labels, color=INK)
        panels[0].set_ylim(len(names) - 0.4, -0.6)
        return write_figure(figure, "Intervals of the five metrics for every identity and model")


def _draw_stripes(panels: Sequence[Axes], n: int) -> None:
    """Draw a stripe behind every other line, from the first panel through the last."""
    first, *_, last = (axes.get_position() for axes in panels)
    style: dict[str, Any] = {"color": LINE, "alpha": 0.35, "linewidth": 0, "zorder": 0, "clip_on": False}
    for line in range(0, n, 2):
        panels[0].axhspan(line - 0.5, line + 0.5, xmax=(last.x1 - first.x0) / first.width, **style)


def _draw_panel(axes: Axes, name: str, rows: Rows, lines: Mapping[str, int], models: Sequence[str]) -> None:
    axes.set_title(SUITE_TITLES[name], pad=10)
    axes.axvline(0.0 if name in SUMMARIZED_GAPS else 1.0, color=SOFT, linewidth=1)
    for number, model in enumerate(models):
        shift = (number - (len(models) - 1) / 2) * 0.68 / len(models)
        color, marker = model_style(number)
        points = [(lines[row["identity"]] + shift, row) for row in rows if row["model"] == model]
        for weak, alpha in _ALPHAS.items():
            some = [one for one in points if is_weak(one[1][f"{name}_low"], one[1][f"{name}_high"]) == weak]
            _draw_points(axes, name, some, color=color, alpha=alpha, marker=marker)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="x", labeltop=True)


def _draw_points(axes: Axes, name: str, points: Sequence[tuple[float, Row]], *, marker: str, **style: Any) -> None:
    bars = [(height, row) for height, row in points if row[f"{name}_low"] is not None]
    # One line with gaps: an element for each interval would be most of the picture.
    across = [end for _, row in bars for end in (row[f"{name}_low"], row[f"{name}_high"], math.nan)]
    axes.plot(across, [height for height, _ in bars for _ in range(3)], linewidth=1.6, solid_capstyle="butt", **style)
    values, heights = [row[name] for _, row in points], [height for height, _ in points]
    axes.plot(values, heights, marker, markersize=4, markeredgewidth=0, **style)


def _align_scales(panels: Sequence[Axes], rows: Rows) -> None:
    """Give the AUCs one scale, and the gaps one that is symmetric about 0."""
    lowest = min((end for name in SUMMARIZED_AUCS for end in _extents(rows, name)), default=0.5)
    widest = max((abs(end) for name in SUMMARIZED_GAPS for end in _extents(rows, name)), default=0.5)
    for axes, name in zip(panels, SUITE, strict=True):
        axes.set_xlim((-widest - 0.02, widest + 0.02) if name in SUMMARIZED_GAPS else (lowest - 0.02, 1.012))
        axes.xaxis.set_major_locator(MaxNLocator(nbins=4, steps=[1, 2, 2.5, 5, 10]))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:z.3g}".replace("-", MINUS))


def _extents(rows: Rows, name: str) -> Iterator[float]:
    """Return what a scale must reach: all values, and the ends of narrow intervals."""
    for row in rows:
        value, low, high = row[name], row[f"{name}_low"], row[f"{name}_high"]
        if value is not None:
            yield from (value,) if is_weak(low, high) else (value, low, high)


# ---- pinned AUC


def draw_pinned(report: ReportData) -> Markup | None:
    """Draw the pinned AUC of every identity, a column per identity as in the slides; None without the table."""
    rows = [row for row in report.rows("pinned_auc", slice=ALL_ROWS) if row["pinned_auc"] is not None]
    weak = {(one.row["identity"], one.row["model"]) for one in list_pinned(report) if one.cell.weak}
    pinned = {row["identity"] for row in rows}
    names = [name for name in report.identities() if name in pinned][:MAX_IN_CHARTS]
    if not names:
        return None
    columns = {name: number for number, name in enumerate(names)}
    labels = [short_name(name) for name in names]
    left, below = _label_room(labels)
    height = 190 + below
    with drawing("pinned"):
        figure = Figure(figsize=(WIDTH / PIXELS, height / PIXELS))
        axes = figure.subplots()
        figure.subplots_adjust(left=left / WIDTH, right=0.995, top=1 - 10 / height, bottom=below / height)
        for number, model in enumerate(report.models()):
            of_model = [row for row in rows if row["model"] == model and row["identity"] in columns]
            color, marker = model_style(number)
            if of_model:
                known = {columns[row["identity"]]: row["known_auc"] for row in of_model}
                dashed: dict[str, Any] = {"color": color, "linewidth": 1.2, "dashes": (4, 3)}
                if len(set(known.values())) == 1:
                    axes.axhline(of_model[0]["known_auc"], **dashed)
                else:
                    ends = [end for column in known for end in (column - 0.5, column + 0.5, math.nan)]
                    axes.plot(ends, [auc for value in known.values() for auc in (value, value, math.nan)], **dashed)
            for is_pale, alpha in _ALPHAS.items():
                points = [row for row in of_model if ((row["identity"], model) in weak) == is_pale]
                across, values = [columns[row["identity"]] for row in points], [row["pinned_auc"] for row in points]
                style: dict[str, Any] = {"color": color, "alpha": alpha, "markersize": 5, "markeredgewidth": 0}
                axes.plot(across, values, marker, **style)
        axes.set_xticks(range(len(names)), labels, rotation=_SLOPE, ha="right", color=INK, rotation_mode="anchor")
        axes.set_xlim(-0.7, len(names) - 0.3)
        axes.xaxis.grid(True)
        axes.set_axisbelow(True)
        return write_figure(
            figure, "Pinned AUC of every identity, dashed lines: the AUC of the rows on which it is known"
        )


def _label_room(labels: Sequence[str]) -> tuple[float, float]:
    """Return the pixels that the sloping labels of columns need at the left and below."""
    step = (WIDTH - 60) / len(labels)
    across = [math.cos(math.radians(_SLOPE)) * text_width(label) for label in labels]
    left = max(reach - (number + 0.7) * step for number, reach in enumerate(across))
    return max(50, left + 8), 22 + math.sin(math.radians(_SLOPE)) * max(map(text_width, labels))


# ---- curves of equal rates

_CURVES = (("negative_aeg", "FPR", NEGATIVE), ("positive_aeg", "TPR", POSITIVE))


def draw_rate_curves(report: ReportData, histograms: Mapping[tuple[str, str], Cells]) -> Markup | None:
    """Draw the rates of an identity against those of its background over all thresholds; None without histograms.

    A panel per identity and model, negatives above positives. The area between a curve and the diagonal is the gap.
    """
    models, names = report.models()[:MAX_CURVES], choose_curves(report)
    if not histograms or not names:
        return None
    columns = [(name, model) for name in names for model in models]
    width = int(WIDTH / MAX_CURVES / LETTER) - 3
    suite = report.suite()
    with drawing("curves"):
        figure = Figure(figsize=(WIDTH / PIXELS, 390 / PIXELS))
        grid = figure.subplots(2, MAX_CURVES, squeeze=False)
        figure.subplots_adjust(left=0.045, right=0.995, top=0.87, bottom=0.07, wspace=0.2, hspace=0.28)
        for line, (metric, rate, label) in zip(grid, _CURVES, strict=True):
            for axes, (name, model) in zip(line, columns, strict=False):
                curve = trace_rates(histograms.get((model, name), {}), label)
                row = suite.get((model, name))
                gap = metric_cell(row, metric) if row else TableCell(text=DASH)
                _draw_curve(axes, curve, gap, model_style(models.index(model))[0])
            line[0].set_ylabel(f"{rate} of the identity", labelpad=2)
            line[0].set_xlabel("of background", labelpad=-8)
            for axes in line[len(columns) :]:
                axes.set_axis_off()
        for axes, (name, model) in zip(grid[0], columns, strict=False):
            style: dict[str, Any] = {"transform": axes.transAxes}
            axes.text(0, 1.09, short_name(model, width), color=model_style(models.index(model))[0], **style)
            if model == models[0]:
                title = short_name(name, min(NAME_WIDTH, width * len(models)))
                axes.text(0, 1.25, title, fontsize=12, **style)
        return write_figure(figure, "False and true positive rates of the worst identities against their background")


def _draw_curve(axes: Axes, curve: RateCurve | None, gap: TableCell, color: str) -> None:
    axes.plot([0, 1], [0, 1], color=SOFT, linewidth=1, dashes=(3, 3))
    if curve is not None:
        across, up = curve.background, curve.subgroup
        axes.fill_between(across, across, up, color=color, alpha=0.22, linewidth=0)
        axes.plot(across, up, color=color, linewidth=1.8)
    below = gap.value is not None and gap.value < 0
    x, y, side = (0.05, 0.86, "left") if below else (0.96, 0.18, "right")
    axes.text(x, y, f"{'◦ ' if gap.weak else ''}{gap.text}", ha=side, fontsize=12)
    axes.text(x, y - 0.12, drop_zeros(gap.interval), ha=side, fontsize=9, color=SOFT)
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.set_xticks([0, 1], ["0", "1"])
    axes.set_yticks([0, 1], ["0", "1"])


def choose_curves(report: ReportData) -> list[str]:
    """Return the identities whose curves are drawn: as many as fit on a line with all models."""
    return choose_identities(report, MAX_CURVES // max(1, min(len(report.models()), MAX_CURVES)))


# ---- trends over nights


def draw_trends(report: ReportData) -> Markup | None:
    """Draw overall AUC, and the worst metric of the worst identities, over nights with bands; None for one night."""
    if not report.history:
        return None
    panels = [("Overall AUC", "auc", None), *_choose_trends(report)]
    n_lines = -(-len(panels) // 4)
    height = 205 * n_lines + 10
    with drawing("trends"):
        figure = Figure(figsize=(WIDTH / PIXELS, height / PIXELS))
        grid = figure.subplots(n_lines, 4, squeeze=False)
        room = {"top": 1 - 26 / height, "bottom": 0.14 / n_lines, "wspace": 0.24, "hspace": 0.42}
        figure.subplots_adjust(left=0.045, right=0.985, **room)
        for axes, (title, name, identity) in zip(grid.flat, panels, strict=False):
            axes.set_title(title, pad=8)
            _draw_trend(axes, _trend(report, name, identity))
        for axes in list(grid.flat)[len(panels) :]:
            axes.set_axis_off()
        return write_figure(figure, "Overall AUC and the worst metrics over nights, with their intervals")


def _choose_trends(report: ReportData) -> list[tuple[str, str, str]]:
    """Return title, metric and identity of each panel: what changed most, then the lowest AUCs."""
    _, changes = describe_changes(report)
    changed = list(dict.fromkeys((change.identity, change.metric) for change in changes))[:MAX_CHANGED]
    lowest: dict[tuple[str, str], tuple[bool, float]] = {}
    for model in report.models():
        for worst in list_worst(report, model, MAX_TRENDS):
            lowest.setdefault((worst.identity, worst.metric), (worst.cell.weak, worst.row[worst.metric]))
    in_order = [*changed, *sorted(lowest, key=lambda key: (lowest[key], key))]
    chosen = list(dict.fromkeys(in_order))[:MAX_TRENDS]
    return [(f"{SUITE_TITLES[metric]}, {short_name(identity, 18)}", metric, identity) for identity, metric in chosen]


def _trend(report: ReportData, name: str, identity: str | None) -> dict[str, list[tuple[date, list[float]]]]:
    """Return by model and night a metric and its ends, NaN without; the overall AUC if no identity is named."""
    points: dict[str, list[tuple[date, list[float]]]] = {model: [] for model in report.models()}
    for night in report.nights():
        for row in night.summaries if identity is None else night.metrics:
            is_shown = row["slice"] == ALL_ROWS and row[name] is not None and row["model"] in points
            if is_shown and (identity is None or row["identity"] == identity):
                ends = [row[f"{name}{end}"] for end in ("", "_low", "_high")]
                points[row["model"]].append((night.run_date, [math.nan if end is None else end for end in ends]))
    return points


def _draw_trend(axes: Axes, points: Mapping[str, Sequence[tuple[date, list[float]]]]) -> None:
    for number, of_model in enumerate(points.values()):
        days = [day.toordinal() for day, _ in of_model]
        values, lows, highs = zip(*(ends for _, ends in of_model), strict=True) if of_model else ((), (), ())
        (color, marker), step = model_style(number), max(1, math.ceil(len(of_model) / MAX_MARKERS))
        axes.fill_between(days, lows, highs, color=color, alpha=0.14, linewidth=0)
        for edge in (lows, highs):  # edges keep overlapping bands apart
            axes.plot(days, edge, color=color, linewidth=0.7, alpha=0.7)
        style: dict[str, Any] = {"color": color, "linewidth": 1.6, "marker": marker}
        style |= {"markersize": 3.5, "markeredgewidth": 0}
        every = [*range(len(of_model) - 1, -1, -step)]  # the last night always
        axes.plot(days, values, markevery=every, **style)
    axes.yaxis.grid(True)
    axes.spines["left"].set_visible(False)
    nights = [day for of_model in points.values() for day, _ in of_model]
    ends = sorted({min(nights), max(nights)}) if nights else []
    axes.set_xticks([day.toordinal() for day in ends], [f"{day.day} {day:%b}" for day in ends])
    axes.locator_params(axis="y", nbins=4)
    axes.margins(x=0.04, y=0.15)
