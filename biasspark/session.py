"""The one place that builds a session and touches what only a classic session has.

Everything else takes a ``DataFrame`` and uses ``DataFrame.sparkSession``, so that it runs on
Spark Connect and on serverless clusters as well.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from tempfile import TemporaryDirectory
from threading import Event, Lock, Thread
from typing import Any, NamedTuple, TypeVar, cast
from uuid import uuid4

import pyspark
from pyspark import SparkConf, __version__, inheritable_thread_target
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import DataFrame, SparkSession
from pyspark.storagelevel import StorageLevel

from biasspark.errors import ConfigError
from biasspark.startup import find_runtime_fault, list_jars, silence_query_context, start_faults

# What the numbers rely on: the job sets it and does not trust the cluster's defaults.
_REQUIRED = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    # Spark writes a checksum of every page, and left alone never looks at it.
    "parquet.page.verify-checksum.enabled": "true",
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
# What the JVM is asked for by these names, for every column and every path. py4j looks for it in all jars, each time.
_PATH = "org.apache.hadoop.fs.Path"
_CLASSES = ("functions", "org.apache.spark.sql.functions", "PythonUtils", "PythonSQLUtils", _PATH)

T = TypeVar("T")
_AT_ONCE = 4


@dataclass
class _Loan:
    """How many jobs have borrowed a session at once, and the settings that it had before; None where it had none."""

    n_jobs: int = 0
    before: dict[str, str | None] = field(default_factory=dict)


_LOANS: dict[SparkSession, _Loan] = {}
_LENDING = Lock()

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


def build_session(app_name: str, settings: Mapping[str, str] | None = None) -> SparkSession:
    """Return the session of a job: the caller's cluster, with the settings that the numbers and their speed rely on.

    One that is there already is given these settings; its name and its logs stay as they are.

    Parameters
    ----------
    app_name : str
        What the Spark UI and the cluster's list of applications show.
    settings : mapping, optional
        More Spark settings; they win over the defaults of this module.

    Raises
    ------
    ConfigError
        If there is no Java that Spark can use, or the session has the runtime of Delta or Iceberg for another Spark.

    Notes
    -----
    On local masters, and on a Connect server that ``SPARK_REMOTE=local`` starts, the workers run the driver's
    interpreter, also when its environment is not activated. On a cluster ``PYSPARK_PYTHON`` is left alone: an archive
    of the cluster's own may name another one.
    """
    is_own = not is_session_there()
    builder = SparkSession.builder
    if is_own:
        builder = builder.appName(app_name)
        _use_driver_python_on_local_masters(settings or {})
        silence_query_context()
    for key, value in _list_settings(settings).items():
        builder = builder.config(key, value)
    with start_faults():
        spark: SparkSession = builder.getOrCreate()
    jars = list_jars(spark.conf if is_connect(spark) else spark.sparkContext.getConf())
    if fault := find_runtime_fault(jars, spark.version):
        if is_own:
            _stop(spark)
        raise ConfigError(fault)
    if is_connect(spark):
        return spark
    if is_own:
        spark.sparkContext.setLogLevel(spark.conf.get("spark.log.level", "ERROR") or "ERROR")
        _silence_failures(spark)
    _remember_classes(spark)
    return spark


@contextmanager
def job_session(app_name: str, settings: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """Give a job its session, and stop it afterwards.

    One that was there before, as in a notebook, is left running, with the settings that it had.
    """
    if is_session_there():
        with _borrow(SparkSession.builder.getOrCreate(), list(_list_settings(settings))):
            yield build_session(app_name, settings)
        return
    spark = build_session(app_name, settings)
    try:
        yield spark
    finally:
        _stop(spark)


def _stop(spark: SparkSession) -> None:
    """Stop a session, without the second for which PySpark may wait for its own thread that adds up accumulators."""
    if is_connect(spark):
        spark.stop()
        return
    context: Any = spark.sparkContext
    accumulators, context._accumulatorServer = getattr(context, "_accumulatorServer", None), None
    spark.stop()
    if accumulators:
        Thread(target=accumulators.shutdown, name="stop-accumulators", daemon=True).start()


def is_session_there() -> bool:
    """Say whether the builder would find a session, or a context to make one of, whichever thread made it."""
    if getattr(getattr(pyspark, "SparkContext", None), "_active_spark_context", None) is not None:
        return True
    try:
        # A classic one without a context was stopped, and the builder makes another.
        return is_connect(SparkSession.active())
    except PySparkRuntimeError:
        return False


def is_connect(spark: SparkSession) -> bool:
    """Say whether the session talks to a Spark Connect server."""
    return "connect" in type(spark).__module__


@contextmanager
def describe(spark: SparkSession, text: str) -> Iterator[None]:
    """Name the Spark jobs of a block, for the Spark UI; does nothing under Connect."""
    if is_connect(spark):
        yield
        return
    context = spark.sparkContext
    before = context.getLocalProperty("spark.job.description")
    context.setLocalProperty("spark.job.description", text)
    try:
        yield
    finally:
        context.setLocalProperty("spark.job.description", before)  # type: ignore[arg-type]  # None clears it


@contextmanager
def follow_tasks(spark: SparkSession, report: Callable[[int, int], None], every: float = 0.5) -> Iterator[None]:
    """Report (done, all) tasks of the running stages now and then, and (0, 0) at the end; silent under Connect."""
    if is_connect(spark):
        yield
        return
    tracker, stopped = spark.sparkContext.statusTracker(), Event()

    def watch() -> None:
        while not stopped.wait(every):
            try:
                stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            except Exception:  # noqa: BLE001 - the context is gone: what the job says of it is not to be covered
                return
            running = [stage for stage in stages if stage is not None]
            report(sum(stage.numCompletedTasks for stage in running), sum(stage.numTasks for stage in running))

    watcher = Thread(target=watch, name="follow-tasks", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        stopped.set()
        watcher.join()
        report(0, 0)


def analyse(frame: DataFrame) -> DataFrame:
    """Return a frame that Spark has analysed. Under Connect it looks for tables, paths and options only when asked."""
    frame.schema  # noqa: B018 - this asks
    return frame


def run_side_by_side(spark: SparkSession, tasks: Sequence[Callable[[], T]]) -> list[T]:
    """Run tasks in a few threads, each under the properties of this one, and give what they return, in order.

    To plan and compile a small query takes the driver longer than the cluster takes to run it: side by side, one is
    planned while another runs. When a task fails, the rest is left undone, and the first failure in order is raised.
    """
    with ThreadPoolExecutor(_AT_ONCE, "side-by-side") as pool:
        return list(pool.map(lambda task: task(), [_inherit_properties(spark, task) for task in tasks]))


def persisted(*frames: DataFrame) -> ExitStack:
    """Persist frames for a block, and release them whatever happens.

    For frames that are parts of other frames already; all others go through `kept`, which every engine can do.
    """
    with ExitStack() as stack:
        for frame in frames:
            stack.callback(frame.unpersist)
            frame.persist(StorageLevel.MEMORY_AND_DISK)
        return stack.pop_all()


@contextmanager
def kept(frame: DataFrame) -> Iterator[DataFrame]:
    """Give the rows of a frame, for a block in which they are read more than once, so that they are computed once.

    Spark persists them. An embedded engine cannot, so they are written to a temporary folder, which is deleted
    afterwards.
    """
    spark = frame.sparkSession
    if not _is_embedded(spark):
        with persisted(frame):
            yield frame
        return
    with TemporaryDirectory(prefix="biasspark-") as folder:
        path = f"{folder}/rows"
        frame.write.parquet(path)
        yield spark.read.schema(frame.schema).parquet(path)


def _is_embedded(spark: SparkSession) -> bool:
    """Return whether the session's engine is embedded: one that speaks Spark Connect, and has no master."""
    return is_connect(spark) and spark.conf.get("spark.master", None) is None


