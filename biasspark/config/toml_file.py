"""Configuration files: read TOML, apply ``--set`` overrides, and resolve and check paths."""

from __future__ import annotations

import copy
import glob
import json
import os
import posixpath
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from biasspark.errors import ABSENT, ConfigError, Fault
from biasspark.text import BARE_KEY, quote, show_key, show_visibly

URI_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PARTS = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):(?://([^/]*))?)?(.*)", re.DOTALL)
_PATTERN = re.compile(r"[*?\[\]{}\\\x00-\x1f]")
_SHARED = {"file", "hdfs", "webhdfs", "swebhdfs", "viewfs"}
"""Schemes whose host is a file system. In other schemes it is a bucket or a container."""


def locate(path: str, base: Path) -> str:
    """Resolve a path of a configuration in the folder `base` to an absolute path or a URI.

    URIs (``s3a://``, ``hdfs://``, ``file:/``) and absolute paths are kept. A relative path is taken from `base` if it
    exists there, or as a pattern matches something; otherwise from the working folder.
    """
    if URI_SCHEME.match(path) or os.path.isabs(path):
        return path
    in_base = os.path.abspath(base / path)
    matches = glob.iglob(path, root_dir=base) if glob.has_magic(path) else ()
    return in_base if os.path.lexists(in_base) or any(True for _ in matches) else os.path.abspath(path)


def is_within(path: str, folder: str) -> bool:
    """Return whether a path is, or lies in, a folder, which may be a pattern."""
    inner, pattern = (PurePosixPath(os.path.normpath(re.sub("^file:/+", "/", text))) for text in (path, folder))
    return any(parent.match(str(pattern)) for parent in (inner, *inner.parents))


def unusable_path(path: str) -> tuple[str, str]:
    """Return the rule that a path of tables breaks, and the fix, or ("", ""). The root of a bucket is allowed."""
    if special := sorted(set(_PATTERN.findall(path))):
        return (
            f"It has {' '.join(map(show_visibly, special))}, and readers interpret such a path as a pattern.",
            "Choose one without * ? [ ] { } \\ and control characters.",
        )
    scheme, host, within = _PARTS.fullmatch(path).groups(default="")  # type: ignore[union-attr]  # it fits any text
    is_root = posixpath.normpath(f"/{within.lstrip('/')}") == "/"
    if is_root and (not host or scheme.lower() in _SHARED):
        return "It is the root of a file system, which holds other files too.", "Name a folder in it."
    return "", ""


_KEY_PART = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
_ASSIGNMENT = re.compile(rf"\s*({_KEY_PART}(?:\s*\.\s*{_KEY_PART})*)\s*=\s?(.*)", re.DOTALL)


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file. Raises `ConfigError`, with the line, if it cannot be read, is not UTF-8 or is not TOML."""
    where = quote(str(path))
    try:
        text = read_text(path)
    except ValueError as error:
        fix = "The configuration is a TOML file in UTF-8, which the user of the job may read. Name one with --config."
        raise ConfigError(f"{where}: {error}. {fix}") from None
    try:
        return tomllib.loads(f"{text}\n")  # so that errors at its end have a line
    except (ValueError, RecursionError) as error:
        problem = str(error)
        if repeated := re.fullmatch(r"Cannot (?:overwrite|declare) .*(\(at line (\d+), .*\))", problem):
            line = text.split("\n")[int(repeated[2]) - 1]
            key = _ASSIGNMENT.fullmatch(line) or re.fullmatch(r"\s*(\[[^#]*\]).*", line)
            problem = f"{key[1] if key else 'a key'}, or the table that it is in, is set twice {repeated[1]}"
        fix = "Correct it."
        if problem.startswith("Invalid value"):
            fix = "Correct it: write text in quotes, true and false in lower case, and numbers like 0.5."
        if "[gate.rule]" in problem:
            fix = "Begin each rule, also the first, with [[gate.rule]], in two brackets."
        raise ConfigError(f"{where}: {problem}. The configuration must be TOML. {fix}") from None


def write_toml(table: Mapping[str, Any], path: str = "", header: str = "[{}]") -> str:
    """Write a table at a path as TOML: its values, and then the tables in it. Empty tables are left out.

    The outermost table, without a path, has no values.
    """
    values, tables = [], []
    for name, value in table.items():
        key = name if BARE_KEY.fullmatch(name) else json.dumps(name, ensure_ascii=False)
        inner = f"{path}.{key}" if path else key
        if isinstance(value, Mapping):
            tables.append(write_toml(value, inner))
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            tables += [write_toml(entry, inner, "[[{}]]") for entry in value]
        else:
            values.append(f"{key} = {json.dumps(value, ensure_ascii=False)}")  # strings and lists of JSON are TOML
    whole = ["\n".join([header.format(path), *values])] if values else []
    return "\n\n".join(filter(None, [*whole, *tables]))


def read_text(path: Path) -> str:
    """Read UTF-8 with or without a byte order mark, and normalize line ends. Raises `ValueError` with the problem."""
    try:
        return path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        lines = error.object[: error.start].split(b"\n")
        raise ValueError(f"line {len(lines)}, byte {len(lines[-1]) + 1} is not UTF-8") from None
    except OSError as error:
        raise ValueError((error.strerror or str(error)).lower()) from None


def apply_overrides(table: Mapping[str, Any], overrides: Sequence[str]) -> tuple[dict[str, Any], list[Fault]]:
    """Return a copy with overrides ``table.key=value`` applied in order, and the faults of malformed ones.

    A value that is not TOML is text.
    """
    changed, faults = copy.deepcopy(dict(table)), []
    for override in overrides:
        assignment = _ASSIGNMENT.fullmatch(override)
        parts = re.findall(_KEY_PART, assignment[1]) if assignment else []
        path = [parse_value(part) if part[0] in "\"'" else part for part in parts]
        if assignment is None:
            # The value is not shown: it may be a password.
            what = f"--set {quote(override.partition('=')[0])}: this is not a dotted TOML key with a value."
            fix = "It must read table.key=value. Write, for example, --set label.threshold=0.5."
            faults.append(Fault((), ABSENT, what, fix))
        elif parent := _set_value(changed, path, parse_value(assignment[2])):
            shown, table_name = (".".join(map(show_key, keys)) for keys in (path, parent))
            rule = f"--set {shown}: {table_name} is not a table. Only a table has keys."
            faults.append(Fault((), ABSENT, rule, f"Set {table_name} itself."))
    return changed, faults


def parse_value(text: str) -> Any:
    """Parse a TOML value. Return text that is not TOML unchanged."""
    try:
        document = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return document["value"] if len(document) == 1 else text


def _set_value(table: dict[str, Any], path: list[str], value: Any) -> list[str]:
    """Set a key, creating tables on its path. Return the path of a parent that is not a table, [] on success."""
    inner: Any = table
    for depth, part in enumerate(path[:-1], 1):
        inner = inner.setdefault(part, {})
        if not isinstance(inner, dict):
            return path[:depth]
    inner[path[-1]] = value
    return []
