"""Which key a TOML file gives twice, and in which lines: tomllib says only where it stopped."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from typing import Any

from biasspark.config.wording import show_key

_KEY_PART = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
KEY = rf"{_KEY_PART}(?:\s*\.\s*{_KEY_PART})*"
_REPEATS = ("Cannot overwrite a value", "Cannot declare", "Duplicate inline table key")
_STATEMENT = re.compile(rf"\s*(?:\[\[?\s*(?P<table>{KEY})\s*\]|(?P<key>{KEY})\s*=)")
_IN_LINE = re.compile(r"\(at line ([0-9]+)")
_MARKER = "_biasspark_marker"


def split_key(dotted: str) -> list[str]:
    """Split a dotted TOML key into its parts; none if TOML refuses it (a bad escape in a quoted part)."""
    try:
        node: Any = tomllib.loads(f"{dotted} = 0")
    except ValueError:
        return []
    parts = []
    while isinstance(node, dict):
        part, node = next(iter(node.items()))
        parts.append(part)
    return parts


def find_repeated_key(text: str, message: str) -> str:
    """Return the fault of a key or a table that a TOML text gives twice; "" if that is not what tomllib complains of.

    Parameters
    ----------
    text
        What tomllib refuses.
    message
        What it says: the kind of fault, and the line where it noticed it, which is the last one of the second value.
    """
    if not message.startswith(_REPEATS):
        return ""
    lines = text.split("\n")
    numbered = _IN_LINE.search(message)
    last = int(numbered[1]) if numbered else len(lines)
    if message.startswith("Duplicate inline table key"):
        key = message.removeprefix("Duplicate inline table key ").partition(" (at ")[0]
        return f"line {last}: the key {key} is given twice in one table. A key has one value. Rename or remove one."
    start = next((start for start in range(last, 0, -1) if _begins_statement(lines, start, last)), 0)
    found = _STATEMENT.match("\n".join(lines[start - 1 : last])) if start else None
    if not found:
        return ""
    table = [] if found["table"] else _find_table(lines[: start - 1])
    key_path = split_key(found["table"] or found["key"])
    first = _find_first(lines, start, [*table, *key_path])
    if not first:
        return ""
    again = f"is given in line {first} and again in line {start}"
    if found["table"]:
        return f"[{_show(key_path)}] {again}. A table is given once. Move its keys into one, or rename one."
    where = f"[{_show(table)}] " if table else ""
    return f"{where}{_show(key_path)} {again}. A key has one value. Rename or remove one."


def _begins_statement(lines: Sequence[str], start: int, last: int) -> bool:
    """Say whether a key and its value, or the head of a table, stand in these lines alone."""
    before, statement = lines[: start - 1], lines[start - 1 : last]
    return _parse(before) is not None and bool(_parse(statement))


def _find_table(lines: Sequence[str]) -> list[str]:
    """Return the path of the table to which a key after these lines would belong."""
    return _find_marker(_parse([*lines, f"{_MARKER} = 0"])) or []


def _find_marker(node: Any) -> list[str] | None:
    node = node[-1] if isinstance(node, list) and node else node
    if not isinstance(node, dict):
        return None
    if _MARKER in node:
        return []
    paths = ((part, _find_marker(inner)) for part, inner in node.items())
    return next(([part, *path] for part, path in paths if path is not None), None)


def _find_first(lines: Sequence[str], start: int, path: Sequence[str]) -> int:
    """Return the line before `start` in which a key is first given; 0 if there is none."""
    n_before = next((n for n in range(start - 1, -1, -1) if _lacks(_parse(lines[:n]), path)), start - 1)
    return n_before + 1 if n_before < start - 1 else 0


def _lacks(document: Any, path: Sequence[str]) -> bool:
    """Say whether a text that can be parsed lacks a key."""
    if document is None:
        return False
    for part in path:
        document = document[-1] if isinstance(document, list) and document else document
        if not isinstance(document, dict) or part not in document:
            return True
        document = document[part]
    return False


def _parse(lines: Sequence[str]) -> dict[str, Any] | None:
    try:
        return tomllib.loads("\n".join(lines))
    except (ValueError, RecursionError):
        return None


def _show(path: Sequence[str]) -> str:
    return ".".join(map(show_key, path))
