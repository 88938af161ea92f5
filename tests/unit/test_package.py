"""The zip for --py-files: the same bytes for the same sources, nothing but the package, ready to import from."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import biasspark
from scripts.zip_package import write_zip

PACKAGE = Path(biasspark.__file__).parent
DATA = {".typed", ".j2", ".css", ".js"}
"""The kinds of files that the package holds besides Python."""


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    write_zip(PACKAGE, tmp_path / "biasspark.zip")
    return tmp_path / "biasspark.zip"


def test_zip_of_a_copy_has_the_same_bytes(archive: Path, tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere" / "biasspark"
    shutil.copytree(PACKAGE, copy)
    (copy / "__pycache__").mkdir(exist_ok=True)
    (copy / "__pycache__" / "errors.cpython-311.pyc").write_bytes(b"made by Python")
    (copy / ".hidden").write_text("left by an editor")
    for path in copy.rglob("*.py"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
        path.chmod(0o600)
    write_zip(copy, tmp_path / "copy.zip")
    assert (tmp_path / "copy.zip").read_bytes() == archive.read_bytes()


def test_zip_holds_the_package_alone(archive: Path) -> None:
    names = zipfile.ZipFile(archive).namelist()
    assert "biasspark/__init__.py" in names
    assert names == sorted(names)
    assert [name for name in names if not name.startswith("biasspark/")] == []
    assert {Path(name).suffix for name in names} <= {".py", *DATA}


def test_zip_is_imported_from(archive: Path, tmp_path: Path) -> None:
    program = "import biasspark, biasspark.errors; print(biasspark.__file__, biasspark.__version__)"
    # -S leaves out site-packages, and with it the project itself.
    found = subprocess.run(
        [sys.executable, "-S", "-c", program],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(archive)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.split() == [str(archive / "biasspark" / "__init__.py"), biasspark.__version__]


def test_wheel_holds_what_the_zip_holds(archive: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(PACKAGE, project / "biasspark", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "LICENSE"):
        shutil.copy(PACKAGE.parent / name, project)
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*build, "--wheel-dir", str(tmp_path), str(project)], check=True, capture_output=True)
    (wheel,) = tmp_path.glob(f"biasspark-{biasspark.__version__}-*.whl")
    held = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("biasspark/")}
    assert held == set(zipfile.ZipFile(archive).namelist())
