"""Boxes in the colors of the report, with a number in each: heat maps, and trees of segments."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from biasspark.report import panels
from biasspark.report.attributions import Tree, TreeNode
from biasspark.report.cells import TableCell, drop_zeros, show_p, show_percent
from biasspark.text import cut_to_width, measure_width


def _fill_box(
    axes: Axes, cell: TableCell, corner: tuple[float, float], size: tuple[float, float], *, edge: float, ink: str
) -> dict[str, Any]:
    """Fill a box with the color of a cell, of which a weak one has only an edge; return the style of its text."""
    color = panels.CELL_COLORS.get(cell.color, "none")  # transparent: the page may be light or dark
    width = edge if cell.weak else size[0]
    axes.add_patch(Rectangle(corner, width, size[1], facecolor=color, linewidth=0, label=cell.color))
    is_plain = cell.weak or color == "none"
    label = "" if cell.weak else cell.color
    return {"color": ink if is_plain else panels.text_color(color), "va": "center", "label": label}


# ---- heat maps: AUCs of groups against groups, and shares of positives by text length


class Grid(NamedTuple):
    """One heat map: its title, its rows and columns with a count beneath each name, and cells by (row, column)."""

    title: str
    rows: Mapping[str, str]
    columns: Mapping[str, str]
    cells: Mapping[tuple[str, str], TableCell]


def draw_heat_maps(lines: Sequence[Sequence[Grid]], notes: Sequence[str], what: str = "") -> Figure:
    """Draw lines of heat maps with row names at the left and column names above, which ``what`` explains."""
    grids = [grid for line in lines for grid in line]
    has_intervals = any(cell.interval for grid in grids for cell in grid.cells.values())
    across, up = (78, 38) if has_intervals else (46, 26)
    names = [*what.split("\n"), *(_join(*row, "  ") for grid in grids for row in grid.rows.items())]
    left = 26 + max(map(panels.text_width, names))
    sizes = []
    for line in lines:  # above it, one without panels for its headings
        sizes += [(30 + max(_room_above(grid, across)[1] for grid in line), 0)]
        sizes += [(up * max(len(grid.rows) for grid in line), len(line))]
    n_columns = max(len(grid.columns) for grid in grids)
    right = 12 + max(0, max(panels.text_width(grid.title) for grid in grids) - across * n_columns)
    room = panels.Room(left, right, top=0, bottom=10, across=max(left, right), down=7)
    figure, lines_of_axes = panels.make_grid(sizes, across * n_columns, room, notes)
    for axes, grid in zip(chain(*lines_of_axes), grids, strict=True):
        axes.set(xlim=(0, n_columns), ylim=(len(grid.rows), 0))
        is_level, above = _room_above(grid, across)
        between, rotation = ("\n", 0) if is_level else ("  ", 90)
        columns = [_join(name, note, between) for name, note in grid.columns.items()]
        axes.set_xticks(np.arange(len(columns)) + 0.5, columns, color=panels.INK, rotation=rotation)
        axes.xaxis.tick_top()
        rows = [_join(name, note, "  ") for name, note in grid.rows.items()]
        axes.set_yticks(np.arange(len(rows)) + 0.5, rows, color=panels.INK)
        axes.tick_params(top=False, left=False)
        axes.spines[:].set_visible(False)
        for (row, column), cell in grid.cells.items():
            corner = [*grid.columns].index(column), [*grid.rows].index(row)
            _draw_cell(axes, cell, corner, edge=4 / across)
        panels.write_above(axes, grid.title, above + 8, fontsize=12)
        panels.write_above(axes, what, 6, fontsize=9, color=panels.SOFT, ha="right")
    return figure


def _room_above(grid: Grid, width: float) -> tuple[bool, float]:
    """Return whether all column names fit horizontally in this width, and the height of the names and their counts."""
    widths = [panels.text_width(panels.short_name(name)) for name in grid.columns]
    is_level, is_counted = max(widths) <= width, any(grid.columns.values())
    if is_level:
        return is_level, 40.0 if is_counted else 24.0
    return is_level, 14 + 46 * is_counted + max(widths)


def _join(name: str, note: str, between: str) -> str:
    return f"{panels.short_name(name)}{between}{note}" if note else panels.short_name(name)


def _draw_cell(axes: Axes, cell: TableCell, corner: tuple[int, int], edge: float) -> None:
    style = _fill_box(axes, cell, corner, (1, 1), edge=edge, ink=panels.SOFT)
    axes.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor=panels.LINE, clip_on=False))
    x, y = corner[0] + 0.5, corner[1] + (0.38 if cell.interval else 0.5)
    text = f"{'◦ ' if cell.weak and cell.value is not None else ''}{drop_zeros(cell.text)}"
    axes.text(x, y, text, ha="center", **style)
    axes.text(x, corner[1] + 0.75, drop_zeros(cell.interval), fontsize=8, ha="center", **style)


# ---- trees, drawn from left to right: a node's children are at its right

_WIDTH, _GAP = 236.0, 44.0
"""The width of a node, and the gap to its children, in pixels."""
_LINE, _VALUE, _PAD = 15.0, 24.0, 8.0
"""The height of a line of text, that of the line with the value, and the space below and between nodes, in pixels."""
_LETTERS, _MAX_LINES, _TITLE = 38, 5, 100
"""The letters per line of a rule, the most lines drawn of it, and the letters of a title."""


def draw_trees(trees: Sequence[Tree], notes: Sequence[str]) -> Figure:
    """Draw trees below each other; a node shows its value with the interval, the gain of its split, and its rows."""
    depth = max(node.row["node_id"].bit_length() for tree in trees for node in tree.root.nodes())
    row_heights = [sum(_height(leaf) + _PAD for leaf in tree.root.leaves()) for tree in trees]
    room = panels.Room(left=8, right=8, top=40, bottom=8, down=48)
    titles = [f"{cut_to_width(tree.title, _TITLE)} ({tree.best})" for tree in trees]
    width = max(depth * (_WIDTH + _GAP) - _GAP, *map(panels.text_width, titles))
    figure, grid = panels.make_grid([(height, 1) for height in row_heights], width, room, notes)
    for [axes], tree, title, height in zip(grid, trees, titles, row_heights, strict=True):
        axes.set_axis_off()
        axes.set(xlim=(0, width), ylim=(height, 0))
        _draw_node(axes, tree.root, 0, 0.0)
        panels.write_above(axes, title, 14, fontsize=12)
    return figure


def _texts(node: TreeNode) -> list[str]:
    """Return the lines below the value of a node: its rule, its rows and what was tested."""
    row = node.row
    widest = max([1, *map(measure_width, node.rule)])  # of its letters
    rule = textwrap.wrap(node.rule, _LETTERS // widest, subsequent_indent="  ")
    if len(rule) > _MAX_LINES:
        rule = [*rule[: _MAX_LINES - 1], cut_to_width(" ".join(rule[_MAX_LINES - 1 :]), _LETTERS)]
    rows = f"{node.n} rows"
    if row.get("loss_share") is not None:
        rows += f", {show_percent(row['loss_share'])} of the loss"
    tested = textwrap.wrap(f"p {show_p(row['p_adjusted'])}, {node.verdict}", _LETTERS + 4) if row["is_leaf"] else []
    return [*rule, rows, *tested]


def _height(node: TreeNode) -> float:
    return _VALUE + _LINE * len(_texts(node)) + _PAD


def _draw_node(axes: Axes, node: TreeNode, level: int, top: float) -> tuple[float, float]:
    """Draw a node and its descendants, from the top down; return the middle of its box and its lower end."""
    x, bottom, middles = level * (_WIDTH + _GAP), top, []
    for child in node.children:
        middle, bottom = _draw_node(axes, child, level + 1, bottom)
        middles.append(middle)
    height = _height(node)
    bottom = max(bottom, top + height + _PAD)
    middle = (middles[0] + middles[-1]) / 2 if middles else top + height / 2
    _draw_box(axes, node, x, middle - height / 2)
    right, bend = x + _WIDTH, x + _WIDTH + _GAP / 2
    for below in middles:
        axes.plot([right, bend, bend, right + _GAP], [middle, middle, below, below], color=panels.SOFT, linewidth=1)
    return middle, bottom


def _draw_box(axes: Axes, node: TreeNode, x: float, y: float) -> None:
    cell, height = node.cell, _height(node)
    text = _fill_box(axes, cell, (x, y), (_WIDTH, _VALUE), edge=4, ink=panels.INK)
    style = {"linestyle": "--", "linewidth": 1.5} if node.is_contradicted else {"linewidth": 1}
    axes.add_patch(Rectangle((x, y), _WIDTH, height, fill=False, edgecolor=panels.SOFT, clip_on=False, **style))
    value = f"{'◦ ' if cell.weak else ''}{drop_zeros(cell.text)}"
    axes.text(x + _PAD, y + _VALUE / 2, value, fontsize=12, **text)
    axes.text(x + _WIDTH - _PAD, y + _VALUE / 2, drop_zeros(cell.interval), ha="right", fontsize=9, **text)
    for number, line in enumerate(_texts(node)):
        axes.text(x + _PAD, y + _VALUE + _LINE * (number + 0.7), line, va="center", fontsize=10, color=panels.INK)
