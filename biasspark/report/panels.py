"""Style and layout of figures: the colors of the report, and small multiples with sizes in pixels."""

from __future__ import annotations

import math
import textwrap
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager
from io import BytesIO
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from biasspark.columns import NEGATIVE, POSITIVE
from biasspark.report.cells import N_COLORS
from biasspark.text import cut_to_width, measure_width, show_visibly

INK, SOFT, LINE = "#111111", "#666666", "#dddddd"
MODEL_COLORS = ("#0072b2", "#d55e00", "#009e73", "#aa4499")
MARKERS = ("o", "D", "s", "^")
"""The colors and markers of models, which can be distinguished without color, too."""
LABEL_COLORS = {NEGATIVE: "#2f8f8a", POSITIVE: "#a8336f"}

STYLE: dict[str, Any] = {
    "axes.edgecolor": LINE,
    "axes.facecolor": "none",
    "axes.labelcolor": SOFT,
    "axes.linewidth": 1,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 12,
    "figure.dpi": 72,  # so a point of the figure is a pixel of the page
    "figure.facecolor": "none",
    "font.size": 11,
    "grid.color": LINE,
    "grid.linewidth": 1,
    "svg.fonttype": "none",
    "text.color": INK,
    "text.parse_math": False,  # a name with two dollar signs is not a formula
    "xtick.bottom": False,
    "xtick.labelcolor": SOFT,
    "xtick.major.size": 0,
    "ytick.labelcolor": SOFT,
    "ytick.left": False,
    "ytick.major.size": 0,
}

WIDTH, PIXELS = 1116, 72
"""The width of a figure that fills the page, and the pixels per inch."""

LETTER = 6.6
"""The width of a letter in pixels, with a margin, as the reader's browser chooses the font."""

NAME_WIDTH = 36
_KEY_COLUMNS = 4
_NOTE_LINE, _NOTE_LETTER = 16, 6.0
"""The height of a line of notes, and the width of its letters, in pixels."""


class Picture(Figure):
    """A figure that is displayed at the end of a notebook cell, even without pyplot."""

    def _repr_png_(self) -> bytes:
        file = BytesIO()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing from")
            self.savefig(file, format="png")
        return file.getvalue()


class Room(NamedTuple):
    """The pixels around a grid of panels, and between its columns and its lines."""

    left: float
    right: float
    top: float
    bottom: float
    across: float = 0
    down: float = 0


def notebook_style() -> AbstractContextManager[None]:
    """Make figures in the style of the report, on white."""
    style: Any = {**STYLE, "figure.dpi": 100, "figure.facecolor": "white"}  # a plain dict: its keys are matplotlib's
    return mpl.rc_context(style)


def make_grid(
    sizes: Sequence[tuple[float, int]], width: float, room: Room, notes: Sequence[str], **options: Any
) -> tuple[Picture, list[list[Axes]]]:
    """Return a figure with lines of panels, given the height and the number of panels of each, and notes below.

    Heights and widths are in pixels. Options are those of `subplots`.
    """
    row_heights, n_columns = [height for height, _ in sizes], max(n for _, n in sizes)
    across = room.left + n_columns * width + (n_columns - 1) * room.across + room.right
    lines = [line for note in notes for line in textwrap.wrap(note, int(across / _NOTE_LETTER))]
    bottom = room.bottom + (len(lines) * _NOTE_LINE + 10 if lines else 0)
    up = room.top + sum(row_heights) + (len(row_heights) - 1) * room.down + bottom
    figure = Picture(figsize=(across / PIXELS, up / PIXELS))
    figure.subplots_adjust(
        left=room.left / across, right=1 - room.right / across, top=1 - room.top / up, bottom=bottom / up
    )
    spaces = {"wspace": room.across / width, "hspace": room.down * len(row_heights) / sum(row_heights)}
    options |= {"height_ratios": row_heights, "gridspec_kw": spaces}
    grid = figure.subplots(len(row_heights), n_columns, squeeze=False, **options)
    for number, line in enumerate(reversed(lines)):
        figure.text(8 / across, (8 + number * _NOTE_LINE) / up, line, fontsize=10, color=SOFT)
    for axes in (axes for line, (_, n) in zip(grid, sizes, strict=True) for axes in line[n:]):
        axes.set_axis_off()
    return figure, [list(line[:n]) for line, (_, n) in zip(grid, sizes, strict=True)]


