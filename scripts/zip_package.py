"""Zip a Python package so that the same sources give the same bytes: ``zip_package.py PACKAGE ZIP``."""

from __future__ import annotations

import hashlib
import sys
import zipfile
from pathlib import Path

EARLIEST = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip can hold, given to every entry."""

SKIPPED = (".pyc", ".pyo")
"""What Python makes anew wherever it runs."""


def list_sources(package: Path) -> list[Path]:
    """Return the package's files in one order on every file system, without caches and hidden files."""
    files = (path for path in package.rglob("*") if path.is_file() and path.suffix not in SKIPPED)
    shown = (path for path in files if not any(part.startswith(".") for part in path.relative_to(package).parts))
    return sorted(shown, key=lambda path: path.relative_to(package).as_posix())


def write_zip(package: Path, target: Path) -> None:
    """Write the package, under its own name, to a zip that Python can import from."""
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{target.name}.unfinished")
    # Stored, not deflated: what deflate gives differs from one zlib to the next.
    with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_STORED) as archive:
        for path in list_sources(package):
            entry = zipfile.ZipInfo(f"{package.name}/{path.relative_to(package).as_posix()}", EARLIEST)
            entry.create_system = 3  # Unix, also on Windows
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, path.read_bytes())
    unfinished.replace(target)


def main(package: str, target: str) -> None:
    """Write the zip and print its hash as sha256sum does."""
    write_zip(Path(package), Path(target))
    print(f"{hashlib.sha256(Path(target).read_bytes()).hexdigest()}  {target}")


if __name__ == "__main__":
    main(*sys.argv[1:])
