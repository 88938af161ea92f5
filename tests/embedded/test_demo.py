"""The demonstration, as a newcomer runs it: away from a clone, in a process of its own."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from biasspark.workflows.demo import NEXT_DATE
from tests.harness.running_jobs import ask

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(find_spec("pysail") is None, reason="pysail, the embedded engine, is not installed")


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def demo(folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    return run(folder, sys.executable, "-m", "biasspark", "demo", "--rows", "3000", "--out", "some where", *flags)


def test_a_demo_and_the_commands_that_it_prints(tmp_path: Path) -> None:
    first, second = (demo(tmp_path, "--engine", "embedded") for _ in range(2))
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert ["make-corpus" in done.stderr for done in (first, second)] == [True, False]
    folder = tmp_path / "some where"
    summary = json.loads(first.stdout.splitlines()[-1])
    assert (summary["out"], summary["report"]) == (str(folder), str(folder / "report.html"))
    assert "<html" in (folder / "report.html").read_text("utf-8")
    printed = [shlex.split(line) for line in second.stdout.splitlines() if f" --run-date {NEXT_DATE}" in line]
    measure, attribute, report = printed
    assert [command[-1] for command in (measure, attribute)] == [NEXT_DATE] * 2
    for command in (measure, report):
        assert (
            run(tmp_path, sys.executable, "-m", "biasspark", *command[command.index("--config") - 3 :]).returncode == 0
        )
    (row,) = ask(folder / "warehouse", "SELECT count(*), count(DISTINCT run_date) FROM bias_runs")
    assert row == (3, 2)


def test_a_corpus_that_is_no_demo_is_left_alone(tmp_path: Path) -> None:
    corpus = tmp_path / "some where" / "corpus"
    corpus.mkdir(parents=True)
    (corpus / "mine.parquet").touch()
    done = demo(tmp_path, "--engine", "embedded")
    assert done.returncode == 2
    assert str(corpus) in done.stderr
    assert [path.name for path in corpus.iterdir()] == ["mine.parquet"]


@pytest.mark.slow
def test_both_engines_publish_equal_tables(tmp_path: Path) -> None:
    done = demo(tmp_path, "--both")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout.splitlines()[-1])
    (row,) = ask(tmp_path / "some where" / "warehouse-spark", "SELECT table_rows FROM bias_runs")
    assert summary["equal_tables"] == len(row[0]) > 5
