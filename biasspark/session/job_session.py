"""The session of a job: one that is there, or one that is started for it and stopped; and why it does not start."""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from threading import Lock

import pyspark
from pyspark import SparkConf
from pyspark.sql import SparkSession
from pyspark.sql.conf import RuntimeConfig

from biasspark.errors import (
    BiasSparkError,
    ConfigError,
    has_condition,
    innermost_cause,
    redact,
)
from biasspark.session import engines
from biasspark.session.classic import remember_classes, silence_failures, stop, use_driver_python_on_local_masters
from biasspark.session_request import SessionRequest, current_request, endpoint_of

# ---- settings, and a loan of a session that is there

# What the numbers rely on: the job sets it and does not trust the cluster's defaults.
_REQUIRED = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    # Spark writes a checksum of every page, and left alone never looks at it.
    "parquet.page.verify-checksum.enabled": "true",
    # Where Spark skips pages, it pairs values of different rows: integers in DELTA_BINARY_PACKED with booleans in RLE.
    "parquet.filter.columnindex.enabled": "false",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    # Or a line with too many fields is not noticed where few are read. Spark 3.5.0 does not know the reader's option.
    "spark.sql.csv.parser.columnPruning.enabled": "false",
}
# What makes it fast, and a notebook's own session may do without.
_TUNED = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "200000",
    # Rows are narrow, so their number bounds a batch. With any other limit Spark 4 adds up the bytes of all columns
    # after each row, which takes nearly as long as handing the rows over.
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
    # HotSpot never compiles a method of more bytes. Above the limit Spark generates smaller ones: without it, 30
    # columns of annotations are scanned twelve times slower than 24.
    "spark.sql.codegen.hugeMethodLimit": "8000",
    # Recording the line of Python of every Column makes hundreds of them twice as slow to build.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}


@dataclass
class _Loan:
    """How many jobs have borrowed a session at once, and the settings that it had before; None where it had none."""

    n_jobs: int = 0
    before: dict[str, str | None] = field(default_factory=dict)


_LOANS: dict[SparkSession, _Loan] = {}
_LENDING = Lock()


def list_settings(settings: Mapping[str, str] | None) -> dict[str, str]:
    """Return the settings of a session; those that a caller gives win."""
    return _REQUIRED | _TUNED | dict(settings or {})


@contextmanager
def borrow(spark: SparkSession, keys: Sequence[str]) -> Iterator[None]:
    """Note what a session has for some settings, and have the last job that has borrowed it give them back."""
    with _LENDING:
        loan = _LOANS.setdefault(spark, _Loan())
        loan.n_jobs += 1
        loan.before |= {key: spark.conf.get(key, None) for key in keys if key not in loan.before}
    try:
        yield
    finally:
        with _LENDING:
            loan.n_jobs -= 1
            if not loan.n_jobs:
                del _LOANS[spark]
                with suppress(Exception):  # of a session that is gone, which is what the job fails by
                    _give_back(spark, loan.before)


def _give_back(spark: SparkSession, before: Mapping[str, str | None]) -> None:
    """Set what differs; a static setting never does, and refuses to be set."""
    for key, value in before.items():
        if spark.conf.get(key, None) == value:
            continue
        if value is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, value)


# ---- why Spark does not start, or would fail later: no usable Java, or a lake runtime that is for another Spark

LEAST_JAVA = 17
_JARS = ("spark.jars.packages", "spark.jars")
_JAVA_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_GET_JAVA = (
    f"Spark needs Java {LEAST_JAVA} or newer. Set JAVA_HOME to the folder of one, or install one, for example the "
    "package openjdk-17-jre-headless. Or start the job by scripts/submit, which fetches one."
)
# Iceberg and, from 4.0 on, Delta name the Spark that an artifact is for; its earlier releases each are for one.
_RUNTIMES = (
    (re.compile(r"\b((?:iceberg-spark-runtime-|delta-spark_)(\d+\.\d+)_2\.\d+[:-][\w.-]*\w)"), ""),
    (re.compile(r"\b(delta-spark_2\.1\d[:-]3\.[\w.-]*\w)"), "3.5"),
    (re.compile(r"\b(delta-spark_2\.13[:-]4\.0\.[\w.-]*\w)"), "4.0"),
)


