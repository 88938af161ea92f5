"""What Spark says of a failure, in plain words; the failures themselves are in tests/faults and tests/spark."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from biasspark.corpus.source import input_faults
from biasspark.errors import BiasSparkError, InputError


def say(message: str) -> Exception:
    with pytest.raises(Exception) as caught, input_faults("corpus"):  # noqa: PT011 - of whatever kind
        raise PySparkException(message)
    return caught.value


@pytest.mark.parametrize(
    "message",
    [
        "Task failed: numpy._core._exceptions._ArrayMemoryError: Unable to allocate 1.00 GiB for canary",
        "PythonException: MemoryError",
        "ImportError: unicodedata.so: failed to map segment from shared object",
        "ImportError: libarrow.so: failed to map segment from shared object: Cannot allocate memory",
        "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)",
    ],
)
def test_a_worker_that_dies_is_no_fault_of_the_input(message: str) -> None:
    error = say(message)
    assert type(error) is BiasSparkError
    assert str(error) == (
        "corpus: a Python worker has run out of memory, or was killed. Give workers more "
        "(spark.executor.pyspark.memory where it is set, else spark.executor.memoryOverhead), or set `[ranking] "
        "ranges` higher, so that a task holds less."
    )


def test_what_nobody_knows_stays_as_it_is() -> None:
    assert type(say("java.lang.OutOfMemoryError: Java heap space")) is PySparkException


def test_a_fault_found_on_an_executor_is_said_alone() -> None:
    error = say("Traceback ...\nbiasspark.errors.InputError: corpus: too many. Mend it.\n\tat org.apache.spark.x")
    assert type(error) is InputError
    assert str(error) == "corpus: too many. Mend it."


def test_a_cause_is_said_rather_than_that_a_file_was_being_read() -> None:
    error = say(
        "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:/x/a.csv. SQLSTATE: KD001\nCaused by: "
        "[MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION] Malformed records are detected in record parsing: [canary]."
    )
    assert str(error) == "corpus: a record does not fit the table. Take the mode FAILFAST from its options."
