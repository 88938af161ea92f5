"""Spark jobs of a session: their names, parallel jobs, and kept frames."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from importlib import import_module
from shutil import rmtree
from tempfile import gettempdir
from threading import Thread
from typing import TypeVar, cast

import pyarrow as pa
from pyspark import __version__, inheritable_thread_target
from pyspark.sql import DataFrame, SparkSession
from pyspark.storagelevel import StorageLevel

from biasspark.errors import BiasSparkError, innermost_cause
from biasspark.session.engines import is_connect, is_embedded, temporary_folder

T = TypeVar("T")


@contextmanager
def describe(spark: SparkSession, text: str) -> Iterator[None]:
    """Set the description of Spark jobs in the Spark UI. Does nothing under Connect."""
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
def starting_workers(spark: SparkSession, module: str) -> Iterator[None]:
    """Start the Python workers of local Spark in the background, and import a module in them.

    That takes them one to two seconds, while the driver reads and plans. A failure is left to the job that needs them.
    The block ends after the start, as Spark prints a stack trace if its session stops meanwhile.
    """
    if is_connect(spark) or not (spark.sparkContext.master or "").startswith("local"):
        yield
        return
    n_workers = spark.sparkContext.defaultParallelism

    def load(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        import_module(module)
        return batches

    def start() -> None:
        with suppress(Exception), describe(spark, "start the Python workers"):
            spark.range(0, n_workers, 1, n_workers).mapInArrow(load, "id BIGINT").collect()

    thread = Thread(target=start, name="start-workers", daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def analyze(frame: DataFrame) -> DataFrame:
    """Analyze a frame now, so that missing tables and paths are found. Connect would analyze it later."""
    frame.schema  # noqa: B018 - triggers the analysis
    return frame


def run_side_by_side(spark: SparkSession, tasks: Sequence[Callable[[], T]]) -> list[T]:
    """Run tasks in a few threads with the local properties of this thread, and return their results in order.

    Planning a small query takes the driver longer than running it, so one is planned while another runs. If a task
    fails, tasks that are not started are skipped, and the first failure in order is raised.
    """
    is_3_5 = __version__.startswith("3.")  # takes no session
    inheriting = [
        inheritable_thread_target(task) if is_3_5 else inheritable_thread_target(spark)(task) for task in tasks
    ]
    with ThreadPoolExecutor(4, "side-by-side") as pool:
        return list(pool.map(lambda task: cast("T", task()), inheriting))


@contextmanager
def temporary_errors(what: str) -> Iterator[None]:
    """Name the system's temporary folder if a block, or the engine in it, cannot write files there."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, OSError) and "No space left on device" not in str(error):
            raise
        cause = getattr(error, "strerror", None) or innermost_cause(error)
        rule = f"{what} could not be written to {gettempdir()}, {cause}."
        raise BiasSparkError(f"{rule} Set TMPDIR to a folder with more space.") from error


@contextmanager
def kept(frame: DataFrame, *, large_rows: bool = False) -> Iterator[DataFrame]:
    """Yield a frame whose rows are computed once, although they are read repeatedly.

    Spark persists them, and large rows on disk alone: in memory they would fill a small heap, and Java would spend much
    of the time collecting garbage. The embedded engine cannot persist, so they are written to a temporary folder,
    uncompressed: compression takes longer than reading, and dictionaries and statistics of large rows longer than
    writing. A task reads a row group at once, so rows of some MB each go in small groups.
    """
    spark = frame.sparkSession
    if not is_embedded(spark):
        frame.persist(StorageLevel.DISK_ONLY if large_rows else StorageLevel.MEMORY_AND_DISK)
        try:
            yield frame
        finally:
            frame.unpersist()
        return
    folder = temporary_folder()
    try:
        path = f"{folder}/rows"
        options = {"compression": "none", "dictionary_enabled": "false", "statistics_enabled": "none"}
        groups = "4" if large_rows else "1000000"
        with temporary_errors("rows"):
            frame.write.options(**options, max_row_group_size=groups).parquet(path)
        yield spark.read.schema(frame.schema).parquet(path)
    finally:  # after an interrupt the engine may go on to write, so that it is deleted again at the end
        rmtree(folder, ignore_errors=True)
