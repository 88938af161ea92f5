"""What only a classic session has: a JVM, with its log, its classes and its file systems."""

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

# What the JVM is asked for by these names, for every column and every path. py4j looks for it in all jars, each time.
_PATH = "org.apache.hadoop.fs.Path"
_CLASSES = ("functions", "org.apache.spark.sql.functions", "PythonUtils", "PythonSQLUtils", _PATH)

# What they print of failures that are caught and explained: values of failed tasks, plans that cannot be analysed, and
# code too large to be compiled in one piece, which Spark then compiles in several.
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
    """Stop a session, without the second for which PySpark may wait for its own thread that adds up accumulators."""
    if is_connect(spark):
        spark.stop()
        return
    context: Any = spark.sparkContext
    accumulators, context._accumulatorServer = getattr(context, "_accumulatorServer", None), None
    spark.stop()
    if accumulators:
        Thread(target=accumulators.shutdown, name="stop-accumulators", daemon=True).start()


def find_files(spark: SparkSession, path: str) -> tuple[Any, Any]:
    """Return the file system of a path, and the path, as the JVM has them."""
    if is_connect(spark):
        raise ConfigError(
            "SPARK_REMOTE: a session of Spark Connect lists and deletes no files. Folders of tables are kept in order "
            "by a classic one. Start the job without it."
        )
    context: Any = spark.sparkContext
    hadoop_path = getattr(context._jvm, _PATH)(path)
    return hadoop_path.getFileSystem(context._jsc.hadoopConfiguration()), hadoop_path


def hadoop_version(spark: SparkSession) -> str:
    """Return the version of Hadoop that a classic session runs, which jars of its file systems have as well."""
    context: Any = spark.sparkContext
    return str(context._jvm.org.apache.hadoop.util.VersionInfo.getVersion())


def silence_failures(spark: SparkSession) -> None:
    """Keep the driver's log free of what failed tasks quote: the values on which an expression failed."""
    log4j = spark.sparkContext._jvm.org.apache.logging.log4j  # type: ignore[union-attr]  # there while a session is
    for name in _LOGGERS_OF_FAILURES:
        log4j.core.config.Configurator.setLevel(name, log4j.Level.OFF)


def remember_classes(spark: SparkSession) -> None:
    """Look for the classes of which columns are made once, and not at every use: that takes half of building them."""
    jvm = spark.sparkContext._jvm
    for name in _CLASSES:
        setattr(jvm, name, getattr(jvm, name))


def use_driver_python_on_local_masters(settings: Mapping[str, str]) -> None:
    """Have workers on this machine run the driver's interpreter, unless another one is named."""
    master = os.environ.get("SPARK_REMOTE") or settings.get("spark.master") or SparkConf().get("spark.master")
    if (master or "local").startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
