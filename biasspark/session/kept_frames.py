"""Frames whose rows are read more than once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from tempfile import TemporaryDirectory

from pyspark.sql import DataFrame
from pyspark.storagelevel import StorageLevel

from biasspark.session.engine_choice import is_embedded


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
    if not is_embedded(spark):
        with persisted(frame):
            yield frame
        return
    with TemporaryDirectory(prefix="biasspark-") as folder:
        path = f"{folder}/rows"
        frame.write.parquet(path)
        yield spark.read.schema(frame.schema).parquet(path)
