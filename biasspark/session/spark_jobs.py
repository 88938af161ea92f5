"""What the jobs of a session are called, how far they are, how several run at once, and what is read repeatedly."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import TypeVar, cast

from pyspark import __version__, inheritable_thread_target
from pyspark.sql import DataFrame, SparkSession
from pyspark.storagelevel import StorageLevel

from biasspark.session.engines import is_connect, is_embedded

T = TypeVar("T")
_AT_ONCE = 4


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


def _inherit_properties(spark: SparkSession, task: Callable[[], T]) -> Callable[[], T]:
    """Return a task that takes along the properties of this thread, by which its Spark jobs are named."""
    if __version__.startswith("3."):  # which takes no session, and under Connect has nothing to inherit
        return inheritable_thread_target(task)
    return cast("Callable[[], T]", inheritable_thread_target(spark)(task))


def persisted(*frames: DataFrame) -> ExitStack:
    """Persist frames for a block, and release them whatever happens.

    For frames that are parts of other frames already; all others go through `kept`, which every engine can do.
    """
    with ExitStack() as stack:
        for frame in frames:
            stack.callback(frame.unpersist)
            frame.persist(StorageLevel.MEMORY_AND_DISK)
        return stack.pop_all()


_ROWS_OF_A_GROUP = {True: "4", False: "1000000"}
"""Rows of a group of a Parquet file: what a task reads at a time. Large ones are some MB each."""


@contextmanager
def kept(frame: DataFrame, *, large_rows: bool = False) -> Iterator[DataFrame]:
    """Give the rows of a frame, for a block in which they are read more than once, so that they are computed once.

    Spark persists them. An embedded engine cannot, so they are written to a temporary folder, which is deleted
    afterwards. To compress them takes longer than to read them.
    """
    spark = frame.sparkSession
    if not is_embedded(spark):
        with persisted(frame):
            yield frame
        return
    with TemporaryDirectory(prefix="biasspark-") as folder:
        path = f"{folder}/rows"
        groups = _ROWS_OF_A_GROUP[large_rows]
        frame.write.option("compression", "none").option("max_row_group_size", groups).parquet(path)
        yield spark.read.schema(frame.schema).parquet(path)
