"""Trees of segments, drawn from left to right: a node's children are at its right."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from biasspark.plot.panels import INK, SOFT, Room, color_box, make_grid, write_above
from biasspark.report.attributions import Tree, TreeNode
from biasspark.report.cells import drop_zeros, show_p, show_percent
from biasspark.text import cut_to_width

_WIDTH, _GAP = 236.0, 44.0
"""The width of a node, and the gap to its children, in pixels."""
_LINE, _VALUE, _PAD = 15.0, 24.0, 8.0
"""The height of a line of text, that of the line with the value, and the space below and between nodes, in pixels."""
_LETTERS, _MAX_LINES = 38, 5
"""The letters per line of a rule, and the most lines drawn of it."""


def draw_trees(trees: Sequence[Tree], notes: Sequence[str] = ()) -> Figure:
    """Draw trees below each other; a node shows its value with the interval, the gain of its split, and its rows."""
    depth = max(node.row["node_id"].bit_length() for tree in trees for node in list_nodes(tree.root))
    row_heights = [sum(_height(leaf) + _PAD for leaf in tree.root.leaves()) for tree in trees]
    room = Room(left=8, right=8, top=40, bottom=8, down=48)
    figure, grid = make_grid(row_heights, 1, depth * (_WIDTH + _GAP) - _GAP, room, notes=notes)
    for [axes], tree, height in zip(grid, trees, row_heights, strict=True):
        axes.set_axis_off()
        axes.set(xlim=(0, depth * (_WIDTH + _GAP) - _GAP), ylim=(height, 0))
        _draw_node(axes, tree.root, 0, 0.0)
        write_above(axes, f"{tree.title} ({tree.best})", 14, fontsize=12)
    return figure


def list_nodes(node: TreeNode) -> Iterator[TreeNode]:
    """Yield a node and its descendants."""
    yield node
    for child in node.children:
        yield from list_nodes(child)


def _texts(node: TreeNode) -> list[str]:
    """Return the lines below the value of a node: its rule, its rows and what was tested."""
    row = node.row
    rule = textwrap.wrap(node.rule, _LETTERS, subsequent_indent="  ")
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
        axes.plot([right, bend, bend, right + _GAP], [middle, middle, below, below], color=SOFT, linewidth=1)
    return middle, bottom


def _draw_box(axes: Axes, node: TreeNode, x: float, y: float) -> None:
    cell, height = node.cell, _height(node)
    text = color_box(axes, cell, (x, y), (_WIDTH, _VALUE), edge=4, ink=INK)
    style = {"linestyle": "--", "linewidth": 1.5} if node.is_contradicted else {"linewidth": 1}
    axes.add_patch(Rectangle((x, y), _WIDTH, height, fill=False, edgecolor=SOFT, clip_on=False, **style))
    value = f"{'◦ ' if cell.weak else ''}{drop_zeros(cell.text)}"
    axes.text(x + _PAD, y + _VALUE / 2, value, fontsize=12, **text)
    axes.text(x + _WIDTH - _PAD, y + _VALUE / 2, drop_zeros(cell.interval), ha="right", fontsize=9, **text)
    for number, line in enumerate(_texts(node)):
        axes.text(x + _PAD, y + _VALUE + _LINE * (number + 0.7), line, va="center", fontsize=10, color=INK)
