"""Two models side by side for other programs: Markdown as GitHub reads it, and CSV for spreadsheets."""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Sequence

from biasspark.columns import IDENTITY, SUMMARISED_GAPS
from biasspark.config import show_visibly
from biasspark.report.side_by_side_metrics import (
    COMPARED,
    SUITE_TITLES,
    UNPAIRED,
    WORST_AUC,
    Row,
    is_worse,
    say_missing,
    write_metric,
    write_value,
)
from biasspark.report.side_by_side_question import SideBySide

_ACTIVE = re.compile(r"[\\`*\[\]|~$]|(?<![^\W_])_|_(?![^\W_])")
"""What Markdown obeys within a line. An underscore between letters or digits is a plain one."""

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""How text begins that a spreadsheet would take for a formula."""


def write_markdown(comparison: SideBySide, digits: int = 3) -> str:
    """Write a comparison as Markdown: for each slice a heading and a table that GitHub renders.

    Differences for the worse are bold. Names are shown as they are: nothing in them is obeyed as Markdown or HTML.
    """
    first, second, source = map(escape_markdown, (*comparison.question.models, comparison.source))
    lines = [
        f"A: {first}, B: {second}; {source}. Differences are B - A for an AUC (best is 1) and \\|B\\| - \\|A\\| for a "
        "gap (AEG, best is 0). B is worse in a metric if the difference is bold, and in the lowest of the three AUCs "
        "if the row has an exclamation mark."
    ]
    for part in comparison.slices:
        lines += ["", f"### Slice {escape_markdown(part.name)}", "", f"{_escape(comparison.describe_extent(part))}."]
        lines += ["", *_write_table(part.rows, digits)] if part.rows else []
    return "".join(f"{line}\n" for line in lines)


def write_csv(comparison: SideBySide, digits: int | None = None) -> str:  # noqa: ARG001 - as all writers are called
    """Write the rows of a comparison as CSV (RFC 4180), one table for all slices, with values in full precision.

    Returns
    -------
    str
        A line of headings and one per row, each ended by CR LF. NULL is empty. Text that a spreadsheet would take for a
        formula, because it begins with ``= + - @``, a tab or CR, gets an apostrophe before it; numbers are left alone.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(comparison.columns)
    for part in comparison.slices:
        writer.writerows([write_csv_cell(row[name]) for name in comparison.columns] for row in part.rows)
    return text.getvalue()


def escape_markdown(text: str) -> str:
    """Return text that Markdown shows as it is, also in a cell of a table, characters that no one sees spelt out."""
    return _escape(html.escape(show_visibly(text), quote=False))


def _escape(text: str) -> str:
    return _ACTIVE.sub(r"\\\g<0>", text)


def _write_table(rows: Sequence[Row], digits: int) -> list[str]:
    heads = ["", "identity", "rows", "positive"]
    for name in COMPARED:
        heads += [f"{SUITE_TITLES[name]} A", "B", "\\|B\\| - \\|A\\|" if name in SUMMARISED_GAPS else "B - A"]
    rule = [":-:", "---", *["--:"] * (len(heads) - 2)]
    lines = (heads, rule, *(_write_cells(row, digits) for row in rows))
    return [f"| {' | '.join(cells)} |" for cells in lines]


def _write_cells(row: Row, digits: int) -> list[str]:
    first, second, rate = row["n_subgroup_first"], row["n_subgroup_second"], row["positive_rate_first"]
    counts = ["-" if count is None else f"{count:,}" for count in (first, second)]
    cells = [
        "!" if is_worse(row, WORST_AUC, digits) else "",
        escape_markdown(row[IDENTITY]),
        counts[0] if first == second else f"{counts[0]} and {counts[1]} ({UNPAIRED})",
        "-" if rate is None else f"{write_value(100 * rate, 1, signed=False)} %",
    ]
    for name in COMPARED:
        values = [write_metric(row, name, side, digits) or say_missing(row, name, side) for side in ("first", "second")]
        cells += [*map(escape_markdown, values), _write_difference(row, name, digits)]
    return cells


def _write_difference(row: Row, name: str, digits: int) -> str:
    difference = row[f"{name}_difference"]
    if difference is None:
        return "-"
    written = write_value(difference, digits)
    return f"**{written}**" if is_worse(row, name, digits) else written


def write_csv_cell(value: object) -> str:
    """Write a value as a cell of CSV: NULL is empty, and text that begins as a formula does gets an apostrophe."""
    if value is None:
        return ""
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_FORMULA) else value
    return str(value).lower() if isinstance(value, bool) else str(value)
