"""Print the part of requirements.lock that packages need: ``locked_packages.py LOCK REQUIREMENT ...``."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def find_needed(asked: Iterable[str]) -> set[str]:
    """Return the names of the packages asked for and of all that they need here, as the installed ones declare it."""
    waiting = [Requirement(text) for text in asked]
    found: set[str] = set()
    while waiting:
        one = waiting.pop()
        name = canonicalize_name(one.name)
        if name in found:
            continue
        found.add(name)
        needs = map(Requirement, requires(name) or ())
        waiting += [need for need in needs if need.marker is None or need.marker.evaluate({"extra": ""})]
    return found


def cut_lock(lock: str, names: set[str]) -> str:
    """Return the entries of these packages: a line that names one, and the indented lines of its hashes."""
    kept, within = [], False
    for line in lock.splitlines(keepends=True):
        if not line.startswith((" ", "#")):
            within = canonicalize_name(line.partition("==")[0]) in names
        if within:
            kept.append(line)
    return "".join(kept)


if __name__ == "__main__":
    print(cut_lock(Path(sys.argv[1]).read_text("utf-8"), find_needed(sys.argv[2:])), end="")
