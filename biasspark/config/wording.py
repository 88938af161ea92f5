"""How names and values are shown to a reader, safely on a terminal and short enough for one line."""

from __future__ import annotations

import datetime
import math
import numbers
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

MOST_SHOWN_CHARACTERS = 80
MOST_SHOWN_ENTRIES = 6
NARROWEST = 12
UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def show_visibly(text: str) -> str:
    r"""Write out the characters that a terminal would obey or hide: controls, escapes, direction marks, zero widths.

    Parameters
    ----------
    text
        Any text, lone surrogates included.

    Returns
    -------
    str
        The text with each such character as ``\n``, ``\x1b`` or ``\u202e``; the rest unchanged.
    """
    return "".join(
        char.encode("unicode_escape").decode("ascii") if unicodedata.category(char) in UNSEEN else char for char in text
    )


def show_value(value: object) -> str:
    """Show a value of the configuration as TOML would write it, on one line and cut where it is long.

    Parameters
    ----------
    value
        Anything at all; what TOML has no form for is described (``a table``).

    Returns
    -------
    str
        For instance ``"fast"``, ``0.5``, ``true``, ``["a", "b"]``, ``a table``.
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
    return describe_kind(value)


def describe_kind(value: object) -> str:
    """Say what a value is, in the words of the messages: ``text``, ``a whole number``, ``a table``, ..."""
    kinds: tuple[tuple[type | tuple[type, ...], str], ...] = (
        (str, "text"),
        (bool, "true or false"),
        (numbers.Integral, "a whole number"),
        (numbers.Real, "a number"),
        ((list, tuple), "a list"),
        (Mapping, "a table"),
        ((datetime.date, datetime.time), "a date or time"),
        (type(None), "None"),
    )
    name = type(value).__name__
    other = f"an {name}" if name[0] in "AEIOaeio" else f"a {name}"
    return next((kind for types, kind in kinds if isinstance(value, types)), other)


def show_key(key: object) -> str:
    """Show a key of a TOML table, quoted only where TOML needs it."""
    return key if isinstance(key, str) and BARE_KEY.fullmatch(key) else show_value(key)


def list_choices(choices: Iterable[object]) -> str:
    """Join choices for a message: ``"blocks", "windows"``."""
    return ", ".join(map(show_value, choices))


def list_first(texts: Sequence[str], most: int) -> str:
    """Join texts, only the first of many: ``a, b and 3 more``."""
    more = f" and {len(texts) - most:,} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


def say_count(number: int, one: str, many: str = "") -> str:
    """Say how many there are of something: ``1 model``, ``1,200 models``; ``many`` where it is not ``one`` and an s."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def show_p_value(value: float, decimals: int = 4) -> str:
    """Write a p-value; where decimals cannot tell it from 0, only that it is lower than the least that they show."""
    least = 10.0**-decimals
    return f"< {least:.{decimals}f}" if value < least else f"{value:.{decimals}f}"


def quote(text: str) -> str:
    """Put text in double quotes, visibly and cut where it is long."""
    cut = text if len(text) <= MOST_SHOWN_CHARACTERS else text[:MOST_SHOWN_CHARACTERS] + "..."
    return '"' + show_visibly(cut.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def measure_width(text: str) -> int:
    """Count the cells of a terminal that text takes: two for wide East Asian characters and emoji, none for accents."""
    return sum(_cells_of(character) for character in text)


def cut_to_width(text: str, widest: int) -> str:
    """Cut text that takes more than so many cells of a terminal, and end it with three dots."""
    if measure_width(text) <= widest:
        return text
    kept = sum(width <= widest - 3 for width in accumulate(map(_cells_of, text)))
    return text[:kept] + "..."


def narrow_widths(widths: Sequence[int], can_narrow: Sequence[bool], total: int) -> list[int]:
    """Narrow the widest of those columns that may be narrowed until all columns take ``total`` cells together.

    None is narrowed below `NARROWEST` cells, so columns may still take more.
    """
    narrowed = list(widths)
    for _ in range(sum(widths) - total):
        places = [place for place, cells in enumerate(narrowed) if can_narrow[place] and cells > NARROWEST]
        if not places:
            break
        narrowed[max(places, key=narrowed.__getitem__)] -= 1
    return narrowed


def _cells_of(character: str) -> int:
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
