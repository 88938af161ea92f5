"""The wheel: installed into clean environments of each Python that it names, where it runs a demo without Java."""

from __future__ import annotations

import re
import shutil
import sys
import tomllib
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest

import biasspark
from scripts.dev.compatibility_matrix import find_python
from tests.harness.submitting import ROOT, run_program

PYTHONS = ("3.11", "3.12", "3.13")
DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
DEMO = ("demo", "--rows", "5000", "--out", "demo")


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """Run a program without Java, which must end well, and give what it prints; skip where no package can be had."""
    done = run_program(*command, cwd=cwd, **{"JAVA_HOME": ""} | environment)
    if re.search("NameResolutionError|NewConnectionError|ConnectTimeoutError", done.stderr):
        pytest.skip("the packages cannot be installed: no package index answers")
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from a copy of the sources, so that no build is left in the project."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "biasspark", folder / "biasspark", ignore=shutil.ignore_patterns("__pycache__"))
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", "dist")
    run(sys.executable, "-m", "pip", "wheel", *options, ".", cwd=folder)
    [path] = (folder / "dist").glob("*.whl")
    return path


@pytest.mark.slow
def test_the_metadata_is_complete(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        [name] = [name for name in packed.namelist() if name.endswith(".dist-info/METADATA")]
        metadata: Message = message_from_bytes(packed.read(name))
        names = packed.namelist()
    assert metadata["Version"] == biasspark.__version__
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata["Summary"]
    assert metadata["Keywords"]
    assert metadata.get_payload() == (ROOT / "README.md").read_text("utf-8")
    named = re.findall(r":: (3\.\d+)$", "\n".join(metadata.get_all("Classifier", [])), re.MULTILINE)
    assert tuple(named) == PYTHONS
    assert DECLARED["optional-dependencies"].keys() == set(metadata.get_all("Provides-Extra", []))
    resources = {path.relative_to(ROOT).as_posix() for path in (ROOT / "biasspark").rglob("*") if path.is_file()}
    assert {name for name in resources if "__pycache__" not in name} <= set(names)


@pytest.mark.slow
@pytest.mark.parametrize("version", PYTHONS)
def test_it_installs_and_runs_without_java(wheel: Path, tmp_path: Path, version: str) -> None:
    python = find_python(f"python{version}") or pytest.skip(f"Python {version} is not here")
    run(python, "-m", "venv", "--without-pip", "env", cwd=tmp_path)
    environment = tmp_path / "env" / "bin"
    pip = (sys.executable, "-m", "pip", "--python", environment / "python")
    run(*pip, "install", "--quiet", f"{wheel}[embedded,report]", cwd=tmp_path)
    run(environment / "biasspark", *DEMO, cwd=tmp_path, PATH=f"{environment}:/usr/bin-without-java")
    assert "<svg" in (tmp_path / "demo" / "report.html").read_text("utf-8")
    assert run(environment / "biasspark", "--version", cwd=tmp_path) == f"biasspark {biasspark.__version__}\n"