_LONGEST_SILENCE = 15.0
"""Seconds for which a server may not answer."""


@contextmanager
def start_faults() -> Iterator[None]:
    """Say why a session could not be built, in place of what PySpark says.

    Raises `ConfigError` if there is no Java, or one that is too old; if a jar of the session is for another Spark, and
    `BiasSparkError` if it is for another reason.
    """
    try:
        yield
    except Exception as error:
        if has_condition(error, "JAVA_GATEWAY_EXITED"):
            raise explain_no_gateway() from None
        if has_condition(error, "INVALID_CONNECT_URL"):
            raise ConfigError(
                "--remote: it must be a URL such as sc://host:15002. Correct it, or SPARK_REMOTE."
            ) from None
        context = getattr(getattr(pyspark, "SparkContext", None), "_active_spark_context", None)
        if context is not None and (fault := find_runtime_fault(list_jars(context.getConf()), context.version)):
            context.stop()
            raise ConfigError(fault) from None
        cause = innermost_cause(error)
        if "stopped SparkContext" in str(error):
            cause = "it was stopped while it started, as happens where no master answers"
        raise BiasSparkError(
            f"Spark did not start on {_describe_master()}: {cause}. Check the master, SPARK_LOCAL_IP and "
            "the settings of the session."
        ) from error


def _describe_master() -> str:
    """Return where the session was to start, as far as that is known."""
    if remote := os.environ.get("SPARK_REMOTE"):
        return f"SPARK_REMOTE = {redact(remote)}"
    try:
        return f"the master {redact(SparkConf().get('spark.master', '') or 'that is configured')}"
    except Exception:  # noqa: BLE001 - there may be no JVM to ask
        return "the master that is configured"


def explain_no_gateway() -> BiasSparkError:
    """Return the fault of a Java process that ended before Spark was there. It has said on stderr why it did."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if java is None:
        return ConfigError(f"Java: none was found. JAVA_HOME is not set, and no java is on the PATH. {_GET_JAVA}")
    version = find_java_version(java)
    if version is None or version < LEAST_JAVA:
        fault = f"{java} does not run" if version is None else f"{java} is version {version}"
        on_path = shutil.which("java") if home else None
        is_better = on_path and (find_java_version(on_path) or 0) >= LEAST_JAVA
        hint = f" Without JAVA_HOME, {on_path} would be used, which is new enough." if is_better else ""
        return ConfigError(f"{'JAVA_HOME' if home else 'Java'}: {fault}. {_GET_JAVA}{hint}")
    return BiasSparkError(
        f"Spark did not start: {java}, which is Java {version}, ended at once. Its own message is above. Check the "
        "settings of the session: packages that cannot be fetched (spark.jars.packages), spark.driver.memory, "
        "options of Java, and PYSPARK_SUBMIT_ARGS."
    )


def find_java_version(java: str) -> int | None:
    """Return the feature version of a Java: 8, 17, 21. None if it does not run."""
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    version = _JAVA_VERSION.search(done.stderr + done.stdout)
    return int(version[1]) if version else None


def list_jars(conf: SparkConf | RuntimeConfig) -> str:
    """Return the packages and jars that the settings of a session name, with commas between them."""
    return ",".join(conf.get(key, None) or "" for key in _JARS)


def find_runtime_fault(jars: str, version: str) -> str | None:
    """Return the fault of a runtime of Delta or Iceberg that is for another Spark than the one that runs.

    Parameters
    ----------
    jars
        The packages and jars of a session, as `list_jars` returns them.
    version
        Of the Spark that runs.
    """
    for pattern, of_release in _RUNTIMES:
        for jar in pattern.finditer(jars):
            wanted = of_release or jar[2]
            if not re.match(rf"{re.escape(wanted)}(?!\d)", version):
                where = "spark.jars.packages" if ":" in jar[1] else "spark.jars"
                return (
                    f"{where}: {jar[1]} is for Spark {wanted}, and Spark {version} runs. Each version of "
                    f"Spark needs a runtime of its own. Run Spark {wanted} (pip install 'pyspark=={wanted}.*'), or "
                    "name the runtime for this version, if there is one: docs/nights.md lists them. Without Delta "
                    "and Iceberg, leave the package and its settings out, and write Parquet."
                )
    return None


def silence_query_context() -> None:
    """Keep PySpark 4 from printing a JSON line with the JVM's stack for every error that is caught and explained."""
    if find_spec("pyspark.logger") is None:
        return
    loggers = import_module("pyspark.logger").PySparkLogger
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        loggers.getLogger(name).setLevel(logging.CRITICAL + 1)


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
    """Return the session of a job, with the settings that the numbers and their speed rely on.

    One that is there already is given these settings; its name and its logs stay as they are. Otherwise `choose_engine`
    says which engine is started. Raises `ConfigError` if no engine is installed, there is no Java that Spark can use,
    the session is of another engine than is asked for, or it has the runtime of Delta or Iceberg for another Spark.

    Parameters
    ----------
    app_name : str
        What the Spark UI and the cluster's list of applications show.
    settings : mapping, optional
        More Spark settings; they win over the defaults.
    request : SessionRequest, optional
        What the session is to be; what the command line asks for, if None.

    Notes
    -----
    On local masters, and on a Connect server that ``SPARK_REMOTE=local`` starts, the workers run the driver's
    interpreter, also when its environment is not activated. On a cluster ``PYSPARK_PYTHON`` is left alone: an archive
    of the cluster's own may name another one.
    """
    request, settings = request or current_request(), dict(settings or {})
    is_own = not engines.is_session_there()
    if is_own and engines.choose_engine(request, settings.get("spark.master")) == "embedded":
        silence_query_context()
        with start_faults():
            return engines.embedded_session(list_settings(settings))
    spark = _start_spark(app_name, settings, request) if is_own else _current_session(settings)
    if not is_own:
        _refuse_other_engine(spark, request)
    jars = list_jars(spark.conf if engines.is_connect(spark) else spark.sparkContext.getConf())
    if fault := find_runtime_fault(jars, spark.version):
        if is_own:
            stop(spark)
        raise ConfigError(fault)
    if engines.is_connect(spark):
        return spark
    if is_own:
        spark.sparkContext.setLogLevel(spark.conf.get("spark.log.level", "ERROR") or "ERROR")
        silence_failures(spark)
    remember_classes(spark)
    return spark


