"""The choice of an engine, the kinds of sessions, and the embedded engine: Sail, within this process."""

from __future__ import annotations

import atexit
import ctypes
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from socket import create_connection
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any, cast
from weakref import WeakKeyDictionary

import pyspark
import pyspark.sql.functions as F
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import types as T

from biasspark.errors import ABSENT, GET_AN_ENGINE, ConfigError, Fault, InputError, redact
from biasspark.expressions.embedded_sql import Kind, NotOnTheEmbeddedEngine, to_embedded_sql
from biasspark.interrupts import guard_interrupts
from biasspark.session_request import Engine, SessionRequest
from biasspark.text import format_count

_SPARK_SUBMIT_VARIABLES = {"PYSPARK_GATEWAY_PORT", "PYSPARK_SUBMIT_ARGS", "MASTER"}
"""Set by spark-submit, or by users to pass its arguments."""


def choose_engine(request: SessionRequest, configured_master: str | None) -> Engine:
    """Return the engine of a new session.

    The first that applies: the requested engine; Spark, if a server, a master (also in the settings of the session:
    `configured_master`) or arguments of spark-submit are given; the embedded engine or local Spark, if installed.
    Raises `ConfigError` if the request contradicts itself, or no engine is installed.
    """
    remote = request.remote or os.environ.get("SPARK_REMOTE")
    has_cluster = bool(remote or request.master or configured_master or _SPARK_SUBMIT_VARIABLES & os.environ.keys())
    if request.engine == "embedded":
        if request.remote or request.master:
            raise ConfigError("--engine embedded: it has no server and no master. Leave out --remote and --master.")
        if not is_embedded_installed():
            raise ConfigError(f"--engine embedded: it is not installed. {GET_AN_ENGINE}.")
        return "embedded"
    if has_cluster:
        if not remote and not is_spark_installed():
            master = f"--master {redact(request.master)}" if request.master else "A master"
            raise ConfigError(f"{master}: Spark is not installed, only its client. {GET_AN_ENGINE}.")
        return "spark"
    if request.engine is None and is_embedded_installed():
        return "embedded"
    if is_spark_installed():
        return "spark"
    missing = "--engine spark: Spark is not installed" if request.engine else "No engine is installed"
    raise ConfigError(f"{missing}. {GET_AN_ENGINE}.")


def is_embedded_installed() -> bool:
    """Return whether the embedded engine and its client are installed."""
    return find_spec("pysail") is not None and find_spec("grpc") is not None


def is_spark_installed() -> bool:
    """Return whether Spark itself is installed, not only its client."""
    return find_spec("py4j") is not None


def find_session() -> SparkSession | None:
    """Return the existing session of any thread, or one of the existing context; None if there is neither."""
    if active_context() is not None:
        return SparkSession.builder.getOrCreate()
    with suppress(PySparkRuntimeError):  # there is none
        spark = SparkSession.active()
        # A classic session without a context was stopped, and the builder creates another.
        if is_connect(spark) and not _is_of_dead_server(spark):
            return spark
    return None


def active_context() -> Any:
    """Return the running context of Spark, None if there is none or only the client is installed."""
    return getattr(getattr(pyspark, "SparkContext", None), "_active_spark_context", None)


def is_connect(spark: SparkSession) -> bool:
    """Return whether the session uses a Spark Connect server. The embedded engine is one."""
    return "connect" in type(spark).__module__


_ARE_EMBEDDED: WeakKeyDictionary[SparkSession, bool] = WeakKeyDictionary()
"""The answers of servers, which are asked once."""


def is_embedded(spark: SparkSession) -> bool:
    """Return whether the engine is embedded: a Connect server on this machine without a Spark master."""
    if not is_connect(spark):
        return False
    if spark not in _ARE_EMBEDDED:
        with suppress(Exception):  # servers without access to such settings
            session = cast("Any", spark)
            is_local = session.client.host in ("localhost", "127.0.0.1", "::1", "[::1]")
            _ARE_EMBEDDED[spark] = is_local and session.conf.get("spark.master", None) is None
    return _ARE_EMBEDDED.get(spark, False)


