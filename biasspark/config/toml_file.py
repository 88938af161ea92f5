"""The files of a configuration: TOML, what ``--set`` changes, what relative paths mean, and where tables cannot be."""

from __future__ import annotations

import copy
import glob
import os
import posixpath
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from biasspark.errors import ABSENT, ConfigError, Fault
from biasspark.text import quote, show_key, show_visibly

URI_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PARTS = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):(?://([^/]*))?)?(.*)", re.DOTALL)
_PATTERN = re.compile(r"[*?\[\]{}\\\x00-\x1f]")
_SHARED = {"file", "hdfs", "webhdfs", "swebhdfs", "viewfs"}
"""Schemes whose host is a file system. In others it is a bucket or a container, often made for one purpose."""


def locate(path: str, base: Path) -> str:
    """Return an absolute path or a URI for a path of the configuration, which is in the folder ``base``.

    A path with a URI scheme (``s3a://``, ``hdfs://``, ``file:/``) and an absolute path stay as they are. A relative one
    is looked up in the folder of the configuration; if nothing is there, it is taken from the working folder. A pattern
    is there when it matches something.
    """
    if URI_SCHEME.match(path) or os.path.isabs(path):
        return path
    in_base = os.path.abspath(base / path)
    matches = glob.iglob(path, root_dir=base) if glob.has_magic(path) else ()
    return in_base if os.path.lexists(in_base) or any(True for _ in matches) else os.path.abspath(path)


def is_within(path: str, folder: str) -> bool:
    """Return whether a path is a folder, which may be a pattern, or lies in one."""
    inner, pattern = (PurePosixPath(os.path.normpath(re.sub("^file:/+", "/", text))) for text in (path, folder))
    return any(parent.match(str(pattern)) for parent in (inner, *inner.parents))


def unusable_path(path: str) -> tuple[str, str]:
    """Return why tables cannot be written to a path, and what to do about it; ("", "") where they can.

    Tables are not written to a pattern, nor to the root of a file system. The root of a bucket, ``s3a://bucket``, is
    allowed.
    """
    if special := sorted(set(_PATTERN.findall(path))):
        return (
            f"It has {' '.join(map(show_visibly, special))}, and readers take such a path for a pattern.",
            "Choose one without * ? [ ] { } \\ and control characters.",
        )
    scheme, host, within = _PARTS.fullmatch(path).groups(default="")  # type: ignore[union-attr]  # it fits any text
    is_root = posixpath.normpath(f"/{within.lstrip('/')}") == "/"
    if is_root and (not host or scheme.lower() in _SHARED):
        return "It is the root of a file system, which holds other things too.", "Name a folder in it."
    return "", ""


_KEY_PART = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
KEY = rf"{_KEY_PART}(?:\s*\.\s*{_KEY_PART})*"
_REPEATS = ("Cannot overwrite a value", "Cannot declare", "Duplicate inline table key")
_STATEMENT = re.compile(rf"\s*(?:\[\[?\s*(?P<table>{KEY})\s*\]|(?P<key>{KEY})\s*=)")
_IN_LINE = re.compile(r"\(at line ([0-9]+)")
ASSIGNMENT = re.compile(rf"\s*({KEY})\s*=\s?(.*)", re.DOTALL)


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file.

    Raises `ConfigError` if it cannot be read, is not UTF-8 or is not TOML, with the line.
    """
    where = quote(str(path))
    try:
        raw = path.read_bytes()
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{where}: {describe_unreadable(error)}. The configuration is a TOML file. Name one with --config."
        ) from None
    try:
        text = decode_utf8(raw)
        return tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise ConfigError(f"{where}: {describe_undecodable(error)}. TOML is UTF-8. Save the file as UTF-8.") from None
    except RecursionError:
        raise ConfigError(f"{where}: it is nested too deeply. Make it flatter.") from None
    except tomllib.TOMLDecodeError as error:
        if fault := repeated_key(text, str(error)):
            raise ConfigError(f"{where}: {fault}") from None
        raise ConfigError(f"{where}: {error}. The configuration must be TOML. Correct that line.") from None
    except ValueError:
        raise ConfigError(f"{where}: a number in it has too many digits. Write it shorter.") from None


def decode_utf8(raw: bytes) -> str:
    """Decode UTF-8, with or without the mark that some editors put before it, and with any line ends."""
    return raw.decode("utf-8-sig").replace("\r\n", "\n")


def describe_unreadable(error: Exception) -> str:
    """Return why a file could not be read: ``no such file or directory``."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return reason[:1].lower() + reason[1:]


def describe_undecodable(error: UnicodeDecodeError) -> str:
    """Return where a file stops being UTF-8."""
    lines = error.object[: error.start].split(b"\n")
    return f"line {len(lines)}, byte {len(lines[-1]) + 1} is not UTF-8"


def apply_overrides(table: Mapping[str, Any], overrides: Sequence[str]) -> tuple[dict[str, Any], list[Fault]]:
    """Set keys of a configuration, which stays as it is, as ``table.key=value`` says, the later of two winning.

    An override is a dotted TOML key, ``=``, and a TOML value, or else text. Returns the changed configuration, and the
    faults of malformed overrides.
    """
    changed, faults = copy.deepcopy(dict(table)), []
    for override in overrides:
        assignment = ASSIGNMENT.fullmatch(override)
        path = split_key(assignment[1]) if assignment else []
        if assignment is None or not path:
            # Only the part before "=" is shown: the value may be a password.
            what = f"--set {quote(override.partition('=')[0])}: this is not a dotted TOML key with a value."
            fix = "It must read table.key=value. Write, for example, --set label.threshold=0.5."
            faults.append(Fault((), ABSENT, what, fix))
        elif parent := _set_value(changed, path, parse_value(assignment[2])):
            shown, table_name = (".".join(map(show_key, keys)) for keys in (path, parent))
            rule = f"--set {shown}: {table_name} is not a table. Only a table has keys."
            faults.append(Fault((), ABSENT, rule, f"Set {table_name} itself."))
    return changed, faults


def parse_value(text: str) -> Any:
    """Return a TOML value; text that is not TOML as it is."""
    try:
        document = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return document["value"] if len(document) == 1 else text


def _set_value(table: dict[str, Any], path: list[str], value: Any) -> list[str]:
    """Set a key, making tables on the way; return the path of what should be a table and is not."""
    inner: Any = table
    for depth, part in enumerate(path[:-1], 1):
        inner = inner.setdefault(part, {})
        if not isinstance(inner, dict):
            return path[:depth]
    inner[path[-1]] = value
    return []


# ---- a key that is given twice, of which tomllib names only the line where it stopped


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
