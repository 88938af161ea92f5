"""Text for people: values, keys, counts and widths, safe on a terminal and short enough for one line."""

from __future__ import annotations

import datetime
import difflib
import math
import numbers
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

MOST_SHOWN_CHARACTERS = 80
MOST_SHOWN_ENTRIES = 6
NARROWEST = 12
INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def show_visibly(text: str) -> str:
    r"""Escape the characters that a terminal would obey or hide: controls, escapes, direction marks, zero widths.

    Each, lone surrogates included, becomes ``\n``, ``\x1b`` or ``\u202e``; the rest is unchanged.
    """
    return "".join(
        char.encode("unicode_escape").decode("ascii") if unicodedata.category(char) in INVISIBLE else char
        for char in text
    )


def show_value(value: object) -> str:
    """Return a value as TOML writes it, on one line, cut where it is long.

    For example ``"fast"``, ``0.5``, ``true``, ``["a", "b"]``. What TOML cannot write is described: ``a table``.
    """
    if isinstance(value, list | tuple):
        return _show_list(value)
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, numbers.Real):
        return _show_number(value)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return describe_type(value)


def describe_type(value: object) -> str:
    """Return the type of a value in words: ``text``, ``a whole number``, ``a table``, ..."""
    types: tuple[tuple[type | tuple[type, ...], str], ...] = (
        (str, "text"),
        (bool, "a boolean"),
        (numbers.Integral, "a whole number"),
        (numbers.Real, "a number"),
        ((list, tuple), "a list"),
        (Mapping, "a table"),
        ((datetime.date, datetime.time), "a date or time"),
        (type(None), "None"),
    )
    return next(
        (words for kind, words in types if isinstance(value, kind)), f"an object of type {type(value).__name__}"
    )


def show_key(key: object) -> str:
    """Return a key of a TOML table, quoted only where TOML needs it."""
    return key if isinstance(key, str) and BARE_KEY.fullmatch(key) else show_value(key)


def list_choices(choices: Iterable[object]) -> str:
    """Join values for a message: ``"blocks", "windows"``."""
    return ", ".join(map(show_value, choices))


DECIMAL_POINT = (
    "A number in text has a decimal point: where it has a comma, correct the data, or read a view with "
    "replace(x, ',', '.')."
)
"""What to do about texts that should be numbers and are not, as 0,5."""


def list_first(texts: Sequence[str], most: int) -> str:
    """Join texts, only the first of many: ``a, b and 3 more``."""
    more = f" and {len(texts) - most:,} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


def format_count(number: int, singular: str, plural: str = "") -> str:
    """Return a number of things: ``1 model``, ``1,200 models``; the plural is the singular and an s unless given."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def format_share(part: int, whole: int) -> str:
    """Return a share in per cent: ``15%``. Near an end, without reaching it, it is ``< 1%`` or ``> 99%``."""
    percent = round(100 * part / whole)
    if percent == 0 and part:
        return "< 1%"
    return "> 99%" if percent == 100 and part < whole else f"{percent}%"


def show_p_value(value: float, decimals: int = 4) -> str:
    """Return a p-value in so many decimals; a smaller one as ``< 0.0001``."""
    least = 10.0**-decimals
    return f"< {least:.{decimals}f}" if value < least else f"{value:.{decimals}f}"


def quote(text: str) -> str:
    """Return text in double quotes, visibly and cut where it is long."""
    cut = text if len(text) <= MOST_SHOWN_CHARACTERS else text[:MOST_SHOWN_CHARACTERS] + "..."
    return '"' + show_visibly(cut.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def closest_match(word: object, known: Sequence[str]) -> str | None:
    """Return the known word that a word resembles most, None if it resembles none."""
    return next(iter(difflib.get_close_matches(word, known, 1)), None) if isinstance(word, str) else None


def measure_width(text: str) -> int:
    """Count the terminal cells that text takes: two for wide East Asian characters and emoji, none for accents."""
    return sum(map(_cells, text))


def cut_to_width(text: str, widest: int) -> str:
    """Cut text that takes more than so many terminal cells, and end it with three dots."""
    if measure_width(text) <= widest:
        return text
    kept = sum(width <= widest - 3 for width in accumulate(map(_cells, text)))
    return text[:kept] + "..."


def narrow_widths(widths: Sequence[int], can_narrow: Sequence[bool], total: int) -> list[int]:
    """Narrow the widest of the columns that may be narrowed until all columns take ``total`` cells together.

    None is narrowed below `NARROWEST` cells, so columns may still take more.
    """
    narrowed = list(widths)
    for _ in range(sum(widths) - total):
        wide = [column for column, cells in enumerate(narrowed) if can_narrow[column] and cells > NARROWEST]
        if not wide:
            break
        narrowed[max(wide, key=narrowed.__getitem__)] -= 1
    return narrowed


def _cells(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _show_list(entries: list[object] | tuple[object, ...]) -> str:
    shown = [
        "a list" if isinstance(entry, list | tuple) else show_value(entry) for entry in entries[:MOST_SHOWN_ENTRIES]
    ]
    more = ["..."] if len(entries) > MOST_SHOWN_ENTRIES else []
    return f"[{', '.join(shown + more)}]"


def _show_number(value: numbers.Real) -> str:
    if isinstance(value, numbers.Integral):
        whole = int(value)
        return str(whole) if abs(whole) < 10**18 else f"a whole number of {whole.bit_length()} bits"
    number = float(value)
    return repr(number) if math.isfinite(number) else str(number)
