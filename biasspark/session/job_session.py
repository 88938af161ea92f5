"""The session of a job: an existing one, or one that is started and stopped; and why it fails to start."""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from threading import Lock, Thread, current_thread, main_thread
from typing import Any, cast

from pyspark import SparkConf
from pyspark.sql import SparkSession
from pyspark.sql.conf import RuntimeConfig

from biasspark.errors import BiasSparkError, ConfigError, has_condition, innermost_cause, redact
from biasspark.session import engines
from biasspark.session_request import SessionRequest, current_request

# ---- settings, and borrowed sessions

_REQUIRED = {  # by all numbers
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
}
_SETTINGS = {
    # The numbers depend on these, so a job does not rely on the defaults of the cluster.
    **_REQUIRED,
    # Spark writes a checksum of every page, but does not verify it by default.
    "parquet.page.verify-checksum.enabled": "true",
    # When Spark skips pages, it mixes values of different rows: integers in DELTA_BINARY_PACKED with booleans in RLE.
    "parquet.filter.columnindex.enabled": "false",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Otherwise a column of times in nanoseconds, as pandas writes them, makes all columns unreadable.
    "spark.sql.legacy.parquet.nanosAsLong": "true",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    # Otherwise lines with too many fields go unnoticed if few columns are read. Spark 3.5.0 lacks the reader option.
    "spark.sql.csv.parser.columnPruning.enabled": "false",
    # Only speed depends on the rest.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "200000",
    # Rows are narrow, so their number bounds a batch. With any other limit Spark 4 sums the bytes of all columns after
    # each row, which takes nearly as long as the transfer of the rows.
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
    # HotSpot never compiles a larger method. With the limit Spark generates smaller ones: without it, 30 columns of
    # annotations are scanned twelve times slower than 24.
    "spark.sql.codegen.hugeMethodLimit": "8000",
    # Recording the Python line of every Column makes them twice as slow to build.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
# They log failures that are caught and explained: values of failed tasks, plans that cannot be analyzed, schemas that
# exist already, and code that is too large to compile, which Spark then splits.
_LOGGERS_OF_FAILURES = (
    "org.apache.hadoop.hive.metastore.RetryingHMSHandler",
    "org.apache.spark.TaskContextImpl",
    "org.apache.spark.api.python",
    "org.apache.spark.executor.Executor",
    "org.apache.spark.sql.catalyst.expressions.codegen.CodeGenerator",
    "org.apache.spark.sql.delta.files",
    "org.apache.spark.sql.execution.datasources.FileFormatWriter",
    "org.apache.spark.sql.execution.python",
    "org.apache.spark.sql.util.ExecutionListenerBus",
    "org.apache.spark.util.Utils",
)

_N_JOBS: Counter[SparkSession] = Counter()
_PREVIOUS_SETTINGS: defaultdict[SparkSession, dict[str, str | None]] = defaultdict(dict)
"""How many jobs borrow a session, and its settings before; None for those that were not set."""
_BORROW_LOCK = Lock()


def read_settings(spark: SparkSession, keys: Iterable[str]) -> dict[str, str | None]:
    """Return settings of a session, None for those that are not set. A server is asked for all of them at once."""
    asked = list(keys)
    if engines.is_connect(spark):
        values = cast("Any", spark).client.get_config_with_defaults(*((key, None) for key in asked))
        return dict(zip(asked, values, strict=True))
    return {key: spark.conf.get(key, None) for key in asked}


@contextmanager
def borrow(spark: SparkSession, keys: Iterable[str]) -> Iterator[None]:
    """Borrow a session, and restore some settings when the last job that borrows it ends."""
    with _BORROW_LOCK:
        before = _PREVIOUS_SETTINGS[spark]
        before |= read_settings(spark, (key for key in keys if key not in before))
        _N_JOBS[spark] += 1
    try:
        yield
    finally:
        with _BORROW_LOCK:
            _N_JOBS[spark] -= 1
            if not _N_JOBS[spark]:
                del _N_JOBS[spark], _PREVIOUS_SETTINGS[spark]
                with suppress(Exception):  # the session is gone, because of which the job fails
                    for key, present in read_settings(spark, before).items():
                        if (value := before[key]) != present:  # static settings never differ, and cannot be set
                            with suppress(Exception):  # it is refused
                                spark.conf.unset(key) if value is None else spark.conf.set(key, value)


# ---- why Spark does not start, or would fail later: no usable Java, or a lake runtime for another Spark

_NO_JAVA = (
    "Spark did not start: there is no Java, or it ended at once. Its message is above. Spark needs Java 17 or newer. "
    "Set JAVA_HOME to its folder, or install one, for example the package openjdk-17-jre-headless, or start the job by "
    "scripts/submit, which downloads one. With such a Java, check the settings of the session: the master, packages "
    "that cannot be fetched (spark.jars.packages), spark.driver.memory, options of Java, and PYSPARK_SUBMIT_ARGS."
)
_NO_SERVER_URL = "--remote: it must be a URL such as sc://host:15002. Correct it, or SPARK_REMOTE."
_LONGEST_SILENCE = 15.0
"""The seconds to wait for an answer of a server."""
# Artifacts of Iceberg, and of Delta from 4.0 on, name the version of Spark. Earlier releases of Delta are for one each.
_RUNTIMES = (
    (re.compile(r"\b((?:iceberg-spark-runtime-|delta-spark_)(\d+\.\d+)_2\.\d+[:-][\w.-]*\w)"), ""),
    (re.compile(r"\b(delta-spark_2\.1\d[:-]3\.[\w.-]*\w)"), "3.5"),
    (re.compile(r"\b(delta-spark_2\.13[:-]4\.0\.[\w.-]*\w)"), "4.0"),
)


@contextmanager
def start_faults() -> Iterator[None]:
    """Explain why there is no session: by a `ConfigError` without Java or with wrong jars, else a `BiasSparkError`."""
    try:
        yield
    except Exception as error:
        if has_condition(error, "JAVA_GATEWAY_EXITED"):
            home = os.environ.get("JAVA_HOME")
            java = shutil.which("java", path=os.path.join(home, "bin") if home else None)
            # If there is one, its end may have a cause that passes, such as packages that cannot be fetched.
            raise (BiasSparkError if java else ConfigError)(_NO_JAVA) from None
        if has_condition(error, "INVALID_CONNECT_URL"):
            raise ConfigError(_NO_SERVER_URL) from None
        context = engines.active_context()
        if context is not None and (fault := find_runtime_fault(list_jars(context.getConf()), context.version)):
            context.stop()
            raise ConfigError(fault) from None
        cause, master = innermost_cause(error), None
        if "stopped SparkContext" in str(error):
            cause = "it was stopped during its start, as happens if no master answers"
        with suppress(Exception):  # there may be no JVM
            master = SparkConf().get("spark.master", None)
        remote = os.environ.get("SPARK_REMOTE")
        where = f"SPARK_REMOTE = {redact(remote)}" if remote else f"the master {redact(master or 'that is configured')}"
        fix = "Check the master, SPARK_LOCAL_IP and the settings of the session."
        raise BiasSparkError(f"Spark did not start on {where}: {cause}. {fix}") from error


def list_jars(conf: SparkConf | RuntimeConfig) -> str:
    """Return the packages and jars in the settings of a session, separated by commas."""
    return ",".join(conf.get(key, None) or "" for key in ("spark.jars.packages", "spark.jars"))


def find_runtime_fault(jars: str, version: str) -> str | None:
    """Return the fault of a Delta or Iceberg runtime in `list_jars` for another Spark than this version, or None."""
    for pattern, spark_release in _RUNTIMES:
        for jar in pattern.finditer(jars):
            release = spark_release or jar[2]
            if not re.match(rf"{re.escape(release)}(?!\d)", version):
                where = "spark.jars.packages" if ":" in jar[1] else "spark.jars"
                return (
                    f"{where}: {jar[1]} is for Spark {release}, and Spark {version} runs. Each version of Spark needs "
                    f"its own runtime. Run Spark {release} (pip install 'pyspark=={release}.*'), or name the runtime "
                    "for this version, if there is one: docs/runs.md lists them. Without Delta and Iceberg, leave the "
                    "package and its settings out, and write Parquet."
                )
    return None


def silence_query_context() -> None:
    """Keep PySpark 4 from printing a JSON line with the JVM stack for every error that is caught and explained."""
    if find_spec("pyspark.logger") is None:
        return
    loggers = import_module("pyspark.logger").PySparkLogger
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        loggers.getLogger(name).setLevel(logging.CRITICAL + 1)


def silence_py4j() -> None:
    """Keep py4j from logging calls that are interrupted, in part by the root logger: the job says that it was."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
    logging.getLogger().addFilter(_is_not_of_py4j)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in record.pathname


# ---- the session


def local() -> SparkSession:
    """Return a session of the embedded engine: within this process, without Java.

    Its server listens on a random port of this machine alone, and is stopped when the process ends. Every call returns
    the same session. Raises `ConfigError` if the engine is not installed, or a session of another engine is there.
    """
    return build_session("biasspark", request=SessionRequest(engine="embedded"))


def build_session(
    app_name: str, settings: Mapping[str, str] | None = None, request: SessionRequest | None = None
) -> SparkSession:
    """Return the session of a job, with the settings that the numbers and their speed depend on.

    An existing session is reconfigured; its name and log level are kept. Otherwise `choose_engine` chooses the engine.
    `settings` override the defaults; `request` is by default that of the command line. Raises `ConfigError` if no
    engine can be started, the existing session has another engine, or a lake runtime is for another Spark.
    """
    request, settings = request or current_request(), {**_SETTINGS, **(settings or {})}
    existing = engines.find_session()
    if existing is None and engines.choose_engine(request, settings.get("spark.master")) == "embedded":
        silence_query_context()
        try:
            return engines.embedded_session(settings)
        except Exception as error:
            rule = f"The embedded engine did not start: {innermost_cause(error)}."
            raise BiasSparkError(f"{rule} Run it on Spark (--engine spark).") from error
    spark = _reconfigure(existing, settings, request) if existing else _start_spark(app_name, settings, request)
    jars = list_jars(spark.conf if engines.is_connect(spark) else spark.sparkContext.getConf())
    if fault := find_runtime_fault(jars, spark.version):
        if existing is None:
            stop(spark)
        raise ConfigError(fault)
    if existing is None and not engines.is_connect(spark):
        context: Any = spark.sparkContext
        context.setLogLevel(spark.conf.get("spark.log.level", "ERROR") or "ERROR")
        log4j = context._jvm.org.apache.logging.log4j
        for name in _LOGGERS_OF_FAILURES:
            log4j.core.config.Configurator.setLevel(name, log4j.Level.OFF)
    return spark


def stop(spark: SparkSession) -> None:
    """Stop a session. Do not wait for the accumulator thread of PySpark, which may take a second."""
    if engines.is_connect(spark):
        spark.stop()
        return
    context: Any = spark.sparkContext
    accumulators, context._accumulatorServer = getattr(context, "_accumulatorServer", None), None
    spark.stop()
    if accumulators:
        Thread(target=accumulators.shutdown, name="stop-accumulators", daemon=True).start()


def use_driver_python_on_local_masters(settings: Mapping[str, str]) -> None:
    """Run local workers with the Python of the driver. On a cluster an archive may name another interpreter."""
    configured = settings.get("spark.master") or SparkConf().get("spark.master")
    master = os.environ.get("SPARK_REMOTE") or configured or os.environ.get("MASTER") or "local"
    if master.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def _start_spark(app_name: str, settings: Mapping[str, str], request: SessionRequest) -> SparkSession:
    builder = SparkSession.builder.appName(app_name)
    if request.master:
        if not re.match(r"local(-cluster)?(\[.*])?$|yarn$|\w+://", request.master):
            raise ConfigError("--master: it must be yarn, or a form such as local[4] or spark://host:7077. Correct it.")
        settings = {**settings, "spark.master": request.master}
    remote = request.remote or os.environ.get("SPARK_REMOTE", "")
    if request.remote:
        if not re.match(r"sc://|local(\[.*])?$", request.remote):
            raise ConfigError(_NO_SERVER_URL)
        builder = builder.remote(request.remote)
    elif "SPARK_REMOTE" not in os.environ:
        os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)  # PySpark keeps it when a Connect session stops
    use_driver_python_on_local_masters(settings)
    silence_query_context()
    if not remote:
        settings = {**settings, "spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower()}
    builder = builder.config(map={key: value for key, value in settings.items() if key.startswith("spark.")})
    if remote.startswith("sc://"):
        _refuse_silent_server(remote)
    with start_faults():
        spark: SparkSession = builder.getOrCreate()
    for key, value in settings.items():
        if not key.startswith("spark."):  # when Spark starts, it refuses these with a warning
            spark.conf.set(key, value)
    return spark


def _refuse_silent_server(remote: str) -> None:
    """Raise `ConfigError` if a Spark Connect server does not answer soon: the client would try for ten minutes."""
    client, grpc = import_module("pyspark.sql.connect.client.core"), import_module("grpc")
    builder = getattr(client, "DefaultChannelBuilder", None) or client.ChannelBuilder  # 4.0's name, and 3.5's
    with start_faults():
        channel = builder(remote).toChannel()
    try:
        grpc.channel_ready_future(channel).result(timeout=_LONGEST_SILENCE)
    except grpc.FutureTimeoutError:
        raise ConfigError(
            f"{redact(remote)}: no Spark Connect server answers there. Check --remote or SPARK_REMOTE, and that the "
            "server runs."
        ) from None
    finally:
        channel.close()


def _reconfigure(spark: SparkSession, settings: Mapping[str, str], request: SessionRequest) -> SparkSession:
    """Return the existing session, reconfigured. Raises `ConfigError` if another engine is requested."""
    engine = engines.engine_of(spark)
    if request.engine not in (None, engine):
        raise ConfigError(
            f"engine = {request.engine}: a session of the engine {engine} already exists, and a process has one at a "
            "time. Stop it first, or start another process."
        )
    for key, present in read_settings(spark, settings).items():
        if present != settings[key]:
            with suppress(Exception):  # static settings cannot be changed
                spark.conf.set(key, settings[key])
    faults = [
        f"{key} = {present}: the numbers depend on it, and this session cannot change it. Set it to {settings[key]} "
        "where the session is configured."
        for key, present in read_settings(spark, _REQUIRED).items()
        if present not in (None, settings[key])
    ]
    if faults:
        raise ConfigError(*faults)
    return spark


@contextmanager
def job_session(app_name: str, settings: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """Yield the session of a job, and stop it. An existing session is kept, and its settings are restored.

    A new session leaves Ctrl-C to the job: PySpark's handler calls Java, and fails if the interrupted code does, too.
    """
    if existing := engines.find_session():
        with borrow(existing, (*_SETTINGS, *(settings or ()))):
            yield build_session(app_name, settings)
        return
    silence_py4j()
    handler = signal.getsignal(signal.SIGINT)
    spark = build_session(app_name, settings)
    if handler is not None and current_thread() is main_thread():
        signal.signal(signal.SIGINT, handler)
    try:
        yield spark
    finally:
        stop(spark)
