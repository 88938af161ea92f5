"""Heat maps with a number in each cell: AUCs of groups against groups, and shares of positives by text length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from biasspark.plot.panels import INK, LINE, SOFT, Room, color_box, make_grid, short_name, text_width, write_above
from biasspark.report.cells import TableCell, drop_zeros


class Grid(NamedTuple):
    """One heat map: its title, its rows and columns with a count beneath each name, and cells by (row, column)."""

    title: str
    rows: Mapping[str, str]
    columns: Mapping[str, str]
    cells: Mapping[tuple[str, str], TableCell]


def draw_heat_maps(lines: Sequence[Sequence[Grid]], what: str = "", notes: Sequence[str] = ()) -> Figure:
    """Draw rows of heat maps, with row names at the left and column names above.

    Colors are those of the report. A cell that rests on too few rows has only a colored edge, and a ◦. The corner
    explains columns and rows, in two lines.
    """
    grids = [grid for line in lines for grid in line]
    has_intervals = any(cell.interval for grid in grids for cell in grid.cells.values())
    across, up = (78, 38) if has_intervals else (46, 26)
    aboves = [_room_above(grid, across) for grid in grids]
    names = [*what.split("\n"), *(_join(*row, "  ") for grid in grids for row in grid.rows.items())]
    left = 26 + max(map(text_width, names))
    room = Room(left=left, right=12, top=30 + max(aboves), bottom=10, across=left, down=44 + max(aboves))
    row_heights = [up * max(len(grid.rows) for grid in line) for line in lines]
    n_columns = max(len(grid.columns) for grid in grids)
    figure, panels = make_grid(row_heights, max(map(len, lines)), across * n_columns, room, notes=notes)
    for line, of_line in zip(panels, lines, strict=True):
        for axes, grid in zip(line, of_line, strict=True):
            axes.set(xlim=(0, n_columns), ylim=(len(grid.rows), 0))
            _draw_names(axes, grid, is_level=_is_level(grid, across))
            for (row, column), cell in grid.cells.items():
                corner = [*grid.columns].index(column), [*grid.rows].index(row)
                _draw_cell(axes, cell, corner, edge=4 / across)
            write_above(axes, grid.title, _room_above(grid, across) + 8, fontsize=12)
            write_above(axes, what, 6, fontsize=9, color=SOFT, ha="right")
    return figure


def _is_level(grid: Grid, width: float) -> bool:
    """Return whether all column names fit horizontally in this width."""
    return all(text_width(short_name(name)) <= width for name in grid.columns)


def _room_above(grid: Grid, width: float) -> float:
    """Return the height in pixels of the column names and their counts."""
    is_counted = any(grid.columns.values())
    if _is_level(grid, width):
        return 40.0 if is_counted else 24.0
    return 14 + 46 * is_counted + max(text_width(short_name(name)) for name in grid.columns)


def _draw_names(axes: Axes, grid: Grid, *, is_level: bool) -> None:
    columns = [_join(name, note, "\n" if is_level else "  ") for name, note in grid.columns.items()]
    rotation = 0 if is_level else 90
    axes.set_xticks([number + 0.5 for number in range(len(columns))], columns, color=INK, rotation=rotation)
    axes.xaxis.tick_top()
    rows = [_join(name, note, "  ") for name, note in grid.rows.items()]
    axes.set_yticks([number + 0.5 for number in range(len(rows))], rows, color=INK)
    axes.tick_params(top=False, left=False)
    axes.spines[:].set_visible(False)


def _join(name: str, note: str, between: str) -> str:
    return f"{short_name(name)}{between}{note}" if note else short_name(name)


def _draw_cell(axes: Axes, cell: TableCell, corner: tuple[int, int], edge: float) -> None:
    style = color_box(axes, cell, corner, (1, 1), edge=edge, ink=SOFT)
    axes.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor=LINE, clip_on=False))
    x, y = corner[0] + 0.5, corner[1] + (0.38 if cell.interval else 0.5)
    text = f"{'◦ ' if cell.weak and cell.value is not None else ''}{drop_zeros(cell.text)}"
    axes.text(x, y, text, ha="center", **style)
    axes.text(x, corner[1] + 0.75, drop_zeros(cell.interval), fontsize=8, ha="center", **style)
