"""Markdown and CSV in which no value is markup or a formula, and the files to which they are written."""

from __future__ import annotations

import csv
import html
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TextIO

from biasspark.errors import ConfigError
from biasspark.replaced_files import is_replaced, replacing
from biasspark.text import show_value, show_visibly

_MARKUP = re.compile(r"[\\`*\[\]|~$]|(?<![^\W_])_|_(?![^\W_])")
"""Inline Markdown. An underscore between letters or digits is not markup."""

_BLOCK = re.compile(r"^(\s*\d*)([#+=.)-])(?=[#+=-]*(?:\s|$))")
"""The beginning of a heading, a rule, or an item of a list."""

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters by which a spreadsheet takes text for a formula."""


def escape_markdown(text: str) -> str:
    """Escape text for Markdown, also within a table, and make invisible characters visible."""
    inline = _MARKUP.sub(r"\\\g<0>", html.escape(show_visibly(text), quote=False))
    return _BLOCK.sub(r"\1\\\2", inline)


def write_csv(file: TextIO, columns: Sequence[str], rows: Iterable[Iterable[object]]) -> int:
    """Write rows as CSV (RFC 4180), and return their number.

    NULL is empty, numbers have full precision, bytes are hexadecimal, and arrays of numbers are JSON. Text that a
    spreadsheet would take for a formula, because it begins with ``= + - @``, a tab or CR, is preceded by an apostrophe.
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
    if isinstance(value, bytes | bytearray):  # classic Spark 3.5 and 4.0 return bytearray
        return value.hex()
    if isinstance(value, list):
        return json.dumps(value, default=int)  # a Decimal in an array is a whole number
    return str(value).lower() if isinstance(value, bool) else value


@contextmanager
def open_out(path: Path) -> Iterator[TextIO]:
    """Open a file to replace its content with UTF-8 text, without translating line ends.

    A file that `is_replaced` keeps its content until the end, and if writing fails. Raises `ConfigError` if it cannot
    be written.
    """
    try:
        with (
            replacing(path) if is_replaced(path) else nullcontext(path) as written,
            written.open("w", encoding="utf-8", newline="") as file,
        ):
            yield file
    except OSError as error:
        if not path.parent.exists():
            folder = show_value(str(path.parent))
            raise ConfigError(f"out: the folder {folder} does not exist. Create it, or name another.") from None
        cause = (error.strerror or str(error)).lower()
        raise ConfigError(f"out: {show_value(str(path))} could not be written: {cause}. Name another file.") from None


def write_out(path: Path, text: str) -> None:
    """Write text to a file. Raises as `open_out`."""
    with open_out(path) as file:
        file.write(text)
