"""Decisions before a session starts. No JVM is started."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from errno import ENOSPC
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest
from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from biasspark import session
from biasspark.errors import BiasSparkError, ConfigError, InputError
from biasspark.session import engines, spark_jobs
from biasspark.session.job_session import use_driver_python_on_local_masters
from biasspark.session.spark_jobs import temporary_errors
from biasspark.session_request import SessionRequest, current_request, session_requested

JOB_SESSION = sys.modules["biasspark.session.job_session"]  # the name of a function


@pytest.mark.parametrize(
    ("environment", "master", "wanted"),
    [
        ({}, None, sys.executable),
        ({}, "local[2]", sys.executable),
        ({}, "yarn", None),
        ({"MASTER": "yarn"}, None, None),
        ({"MASTER": "yarn"}, "local[2]", sys.executable),
        ({"SPARK_REMOTE": ""}, "local[2]", sys.executable),
        ({"SPARK_REMOTE": "local"}, None, sys.executable),
        ({"SPARK_REMOTE": "local[2]"}, "yarn", sys.executable),
        ({"SPARK_REMOTE": "sc://host:15002"}, "local[2]", None),
        ({"SPARK_REMOTE": "local", "PYSPARK_PYTHON": "python3.12"}, None, "python3.12"),
    ],
)
def test_local_workers_run_the_interpreter_of_the_driver_unless_one_is_named(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], master: str | None, wanted: str | None
) -> None:
    monkeypatch.setattr(os, "environ", environment)
    monkeypatch.setattr(sys.modules["biasspark.session.job_session"], "SparkConf", dict)  # not that of a running JVM
    use_driver_python_on_local_masters({"spark.master": master} if master else {})
    assert os.environ.get("PYSPARK_PYTHON") == wanted


@pytest.mark.parametrize(("version", "is_session"), [("3.5.9", False), ("4.1.4", True)])
def test_threads_inherit_as_each_pyspark_lets_them(
    monkeypatch: pytest.MonkeyPatch, version: str, is_session: bool
) -> None:
    taken: list[Any] = []

    def inherit(target: Any) -> Any:
        taken.append(target)
        return (lambda task: task) if is_session else target

    monkeypatch.setattr(spark_jobs, "__version__", version)
    monkeypatch.setattr(spark_jobs, "inheritable_thread_target", inherit)
    tasks: list[Callable[[], int]] = [lambda: 1, lambda: 2]
    spark = cast("SparkSession", object())
    assert session.run_side_by_side(spark, tasks) == [1, 2]
    assert taken == ([spark, spark] if is_session else tasks)


class ConnectSession:
    """A session whose module has connect in its name."""


BUILT, CONNECTED = object(), ConnectSession()


@pytest.mark.parametrize(
    ("context", "active", "wanted"),
    [
        (None, None, None),
        # A context is enough: the builder creates a session of it, and stopping the session stops the context.
        (object(), None, BUILT),
        (object(), object(), BUILT),
        # PySpark keeps a session whose context was stopped; the builder creates a new one.
        (None, object(), None),
        (None, CONNECTED, CONNECTED),
    ],
)
def test_a_session_is_found_whichever_thread_asks(
    monkeypatch: pytest.MonkeyPatch, context: object, active: object, wanted: object
) -> None:
    def active_session() -> object:
        if active is None:
            raise PySparkRuntimeError("none")
        return active

    monkeypatch.setattr(ConnectSession, "__module__", "pyspark.sql.connect.session")
    monkeypatch.setattr(SparkContext, "_active_spark_context", context)
    monkeypatch.setattr(SparkSession, "active", active_session)
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", lambda _: BUILT)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(session.find_session).result() is wanted


def test_a_server_is_asked_for_all_settings_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ask = Mock(return_value=("1", None))
    monkeypatch.setattr(ConnectSession, "__module__", "pyspark.sql.connect.session")
    monkeypatch.setattr(ConnectSession, "client", SimpleNamespace(get_config_with_defaults=ask), raising=False)
    assert JOB_SESSION.read_settings(CONNECTED, ("a", "b")) == {"a": "1", "b": None}
    ask.assert_called_once_with(("a", None), ("b", None))


def test_a_server_is_asked_for_its_engine_once_it_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    ask, spark = Mock(side_effect=[OSError, None]), cast("Any", ConnectSession())
    monkeypatch.setattr(ConnectSession, "__module__", "pyspark.sql.connect.session")
    spark.client, spark.conf = SimpleNamespace(host="localhost"), SimpleNamespace(get=ask)
    assert [engines.is_embedded(spark) for _ in range(3)] == [False, True, True]


def test_a_job_ends_without_waiting_for_the_accumulators(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their thread polls once a second, and would delay the end of the job."""
    looks_up, stopped = threading.Event(), threading.Event()

    def shut_down() -> None:
        looks_up.wait()
        stopped.set()

    context = SimpleNamespace(_accumulatorServer=SimpleNamespace(shutdown=shut_down))

    def stop() -> None:
        if context._accumulatorServer:
            context._accumulatorServer.shutdown()

    session_of_job = SimpleNamespace(sparkContext=context, stop=stop)
    monkeypatch.setattr(engines, "find_session", lambda: None)
    monkeypatch.setattr(JOB_SESSION, "build_session", lambda *_: session_of_job)
    with session.job_session("a job"):
        pass
    assert not stopped.is_set()
    looks_up.set()
    assert stopped.wait(60)


