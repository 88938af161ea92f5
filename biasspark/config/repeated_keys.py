"""Which key a TOML file gives twice, and in which lines: tomllib names only the line where it stopped."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from typing import Any

from biasspark.text import show_key

_KEY_PART = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
KEY = rf"{_KEY_PART}(?:\s*\.\s*{_KEY_PART})*"
_REPEATS = ("Cannot overwrite a value", "Cannot declare", "Duplicate inline table key")
_STATEMENT = re.compile(rf"\s*(?:\[\[?\s*(?P<table>{KEY})\s*\]|(?P<key>{KEY})\s*=)")
_IN_LINE = re.compile(r"\(at line ([0-9]+)")


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


def repeated_key(text: str, message: str) -> str:
    """Return the fault of a key or a table that a TOML text gives twice, by tomllib's message; "" for other faults."""
    if not message.startswith(_REPEATS):
        return ""
    lines = text.split("\n")
    numbered = _IN_LINE.search(message)
    last = int(numbered[1]) if numbered else len(lines)
    if message.startswith("Duplicate inline table key"):
        key = message.removeprefix("Duplicate inline table key ").partition(" (at ")[0]
        return f"line {last}: the key {key} is given twice in one table. A key has one value. Rename or remove one."
    # The second statement is the shortest end of the lines that can be parsed alone, and after what precedes it.
    start = next(
        (n for n in range(last, 0, -1) if None not in (_parse(lines[: n - 1]), _parse(lines[n - 1 : last]))), 1
    )
    before, repeat = _parse(lines[: start - 1]), lines[start - 1 : last]
    statement = _STATEMENT.match("\n".join(repeat))
    # The first one begins behind the longest beginning of the lines that the second one does not contradict.
    first = next((n + 1 for n in range(start - 2, -1, -1) if _parse([*lines[:n], *repeat]) is not None), start)
    heads = (_STATEMENT.match(lines[n - 1]) for n in range(first, 0, -1) if _parse(lines[: n - 1]) is not None)
    table = next((head["table"] for head in heads if head and head["table"]), "")
    if statement and statement["table"]:
        path, what = split_key(statement["table"]), "A table is given once. Move its keys into one, or rename one."
        where = f"[{'.'.join(map(show_key, path))}]"
    elif statement:
        path, what = split_key(statement["key"]), "A key has one value. Rename or remove one."
        where = f"{table and f'[{table}] '}{'.'.join(map(show_key, path))}"
        path = [*(split_key(table) if table else []), *path]
    if not statement or first == start or not _has(before, path):
        return ""
    return f"{where} is given in line {first} and again in line {start}. {what}"


def _has(document: Any, path: Sequence[str]) -> bool:
    """Return whether a document has a key."""
    for part in path:
        document = document[-1] if isinstance(document, list) and document else document
        if not isinstance(document, dict) or part not in document:
            return False
        document = document[part]
    return True


def _parse(lines: Sequence[str]) -> dict[str, Any] | None:
    try:
        return tomllib.loads("\n".join(lines))
    except (ValueError, RecursionError):
        return None
