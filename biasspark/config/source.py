"""The configuration's file, the overrides of the command line, and where relative paths lead."""

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

from biasspark.config.faults import Faults
from biasspark.config.repeated import KEY, find_repeated_key, split_key
from biasspark.config.wording import quote, show_key, show_visibly
from biasspark.errors import ConfigError

ASSIGNMENT = re.compile(rf"\s*({KEY})\s*=\s?(.*)", re.DOTALL)
URI_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PLACE = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):(?://([^/]*))?)?(.*)", re.DOTALL)
_PATTERN = re.compile(r"[*?\[\]{}\\\x00-\x1f]")
_SHARED = {"file", "hdfs", "webhdfs", "swebhdfs", "viewfs"}
"""Schemes whose host names a file system; that of others is a bucket or a container, often made for one purpose."""


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file.

    Raises
    ------
    ConfigError
        If it cannot be read, is not UTF-8 or is not TOML, with the place.
    """
    where = quote(str(path))
    try:
        raw = path.read_bytes()
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{where}: {say_unreadable(error)}. The configuration is a TOML file. Name one by --config."
        ) from None
    try:
        text = decode_utf8(raw)
        return tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise ConfigError(f"{where}: {say_undecodable(error)}. TOML is UTF-8. Save the file as UTF-8.") from None
    except RecursionError:
        raise ConfigError(f"{where}: it is nested too deeply to be read. Make it flatter.") from None
    except tomllib.TOMLDecodeError as error:
        if fault := find_repeated_key(text, str(error)):
            raise ConfigError(f"{where}: {fault}") from None
        raise ConfigError(f"{where}: {error}. The configuration must be TOML. Correct that line.") from None
    except ValueError:
        raise ConfigError(f"{where}: a number in it has too many digits to be read. Write it shorter.") from None


def decode_utf8(raw: bytes) -> str:
    """Decode UTF-8, with or without the mark that some editors put before it, and with any line ends."""
    return raw.decode("utf-8-sig").replace("\r\n", "\n")


def say_unreadable(error: Exception) -> str:
    """Say why a file could not be read: ``no such file or directory``."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return reason[:1].lower() + reason[1:]


def say_undecodable(error: UnicodeDecodeError) -> str:
    """Say where a file stops being UTF-8."""
    lines = error.object[: error.start].split(b"\n")
    return f"line {len(lines)}, byte {len(lines[-1]) + 1} is not UTF-8"


def apply_overrides(table: Mapping[str, Any], overrides: Sequence[str], faults: Faults) -> dict[str, Any]:
    """Set keys of a configuration as ``table.key=value`` says, the later of two winning.

    Parameters
    ----------
    table
        The configuration; it is not changed.
    overrides
        Each a dotted TOML key, ``=``, and a TOML value. What is no TOML value is taken as text.
    faults
        Where malformed overrides are noted.
    """
    changed = copy.deepcopy(dict(table))
    for override in overrides:
        assignment = ASSIGNMENT.fullmatch(override)
        path = split_key(assignment[1]) if assignment else []
        if assignment is None or not path:
            # Only the part before "=" is shown: the value may be a password.
            faults.note(
                "",
                f"--set {quote(override.partition('=')[0])}: this is not a dotted TOML key with a value. "
                "It must read table.key=value. Write, for example, --set label.threshold=0.5.",
            )
        else:
            _set_value(changed, path, read_value(assignment[2]), faults)
    return changed


def read_value(text: str) -> Any:
    """Read a TOML value; what is none is text as it stands."""
    try:
        document = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return document["value"] if len(document) == 1 else text


def locate(path: str | None, base: Path) -> str | None:
    """Find what a path of the configuration means.

    A path with a URI scheme (``s3a://``, ``hdfs://``, ``file:/``) and an absolute path are left as they are. A relative
    one is looked up beside the configuration; if nothing is there, it is taken from the working folder. A pattern is
    there when it matches something.

    Parameters
    ----------
    path
        The path, or None, which is given back.
    base
        The folder of the configuration.

    Returns
    -------
    str | None
        An absolute path or a URI.
    """
    if path is None or URI_SCHEME.match(path) or os.path.isabs(path):
        return path
    beside = os.path.abspath(base / path)
    matches = glob.iglob(path, root_dir=base) if glob.has_magic(path) else ()
    return beside if os.path.lexists(beside) or any(True for _ in matches) else os.path.abspath(path)


def is_within(path: str, folder: str) -> bool:
    """Say whether a path is a folder, which may be a pattern, or lies in one."""
    own, pattern = (PurePosixPath(os.path.normpath(re.sub("^file:/+", "/", text))) for text in (path, folder))
    return any(place.match(str(pattern)) for place in (own, *own.parents))


def say_no_place(path: str) -> str:
    """Say why tables cannot lie at a path, and how to mend it; "" where they can.

    A pattern is no place, nor is the root of a file system. The root of a bucket is one: ``s3a://bucket``.
    """
    if found := sorted(set(_PATTERN.findall(path))):
        return (
            f"It has {' '.join(map(show_visibly, found))}, and readers take such a path for a pattern. Choose one "
            "without * ? [ ] { } \\ and control characters."
        )
    scheme, host, within = _PLACE.fullmatch(path).groups(default="")  # type: ignore[union-attr]  # it fits any text
    is_root = posixpath.normpath(f"/{within.lstrip('/')}") == "/"
    if is_root and (not host or scheme.lower() in _SHARED):
        return "It is the root of a file system, where tables would lie among all else. Name a folder in it."
    return ""


def _set_value(table: dict[str, Any], path: list[str], value: Any, faults: Faults) -> None:
    inner: Any = table
    for depth, part in enumerate(path[:-1], 1):
        inner = inner.setdefault(part, {})
        if not isinstance(inner, dict):
            shown, parent = (".".join(map(show_key, parts)) for parts in (path, path[:depth]))
            faults.note("", f"--set {shown}: {parent} is not a table. Only a table has keys. Set {parent} itself.")
            return
    inner[path[-1]] = value
