"""Features of classic sessions: the JVM with its log, classes and file systems."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from threading import Thread
from typing import Any

from pyspark import SparkConf
from pyspark.sql import SparkSession

from biasspark.errors import ConfigError
from biasspark.session.engines import is_connect

# Names that are looked up in the JVM for every column and path. py4j searches all jars each time.
_PATH = "org.apache.hadoop.fs.Path"
_CLASSES = ("functions", "org.apache.spark.sql.functions", "PythonUtils", "PythonSQLUtils", _PATH)

# They log failures that are caught and explained: values of failed tasks, plans that cannot be analyzed, and code that
# is too large to compile, which Spark then splits.
_LOGGERS_OF_FAILURES = (
    "org.apache.spark.api.python",
    "org.apache.spark.executor.Executor",
    "org.apache.spark.sql.catalyst.expressions.codegen.CodeGenerator",
    "org.apache.spark.sql.delta.files",
    "org.apache.spark.sql.execution.datasources.FileFormatWriter",
    "org.apache.spark.sql.execution.python",
    "org.apache.spark.sql.util.ExecutionListenerBus",
    "org.apache.spark.util.Utils",
)


def stop(spark: SparkSession) -> None:
    """Stop a session. Do not wait for the accumulator thread of PySpark, which may take a second."""
    if is_connect(spark):
        spark.stop()
        return
    context: Any = spark.sparkContext
    accumulators, context._accumulatorServer = getattr(context, "_accumulatorServer", None), None
    spark.stop()
    if accumulators:
        Thread(target=accumulators.shutdown, name="stop-accumulators", daemon=True).start()


def find_files(spark: SparkSession, path: str) -> tuple[Any, Any]:
    """Return the file system of a path, and the path, as JVM objects."""
    if is_connect(spark):
        raise ConfigError(
            "SPARK_REMOTE: a session of Spark Connect cannot list or delete files. Maintenance of folders needs a "
            "classic session. Start the job without it."
        )
    context: Any = spark.sparkContext
    hadoop_path = getattr(context._jvm, _PATH)(path)
    return hadoop_path.getFileSystem(context._jsc.hadoopConfiguration()), hadoop_path


def hadoop_version(spark: SparkSession) -> str:
    """Return the Hadoop version of a classic session, which is also the version of its file system jars."""
    context: Any = spark.sparkContext
    return str(context._jvm.org.apache.hadoop.util.VersionInfo.getVersion())


def silence_failures(spark: SparkSession) -> None:
    """Keep values quoted by failed tasks out of the log of the driver."""
    log4j = spark.sparkContext._jvm.org.apache.logging.log4j  # type: ignore[union-attr]  # there while a session is
    for name in _LOGGERS_OF_FAILURES:
        log4j.core.config.Configurator.setLevel(name, log4j.Level.OFF)


def remember_classes(spark: SparkSession) -> None:
    """Cache the JVM classes that build columns: looking them up at every use takes half of the time."""
    jvm = spark.sparkContext._jvm
    for name in _CLASSES:
        setattr(jvm, name, getattr(jvm, name))


def use_driver_python_on_local_masters(settings: Mapping[str, str]) -> None:
    """Run local workers with the interpreter of the driver, unless another one is configured."""
    master = os.environ.get("SPARK_REMOTE") or settings.get("spark.master") or SparkConf().get("spark.master")
    if (master or "local").startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
