"""Zip a Python package, and pure Python dependencies: ``zip_package.py PACKAGE ZIP [DISTRIBUTION ...]``.

The same sources give the same bytes.

Used by scripts/package.
"""

from __future__ import annotations

import base64
import hashlib
import sys
import zipfile
from collections.abc import Sequence
from importlib.metadata import PackagePath, files
from pathlib import Path

EARLIEST = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip can hold, given to every entry."""

PURE = (".py", ".typed")
"""The files of a distribution that are zipped. It must work without its compiled modules."""


def list_sources(package: Path) -> dict[str, Path]:
    """Return the package's files by their names in the zip, without caches and hidden files."""
    paths = [path.relative_to(package) for path in package.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    visible = [path for path in paths if not any(part.startswith(".") for part in path.parts)]
    return {f"{package.name}/{path.as_posix()}": package / path for path in visible}


def list_installed(distribution: str) -> dict[str, Path]:
    """Return the pure Python of an installed distribution, its license and its metadata, by their names in the zip."""
    paths = [path for path in files(distribution) or () if is_zipped(path)]
    for path in paths:
        check_file(path)
    return {path.as_posix(): Path(path.locate()) for path in paths}


def is_zipped(path: PackagePath) -> bool:
    """Return whether a file goes into the zip: no command, compiled module, or note of the installer."""
    if path.parts[0].endswith(".dist-info"):
        return path.name == "METADATA" or path.name.upper().startswith("LICENSE")
    return path.suffix in PURE and ".." not in path.parts


def check_file(path: PackagePath) -> None:
    """Exit if a file has changed since it was installed."""
    assert path.hash is not None  # every file but RECORD and caches has one
    digest = hashlib.new(path.hash.mode, path.read_binary()).digest()
    if base64.urlsafe_b64encode(digest).decode().rstrip("=") != path.hash.value:
        sys.exit(f"zip_package.py: {path.locate()}: it was changed since it was installed. Install it again.")


def write_zip(package: Path, target: Path, distributions: Sequence[str] = ()) -> None:
    """Write the package and the distributions, under their own names, to a zip that Python can import from."""
    sources = list_sources(package)
    for distribution in distributions:
        sources |= list_installed(distribution)
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{target.name}.unfinished")
    # Stored, not deflated: deflated bytes depend on the version of zlib.
    with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_STORED) as archive:
        for name, path in sorted(sources.items()):
            entry = zipfile.ZipInfo(name, EARLIEST)
            entry.create_system = 3  # Unix, also on Windows
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, path.read_bytes())
    unfinished.replace(target)


def main(package: str, target: str, *distributions: str) -> None:
    """Write the zip and print its hash as sha256sum does."""
    write_zip(Path(package), Path(target), distributions)
    print(f"{hashlib.sha256(Path(target).read_bytes()).hexdigest()}  {target}")


if __name__ == "__main__":
    main(*sys.argv[1:])
