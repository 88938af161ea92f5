"""Jobs that cannot start or read their corpus, without Java or the right to read, or that are interrupted."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from itertools import takewhile
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest

from tests.harness.main_job import CANARY, RUN_DATE, make_rows, write_config, write_parquet
from tests.harness.submitting import ROOT, clean_environment, run_python, submit

JOB = str(ROOT / "jobs" / "bias_metrics.py")
ALL_FILES = "-dac_override,-dac_read_search"
"""What root loses in order to be refused what others are."""


def find_error(printed: str) -> str:
    (error,) = (line for line in printed.splitlines() if "error: " in line)
    assert "unexpected" not in error
    assert "Traceback" not in printed
    assert CANARY not in printed
    return error


@pytest.fixture
def config(tmp_path: Path) -> Path:
    write_parquet(tmp_path / "corpus", make_rows(100))
    return write_config(tmp_path)


# ---- Java


@pytest.mark.parametrize(
    ("environment", "code"),
    [
        pytest.param({"JAVA_HOME": "/none"}, 2, id="missing"),
        pytest.param({"PYSPARK_SUBMIT_ARGS": "--driver-memory 1k pyspark-shell"}, 1, id="ends"),
    ],
)
def test_a_java_that_does_not_start_spark(config: Path, environment: dict[str, str], code: int) -> None:
    environment = {"JAVA_HOME": os.environ.get("JAVA_HOME", ""), **environment}
    done = run_python(JOB, "--engine", "spark", "--config", config, "--run-date", RUN_DATE, **environment)
    assert done.returncode == code
    assert "Java 17 or newer" in find_error(done.stderr)


# ---- jobs that are ended


@pytest.mark.parametrize(
    ("signum", "stage", "engine"),
    [
        (signal.SIGINT, "surveying", "spark"),
        (signal.SIGINT, "starting", "embedded"),
        *(pytest.param(signal.SIGINT, stage, "embedded", marks=pytest.mark.slow) for stage in ("surveying", "ranking")),
        (signal.SIGTERM, "ranking", "embedded"),
    ],
)
def test_a_signal_ends_a_run_and_leaves_nothing(
    tmp_path: Path, signum: signal.Signals, stage: str, engine: str
) -> None:
    """Of a CSV, of which the embedded engine has a copy, as of ranked rows.

    Spark has no setting to warn of, and Py4j logs nothing.
    """
    if engine == "embedded":
        pytest.importorskip("pysail")
    rows, corpus, temporary = make_rows(20_000), tmp_path / "corpus", tmp_path / "temporary"
    corpus.mkdir()
    temporary.mkdir()
    pa.csv.write_csv(pa.table(rows), corpus / "x.csv")
    config = write_config(tmp_path, corpus={"format": "csv"}, state={"keep": True})
    command = ["env", "--default-signal=INT", sys.executable, "-m", "biasspark", "measure", "--engine", engine]
    with subprocess.Popen(
        [*command, "--config", str(config), "--run-date", RUN_DATE],
        env=clean_environment(PYTHONPATH=str(ROOT), TMPDIR=str(temporary)),
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        before = list(takewhile(lambda line: stage not in line, process.stderr))
        process.send_signal(signum)
        try:
            _, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert not any("Ignoring" in line for line in before)
    code, word = (130, "interrupted") if signum == signal.SIGINT else (143, "terminated")
    after = [line for line in err.splitlines() if not line.startswith("[")]  # without progress
    assert (process.returncode, after) == (code, [f"biasspark measure: error: {word}"]), before
    assert list(temporary.iterdir()) == []
    assert not list(tmp_path.glob("warehouse/bias_runs/*/*"))


# ---- files that may not be read


@pytest.mark.slow
@pytest.mark.parametrize(
    "closed", [".", pytest.param("part-1.parquet", id="file"), pytest.param("..", id="folder above")]
)
def test_a_path_that_may_not_be_read_is_named(tmp_path: Path, closed: str) -> None:
    """Root, which may read all, gives up the right to."""
    corpus = write_parquet(tmp_path / "above" / "corpus", make_rows(100))
    config = write_config(tmp_path, corpus={"path": str(corpus)})
    path = (corpus / closed).resolve()
    mode = path.stat().st_mode
    path.chmod(0)
    try:
        code, printed = submit(
            *(JOB, "--config", str(config), "--run-date", RUN_DATE),
            cwd=tmp_path,
            program=write_submit(tmp_path / "submit"),
        )
    finally:
        path.chmod(mode)
    error = find_error(printed)
    assert code == 3, printed
    if closed == "..":
        assert str(corpus) in error
        assert "may not enter" in error
    else:
        assert error.endswith(f" {path}.")
        assert "permission is denied" in error


def write_submit(script: Path) -> Path:
    """Write a spark-submit that obeys the modes of files, whoever runs it."""
    command = [str(ROOT / "scripts" / "submit")]
    if os.geteuid() == 0:
        setpriv = shutil.which("setpriv") or pytest.skip("root cannot give up its rights without setpriv")
        command = [setpriv, "--bounding-set", ALL_FILES, "--inh-caps", ALL_FILES, *command]
    script.write_text(f'#!/bin/sh\nexec {" ".join(command)} "$@"\n')
    script.chmod(0o755)
    return script