BOTH = {"embedded", "spark"}


@pytest.mark.parametrize(
    ("request_", "master", "environment", "installed", "wanted"),
    [
        (SessionRequest(), None, {}, BOTH, "embedded"),
        (SessionRequest(), None, {}, {"spark"}, "spark"),
        (SessionRequest(), "local[2]", {}, BOTH, "spark"),
        (SessionRequest(master="local[2]"), None, {}, BOTH, "spark"),
        (SessionRequest(remote="sc://host"), None, {}, {"embedded"}, "spark"),
        (SessionRequest(), None, {"SPARK_REMOTE": "sc://host"}, {"embedded"}, "spark"),
        (SessionRequest(), None, {"PYSPARK_GATEWAY_PORT": "1"}, BOTH, "spark"),
        (SessionRequest(), None, {"MASTER": "local[2]"}, BOTH, "spark"),
        (SessionRequest(engine="spark"), None, {}, BOTH, "spark"),
        (SessionRequest(engine="embedded"), "yarn", {"SPARK_REMOTE": "sc://host"}, {"embedded"}, "embedded"),
        # None of these can be had.
        (SessionRequest(), None, {}, set(), None),
        (SessionRequest(engine="spark"), None, {}, {"embedded"}, None),
        (SessionRequest(master="local[1]"), None, {}, {"embedded"}, None),
        (SessionRequest(engine="embedded"), None, {}, {"spark"}, None),
        (SessionRequest(engine="embedded", master="local"), None, {}, {"embedded"}, None),
        (SessionRequest(engine="embedded", remote="sc://host"), None, {}, {"embedded"}, None),
    ],
)
def test_the_engine_that_is_chosen_or_refused(  # noqa: PLR0917
    monkeypatch: pytest.MonkeyPatch,
    request_: SessionRequest,
    master: str | None,
    environment: dict[str, str],
    installed: set[str],
    wanted: str | None,
) -> None:
    monkeypatch.setattr(os, "environ", environment)
    monkeypatch.setattr(engines, "is_embedded_installed", lambda: "embedded" in installed)
    monkeypatch.setattr(engines, "is_spark_installed", lambda: "spark" in installed)
    if wanted:
        assert engines.choose_engine(request_, master) == wanted
    else:
        with pytest.raises(ConfigError):
            engines.choose_engine(request_, master)


def test_a_server_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(JOB_SESSION, "_LONGEST_SILENCE", 0.5)
    request = SessionRequest(remote="sc://127.0.0.1:1/;token=canary")
    with pytest.raises(ConfigError, match=r"^sc://127\.0\.0\.1:1/;") as raised:
        JOB_SESSION._start_spark("a job", {}, request)
    assert "canary" not in str(raised.value)


@pytest.mark.parametrize(
    ("option", "value"),
    [("remote", "localhost:15002"), ("master", "locl[2]"), ("master", "localhost"), ("master", "local[2")],
)
def test_what_is_no_url_of_a_server_or_a_master(option: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"^--{option}:"):
        JOB_SESSION._start_spark("a job", {}, SessionRequest(**{option: value}))  # type: ignore[arg-type]


