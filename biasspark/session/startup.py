"""Why Spark does not start, or would fail later: no usable Java, or a lake runtime that is for another Spark."""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec

import pyspark
from pyspark import SparkConf
from pyspark.sql.conf import RuntimeConfig

from biasspark.errors import BiasSparkError, ConfigError, has_condition, redact

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
        context = getattr(getattr(pyspark, "SparkContext", None), "_active_spark_context", None)
        if context is not None and (fault := find_runtime_fault(list_jars(context.getConf()), context.version)):
            context.stop()
            raise ConfigError(fault) from None
        raise BiasSparkError(
            f"Spark did not start on {_describe_master()}: {_find_cause(error)}. Check the master, SPARK_LOCAL_IP and "
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


def _find_cause(error: Exception) -> str:
    """Return the innermost cause of an error in one line. No row was read yet that it could quote."""
    lines = [line for line in str(error).splitlines() if line and not line.startswith("An error occurred while")]
    if "stopped SparkContext" in str(error):
        return "it was stopped while it started, as happens where no master answers"
    causes = [line for line in lines if line.startswith("Caused by: ")] or lines[:1] or [type(error).__name__]
    return redact(causes[-1].removeprefix("Caused by: ").removeprefix(": ").rstrip("."))


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
