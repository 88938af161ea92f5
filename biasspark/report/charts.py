"""Charts drawn by matplotlib, converted to SVG that fits the colors and the security policy of a page."""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any
from xml.etree import ElementTree

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from biasspark.columns import ALL_ROWS, NEGATIVE, POSITIVE
from biasspark.report import metric_panels, panels
from biasspark.report.definitions import SUITE_TITLES
from biasspark.report.gate_summary import describe_changes
from biasspark.report.metric_tables import list_pinned, list_worst
from biasspark.report.report_data import ReportData, find_lowest, lowest_first
from biasspark.report.score_panels import PanelKey, arrange, by_panel, draw_curves, read_histograms, sum_bins
from biasspark.text import show_visibly

SVG = "http://www.w3.org/2000/svg"
HREF = "{http://www.w3.org/1999/xlink}href"

_VARIABLES = {
    panels.INK: "var(--ink)",
    panels.SOFT: "var(--soft)",
    panels.LINE: "var(--line)",
    panels.LABEL_COLORS[NEGATIVE]: "var(--neg)",
    panels.LABEL_COLORS[POSITIVE]: "var(--pos)",
    **{color: f"var(--m{number})" for number, color in enumerate(panels.MODEL_COLORS)},
}
_INHERITED = (
    *("fill", "fill-opacity", "stroke", "stroke-opacity", "stroke-width", "stroke-linecap", "stroke-linejoin"),
    "stroke-dasharray",
)


@contextmanager
def drawing(name: str) -> Iterator[None]:
    """Draw figures in the style of the page, with reproducible bytes. ``name`` makes the ids of a figure unique."""
    style: Any = {**panels.STYLE, "svg.hashsalt": name}  # a plain dict: its keys are matplotlib's
    with mpl.rc_context(style), warnings.catch_warnings():
        # A name may have letters that no font has here. The browser of the reader has other fonts.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support")
        yield


def write_figure(figure: Figure, label: str) -> Markup:
    """Return a figure drawn within `drawing` as an ``<svg>`` element with a label for screen readers.

    Style attributes, which the security policy of the page forbids, become presentation attributes. Cells of a color
    scale get its classes. Text remains text, in the fonts of the page.
    """
    for artist in figure.findobj(lambda artist: artist.get_label() in panels.CELL_COLORS):
        artist.set_gid(str(artist.get_label()))
    file = io.BytesIO()
    figure.savefig(file, format="svg")
    root = ElementTree.fromstring(file.getvalue())
    _remove(root, lambda element: element.tag in {f"{{{SVG}}}metadata", f"{{{SVG}}}style"})
    used_ids = set(re.findall(rb"#([\w-]+)", file.getvalue()))
    for element in root.iter():
        _adapt(element, used_ids)
    for group in root.iterfind(f".//{{{SVG}}}g[@class]"):
        for child in group:
            child.attrib["fill"] = "currentColor" if child.tag == f"{{{SVG}}}text" else "var(--cell)"
    # Elements without line or color are invisible, except those with an id, which are drawn elsewhere.
    _remove(root, lambda element: element.get("fill") == "none" and not {"stroke", "id"} & element.attrib.keys())
    for group in reversed(list(root.iter(f"{{{SVG}}}g"))):
        _lift_attributes(group)
    for key in ("width", "height", "version"):
        root.attrib.pop(key, None)
    width, height = root.attrib["viewBox"].split()[2:]
    root.attrib |= {"class": "chart", "role": "img", "aria-label": label, "width": width, "height": height}
    ElementTree.register_namespace("", SVG)
    text = ElementTree.tostring(root, encoding="unicode")
    return Markup(re.sub(r">\s+<", "><", text).replace(" />", "/>"))  # ElementTree has escaped all text


def _remove(root: ElementTree.Element, is_removed: Callable[[ElementTree.Element], bool]) -> None:
    for parent in root.iter():
        for child in [child for child in parent if is_removed(child)]:
            parent.remove(child)


