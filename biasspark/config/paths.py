"""Paths of the configuration: what relative ones mean, and where tables cannot be."""

from __future__ import annotations

import glob
import os
import posixpath
import re
from pathlib import Path, PurePosixPath

from biasspark.text import show_visibly

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