def sees_files(spark: SparkSession) -> bool:
    """Return whether files are accessible through a session: not with a remote Spark Connect server."""
    return not is_connect(spark) or is_embedded(spark)


# ---- the SQL of a configuration, on any engine

_KINDS: tuple[tuple[tuple[type[T.DataType], ...], Kind], ...] = (
    ((T.DoubleType,), "double"),
    ((T.FloatType,), "float"),
    ((T.DecimalType,), "decimal"),
    ((T.IntegralType,), "integer"),
    ((T.StringType,), "text"),
    ((T.BooleanType,), "boolean"),
    ((T.DateType, T.TimestampType, T.TimestampNTZType), "date"),
)


def expression(corpus: DataFrame, text: str) -> Column:
    """Return a configured expression as a column. Raises `InputError` if the embedded engine computes another value."""
    if not is_embedded(corpus.sparkSession):
        return F.expr(text)
    kinds: dict[str, Kind] = {
        field.name: next((kind for types, kind in _KINDS if isinstance(field.dataType, types)), "other")
        for field in corpus.schema
    }
    try:
        return F.expr(to_embedded_sql(text, kinds))
    except NotOnTheEmbeddedEngine as error:
        rule = f"The embedded engine {error}."
        raise InputError(Fault((), ABSENT, rule, error.fix)) from None


# ---- the embedded engine

# Read when the server starts, and the client connects.
_ENVIRONMENT = {
    # Rows per batch of Python functions. With the default of 8,192 they take several times as long.
    "SAIL_EXECUTION__BATCH_SIZE": "100000",
    # With statistics of a file whose column has one value and NaN, it would read NaN as that value.
    "SAIL_EXECUTION__COLLECT_STATISTICS": "false",
    # It reads each operator of a predicate in a deeper call. With the default of 8 MiB, 600 of them end the process.
    "SAIL_RUNTIME__STACK_SIZE": str(256 * 2**20),
    # The client would connect to the server through the proxy of `http_proxy`.
    "no_grpc_proxy": "127.0.0.1",
}
BYTES_A_SCORE, BYTES_AN_ATTRIBUTION, _BYTES_OF_AN_ENGINE = 48, 160, 600 * 2**20
"""Measured with 1.8 to 18 million rows of two models. Scores are in memory while they are cut, sorted and ranked."""
_MEMORY, _CONTAINER = Path("/proc/meminfo"), Path("/sys/fs/cgroup")

_QUIET_CHECKS = 20
"""Checks of 10 ms without a Python function after which the engine writes no more."""

_START_LOCK = threading.Lock()
_folders: list[TemporaryDirectory[str]] = []
_servers: dict[str, Any] = {}
"""Servers by endpoint, in the order of their starts. Only the last one may be running."""
ctypes.pythonapi.PyOS_getsig.restype = ctypes.c_void_p
ctypes.pythonapi.PyOS_setsig.argtypes = (ctypes.c_int, ctypes.c_void_p)


def embedded_session(settings: dict[str, str]) -> SparkSession:
    """Return a session of the embedded engine. Its server, on loopback, is started once, or again if it is gone."""
    guard_interrupts()
    with _START_LOCK:
        endpoint = next(reversed(_servers), "")
        if not _answers(endpoint):
            with suppress(PySparkRuntimeError):  # no session
                SparkSession.active().stop()  # or the builder returns the one of the server that is gone
            endpoint = _start_server()
    spark: SparkSession = SparkSession.builder.remote(f"sc://{endpoint}").config(map={**settings}).getOrCreate()
    # The client would ask a server that is gone again for ten minutes. One in this process does not come back.
    cast("Any", spark).client.set_retry_policies([])
    return spark


def _is_of_dead_server(spark: SparkSession) -> bool:
    """Return whether this process started the server of a session, and it no longer answers."""
    with suppress(AttributeError):  # of a client that does not tell its endpoint
        endpoint: str = cast("Any", spark).client._builder.endpoint
        return endpoint in _servers and not _answers(endpoint)
    return False


def _answers(endpoint: str) -> bool:
    """Return whether a server accepts connections: its property `running` stays true if its thread ends."""
    host, _, port = endpoint.rpartition(":")
    with suppress(OSError), create_connection((host, int(port or 0)), timeout=5):
        return True
    return False


