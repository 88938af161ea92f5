"""Text for people: values, keys, counts and widths, safe on a terminal and short enough for one line."""

from __future__ import annotations

import datetime
import difflib
import numbers
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

MAX_SHOWN_CHARACTERS = 80
MAX_SHOWN_ENTRIES = 6
NARROWEST = 12
NUMBER_IN_TEXT = "A number in text has a decimal point, and no comma, percent sign or placeholder such as NA."
"""What messages say of strings that should be numbers."""
INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def show_visibly(text: str) -> str:
    r"""Escape control and invisible characters, also lone surrogates, as ``\n``, ``\x1b`` or ``\u202e``.

    So are U+FFFE and U+FFFF, which XML, and so an SVG file, cannot hold.
    """
    return "".join(
        char.encode("unicode_escape").decode("ascii")
        if unicodedata.category(char) in INVISIBLE or char in "\ufffe\uffff"
        else char
        for char in text
    )


def show_value(value: object) -> str:
    """Format a value as TOML in one short line: ``"fast"``, ``true``, ``["a", "b"]``; or its type: ``a table``."""
    if isinstance(value, list | tuple):
        shown = ["a list" if _is_nested(entry) else show_value(entry) for entry in value[:MAX_SHOWN_ENTRIES]]
        more = ["..."] if len(value) > MAX_SHOWN_ENTRIES else []
        return f"[{', '.join(shown + more)}]"
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, numbers.Real):
        number = int(value) if isinstance(value, numbers.Integral) else float(value)
        is_long = isinstance(number, int) and abs(number) >= 10**18
        return f"a whole number of {int(number).bit_length()} bits" if is_long else repr(number)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return describe_type(value)


def _is_nested(value: object) -> bool:
    return isinstance(value, list | tuple) and any(isinstance(entry, list | tuple) for entry in value)


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
    """Format a key of a TOML table, with quotes only if needed."""
    return key if isinstance(key, str) and BARE_KEY.fullmatch(key) else show_value(key)


def list_choices(choices: Iterable[object]) -> str:
    """Join values for a message: ``"blocks", "windows"``."""
    return ", ".join(map(show_value, choices))


def list_first(texts: Sequence[str], most: int = 10) -> str:
    """Join at most `most` strings: ``a, b and 3 more``."""
    more = f" and {len(texts) - most:,} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


def format_count(number: int, singular: str, plural: str = "") -> str:
    """Format a count: ``1 model``, ``1,200 models``. The default plural adds an s."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def format_share(part: int, whole: int) -> str:
    """Format a share in percent: ``15%``; ``< 1%`` or ``> 99%`` for shares that only round to 0 or 100."""
    percent = round(100 * part / whole)
    if percent == 0 and part:
        return "< 1%"
    return "> 99%" if percent == 100 and part < whole else f"{percent}%"


def show_p_value(value: float, decimals: int = 4) -> str:
    """Format a p-value; if it is less than the last decimal, as ``< 0.0001``."""
    least = 10.0**-decimals
    return f"< {least:.{decimals}f}" if value < least else f"{value:.{decimals}f}"


def show_time(time: datetime.datetime) -> str:
    """Format a time in UTC, to the second: ``2026-01-15T09:30:00Z``."""
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"


def quote(text: str) -> str:
    """Return text in double quotes, escaped, and shortened if long."""
    cut = text if len(text) <= MAX_SHOWN_CHARACTERS else text[:MAX_SHOWN_CHARACTERS] + "..."
    return '"' + show_visibly(cut.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def closest_match(word: object, known: Sequence[str]) -> str | None:
    """Return the known word closest to a word; None if none is close.

    Words that share no more than a prefix, such as term_male and term_gay, are not close. Parts of each other are, and
    words of the same letters.
    """
    if not isinstance(word, str):
        return None
    closest = difflib.get_close_matches(word, known, cutoff=0.71)
    part, letters = word.lstrip("-"), sorted(word)
    meant = [name for name in known if name in closest or name in word or part in name or sorted(name) == letters]
    return next(iter(difflib.get_close_matches(word, meant, 1)), None)


def measure_width(text: str) -> int:
    """Count the terminal cells of a string: two for wide East Asian characters and emoji, none for accents."""
    return sum(map(_cells, text))


def cut_to_width(text: str, widest: int) -> str:
    """Cut text to a number of terminal cells, and end it with three dots."""
    if measure_width(text) <= widest:
        return text
    kept = sum(width <= widest - 3 for width in accumulate(map(_cells, text)))
    return text[:kept] + "..."


def narrow_widths(widths: Sequence[int], can_narrow: Sequence[bool], total: int) -> list[int]:
    """Narrow the widest columns that may be narrowed, to `NARROWEST` cells at least, until all fit into `total`."""
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
