"""What Spark says of a failure, in plain words; the failures themselves are in tests/faults and tests/spark."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from biasspark.corpus.files import find_unread
from biasspark.corpus.other_format import format_of_ending, guess_format
from biasspark.corpus.plain_words import ExpressionFault, input_faults
from biasspark.errors import BiasSparkError, ConfigError, InputError, find_condition_of_a_value
from biasspark.tables.contract import named_fault


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


@pytest.mark.parametrize(
    ("name", "hint"),
    [("parket", " Format: parket. Did you mean parquet?"), ("com.vendor.lake", " Format: com.vendor.lake.")],
)
@pytest.mark.parametrize(
    "sentence", ["Failed to find the data source: {}. Make sure", "Failed to find data source: {}. P"]
)
def test_a_format_that_is_none_is_named(sentence: str, name: str, hint: str) -> None:
    assert str(say(f"[DATA_SOURCE_NOT_FOUND] {sentence.format(name)}")) == (
        f"corpus: Spark knows no such format. Check `[corpus] format` and the jars of the session.{hint}"
    )


def test_what_nobody_knows_stays_as_it_is() -> None:
    assert type(say("java.lang.OutOfMemoryError: Java heap space")) is PySparkException


def test_a_fault_found_on_an_executor_is_said_alone() -> None:
    error = say("Traceback ...\nbiasspark.errors.InputError: corpus: too many. Mend it.\n\tat org.apache.spark.x")
    assert type(error) is InputError
    assert str(error) == "corpus: too many. Mend it."


@pytest.mark.parametrize("frame", ["RaiseError.eval(misc.scala:90)", "GeneratedClass$SpecificPredicate.eval(Unknown)"])
@pytest.mark.parametrize("value", [": canary", ": canary\nof two lines", ""])
def test_an_error_that_an_expression_raises_is_known_in_spark_3_5_by_its_place(value: str, frame: str) -> None:
    place = f"\n\tat org.apache.spark.sql.catalyst.expressions.{frame}"
    error = say(f"Task 0 failed 1 times: java.lang.RuntimeException{value}{place}\n\tat org.apache.spark.x")
    assert type(error) is ExpressionFault
    assert str(error) == "corpus: an error is raised. Correct the expression."
    further = say(f"java.lang.RuntimeException{value}\n\tat org.apache.spark.x{place}")
    assert type(further) is PySparkException


DATE = "[CANNOT_PARSE_TIMESTAMP] Text 'canary' could not be parsed at index 0."


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
def test_what_a_value_did_to_an_expression_is_known_by_its_condition(message: str, condition: str | None) -> None:
    assert find_condition_of_a_value(message) == condition


def test_what_spark_knows_of_a_value_is_said_without_it() -> None:
    message = f"Task 0 failed 1 times: org.apache.spark.SparkDateTimeException: {DATE}\n\tat org.apache.spark.x"
    error = say(message)
    assert type(error) is ExpressionFault
    assert str(error) == "corpus: a text is not a date or time in that pattern. Use try_to_timestamp."
    with pytest.raises(BiasSparkError) as caught, named_fault("warehouse", "written"):
        raise PySparkException(message)
    assert str(caught.value) == (
        "warehouse: could not be written, [CANNOT_PARSE_TIMESTAMP]. Nothing was published. Mend the cause, then "
        "run again."
    )


def test_a_cause_is_said_rather_than_that_a_file_was_being_read() -> None:
    error = say(
        "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:/x/a.csv. SQLSTATE: KD001\nCaused by: "
        "[MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION] Malformed records are detected in record parsing: [canary]."
    )
    assert str(error) == "corpus: a record does not fit the table. Take the mode FAILFAST from its options."


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        (
            "org.apache.spark.SparkException: Encountered error while reading file file:///x/a.parquet. Details:\n"
            "Caused by: ParquetDecodingException: could not verify page integrity",
            "a file cannot be read. It is corrupt or of another format. Replace it. File: /x/a.parquet.",
        ),
        (
            "org.apache.spark.SparkException: Parquet column cannot be converted in file hdfs://h/x/a.parquet. Column: "
            "[score], Expected: double, Found: BINARY.",
            "a column has another type in one file than in others. Write those of the wrong type anew, or have Spark 4 "
            "read numbers as the wider type by a `schema`. Column: score, BINARY for double. File: hdfs://h/x/a.parquet.",
        ),
        (
            'SparkException: [CANNOT_MERGE_SCHEMAS] Failed merging schemas:\nInitial schema:\n"STRUCT<id: BIGINT NOT '
            'NULL, n: STRUCT<a: INT>, `s, é`: DOUBLE, t: INT, u: INT>"\nSchema that cannot be merged with the initial '
            'schema:\n"STRUCT<id: BIGINT, n: STRUCT<a: INT>, `s, é`: STRING, u: DATE>". SQLSTATE: 42KD9\n\tat org.x',
            "a column has another type in one file than in others. Write those of the wrong type anew, or have Spark 4 "
            "read numbers as the wider type by a `schema`. Column: `s, é`, STRING for DOUBLE. Column: u, DATE for INT.",
        ),
        (
            "org.apache.spark.sql.AnalysisException: Illegal Parquet type: INT64 (TIME(MICROS,true)).\n\tat org.x",
            "a column is of a type that Spark cannot read. Write it as another (times: microseconds). Type: INT64 "
            "(TIME(MICROS,true)).",
        ),
        (
            "java.lang.AssertionError: assertion failed: Conflicting partition column names detected:\n\n\tPartition",
            "its folders are partitions of different columns, or of different depths. Bring them into one form.",
        ),
    ],
)
def test_what_spark_3_5_says_of_files_without_a_condition(message: str, fault: str) -> None:
    error = say(message)
    assert type(error) is InputError
    assert str(error) == f"corpus: {fault}"


@pytest.mark.parametrize(
    "message",
    [
        "[REQUIRES_SINGLE_PART_NAMESPACE] spark_catalog requires a single-part namespace, but got `nope`.`db`.",
        "org.apache.spark.SparkException: Cannot find catalog plugin class for catalog 'nope': org.nope.Catalog.",
    ],
)
def test_a_catalog_that_the_session_lacks_is_a_fault_of_the_input(message: str) -> None:
    error = say(message)
    assert type(error) is InputError
    assert str(error) == (
        "corpus: the session has no such catalog. Check `[corpus] table`, the catalogs of the session "
        "(spark.sql.catalog.NAME) and their jars."
    )


@pytest.mark.parametrize(
    ("message", "path"),
    [
        (": java.nio.file.AccessDeniedException: /data/day=1: Permission denied\n\tat org.x", "/data/day=1"),
        (": java.nio.file.AccessDeniedException: /data: 1/x\n\tat org.x", "/data: 1/x"),
        (
            "Task 0 failed: java.io.FileNotFoundException: /data/a b.csv (Permission denied)\n\tat org.x",
            "/data/a b.csv",
        ),
        (
            "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:/data/a.parquet. SQLSTATE: KD001\n"
            "Caused by: java.io.FileNotFoundException: /data/a.parquet (Permission denied)",
            "/data/a.parquet",
        ),
        (
            "[CANNOT_READ_FILE_FOOTER] Could not read footer for file: file:/data/a. SQLSTATE: KD001\nCaused by: "
            "java.io.FileNotFoundException: /data/a (Permission denied)",
            "/data/a",
        ),
        (
            "org.apache.hadoop.security.AccessControlException: Permission denied: user=ann, access=READ_EXECUTE, "
            'inode="/lake/x":hdfs:hdfs:drwx------',
            "/lake/x",
        ),
        (
            "java.nio.file.AccessDeniedException: s3a://lake/x: getFileStatus on s3a://lake/x: Forbidden (Status 403)",
            "s3a://lake/x",
        ),
    ],
)
def test_a_path_that_may_not_be_read_is_named(message: str, path: str) -> None:
    error = say(message)
    assert type(error) is InputError
    assert "permission is denied" in str(error)
    assert str(error).endswith(f" Path: {path}.")
    assert "ann" not in str(error)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (
            'Task 0 failed: java.io.IOException: Cannot run program "/no/python": error=2, No such file or directory',
            "executors cannot run /no/python",
        ),
        (
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.12 than that in driver: 3.11, PySpark",
            "executors run Python 3.12, and the driver runs 3.11",
        ),
        ("PythonException: \nModuleNotFoundError: No module named 'numpy'\n", "lacks the package numpy"),
    ],
)
def test_a_python_of_executors_that_will_not_do_is_a_fault_of_the_configuration(message: str, words: str) -> None:
    error = say(message)
    assert type(error) is ConfigError
    assert words in str(error)
    assert "PYSPARK_PYTHON" in str(error)


def test_a_value_that_looks_like_a_refusal_is_none() -> None:
    refused = "java.io.FileNotFoundException: secret (Permission denied)"
    error = say(f"[CAST_INVALID_INPUT] The value '{refused}' of the type \"STRING\" cannot be cast. SQLSTATE: 22018")
    assert type(error) is ExpressionFault
    assert "secret" not in str(error)


@pytest.mark.parametrize(
    ("line", "guess"),
    [
        ("PAR1\x15\x04", ("parquet", "")),
        ("ORC\x08", ("orc", "")),
        ("Obj\x01\x04\x14avro.codec", ("avro", "")),
        ('{"id": 1, "text": "a;b;c"}', ("json", "")),
        ("[", ("json", "")),
        ('[{"id": 1}]', ("json", "")),
        ("id,target,score", ("csv", "")),
        ('\ufeff"id";"target";"score"', ("csv", ";")),
        ("id\ttarget\tscore", ("csv", "\\t")),
        ("id|target|a, b", ("csv", "|")),
        ("1,0.5,true", None),
        ("a,,b", None),
        ("a,a", None),
        ("one column", None),
        ("", None),
        ("\x00\x01,\x02", None),
        (f"{'x' * 100},y", None),
    ],
)
def test_the_first_line_shows_the_format(line: str, guess: tuple[str, str] | None) -> None:
    assert guess_format(line) == guess


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("/x/a.csv", "csv"),
        ("/x/a.TSV.gz", "csv"),
        ("a.jsonl.zst", "json"),
        ("part-0.c000.snappy.parquet", "parquet"),
        ("part-0.zstd.orc", "orc"),
        ("/x.csv/part-0", None),
        ("a.txt", None),
    ],
)
def test_the_ending_of_a_name_shows_the_format(name: str, kind: str | None) -> None:
    assert format_of_ending(name) == kind


@pytest.mark.parametrize(
    ("names", "there", "unread"),
    [
        (["/c/a", "/c/b"], ["/c/a", "/c/b"], []),
        (["/c/a", "/c/sub/b"], ["/c/a"], ["/c/sub/b"]),
        (["/c/day=1/a", "/c/day=2/a"], ["/c/day=1/a", "/c/day=2/a"], []),
        (["/c/a", "/c/day=1/a"], ["/c/a", "/c/day=1/a"], ["/c/a"]),
        (["/c/day=1/a", "/c/day=1/hour=2/a"], ["/c/day=1/a", "/c/day=1/hour=2/a"], ["/c/day=1/a"]),
        (["/c/x=1/a", "/c/plain/a"], ["/c/x=1/a", "/c/plain/a"], []),  # a pattern of both: x is no column
        (["/c/x=1/day=%C3%A9%3D1/a", "/c/x=2/day=1/a"], ["/c/x=1/day=%C3%A9%3D1/a", "/c/x=2/day=1/a"], []),
        ([], [], []),
    ],
)
def test_files_that_spark_passes_over(names: list[str], there: list[str], unread: list[str]) -> None:
    assert find_unread(names, there, ["id", "day", "hour"]) == unread