def engine_of(spark: SparkSession) -> Engine:
    """Return the engine of a session."""
    return "embedded" if is_embedded(spark) else "spark"


def engine_version(spark: SparkSession) -> str:
    """Return the version of Spark; for the embedded engine the compatible version of Spark, and its own."""
    return f"{spark.version} (pysail {import_module('pysail').__version__})" if is_embedded(spark) else spark.version


def refuse_too_many(spark: SparkSession, n_rows: int, n_models: int, bytes_a_score: int = BYTES_A_SCORE) -> None:
    """Raise `InputError` if the embedded engine would need more memory to rank these rows than is free.

    The estimate ignores ranges and slices, so a run that passes may still need more.
    """
    needed = _BYTES_OF_AN_ENGINE + bytes_a_score * n_rows * n_models
    if not is_embedded(spark) or (available := available_memory()) is None or needed <= available:
        return
    raise InputError(
        f"corpus: {n_rows:,} rows and {format_count(n_models, 'model')} need about {needed / 2**30:.1f} GiB, and "
        f"{available / 2**30:.1f} GiB are free. The embedded engine holds all scores in memory. Run it on Spark "
        "(--engine spark), measure fewer models at a time, or free memory."
    )


def available_memory() -> int | None:
    """Return the bytes that this process may still allocate, within the limit of its container; None if unknown."""
    if not _MEMORY.exists():
        return None
    fields = dict(line.split(":", 1) for line in _MEMORY.read_text("ascii").splitlines())
    free = int(fields["MemAvailable"].split()[0]) * 1024
    with suppress(OSError, ValueError):  # no container, or no limit
        limit = int((_CONTAINER / "memory.max").read_text("ascii"))
        used = dict(line.split() for line in (_CONTAINER / "memory.stat").read_text("ascii").splitlines())
        free = min(free, limit - int(used["anon"]))
    return free


def _start_server() -> str:
    os.environ.setdefault("RUST_LOG", "off")  # unless the user wants to see it
    os.environ.update(_ENVIRONMENT)
    os.environ.pop("MASTER", None)  # in the whole process: PySpark refuses it next to the URL of a server
    server = import_module("pysail.spark").SparkConnectServer("127.0.0.1", 0)
    handler = ctypes.pythonapi.PyOS_getsig(signal.SIGINT)
    server.start(background=True)
    _restore_interrupt_handler(handler)
    atexit.register(_stop_server, server)
    host, port = server.listening_address
    _servers[f"{host}:{port}"] = server
    return f"{host}:{port}"


def temporary_folder() -> Path:
    """Return a new folder, which is deleted when the process ends, after the engine."""
    if not _folders:
        _folders.append(TemporaryDirectory(prefix="biasspark-"))
    return Path(mkdtemp(dir=_folders[0].name))


def _stop_server(server: Any) -> None:
    """Stop a server, wait for the Python functions that it still runs, and delete the temporary files.

    The process would abort under the functions, and the engine writes their last rows after they end.
    """
    with suppress(RuntimeError):  # it is stopped already
        server.stop()
    deadline = time.monotonic() + 10
    n_quiet = 0
    while n_quiet < (_QUIET_CHECKS if _folders else 1) and time.monotonic() < deadline:
        started = {thread.ident for thread in threading.enumerate() if not thread.name.startswith("Dummy-")}
        is_quiet = sys._current_frames().keys() <= started  # Python runs in no thread that Python has not started
        n_quiet = n_quiet + 1 if is_quiet else 0
        time.sleep(0.01)
    for folder in _folders:
        folder.cleanup()


def _restore_interrupt_handler(handler: int | None) -> None:
    """Restore the handler of SIGINT. The first server of a process replaces it, soon after its start."""
    deadline = time.monotonic() + 1
    is_first = not _servers
    while is_first and ctypes.pythonapi.PyOS_getsig(signal.SIGINT) == handler and time.monotonic() < deadline:
        time.sleep(0.001)
    ctypes.pythonapi.PyOS_setsig(signal.SIGINT, handler)  # signal.signal works in the main thread only
