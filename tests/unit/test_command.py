"""The console command: the job that it runs, and its faults. No engine is started."""

from __future__ import annotations

import errno
import importlib
import runpy
import subprocess
import sys
from itertools import product
from pathlib import Path
from unittest.mock import Mock

import pytest

from biasspark import command
from biasspark.cli import Command
from biasspark.workflows import demo, make_corpus, print_side_by_side
from tests.harness.submitting import run_python

ROOT = Path(__file__).resolve().parents[2]
CIVIL = ["civil", "--rows", "5", "--seed", "1", "--out", "x"]


@pytest.mark.parametrize("name", command.JOBS)
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([name, "--help"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"usage: biasspark {name} ")
    assert "--engine" in printed
    assert "spark-submit" not in printed


@pytest.mark.parametrize("file", sorted((ROOT / "jobs").glob("*.py")), ids=lambda file: file.stem)
def test_every_file_for_spark_submit_runs_a_command(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (name,) = (name for name in command.JOBS if f'run_command("{name}")' in file.read_text("utf-8"))
    monkeypatch.setattr(sys, "argv", [str(file), "--help"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(file), run_name="__main__")
    assert ended.value.code == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"usage: {file.name} ")
    assert f"spark-submit jobs/{file.name} " in printed
    assert isinstance(importlib.import_module(f"biasspark.workflows.{command.JOBS[name].module}").COMMAND, Command)


def test_help_teaches_the_first_three_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--help"]) == command.main([]) == 0
    printed = capsys.readouterr().out
    first = [printed.index(f"  biasspark {name}") for name in ("demo", "measure", "report")]
    assert first == sorted(first)
    assert all(f"\n  {name} " in printed for name in command.JOBS)


@pytest.mark.parametrize(
    ("word", "flags"),
    [
        ("zzz", ["zzz"]),
        ("Did you mean measure?", ["mesure"]),
        ("--config", ["measure"]),
        ("--engine", ["measure", "--engine", "none"]),
        ("--rows", ["demo", "--rows", "1e6"]),
        ("--rows", ["demo", "--rows", "0"]),
        ("--out", ["demo", "--out", ""]),
        ("--out", ["demo", "--out", __file__]),
        ("--out", ["demo", "--out", "x" * 300]),
        ("--rows", ["make-corpus", "civil", "--row", "5", "--seed", "1", "--out", "x"]),
        ("--both", ["demo", "--both", "--engine", "spark"]),
        ("fast", ["demo", "fast"]),
        ("--text?", ["make-corpus", *CIVIL, "--txet"]),
    ],
)
def test_wrong_usage(word: str, flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(flags) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert word in err.rpartition("error: ")[2]


def test_flags_of_the_session_precede_or_follow_the_name_of_a_corpus(capsys: pytest.CaptureFixture[str]) -> None:
    for line in ([*CIVIL, "--engine", "spark"], ["--engine", "spark", *CIVIL]):
        parsed = make_corpus.COMMAND.parser().parse_args(line)
        assert (parsed.engine, parsed.debug, parsed.text, parsed.files) == ("spark", False, False, None)
    assert command.main(["make-corpus", "shapes", *CIVIL[1:]]) == 2
    assert "Did you mean" not in capsys.readouterr().err


def test_a_full_disk_elsewhere_is_no_fault_of_the_folder_of_a_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "job_session", Mock(side_effect=OSError(errno.ENOSPC, "No space left on device")))
    assert command.main(["demo", "--out", str(tmp_path)]) == 1
    assert "--out" not in capsys.readouterr().err


def test_no_row_is_the_least_of_side_by_side() -> None:
    flags = ["--config", "x", "--run-date", "2026-01-15", "--models", "a", "b", "--min-rows", "0"]
    assert print_side_by_side.COMMAND.parser().parse_args(flags).min_rows == 0


def test_without_pyspark_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "find_spec", lambda _: None)
    assert command.main(["measure", "--help"]) == 2
    assert ".[embedded]" in capsys.readouterr().err


def test_an_interrupt_while_a_command_is_loaded_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "import_module", interrupt)
    assert command.main(["measure"]) == 130
    assert capsys.readouterr().err == "biasspark measure: error: interrupted\n"


def test_help_loads_no_spark() -> None:
    program = (
        "import sys; from biasspark.command import main; main(['--help']); "
        "print({'pyspark', 'pyarrow', 'numpy'} & sys.modules.keys())"
    )
    done = run_python("-c", program)
    assert done.stdout.splitlines()[-1] == "set()"


CLOSED = product((("--help", 0), ("--version", 0), ("mesure", 2)), (">&-", "2>&-", ">&- 2>&-", "| head -c 0"))
FULL = [("--help", ">/dev/full", 1), ("--version", ">/dev/full", 1), ("mesure", "2>/dev/full", 2)]


@pytest.mark.parametrize(
    ("flag", "end", "code"),
    [*((flag, end, code) for (flag, code), end in CLOSED), *(FULL if Path("/dev/full").exists() else [])],
)
def test_closed_streams_are_no_failure_and_a_full_disk_is_no_traceback(flag: str, end: str, code: int) -> None:
    command_line = f'set -o pipefail; "$0" -m biasspark {flag} {end}'
    done = subprocess.run(["bash", "-c", command_line, sys.executable], capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("program", "named"), [("/x/jobs/report.py", "jobs/bias_metrics.py"), ("/bin/biasspark", "biasspark measure")]
)
def test_a_command_is_named_as_the_user_called_it(monkeypatch: pytest.MonkeyPatch, program: str, named: str) -> None:
    monkeypatch.setattr(sys, "argv", [program])
    assert command.name_command("bias_metrics") == named


def test_both_engines_need_spark_before_any_work(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("biasspark.workflows.demo.is_spark_installed", lambda: False)
    assert command.main(["demo", "--both", "--out", str(tmp_path / "demo")]) == 2
    assert "--both: Spark is not installed" in capsys.readouterr().err
    assert not (tmp_path / "demo").exists()