class FolderEntry(NamedTuple):
    """A file or a folder within another: its name alone, and its bytes."""

    name: str
    is_folder: bool
    n_bytes: int


def list_folder(spark: SparkSession, path: str) -> list[FolderEntry]:
    """Return what is in a folder of any file system that Spark knows; nothing where there is none.

    Raises
    ------
    ConfigError
        Under Connect, which gives no access to files.
    """
    files, place = find_files(spark, path)
    entries = files.listStatus(place) if files.exists(place) else ()
    return [FolderEntry(entry.getPath().getName(), entry.isDirectory(), entry.getLen()) for entry in entries]


def read_file(spark: SparkSession, path: str) -> bytes:
    """Return the content of a small file. Raises as ``list_folder``."""
    files, place = find_files(spark, path)
    stream = files.open(place)
    try:
        return bytes(stream.readAllBytes())
    finally:
        stream.close()


def try_folder(spark: SparkSession, path: str) -> None:
    """Write an empty file into a folder, made for it if need be, and take both away again; no job.

    Raises
    ------
    NotADirectoryError
        If the folder or one above it is a file.
    ConfigError
        As ``list_folder``.
    """
    files, place = find_files(spark, path)
    missing, above = [], files.makeQualified(place)
    while above is not None and not files.exists(above):
        missing.append(above)
        above = above.getParent()
    if above is not None and not files.getFileStatus(above).isDirectory():
        raise NotADirectoryError(f"{above.toUri().getPath()} is a file")
    _, attempt = find_files(spark, f"{path}/_biasspark_{uuid4().hex}")
    try:
        files.create(attempt, False).close()
    finally:
        for made in (attempt, *missing):
            with suppress(Exception):  # a folder stays in which another run has written meanwhile
                files.delete(made, False)


