"""Delta and Iceberg with their real runtimes: lake_runs.py in a process of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.submitting import ROOT, run_python
from tests.processes.lake_runs import FORMATS, SPARK


@pytest.mark.slow
@pytest.mark.skipif(not FORMATS, reason=f"no format has a runtime for Spark {SPARK}")
def test_runs_on_delta_and_iceberg(tmp_path: Path) -> None:
    """The same protocol and the same results as on Parquet."""
    program = ("-m", "pytest", "-q", "-p", "no:cacheprovider", Path(__file__).with_name("lake_runs.py"))
    done = run_python(*program, "--basetemp", tmp_path / "work", SPARK_CONF_DIR=str(ROOT / "conf"))
    if "unresolved dependency" in done.stdout + done.stderr:
        pytest.skip("the jars of conf/lake-*.conf cannot be had here: no repository of Maven answers")
    assert done.returncode == 0, done.stdout[-5000:]
