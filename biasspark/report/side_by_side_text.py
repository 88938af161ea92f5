"""Two models side by side as text for a terminal of 120 columns, as Markdown, and as CSV."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from itertools import accumulate

from biasspark.columns import SUMMARIZED_AUCS, SUMMARIZED_GAPS
from biasspark.report.cells import WIDE, Row, drop_zeros, format_decimal, is_weak
from biasspark.report.definitions import SUITE, SUITE_TITLES, describe_bias
from biasspark.report.side_by_side import WORST_AUC, SideBySide, is_worse
from biasspark.report.text_formats import escape_markdown, markdown_table, write_csv
from biasspark.text import cut_to_width, measure_width, show_visibly

LINE_WIDTH = 120
NAME_WIDTH = 38
LONGEST_NAME = 200
MAX_GAP = 3
N_HEADS = 3
WORSE = "!"
WEAK, WEAK_IN_MARKDOWN = "?", "◦"
UNPAIRED = "A and B count different numbers of rows: some rows lack a score"

Block = list[str]
"""Lines of equal width that are put next to other blocks."""


# ---- for a terminal


def format_text(comparison: SideBySide, digits: int = 3) -> str:
    """Return a comparison as text: one table per slice, a row per identity, and below them the meaning of the marks.

    If the metrics of a row exceed 120 columns in any slice, the gaps are below the AUCs. Long names continue on lines
    of their own.
    """
    first, second = map(show_visibly, comparison.request.models)
    notes: dict[str, str] = {}
    layouts = [_Layout(part.rows, digits, notes) for part in comparison.slices]
    groups = (SUITE,) if all(layout.fits for layout in layouts) else (SUMMARIZED_AUCS, SUMMARIZED_GAPS)
    lines = [f"A: {first}   B: {second}", show_visibly(comparison.source), ""]
    for part, layout in zip(comparison.slices, layouts, strict=True):
        lines.append(f"slice {show_visibly(part.name)}: {comparison.describe_size(part)}")
        named = (("bias",),) if any(map(_biases, part.rows)) else ()
        lines += [*(layout.lines((*groups, *named)) if part.rows else ()), ""]
    shown = [row for part in comparison.slices for row in part.rows]
    has_weak = any(_is_weak(row, name, side) for row in shown for name in SUITE for side in ("first", "second"))
    lines += [
        "diff: B - A for an AUC (best is 1), |B| - |A| for a gap (AEG, best is 0). pos%: percent positive.",
        f"{WORSE} B is worse: after a difference, in that metric; before a name, in the lowest of the three AUCs.",
        *([f"{WEAK} its interval is missing or wider than {WIDE:g}: too few rows."] if has_weak else ()),
        *(f"{mark} {text}" for text, mark in notes.items()),
    ]
    return "".join(f"{line}\n" for line in lines)


def _mark(notes: dict[str, str], text: str) -> str:
    """Return the mark of a text that stands below the tables, ``(a)`` for the first."""
    return notes.setdefault(text, f"({chr(ord('a') + len(notes))})")


class _Layout:
    """The blocks of one slice: the columns before the metrics, each metric, and the rests of long names."""

    def __init__(self, rows: Sequence[Row], digits: int, notes: dict[str, str]) -> None:
        names = [wrap_name(cut_to_width(show_visibly(row["identity"]), LONGEST_NAME)) for row in rows]
        self.rests = [rest for _, *rest in names]
        self.lead = _lead_block(rows, [first for first, *_ in names], digits, notes)
        self.metrics = {name: _metric_block(rows, name, digits, notes) for name in SUITE}
        self.metrics["bias"] = _bias_block(rows)

    @property
    def fits(self) -> bool:
        """Whether all metrics fit on one line."""
        blocks = (self.lead, *(self.metrics[name] for name in SUITE))
        return sum(measure_width(block[0]) + 1 for block in blocks) - 1 <= LINE_WIDTH

    def lines(self, groups: Iterable[Sequence[str]]) -> list[str]:
        """Return the lines of the table, each group of metrics below the one before."""
        lines: list[str] = []
        for names in groups:
            joined = _join([self.lead, *(self.metrics[name] for name in names)])
            lines += ["", *joined[:N_HEADS]] if lines else joined[:N_HEADS]
            for row, rest in zip(joined[N_HEADS:], self.rests, strict=True):
                lines += [row, *(f"    {part}" for part in rest)]
        return lines


def wrap_name(name: str) -> list[str]:
    """Cut a name into lines that fit its column, after a space or a mark between words if there is one."""
    lines = []
    while measure_width(name) > NAME_WIDTH:
        fits = sum(width <= NAME_WIDTH for width in accumulate(map(measure_width, name)))
        cut = max(name.rfind(mark, 0, fits) for mark in " _&=-/") + 1
        lines.append(name[: cut or fits])
        name = name[cut or fits :]
    return [*lines, name]


def _lead_block(rows: Sequence[Row], names: Sequence[str], digits: int, notes: dict[str, str]) -> Block:
    """Return the mark, the name and the counts of each row."""
    columns = (
        [" ", *(WORSE if is_worse(row, WORST_AUC, digits) else "" for row in rows)],
        ["identity", *names],
        ["rows", *(_count(row, notes) for row in rows)],
        ["pos%", *map(_positive_rate, rows)],
    )
    padded = [_pad_column(column, right=number > 1) for number, column in enumerate(columns)]
    return _block("", [f"{mark} {name}  {count}  {rate}" for mark, name, count, rate in zip(*padded, strict=True)])


def _metric_block(rows: Sequence[Row], name: str, digits: int, notes: dict[str, str]) -> Block:
    """Return one metric of each row: of A, of B, and the difference with its mark, if any row has one."""
    columns = [["A"], ["B"], ["diff"]]
    for row in rows:
        marks = [WEAK if _is_weak(row, name, side) else "" for side in ("first", "second")]
        for column, (text, reason), mark in zip(columns, _metric_texts(row, name, digits), (*marks, ""), strict=True):
            column.append(_mark(notes, reason) if reason else mark + drop_zeros(text or "-"))
    lines = [" ".join(cells) for cells in zip(*(_pad_column(column, right=True) for column in columns), strict=True)]
    marks = [WORSE if is_worse(row, name, digits) else " " for row in rows]
    if WORSE in marks:
        lines = [line + mark for line, mark in zip(lines, (" ", *marks), strict=True)]
    return _block(SUITE_TITLES[name], lines)


def _bias_block(rows: Sequence[Row]) -> Block:
    """Return the bias of each row, of A and of B."""
    columns = zip(("A", "B"), *(_biases(row) or ("-", "-") for row in rows), strict=True)
    padded = [_pad_column(column, right=False) for column in columns]
    return _block("bias", ["  ".join(cells) for cells in zip(*padded, strict=True)])


def _biases(row: Row) -> list[str]:
    """Return the bias of A and of B in words; nothing where neither has one."""
    biases = [describe_bias(row, f"_{side}") for side in ("first", "second")]
    return [bias or "-" for bias in biases] if any(biases) else []


def _is_weak(row: Row, name: str, side: str) -> bool:
    """Return whether the metric of a model has a value that rests on too few rows."""
    ends = (row[f"{name}_{side}_{end}"] for end in ("low", "high"))
    return row[f"{name}_{side}"] is not None and is_weak(*ends)


def _count(row: Row, notes: dict[str, str]) -> str:
    first, second = _counts(row)
    return first if first == second else f"{first} {_mark(notes, UNPAIRED)}"


def _block(title: str, lines: Sequence[str]) -> Block:
    """Return a block with its title centered over it, and a rule below its first line, the headings."""
    width = max(measure_width(title), *map(measure_width, lines))
    heads, *rows = (line + " " * (width - measure_width(line)) for line in lines)
    return [title.center(width), heads, "-" * width, *rows]


def _pad_column(cells: Sequence[str], right: bool) -> list[str]:
    width = max(map(measure_width, cells))
    spaces = [" " * (width - measure_width(cell)) for cell in cells]
    return [space + cell if right else cell + space for cell, space in zip(cells, spaces, strict=True)]


def _join(blocks: Sequence[Block]) -> list[str]:
    """Put blocks next to each other, as far apart as the line allows."""
    rows = list(zip(*blocks, strict=True))
    room = LINE_WIDTH - sum(measure_width(cell) for cell in rows[0])
    gap = max(1, min(MAX_GAP, room // (len(blocks) - 1)))
    return [(" " * gap).join(cells).rstrip() for cells in rows]


# ---- for other programs


def format_markdown(comparison: SideBySide, digits: int = 3) -> str:
    """Return a comparison as Markdown: for each slice a heading and a table that GitHub renders.

    Differences for the worse are bold. Names are text: nothing in them is Markdown or HTML.
    """
    first, second, source = map(escape_markdown, (*comparison.request.models, comparison.source))
    lines = [
        f"A: {first}, B: {second}; {source}. Differences are B - A for an AUC (best is 1) and \\|B\\| - \\|A\\| for a "
        "gap (AEG, best is 0). B is worse in a metric if the difference is bold, and in the lowest of the three AUCs "
        f"if the row has an exclamation mark. {WEAK_IN_MARKDOWN} marks a value whose interval is missing or wider than "
        f"{WIDE:g}: too few rows."
    ]
    head = ["", "identity", "rows", "positive", "bias A", "bias B"]
    for name in SUITE:
        head += [f"{SUITE_TITLES[name]} A", "B", "\\|B\\| - \\|A\\|" if name in SUMMARIZED_GAPS else "B - A"]
    rule = [":-:", "---", "--:", "--:", "---", "---", *["--:"] * (len(head) - 6)]
    for part in comparison.slices:
        heading, size = escape_markdown(part.name), escape_markdown(comparison.describe_size(part))
        lines += ["", f"### Slice {heading}", "", f"{size}."]
        if part.rows:
            lines += ["", *markdown_table(head, rule, (_markdown_cells(row, digits) for row in part.rows))]
    return "".join(f"{line}\n" for line in lines)


def _markdown_cells(row: Row, digits: int) -> list[str]:
    first, second = _counts(row)
    rate = _positive_rate(row)
    cells = [
        WORSE if is_worse(row, WORST_AUC, digits) else "",
        escape_markdown(row["identity"]),
        first if first == second else f"{first} and {second} ({UNPAIRED})",
        rate if rate == "-" else f"{rate} %",
        *(_biases(row) or ("-", "-")),
    ]
    for name in SUITE:
        *values, (difference, _) = _metric_texts(row, name, digits)
        for side, (text, reason) in zip(("first", "second"), values, strict=True):
            mark = f"{WEAK_IN_MARKDOWN} " if _is_weak(row, name, side) else ""
            cells.append(mark + escape_markdown(text or reason or "-"))
        cells.append(f"**{difference}**" if is_worse(row, name, digits) else difference or "-")
    return cells


def format_csv(comparison: SideBySide, digits: int | None = None) -> str:  # noqa: ARG001 - as all formats are called
    """Return the rows of all slices as one table of CSV, with values in full precision (see `write_csv`)."""
    text = io.StringIO()
    rows = ([row[name] for name in comparison.columns] for part in comparison.slices for row in part.rows)
    write_csv(text, comparison.columns, rows)
    return text.getvalue()


def _metric_texts(row: Row, name: str, digits: int) -> list[tuple[str | None, str | None]]:
    """Return a metric of A, of B, and their difference, each with the reason why it is NULL, if one is known.

    An AUC has no sign, a gap and a difference have one.
    """
    return [
        (None, row.get(f"{name}_{side}_reason"))
        if row[f"{name}_{side}"] is None
        else (format_decimal(row[f"{name}_{side}"], digits, name in SUMMARIZED_GAPS or side == "difference"), None)
        for side in ("first", "second", "difference")
    ]


def _counts(row: Row) -> list[str]:
    counts = (row[f"n_subgroup_{side}"] for side in ("first", "second"))
    return ["-" if count is None else f"{count:,}" for count in counts]


def _positive_rate(row: Row) -> str:
    rate = row["positive_rate_first"]
    return "-" if rate is None else format_decimal(100 * rate, 1, signed=False)


FORMATS = {"text": format_text, "markdown": format_markdown, "csv": format_csv}