def delete_folder(spark: SparkSession, path: str) -> None:
    """Delete a folder with all that is in it; nothing happens where there is none. Raises as ``list_folder``."""
    files, place = find_files(spark, path)
    if not files.delete(place, True) and files.exists(place):
        raise OSError(f"{path}: it is still there")


def find_files(spark: SparkSession, path: str) -> tuple[Any, Any]:
    """Return the file system of a path, and the path, as the JVM has them."""
    if is_connect(spark):
        raise ConfigError(
            "SPARK_REMOTE: a session of Spark Connect lists and deletes no files. Folders of tables are kept in order "
            "by a classic one. Start the job without it."
        )
    context: Any = spark.sparkContext
    place = getattr(context._jvm, _PATH)(path)
    return place.getFileSystem(context._jsc.hadoopConfiguration()), place


def hadoop_version(spark: SparkSession) -> str:
    """Return the version of Hadoop that a classic session runs, which jars of its file systems have as well."""
    context: Any = spark.sparkContext
    return str(context._jvm.org.apache.hadoop.util.VersionInfo.getVersion())


def _list_settings(settings: Mapping[str, str] | None) -> dict[str, str]:
    return _REQUIRED | _TUNED | dict(settings or {})


@contextmanager
def _borrow(spark: SparkSession, keys: Sequence[str]) -> Iterator[None]:
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


def _inherit_properties(spark: SparkSession, task: Callable[[], T]) -> Callable[[], T]:
    """Return a task that takes along the properties of this thread, by which its Spark jobs are named."""
    if __version__.startswith("3."):  # which takes no session, and under Connect has nothing to inherit
        return inheritable_thread_target(task)
    return cast("Callable[[], T]", inheritable_thread_target(spark)(task))


def _silence_failures(spark: SparkSession) -> None:
    """Keep the driver's log free of what failed tasks quote: the values on which an expression failed."""
    log4j = spark.sparkContext._jvm.org.apache.logging.log4j  # type: ignore[union-attr]  # there while a session is
    for name in _LOGGERS_OF_FAILURES:
        log4j.core.config.Configurator.setLevel(name, log4j.Level.OFF)


def _remember_classes(spark: SparkSession) -> None:
    """Look for the classes of which columns are made once, and not at every use: that takes half of building them."""
    jvm = spark.sparkContext._jvm
    for name in _CLASSES:
        setattr(jvm, name, getattr(jvm, name))


def _use_driver_python_on_local_masters(settings: Mapping[str, str]) -> None:
    master = os.environ.get("SPARK_REMOTE") or settings.get("spark.master") or SparkConf().get("spark.master")
    if (master or "local").startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