def test_a_session_of_another_engine_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    settings: dict[str, str] = {}
    spark = SimpleNamespace(conf=SimpleNamespace(get=settings.get, set=settings.__setitem__))
    monkeypatch.setattr(engines, "find_session", lambda: spark)
    monkeypatch.setattr(engines, "engine_of", lambda _: "spark")
    with pytest.raises(ConfigError, match="engine = embedded"):
        JOB_SESSION.build_session("a job", {"spark.sql.ansi.enabled": "true"}, SessionRequest(engine="embedded"))
    assert settings == {}


class Conf(dict[str, str]):
    """Settings, of which some cannot be changed."""

    fixed: frozenset[str] = frozenset()

    def set(self, key: str, value: str) -> None:
        if key in self.fixed:
            raise ValueError(key)
        self[key] = value

    unset = dict.__delitem__


def test_a_setting_that_numbers_depend_on_and_that_cannot_be_changed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    conf = Conf({"spark.sql.session.timeZone": "Europe/Paris", "spark.sql.csv.parser.columnPruning.enabled": "true"})
    conf.fixed = frozenset(conf)
    monkeypatch.setattr(engines, "find_session", lambda: SimpleNamespace(conf=conf))
    with pytest.raises(ConfigError, match=r"timeZone = Europe/Paris: .*UTC") as raised:
        JOB_SESSION.build_session("a job", request=SessionRequest())
    assert len(raised.value.faults) == 1


def test_a_setting_that_cannot_be_restored_leaves_the_others_to_be_restored() -> None:
    conf = Conf(a="1", b="2")
    with JOB_SESSION.borrow(Mock(conf=conf), ("a", "b", "c")):
        conf |= {"a": "3", "b": "4", "c": "5"}
        conf.fixed = frozenset("a")
    assert conf == {"a": "3", "b": "2"}


def test_an_embedded_engine_that_does_not_start_is_not_called_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(_: object) -> None:
        raise OSError("no loopback")

    monkeypatch.setenv("SPARK_REMOTE", "sc://elsewhere")
    monkeypatch.setattr(engines, "find_session", lambda: None)
    monkeypatch.setattr(engines, "embedded_session", start)
    with pytest.raises(BiasSparkError, match=r"embedded .*: no loopback\.") as raised:
        JOB_SESSION.build_session("a job", request=SessionRequest(engine="embedded"))
    assert "elsewhere" not in str(raised.value)


def test_a_full_temporary_folder_is_named_whoever_writes_to_it() -> None:
    text = "Generic LocalFileSystem error: Unable to copy data to file: No space left on device (os error 28)"
    for error in (ValueError(text), OSError(ENOSPC, "No space left on device")):
        with pytest.raises(BiasSparkError, match=r"No space left on device.*TMPDIR"), temporary_errors("rows"):
            raise error
    with pytest.raises(ValueError, match=r"^other$"), temporary_errors("rows"):
        raise ValueError("other")


def test_a_request_ends_with_its_job() -> None:
    with session_requested(SessionRequest(engine="spark")):
        assert current_request().engine == "spark"
    assert current_request() == SessionRequest()


# ---- the memory need of the embedded engine, compared with the free memory

GIB = 2**30


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with 8 GiB free, and no container."""
    (tmp_path / "meminfo").write_text(f"MemTotal: {16 * 2**20} kB\nMemAvailable: {8 * 2**20} kB\n", "ascii")
    monkeypatch.setattr(engines, "_MEMORY", tmp_path / "meminfo")
    monkeypatch.setattr(engines, "_CONTAINER", tmp_path)
    return tmp_path


def test_what_is_left(machine: Path) -> None:
    assert engines.available_memory() == 8 * GIB
    (machine / "memory.stat").write_text(f"anon {GIB}\nfile {5 * GIB}\n", "ascii")
    (machine / "memory.max").write_text("max\n", "ascii")
    assert engines.available_memory() == 8 * GIB
    (machine / "memory.max").write_text(f"{4 * GIB}\n", "ascii")
    assert engines.available_memory() == 3 * GIB
    (machine / "meminfo").unlink()
    assert engines.available_memory() is None


def test_a_run_that_does_not_fit_is_refused_on_the_embedded_engine_alone(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark = object()
    monkeypatch.setattr(engines, "is_embedded", lambda session: session is spark)
    engines.refuse_too_many(spark, 18_000_000, 2)  # type: ignore[arg-type]
    engines.refuse_too_many(None, 10**12, 2)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"400,000,000 rows .* 8\.0 GiB"):
        engines.refuse_too_many(spark, 400_000_000, 2)  # type: ignore[arg-type]
