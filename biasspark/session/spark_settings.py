"""The settings of a session: what the numbers rely on, what makes it fast, and a loan of a session that is there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Lock

from pyspark.sql import SparkSession

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