def _adapt(element: ElementTree.Element, used_ids: set[bytes]) -> None:
    """Replace style attributes and links in another namespace, drop unused ids, and round to a tenth of a pixel."""
    attributes = element.attrib
    if attributes.get("id") in panels.CELL_COLORS:
        attributes["class"] = attributes["id"]
    if attributes.get("id", "").encode() not in used_ids:
        attributes.pop("id", None)
    if HREF in attributes:
        attributes["href"] = attributes.pop(HREF)
    for key in attributes.keys() & {"d", "x", "y", "transform"}:
        rounded = re.sub(r"-?\d+\.\d+", lambda number: f"{float(number[0]):.1f}".removesuffix(".0"), attributes[key])
        attributes[key] = re.sub(r"\s+", " ", rounded).strip()
    if "d" in attributes:
        attributes["d"] = re.sub(r" ?([A-Za-z]) ?", r"\1", attributes["d"])
    if attributes.get("transform", "").startswith("rotate(-0 "):
        del attributes["transform"]
    for declaration in attributes.pop("style", "").split(";"):
        key, _, value = (part.strip() for part in declaration.partition(":"))
        if key and key not in {"font-family", "font"}:
            attributes[key] = _VARIABLES.get(value, value)


def _lift_attributes(group: ElementTree.Element) -> None:
    """Move attributes that all elements of a group share, such as the color of markers, to the group."""
    children = [child.attrib for child in group]
    for key in _INHERITED:
        values = {attributes.get(key, "") for attributes in children}
        if len(values) == 1 and values != {""}:
            group.attrib[key] = values.pop()
            for attributes in children:
                del attributes[key]


MAX_IN_CHARTS, MAX_IN_SLICE = 60, 20
MAX_CURVES = 8
MAX_SLICE_CURVES, MAX_SLICE_BINS = 24, 25
"""The approximate number of curves by slice, and their bins. They are small, and their gap is printed."""
MAX_TRENDS, MAX_CHANGED, MAX_MARKERS = 7, 3, 8


# ---- intervals of every identity


def draw_intervals(report: ReportData, slice_name: str = ALL_ROWS) -> Markup:
    """Draw the intervals of all models for the identities of a slice, a panel per metric, the lowest AUC at the top."""
    names = report.identities(slice_name)[: MAX_IN_CHARTS if slice_name == ALL_ROWS else MAX_IN_SLICE]
    rows = [row for row in report.rows("bias_metrics", slice=slice_name) if row["identity"] in set(names)]
    with drawing(f"intervals of {slice_name}"):
        figure = metric_panels.draw_intervals({"": (names, rows)}, report.models())
        where = "" if slice_name == ALL_ROWS else f", slice {show_visibly(slice_name)}"
        return write_figure(figure, f"Intervals of the five metrics for every identity and model{where}")


# ---- pinned AUC


def draw_pinned(report: ReportData) -> Markup | None:
    """Draw the pinned AUC of every identity, each in a column; None without the table."""
    rows = [row for row in list_pinned(report) if row["pinned_auc"] is not None]
    names = list(dict.fromkeys(row["identity"] for row in rows))[:MAX_IN_CHARTS]
    if not names:
        return None
    weak = {(row["identity"], row["model"]) for row in rows if row["cell"].weak}
    with drawing("pinned"):
        figure = metric_panels.draw_pinned(rows, names, report.models(), weak)
        return write_figure(
            figure, "Pinned AUC of every identity, dashed lines: the AUC of the rows on which it is known"
        )


# ---- curves of equal rates


def draw_rate_curves(report: ReportData) -> Markup | None:
    """Draw the rates of identities against those of their backgrounds; None if no identity has an AUC."""
    models, names = report.models()[:MAX_CURVES], choose_curves(report)
    if not names:
        return None
    _, cells_of = read_histograms(report.rows("score_histograms", slice=ALL_ROWS))
    lines, suite = arrange([ALL_ROWS], names, models, MAX_CURVES), by_panel(report.rows("bias_metrics"))
    with drawing("curves"):
        figure = draw_curves(lines, models, cells_of, suite)
        return write_figure(figure, "False and true positive rates of the worst identities against their background")


