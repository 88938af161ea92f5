"""What is settled before a session is there; no JVM is started."""

from __future__ import annotations

import os
import sys
from typing import Any

import pytest

from biasspark import session
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


@pytest.mark.parametrize(("version", "is_session"), [("3.5.9", False), ("4.1.4", True)])
def test_threads_inherit_as_each_pyspark_lets_them(
    monkeypatch: pytest.MonkeyPatch, version: str, is_session: bool
) -> None:
    taken: list[Any] = []

    def inherit(target: Any) -> Any:
        taken.append(target)
        return (lambda task: task) if is_session else target

    monkeypatch.setattr(session, "__version__", version)
    monkeypatch.setattr(session, "inheritable_thread_target", inherit)
    tasks, spark = [lambda: 1, lambda: 2], object()
    assert session.run_side_by_side(spark, tasks) == [1, 2]
    assert taken == ([spark, spark] if is_session else tasks)
