"""The zip for --py-files: the same bytes for the same sources, pure Python alone, ready to import from."""

from __future__ import annotations

import os
import shutil
import tomllib
import zipfile
from importlib.metadata import PackagePath
from pathlib import Path

import pytest

import biasspark
from scripts.dev.locked_packages import cut_lock, list_dependencies
from scripts.dev.zip_package import list_installed, write_zip
from tests.harness.submitting import run_python

PACKAGE = Path(biasspark.__file__).parent
PURE = ("jinja2", "markupsafe")
DATA = {".typed", ".j2", ".css", ".js", ".toml"}
"""The kinds of files that the package holds besides Python."""


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    write_zip(PACKAGE, tmp_path / "biasspark.zip", PURE)
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
    write_zip(copy, tmp_path / "copy.zip", PURE)
    assert (tmp_path / "copy.zip").read_bytes() == archive.read_bytes()


def test_zip_holds_pure_python_and_its_licenses(archive: Path) -> None:
    names = zipfile.ZipFile(archive).namelist()
    assert "biasspark/__init__.py" in names
    assert names == sorted(names)
    dependencies = [Path(name) for name in names if not name.startswith("biasspark/")]
    assert {path.parts[0].partition("-")[0] for path in dependencies} == set(PURE)
    assert {path.suffix for path in dependencies if not path.parts[0].endswith(".dist-info")} == {".py", ".typed"}
    assert len([path for path in dependencies if path.name.startswith("LICENSE")]) == len(PURE)
    assert {Path(name).suffix for name in names if name.startswith("biasspark/")} <= {".py", *DATA}


def test_zip_is_imported_from(archive: Path, tmp_path: Path) -> None:
    program = """
import biasspark, biasspark.errors, jinja2, markupsafe
print(biasspark.__file__, biasspark.__version__, jinja2.__file__)
print(jinja2.Environment(autoescape=True).from_string("{{ it }}").render(it="<"))
"""
    # -S leaves out site-packages, and with it the project itself.
    found = run_python("-S", "-c", program, cwd=tmp_path, PYTHONPATH=str(archive))
    package, escaped = str(archive / "biasspark" / "__init__.py"), "&lt;"
    assert found.stdout.split() == [package, biasspark.__version__, str(archive / "jinja2" / "__init__.py"), escaped]


def test_a_changed_file_is_not_zipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PackagePath, "read_binary", lambda _: b"changed")
    with pytest.raises(SystemExit, match="changed since it was installed"):
        list_installed("jinja2")


def test_the_lock_is_cut_to_what_is_needed() -> None:
    entry = "Jinja2==3.1.6 \\\n    --hash=sha256:a\n    # via biasspark\n"
    lock = f"# why\n{entry}markupsafe==3.0.4 \\\n    --hash=sha256:b\nmypy==2\n"
    assert list_dependencies(["jinja2"]) == {"jinja2", "markupsafe"}
    assert cut_lock(lock, {"jinja2"}) == entry


def test_the_archive_has_every_dependency_but_spark() -> None:
    project = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text("utf-8"))["project"]
    declared = [*project["dependencies"], *project["optional-dependencies"]["report"]]
    names = [requirement.partition(">=")[0] for requirement in declared]
    assert f"        {' '.join(names)} >" in (PACKAGE.parent / "scripts" / "package").read_text("utf-8")
    assert "pyspark" not in list_dependencies(names)
