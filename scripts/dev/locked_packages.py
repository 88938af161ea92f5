"""Print the part of requirements.lock that packages need: ``locked_packages.py LOCK REQUIREMENT ...``.

Used by scripts/package --environment.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def list_dependencies(requirements: Iterable[str]) -> set[str]:
    """Return the names of packages and of all their dependencies, as the installed ones declare them."""
    waiting = [Requirement(text) for text in requirements]
    names: set[str] = set()
    while waiting:
        name = canonicalize_name(waiting.pop().name)
        if name not in names:
            names.add(name)
            needed = map(Requirement, requires(name) or ())
            waiting += [
                package for package in needed if package.marker is None or package.marker.evaluate({"extra": ""})
            ]
    return names


def cut_lock(lock: str, names: set[str]) -> str:
    """Return the entries of packages: the line with the name, and the indented lines of its hashes."""
    kept, within = [], False
    for line in lock.splitlines(keepends=True):
        if not line.startswith((" ", "#")):
            within = canonicalize_name(line.partition("==")[0]) in names
        if within:
            kept.append(line)
    return "".join(kept)


if __name__ == "__main__":
    print(cut_lock(Path(sys.argv[1]).read_text("utf-8"), list_dependencies(sys.argv[2:])), end="")