def write_above(axes: Axes, text: str, pixels: float, *, top: bool = True, **style: Any) -> None:
    """Write a string at the left end of a panel, the given pixels above its top, or above its bottom."""
    corner = (0, 1 if top else 0)
    axes.annotate(text, corner, (0, pixels), xycoords="axes fraction", textcoords="offset points", **style)


def model_style(number: int) -> tuple[str, str]:
    """Return the color and the marker of a model by its number: 16 distinct pairs."""
    return MODEL_COLORS[number % 4], MARKERS[(number + number // 4) % 4]


def key_height(models: Sequence[str]) -> float:
    """Return the height of `add_model_key` in pixels."""
    return 6.0 + 18 * math.ceil(len(models) / _KEY_COLUMNS)


def add_model_key(figure: Figure, models: Sequence[str]) -> None:
    """Write the names of models, with their colors and markers, into the upper left corner of a figure."""
    styles = map(model_style, range(len(models)))
    markers = [Line2D([], [], color=color, marker=marker, linestyle="", markersize=5) for color, marker in styles]
    names = list(map(short_name, models))
    style: dict[str, Any] = {"frameon": False, "fontsize": 11, "handletextpad": 0.1}
    figure.legend(markers, names, loc="upper left", ncols=_KEY_COLUMNS, **style)


def short_name(name: str, width: int = NAME_WIDTH) -> str:
    """Shorten a long name for display in a figure."""
    return cut_to_width(show_visibly(name), width)


def text_width(text: str) -> float:
    """Return the maximum width in pixels of a string in a figure."""
    return LETTER * measure_width(text)


# ---- the color scales of numbers
#
# ``a`` is for AUCs, from worst to best, which has the color of the page. ``g`` is for gaps, from scored lower to scored
# higher, in two hues that color-blind readers can distinguish. ``p`` is for shares, from 0 to the largest. The steps of
# lightness are even, so that the scales work in gray as well.

LIGHT = {
    "a": ("#8a3206", "#c9570c", "#f2973a", "#fcc978", "#fdeccb", "#ffffff"),
    "g": ("#4a2a7a", "#8f83bb", "#d3d0e6", "#ffffff", "#fbd7a6", "#e6933a", "#9c4a06"),
    "p": ("#ffffff", "#d9efe6", "#97d0cb", "#4a9fbe", "#145c92"),
}
DARK = {
    "a": ("#f8cd74", "#dc9636", "#a1681e", "#6a4516", "#382a19", "#181c22"),
    "g": ("#beb4ea", "#7d70b4", "#3f385f", "#181c22", "#573b17", "#a86d22", "#f0ad58"),
    "p": ("#181c22", "#15404a", "#20737f", "#63b7be", "#b8e8e5"),
}


def color_rules() -> str:
    """Return the CSS rules of all colors, also for dark mode; the variable ``--cell`` is for the charts in the page."""
    light, dark = (
        "".join(
            f".{name}{number}{{--cell:{color};background:{color};color:{text_color(color)}}}"
            for name, anchors in scales.items()
            for number, color in enumerate(interpolate(anchors))
        )
        for scales in (LIGHT, DARK)
    )
    return f"{light}@media screen and (prefers-color-scheme:dark){{{dark}}}\n"


def interpolate(anchors: Sequence[str]) -> list[str]:
    """Return the colors of a scale, evenly spaced on the line through the anchors."""
    scale = LinearSegmentedColormap.from_list("", anchors, N_COLORS)
    return list(map(to_hex, scale(range(N_COLORS))))


def text_color(background: str) -> str:
    """Return black or white, whichever has more contrast by WCAG 2: both have 4.58 at a luminance of 0.179."""
    return "#000000" if luminance(background) > 0.179 else "#ffffff"


def luminance(color: str) -> float:
    """Return the relative luminance of a color by WCAG 2: 0 for black, 1 for white."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(color)]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


CELL_COLORS = {
    f"{name}{number}": color for name, scale in LIGHT.items() for number, color in enumerate(interpolate(scale))
}
