"""Translated Spark errors, given only messages. In tests/faults and tests/spark, Spark itself fails."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import PySparkException

from biasspark.errors import BiasSparkError, ConfigError, Fault, InputError, find_condition_of_a_value
from biasspark.session.spark_errors import ExpressionFault, translate_corpus_errors, translate_spark_errors
from biasspark.tables.storage_errors import storage_errors

SECRET = "canary"


def translate(message: str) -> Exception:
    with pytest.raises(Exception) as caught, translate_spark_errors("corpus"):  # noqa: PT011 - of whatever kind
        raise PySparkException(message)
    if type(caught.value) is not PySparkException:
        assert SECRET not in str(caught.value)
    return caught.value


DATE = "[CANNOT_PARSE_TIMESTAMP] Text 'canary' could not be parsed at index 0."
DIED = ["spark.executor.memoryOverhead"]
DENIED = {
    ": java.nio.file.AccessDeniedException: /data/day=1: Permission denied\n\tat org.x": "/data/day=1",
    ": java.nio.file.AccessDeniedException: /data: 1/x\n\tat org.x": "/data: 1/x",
    "Task 0 failed: java.io.FileNotFoundException: /data/a b.csv (Permission denied)\n\tat org.x": "/data/a b.csv",
    "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:/data/a.parquet. SQLSTATE: KD001\n"
    "Caused by: java.io.FileNotFoundException: /data/a.parquet (Permission denied)": "/data/a.parquet",
    "[CANNOT_READ_FILE_FOOTER] Could not read footer for file: file:/data/a. SQLSTATE: KD001\nCaused by: "
    "java.io.FileNotFoundException: /data/a (Permission denied)": "/data/a",
    "org.apache.hadoop.security.AccessControlException: Permission denied: user=canary, access=READ_EXECUTE, "
    'inode="/lake/x":hdfs:hdfs:drwx------': "/lake/x",
    "java.nio.file.AccessDeniedException: s3a://lake/x: getFileStatus on s3a://lake/x: Forbidden (Status 403)": (
        "s3a://lake/x"
    ),
}
"""The path that may not be read."""

EXPLAINED: dict[type[Exception], dict[str, list[str]]] = {
    # A worker that dies is no fault of the input.
    BiasSparkError: {
        "Task failed: numpy._core._exceptions._ArrayMemoryError: Unable to allocate 1.00 GiB for canary": DIED,
        "PythonException: MemoryError": DIED,
        "ImportError: unicodedata.so: failed to map segment from shared object": DIED,
        "ImportError: libarrow.so: failed to map segment from shared object: Cannot allocate memory": DIED,
        "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)": DIED,
        "AttributeError: partially initialized module 'pandas' has no attribute '_pandas_datetime_CAPI'": DIED,
    },
    # The Python of executors cannot be used.
    ConfigError: {
        'Task 0 failed: java.io.IOException: Cannot run program "/no/python": error=2, No such file or directory': [
            *("PYSPARK_PYTHON", " /no/python")
        ],
        "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.12 than that in driver: 3.11, PySpark": [
            *("PYSPARK_PYTHON", "executors run Python 3.12", "driver runs 3.11")
        ],
        "PythonException: \nModuleNotFoundError: No module named 'numpy'\n": ["PYSPARK_PYTHON", " numpy"],
    },
    # Files, formats and catalogs are named.
    InputError: {
        # of two conditions the more specific one counts
        "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:/x/a.csv. SQLSTATE: KD001\nCaused by:"
        " [MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION] Malformed records are detected: [canary].": ["record"],
        # Spark 3.5 has no conditions for files
        "org.apache.spark.SparkException: Encountered error while reading file file:///x/a.parquet. Details:\n"
        "Caused by: ParquetDecodingException: could not verify page integrity": ["cannot be read", " /x/a.parquet."],
        "org.apache.spark.SparkException: Parquet column cannot be converted in file hdfs://h/x/a.parquet. Column: "
        "[score], Expected: double, Found: BINARY.": [
            "another type",
            " score, BINARY for double.",
            " hdfs://h/x/a.parquet.",
        ],
        "org.apache.spark.sql.AnalysisException: Illegal Parquet type: INT64 (TIME(MICROS,true)).\n\tat org.x": [
            *("cannot read", " INT64 (TIME(MICROS,true)).")
        ],
        "java.lang.AssertionError: assertion failed: Conflicting partition column names detected:\n\n\tPartition": [
            "different columns"
        ],
        "[REQUIRES_SINGLE_PART_NAMESPACE] spark_catalog requires a single-part namespace, but got `nope`.`db`.": [
            "spark.sql.catalog.NAME"
        ],
        "org.apache.spark.SparkException: Cannot find catalog plugin class for catalog 'nope': org.nope.Catalog.": [
            "spark.sql.catalog.NAME"
        ],
        **{
            f"[DATA_SOURCE_NOT_FOUND] {sentence.format(name)}": hints
            for sentence in ("Failed to find the data source: {}. Make sure", "Failed to find data source: {}. P")
            for name, hints in (("parket", [" parket.", " parquet?"]), ("com.vendor.lake", [" com.vendor.lake."]))
        },
        **{message: ["permission", f" {path}."] for message, path in DENIED.items()},
    },
    # Expressions fail on a value, which is not shown, and may look like a denied path.
    ExpressionFault: {
        f"Task 0 failed 1 times: org.apache.spark.SparkDateTimeException: {DATE}\n\tat org.x": ["try_to_timestamp"],
        "Cannot cast string 'canary' to value of Int64 type": ["try_cast"],
        "[CAST_INVALID_INPUT] The value 'java.io.FileNotFoundException: canary (Permission denied)' of the type "
        '"STRING" cannot be cast. SQLSTATE: 22018': [],
    },
    # An unknown error stays as it is.
    PySparkException: {"java.lang.OutOfMemoryError: Java heap space": []},
}


@pytest.mark.parametrize(
    ("kind", "message"), [(kind, message) for kind, messages in EXPLAINED.items() for message in messages]
)
def test_an_error_of_spark_is_explained(kind: type[Exception], message: str) -> None:
    error = translate(message)
    assert type(error) is kind
    assert [part for part in EXPLAINED[kind][message] if part not in str(error)] == []


def test_a_failure_with_tables_is_not_examined_as_one_of_the_corpus() -> None:
    unasked: Any = None
    with pytest.raises(BiasSparkError) as caught, translate_corpus_errors(unasked, {}), storage_errors("a/b", "read"):
        raise PySparkException("Parquet error: EOF")
    assert "a/b" in str(caught.value)


def test_an_error_of_this_package_on_an_executor_is_its_message_alone() -> None:
    error = translate("Traceback ...\nbiasspark.errors.InputError: corpus: too many. Fix it.\n\tat org.apache.spark.x")
    assert type(error) is InputError
    assert str(error) == "corpus: too many. Fix it."


def test_a_key_of_the_configuration_is_the_path_of_the_fault() -> None:
    with pytest.raises(InputError) as caught, translate_spark_errors(("slices", "x"), "a >"):
        raise PySparkException("[PARSE_SYNTAX_ERROR] canary")
    (fault,) = caught.value.faults
    assert isinstance(fault, Fault)
    assert (fault.path, fault.value) == (("slices", "x"), "a >")
    assert SECRET not in str(fault)


# ---- expressions that fail on a value


@pytest.mark.parametrize("frame", ["RaiseError.eval(misc.scala:90)", "GeneratedClass$SpecificPredicate.eval(Unknown)"])
@pytest.mark.parametrize("value", [": canary", ": canary\nof two lines", ""])
def test_an_error_that_an_expression_raises_is_known_in_spark_3_5_by_its_frame(value: str, frame: str) -> None:
    where = f"\n\tat org.apache.spark.sql.catalyst.expressions.{frame}"
    error = translate(f"Task 0 failed 1 times: java.lang.RuntimeException{value}{where}\n\tat org.apache.spark.x")
    assert type(error) is ExpressionFault
    assert "raised" in str(error)
    assert type(translate(f"java.lang.RuntimeException{value}\n\tat org.apache.spark.x{where}")) is PySparkException


@pytest.mark.parametrize(
    ("message", "condition"),
    [
        (f"Task 0 failed 1 times: org.apache.spark.SparkDateTimeException: {DATE}", "CANNOT_PARSE_TIMESTAMP"),
        (f"{DATE} SQLSTATE: 22007", "CANNOT_PARSE_TIMESTAMP"),
        (
            f"[TASK_WRITE_FAILED] Task failed. SQLSTATE: 58030\nCaused by: {DATE} SQLSTATE: 22007",
            "CANNOT_PARSE_TIMESTAMP",
        ),
        ("[USER_RAISED_EXCEPTION] canary\n[CANARY] SQLSTATE: P0001", "USER_RAISED_EXCEPTION"),
        ("[TASK_WRITE_FAILED] Task failed. SQLSTATE: 58030", None),
        ("java.lang.RuntimeException: canary", None),
    ],
)
def test_the_condition_of_an_expression_that_fails_on_a_value(message: str, condition: str | None) -> None:
    assert find_condition_of_a_value(message) == condition


def test_a_table_whose_write_fails_on_a_value_does_not_show_it() -> None:
    with pytest.raises(BiasSparkError) as caught, storage_errors("warehouse", "written"):
        raise PySparkException(f"Task 0 failed 1 times: org.apache.spark.SparkDateTimeException: {DATE}\n\tat org.x")
    assert "[CANNOT_PARSE_TIMESTAMP]" in str(caught.value)
    assert SECRET not in str(caught.value)
