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
