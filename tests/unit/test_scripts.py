"""The scripts explain themselves and refuse what they do not know, before they make or start anything."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
COMMANDS = [
    "bench",
    "check",
    "check_dag",
    "demo",
    "docs",
    "drill",
    "fix",
    "matrix",
    "package",
    "plan",
    "submit",
    "survived",
    "test",
]


def run(name: str, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([SCRIPTS / name, *arguments], cwd=cwd, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_given_from_anywhere(name: str, tmp_path: Path) -> None:
    done = run(name, "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith(f"Usage: scripts/{name}")
    assert done.stderr == ""


@pytest.mark.parametrize("name", COMMANDS)
def test_script_can_be_run(name: str) -> None:
    assert os.access(SCRIPTS / name, os.X_OK)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("demo", ["--rows", "1e6"], "scripts/demo: --rows 1e6. It must be a whole number above 0, in digits alone."),
        ("demo", ["--rows", "0"], "scripts/demo: --rows 0. It must be a whole number above 0, in digits alone."),
        ("demo", ["--rows"], "scripts/demo: --rows needs a value."),
        ("demo", ["--out", ""], "scripts/demo: --out needs a value."),
        ("demo", ["fast"], "scripts/demo: unknown argument fast. Known: --rows N, --out DIR."),
        ("check", ["biasspark"], "scripts/check: only --all is taken, got: biasspark"),
        ("docs", ["tables"], "scripts/docs: no arguments are taken, got: tables"),
        ("fix", ["biasspark"], "scripts/fix: no arguments are taken, got: biasspark"),
        ("check_dag", ["dags"], "scripts/check_dag: no arguments are taken, got: dags"),
        ("package", ["dist"], "scripts/package: unknown argument dist. Known: --environment, --out DIR."),
        ("package", ["--out"], "scripts/package: --out needs a value."),
    ],
)
def test_wrong_arguments_are_named(name: str, arguments: list[str], message: str) -> None:
    done = run(name, *arguments)
    assert (done.returncode, done.stderr.strip()) == (2, message)