def _start_spark(app_name: str, settings: Mapping[str, str], request: SessionRequest) -> SparkSession:
    """Start a session of Spark with all settings."""
    builder = SparkSession.builder.appName(app_name)
    asked = {**settings, **({"spark.master": request.master} if request.master else {})}
    if request.remote:
        builder = builder.remote(request.remote)
    elif "SPARK_REMOTE" not in os.environ:
        os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)  # PySpark leaves it when a session of Connect stops
    use_driver_python_on_local_masters(asked)
    silence_query_context()
    for key, value in list_settings(asked).items():
        builder = builder.config(key, value)
    remote = request.remote or os.environ.get("SPARK_REMOTE", "")
    if remote.startswith("sc://"):
        _refuse_silent_server(remote)
    with start_faults():
        spark: SparkSession = builder.getOrCreate()
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
            f"{endpoint_of(remote)}: no Spark Connect server answers there. Check --remote or SPARK_REMOTE, and that "
            "the server runs."
        ) from None
    finally:
        channel.close()


def _current_session(settings: Mapping[str, str]) -> SparkSession:
    """Return the session that is there, with all settings that it takes."""
    spark = engines.find_session()
    for key, value in list_settings(settings).items():
        if spark.conf.get(key, None) != value:
            with suppress(Exception):  # a static one stays as it is
                spark.conf.set(key, value)
    return spark


def _refuse_other_engine(spark: SparkSession, request: SessionRequest) -> None:
    """Raise `ConfigError` if the session that is there is not of the engine that is asked for."""
    engine = "embedded" if engines.is_embedded(spark) else "spark"
    if request.engine not in (None, engine):
        raise ConfigError(
            f"engine = {request.engine}: a session of the engine {engine} is there already, and a process has one at a "
            "time. Stop it first, or start another process."
        )


@contextmanager
def job_session(app_name: str, settings: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """Give a job its session, and stop it afterwards.

    One that was there before, as in a notebook, is left running, with the settings that it had.
    """
    if engines.is_session_there():
        with borrow(engines.find_session(), list(list_settings(settings))):
            yield build_session(app_name, settings)
        return
    spark = build_session(app_name, settings)
    try:
        yield spark
    finally:
        stop(spark)
