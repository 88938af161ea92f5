"""Style and layout of figures: the colors of the report, and small multiples with sizes in pixels."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from biasspark.columns import NEGATIVE, POSITIVE
from biasspark.report.cells import show_name
from biasspark.text import cut_to_width, measure_width

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
    "axes.titleweight": "normal",
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


@contextmanager
def notebook_style() -> Iterator[None]:
    """Make figures in the style of the report, on white."""
    style: Any = {**STYLE, "figure.dpi": 100, "figure.facecolor": "white"}  # a plain dict: its keys are matplotlib's
    with mpl.rc_context(style):
        yield


def make_grid(
    row_heights: Sequence[float], n_columns: int, width: float, room: Room, *, notes: Sequence[str] = (), **options: Any
) -> tuple[Picture, list[list[Axes]]]:
    """Return a figure with a grid of panels, with sizes in pixels, and notes below them, each on a line of its own.

    The options are those of `matplotlib.figure.Figure.subplots`.
    """
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
    return figure, grid.tolist()


def write_above(axes: Axes, text: str, pixels: float, *, top: bool = True, **style: Any) -> None:
    """Write a text at the left end of a panel, the given pixels above its top, or above its bottom."""
    corner = (0, 1 if top else 0)
    axes.annotate(text, corner, (0, pixels), xycoords="axes fraction", textcoords="offset points", **style)


def model_style(number: int) -> tuple[str, str]:
    """Return the color and the marker of a model by its number."""
    return MODEL_COLORS[number % len(MODEL_COLORS)], MARKERS[number % len(MARKERS)]


def add_model_key(figure: Figure, models: Sequence[str]) -> None:
    """Write the names of models, with their colors and markers, into the upper left corner of a figure."""
    styles = map(model_style, range(len(models)))
    marks = [Line2D([], [], color=color, marker=marker, linestyle="", markersize=5) for color, marker in styles]
    names = list(map(short_name, models))
    figure.legend(marks, names, loc="upper left", ncols=4, frameon=False, fontsize=11, handletextpad=0.1)


def short_name(name: str, width: int = NAME_WIDTH) -> str:
    """Shorten a long name for display in a figure."""
    return cut_to_width(show_name(name), width)


def text_width(text: str) -> float:
    """Return the maximum width in pixels of a text in a figure."""
    return LETTER * measure_width(text)