def draw_slice_curves(report: ReportData, identity: str) -> Markup | None:
    """Draw the rates of an identity by slice and model; with many slices, None for all but the worst identities."""
    models, slices = report.models()[:MAX_CURVES], report.slices()
    n_drawn = max(1, MAX_SLICE_CURVES // (len(slices) * len(models)))
    if identity not in report.pictured()[:n_drawn]:
        return None
    _, cells_of = read_histograms(report.rows("score_histograms", identity=identity))
    binned = {
        key: {cell: sum_bins(bins, MAX_SLICE_BINS) for cell, bins in cells.items()} for key, cells in cells_of.items()
    }
    step = max(1, MAX_CURVES // len(models))
    lines = [
        [PanelKey(name, identity, model) for name in slices[start : start + step] for model in models]
        for start in range(0, len(slices), step)
    ]
    with drawing(f"curves of {identity}"):
        suite = by_panel(report.rows("bias_metrics"))
        figure = draw_curves(lines, models, binned, suite)
        return write_figure(figure, f"Rates of {show_visibly(identity)} against those of its background, by slice")


def count_bins(report: ReportData) -> int:
    """Return the largest number of histogram bins of any model."""
    scales, _ = read_histograms(report.rows("score_histograms"))
    return max(scale.n_bins for scale in scales.values())


def choose_curves(report: ReportData) -> list[str]:
    """Return the worst identities, of each model in turn: as many as fit on one line, in the order of the table."""
    n = MAX_CURVES // max(1, min(len(report.models()), MAX_CURVES))
    lists = [[row["identity"] for row in list_worst(report, model, n)] for model in report.models()]
    in_turn = [name for names in zip(*lists, strict=False) for name in names]
    chosen = {*list(dict.fromkeys([*in_turn, *(name for names in lists for name in names)]))[:n]}
    return [name for name in report.identities() if name in chosen]


# ---- trends over time


def draw_trends(report: ReportData) -> Markup:
    """Draw overall AUC, and the worst metric of the worst identities, over time with bands."""
    shown = [("Overall AUC", "auc", None), *_choose_trends(report)]
    sizes = [(151, len(shown[start : start + 4])) for start in range(0, len(shown), 4)]
    room = panels.Room(left=50, right=19, top=26, bottom=29, across=53, down=63)
    with drawing("trends"):
        figure, grid = panels.make_grid(sizes, 222, room, notes=())
        for axes, (title, name, identity) in zip(chain(*grid), shown, strict=True):
            axes.set_title(title, pad=8)
            _draw_trend(axes, report, name, identity)
        return write_figure(figure, "Overall AUC and the worst metrics over time, with their intervals")


def _choose_trends(report: ReportData) -> list[tuple[str, str, str]]:
    """Return the title, metric and identity of each panel: the largest changes, then the lowest AUCs."""
    _, changes = describe_changes(report)
    changed = list(dict.fromkeys((change.identity, change.metric) for change in changes))[:MAX_CHANGED]
    worst = [row for model in report.models() for row in list_worst(report, model, MAX_TRENDS)]
    lowest = [(row["identity"], find_lowest(row).metric) for row in sorted(worst, key=lowest_first)]
    chosen = list(dict.fromkeys([*changed, *lowest]))[:MAX_TRENDS]
    return [
        (f"{SUITE_TITLES[metric]}, {panels.short_name(identity, 18)}", metric, identity) for identity, metric in chosen
    ]


def _draw_trend(axes: Axes, report: ReportData, name: str, identity: str | None) -> None:
    """Draw a metric of an identity, or the overall AUC without one, by model and date."""
    points = [
        (run.run_date, row)
        for run in report.all_runs()
        for row in (run.summaries if identity is None else run.metrics)
        if row["slice"] == ALL_ROWS and row[name] is not None and row.get("identity") == identity
    ]
    for number, model in enumerate(report.models()):
        model_points = [(day.toordinal(), row) for day, row in points if row["model"] == model]
        days = [day for day, _ in model_points]
        values, lows, highs = (
            [math.nan if row[f"{name}{end}"] is None else row[f"{name}{end}"] for _, row in model_points]
            for end in ("", "_low", "_high")
        )
        (color, marker), step = panels.model_style(number), max(1, math.ceil(len(model_points) / MAX_MARKERS))
        axes.fill_between(days, lows, highs, color=color, alpha=0.14, linewidth=0)
        for edge in (lows, highs):  # edges keep overlapping bands apart
            axes.plot(days, edge, color=color, linewidth=0.7, alpha=0.7)
        style: dict[str, Any] = {"color": color, "linewidth": 1.6, "marker": marker}
        style |= {"markersize": 3.5, "markeredgewidth": 0}
        every = [*range(len(model_points) - 1, -1, -step)]  # always the last run
        axes.plot(days, values, markevery=every, **style)
    axes.yaxis.grid(True)
    axes.spines["left"].set_visible(False)
    dates = [day for day, row in points if row["model"] in report.models()]
    ends = sorted({min(dates), max(dates)}) if dates else []
    is_long = bool(ends) and (ends[-1] - ends[0]).days > 364  # days and months alone may be those of another year
    labels = [f"{day:%b %Y}" if is_long else f"{day.day} {day:%b}" for day in ends]
    axes.set_xticks([day.toordinal() for day in ends], labels)
    axes.locator_params(axis="y", nbins=4)
    axes.margins(x=0.04, y=0.15)
