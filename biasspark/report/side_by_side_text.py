"""Two models side by side as text for a terminal of 120 columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from biasspark.columns import IDENTITY, SUMMARISED_AUCS, SUMMARISED_GAPS
from biasspark.config import cut_to_width, measure_width, show_visibly
from biasspark.report.side_by_side_metrics import (
    COMPARED,
    SUITE_TITLES,
    UNPAIRED,
    WORST_AUC,
    Row,
    drop_leading_zero,
    is_worse,
    say_missing,
    write_metric,
    write_value,
)
from biasspark.report.side_by_side_question import SideBySide

WIDEST_LINE = 120
WIDEST_NAME = 38
LONGEST_NAME = 200
WIDEST_GAP = 3
N_HEADS = 3
WORSE = "!"

Block = list[str]
"""Lines of equal width that stand beside other blocks."""


class Notes:
    """What stands below the tables in place of a value: each text once, with a letter."""

    def __init__(self) -> None:
        self._letters: dict[str, str] = {}

    def mark(self, text: str) -> str:
        """Return the mark of a text, ``(a)`` for the first."""
        return f"({self._letters.setdefault(text, chr(ord('a') + len(self._letters)))})"

    @property
    def lines(self) -> list[str]:
        """The texts with their marks."""
        return [f"({letter}) {text}" for text, letter in self._letters.items()]


def write_text(comparison: SideBySide, digits: int = 3) -> str:
    """Write a comparison as text.

    Returns
    -------
    str
        One table per slice, a row per identity; where the metrics of a row pass 120 columns in any slice, the gaps
        follow below the AUCs. Long names go on in lines of their own. Below the tables stands what the marks mean.
    """
    first, second = map(show_visibly, comparison.question.models)
    notes = Notes()
    layouts = [_lay_out(part.rows, digits, notes) for part in comparison.slices if part.rows]
    groups = (COMPARED,) if all(layout.fits for layout in layouts) else (SUMMARISED_AUCS, SUMMARISED_GAPS)
    tables = iter([layout.write(groups) for layout in layouts])
    lines = [f"A: {first}   B: {second}", show_visibly(comparison.source), ""]
    for part in comparison.slices:
        lines.append(f"slice {show_visibly(part.name)}: {comparison.describe_extent(part)}")
        lines += [*(next(tables) if part.rows else ()), ""]
    lines += [
        "diff: B - A for an AUC (best is 1), |B| - |A| for a gap (AEG, best is 0). pos%: percent positive.",
        f"{WORSE} B is worse: after a difference, in that metric; before a name, in the lowest of the three AUCs.",
        *notes.lines,
    ]
    return "".join(f"{line}\n" for line in lines)


@dataclass(frozen=True)
class _Layout:
    """The blocks of one slice: what stands before the metrics, each metric, and what is left of long names."""

    lead: Block
    metrics: Mapping[str, Block]
    rests: Sequence[Sequence[str]]

    @property
    def fits(self) -> bool:
        """Whether all metrics stand on one line."""
        return sum(measure_width(block[0]) + 1 for block in (self.lead, *self.metrics.values())) - 1 <= WIDEST_LINE

    def write(self, groups: Iterable[Sequence[str]]) -> list[str]:
        """Return the lines of the table, each group of metrics below the one before."""
        found: list[str] = []
        for names in groups:
            lines = _join([self.lead, *(self.metrics[name] for name in names)])
            heads, rows = lines[:N_HEADS], zip(lines[N_HEADS:], self.rests, strict=True)
            whole = [*heads, *(line for row, rest in rows for line in (row, *(f"    {part}" for part in rest)))]
            found += ["", *whole] if found else whole
        return found


def _lay_out(rows: Sequence[Row], digits: int, notes: Notes) -> _Layout:
    names = [wrap_name(cut_to_width(show_visibly(row[IDENTITY]), LONGEST_NAME)) for row in rows]
    lead = _write_lead(rows, [first for first, *_ in names], digits, notes)
    metrics = {name: _write_block(rows, name, digits, notes) for name in COMPARED}
    return _Layout(lead, metrics, [rest for _, *rest in names])


def wrap_name(name: str) -> list[str]:
    """Cut a name into lines that fit its column, behind a space or a mark between words where there is one."""
    lines = []
    while measure_width(name) > WIDEST_NAME:
        fits = sum(width <= WIDEST_NAME for width in accumulate(map(measure_width, name)))
        cut = max(name.rfind(mark, 0, fits) for mark in " _&=-/") + 1
        lines.append(name[: cut or fits])
        name = name[cut or fits :]
    return [*lines, name]


def _write_lead(rows: Sequence[Row], names: Sequence[str], digits: int, notes: Notes) -> Block:
    """Write the mark, the name and the counts of each row."""
    columns = (
        [" ", *(WORSE if is_worse(row, WORST_AUC, digits) else "" for row in rows)],
        ["identity", *names],
        ["rows", *(_write_count(row, notes) for row in rows)],
        ["pos%", *(_write_rate(row) for row in rows)],
    )
    padded = [_pad_column(column, right=place > 1) for place, column in enumerate(columns)]
    return _head("", [f"{mark} {name}  {count}  {rate}" for mark, name, count, rate in zip(*padded, strict=True)])


def _write_block(rows: Sequence[Row], name: str, digits: int, notes: Notes) -> Block:
    """Write one metric of each row: of A, of B, and the difference with its mark, if any row has one."""
    marks = [WORSE if is_worse(row, name, digits) else " " for row in rows]
    columns = (
        ["A", *(_write_value(row, name, "first", digits, notes) for row in rows)],
        ["B", *(_write_value(row, name, "second", digits, notes) for row in rows)],
        ["diff", *(_write_difference(row, name, digits) for row in rows)],
    )
    padded = [_pad_column(column, right=True) for column in columns]
    lines = [" ".join(cells) for cells in zip(*padded, strict=True)]
    if WORSE in marks:
        lines = [line + mark for line, mark in zip(lines, (" ", *marks), strict=True)]
    return _head(SUITE_TITLES[name], lines)


def _write_value(row: Row, name: str, side: str, digits: int, notes: Notes) -> str:
    written = write_metric(row, name, side, digits)
    if written is not None:
        return drop_leading_zero(written)
    reason = say_missing(row, name, side)
    return reason if reason == "-" else notes.mark(reason)


def _write_difference(row: Row, name: str, digits: int) -> str:
    difference = row[f"{name}_difference"]
    return "-" if difference is None else drop_leading_zero(write_value(difference, digits))


def _write_count(row: Row, notes: Notes) -> str:
    first, second = row["n_subgroup_first"], row["n_subgroup_second"]
    count = "-" if first is None else f"{first:,}"
    return count if first == second else f"{count} {notes.mark(UNPAIRED)}"


def _write_rate(row: Row) -> str:
    rate = row["positive_rate_first"]
    return "-" if rate is None else write_value(100 * rate, 1, signed=False)


def _head(title: str, lines: Sequence[str]) -> Block:
    """Put the title over the middle of a block, and a rule below its line of headings."""
    width = max(measure_width(title), *map(measure_width, lines))
    heads, *rows = (line + " " * (width - measure_width(line)) for line in lines)
    return [title.center(width), heads, "-" * width, *rows]


def _pad_column(cells: Sequence[str], right: bool) -> list[str]:
    width = max(map(measure_width, cells))
    spaces = [" " * (width - measure_width(cell)) for cell in cells]
    return [space + cell if right else cell + space for cell, space in zip(cells, spaces, strict=True)]


def _join(blocks: Sequence[Block]) -> list[str]:
    """Put blocks side by side, as far apart as the line allows."""
    rows = list(zip(*blocks, strict=True))
    room = WIDEST_LINE - sum(measure_width(cell) for cell in rows[0])
    gap = max(1, min(WIDEST_GAP, room // (len(blocks) - 1)))
    return [(" " * gap).join(cells).rstrip() for cells in rows]
