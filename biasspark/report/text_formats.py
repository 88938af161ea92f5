"""Text for other programs: Markdown and CSV in which no value is markup or a formula, and the files they go to."""

from __future__ import annotations

import csv
import html
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from biasspark.errors import ConfigError
from biasspark.text import show_value, show_visibly

_MARKUP = re.compile(r"[\\`*\[\]|~$]|(?<![^\W_])_|_(?![^\W_])")
"""Markdown within a line. An underscore between letters or digits is a plain one."""

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters of text that a spreadsheet takes for a formula."""


def escape_markdown(text: str) -> str:
    """Return text that Markdown shows as it is, also in a table, with invisible characters escaped."""
    return _MARKUP.sub(r"\\\g<0>", html.escape(show_visibly(text), quote=False))


def markdown_table(head: Sequence[str], rule: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table of escaped cells; ``rule`` aligns its columns."""
    return [f"| {' | '.join(cells)} |" for cells in (head, rule, *rows)]


def write_csv(file: TextIO, columns: Sequence[str], rows: Iterable[Iterable[object]]) -> int:
    """Write rows as CSV (RFC 4180), and return how many they are.

    NULL is empty, and numbers have full precision. Text that a spreadsheet would take for a formula, because it begins
    with ``= + - @``, a tab or CR, gets an apostrophe before it.
    """
    writer = csv.writer(file, lineterminator="\r\n")
    writer.writerow(columns)
    n_rows = 0
    for row in rows:
        writer.writerow(map(_csv_cell, row))
        n_rows += 1
    return n_rows


def _csv_cell(value: object) -> object:
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_FORMULA) else value
    return str(value).lower() if isinstance(value, bool) else value


@contextmanager
def open_out(path: Path) -> Iterator[TextIO]:
    """Open a file to replace its content by UTF-8 text, with line ends as they are.

    Raises `ConfigError` if it cannot be written.
    """
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            yield file
    except OSError as error:
        raise ConfigError(
            f"out: {show_value(str(path))}, {error.strerror or error}. It could not be written. Name another file."
        ) from None


def write_out(path: Path, text: str) -> None:
    """Write text to a file. Raises as `open_out`."""
    with open_out(path) as file:
        file.write(text)
