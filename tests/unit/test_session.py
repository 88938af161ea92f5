"""What is settled before a session is there; no JVM is started."""

from __future__ import annotations

import os
import sys

import pytest

from biasspark.session import _use_driver_python_on_local_masters


@pytest.mark.parametrize(
    ("remote", "master", "wanted"),
    [
        (None, None, sys.executable),
        (None, "local[2]", sys.executable),
        (None, "yarn", None),
        ("", "local[2]", sys.executable),
        ("local", None, sys.executable),
        ("local[2]", "yarn", sys.executable),
        ("sc://host:15002", "local[2]", None),
    ],
)
def test_local_workers_run_the_interpreter_of_the_driver(
    monkeypatch: pytest.MonkeyPatch, remote: str | None, master: str | None, wanted: str | None
) -> None:
    monkeypatch.setattr(os, "environ", {} if remote is None else {"SPARK_REMOTE": remote})
    _use_driver_python_on_local_masters({"spark.master": master} if master else {})
    assert os.environ.get("PYSPARK_PYTHON") == wanted


def test_a_python_that_is_named_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {"SPARK_REMOTE": "local", "PYSPARK_PYTHON": "python3.12"})
    _use_driver_python_on_local_masters({})
    assert os.environ["PYSPARK_PYTHON"] == "python3.12"
