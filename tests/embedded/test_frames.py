"""Frames of every kind without a session, on the embedded engine, in processes that have no other engine."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.harness.submitting import run_python

pytestmark = pytest.mark.skipif(find_spec("pysail") is None, reason="pysail, the embedded engine, is not installed")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["measure_frames", "attribute_frames"])
def test_frames_are_measured_and_attributed_and_nothing_is_left(name: str, tmp_path: Path) -> None:
    done = run_python(
        *("-m", "pytest", "-q", "-p", "no:cacheprovider", f"tests/embedded/{name}.py", "--basetemp", tmp_path / "work"),
        TMPDIR=str(tmp_path),
    )
    assert done.returncode == 0, done.stdout
    assert list(tmp_path.glob("biasspark-*")) == []


def test_what_is_not_installed_is_named(tmp_path: Path) -> None:
    """In processes that begin as copies of one that has imported what takes long and is always there."""
    calls = {
        "import biasspark.plot": ("matplotlib", [".[plot]"]),
        "biasspark.plot": ("matplotlib", [".[plot]"]),
        "biasspark.metric_table": ("matplotlib", [".[report]"]),
        "biasspark.bias_report": ("jinja2", [".[report]"]),
        "biasspark.bias_metrics": ("pyspark", [".[embedded]", ".[spark]"]),
    }
    missing = {call: library for call, (library, _) in calls.items()}
    program = f"""
import os, sys
import biasspark, pandas, pyarrow.dataset

for call, library in {missing}.items():
    assert library not in sys.modules
    if os.fork():
        os.wait()
        continue
    sys.modules[library] = None
    try:
        exec(call)
    except biasspark.ConfigError as error:
        print(call, *str(error).split(), flush=True)
    os._exit(0)
"""
    done = run_python("-c", program, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for line, (call, (_, words)) in zip(done.stdout.splitlines(), calls.items(), strict=True):
        assert line.startswith(f"{call} ")
        assert all(word in line for word in words)


def test_no_engine_is_named_when_rows_come(tmp_path: Path) -> None:
    """The client of Spark alone is installed."""
    program = """
import importlib.util, sys
there = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name in ("pysail", "py4j") else there(name, *more)
import biasspark, pyarrow
biasspark.bias_metrics(pyarrow.table({"x": [1]}), models="x", label="x", identities="x")
"""
    error = run_python("-c", program, cwd=tmp_path).stderr.splitlines()[-1]
    assert error.startswith("biasspark.errors.ConfigError: ")
    assert ".[embedded]" in error
