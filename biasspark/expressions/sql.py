"""Quote names and strings for SQL, safe against injection. No Spark."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED = re.compile(
    "all|and|any|as|asc|between|both|case|cast|check|collate|column|constraint|create|cross|current_date|current_time|"
    "current_timestamp|current_user|default|desc|distinct|else|end|except|exists|false|fetch|filter|for|foreign|from|"
    "full|grant|group|having|in|inner|intersect|interval|into|is|join|lateral|leading|left|like|limit|natural|not|null|"
    "offset|on|only|or|order|outer|overlaps|primary|references|right|select|session_user|some|table|then|time|to|"
    "trailing|true|union|unique|user|using|values|when|where|with",
    re.IGNORECASE,
)


def quote_name(name: str) -> str:
    """Quote one part of a name so that Spark SQL reads it literally."""
    return "`" + name.replace("`", "``") + "`"


def quote_names(names: Iterable[str]) -> str:
    """Return columns as a Spark SQL list: many names in one text need only one call to the JVM."""
    return ", ".join(map(quote_name, names))


def quote_string(text: str) -> str:
    """Return a Spark SQL literal; characters that could end it or a statement are escaped."""
    return "'" + re.sub(r"[\x00-\x1f\x7f'\"\\;]", lambda match: f"\\u{ord(match[0]):04x}", text) + "'"


def write_name(name: str) -> str:
    """Return a column's name as SQL: unchanged if it is a name in Spark and in DuckDB, else in backquotes."""
    return name if _PLAIN_NAME.fullmatch(name) and not _RESERVED.fullmatch(name) else quote_name(name)


def write_text(text: str) -> str:
    """Return a string as SQL that is valid in both dialects: quotes, escapes and variables are written as numbers."""
    parts = []
    for special, run in groupby(text, key=lambda char: char in "'\\$"):
        chars = list(run)
        parts += [f"chr({ord(char)})" for char in chars] if special else [f"'{''.join(chars)}'"]
    return parts[0] if len(parts) == 1 else f"concat({', '.join(parts)})" if parts else "''"
