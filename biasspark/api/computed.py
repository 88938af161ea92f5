"""What public functions share that compute when they are called: frames that hold their rows, and warnings."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping

from pyspark.sql import DataFrame

from biasspark.api.keyword_faults import name_keywords
from biasspark.api.keywords import DEFAULTS
from biasspark.corpus.culprits import corpus_faults
from biasspark.errors import InputWarning
from biasspark.session import describe, is_connect


def compute(corpus: DataFrame, expressions: Mapping[str, str], table: Callable[[], DataFrame]) -> DataFrame:
    """Plan a small table of a corpus, compute it, and return a DataFrame that holds its rows.

    Raises
    ------
    InputError
        If one of the expressions of the configuration fails on a row, or a file cannot be read.
    """
    with describe(corpus.sparkSession, "compute the table"), corpus_faults(corpus, expressions):
        return hold(table())


def hold(frame: DataFrame) -> DataFrame:
    """Compute a small table now, and return a DataFrame that holds its rows.

    Values, NULLs and types stay as they are. The rows come to the driver once. What is computed from the returned frame
    reads them again, and nothing that they were made from.

    Notes
    -----
    No Python worker runs. A classic session of Spark 3.5, which makes no frame from Arrow, keeps the rows on the
    executors in place of the driver.
    """
    spark = frame.sparkSession
    if to_arrow := getattr(frame, "toArrow", None):  # Spark 4
        return spark.createDataFrame(to_arrow(), frame.schema)
    return spark.createDataFrame(frame.collect(), frame.schema) if is_connect(spark) else frame.localCheckpoint()


def write_warnings(texts: Iterable[str]) -> tuple[str, ...]:
    """Return warnings of the jobs in the words of a notebook."""
    return tuple(name_keywords(text, DEFAULTS, {}) for text in texts)


def warn(texts: Iterable[str]) -> None:
    """Give warnings by Python's ``warnings``, at the line outside of this package from which it was called."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("biasspark."):
        level, frame = level + 1, frame.f_back
    for text in texts:
        warnings.warn(text, InputWarning, stacklevel=level)
