"""The demo as a new user runs it: outside of a clone, in a new process."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from shutil import which

import pytest

from biasspark.workflows.demo import NEXT_DATE, find_command
from tests.harness.running_jobs import ask, run_embedded_well
from tests.harness.submitting import ROOT, run_program, run_python

pytestmark = [pytest.mark.embedded, pytest.mark.usefixtures("spark_session")]


def demo(folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    return run_python("-m", "biasspark", "demo", "--rows", 3000, "--out", "some where", *flags, cwd=folder)


def test_a_demo_and_the_commands_that_it_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = demo(tmp_path, "--engine", "embedded")
    assert first.returncode == 0, first.stderr
    assert "make-corpus" in first.stderr
    folder = tmp_path / "some where"
    summary = json.loads(first.stdout.splitlines()[-1])
    assert (summary["out"], summary["report"]) == (str(folder), str(folder / "report.html"))
    assert "<html" in (folder / "report.html").read_text("utf-8")
    printed = [shlex.split(line) for line in first.stdout.splitlines() if f" --run-date {NEXT_DATE}" in line]
    measure, attribute, report = printed
    assert [command[-1] for command in (measure, attribute)] == [NEXT_DATE] * 2
    assert {"report", "--run-date", NEXT_DATE} < set(report)
    monkeypatch.chdir(tmp_path)
    run_embedded_well(*measure[measure.index("--config") - 3 :])
    runs = "SELECT count(*), count(DISTINCT run_date) FROM bias_runs"
    assert ask(folder / "warehouse", runs) == [(2, 2)]


def test_the_printed_commands_run_this_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    another = tmp_path / "biasspark"
    another.touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert which("biasspark") == str(another)
    assert find_command() != ["biasspark"]


@pytest.mark.slow
def test_a_second_demo_takes_the_corpus_of_the_first(tmp_path: Path) -> None:
    first, second = (demo(tmp_path, "--engine", "embedded") for _ in range(2))
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert ["make-corpus" in done.stderr for done in (first, second)] == [True, False]
    runs = "SELECT count(*), count(DISTINCT run_date) FROM bias_runs"
    assert ask(tmp_path / "some where" / "warehouse", runs) == [(2, 1)]
    larger = demo(tmp_path, "--engine", "embedded", "--rows", "4000")
    assert f"{tmp_path / 'some where' / 'corpus'} is replaced. It was made of 3000 rows" in larger.stderr
    line = '"$0" -m biasspark demo --engine embedded --rows 3000 --out "some where" >/dev/full'
    assert run_program("bash", "-c", line, sys.executable, cwd=tmp_path, PYTHONPATH=str(ROOT)).returncode == 1


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
